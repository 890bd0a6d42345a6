"""Aggregates under casts and roundings, and sums in other words: what is determined is what all rows give."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import selfmaint
from datalog.analysis.expression_types import expression_type
from datalog.analysis.types import common_type
from datalog.diagnostics import ProgramError
from datalog.evaluate import EvaluationError, evaluate_view
from datalog.model import ColumnType, Predicate, ViewDefinition
from selfmaint.api.file.programs import catalog_of
from selfmaint.warehouse.base_relations import variable_types
from selfmaint.warehouse.catalog import Catalog
from tests.effort import effort

TABLE = """create table o (id int not null primary key, k string, n int not null, m int,
    d decimal(10,2) not null, e decimal(8,3), b bigint, day date not null);"""
DAYS = [f"2026-0{month}-1{day}" for month in (1, 2) for day in (3, 8)]
TYPES = {
    "id": pa.int32(),
    "k": pa.string(),
    "n": pa.int32(),
    "m": pa.int32(),
    "d": pa.decimal128(10, 2),
    "e": pa.decimal128(8, 3),
    "b": pa.int64(),
    "day": pa.date32(),
}
AGGREGATES = [
    *("count(*)", "count(m)", "sum(d)", "sum(e)", "sum(n)", "sum(m)", "sum(b)", "avg(d)", "avg(n)", "avg(m)"),
    *("max(d)", "min(e)", "max(m)", "coalesce(sum(m), 0)", "coalesce(sum(e), 0)"),
]
WORDS = [
    *(
        "sum(d) - sum(n)",
        "sum(n) - sum(d)",
        "sum(d) - sum(m)",
        "-sum(m)",
        "sum(m) * 3",
        "2 * sum(e)",
        "-sum(b)",
    ),
    *("sum(d) * 1.25", "sum(n) - sum(n * 2) + sum(n)", "sum(d) - coalesce(sum(e), 0)", "floor(min(e))"),
    *("sum(case when m = 1 then d else 0 end) - sum(d)", "round(max(d), 1)", "round(sum(d) - sum(n), 2)"),
    *("cast(sum(n) - sum(d) as decimal(30,2))", "trunc(max(day), 'MM')", "year(min(day))"),
]
TOLD = [
    "sum(d) as t, count(*) as c",
    "round(sum(d), 2) as t, cast(count(*) as int) as c",
    "sum(m) as t, count(m) as c",
]
Row = tuple[Any, ...]


def in_other_words(random: Random) -> str:
    one = random.choice(AGGREGATES)
    type_ = random.choice(
        ["decimal(18,2)", "decimal(20,3)", "decimal(12,0)", "int", "bigint", "decimal(30,6)"]
    )
    words = [
        one,
        f"round({one}, {random.choice([0, 1, 2, 3, 4])})",
        f"{one} / count(*)",
        *[random.choice(WORDS)] * 5,
    ]
    return random.choice([*words, *([] if one in ("avg(n)", "avg(m)") else [f"cast({one} as {type_})"] * 3)])


def query(random: Random) -> str:
    by = random.choice(["k", "k", "n", "k, n", ""])
    outputs = [f"{in_other_words(random)} as c{i}" for i in range(random.choice([1, 2, 3]))]
    outputs += [random.choice(TOLD)] if random.random() < 0.5 else []
    having = random.choice(["", "", "", " having count(*) > 1", " having sum(d) > 5"]) if by else ""
    where = random.choice(["", "", " where n > 1", " where m is not null"])
    grouped = f" group by {by}{having}" if by else ""
    return f"select {by + ', ' if by else ''}{', '.join(outputs)} from o{where}{grouped}"


def union(random: Random) -> str:
    has_key, queries = random.random() < 0.4, []
    for i in range(random.choice([2, 2, 3])):
        key = random.choice(["k", "k", "null"]) if i else "k"
        by = " group by k" + random.choice(["", "", " having count(*) > 1"]) if has_key and key == "k" else ""
        shown = f"{key} as key, " if has_key else ""
        queries.append(f"select {i} as what, {shown}{in_other_words(random)} as v from o{by}")
    return " union all ".join(queries)


def row(random: Random, key: int) -> Row:
    return (
        key,
        random.choice(["x", "y", None]),
        random.choice([1, 2, 3]),
        random.choice([None, 1, 5, -5]),
        Decimal(random.choice(["1.00", "2.25", "-1.00", "99999999.99", "0.01"])),
        random.choice([None, Decimal("1.005"), Decimal("-0.005"), Decimal("12345.678")]),
        random.choice([None, 1, -7, 2**40]),
        random.choice(DAYS),
    )


def arrow(rows: Iterable[Row]) -> pa.Table:
    columns = list(zip(*sorted(rows, key=repr), strict=True)) or [()] * len(TYPES)
    arrays = [
        pa.array(values, pa.string()).cast(kind) if name == "day" else pa.array(values, kind)
        for (name, kind), values in zip(TYPES.items(), columns, strict=True)
    ]
    return pa.Table.from_arrays(arrays, list(TYPES))


def stored_types(definition: ViewDefinition, catalog: Catalog) -> list[pa.DataType]:
    found: list[ColumnType | None] = [None] * len(definition.columns)
    for one in definition.blocks:
        types = variable_types(one.core.atoms, catalog.relations)
        its = [expression_type(output, types) for output in one.outputs]
        found = [
            a if b is None else b if a is None else common_type(a, b) for a, b in zip(found, its, strict=True)
        ]
    plain = {"int": pa.int32(), "bigint": pa.int64(), "double": pa.float64(), "date": pa.date32()}
    return [
        pa.decimal128(*kind.decimal_size) if "decimal" in str(kind) else plain.get(str(kind), pa.string())
        for kind in found
        if kind is not None
    ]


def truth(catalog: Catalog, rows: Iterable[Row]) -> pa.Table:
    """The view over some rows, by the evaluator that defines what a view is."""
    definition = catalog.view("v").definition
    assert isinstance(definition, ViewDefinition)
    given = arrow(rows).to_pylist()
    relation, types = Predicate("o"), {Predicate("o"): catalog.relations["o"].types}
    found = evaluate_view(definition, {relation: Counter(tuple(one.values()) for one in given)}, types)
    kinds = stored_types(definition, catalog)
    columns: Any = list(zip(*found.elements(), strict=True)) or [()] * len(kinds)
    arrays = [
        pa.array(
            [None if v is None else Decimal(v) if pa.types.is_decimal(kind) else v for v in values], kind
        )
        for values, kind in zip(columns, kinds, strict=True)
    ]
    return pa.Table.from_arrays(arrays, list(definition.columns))


def bag(rows: Any) -> Counter[Row]:
    return Counter(tuple(one.values()) for one in pa.table(rows).to_pylist())


@pytest.mark.random
@pytest.mark.parametrize("drawn", [query, union])
def test_what_is_determined_is_what_all_rows_give(drawn: Any) -> None:
    told = 0
    for seed in range(effort(40, 1500)):
        random = Random(f"{drawn.__name__} {seed}")
        text = f"{TABLE} create view v as {drawn(random)};"
        try:
            catalog = catalog_of(text)
        except ProgramError:  # a union of days and numbers
            continue
        view = catalog.view("v")
        if not isinstance(view.definition, ViewDefinition) or not (
            view.is_decided or catalog.unions.get("v")
        ):
            continue
        before = {i: row(random, i) for i in range(random.choice([0, 3, 8, 12]))}
        after = {
            i: row(random, i) if random.random() < 0.2 else its
            for i, its in before.items()
            if random.random() < 0.8
        }
        after |= {i: row(random, i) for i in range(20, 20 + random.choice([0, 1, 3]))}
        come = [its for i, its in after.items() if before.get(i) != its]
        go = [its for i, its in before.items() if after.get(i) != its]
        try:
            old, new = truth(catalog, before.values()), truth(catalog, after.values())
        except EvaluationError:  # a number that does not fit
            continue
        with selfmaint.build(text, {"v": old}, engine="duckdb", effective=True) as warehouse:
            sides = [{"o": arrow(rows)} if rows else {} for rows in (come, go)]
            update = selfmaint.Update.from_frames(warehouse, *sides)
            if not warehouse.check(update)["v"]:
                continue
            told += 1
            change = warehouse.maintain(update, strict=True).deltas["v"]
            gained = pa.table(change.gained)
            assert bag(old) - bag(change.lost) + bag(gained) == bag(new), (seed, text)
            assert gained.schema.types == new.schema.types, (seed, text)
    assert told > 5


@pytest.mark.parametrize(
    ("query", "is_decided"),
    [
        ("round(sum(d), 2) as a", True),
        ("round(sum(d), 1) as a", False),
        ("cast(sum(d) as decimal(18,2)) as a", True),
        ("cast(sum(d) as double) as a", False),
        ("cast(sum(d) as int) as a", False),
        ("try_cast(sum(d) as decimal(18,2)) as a", False),
        ("cast(count(*) as decimal(12,1)) as a", True),
        ("cast(cast(max(d) as decimal(20,3)) as decimal(12,2)) as a", False),
        ("round(avg(d), 2) as a", False),
        ("round(avg(d), 6) as a", True),
        ("round(avg(d), 2) as a, sum(d) as s", False),
        ("round(avg(d), 2) as a, sum(d) as s, count(*) as c", True),
        ("round(avg(e), 2) as a, sum(e) as s, count(*) as c", False),  # of those that are null no number
        ("round(avg(e), 2) as a, round(sum(e), 3) as s, cast(count(e) as int) as c", True),
        ("round(sum(d) / count(*), 2) as a, round(sum(d), 2) as s, count(*) as c", True),
        ("sum(d) - sum(m) as a", False),  # of what may be null
        ("sum(d) - sum(n) as a", True),
        ("sum(d) - sum(n) as a, round((sum(d) - sum(n)) / sum(d), 3) as p, sum(d) as s", True),
        ("avg(d) * 2 as a", False),
        ("-sum(b) as a", False),  # one number may be too large, and their sum not
        ("sum(n) * 10000000000 as a", False),
        ("sum(n) * 1000000000 as a", True),
        ("cast(avg(n) as string) as a, sum(n) as s, count(*) as c", False),
        ("date_trunc('month', max(day)) as a", True),
        ("month(max(day)) as a", False),
    ],
)
def test_what_tells_an_aggregate(query: str, is_decided: bool) -> None:
    catalog = catalog_of(f"{TABLE} create view v as select k, {query} from o group by k;")
    assert (catalog.view("v").is_decided or bool(catalog.unions.get("v"))) == is_decided


@pytest.mark.parametrize(
    ("words", "plain"),
    [
        ("sum(d) - sum(n)", "sum(d - n)"),
        ("-sum(d)", "sum(-d)"),
        ("sum(n) - sum(n * 2)", "sum(cast(n as bigint) - cast(n * 2 as bigint))"),
        ("1.5 * sum(e)", "sum(1.5 * e)"),
        ("year(max(day))", "max(year(day))"),
    ],
)
def test_what_aggregates_in_other_words_are(words: str, plain: str) -> None:
    made = [
        catalog_of(f"{TABLE} create view v as select k, {one} as a from o group by k;").view("v").definition
        for one in (words, plain)
    ]
    assert made[0] == made[1]


IN_KINDS = (
    "select k, {} as s, h.c from kinds left join (select k as j, {} as s, count(*) as c from o group by k) h"
)


@pytest.mark.parametrize(
    ("query", "precision"),
    [
        ("select k, cast(sum(d) as decimal(4,2)) as s, count(*) as c from o group by k", 4),
        (
            "select k, cast(cast(sum(d) as decimal(4,2)) as decimal(20,2)) as s, count(*) as c from o group by k",
            20,
        ),
        (
            (
                "select 'x' as k, cast(sum(d) as decimal(4,2)) as s, 1 as c from o union all select 'y', count(*), 1 "
                "from o"
            ),
            22,
        ),
        (
            f"{IN_KINDS.format('cast(h.s as decimal(20,2))', 'cast(sum(d) as decimal(4,2))')} on j = k",
            20,
        ),
        (
            f"{IN_KINDS.format('cast(coalesce(cast(h.s as decimal(4,2)),0) as decimal(9,2))', 'sum(d)')} on j = k",
            9,
        ),
        (
            f"{IN_KINDS.format('cast(coalesce(cast(h.s as decimal(4,2)),0) as decimal(9,2))', 'sum(m)')} on j = k",
            9,
        ),
    ],
)
def test_a_number_that_does_not_fit_is_an_error(query: str, precision: int) -> None:
    text = f"create table kinds (k string not null primary key); {TABLE} create view v as {query};"
    values = [Decimal("99.00"), *([Decimal(1)] if "union" in query else [])]
    keys, counts = ["x", "y"][: len(values)], [1, 1][: len(values)]
    stored = pa.table({"k": keys, "s": pa.array(values, pa.decimal128(precision, 2)), "c": counts})
    with selfmaint.build(text, {"v": stored}, engine="duckdb", effective=True) as warehouse:
        more = arrow([(1, "x", 1, 1, Decimal("1.00"), None, None, DAYS[0])])
        update = selfmaint.Update.from_frames(warehouse, {"o": more}, {})
        assert warehouse.check(update)["v"]
        with pytest.raises(selfmaint.InputError, match="out of range"):
            warehouse.maintain(update)


@pytest.mark.parametrize(
    ("query", "wrong"),
    [
        ("select k, round(sum(d), 2) as s, cast(count(*) as decimal(9,1)) as c from o group by k", "c"),
        (
            "select 'a' as k, sum(d) as s, count(*) as c from o union all select 'b', count(*), count(*) from o",
            "s",
        ),
        ("select k, round(avg(d), 1) as a, round(sum(d), 2) as s, count(*) as c from o group by k", None),
    ],
)
def test_numbers_that_cannot_be(query: str, wrong: str | None) -> None:
    text = f"{TABLE} create view v as {query};"
    catalog = catalog_of(text)
    rows = [
        (1, "b", 1, 1, Decimal("1.10"), None, None, DAYS[0]),
        (2, "b", 1, 1, Decimal("0.15"), None, None, DAYS[0]),
    ]
    right = truth(catalog, rows)
    more = arrow([(3, "x", 1, 1, Decimal("1.00"), None, None, DAYS[0])])
    for full in (False, True):
        for column in {wrong, None}:
            stored = right
            if column is not None:
                at = right.column_names.index(column)
                values = [v + Decimal("0.5") for v in right[column].to_pylist()]
                stored = right.set_column(at, column, pa.array(values, right[column].type))
            with selfmaint.build(text, {"v": stored}, engine="duckdb", effective=True) as warehouse:
                update = selfmaint.Update.from_frames(warehouse, {"o": more}, {})
                if full and column is not None:
                    with pytest.raises(selfmaint.InputError, match="can never produce"):
                        warehouse.check(update, full=True)
                else:
                    warehouse.check(update, full=full)


def test_no_sum_is_added_up_that_no_view_shows() -> None:
    """Of numbers near the end of a bigint, as hashes are, where another view has all rows."""
    text = """create table t (id bigint not null, h bigint not null);
        create view copy as select id, h from t;
        create view top as select id % 2 as g, count(*) as n, max(h) as h from t group by id % 2;"""
    most = 2**63 - 1
    rows = pa.table({"id": pa.array(range(6), pa.int64()), "h": [most - i for i in range(6)]})
    groups = pa.table({"g": pa.array([0, 1], pa.int64()), "n": [3, 3], "h": [most, most - 1]})
    with selfmaint.build(text, {"copy": rows, "top": groups}, engine="duckdb", effective=True) as warehouse:
        update = selfmaint.Update.from_frames(warehouse, {}, {"t": rows.slice(0, 1)})
        found = warehouse.maintain(update).deltas["top"]
        assert pa.table(found.gained).to_pylist() == [{"g": 0, "n": 2, "h": most - 2}]
