"""Sources of base relations: the rows asked for and no others, each read counted as it was.

Oracle: the reference source over rows in memory, whose answer every other source must give.
"""

from __future__ import annotations

import datetime as dt
import math
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from psycopg import sql

from datalog.model import ANY, ColumnType, Row, TypeName, WallClock
from selfmaint.api.platforms.platform import platform_of
from selfmaint.duckdb import DuckEngine
from selfmaint.duckdb.file_source import DuckSource, StoredFiles
from selfmaint.duckdb.writing import writing
from selfmaint.errors import Code, SourceError
from selfmaint.postgres import keys as keys_under_test
from selfmaint.postgres import source as under_test
from selfmaint.postgres.connection import begun
from selfmaint.sources.between import Between, between
from selfmaint.sources.memory import RowsSource
from selfmaint.store import exchange as exchange_under_test
from selfmaint.store.expected import Expected
from selfmaint.store.formats import Format

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Database = psycopg.Connection[tuple[object, ...]]
Source = under_test.PostgresSource[Any]

HOSTILE = "'; DROP TABLE item; -- ${a} \\ \" ` %s \n\u00e9"
COLUMNS = ('k"%s', "name", "price", "day", "at", "moment", "ratio", "flag")
TYPES = (
    ColumnType(TypeName.BIGINT),
    ColumnType(TypeName.STRING),
    ColumnType(TypeName.DECIMAL, 10, 2),
    *(ColumnType(TypeName(n)) for n in ("date", "timestamp_ntz", "timestamp", "double", "boolean")),
)
NOON = dt.datetime(2024, 2, 29, 12, 0, 0, 123456)
SHOWN = WallClock.of(NOON)
ROWS: frozenset[Row] = frozenset(
    {
        (1, "a", Decimal("1.50"), dt.date(2024, 2, 29), SHOWN, NOON, 0.5, True),
        (2, "b", Decimal("2.00"), dt.date(2024, 3, 1), SHOWN, NOON, 0.25, False),
        (2, None, None, None, None, None, None, None),
        (None, "a", Decimal("-7.25"), dt.date(1999, 12, 31), None, None, -1e300, None),
        (None, None, None, None, None, None, None, None),
        (2**40, HOSTILE, None, None, None, None, None, None),
    }
)
MEMORY = RowsSource("memory", {"item": (COLUMNS, ROWS)})
LOOKUPS: list[tuple[list[str], list[Row]]] = [
    ([COLUMNS[0]], [(1,), (2,), (99,)]),
    ([COLUMNS[0]], [(None,), (2**40,)]),
    (["name", COLUMNS[0]], [("a", 1), ("a", 2), (None, 2), ("a", None), (None, None)]),
    (["name"], [(HOSTILE,), ("no\0such",)]),
    (["price"], [(Decimal("1.5"),), (Decimal("1.505"),), (2,)]),
    (["day", "flag"], [(dt.date(2024, 2, 29), True), (dt.date(2024, 3, 1), None)]),
    (["at"], [(SHOWN,), (SHOWN.replace(microsecond=0),)]),
    (["moment"], [(NOON,), (None,)]),
    (["ratio"], [(0.25,), (0.1,)]),
    (["name"], [(1,)]),
    (["price"], [(1.5,), (0.1,), (math.inf,)]),
    ([COLUMNS[0]], [(2.0,), (0.5,), (1e300,)]),
    (["ratio"], [(Decimal("0.25"),), (-1,)]),
    ([COLUMNS[0]], []),
]


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> Any:
    if getattr(request, "param", "duckdb") == "duckdb":
        return DuckEngine()
    from selfmaint.spark import SparkEngine

    return SparkEngine(request.getfixturevalue("spark"), near_values=0)


both = pytest.mark.parametrize("engine", ["duckdb", "spark"], indirect=True)


def declared(columns: tuple[str, ...] = COLUMNS, types: tuple[ColumnType, ...] = TYPES) -> Expected:
    return Expected("item", columns, types)


ITEM = ('S%s.i.te"m', declared())


def connected(engine: Any, url: str, timeout_s: float = 60, **tables: tuple[str, Expected]) -> Source:
    names = {name: table for name, (table, _) in tables.items()}
    declarations = {name: expected for name, (_, expected) in tables.items()}
    return under_test.PostgresSource("ops", url, platform_of(engine).exchange, names, declarations, timeout_s)


def in_files(engine: Any, **paths: tuple[Path, Expected]) -> Any:
    if engine.name == "duckdb":
        return DuckSource("lake", engine, {n: StoredFiles(str(p), e) for n, (p, e) in paths.items()})
    from selfmaint.spark.parquet_source import SparkSource, StoredRelation

    return SparkSource("lake", engine.spark, {n: StoredRelation(str(p), e) for n, (p, e) in paths.items()})


@pytest.fixture(scope="module")
def database(postgres: str) -> Iterator[Database]:
    """A table `item` in a schema of a difficult name, and more columns than are declared."""
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(
            'DROP SCHEMA IF EXISTS "S%s" CASCADE'
        )  # other tests may come in between: it is made anew
        connection.execute('CREATE SCHEMA "S%s"')
        names = [sql.Identifier(name.replace("%", "%%")) for name in COLUMNS]
        types = ("bigint", "text", "numeric(10,2)", "date", "timestamp", "timestamptz", "float8", "boolean")
        columns = sql.SQL(", ").join(
            sql.SQL("{} {}").format(name, sql.SQL(kind)) for name, kind in zip(names, types, strict=True)
        )
        table = sql.Identifier("S%%s", 'i.te"m')
        connection.execute(sql.SQL("CREATE TABLE {} (more json, {})").format(table, columns), ())
        connection.execute(sql.SQL("CREATE INDEX ON {} ({})").format(table, names[0]), ())
        insert = sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(
            table, sql.SQL(", ").join(names), sql.SQL(", ").join(sql.Placeholder() * len(COLUMNS))
        )
        for row in ROWS:
            moment = row[5].replace(tzinfo=dt.UTC) if isinstance(row[5], dt.datetime) else None
            connection.execute(insert, [*row[:5], moment, *row[6:]])
        yield connection


@pytest.fixture
def source(postgres: str, database: Database, engine: Any) -> Iterator[Source]:
    assert not database.closed
    with closing(connected(engine, postgres, item=ITEM)) as made:
        yield made


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path, engine = tmp_path_factory.mktemp("base") / "item", DuckEngine()
    writing(engine.database, engine.load(ROWS, COLUMNS, TYPES))(path, Format.PARQUET, None)
    return path


@both
def test_postgres_answers_as_the_reference(engine: Any, source: Source) -> None:
    for columns, keys in LOOKUPS if engine.name == "duckdb" else [LOOKUPS[i] for i in (2, 5, 6, 7, 10)]:
        expected, _ = MEMORY.read("item", columns, frozenset(keys))
        found, read = source.read("item", columns, engine.load(keys, columns, [ANY] * len(columns)))
        assert sorted(engine.sample(found, 99), key=repr) == sorted(expected, key=repr), columns
        assert engine.columns(found) == COLUMNS
        assert (read.relation, read.key_columns, read.source) == ("item", tuple(columns), "ops")
        assert read.rows_read == len(expected)
        assert read.keys_asked <= len(keys)
        assert (read.bytes_read > 0) == any(v is not None for row in expected for v in row)


@both
def test_files_answer_as_the_reference(engine: Any, stored: Path) -> None:
    files = in_files(engine, item=(stored, declared()))
    for columns, keys in [LOOKUPS[i] for i in ((0, 2, 5, 6, -1) if engine.name == "duckdb" else (2, 6))]:
        expected, reference = MEMORY.read("item", columns, frozenset(keys))
        found, read = files.read("item", columns, engine.load(keys, columns, [ANY] * len(columns)))
        assert sorted(engine.sample(found, 99), key=repr) == sorted(expected, key=repr), columns
        assert engine.columns(found) == COLUMNS
        assert (read.keys_asked, read.rows_read) == (reference.keys_asked, reference.rows_read)
        assert (read.bytes_read > 0) == bool(expected)


def spans() -> Iterator[Between]:
    """Spans that begin or end where values are, before all of them, or nowhere; of each type of dates and times."""
    tick, day = dt.timedelta(microseconds=1), dt.timedelta(days=1)
    noon, midnight, older = NOON, dt.datetime(2024, 3, 1), dt.datetime(1999, 12, 31)
    chosen = [
        [(noon, noon + tick)],
        [(noon - tick, noon)],
        [(noon + tick, noon + day)],
        [(older, older + day), (midnight, midnight + day)],
        [(midnight - tick, midnight), (midnight + day, None)],
        [(None, midnight)],
        [(None, older), (noon, None)],
        [(None, None)],
        [],
    ]
    for column, kind in zip(COLUMNS[3:6], TYPES[3:6], strict=True):
        for i, some in enumerate(chosen):
            yield between(column, kind, some, with_null=i % 2 == 1)


@both
def test_spans_are_read_as_by_the_reference(engine: Any, source: Source, stored: Path) -> None:
    files, numbers = in_files(engine, item=(stored, declared())), set[int]()
    for i, asked in enumerate(spans()):
        expected, reference = MEMORY.read_between("item", asked)
        for one in (source, files) if engine.name == "duckdb" or i % 4 == 1 else ():
            found, read = one.read_between("item", asked)
            assert sorted(engine.sample(found, 99), key=repr) == sorted(expected, key=repr), asked
            assert (read.key_columns, read.keys_asked) == ((asked.column,), reference.keys_asked)
            assert (read.rows_read, read.is_of_spans) == (len(expected), True)
        numbers.add(len(expected))
    assert len(numbers) > 4


def test_spans_are_read_by_an_index(database: Database, postgres: str) -> None:
    database.execute(
        "CREATE TABLE IF NOT EXISTS visit (id int PRIMARY KEY, at timestamp, z timestamptz, d date)"
    )
    database.execute("TRUNCATE visit")
    database.execute(
        "INSERT INTO visit SELECT i, '2026-01-01'::timestamp + i * interval '1 hour', "
        "'2026-01-01Z'::timestamptz + i * interval '1 hour', '2026-01-01'::date + i FROM generate_series(1, 20000) i"
    )
    for column in ("at", "z", "d"):
        database.execute(sql.SQL("CREATE INDEX ON visit ({})").format(sql.Identifier(column)))
    database.execute("ANALYZE visit")
    types = {"at": TYPES[4], "z": TYPES[5], "d": TYPES[3]}
    expected = Expected("visit", ("id", *types), (ColumnType(TypeName.INT), *types.values()))
    columns = under_test.columns_of(database, under_test.PostgresTable.parse("visit"), expected)
    days = [dt.datetime(2026, 1, n) for n in (3, 5)]
    for column, kind in types.items():
        asked = between(column, kind, [(day, day + dt.timedelta(days=1)) for day in days], with_null=True)
        query = keys_under_test.span_query(under_test.PostgresTable.parse("visit"), columns, asked)
        plan = database.execute(sql.SQL("EXPLAIN ") + query.statement, query.parameters).fetchall()
        assert f"visit_{column}_idx" in str(plan), plan
        assert "Seq Scan" not in str(plan)
        with closing(connected(DuckEngine(), postgres, visit=("visit", expected))) as source:
            assert source.read_between("visit", asked)[1].rows_read == (2 if column == "d" else 48)


@pytest.mark.parametrize(("columns", "keys"), [*LOOKUPS[:9], *LOOKUPS[10:]])
def test_rows_that_stand_twice_are_all_found_by_values_of_any_type(
    stored: Path, tmp_path: Path, columns: list[str], keys: list[Row]
) -> None:
    """Also where all that is asked for in a column is null, so that it has no type."""
    path, engine = tmp_path / "twice", DuckEngine()
    for copy in ("one", "two"):
        shutil.copytree(stored, path / copy)
    files = DuckSource("lake", engine, {"item": StoredFiles(str(path), declared())})
    for some in (keys, [key for key in keys if None in key]):
        expected, _ = MEMORY.read("item", columns, frozenset(some))
        found, _ = files.read("item", columns, engine.load(some, columns, [ANY] * len(columns)))
        assert engine.count(found) == 2 * len(expected)
        assert frozenset(engine.sample(found, 99)) == expected


def test_a_row_that_equals_two_keys_is_found_as_often_as_it_is_there(tmp_path: Path) -> None:
    """Two whole numbers are one as doubles."""
    engine = DuckEngine()
    double, bigint = (ColumnType(name) for name in (TypeName.DOUBLE, TypeName.BIGINT))
    rows = pa.table({"x": [2.0**53, 2.0**53, 1.0], "n": [1, 1, 2]})
    pq.write_table(rows, tmp_path / "t.parquet")
    expected = Expected("t", ("x", "n"), (double, bigint))
    source = DuckSource("lake", engine, {"t": StoredFiles(str(tmp_path / "t.parquet"), expected)})
    keys = engine.load([(2**53,), (2**53 + 1,), (7,)], ["x"], [bigint])
    found, read = source.read("t", ["x"], keys)
    assert sorted(pa.table(found).to_pydict()["x"]) == [2.0**53] * 2
    assert read.rows_read == 2


@both
def test_a_whole_relation_is_read_only_when_asked_for(engine: Any, source: Source, stored: Path) -> None:
    for one in (source, in_files(engine, item=(stored, declared()))):
        found, read = one.read("item", [], None)
        assert sorted(engine.sample(found, 99), key=repr) == sorted(ROWS, key=repr)
        assert (read.key_columns, read.keys_asked, read.rows_read) == ((), 0, len(ROWS))
        assert one.row_count("item") >= 0


# ------------------------------------------------------------------------------------------------ files only


def test_a_file_source_of_spark_tells_a_change_and_counts_without_a_scan(
    spark: SparkSession, tmp_path: Path
) -> None:
    from selfmaint.spark.parquet_source import SparkSource, StoredRelation

    path, expected = tmp_path / "t", declared(("id",), (ANY,))
    spark.range(1000).repartition(3).write.parquet(str(path))
    source = SparkSource("lake", spark, {"t": StoredRelation(str(path), expected)})
    before = source.version()
    assert before == source.version()
    assert source.row_count("t") == 1000
    spark.range(5).write.mode("append").parquet(str(path))
    assert source.version() != before
    assert source.row_count("t") == 1005
    spark.range(64).createTempView("sources_test_view")
    try:
        table = SparkSource("catalog", spark, {"t": StoredRelation("sources_test_view", expected)})
        assert table.row_count("t") == 64
        assert table.version() is None
    finally:
        spark.catalog.dropTempView("sources_test_view")


@both
def test_what_a_file_source_cannot_read_is_a_source_error(engine: Any, tmp_path: Path) -> None:
    one = DuckEngine()
    writing(one.database, one.load([(1,)], ["id"], [ANY]))(tmp_path / "t", Format.PARQUET, None)
    source = in_files(engine, gone=(tmp_path / "gone", declared()), other=(tmp_path / "t", declared()))
    codes = {"gone": Code.MISSING_CONTENTS, "other": Code.COLUMNS_DIFFER, "unknown": Code.UNKNOWN_RELATION}
    for relation, code in codes.items():
        for call in (source.row_count, lambda name: source.read(name, [], None)):
            if relation == "other" and call == source.row_count:
                continue  # the footers tell the size of whatever is there
            with pytest.raises(SourceError) as failed:
                call(relation)
            assert failed.value.diagnostics[0].code is code


# ------------------------------------------------------------------------------------------- PostgreSQL only


def test_sizes_are_estimates_and_versions_notice_a_change(source: Source, database: Database) -> None:
    database.execute('ANALYZE "S%s"."i.te""m"')
    assert source.row_count("item") == len(ROWS)
    first = source.version()
    assert first == source.version()
    source.end()
    database.execute("CREATE TABLE IF NOT EXISTS moved (n int)")
    assert source.version() != first


def test_all_reads_see_one_state_until_the_end(engine: Any, source: Source, database: Database) -> None:
    keys = engine.load([(1,)], ["k"], [ANY])

    def names() -> list[object]:
        return [row[1] for row in engine.sample(source.read("item", [COLUMNS[0]], keys)[0], 9)]

    try:
        assert names() == ["a"]
        database.execute("""UPDATE "S%s"."i.te""m" SET name = 'new' WHERE "k""%s" = 1""")
        assert names() == ["a"]
        source.end()
        assert names() == ["new"]
    finally:
        database.execute("""UPDATE "S%s"."i.te""m" SET name = 'a' WHERE "k""%s" = 1""")


def test_nothing_can_be_written_through_the_source(source: Source) -> None:
    source.begin()
    assert source._connection is not None
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        source._connection.execute("CREATE TEMPORARY TABLE t (n int)")


@both
def test_many_keys_and_large_answers_pass_in_bounded_pieces(
    engine: Any, postgres: str, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.execute(
        "CREATE TABLE IF NOT EXISTS big AS"
        " SELECT i::int AS id, 's' || i AS s, now() AS at FROM generate_series(1, 5000) i"
    )
    monkeypatch.setattr(keys_under_test, "KEYS_PER_STATEMENT", 300)
    monkeypatch.setattr(under_test, "FETCH_ROWS", 100)
    monkeypatch.setattr(exchange_under_test, "MEMORY_LIMIT_BYTES", 10_000)
    types = tuple(ColumnType(TypeName(name)) for name in ("bigint", "string", "timestamp"))
    expected = declared(("id", "s", "at"), (types[0], ANY, ANY))
    with connected(engine, postgres, big=("public.big", expected)) as source:
        keys = engine.load([*((i,) for i in range(0, 9000, 3)), (3_000_000_000,)], ["k"], [ANY])
        found, read = source.read("big", ["id"], keys)
        assert (read.keys_asked, read.rows_read) == (3000, 1666)
        assert engine.count(found) == 1666
        assert {row[0] for row in engine.sample(found, 9999)} == {*range(3, 5001, 3)}
        assert platform_of(engine).types(found) == types
        directory = source._directory
        assert directory is not None
        assert list(directory.iterdir())
    assert not directory.exists()


def test_a_number_that_is_not_exact_is_compared_as_a_double(
    engine: Any, postgres: str, database: Database
) -> None:
    """As both engines compare it: several long numbers may be one double."""
    database.execute("CREATE TABLE long (n numeric(20,2), i bigint, f real)")
    database.execute(
        "INSERT INTO long VALUES (9007199254740993, 9007199254740993, 0.1), (0.3, -1, 0.5), (NULL, 0, 'NaN')"
    )
    expected = declared(("n", "i", "f"), (ColumnType(TypeName.DECIMAL, 20, 2), ANY, ANY))
    cases = [("n", 2.0**53, 1), ("i", 2.0**53, 1), ("n", 0.3, 1), ("n", 0.1 + 0.2, 0), ("n", math.nan, 0)]
    cases += [("f", 0.1, 0), ("f", Decimal("0.1"), 0), ("f", Decimal("0.5"), 1), ("f", math.nan, 1)]
    with connected(engine, postgres, long=("long", expected)) as source:
        for column, key, rows in cases:
            keys = engine.load([(key,)], ["k"], [ANY])
            assert source.read("long", [column], keys)[1].rows_read == rows, (column, key)


def test_columns_and_types_are_checked_before_anything_is_read(
    engine: Any, postgres: str, database: Database
) -> None:
    database.execute("CREATE DOMAIN code AS varchar(9)")
    # Most servers have such collations of ICU's, this one has not: one of another kind says that it is one.
    database.execute('CREATE COLLATION unlike FROM "C"')
    database.execute("UPDATE pg_collation SET collisdeterministic = false WHERE collname = 'unlike'")
    database.execute(
        "CREATE TABLE typed (n numeric, i bigint, j json, c code, w numeric(30,5), u text COLLATE unlike)"
    )
    database.execute("INSERT INTO typed VALUES (1.005, 1, '{}', 'x', 1, 'x')")

    def refused(columns: tuple[str, ...], *types: ColumnType) -> list[str]:
        source = connected(engine, postgres, item=("typed", declared(columns, types)))
        with closing(source), pytest.raises(SourceError) as failed:
            source.read("item", [], None)
        assert {d.code for d in failed.value.diagnostics} == {Code.COLUMNS_DIFFER}
        return [d.message for d in failed.value.diagnostics]

    integer, decimal = ColumnType(TypeName.INT), ColumnType(TypeName.DECIMAL, 10, 2)
    assert refused(("N", "i"), ANY, ANY) == ["the columns of `item` do not fit: `N` missing"]
    assert refused(("i", "w"), integer, decimal) == [
        "column `i` of `item` is `bigint`, not `int`",
        "column `w` of `item` is `decimal(30,5)`, not `decimal(10,2)`",
    ]
    assert refused(("j",), ANY) == ["column `j` of `item` has the type `json`, which cannot be read"]
    assert refused(("i", "u"), ANY, ANY) == [
        "column `u` of `item` has the collation `unlike`: different texts are equal"
    ]
    assert refused(("n",), decimal) == ["column `n` of `item` has a value that `decimal(10,2)` cannot hold"]
    with closing(
        connected(engine, postgres, item=("typed", declared(("c", "n", "w"), (ANY,) * 3)))
    ) as source:
        found, _ = source.read("item", [], None)
        assert [str(kind) for kind in found.types] == ["string", "decimal(38,18)", "decimal(30,5)"]


def test_rows_that_a_policy_hides_are_an_error_and_not_missing(
    engine: Any, postgres: str, database: Database
) -> None:
    database.execute("CREATE TABLE secret (i bigint, owner text)")
    database.execute("INSERT INTO secret VALUES (1, 'reader'), (2, 'other')")
    database.execute("DROP ROLE IF EXISTS reader")
    database.execute("CREATE ROLE reader LOGIN")
    database.execute("ALTER TABLE secret ENABLE ROW LEVEL SECURITY")
    database.execute("CREATE POLICY own ON secret USING (owner = current_user)")
    database.execute("CREATE VIEW all_secrets AS SELECT * FROM secret")
    database.execute("GRANT SELECT ON secret, all_secrets TO reader")
    url = psycopg.conninfo.make_conninfo(postgres, user="reader")
    expected = declared(("i",), (ColumnType(TypeName.BIGINT),))
    try:
        source = connected(engine, url, item=("secret", expected))
        with closing(source), pytest.raises(SourceError, match="row-level security") as refused:
            source.read("item", [], None)
        assert "BYPASSRLS" in (refused.value.diagnostics[0].hint or "")
        with closing(connected(engine, url, item=("all_secrets", expected))) as source:
            assert source.read("item", [], None)[1].rows_read == 2
    finally:
        database.execute("DROP OWNED BY reader")
        database.execute("DROP ROLE reader")


def test_texts_of_a_width_are_read_where_none_is_filled_up(
    engine: Any, postgres: str, database: Database
) -> None:
    """Blanks that fill up are told from none by no comparison there, and by every one here."""
    database.execute("CREATE TABLE country (code char(2) PRIMARY KEY, flag char(1))")
    database.execute("INSERT INTO country VALUES ('US', 'Y'), ('FR', NULL)")
    text = ColumnType(TypeName.STRING)
    expected = declared(("code", "flag"), (text, text))
    with closing(connected(engine, postgres, item=("country", expected))) as source:
        keys = engine.load([("US",), ("FR  ",), ("X",)], ["k"], [text])
        rows, _ = source.read("item", ["code"], keys)
        assert engine.sample(rows, 9) == [("US", "Y")]
    database.execute("INSERT INTO country VALUES ('X', 'N')")
    source = connected(engine, postgres, item=("country", expected))
    with closing(source), pytest.raises(SourceError, match="filled up with blanks"):
        source.read("item", [], None)


def test_uuids_and_enumerations_are_read_as_their_texts(
    engine: Any, postgres: str, database: Database
) -> None:
    """By an index of the type, and a key that is no such text finds nothing."""
    database.execute("CREATE TYPE mood AS ENUM ('sad', 'ok')")
    database.execute("CREATE DOMAIN feeling AS mood")
    database.execute("CREATE TABLE felt (id uuid PRIMARY KEY, m mood, f feeling, j jsonb)")
    one, other = "0a1b2c3d-0000-4000-8000-0123456789ab", "ffffffff-0000-4000-8000-0123456789ab"
    database.execute(
        f"INSERT INTO felt VALUES ('{one}', 'ok', 'sad', '{{}}'), ('{other}', NULL, 'ok', '{{}}')"
    )
    text = ColumnType(TypeName.STRING)
    with connected(engine, postgres, felt=("felt", declared(("id", "m", "f"), (text, text, ANY)))) as source:
        every, _ = source.read("felt", [], None)
        assert {*engine.sample(every, 9)} == {(one, "ok", "sad"), (other, None, "ok")}
        for column, values, found in (
            ("id", [one, one.upper(), f"{{{other}}}", other.replace("-", ""), "", "x\0", None], {one}),
            ("m", ["ok", "OK", "other"], {one}),
            ("m", [None], {other}),
            ("f", ["ok", "sad"], {one, other}),
        ):
            keys = engine.load([(value,) for value in values], ["k"], [text])
            rows, _ = source.read("felt", [column], keys)
            assert {row[0] for row in engine.sample(rows, 9)} == found, (column, values)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        *(("d", value) for value in ("infinity", "10000-01-01", "0044-03-15 BC")),
        *(("t", value) for value in ("-infinity", "10000-01-01", "0001-12-31 23:59:59 BC")),
        *(("z", value) for value in ("infinity", "10000-01-01 00:00:00+00", "0001-01-01 00:00:00+01")),
    ],
)
def test_days_and_times_beyond_the_calendar_are_told(
    column: str, value: str, engine: Any, postgres: str, database: Database
) -> None:
    """They are read where nothing else is; and a row beside them is."""
    database.execute("CREATE TABLE IF NOT EXISTS far (i int, d date, t timestamp, z timestamptz)")
    database.execute(sql.SQL("TRUNCATE far"))
    database.execute(
        sql.SQL("INSERT INTO far (i, {}) VALUES (1, %s), (2, NULL)").format(sql.Identifier(column)), [value]
    )
    expected = declared(("i", column), (ANY, ANY))
    for key, is_read in ((1, False), (2, True)):
        with closing(connected(engine, postgres, far=("far", expected))) as source:
            keys = engine.load([(key,)], ["k"], [ColumnType(TypeName.INT)])
            if is_read:
                assert source.read("far", ["i"], keys)[1].rows_read == 1
                continue
            with pytest.raises(SourceError, match=r"too (large|small)") as refused:
                source.read("far", ["i"], keys)
            assert refused.value.diagnostics[0].code is Code.COLUMNS_DIFFER


def test_errors_tell_where_but_never_the_password(engine: Any, postgres: str) -> None:
    password = "s3cr@t/x"  # noqa: S105 - the word that must not be shown
    quoted = password.replace("@", "%40").replace("/", "%2F")
    urls = {
        "postgresql://ann:s3cr%40t%2Fx@127.0.0.1:1/shop": "database `shop` on `127.0.0.1:1` as `ann`",
        f"host=127.0.0.1 port=1 user=ann password={password}": "as `ann`",
        "postgresql://ann:s3cr%zz@127.0.0.1:1/shop": "cannot be parsed",
        postgres.replace("postgres:", f"nobody:{quoted}"): "`nobody`",
    }
    for url, shown in urls.items():
        source = connected(engine, url, item=("item", declared()))
        with pytest.raises(SourceError) as failed:
            source.begin()
        text = str(failed.value) + repr(failed.value.diagnostics) + repr(failed.value.__cause__)
        assert failed.value.diagnostics[0].code is Code.SOURCE_UNREACHABLE
        assert failed.value.__context__ is None
        assert shown in text
        assert "s3cr" not in text
        assert source.name == "ops"


def test_a_failed_read_does_not_poison_the_next(engine: Any, source: Source, postgres: str) -> None:
    with closing(connected(engine, postgres, item=ITEM, gone=("no_such_table", declared()))) as both_tables:
        for relation, code in (("gone", Code.MISSING_CONTENTS), ("unknown", Code.UNKNOWN_RELATION)):
            with pytest.raises(SourceError) as failed:
                both_tables.read(relation, [], None)
            assert failed.value.diagnostics[0].code is code
            assert relation != "gone" or "in the source `ops`" in str(failed.value)
        with pytest.raises(SourceError):
            both_tables.read("item", ["no_such_column"], engine.load([(0,)], ["k"], [ANY]))
        assert both_tables.read("item", [], None)[1].rows_read == len(ROWS)
    both_tables.close()  # once more does nothing
    assert source.row_count("item") > 0


def test_a_user_without_rights_is_told_so(engine: Any, postgres: str, database: Database) -> None:
    database.execute("CREATE TABLE private (n int)")
    database.execute("CREATE ROLE reader LOGIN")
    url = postgres.replace("postgres:", "reader:")
    with closing(connected(engine, url, item=("private", declared(("n",), (ANY,))))) as source:
        with pytest.raises(SourceError, match="permission denied") as failed:
            source.read("item", [], None)
        assert failed.value.diagnostics[0].hint == "the user needs the right to SELECT from the table"


def halted(connection: Database, backend: int | None) -> list[int]:
    """The processes of the server that answer to logins and, if it has one, to a connection."""
    row = connection.execute("SHOW data_directory").fetchone()
    assert row is not None
    postmaster = int((Path(str(row[0])) / "postmaster.pid").read_text().splitlines()[0])
    return [postmaster, *([backend] if backend else [])]


@pytest.mark.parametrize("is_connected", [False, True])
def test_a_halted_server_is_given_up(
    is_connected: bool, postgres: str, database: Database, engine: Any
) -> None:
    """On a socket of the file system, where nothing of TCP could notice it."""
    with closing(connected(engine, postgres, timeout_s=1, item=ITEM)) as source:
        backend = None
        if is_connected:
            source.begin()
            assert source._connection is not None
            backend = source._connection.info.backend_pid
        processes = halted(database, backend)
        started = time.monotonic()
        try:
            for process in processes:
                os.kill(process, signal.SIGSTOP)
            with pytest.raises(SourceError, match="SM401") as error:
                source.read("item", (), None)
            took = time.monotonic() - started
        finally:
            for process in processes:
                os.kill(process, signal.SIGCONT)
        assert took < 15
        hint = error.value.diagnostics[0].hint
        assert hint is not None
        assert "timeout_s" in hint
        assert source.read("item", (), None)[1].rows_read == len(ROWS)


def test_a_statement_that_takes_too_long_is_ended_by_the_server(
    postgres: str, database: Database, engine: Any
) -> None:
    database.execute("CREATE VIEW slow AS SELECT 1 AS n FROM pg_sleep(20)")
    slow = ("slow", declared(("n",), (ANY,)))
    with closing(connected(engine, postgres, timeout_s=1, slow=slow)) as source:
        started = time.monotonic()
        with pytest.raises(SourceError, match=r"SM401.*statement timeout"):
            source.read("slow", (), None)
        assert time.monotonic() - started < 10


def test_the_servers_own_limit_counts_where_it_is_shorter(postgres: str, database: Database) -> None:
    assert not database.closed
    for own, asked, expected in (
        ("0", 7.0, "7s"),
        ("5s", 7.0, "5s"),
        ("9s", 7.0, "7s"),
        ("9s", math.inf, "9s"),
    ):
        url = psycopg.conninfo.make_conninfo(postgres, options=f"-c statement_timeout={own}")
        connection, _ = begun(url, asked)
        with closing(connection):
            assert connection.execute("SHOW statement_timeout").fetchone() == (expected,)


def test_a_lost_connection_is_made_again_until_rows_were_read(source: Source, database: Database) -> None:
    """Rows that were read are of one state: nothing of another may be read beside them."""

    def lose() -> None:
        assert source._connection is not None
        pid = source._connection.info.backend_pid
        database.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])

    source.begin()
    lose()
    source.row_count("item")
    lose()
    assert source.read("item", (), None)[1].rows_read == len(ROWS)
    lose()
    with pytest.raises(SourceError, match="SM401"):
        source.read("item", (), None)
    assert source.read("item", (), None)[1].rows_read == len(ROWS)


@pytest.mark.parametrize(
    ("settings", "pauses"), [({"dbname": "nowhere"}, 0), ({"host": "127.0.0.1", "port": "1"}, 2)]
)
def test_only_what_may_pass_is_tried_again(
    settings: dict[str, str], pauses: int, postgres: str, engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(under_test, "time", SimpleNamespace(sleep=slept.append))  # other threads sleep, too
    with pytest.raises(SourceError, match="SM401"):
        connected(engine, psycopg.conninfo.make_conninfo(postgres, **settings)).begin()
    assert slept == sorted(slept)
    assert len(slept) == pauses


# ----------------------------------------------------------------------------------------------- in memory


def test_the_memory_source_tells_families_apart_and_reports_what_it_lacks() -> None:
    rows: frozenset[Row] = frozenset({(1, "x"), (False, "y"), (None, "z")})
    source = RowsSource("m", {"r": (("a", "b"), rows)})
    assert source.read("r", ["a"], frozenset({(True,)}))[0] == frozenset()
    assert source.read("r", ["a"], frozenset({(Decimal("1.0"),)}))[0] == {(1, "x")}
    assert source.read("r", [], None)[1].rows_read == 3
    failing: list[tuple[Callable[[], object], Code]] = [
        (lambda: source.read("s", [], None), Code.MISSING_CONTENTS),
        (lambda: source.read("r", ["c"], frozenset()), Code.COLUMNS_DIFFER),
    ]
    for call, code in failing:
        with pytest.raises(SourceError) as failed:
            call()
        assert failed.value.diagnostics[0].code is code
    assert source.version() is None
