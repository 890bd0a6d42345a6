"""Random views in SQL: what Spark makes of the text, what the definition means, and what its own SQL gives.

Oracles: Spark runs the text as it is written. The definition that the text was read into is evaluated in memory
from its meaning, and as the SQL that it is written back as. All three have the same rows, as often.
"""

from __future__ import annotations

import datetime as dt
import decimal
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from random import Random
from typing import TYPE_CHECKING

import pytest

from datalog.evaluate import evaluate_view
from datalog.model import ColumnType, Predicate, Row, TypeName, Value, ViewDefinition
from datalog.sql import Table, select_view, text
from datalog.sql.views import SqlText, read_sql
from tests.datalog.sql.sql_views import CREATE, TABLES, column_types, random_bags, views
from tests.effort import effort
from tests.many_statements import interpreting_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BATCHES, VIEWS = effort(2, 10), 40
STORED = {Predicate(name): Table((name,), tuple(columns)) for name, columns in TABLES.items()}
LEAST_READ = 0.75
_INT, _TEXT, _TRUTH = (ColumnType(name) for name in (TypeName.INT, TypeName.STRING, TypeName.BOOLEAN))
TYPES = {"c": (_INT, _TEXT, _INT), "o": (_INT, _INT, _INT, _TRUTH)}
_TWELVE_DIGITS = decimal.Context(prec=12)


def same(value: Value) -> Value:
    """A cell, so that equal values of different types look the same."""
    match value:
        case None:
            return None
        case bool():
            return str(value).lower()
        case int() | float() | Decimal():
            return _TWELVE_DIGITS.create_decimal(str(value)).normalize(_TWELVE_DIGITS) + 0
        case dt.datetime():
            return value.isoformat(sep=" ")
        case dt.date():
            return value.isoformat()
        case str():
            try:
                return same(Decimal(value))
            except decimal.InvalidOperation:
                return value


def rows_on_spark(spark: SparkSession, queries: Sequence[tuple[str, int]]) -> list[Counter[Row]]:
    """The rows of some queries, each given with its number of columns, from one statement."""
    parts = []
    for number, (query, width) in enumerate(queries):
        names = [f"c{n}" for n in range(width)]
        strings = ", ".join(f"cast({name} as string)" for name in names)
        parts.append(f"select {number} as n, array({strings}) as v from ({query}) as q({', '.join(names)})")
    found: list[Counter[Row]] = [Counter() for _ in queries]
    for number, cells in spark.sql("\nunion all\n".join(parts)).collect():
        found[number][tuple(same(cell) for cell in cells)] += 1
    return found


def load(spark: SparkSession, bags: dict[Predicate, Counter[Row]]) -> None:
    for name, columns in TABLES.items():
        schema = ", ".join(f"{column} {kind}" for column, kind in columns.items())
        rows = list(bags[Predicate(name)].elements())
        frame = spark.createDataFrame(rows, schema).coalesce(1).localCheckpoint()  # of Python's rows once
        frame.createOrReplaceTempView(name)


def read(query: str) -> ViewDefinition | None:
    """The definition of a query, or None for one that stays text, with a reason."""
    found = read_sql([SqlText(CREATE, "tables"), SqlText(query, "v")])
    if found.opaque:
        assert found.opaque[0].reasons
        return None
    (view,) = found.views
    return view


@pytest.mark.parametrize("seed", range(BATCHES))
def test_text_definition_and_written_back_text_have_the_same_rows(spark: SparkSession, seed: int) -> None:
    random = Random(seed)
    session = interpreting_session(spark)
    bags = random_bags(random)
    load(session, bags)
    cases = [(query, read(query)) for query in views(random, VIEWS)]
    known = [(query, view) for query, view in cases if view is not None]
    assert len(known) >= LEAST_READ * len(cases), [query for query, view in cases if view is None]
    back = [text(select_view(view, STORED)) for _, view in known]
    widths = [len(view.columns) for _, view in known]
    written = rows_on_spark(session, list(zip([query for query, _ in known], widths, strict=True)))
    again = rows_on_spark(session, list(zip(back, widths, strict=True)))
    for (query, view), sql, expected, repeated in zip(known, back, written, again, strict=True):
        meant: Counter[Row] = Counter()
        for row, copies in evaluate_view(view, bags, column_types()).items():
            meant[tuple(same(cell) for cell in row)] += copies
        assert meant == expected, f"{query}\n{view}"
        assert repeated == expected, f"{query}\n{sql}"


KEYED = """create table c (id int not null primary key, n string, x int);
create table o (id int not null primary key, k int not null references c, x int, b boolean);
"""
SHORT = (
    "select x, count_if(b) n, count_if(x > 1) m from o group by x",
    "select k, count(*) filter (where b) n, sum(x) filter (where b or x is null) s from o group by k",
    "select count(distinct x) filter (where b) d, avg(x) filter (where not b) a from o",
    "select max(x) filter (where b) m, count_if(b) filter (where x > 1) i from o",
    "select id, 'it''s' t, concat('a''', n) u, 'it' 's' v, \"x\"\"y\" w, 'it\\'s' z, '''' q from c where n <> 'b''s'",
    "select k, bool_and(b) a, bool_or(x > 1) o, every(b) e, some(x is null) s from o group by k",
    "select bool_and(b) filter (where x > 1) a, bool_or(b) filter (where k = 1) o from o",
    "select k, x + 1 y, count(*) n, sum(x) filter (where b) s from o group by all",
    "select count(x) + 1 n, max(b) m from o where x > 1 group by all",
    "select k, x from o group by all",
    "select * except (x) from o",
    "select c.* except (n, x), o.* except (k, id) from o join c on o.k = c.id",
    "select id, (k, x) in ((1, 1), (2, 3)) t from o where (k, x) not in ((1, 2), (3, 1))",
    "select id from c where (id, x) in (select k, x from o)",
    "select id from o where x <=> k",
    "select id from o where not (x <=> 1)",
    "select id, x from o where x is distinct from 1",
    "select id, x from o where x is not distinct from null",
    "select o.id, c.n from o left join c on o.k = c.id",
    "select o.id, c.n from o left outer join c on c.id = o.k where c.x > 1 or c.x is null",
    "select o.id, c.x, p.x as y from o left join c on o.k = c.id left join c p on o.k = p.id",
    "select * from (select id, k from o) q left join (select id as k, n from c) r using (k)",
    "select id, n from c where exists (select 1 from o where o.k = c.id)",
    "select id from c where exists (select * from o where k = c.id and x > 1) and n is not null",
    "select id from c where id in (select k from o where b)",
    "select id from c where x in (select x from o)",
    "select id from o where k is not null and x in (select x + 1 from o p where p.k = o.k)",
    "select id from c where exists (select 1 from o)",
    (
        "select o.id from o join c on c.id = o.k where c.x in (select x from o q where q.id > o.id)"
        " and exists (select 1 from c)"
    ),
    "select distinct n from c where exists (select 1 from o where o.k = c.id)",
    "select q.id from (select id, x from c where x in (1, 2)) q where q.x in (select x from o)",
)
ONLY_TEXT = (
    "select o.id, c.n from o left join c on o.x = c.id",
    "select o.id, c.n from o left join c on o.k = c.id and c.x > 1",
    "select c.id, o.x from c left join o on o.k = c.id",
    "select o.id, c.n from o left join (select * from c where x > 1) c on o.k = c.id",
    "select o.id, d.n from o left join c on o.x = c.id left join c d on o.k = d.id",
    "select n from c where exists (select 1 from o where o.k = c.id)",
    "select id from c where not exists (select 1 from o where o.k = c.id)",
    "select id from c where id not in (select k from o)",
    "select id from c where id in (select k from o) or x = 1",
    "select id from c where id in (select max(k) from o group by x)",
    "select id from c where id in (select k from o limit 1)",
    "select count(*) n from c where exists (select 1 from o where o.k = c.id)",
    "select id, exists (select 1 from o) e from c",
    "select o.id, c.n from o left join (select * from c where id = x) c on o.k = c.id",
    "select id from c where exists (select max(o.id) from o where o.k = c.id)",
    "select id from c where exists (select count(*) from o where o.k = c.id)",
    "select distinct x, count(*) n from c where exists (select 1 from o where o.k = c.id) group by x",
    "select x, count(*) n from c where id in (select k from o) group by x union select 1, 2 from o",
)


def test_what_is_short_for_other_forms(spark: SparkSession) -> None:
    """Over tables with keys, of which the forms make use."""

    def found(query: str) -> ViewDefinition | None:
        result = read_sql([SqlText(KEYED, "tables"), SqlText(query, "v")])
        return result.views[0] if result.views else None

    session, random = interpreting_session(spark), Random(7)
    stored = {
        Predicate(n): Table((n,), names)
        for n, names in (("c", ("id", "n", "x")), ("o", ("id", "k", "x", "b")))
    }
    views_ = [found(query) for query in SHORT]
    assert [query for query, view in zip(SHORT, views_, strict=True) if view is None] == []
    known = [view for view in views_ if view is not None]
    assert [query for query in ONLY_TEXT if found(query) is not None] == []
    for _ in range(3):
        few = [None, 1, 2]
        bags = {
            Predicate("c"): Counter[Row](
                (i, random.choice([None, "n"]), random.choice(few)) for i in range(4)
            ),
            Predicate("o"): Counter[Row](
                (i, random.randrange(4), random.choice(few), random.choice([None, True, False]))
                for i in range(6)
            ),
        }
        for name, schema in (("c", "id int, n string, x int"), ("o", "id int, k int, x int, b boolean")):
            rows = list(bags[Predicate(name)].elements())
            session.createDataFrame(rows, schema).coalesce(1).localCheckpoint().createOrReplaceTempView(name)
        widths = [len(view.columns) for view in known]
        written = rows_on_spark(session, list(zip(SHORT, widths, strict=True)))
        again = rows_on_spark(
            session,
            [(text(select_view(view, stored)), width) for view, width in zip(known, widths, strict=True)],
        )
        types = {Predicate("c"): TYPES["c"], Predicate("o"): TYPES["o"]}
        for query, view, expected, repeated in zip(SHORT, known, written, again, strict=True):
            meant: Counter[Row] = Counter()
            for row, copies in evaluate_view(view, bags, types).items():
                meant[tuple(same(cell) for cell in row)] += copies
            assert meant == expected, f"{query}\n{view}"
            assert repeated == expected, query


STARS = (
    "select * from r join t using (a)",
    "select * from r natural join t",
    "select * from r join t using (a) join (select k, p from w) y using (p)",
    "select * from t join w using (p) join r using (s, a)",
    "select * from r join u using (b) natural join w",
    "select * from (select s, b from r) x join w using (s) join u using (b)",
    "select x.*, d from (select a, s from r) x join t using (a)",
    "select t.a as x, r.a as y, a from r join t using (a)",
)


def test_columns_of_star_stand_in_spark_s_order(spark: SparkSession) -> None:
    session = interpreting_session(spark)
    full = {
        Predicate("r"): Counter[Row]({(1, 2, "a"): 1, (2, 1, "B c"): 2}),
        Predicate("t"): Counter[Row](
            {(1, dt.date(2024, 3, 1), Decimal("1.50")): 1, (2, None, Decimal("0.10")): 1}
        ),
        Predicate("u"): Counter[Row]({(2, 0.25, True): 1, (1, 3.0, None): 1}),
        Predicate("w"): Counter[Row](
            {(3, None, Decimal("1.500"), "a"): 1, (1, None, Decimal("0.100"), "B c"): 1}
        ),
    }
    load(session, full)
    read_ = [view for view in map(read, STARS) if view is not None]
    assert len(read_) == len(STARS)
    found = rows_on_spark(session, [(q, len(v.columns)) for q, v in zip(STARS, read_, strict=True)])
    for query, view, expected in zip(STARS, read_, found, strict=True):
        rows = evaluate_view(view, full, column_types()).items()
        assert sum(expected.values()) > 0, query
        assert Counter({tuple(map(same, row)): copies for row, copies in rows}) == expected, query
