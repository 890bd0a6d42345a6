"""Everything that `selfmaint sql` prints for the examples and for random warehouses, run by Spark against data.

Oracles: for tests, probes and the rows of plain views the reference evaluator over the printed rules, which sees
nothing of the SQL; for what statements do, the views evaluated by the definition after the update; for what rows of
tests mean, `check` in memory. One query runs all printed queries of a warehouse.
"""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from datalog.evaluate import Evaluator
from datalog.model import Predicate, Row, Version
from datalog.rewrite.reachable import predicates_of
from datalog.syntax import parse_program
from selfmaint.api.explain import Explanation
from selfmaint.api.file.programs import catalog_of_path
from selfmaint.api.file.warehouse_file import read_warehouse_file
from selfmaint.api.printing.printed import Statement, StatementKind
from selfmaint.api.printing.statements import statements, tables_of
from selfmaint.countermodel.databases import Evaluation
from selfmaint.decide.counterexample import counterexample
from selfmaint.decide.verdict import NotSelfMaintainable, SelfMaintainable
from selfmaint.report.explanation import script
from selfmaint.warehouse.catalog import GroupedView, View, catalog
from tests.effort import effort
from tests.many_statements import interpreting_session
from tests.oracle.aggregates import Schema
from tests.oracle.random_stars import random_bag_above, random_roll_up, random_star
from tests.selfmaint.api.printing.printed_cases import Case, example, facts_of, stars, verdicts_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXAMPLES = Path(__file__).resolve().parents[4] / "examples"
ROWS = (
    StatementKind.HELD,
    StatementKind.TEST,
    StatementKind.PROBE,
    StatementKind.GAINED,
    StatementKind.LOST,
)
"""Queries that are rules too."""


# ------------------------------------------------------------------------------------------ in Spark


def literal(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case int():
            return f"{value}L"
        case dt.datetime():
            return f"TIMESTAMP '{value}'"
        case dt.date():
            return f"DATE '{value}'"
        case Decimal():
            return f"{value}BD"
        case _:
            return f"'{value}'"


def bind(spark: SparkSession, name: str, columns: Sequence[str], rows: Iterable[Row]) -> None:
    """Rows as a temporary view; of a column without values only the null is known."""
    every = sorted(rows, key=repr)
    none = ", ".join(["NULL"] * len(columns))
    values = ", ".join(f"({', '.join(map(literal, row))})" for row in every) or f"({none})"
    names = ", ".join(f"`{c}`" for c in columns)
    where = "" if every else " WHERE FALSE"
    query = f"SELECT * FROM VALUES {values} AS t({names}){where}"
    spark.sql(query).createOrReplaceTempView(name)  # is not analyzed anew wherever it is named


def printed(spark: SparkSession, case: Case) -> dict[str, tuple[Statement, ...]]:
    """What is printed for each view, its tables bound in the session."""
    schema, tables = case.schema, tables_of(case.schema, {})
    for view_name, rows in Evaluation(schema).contents(case.before).items():
        view = schema.view(view_name)
        at = tables[view.predicate.of(Version.BAG) if view.is_counted else view.predicate]
        bind(spark, at.name[-1], view.stored_columns, rows.elements())
    for name, relation in schema.relations.items():
        for version in (Version.INSERTED, Version.DELETED):
            at = tables[Predicate(name, version)]
            bind(spark, at.name[-1], relation.columns, case.part(version, name))
    return {view.name: statements(case.decision, view, case.situation, tables) for view in schema.views}


def query(statement: Statement) -> str | None:
    """The query in a printed statement, as it is printed."""
    sql = statement.sql
    match statement.kind:
        case StatementKind.MERGE:
            return sql.partition("USING (\n")[2].rpartition("\n) AS `changes`")[0]
        case StatementKind.CHANGES:
            return sql.partition(" AS\n")[2]
        case StatementKind.COUNTED | StatementKind.DELETE | StatementKind.INSERT:
            return None
        case StatementKind.HELD:
            return f"SELECT * FROM `{statement.name}`"
        case _:
            return sql


def goal_of(statement: Statement) -> Predicate:
    """The predicate whose rows a statement gives: of held rows the one that no other rule reads."""
    read = {p for rule in statement.program.rules for p in predicates_of(rule.body)}
    (goal,) = {
        r.head.predicate
        for r in statement.program.rules
        if (
            r.head.predicate not in read
            if statement.kind is StatementKind.HELD
            else str(r.head.predicate) == statement.name
        )
    }
    return goal


def answers(spark: SparkSession, queries: Sequence[str]) -> list[Counter[Row]]:
    """The rows of some queries, by one query."""
    every = "\nUNION ALL\n".join(
        f"SELECT {n} AS n, to_json(struct(*), map('ignoreNullFields', 'false')) AS r FROM (\n{q}\n)"
        for n, q in enumerate(queries)
    )
    found: list[Counter[Row]] = [Counter() for _ in queries]
    for n, text in spark.sql(every).collect():
        found[n][tuple(json.loads(text, parse_float=Decimal, object_pairs_hook=list_of_values))] += 1
    return found


def list_of_values(pairs: list[tuple[str, Any]]) -> list[Any]:
    return [value for _, value in pairs]


def plain(rows: Iterable[Row]) -> Counter[Row]:
    """Rows as JSON has them."""

    def value(given: Any) -> Any:
        match given:
            case dt.datetime():
                return given.isoformat(timespec="milliseconds") + "Z"
            case dt.date():
                return given.isoformat()
            case _:
                return given

    return Counter(tuple(map(value, row)) for row in rows)


# ------------------------------------------------------------------------------------------ what it has to be


@dataclass
class Held:
    """What was compared."""

    queries: int = 0
    followed: int = 0
    with_rows: int = 0
    kept: int = 0
    proved: int = 0
    unsettled: int = 0


def applied(view: View, stored: Counter[Row], found: Mapping[StatementKind, Counter[Row]]) -> Counter[Row]:
    """The stored rows after what is printed: a plain view's delta, a MERGE, or DELETE and INSERT of a bag."""
    if StatementKind.MERGE in found or StatementKind.CHANGES in found:
        rows = found.get(StatementKind.MERGE) or found.get(StatementKind.CHANGES) or Counter()
        assert isinstance(view, GroupedView)
        keys = [i for i in view.grouped.columns if i < len(view.stored_columns)]
        after = Counter(
            {
                r: n
                for r, n in stored.items()
                if all([r[i] for i in keys] != [new[i] for i in keys] for new in rows)
            }
        )
        for *row, there in rows:
            copies = row.pop() if view.is_counted else 1
            if there:
                after[tuple(row)] += copies
        return after
    gained, lost = found.get(StatementKind.GAINED, Counter()), found.get(StatementKind.LOST, Counter())
    assert lost <= stored
    assert not gained & stored
    return stored - lost + gained


def hold(spark: SparkSession, cases: Sequence[Case]) -> Held:
    held = Held()
    for case in cases:
        session = interpreting_session(spark)
        hold_case(session, case, held)
        session.catalog.clearCache()
    return held


def hold_case(spark: SparkSession, case: Case, held: Held) -> None:
    made = printed(spark, case)
    parser = spark._jsparkSession.sessionState().sqlParser()
    first = (StatementKind.COUNTED, StatementKind.HELD)
    for before in {s.sql: s for found in made.values() for s in found if s.kind in first}.values():
        spark.sql(before.sql)
        if before.kind is StatementKind.HELD:  # its rows, not analyzed anew wherever it is named
            spark.table(f"`{before.name}`").localCheckpoint().createOrReplaceTempView(f"`{before.name}`")
    asked = [(view, s, q) for view, found in made.items() for s in found if (q := query(s)) is not None]
    for statement in (s for found in made.values() for s in found):
        parser.parsePlan(statement.sql)
    rows = answers(spark, [q for _, _, q in asked]) if asked else []
    facts = facts_of(case)
    evaluated: dict[str, dict[StatementKind, Counter[Row]]] = {view: {} for view in made}
    proofs: dict[str, list[Statement]] = {view: [] for view in made}
    for (view, statement, _), found in zip(asked, rows, strict=True):
        held.queries += 1
        held.with_rows += bool(found)
        held.kept += statement.kind is StatementKind.HELD
        if statement.kind in ROWS:
            goal = goal_of(statement)
            expected = plain(Evaluator(statement.program, facts.relations).extension(goal))
            if not statement.program.rules_for(goal)[0].head.arity:
                expected = Counter({(True,): 1}) if expected else Counter()
            assert found == expected, f"{statement.name}\n{statement.sql}"
        if found and statement.exact is not None:
            proofs[view].append(statement)
        evaluated[view][statement.kind] = evaluated[view].get(statement.kind, Counter()) + found
    hold_verdicts(spark, case, evaluated, proofs, held)


def hold_verdicts(
    spark: SparkSession,
    case: Case,
    evaluated: Mapping[str, Mapping[StatementKind, Counter[Row]]],
    proofs: Mapping[str, Sequence[Statement]],
    held: Held,
) -> None:
    """No rows of tests and of open groups: yes, and what is printed gives the new state. Exact rows: no."""
    verdicts, known = verdicts_of(case)
    before, after = (Evaluation(case.schema).contents(d) for d in (case.before, case.after))
    scripts = []
    for view in case.schema.views:
        verdict = verdicts[view.name]
        if not view.is_decided:
            continue
        shown = f"{view.name}: {verdict}\n{case.before}\n{case.after}"
        if not proofs[view.name]:
            assert isinstance(verdict, SelfMaintainable), shown
            stored = applied(view, plain(before[view.name].elements()), evaluated[view.name])
            assert stored == plain(after[view.name].elements()), shown
            held.followed += 1
        elif any(s.exact for s in proofs[view.name]):
            assert isinstance(verdict, NotSelfMaintainable), shown
            held.proved += 1
            two = counterexample(known, verdict.witnesses[0])
            explained = Explanation(view, case.situation, verdict, (), (), two, (), {}, ())
            scripts.append(script(explained, two))
        else:
            held.unsettled += isinstance(verdict, SelfMaintainable)
    hold_scripts(spark, scripts)


def hold_scripts(spark: SparkSession, scripts: Sequence[str]) -> None:
    """`explain --sql`: the first two queries give the same rows, the last two differ."""
    queries = [q for one in scripts for q in one.rstrip().removesuffix(";").split(";\n")]
    rows = answers(spark, queries) if queries else []
    for at in range(0, len(rows), 4):
        assert rows[at] == rows[at + 1]
        assert rows[at + 2] != rows[at + 3]


# ------------------------------------------------------------------------------------------ tests

EXAMPLE_CATALOGS = {
    "paper": ("paper/warehouse.dl", ("r", "s", "t")),
    "star": ("star/views.sql", ("sales", "customers")),
    "tpch": ("tpch/views.dl", ("orders", "lineitem")),
    "cheapest": ("sql/cheapest.sql", ("partsupp",)),
    "orders": ("sql/orders.sql", ("lineitem",)),
    "retail": ("sql/retail.sql", ("customer", "sales")),
    "dbt": ("dbt/warehouse.toml", ()),
    "feeds": ("feeds/views.dl", ()),
}
"""A program or warehouse file, and which relations change; all of them if none are named."""

ALIASES = """
.decl r(x: bigint not null, y: bigint not null) key(x). .decl s(y: bigint not null, z: bigint not null).
.decl t(z: bigint not null).
v1(I, D, Z) :- r(I, D), s(D, Z), t(Z).
v2(D, Z) :- s(D, Z).
net(D, count(*), sum(I)) :- r(I, D).
"""
"""Columns named like the aliases of inserted and deleted rows, and a view named like a step of its MERGE."""


def of_example(name: str) -> Case:
    path, touched = EXAMPLE_CATALOGS[name]
    full = EXAMPLES / path
    schema = read_warehouse_file(full).catalog if full.suffix == ".toml" else catalog_of_path(full)
    return example(schema, touched or tuple(schema.relations), 0)


def test_what_is_printed_for_the_examples(spark: SparkSession) -> None:
    held = hold(spark, [of_example(name) for name in EXAMPLE_CATALOGS])
    assert held.queries > 60  # 69 to 77, by the order of sets
    assert held.with_rows > 25
    assert held.kept
    assert held.followed > 15
    assert held.proved


def test_names_that_could_hide_others(spark: SparkSession) -> None:
    schema = catalog(parse_program(ALIASES))
    held = hold(spark, [example(schema, ("r", "s", "t"), seed) for seed in range(effort(1, 6))])
    assert held.with_rows > 5


@pytest.mark.parametrize(("make", "seed"), [(random_star, 1), (random_roll_up, 0), (random_bag_above, 0)])
def test_what_is_printed_for_random_warehouses(
    spark: SparkSession, make: Callable[[Random], Schema], seed: int
) -> None:
    held = hold(spark, stars(make, seed))
    assert held.with_rows > 3
    assert held.followed
