"""What Spark computes and what this process computes with it: the same rows, and only few values come here."""

from __future__ import annotations

import datetime as dt
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from datalog.copies import replace
from datalog.model import ColumnType, Predicate, TypeName
from datalog.sql.views import SqlText, read_sql
from datalog.syntax import parse_program
from selfmaint.engine.protocol import Facts
from selfmaint.errors import InputError
from tests.datalog.sql.sql_programs import PLAIN, Generator, meaning, random_facts, relations

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from selfmaint.spark import SparkEngine

STORED = relations([*PLAIN, "boolean", "decimal(9,2)"])
V, NEW, BIG = Predicate("v"), Predicate("new"), Predicate("big")
TYPES = {"name": ColumnType(TypeName.STRING), "decimal(9,2)": ColumnType(TypeName.DECIMAL, 9, 2)}


def loaded(engine: SparkEngine, random: Random) -> tuple[Facts[DataFrame], dict]:
    rows = random_facts(random, STORED)
    frames = {}
    for relation in STORED:
        types = [TYPES.get(t) or ColumnType(TypeName(t)) for t in relation.types]
        names = [f"c{i}" for i in range(len(types))]
        frames[relation.predicate] = engine.load(rows[relation.predicate], names, types)
    return Facts(frames), rows


@pytest.mark.parametrize("values", [0, 6, 4_000_000])
@pytest.mark.parametrize("seed", range(6))
def test_wherever_it_is_computed_a_program_has_its_meaning(
    seed: int, values: int, interpreting_spark: SparkSession
) -> None:
    """Nothing, some relations, or all of them are in this process."""
    from selfmaint.spark import SparkEngine

    random = Random(seed)
    program, goal, _ = Generator(random, STORED).program()
    engine = SparkEngine(interpreting_spark, values)
    far, rows = loaded(SparkEngine(interpreting_spark, 0), random)
    found = engine.evaluate(program, goal, far)
    assert frozenset(engine.sample(found, 10_000)) == meaning(program, goal, rows)
    assert engine.nonempty(program, [goal], far) == ({goal} if meaning(program, goal, rows) else frozenset())


def test_of_a_large_relation_only_demanded_rows_come_here(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    from selfmaint.spark import SparkEngine, near

    brought = []

    def spied(rows: near.NearRows, frame: DataFrame) -> object:
        found = plain(rows, frame)
        brought.append(None if found is None else rows.engine.count(found))
        return found

    plain = near.NearRows.brought
    monkeypatch.setattr(near.NearRows, "brought", spied)
    engine = SparkEngine(spark, 10_000)
    big = spark.range(3_000_000).selectExpr("id AS k", "id % 1000 AS g", "cast(id AS string) AS s")
    new = engine.load([(7,), (9,), (3_000_001,)], ["k"], [ColumnType(TypeName.BIGINT)])
    facts = Facts({NEW: new, BIG: big}, small=frozenset({NEW}))
    program = parse_program(
        "v(K, S) :- new(K), big(K, G, S). same(G, K) :- new(K0), big(K0, G, S), big(K, G, T)."
    )
    assert set(engine.sample(engine.evaluate(program, V, facts), 9)) == {(7, "7"), (9, "9")}
    assert brought == [2]
    same = engine.evaluate(program, Predicate("same"), facts)
    assert engine.count(same) == 6000
    assert max(n for n in brought if n is not None) <= 10_000


def test_rows_read_under_a_promise_hide_no_null_from_who_is_not_promised_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Of rows that Spark finds, and of rows in local files; `tests/selfmaint/duckdb/test_fetched.py` says more."""
    from selfmaint.spark import SparkEngine

    big = spark.range(2_000_000).selectExpr("nullif(id, 7) AS k", "nullif(id, 9) AS s")
    big.write.parquet(f"file://{tmp_path / 'big'}")
    program = parse_program("v(K, S) :- new(K), big(K, S).")
    for frame in (big, spark.read.parquet(f"file://{tmp_path / 'big'}")):
        engine = SparkEngine(spark, 10_000)
        new = engine.load([(9,), (None,)], ["k"], [ColumnType(TypeName.BIGINT)])
        facts = Facts({NEW: new, BIG: frame}, {BIG: frozenset({0, 1})}, frozenset({NEW}))
        engine.evaluate(program, V, facts)
        found = engine.evaluate(program, V, replace(facts, not_null={}))
        assert set(engine.sample(found, 9)) == {(9, None), (None, 7)}


def test_what_stays_in_spark_goes_on_there(spark: SparkSession) -> None:
    """The rows found are more than may come here."""
    from selfmaint.spark import SparkEngine

    engine = SparkEngine(spark, 100)
    big = spark.range(200_000).selectExpr("id AS k", "id % 10 AS g")
    new = engine.load([(3,), (4,)], ["g"], [ColumnType(TypeName.BIGINT)])
    program = parse_program(
        "v(K) :- new(G), big(K, G), not (big(K2, G), K2 < 4, K < 10). none(K) :- v(K), K < 0."
    )
    facts = Facts({NEW: new, BIG: big}, small=frozenset({NEW}))
    assert engine.count(engine.evaluate(program, V, facts)) == 40_000 - 1
    assert engine.nonempty(program, [V, Predicate("none")], facts) == {V}


def test_values_survive_the_way_here_and_back(spark: SparkSession) -> None:
    """Instants on both sides of the hour that a clock goes through twice; days that Python has not; odd doubles."""
    from selfmaint.spark import SparkEngine

    engine = SparkEngine(spark)
    stored = spark.sql(
        "SELECT timestamp_seconds(x) AS at, x AS n, date_add(date'0001-01-01', -cast(n AS int)) AS day, y, "
        "cast(null AS void) AS nothing FROM VALUES (1729989000L, 1, -0.0D), (1729992600L, 9, double('NaN')), "
        "(NULL, 400, double('-Infinity')) AS t(x, n, y)"
    )
    kept = engine.keep(stored)
    assert kept is not stored
    assert kept.schema.simpleString() == stored.schema.simpleString()
    assert kept.exceptAll(stored).count() == stored.exceptAll(kept).count() == 0
    assert kept.where("y = 0").selectExpr("1 / try_divide(1, y) IS NULL", "cast(y AS string)").first() == (
        True,
        "-0.0",
    )


def test_a_time_without_zone_is_read_on_the_clock_of_the_session(spark: SparkSession) -> None:
    from selfmaint.spark import SparkEngine

    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        engine = SparkEngine(spark)
        stored = engine.keep(spark.sql("SELECT timestamp'2024-07-01 12:00:00' AS at"))
        program = parse_program(
            "v(T) :- r(T), T >= timestamp '2024-07-01 12:00:00'. w(T) :- r(T), T > timestamp '2024-07-01 12:00:00'."
        )
        facts = Facts({Predicate("r"): stored})
        assert engine.nonempty(program, [V, Predicate("w")], facts) == {V}
    finally:
        spark.conf.unset("spark.sql.session.timeZone")


@pytest.mark.parametrize(
    ("query", "right"),
    [
        ("select cast(date_trunc('month', d) as string) as x from r", "2024-07-01 00:00:00"),
        ("select date_trunc('month', d) as x from r", dt.datetime(2024, 7, 1)),
        ("select cast(d as timestamp) as x from r", dt.datetime(2024, 7, 5)),
        ("select hour(at) as x from r", 1),
        (
            "select d as x from r where date_trunc('day', at) = timestamp '2024-07-01 00:00:00'",
            dt.date(2024, 7, 5),
        ),
        ("select d as x from r where at < timestamp '2024-07-01 01:00:01'", dt.date(2024, 7, 5)),
    ],
)
def test_a_view_is_on_the_clock_of_the_session(query: str, right: object, spark: SparkSession) -> None:
    from selfmaint.spark import SparkEngine

    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        engine = SparkEngine(spark)
        r = Predicate("r")
        # Of a relation without instants the rows may be here.
        columns = ["d", "at"] if "at" in query.replace("date", "") else ["d"]
        row = "date'2024-07-05' as d, timestamp'2024-07-01 01:00:00' as at"
        stored = engine.keep(spark.sql(f"SELECT {row}").select(*columns))
        kinds = [ColumnType(TypeName.DATE), ColumnType(TypeName.TIMESTAMP)][: len(columns)]
        table = f"create table r ({', '.join(f'{c} {k}' for c, k in zip(columns, kinds, strict=True))});"
        (definition,) = read_sql([SqlText(table, "tables"), SqlText(query, "v")]).views
        facts = Facts({r: stored})
        assert engine.sample(engine.evaluate_view(definition, facts, {r: kinds}), 9) == [(right,)]
    finally:
        spark.conf.unset("spark.sql.session.timeZone")


def test_a_selection_is_on_the_clock_of_the_session(spark: SparkSession) -> None:
    from selfmaint.spark import SparkEngine

    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        engine = SparkEngine(spark)
        stored = engine.keep(spark.sql("SELECT timestamp'2024-07-01 01:00:00' as at"))
        query = "select at from r where at < timestamp '2024-07-01 01:00:01'"
        table = "create table r (at timestamp);"
        (definition,) = read_sql([SqlText(table, "tables"), SqlText(query, "v")]).views
        assert engine.count(engine.selected(definition, stored)) == 1
    finally:
        spark.conf.unset("spark.sql.session.timeZone")


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
@pytest.mark.parametrize(
    ("rule", "condition"),
    [
        ("v(X) :- r(X), s(X).", "exists (select 1 from s where x = r.x)"),
        ("v(X) :- r(X), not s(X).", "not exists (select 1 from s where x = r.x)"),
        ("v(X) :- r(X), s(Y), X < Y.", "exists (select 1 from s where r.x < x)"),
    ],
)
def test_a_day_begins_on_the_clock_of_the_session(
    rule: str, condition: str, zone: str, spark: SparkSession
) -> None:
    from selfmaint.spark import SparkEngine

    spark.conf.set("spark.sql.session.timeZone", zone)
    texts = {
        "r": "select explode(sequence(date'2026-02-27', date'2026-03-03')) as x",
        "s": "select explode(array(timestamp'2026-02-28T23:00:00Z', timestamp'2026-03-02T00:00:00Z')) as x",
    }
    try:
        engine = SparkEngine(spark)
        frames = {name: spark.sql(text) for name, text in texts.items()}
        for name, frame in frames.items():
            frame.createOrReplaceTempView(name)
        right = {(row.x,) for row in spark.sql(f"select x from r where {condition}").collect()}
        given = Facts({Predicate(name): engine.keep(frame) for name, frame in frames.items()})
        found = engine.evaluate(parse_program(rule), V, given)
        assert right
        assert engine.fetch(found, 9) == right
        both = engine.union([engine.keep(frames["s"]), engine.keep(frames["r"])])
        assert engine.count(both) == spark.sql("select x from s union select x from r").count()
    finally:
        spark.conf.unset("spark.sql.session.timeZone")
        for name in texts:
            spark.catalog.dropTempView(name)


def test_what_duckdb_refuses_is_computed_by_spark(spark: SparkSession) -> None:
    """The upper-case letters of a text that is not ASCII, and a comparison of a double with a long decimal."""
    from selfmaint.api.file.programs import catalog_of
    from selfmaint.spark import SparkEngine

    engine = SparkEngine(spark)
    given = engine.keep(
        spark.sql("SELECT 'stra\u00dfe' AS s, cast(0.5 AS decimal(38,2)) AS n, double(0.5) AS d")
    )
    facts = Facts({Predicate("r"): given})
    catalog = catalog_of(
        "create table r(s string primary key, n decimal(38,2), d double);"
        "create view w as select upper(s) as u from r;"
    )
    definition = catalog.view("w").definition
    assert definition is not None
    found = engine.evaluate_view(definition, facts, {})
    assert engine.sample(found, 9) == [("STRASSE",)]
    program = parse_program("v(S) :- r(S, N, D), N = D.")
    assert engine.sample(engine.evaluate(program, V, facts), 9) == [("stra\u00dfe",)]


def test_types_that_duckdb_lacks_stay_in_spark(spark: SparkSession) -> None:
    from selfmaint.spark import SparkEngine

    engine = SparkEngine(spark)
    frame = spark.sql("SELECT 1 AS n, X'00' AS bytes")
    assert engine.fetch(frame, 10) is None
    program = parse_program("v(N) :- r(N, B).")
    assert engine.sample(engine.evaluate(program, V, Facts({Predicate("r"): frame})), 9) == [(1,)]


def test_beyond_the_limit_nothing_is_given(spark: SparkSession) -> None:
    from selfmaint.spark import SparkEngine

    engine = SparkEngine(spark)
    stored = spark.range(5).selectExpr("id AS n")
    assert engine.fetch(stored, 4) is None
    assert engine.fetch(stored, 5) == {(n,) for n in range(5)}
    assert engine.fetch(spark.sql("SELECT double(1) AS n"), 10) is None


def test_the_session_is_left_as_it_was(spark: SparkSession) -> None:
    from selfmaint.spark import SparkEngine

    before = spark.conf.getAll
    engine = SparkEngine(spark, 5)
    facts = Facts({Predicate("r"): spark.range(100).toDF("n")})
    program = parse_program("v(N) :- r(N), N > 3. w(N) :- v(N), N < 5.")
    engine.nonempty(program, [V, Predicate("w")], facts)
    engine.evaluate(program, V, facts)
    assert spark.conf.getAll == before
    assert spark.catalog.listTables() == []
    assert spark.catalog.listTables("global_temp") == []


def test_contents_that_cannot_be_read_are_told(spark: SparkSession, tmp_path) -> None:
    from selfmaint.spark import SparkEngine

    place = tmp_path / "v"
    spark.range(5).write.parquet(f"file://{place}")
    frame = spark.read.parquet(f"file://{place}")
    for part in place.glob("*.parquet"):
        part.write_bytes(b"PAR1 nothing")
    with pytest.raises(InputError):
        SparkEngine(spark).keep(frame)


def test_what_is_here_leaves_without_spark(spark: SparkSession, tmp_path: Path) -> None:
    """As Arrow, to a store, and row by row."""
    import pyarrow as pa

    from selfmaint.api.platforms.spark_platform import SparkPlatform
    from selfmaint.duckdb.database import Database
    from selfmaint.spark import SparkEngine

    instant = dt.datetime(2024, 5, 1, 12, 30)
    rows = [(1, "a", instant, -0.0), (2, None, None, None)]
    names = [TypeName.BIGINT, TypeName.STRING, TypeName.TIMESTAMP, TypeName.DOUBLE]
    engine = SparkEngine(spark)
    platform = SparkPlatform(engine)
    frame = engine.load(rows, ["K", "text", "at", "ratio"], list(map(ColumnType, names)))
    streamed = pa.table(frame)
    store: Any = SimpleNamespace(database=Database())
    stored = platform.in_store(store, frame, tmp_path / "staged")
    exact = engine.load([row[:3] for row in rows], ["k", "t", "a"], list(map(ColumnType, names[:3])))
    given = platform.exchange.distinct(exact)
    assert not any("_jdf" in vars(one) for one in (frame, exact))
    assert streamed.sort_by("K").equals(frame.toArrow().sort_by("K"))
    assert list(stored.types) == list(map(ColumnType, names))
    assert str(stored.arrow().sort_by("K").to_pylist()) == str(frame.toArrow().sort_by("K").to_pylist())
    assert not (tmp_path / "staged").exists()
    assert (list(given.types), sorted(given.rows)) == (
        list(map(ColumnType, names[:3])),
        [row[:3] for row in rows],
    )
