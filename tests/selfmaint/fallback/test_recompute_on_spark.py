"""`maintain --recompute` on Spark: the user's own SQL, sources before and after the update, refusals, all or none.

Oracle: the views' texts, run by Spark over tables of the new state.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import selfmaint
from selfmaint.errors import Code, InputError, ReadRefusedError, SelfmaintError, SourceError
from selfmaint.fallback.recompute import reads
from tests.command_line import run
from tests.many_statements import interpreting_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TABLES = """
create table shop.customer (id int not null primary key, name string not null, region string);
create table shop.sale (id int not null primary key, customer int not null references shop.customer (id),
    amount decimal(9,2), weight double);
create table shop.log (line string);
"""
QUERIES = {
    "named": "select s.id, c.name from sale s join shop.customer c on c.id = s.customer",
    "all_customers": """with sale as (select * from shop.SALE where amount > 1) -- the name of a table again
        select customer.id, name, sale.amount from shop.customer left join Sale on sale.customer = customer.id""",
    "ranked": "select id, rank() over (partition by customer order by amount desc, id) as place from sale",
    "weights": "select customer, sum(weight) as weight, count(*) as n from sale group by customer",
    "either": "select name from customer union select region from customer",
    "twice": "select region from customer where region is not null union all select region from customer",
    "best": "select name from all_customers where amount = (select max(amount) from all_customers)",
    "lines": "select line, count(*) over () as n from log",
}
BY_KEYS = {"all_customers", "ranked", "weights"}
"""The queries whose changed rows can be found by keys, shown or not; of the others one reads a relation without a key,
and one a stored view."""
DECIDED = {"named", "either", "twice"}
"""What they gain and lose is told by the update."""
STAYS = {"lines"}
"""It reads nothing that changes."""
BIGGER = "create temporary view bigger (who, how_much) as select customer, amount from sale where amount > 2;"
OVER_BIGGER = "select name, how_much from customer left join bigger on who = id"

CUSTOMERS = [(1, "a", "n"), (2, "b", "n"), (3, "c", None)]
SALES = [(10, 1, 5, 0.5), (11, 1, 2, 0.25), (12, 2, 1, 1.5)]
NEW = {"customer": [(4, "d", "s")], "sale": [(13, 4, 9, 2.5), (11, 1, 3, 0.25)]}
OLD = {"sale": [(11, 1, 2, 0.25), (12, 2, 1, 1.5)]}
LINES = [("x",), ("x",)]


def frames(session: SparkSession) -> dict[str, dict[str, DataFrame]]:
    types = {
        "customer": {"id": pa.int32(), "name": pa.string(), "region": pa.string()},
        "sale": {
            "id": pa.int32(),
            "customer": pa.int32(),
            "amount": pa.decimal128(9, 2),
            "weight": pa.float64(),
        },
        "log": {"line": pa.string()},
    }

    def frame(rows: list[tuple[Any, ...]], columns: dict[str, pa.DataType]) -> DataFrame:
        named = [dict(zip(columns, row, strict=True)) for row in rows]
        return session.createDataFrame(pa.Table.from_pylist(named, pa.schema(columns)))

    before: dict[str, list[tuple[Any, ...]]] = {"customer": CUSTOMERS, "sale": decimal(SALES), "log": LINES}
    new = {"customer": NEW["customer"], "sale": decimal(NEW["sale"]), "log": []}
    old = {"customer": [], "sale": decimal(OLD["sale"]), "log": []}
    after = {n: [r for r in before[n] if r not in old[n]] + new[n] for n in before}
    states = {"before": before, "after": after, "new": new, "old": old}
    return {
        state: {n: frame(rows, types[n]) for n, rows in tables.items()} for state, tables in states.items()
    }


def decimal(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    from decimal import Decimal

    return [(i, c, Decimal(a), w) for i, c, a, w in rows]


def truth(session: SparkSession, tables: dict[str, DataFrame], names: list[str]) -> dict[str, DataFrame]:
    """The views by Spark, over tables under their own names."""
    session.sql("create database if not exists shop")
    for name, frame in tables.items():
        frame.createOrReplaceTempView(name)
    found = {}
    for name in names:
        text = QUERIES.get(name, OVER_BIGGER).replace("shop.", "")
        found[name] = session.createDataFrame(session.sql(text).toArrow(), session.sql(text).schema)
        found[name].createOrReplaceTempView(name)
    for name in [*tables, *names, "bigger"]:
        session.catalog.dropTempView(name)
    return found


def program(names: list[str]) -> str:
    return TABLES + BIGGER + "".join(f"create view {n} as {QUERIES.get(n, OVER_BIGGER)};" for n in names)


def stored(
    folder: Path, views: dict[str, DataFrame], sources: dict[str, DataFrame], names: list[str]
) -> Path:
    for name, frame in views.items():
        frame.coalesce(1).write.parquet(str(folder / "views" / name))
    for name, frame in sources.items():
        frame.coalesce(1).write.parquet(str(folder / "base" / name))
    (folder / "views.sql").write_text(program(names), encoding="utf-8")
    text = 'program = "views.sql"\n[update]\neffective = true\n[sources.ops]\nkind = "files"\n'
    text += "".join(f'[views.{n}]\npath = "views/{n}"\n' for n in views)
    text += "".join(f'[relations.{n}]\nsource = "ops"\npath = "base/{n}"\n' for n in sources)
    (folder / "w.toml").write_text(text, encoding="utf-8")
    return folder / "w.toml"


def run_json(*arguments: str) -> tuple[int, dict[str, Any]]:
    ran = run(*arguments, "--format", "json")
    return ran.status, json.loads(ran.stdout) if ran.stdout else {}


def rows(frame: DataFrame) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row) for row in frame.collect())


@pytest.fixture
def session(spark: SparkSession) -> SparkSession:
    return spark.newSession()


@dataclass(frozen=True)
class Known:
    """The tables of each state, in a session, and what Spark makes of the views before and after the update."""

    session: SparkSession
    given: dict[str, dict[str, DataFrame]]
    old: dict[str, DataFrame]
    new: dict[str, DataFrame]


@pytest.fixture(scope="module")
def known(spark: SparkSession) -> Known:
    session = interpreting_session(spark)
    given = frames(session)
    return Known(session, given, *(truth(session, given[state], [*QUERIES]) for state in ("before", "after")))


@pytest.mark.parametrize(
    ("state", "names", "most_keys"),
    [
        ("before", ["named", "all_customers", "twice"], 0),
        ("after", [*QUERIES], 0),
        ("after", [*QUERIES], 100),
        ("before", [*BY_KEYS, "either", "twice"], 100),
    ],
)
def test_every_view_is_what_spark_says(
    known: Known, tmp_path: Path, state: str, names: list[str], most_keys: int
) -> None:
    session, given = known.session, known.given
    old, new = ({name: views[name] for name in names} for views in (known.old, known.new))
    path = stored(tmp_path, old, given[state], names)
    with selfmaint.load(path, session) as warehouse:
        update = selfmaint.Update.from_frames(
            warehouse,
            inserted={n: f for n, f in given["new"].items() if n != "log"},
            deleted={"sale": given["old"]["sale"]},
            effective=True,
        )
        found = warehouse.maintain(update, recompute=True, most_keys=most_keys)
        by_keys = BY_KEYS & set(names) if most_keys else set()
        assert set(found.keyed) == by_keys
        assert set(found.recomputed) == set(names) - DECIDED - STAYS - by_keys
        if not most_keys:
            assert {(r.relation, r.key_columns) for r in found.reads} >= {("sale", ()), ("customer", ())}
            assert all(read.rows_read and read.bytes_read for read in found.reads)
        warehouse.apply(found)
        left = [t.name for t in session.catalog.listTables() if t.name.startswith("selfmaint_")]
    assert left == []
    for name, frame in new.items():
        now = session.read.parquet(str(tmp_path / "views" / name))
        assert rows(now) == rows(frame), name
        assert now.columns == frame.columns


def test_a_temporary_view_is_put_where_it_is_read(session: SparkSession) -> None:
    given = frames(session)
    text = TABLES + BIGGER + f"create view v as {OVER_BIGGER}"
    contents = session.createDataFrame([("a", None)], "name string, how_much decimal(9,2)")
    sources = {n: Frames(f) for n, f in given["after"].items()}
    with selfmaint.build(text, {"v": contents}, sources=sources, spark=session) as warehouse:
        assert reads(warehouse.catalog, warehouse.view("v")) == ("customer", "sale")
        update = selfmaint.Update({"customer": given["new"]["customer"]}, effective=True)
        found = warehouse.maintain(update, recompute=True, most_keys=0)
        names = Counter(name for name, *_ in rows(found.recomputed["v"]).elements())
    assert names == {"a": 2, "b": 1, "c": 1, "d": 1}


class Frames:
    """One base relation as a DataFrame."""

    name = "frames"

    def __init__(self, frame: DataFrame) -> None:
        self._frame = frame

    def row_count(self, relation: str) -> int:
        return self._frame.count()

    def read(self, relation: str, key_columns: list[str], keys: DataFrame | None) -> Any:
        from selfmaint.sources.protocol import Read

        assert keys is None
        return self._frame, Read(relation, (), 0, self._frame.count(), 1, self.name)

    def version(self) -> str | None:
        return None


def test_a_source_in_a_third_state_is_refused(session: SparkSession) -> None:
    given = frames(session)
    text = TABLES + f"create view ranked as {QUERIES['ranked']};"
    contents = session.createDataFrame([(1, 1)], "id int, place int")
    half = given["before"]["sale"].union(given["new"]["sale"].where("id = 13"))
    later = given["after"]["sale"].selectExpr("id", "customer", "amount + 1 as amount", "weight")
    for moved in (half, later):
        sources = {"sale": Frames(moved)}
        with selfmaint.build(text, {"ranked": contents}, sources=sources, spark=session) as warehouse:
            update = selfmaint.Update(
                {"sale": given["new"]["sale"]}, {"sale": given["old"]["sale"]}, effective=True
            )
            with pytest.raises(SourceError, match="SM402"):
                warehouse.maintain(update, recompute=True, most_keys=0)


def test_what_cannot_be_recomputed_is_refused_by_name(session: SparkSession) -> None:
    given = frames(session)
    queries = {
        "ranked": (QUERIES["ranked"], "`sale` has no source"),
        "sampled": ("select * from log tablesample (1 rows)", "with SAMPLE"),
        "made": ("select * from range(10) left join log on true", "no name of a relation"),
    }
    text = TABLES + "".join(f"create view {n} as {q};" for n, (q, _) in queries.items())
    contents = {n: session.createDataFrame([("x",)], "line string") for n in queries}
    contents["ranked"] = session.createDataFrame([(1, 1)], "id int, place int")
    sources = {"log": Frames(given["after"]["log"])}
    with selfmaint.build(text, contents, sources=sources, spark=session) as warehouse:
        update = selfmaint.Update({"sale": given["new"]["sale"]}, effective=True)
        with pytest.raises(SelfmaintError) as error:
            warehouse.maintain(update, recompute=True, most_keys=0)
        messages = [d.message for d in error.value.diagnostics]
        assert [why in m for (_, why), m in zip(queries.values(), messages, strict=True)] == [True] * 3
        with pytest.raises(InputError, match="strict mode"):
            warehouse.maintain(update, recompute=True, strict=True)


def test_spark_is_asked_what_a_query_reads(session: SparkSession) -> None:
    from datalog.model import OpaqueView, Predicate, TextQuery, TextRead
    from selfmaint.engine.protocol import Facts
    from selfmaint.spark.text_views import text_rows

    session.sql("select 1 as line").write.saveAsTable("overlooked", mode="overwrite")
    table = session.createDataFrame([("x",)], "line string")
    text = "select line from log where line not in (select cast(line as string) from overlooked)"
    view = OpaqueView("v", text, (), query=TextQuery(text, (TextRead(17, 20, "log", "log"),)))
    try:
        with pytest.raises(ReadRefusedError, match="SM403"):
            text_rows(session, view, Facts({Predicate("log"): table}), table)
    finally:
        session.sql("drop table overlooked")


ALLOWED = """
select a, count(*) over () n, sum(b) over w s, rank() over (order by a) r, cume_dist() over (order by b) c
    from t window w as (partition by p order by b rows between 1 preceding and current row)
select any(a > 1) q, count(distinct a) c, max(a) filter (where b > 1) m, percentile_cont(0.5)
    within group (order by b) h, array_join(array_sort(collect_set(p)), ',') l, max_by(a, b) x, count_if(a > 1) i from t
select a from t where a in (select a from s) and exists (select 1 from s where s.a = t.a) or a > (select max(a) from s)
    or a <=> b or p rlike 'x' or p like any ('x', 'y') or a not in (1, 2) or a between 1 and 2 or a is distinct from b
select a, l.c, k, v from t lateral view explode(array(1, 2)) l as c lateral view outer explode(map('x', b)) e as k, v
select * from (select a, p from t) pivot (count(p) for a in (1, 2))
select a, name, value from t unpivot (value for name in (b, c))
select /*+ broadcast(t) */ t.a, aa from t left join (select a as aa from s) u on t.a = aa
select a, p, grouping(a) g, count(*) n from t group by rollup (a, p) having count(*) > 0
select a from t left semi join s using (a) union all (select a from s except select a from t)
    order by a limit 9 offset 0
with one as (select a, b from t), two(z) as (select a from one) select * from one full outer join two on a = z
select transform(array(a), x -> x + 1)[0] t, from_json('{"a":1}', 'a int').a j, named_struct('a', b).a n from t limit 99
select date_trunc('month', d) m, a div b i, p || 'x' || substring(p from 1 for 2) p, cast(a as decimal(9,2)) c,
    datediff(d, date'2024-01-01') f, timestampadd(day, 1, d) u, nvl(a, b) v, upper(trim(both 'x' from p)) w,
    d + interval 1 day e, extract(year from d) y, case a when 1 then 'x' else decode(b, 1, 'y', 'z') end z
    from t limit 99
"""


def test_ordinary_queries_are_allowed(session: SparkSession) -> None:
    from datalog.model import Predicate, TextQuery
    from datalog.sql.views import read_sql
    from selfmaint.engine.protocol import Facts
    from selfmaint.spark.text_views import text_rows

    given = {
        "t": session.sql(
            "select * from values (1, 2, 3, 'x', date'2024-02-01'), (2, 2, 5, null, null), (null, 1, 0, 'y', null)"
            " as t (a, b, c, p, d)"
        ),
        "s": session.sql("select * from values (1), (3) as s (a)"),
    }
    for name, frame in given.items():
        frame.createOrReplaceTempView(name)
    queries = ALLOWED.strip().replace("\n    ", " ").splitlines()
    tables = "create table t (a int, b int, c int, p string, d date); create table s (a int);"
    views = read_sql(tables + "".join(f"create view v{n} as {q};" for n, q in enumerate(queries))).opaque
    assert len(views) == len(queries)
    for view in views:
        assert isinstance(view.query, TextQuery), view.query
        expected = session.sql(view.text)
        found = text_rows(session, view, Facts({Predicate(n): f for n, f in given.items()}), expected)
        assert found.dtypes == expected.dtypes


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("select reflect('java.lang.System', 'setProperty', 'selfmaint.test', line) from log", "`reflect`"),
        (
            "select transform(line) using 'sh -c \"touch {file}; cat\"' as (line) from log",
            "ScriptTransformation",
        ),
        ("from log map line using 'touch {file}' as line", "ScriptTransformation"),
        ("select line from log where line in (select java_method('a', 'b'))", "`java_method`"),
        ("select e from log lateral view inline(try_reflect('a', line)) x as e", "`try_reflect`"),
        ("with a as (select reflect('a', line) e from log) select * from a", "`reflect`"),
        ("select count(*) over w from log window w as (order by reflect('a', line))", "`reflect`"),
        ("select listagg(line) within group (order by reflect('a', line)) from log", "`reflect`"),
        ("select max(line) filter (where reflect('a', line) = 'a') from log", "`reflect`"),
        ("select transform(array(1), x -> reflect('a', line)) from log", "`reflect`"),
        ("select * from log, lateral (select reflect('a', line))", "`reflect`"),
        ("select * from values (reflect('a', 'b')) as v (a)", "`reflect`"),
        ("select builtin.upper(line) from log", "`builtin.upper`"),
        ("select current_user from log", "`CurrentUser`"),
        ("select current_date from log", "`CurrentDate`"),
        ("select setting from log", "`VariableReference`"),
        ("select unix_timestamp() from log", "`CurrentTimestamp`"),
        ("select * from parquet.`{file}`", "`parquet."),
        ("select * from range(3)", "UnresolvedTableValuedFunction"),
        ("select identifier('upper')(line) from log", "`ExpressionWithUnresolvedIdentifier`"),
        ("select * from (select * from log) tablesample (10 percent)", "`Sample`"),
        ("select /*+ unknown(log) */ line from log", "`unknown`"),
        ("insert into x select 'x'", "`InsertIntoStatement`"),
        ("set spark.sql.ansi.enabled = false", "`SetCommand`"),
        ("add jar '{file}'", "`AddJarsCommand`"),
    ],
)
def test_what_spark_understands_is_held_against_the_list_too(
    session: SparkSession, tmp_path: Path, query: str, named: str
) -> None:
    """As if sqlglot had understood something else: Spark's own parser is asked before anything runs."""
    from datalog.model import OpaqueView, Predicate, TextQuery, TextRead
    from selfmaint.engine.protocol import Facts
    from selfmaint.spark.text_views import text_rows

    session.sql("declare or replace variable setting string default 'x'")
    table = session.createDataFrame([("x",)], "line string")
    text = query.replace("{file}", str(tmp_path / "made"))
    name = re.search(r"(?<=from )log\b", text)
    reads = () if name is None else (TextRead(*name.span(), "log", "log"),)
    with pytest.raises(InputError, match="SM404") as error:
        text_rows(
            session,
            OpaqueView("v", text, (), query=TextQuery(text, reads)),
            Facts({Predicate("log"): table}),
            table,
        )
    assert named in error.value.diagnostics[0].message
    assert not any(tmp_path.iterdir())
    assert session._jvm is not None
    assert session._jvm.java.lang.System.getProperty("selfmaint.test") is None


def test_what_writes_or_starts_something_is_refused_before_anything_is_read(
    session: SparkSession, tmp_path: Path
) -> None:
    queries = {
        "script": f"select transform(line) using 'sh -c \"touch {tmp_path}/made; cat\"' as (line) from log",
        "java": "select reflect('java.lang.System', 'setProperty', 'selfmaint.test', line) as line from log",
        "told": "select '${env:PATH}' as line from log order by line limit 1",
    }
    contents = {n: session.createDataFrame([("x",)], "line string") for n in queries}
    program = TABLES + "".join(f"create view {n} as {q};" for n, q in queries.items())
    with selfmaint.build(program, contents, sources={"log": Unread()}, spark=session) as warehouse:
        new = session.createDataFrame([("y",)], "line string")
        with pytest.raises(SelfmaintError) as error:
            warehouse.maintain(selfmaint.Update({"log": new}, effective=True), recompute=True)
    found = {d.message.split("`")[1]: d for d in error.value.diagnostics}
    assert [d.code for d in found.values()] == [Code.NOT_MAINTAINED] * 3
    assert ["TRANSFORM" in found["script"].message, "`reflect`" in found["java"].message] == [True, True]
    assert "`${`" in found["told"].message
    assert all(d.hint and d.span for d in found.values())
    assert not any(tmp_path.iterdir())
    assert session._jvm is not None
    assert session._jvm.java.lang.System.getProperty("selfmaint.test") is None


class Unread:
    """A source that must not be read."""

    name = "unread"

    def row_count(self, relation: str) -> int:
        return 1

    def read(self, relation: str, key_columns: list[str], keys: DataFrame | None) -> Any:
        raise AssertionError(relation)

    def version(self) -> str | None:
        return None


def test_the_command_says_what_was_read(session: SparkSession, tmp_path: Path) -> None:
    given = frames(session)
    names = ["named", "ranked"]
    path = stored(tmp_path, truth(session, given["before"], names), given["after"], names)
    changes = tmp_path / "changes"
    given["new"]["sale"].write.parquet(str(changes / "sale.insert.parquet"))
    given["old"]["sale"].write.parquet(str(changes / "sale.delete.parquet"))
    given["new"]["customer"].write.parquet(str(changes / "customer.insert.parquet"))
    arguments = ["maintain", str(path), "--update", str(changes)]
    status, found = run_json(*arguments, "--recompute", "--most-keys", "0", "--verify")
    assert status == 0
    assert found["recomputed"] == ["ranked"]
    assert [r["rows_read"] for r in found["reads"] if r["relation"] == "sale" and not r["key_columns"]] == [3]
    assert {w["name"] for w in found["written"]} == {"named", "ranked"}
    status, found = run_json(*arguments, "--recompute", "--strict")
    assert status == 2


def test_text_in_files_stays_as_it_is(spark: SparkSession, tmp_path: Path) -> None:
    """No type is made up for the values of a view in a CSV file that only Spark understands."""
    (tmp_path / "v.sql").write_text(
        "create table c (id int not null primary key, code string, most decimal(30,2));"
        "create table o (id int not null primary key, c int not null references c (id));"
        "create view co as select c.id, code, most, o.id as o_id from c left join o on o.c = c.id;"
    )
    (tmp_path / "warehouse.toml").write_text(
        'program = "v.sql"\n[views.co]\npath = "co.csv"\n[sources.files]\nkind = "files"\n'
        '[relations.c]\nsource = "files"\npath = "c.csv"\n[relations.o]\nsource = "files"\npath = "o.csv"\n'
        "[update]\neffective = true\n"
    )
    (tmp_path / "c.csv").write_text("id,code,most\n1,007,12345678901234567890.12\n2,010,10.00\n")
    (tmp_path / "o.csv").write_text("id,c\n10,1\n")
    (tmp_path / "co.csv").write_text("id,code,most,o_id\n1,007,12345678901234567890.12,10\n2,010,10.00,\n")
    (tmp_path / "u").mkdir()
    (tmp_path / "u" / "o.insert.csv").write_text("id,c\n11,2\n")
    with selfmaint.load(tmp_path / "warehouse.toml", spark) as warehouse:
        update = selfmaint.Update.from_files(warehouse, tmp_path / "u")
        maintained = warehouse.maintain(update, recompute=True, most_keys=0)
        assert maintained.deltas["co"].gained.count() == 1
        warehouse.apply(maintained)
    written = sorted((tmp_path / "co.csv").read_text().splitlines())
    assert written == ["1,007,12345678901234567890.12,10", "2,010,10.00,11", "id,code,most,o_id"]
