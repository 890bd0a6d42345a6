"""The MERGE of a view that groups, executed on PostgreSQL: it gives what recomputing gives.

Spark runs MERGE only on table formats that it does not bring along; the statement is transpiled by sqlglot and run on
a database that has it. Oracle: the views computed from the rows by `tests/oracle/aggregates.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from random import Random
from typing import Any

import psycopg
import pytest
import sqlglot
from psycopg import sql

from datalog.model import Row
from datalog.syntax import parse_program
from selfmaint.api.printing.group_statements import group_statements
from selfmaint.api.printing.printed import StatementKind
from selfmaint.api.printing.statements import statements, tables_of
from selfmaint.decide.decision import Decision
from selfmaint.warehouse.catalog import catalog
from selfmaint.warehouse.situation import Situation
from tests.oracle.aggregates import Aggregate, Computed, Relation, Schema, View
from tests.oracle.random_stars import changed, random_database, renamed

COUNT, SUM = Aggregate("count", "*"), Aggregate("sum", "A")
SALE = Relation("sale", (("s1", "s2", "s3"), ("k1", "k2"), (1, 2, 3)), 0, ((1, "cust"),))
CUST = Relation("cust", (("k1", "k2"), ("eu", "us")))
SALES = ("sale", ("I", "C", "A"))
ALL = View("customers", ("C", "R"), (), (("cust", ("C", "R")),))
BATCHES = 30


def schema_of(*views: View) -> Schema:
    return Schema((SALE, CUST), (3, 2), (*views, ALL))


def fill(connection: psycopg.Connection, name: str, columns: Iterable[str], rows: Iterable[Row]) -> None:
    every = list(rows)
    names = list(columns)
    kinds = [isinstance(next((row[i] for row in every), "x"), int) for i in range(len(names))]
    shown = [
        sql.SQL("{} {}").format(sql.Identifier(n), sql.SQL("bigint" if k else "text"))
        for n, k in zip(names, kinds, strict=True)
    ]
    table = sql.Identifier(name)
    connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(table))
    connection.execute(sql.SQL("CREATE TABLE {} ({})").format(table, sql.SQL(", ").join(shown)))
    places = sql.SQL(", ").join([sql.Placeholder()] * len(names))
    with connection.cursor() as cursor:
        cursor.executemany(sql.SQL("INSERT INTO {} VALUES ({})").format(table, places), every)


def states(schema: Schema) -> tuple[dict[str, frozenset[Row]], dict[str, frozenset[Row]]]:
    """Many small batches beside each other, as one: the rows before and after it."""
    random = Random(5)
    old, new = (
        {"sale": frozenset[Row](), "cust": frozenset[Row]()},
        {"sale": frozenset[Row](), "cust": frozenset[Row]()},
    )
    for number in range(BATCHES):
        base = random_database(random, schema)
        after = {**changed(random, schema, base), "cust": base["cust"]}
        after["sale"] = frozenset(s for s in after["sale"] if s[1] in {c[0] for c in base["cust"]})
        for target, part in ((old, base), (new, after)):
            for name, rows in renamed(part, f"{number}:").items():
                target[name] |= rows
    return old, new


def filled(
    connection: psycopg.Connection, columns: Iterable[str], view: View, schema: Schema
) -> Counter[Row]:
    """The view, its copy of customers and the update as tables; gives the view's rows after the update."""
    old, new = states(schema)
    fill(connection, "v", columns, view.rows(old).elements())
    fill(connection, "customers", ("c", "r"), old["cust"])
    fill(connection, "sale_inserted", ("c0", "c1", "c2"), new["sale"] - old["sale"])
    fill(connection, "sale_deleted", ("c0", "c1", "c2"), old["sale"] - new["sale"])
    return view.rows(new)


@pytest.mark.parametrize(
    "view",
    [
        View("v", ("C",), (COUNT, SUM), (SALES,)),
        View("v", ("R",), (COUNT, SUM, Aggregate("count", "A")), (SALES, ("cust", ("C", "R")))),
        View("v", (), (COUNT, SUM), (SALES,)),
    ],
    ids=["by customer", "by region", "of all"],
)
def test_merge_is_recomputation(postgres: str, view: View) -> None:
    schema = schema_of(view)
    found = catalog(parse_program(schema.text))
    situation = Situation.any_update(["sale"], effective=True)
    (made,) = group_statements(Decision(found), found.view("v"), situation, tables_of(found, {}))
    assert made.sql.startswith("MERGE INTO `v` AS `old`")
    assert "`gained_and_lost` AS" in made.sql
    (statement,) = sqlglot.transpile(made.sql, read="spark", write="postgres")
    with psycopg.connect(postgres, autocommit=True) as connection:
        expected = filled(connection, found.view("v").columns, view, schema)
        connection.execute(statement.encode())
        rows = connection.execute("SELECT * FROM v").fetchall()
    assert sorted(rows) == sorted(expected)


@pytest.mark.parametrize(
    "view",
    [
        View("v", ("C",), (COUNT, Aggregate("min", "A")), (SALES,)),
        View("v", ("R",), (Aggregate("max", "A"),), (SALES, ("cust", ("C", "R")))),
        View("v", ("C",), (SUM, Aggregate("count", "A")), (SALES,)),
    ],
    ids=["a minimum", "a maximum without a count", "no count of rows"],
)
def test_the_merge_is_right_but_for_open_groups(postgres: str, view: View) -> None:
    """Oracle: the groups that are open by hand, from the rows; the others are recomputed."""
    rows, expected, opened, _ = merged(postgres, view)
    assert opened == open_by_hand(view, schema_of(view))
    assert sorted(r for r in rows if r[0] not in opened) == sorted(r for r in expected if r[0] not in opened)


@pytest.mark.parametrize(
    "view",
    [
        View("v", ("I",), (SUM, Aggregate("min", "A")), (SALES,)),
        View("v", ("R", "I"), (Aggregate("max", "A"),), (SALES, ("cust", ("C", "R")))),
    ],
    ids=["by sale", "by sale and region"],
)
def test_the_merge_drops_groups_that_show_the_key_of_a_deleted_row(postgres: str, view: View) -> None:
    """No group is open, though extrema are lost and nothing is counted; the lost core rows are not computed."""
    rows, expected, opened, statement = merged(postgres, view)
    assert not opened
    assert "`lost`" not in statement
    assert sorted(rows) == sorted(expected)


def merged(postgres: str, view: View) -> tuple[list[Any], list[Any], set[Any], str]:
    """A view's rows after the MERGE, those of recomputing, the first columns of open groups, and the statement."""
    schema = schema_of(view)
    found = catalog(parse_program(schema.text))
    situation = Situation.any_update(["sale"], effective=True)
    open_, merge = group_statements(Decision(found), found.view("v"), situation, tables_of(found, {}))
    query, statement = (
        sqlglot.transpile(one.sql, read="spark", write="postgres")[0] for one in (open_, merge)
    )
    with psycopg.connect(postgres, autocommit=True) as connection:
        expected = filled(connection, found.view("v").columns, view, schema)
        opened = {group[0] for group in connection.execute(query.encode()).fetchall()}
        connection.execute(statement.encode())
        rows = connection.execute("SELECT * FROM v").fetchall()
    return rows, list(expected), opened, merge.sql


def open_by_hand(view: View, schema: Schema) -> set[object]:
    """The groups of which the old row and the rows gained and lost tell too little."""
    old, new = states(schema)
    detail = View("detail", (*view.columns, "I", "A"), (), view.body)
    before, after = (detail.rows(d) for d in (old, new))
    stored = {row[0]: row[1:] for row in view.rows(old)}
    counted = COUNT in view.aggregates
    found: set[object] = set()
    for group in {row[0] for row in (before - after) + (after - before)}:
        lost, gained = ([r[2] for r in part if r[0] == group] for part in (before - after, after - before))
        if counted and not any(row[0] == group for row in before & after):
            continue
        for aggregate, value in zip(view.aggregates, stored.get(group, ()), strict=False):
            if aggregate.function in ("min", "max") and lost:
                best = {"min": min, "max": max}[aggregate.function]
                if best(lost) == value and (not gained or best(*gained, value) not in gained):
                    found.add(group)
        total = next((i for i, a in enumerate(view.aggregates) if a.function == "sum"), None)
        if not counted and lost and not gained:
            known = total is not None and stored[group][total] - sum(lost) != 0
            found |= set() if known else {group}
    return found


@pytest.mark.parametrize(
    "view",
    [
        View("v", ("C",), (), (SALES,), semantics="bag"),
        View("v", ("R", Computed("A", "*", 2)), (), (SALES, ("cust", ("C", "R"))), semantics="bag"),
        View("v", (("constant", 7),), (), (SALES,), semantics="bag"),
    ],
    ids=["by customer", "computed", "constant"],
)
def test_the_statements_for_a_bag_are_recomputation(postgres: str, view: View) -> None:
    """In order: the counted rows, the changes, then all copies of what changes deleted and inserted anew."""
    schema = schema_of(view)
    found = catalog(parse_program(schema.text))
    situation = Situation.any_update(["sale"], effective=True)
    made = statements(Decision(found), found.view("v"), situation, tables_of(found, {}))
    script = [s for s in made if s.kind not in (StatementKind.TEST, StatementKind.PROBE)]
    assert [s.kind for s in script] == [
        StatementKind.COUNTED,
        StatementKind.CHANGES,
        StatementKind.DELETE,
        StatementKind.INSERT,
    ]
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS v CASCADE")
        connection.execute("DROP TABLE IF EXISTS v_changes")
        expected = filled(connection, found.view("v").stored_columns, view, schema)
        for statement in script:
            connection.execute(for_postgres(statement.sql).encode())
        rows = connection.execute("SELECT * FROM v").fetchall()
        connection.execute("DROP TABLE v CASCADE")
    assert Counter(rows) == expected
    assert max(Counter(rows).values()) > 1


def for_postgres(statement: str) -> str:
    """The statement in PostgreSQL's dialect, whose generate_series gives rows and not an array."""
    tree = sqlglot.parse_one(statement, read="spark")
    for array in list(tree.find_all(sqlglot.exp.Explode)):
        array.replace(array.this.copy())
    return tree.sql(dialect="postgres")


ODD: dict[str, tuple[str, list[str]]] = {
    "string": ("text", ["", " ", "a", "a ", "A", "\u00e4", "a\u0308", "null"]),
    "date": ("date", ["0001-01-01", "1582-10-10", "9999-12-31"]),
    "timestamp_ntz": ("timestamp", ["2026-03-29 02:30:00", "2026-03-29 02:30:00.000001"]),
    "double": ("float8", ["-0.0", "0.0", "NaN", "Infinity", "-Infinity", "4.9E-324"]),
    "decimal(38,18)": ("numeric(38,18)", ["0.000000000000000001", "-12345678901234567890.5", "0"]),
    "bigint": ("bigint", ["-9223372036854775808", "9223372036854775807", "0"]),
    "boolean": ("boolean", ["true", "false"]),
}
AMOUNTS = ["9999999999999.99", "-9999999999999.99", "0.01", "0", None]


@pytest.mark.parametrize("kind", ODD)
def test_merge_is_recomputation_for_groups_of_odd_values(postgres: str, kind: str) -> None:
    """Oracle: the server's own groups of the rows after the update. Groups are gone, come and stay.

    It has no full join of groups that may be null.
    """
    found = catalog(
        parse_program(
            f".decl sale(i: int not null, x: {kind} not null, a: decimal(15,2)) key(i).\n"
            "v(X, count(*), sum(A), count(A)) :- sale(I, X, A)."
        )
    )
    situation = Situation.any_update(["sale"], effective=True)
    *_, made = group_statements(Decision(found), found.view("v"), situation, tables_of(found, {}))
    (statement,) = sqlglot.transpile(made.sql, read="spark", write="postgres")
    type_, values = ODD[kind]
    random, parts = Random(kind), ("sale_kept", "sale_deleted", "sale_inserted")
    grouped = "SELECT x, count(*), sum(a), count(a) FROM {} AS t (i, x, a) GROUP BY x"
    either = "(SELECT * FROM sale_kept UNION ALL SELECT * FROM {})"
    with psycopg.connect(postgres, autocommit=True) as connection, connection.cursor() as cursor:
        for name in parts:
            cursor.execute(
                f"DROP TABLE IF EXISTS {name}; CREATE TABLE {name} (i int, x {type_}, a numeric(15,2))"
            )
        rows = [(x, random.choice(AMOUNTS)) for x in values for _ in range(random.randrange(1, 6))]
        for number, row in enumerate(rows):
            cursor.execute(f"INSERT INTO {random.choice(parts)} VALUES (%s, %s, %s)", (number, *row))
        columns = ", ".join(f'"{column}"' for column in found.view("v").columns)
        before = grouped.format(either.format("sale_deleted"))
        cursor.execute(f"DROP TABLE IF EXISTS v; CREATE TABLE v ({columns}) AS {before}")
        cursor.execute(statement.encode())
        after = cursor.execute("SELECT * FROM v").fetchall()
        expected = cursor.execute(grouped.format(either.format("sale_inserted"))).fetchall()
    assert Counter(map(repr, after)) == Counter(map(repr, expected))
