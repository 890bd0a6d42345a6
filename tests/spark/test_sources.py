"""Sources of base relations: the rows asked for and no others, each read counted as it was.

Oracle: the reference source over rows in memory, whose answer every other source must give.
"""

from __future__ import annotations

import datetime as dt
import math
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
from psycopg import sql

from datalog.model import ANY, ColumnType, Row, TypeName, WallClock
from selfmaint.errors import Code, SourceError
from selfmaint.sources.memory import RowsSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from selfmaint.spark import SparkEngine
    from selfmaint.spark.parquet_source import SparkSource
    from selfmaint.spark.postgres_source import PostgresSource
    from selfmaint.store.expected import Expected

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
    ([COLUMNS[0]], []),
]


@pytest.fixture(scope="module")
def engine(spark: SparkSession) -> SparkEngine:
    from selfmaint.spark import SparkEngine

    return SparkEngine(spark)


def declared(columns: tuple[str, ...] = COLUMNS, types: tuple[ColumnType, ...] = TYPES) -> Expected:
    from selfmaint.store.expected import Expected

    return Expected("item", columns, types)


@pytest.fixture(scope="module")
def database(postgres: str) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """A table `item` in a schema of a difficult name, and more columns than are declared."""
    with psycopg.connect(postgres, autocommit=True) as connection:
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
def source(
    postgres: str, database: psycopg.Connection[tuple[object, ...]], spark: SparkSession
) -> Iterator[PostgresSource]:
    from selfmaint.spark.postgres_source import PostgresSource

    assert not database.closed
    with closing(
        PostgresSource("ops", postgres, spark, {"item": 'S%s.i.te"m'}, {"item": declared()})
    ) as made:
        yield made


@pytest.fixture(scope="module")
def files(engine: SparkEngine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSource]:
    from selfmaint.spark.parquet_source import SparkSource, StoredRelation

    path = tmp_path_factory.mktemp("base") / "item"
    engine.load(ROWS, COLUMNS, TYPES).write.parquet(str(path))
    with closing(SparkSource("lake", engine.spark, {"item": StoredRelation(str(path), declared())})) as made:
        yield made


def key_types(columns: list[str]) -> list[ColumnType]:
    return [ANY] * len(columns)


@pytest.mark.parametrize(("columns", "keys"), LOOKUPS)
def test_postgres_answers_as_the_reference(
    columns: list[str], keys: list[Row], engine: SparkEngine, source: PostgresSource
) -> None:
    expected, _ = MEMORY.read("item", columns, frozenset(keys))
    found, read = source.read("item", columns, engine.load(keys, columns, key_types(columns)))
    assert sorted(engine.sample(found, 99), key=repr) == sorted(expected, key=repr)
    assert engine.columns(found) == COLUMNS
    assert (read.relation, read.key_columns, read.source) == ("item", tuple(columns), "ops")
    assert read.rows_read == len(expected)
    assert read.keys_asked <= len(keys)
    assert (read.bytes_read > 0) == any(v is not None for row in expected for v in row)


@pytest.mark.parametrize(("columns", "keys"), [LOOKUPS[i] for i in (0, 2, 5, 6, 10)])
def test_files_answer_as_the_reference(
    columns: list[str], keys: list[Row], engine: SparkEngine, files: SparkSource
) -> None:
    expected, reference = MEMORY.read("item", columns, frozenset(keys))
    found, read = files.read("item", columns, engine.load(keys, columns, key_types(columns)))
    assert sorted(engine.sample(found, 99), key=repr) == sorted(expected, key=repr)
    assert engine.columns(found) == COLUMNS
    assert (read.keys_asked, read.rows_read) == (reference.keys_asked, reference.rows_read)
    assert (read.bytes_read > 0) == bool(expected)


def test_a_whole_relation_is_read_only_when_asked_for(
    engine: SparkEngine, source: PostgresSource, files: SparkSource
) -> None:
    for one in (source, files):
        found, read = one.read("item", [], None)
        assert sorted(engine.sample(found, 99), key=repr) == sorted(ROWS, key=repr)
        assert (read.key_columns, read.keys_asked, read.rows_read) == ((), 0, len(ROWS))


def test_sizes_are_estimates_and_versions_notice_a_change(
    source: PostgresSource, files: SparkSource, database: psycopg.Connection[tuple[object, ...]]
) -> None:
    database.execute('ANALYZE "S%s"."i.te""m"')
    assert source.row_count("item") == len(ROWS)
    assert files.row_count("item") == len(ROWS)
    before = files.version()
    assert before == files.version()
    first = source.version()
    assert first == source.version()
    source.end()
    database.execute("CREATE TABLE IF NOT EXISTS moved (n int)")
    assert source.version() != first


# ------------------------------------------------------------------------------------------------ files only


def test_a_file_source_tells_a_change_and_counts_without_a_scan(engine: SparkEngine, tmp_path: Path) -> None:
    from selfmaint.spark.parquet_source import SparkSource, StoredRelation

    spark, path = engine.spark, tmp_path / "t"
    spark.range(1000).repartition(3).write.parquet(str(path))
    expected = declared(("id",), (ANY,))
    source = SparkSource("lake", spark, {"t": StoredRelation(str(path), expected)})
    before = source.version()
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


def test_what_a_file_source_cannot_read_is_a_source_error(spark: SparkSession, tmp_path: Path) -> None:
    from selfmaint.spark.parquet_source import SparkSource, StoredRelation

    spark.range(1).write.parquet(str(tmp_path / "t"))
    stored = {
        "gone": StoredRelation(str(tmp_path / "gone"), declared()),
        "other": StoredRelation(str(tmp_path / "t"), declared()),
    }
    source = SparkSource("lake", spark, stored)
    codes = {"gone": Code.MISSING_CONTENTS, "other": Code.COLUMNS_DIFFER, "unknown": Code.UNKNOWN_RELATION}
    for relation, code in codes.items():
        for call in (source.row_count, lambda name: source.read(name, [], None)):
            if relation == "other" and call == source.row_count:
                continue  # the footers tell the size of whatever is there
            with pytest.raises(SourceError) as failed:
                call(relation)
            assert failed.value.diagnostics[0].code is code


# ------------------------------------------------------------------------------------------- PostgreSQL only


def test_all_reads_see_one_state_until_the_end(
    engine: SparkEngine, source: PostgresSource, database: psycopg.Connection[tuple[object, ...]]
) -> None:
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


def test_nothing_can_be_written_through_the_source(source: PostgresSource) -> None:
    source.begin()
    assert source._connection is not None
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        source._connection.execute("CREATE TEMPORARY TABLE t (n int)")


def test_many_keys_and_large_answers_pass_in_bounded_pieces(
    engine: SparkEngine,
    postgres: str,
    database: psycopg.Connection[tuple[object, ...]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import selfmaint.spark.postgres_keys as keys_under_test
    import selfmaint.spark.postgres_source as under_test
    import selfmaint.spark.spill as spill_under_test

    spark = engine.spark
    database.execute(
        "CREATE TABLE big AS SELECT i::int AS id, 's' || i AS s, now() AS at FROM generate_series(1, 5000) i"
    )
    monkeypatch.setattr(keys_under_test, "KEYS_PER_STATEMENT", 300)
    monkeypatch.setattr(under_test, "FETCH_ROWS", 100)
    monkeypatch.setattr(spill_under_test, "MEMORY_LIMIT_BYTES", 10_000)
    expected = declared(("id", "s", "at"), (ColumnType(TypeName.BIGINT), ANY, ANY))
    with under_test.PostgresSource(
        "ops", postgres, spark, {"big": "public.big"}, {"big": expected}
    ) as source:
        keys = spark.range(0, 9000, 3).selectExpr("id AS k").union(spark.sql("SELECT 3000000000"))
        found, read = source.read("big", ["id"], keys)
        assert (read.keys_asked, read.rows_read) == (3000, 1666)
        assert found.count() == 1666
        assert found.selectExpr("sum(id)").first() == (sum(range(3, 5001, 3)),)
        assert [f.dataType.simpleString() for f in found.schema.fields] == ["bigint", "string", "timestamp"]
        directory = source._directory
        assert directory is not None
        assert list(directory.iterdir())
    assert not directory.exists()


def test_columns_and_types_are_checked_before_anything_is_read(
    spark: SparkSession, postgres: str, database: psycopg.Connection[tuple[object, ...]]
) -> None:
    from selfmaint.spark.postgres_source import PostgresSource

    database.execute("CREATE DOMAIN code AS varchar(9)")
    database.execute("CREATE TABLE typed (n numeric, i bigint, j json, c code, w numeric(30,5))")
    database.execute("INSERT INTO typed VALUES (1.005, 1, '{}', 'x', 1)")

    def refused(columns: tuple[str, ...], *types: ColumnType) -> list[str]:
        source = PostgresSource("ops", postgres, spark, {"item": "typed"}, {"item": declared(columns, types)})
        with closing(source), pytest.raises(SourceError) as failed:
            source.read("item", [], None)
        assert {d.code for d in failed.value.diagnostics} == {Code.COLUMNS_DIFFER}
        return [d.message for d in failed.value.diagnostics]

    integer, decimal = ColumnType(TypeName.INT), ColumnType(TypeName.DECIMAL, 10, 2)
    assert refused(("N", "i"), ANY, ANY) == ["the columns of `item` do not fit: `N` missing"]
    assert refused(("i", "w"), integer, decimal) == [
        *["column `i` is `bigint`, not `int`", "column `w` is `decimal(30,5)`, not `decimal(10,2)`"]
    ]
    assert refused(("j",), ANY) == ["column `j` has the type `json`, which cannot be read"]
    assert refused(("n",), decimal) == ["column `n` has a value that `decimal(10,2)` cannot hold"]
    types = (ANY, ANY, ANY)
    with closing(
        PostgresSource("ops", postgres, spark, {"item": "typed"}, {"item": declared(("c", "n", "w"), types)})
    ) as source:
        found, _ = source.read("item", [], None)
        assert [f.dataType.simpleString() for f in found.schema.fields] == [
            *["string", "decimal(38,18)", "decimal(30,5)"]
        ]


def test_errors_tell_where_but_never_the_password(spark: SparkSession, postgres: str) -> None:
    from selfmaint.spark.postgres_source import PostgresSource

    password = "s3cr@t/x"  # noqa: S105 - the word that must not be shown
    urls = {
        "postgresql://ann:s3cr%40t%2Fx@127.0.0.1:1/shop": "database `shop` on `127.0.0.1:1` as `ann`",
        f"host=127.0.0.1 port=1 user=ann password={password}": "as `ann`",
        "postgresql://ann:s3cr%zz@127.0.0.1:1/shop": "cannot be parsed",
        postgres.replace(
            "postgres:", f"nobody:{password.replace('@', '%40').replace('/', '%2F')}"
        ): "`nobody`",
    }
    for url, shown in urls.items():
        source = PostgresSource("ops", url, spark, {"item": "item"}, {"item": declared()})
        with pytest.raises(SourceError) as failed:
            source.begin()
        text = str(failed.value) + repr(failed.value.diagnostics) + repr(failed.value.__cause__)
        assert failed.value.diagnostics[0].code is Code.SOURCE_UNREACHABLE
        assert failed.value.__context__ is None
        assert shown in text
        assert "s3cr" not in text
        assert source.name == "ops"


def test_a_failed_read_does_not_poison_the_next(
    spark: SparkSession, source: PostgresSource, postgres: str
) -> None:
    from selfmaint.spark.postgres_source import PostgresSource

    tables = {"item": 'S%s.i.te"m', "gone": "no_such_table"}
    declarations = {"item": declared(), "gone": declared()}
    with closing(PostgresSource("ops", postgres, spark, tables, declarations)) as both:
        for relation, code in (("gone", Code.MISSING_CONTENTS), ("unknown", Code.UNKNOWN_RELATION)):
            with pytest.raises(SourceError) as failed:
                both.read(relation, [], None)
            assert failed.value.diagnostics[0].code is code
        with pytest.raises(SourceError):
            both.read("item", ["no_such_column"], spark.range(1))
        assert both.read("item", [], None)[1].rows_read == len(ROWS)
    both.close()  # once more does nothing
    assert source.row_count("item") > 0


def test_a_user_without_rights_is_told_so(
    spark: SparkSession, postgres: str, database: psycopg.Connection[tuple[object, ...]]
) -> None:
    from selfmaint.spark.postgres_source import PostgresSource

    database.execute("CREATE TABLE private (n int)")
    database.execute("CREATE ROLE reader LOGIN")
    url = postgres.replace("postgres:", "reader:")
    with closing(
        PostgresSource("ops", url, spark, {"item": "private"}, {"item": declared(("n",), (ANY,))})
    ) as source:
        with pytest.raises(SourceError, match="permission denied") as failed:
            source.read("item", [], None)
        assert failed.value.diagnostics[0].hint == "the user needs the right to SELECT from the table"


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


def halted(connection: psycopg.Connection[tuple[object, ...]], backend: int | None) -> list[int]:
    """The processes of the server that answer to logins and, if it has one, to a connection."""
    row = connection.execute("SHOW data_directory").fetchone()
    assert row is not None
    postmaster = int((Path(str(row[0])) / "postmaster.pid").read_text().splitlines()[0])
    return [postmaster, *([backend] if backend else [])]


@pytest.mark.parametrize("is_connected", [False, True])
def test_a_halted_server_is_given_up(
    is_connected: bool, postgres: str, database: psycopg.Connection[tuple[object, ...]], spark: SparkSession
) -> None:
    """On a socket of the file system, where nothing of TCP could notice it."""
    from selfmaint.spark.postgres_source import PostgresSource

    made = PostgresSource("ops", postgres, spark, {"item": 'S%s.i.te"m'}, {"item": declared()}, timeout_s=1)
    with closing(made) as source:
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
    postgres: str, database: psycopg.Connection[tuple[object, ...]], spark: SparkSession
) -> None:
    from selfmaint.spark.postgres_source import PostgresSource

    database.execute("CREATE VIEW slow AS SELECT 1 AS n FROM pg_sleep(20)")
    with closing(
        PostgresSource("ops", postgres, spark, {"slow": "slow"}, {"slow": declared(("n",), (ANY,))}, 1)
    ) as source:
        started = time.monotonic()
        with pytest.raises(SourceError, match=r"SM401.*statement timeout"):
            source.read("slow", (), None)
        assert time.monotonic() - started < 10


def test_the_servers_own_limit_counts_where_it_is_shorter(
    postgres: str, database: psycopg.Connection[tuple[object, ...]]
) -> None:
    from selfmaint.spark.postgres_connection import begun

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


def test_a_lost_connection_is_made_again_until_rows_were_read(
    source: PostgresSource, database: psycopg.Connection[tuple[object, ...]]
) -> None:
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
    settings: dict[str, str], pauses: int, postgres: str, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    from selfmaint.spark import postgres_source as under_test

    slept: list[float] = []
    monkeypatch.setattr(under_test.time, "sleep", slept.append)
    url = psycopg.conninfo.make_conninfo(postgres, **settings)
    with pytest.raises(SourceError, match="SM401"):
        under_test.PostgresSource("ops", url, spark, {}, {}).begin()
    assert slept == sorted(slept)
    assert len(slept) == pauses
