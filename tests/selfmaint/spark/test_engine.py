"""The Spark engine against the in-memory one, and what it must leave alone."""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from datalog.model import ANY, ColumnType, Predicate, Program, Row, TypeName
from datalog.syntax import parse_program
from selfmaint.engine.protocol import Facts
from selfmaint.errors import Code, InputError, ReadRefusedError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from selfmaint.spark import SparkEngine

INT, BIGINT = ColumnType(TypeName.INT), ColumnType(TypeName.BIGINT)
R, S, E = Predicate("r"), Predicate("s"), Predicate("e")
HOSTILE = "'; DROP TABLE r; -- ${spark.master} \\ \" ` %s \n\u00e9\u4e2d"
ROWS: dict[Predicate, frozenset[Row]] = {
    R: frozenset({(1, "a"), (2, "b"), (2, None), (None, "a"), (None, None), (3, HOSTILE)}),
    S: frozenset({("a", 10), ("b", 2), (None, 7), (HOSTILE, None)}),
    E: frozenset(),
}


@pytest.fixture
def engine(spark: SparkSession) -> Iterator[SparkEngine]:
    from selfmaint.spark import SparkEngine

    made = SparkEngine(spark, near_values=0)
    yield made
    made.release()


@pytest.fixture(scope="module")
def facts(spark: SparkSession) -> Facts[DataFrame]:
    from selfmaint.spark import SparkEngine

    engine = SparkEngine(spark)
    types = {R: [BIGINT, ANY], S: [ANY, INT], E: [BIGINT]}
    relations = {
        p: engine.load(rows, [f"c{i}" for i in range(len(types[p]))], types[p]) for p, rows in ROWS.items()
    }
    return Facts(relations, small=frozenset({R}))


def test_columns_of_one_name_do_not_clash(engine: SparkEngine) -> None:
    data = engine.load([(1, 2), (3, 3)], ["x", "X"], [ANY, ANY]).toDF("x", "X")
    program = parse_program("v(A) :- r(A, A).")
    found = engine.evaluate(program, Predicate("v"), Facts({R: data}), ["same"])
    assert engine.sample(found, 9) == [(3,)]


# ------------------------------------------------------------------------------------------ the read guard


def test_a_statement_that_reads_another_name_is_refused(
    engine: SparkEngine, facts: Facts[DataFrame], monkeypatch: pytest.MonkeyPatch, spark: SparkSession
) -> None:
    from sqlglot import exp

    import selfmaint.spark.statements as under_test

    monkeypatch.setattr(under_test, "select", lambda *_, **__: exp.select("1").from_("secret.item"))
    before = spark.catalog.listTables()
    with pytest.raises(ReadRefusedError, match=r"secret\.item"):
        engine.evaluate(parse_program("v(X) :- r(X, Y)."), Predicate("v"), facts)
    assert spark.catalog.listTables() == before


# ------------------------------------------------------------------------------------- rows in and rows out


def test_values_of_every_type_come_back_as_they_went(engine: SparkEngine) -> None:
    names = [
        "boolean",
        "tinyint",
        "smallint",
        "int",
        "bigint",
        "double",
        "decimal",
        "string",
        "date",
        "timestamp",
    ]
    types = [ColumnType(TypeName(name)) for name in names]
    row: Row = (
        True,
        -128,
        32767,
        -(2**31),
        2**63 - 1,
        0.1,
        Decimal("-123.4500"),
        HOSTILE,
        dt.date(1582, 10, 15),
        dt.datetime(2024, 2, 29, 23, 59, 59, 123456),
    )
    nulls: Row = (None,) * len(row)
    for declared in (types, [ANY] * len(names)):
        found = engine.sample(engine.load([row, nulls, row], names, declared), 9)
        assert sorted(found, key=repr) == sorted([row, nulls], key=repr)
        assert [type(v) for r in found if r != nulls for v in r] == [type(v) for v in row]
    schema = engine.load([row], names, types).schema
    assert [f.dataType.simpleString() for f in schema.fields] == [
        *["boolean", "tinyint", "smallint", "int", "bigint", "double"],
        *["decimal(7,4)", "string", "date", "timestamp"],
    ]


@pytest.mark.parametrize(
    ("values", "declared", "expected"),
    [
        ([1, None], ANY, "bigint"),
        ([1, 2**63], ANY, "decimal(19,0)"),
        ([1, Decimal("0.25")], ANY, "decimal(3,2)"),
        ([Decimal("1E+2")], ANY, "decimal(3,0)"),
        ([1, 0.5], ANY, "double"),
        ([Decimal("12.5"), 7], ColumnType(TypeName.DECIMAL, 10, 2), "decimal(10,2)"),
        ([0.5, Decimal("1.25")], ColumnType(TypeName.DECIMAL), "decimal(3,2)"),
        ([], ColumnType(TypeName.DECIMAL), "decimal(10,0)"),
        ([None], ANY, "void"),
        ([], ColumnType(TypeName.FLOAT), "float"),
        ([Decimal("3.0")], INT, "int"),
    ],
)
def test_numbers_get_the_narrowest_exact_type(
    values: list[object], declared: ColumnType, expected: str, spark: SparkSession
) -> None:
    from selfmaint.spark import SparkEngine

    frame = SparkEngine(spark).load([(value,) for value in values], ["n"], [declared])  # type: ignore[misc]
    assert frame.schema["n"].dataType.simpleString() == expected


# -------------------------------------------------------------------------------------------- set operations


# --------------------------------------------------------------------------------------------- kept relations


def test_kept_rows_outlive_what_they_were_computed_from(
    engine: SparkEngine, spark: SparkSession, tmp_path: Path
) -> None:
    from selfmaint.store.journal import remove

    path = tmp_path / "r"
    spark.range(5).write.parquet(str(path))
    kept = engine.keep(engine.evaluate(Program(), R, Facts({R: spark.read.parquet(str(path))})))
    remove(path)
    program = parse_program("v(X) :- r(X), X > 2.")
    for _ in range(2):  # evaluation must not evict what is kept
        assert engine.count(engine.evaluate(program, Predicate("v"), Facts({R: kept}))) == 2
    assert engine.keep(kept) is kept
    engine.release()


def test_what_the_caller_cached_stays_cached(engine: SparkEngine, spark: SparkSession) -> None:
    mine = spark.range(3).selectExpr("id * 7 as x").cache()
    try:
        engine.keep(mine)
        engine.nonempty(parse_program("v(X) :- r(X)."), [Predicate("v"), R], Facts({R: mine}))
        engine.release()
        assert mine.storageLevel.useMemory
    finally:
        mine.unpersist()


def test_only_small_relations_are_broadcast(
    engine: SparkEngine, facts: Facts[DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    import selfmaint.spark.statements as under_test
    from datalog.sql import Table, select
    from selfmaint.spark import programs

    seen: dict[Predicate, Table] = {}

    def spy(program: Program, goal: Predicate, tables: dict[Predicate, Table], **options: bool) -> object:
        seen.update(tables)
        return select(program, goal, tables, **options)

    monkeypatch.setattr(under_test, "select", spy)
    program = parse_program("v(X) :- r(X, Y), s(Y, Z).")
    engine.evaluate(program, Predicate("v"), facts)
    assert (seen[R].broadcast, seen[S].broadcast) == (True, False)
    monkeypatch.setattr(programs, "BROADCAST_BYTES", 0)
    engine.release()
    engine.evaluate(program, Predicate("v"), facts)
    assert not seen[R].broadcast


# -------------------------------------------------------------------------------------------------- session


def test_an_active_session_is_used_as_it_is(spark: SparkSession) -> None:
    from selfmaint.spark import session

    before = spark.sparkContext.getConf().getAll()
    shuffles = spark.conf.get("spark.sql.shuffle.partitions")
    assert session({"spark.sql.shuffle.partitions": "77", "spark.app.name": "other"}) is spark
    assert spark.sparkContext.getConf().getAll() == before
    assert spark.conf.get("spark.sql.shuffle.partitions") == shuffles


def test_a_new_session_is_silent_and_leaves_nothing_behind(tmp_path: Path) -> None:
    code = """
from pyspark.errors import PySparkException
from selfmaint.spark import SparkEngine, session

spark = session({"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1", "spark.app.name": "mine"})
assert session() is spark
conf = spark.sparkContext.getConf()
assert conf.get("spark.app.name") == "mine"
assert spark.conf.get("spark.sql.shuffle.partitions") == "3"
assert conf.get("spark.buffer.pageSize") == "1m"
assert conf.get("spark.driver.host") == "127.0.0.1"
assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
assert SparkEngine(spark).count(spark.range(3)) == 3
for failing in ("SELECT no_such_column", "SELECT 1 / 0"):
    try:
        spark.sql(failing).collect()
    except PySparkException:
        continue
    raise AssertionError(failing)
"""
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(Path(__file__).parents[3])}
    environment.pop("SPARK_LOCAL_IP", None)
    # What Spark is configured with goes over the recommended settings, and what is given over both.
    environment["SPARK_CONF_DIR"] = str(tmp_path / "conf")
    (tmp_path / "conf").mkdir()
    defaults = "spark.app.name theirs\nspark.sql.shuffle.partitions 3\n"
    (tmp_path / "conf" / "spark-defaults.conf").write_text(defaults, encoding="utf-8")
    ended = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    assert [path.name for path in tmp_path.glob("selfmaint-*")] == []


@pytest.mark.parametrize("version", ['java version "1.8.0_402"', 'openjdk version "11.0.2" 2019-01-15'])
def test_an_old_java_is_told_before_spark_fails_on_it(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from selfmaint.spark.session import _require_java

    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho '{version}' >&2\n", encoding="utf-8")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(InputError, match="too old") as refused:
        _require_java()
    assert refused.value.diagnostics[0].code is Code.NO_ENGINE
    assert "version 17" in (refused.value.diagnostics[0].hint or "")


def test_a_missing_java_is_told_with_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from selfmaint.spark.session import _require_java

    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(InputError, match="JAVA_HOME is set"):
        _require_java()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="Java was not found") as refused:
        _require_java()
    assert "openjdk-17" in (refused.value.diagnostics[0].hint or "")


def test_rows_in_a_file_that_executors_do_not_see(spark: SparkSession, tmp_path: Path) -> None:
    import pyarrow as pa

    from selfmaint.spark import SparkEngine
    from selfmaint.spark.exchange import SparkExchange
    from selfmaint.store.exchange import Spill

    file, engine = tmp_path / "rows.parquet", SparkEngine(spark)
    rows = pa.table({"x": range(3 * 2**20)})
    with Spill(rows.schema, file) as spill:
        spill.add(rows.to_batches()[0])
    entered = SparkExchange(engine).entered(spill)
    file.unlink()
    for use in (lambda: engine.count(entered), lambda: SparkExchange(engine).entered(spill)):
        with pytest.raises(InputError, match=r"rows\.parquet") as refused:
            use()
        (found,) = refused.value.diagnostics
        assert found.code is Code.MISSING_CONTENTS
        assert "TMPDIR" in (found.hint or "")


@pytest.mark.parametrize(
    ("name", "value"),
    [("spark.sql.ansi.enabled", "false"), ("spark.sql.timestampType", "TIMESTAMP_NTZ")],
)
def test_a_session_in_which_sql_means_something_else_is_refused(
    spark: SparkSession, name: str, value: str
) -> None:
    from selfmaint.spark import SparkEngine

    beside = spark.newSession()
    SparkEngine(beside)
    beside.conf.set(name, value)
    with pytest.raises(InputError, match=rf"`{name}` is `{value}`") as caught:
        SparkEngine(beside)
    (said,) = caught.value.diagnostics
    assert said.code is Code.NO_ENGINE
    assert "spark.newSession()" in str(said.hint)
