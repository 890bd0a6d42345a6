"""What `selfmaint sql` prints: its names, and what its tests say that rows mean."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
import sqlglot
from sqlglot import exp

from datalog.evaluate import Evaluator
from datalog.model import Program, Rule
from datalog.sql import Table
from datalog.sql.merge import delete_changed
from datalog.sql.text import text
from datalog.syntax import parse_program
from selfmaint.api.file.programs import catalog_of_path
from selfmaint.api.printing.printed import Statement, StatementKind
from selfmaint.api.printing.statements import not_printed, statements, tables_of
from selfmaint.canonical.rules import after_rules
from selfmaint.decide.decision import Decision
from selfmaint.fallback.probes import options
from selfmaint.warehouse.catalog import Catalog, catalog
from selfmaint.warehouse.situation import Situation
from tests.oracle.aggregates import Schema
from tests.oracle.random_stars import random_roll_up, random_star
from tests.selfmaint.api.printing.printed_cases import facts_of, stars

SELF_REFERENCE = """
create table ord (
  o_id bigint not null, o_cust bigint not null, o_ref bigint,
  primary key (o_id), foreign key (o_ref) references ord (o_id)
);
create view v1 as select o_id, o_cust, o_ref from ord where o_cust > 0;
create view v2 as
  select a.o_cust as k, count(*) as n, min(b.o_cust) as m from ord a join ord b on a.o_ref = b.o_id group by a.o_cust;
"""
STEPS = """
.decl sale(id: bigint not null, shop: bigint not null, price: bigint not null) key(id)
    foreign(shop) references shop(id).
.decl shop(id: bigint not null, region: string not null) key(id).
net(R, count(*), sum(P), max(P)) :- sale(I, S, P), shop(S, R).
gained_rows(I, S, P) :- sale(I, S, P), P > 0.
lost(S, R) :- shop(S, R).
"""


def printed(schema: Catalog, name: str, *, effective: bool = True) -> tuple[Statement, ...]:
    situation = Situation.any_update(schema.relations, effective=effective)
    return statements(Decision(schema), schema.view(name), situation, tables_of(schema, {}))


def common(statement: Statement) -> list[str]:
    """The names of the common table expressions of a whole statement, at whatever depth, as Spark compares them."""
    tree = sqlglot.parse_one(statement.sql, dialect="spark")
    return [expression.alias.casefold() for expression in tree.find_all(exp.CTE)]


@pytest.fixture
def self_reference(tmp_path: Path) -> Catalog:
    path = tmp_path / "views.sql"
    path.write_text(SELF_REFERENCE, encoding="utf-8")
    return catalog_of_path(path)


def test_no_common_table_expression_is_named_twice(self_reference: Catalog) -> None:
    """Gained and lost rows both read what is known of `ord`: it is written once."""
    found = {s.kind: s for s in printed(self_reference, "v2")}
    for kind in (StatementKind.OPEN, StatementKind.MERGE):
        names = common(found[kind])
        assert {"ord_known", "gained", "lost"} <= set(names)
        assert max(Counter(names).values()) == 1, kind


def test_no_step_hides_a_table() -> None:
    """Views that are named like the steps of a MERGE are read all the same."""
    schema = catalog(parse_program(STEPS))
    found = {s.kind: s for s in printed(schema, "net")}
    for kind in (StatementKind.OPEN, StatementKind.MERGE):
        names = common(found[kind])
        assert max(Counter(names).values()) == 1
        assert not {"net", "gained_rows", "lost"} & set(names), names
        assert {"net", "gained_rows", "lost"} <= set(found[kind].reads)


def test_a_table_named_like_its_column_is_renamed_where_it_is_deleted_from() -> None:
    bag, changes = Table(("total",), ("total", "a")), Table(("c",), ("total", "a", "copies", "is_there"))
    assert text(delete_changed(bag, changes), pretty=False) == (
        "DELETE FROM `total` AS `total2` WHERE EXISTS(SELECT 1 FROM `c` AS `changes`"
        " WHERE `changes`.`total` IS NOT DISTINCT FROM `total2`.`total`"
        " AND `changes`.`a` IS NOT DISTINCT FROM `total2`.`a`)"
    )


def test_nothing_is_printed_for_groups_if_the_update_may_not_be_effective() -> None:
    """A row that was there before would be counted again; a plain view beside is printed."""
    schema = catalog(parse_program(STEPS))
    unknown = Situation.any_update(schema.relations)
    assert printed(schema, "net", effective=False) == ()
    assert "effective" in (not_printed(schema, schema.view("net"), unknown) or "")
    assert not_printed(schema, schema.view("net"), Situation.any_update(["other"])) is None
    assert printed(schema, "lost", effective=False)
    assert printed(schema, "net")


def test_rows_of_a_test_prove_a_no_only_where_no_group_is_asked() -> None:
    alone = catalog(parse_program("v1(X, Y, Z) :- r(X, Y), s(Y, Z), t(Z). v2(Y, Z) :- s(Y, Z)."))
    tests = [s for s in printed(alone, "v1") if s.kind is StatementKind.TEST]
    assert tests
    assert all(s.exact and s.about.endswith("`v1` is self-maintainable iff no test has rows") for s in tests)
    program = "v1(X, Y, Z) :- r(X, Y), s(Y, Z), t(Z). v2(Y, Z) :- s(Y, Z). g(X, count(*)) :- r(X, Y)."
    declared = (
        ".decl r(x: bigint not null, y: bigint) key(x). .decl s(y: bigint, z: bigint). .decl t(z: bigint).\n"
    )
    beside = catalog(parse_program(declared + program))
    tests = [s for s in printed(beside, "v1") if s.kind is StatementKind.TEST]
    assert tests
    for one in tests:
        assert one.exact is False
        assert "`v1` is self-maintainable if no test has rows; rows of this one do not settle it" in one.about
    others = {s.kind: s.exact for s in printed(beside, "v1") if s.kind is not StatementKind.TEST}
    assert set(others.values()) == {None}


@pytest.mark.parametrize(("make", "seed"), [(random_star, 2), (random_star, 8), (random_roll_up, 1)])
def test_less_is_printed_than_is_asked_and_says_the_same(make: Callable[[Random], Schema], seed: int) -> None:
    """Some printed test has rows iff some test has; every key that a test's rows ask for is looked up.

    Oracle: the reference evaluator over the whole test, its rules as they are found and nothing made smaller.
    """
    failing = 0
    for case in stars(make, seed):
        facts = facts_of(case).relations
        for view in case.schema.views:
            if not view.is_decided:
                continue
            rules = case.decision.depends(view, case.situation)
            asked = Program(
                (
                    *(Rule(each.head, (*body, *each.negative)) for each in rules for body in each.positive),
                    *case.decision.known(case.situation),
                    *after_rules(case.schema, case.situation),
                )
            )
            whole = Evaluator(asked, facts)
            found = statements(case.decision, view, case.situation, tables_of(case.schema, {}))
            rows = {
                s.name: Evaluator(s.program, facts).extension(goal)
                for s in found
                if s.kind in (StatementKind.TEST, StatementKind.PROBE)
                for goal in s.program.heads
                if str(goal) == s.name
            }
            has_rows = any(rows[s.name] for s in found if s.kind is StatementKind.TEST)
            assert has_rows == any(whole.extension(each.goal) for each in rules)
            failing += has_rows
            for each in rules:
                for probe in options(case.schema, each) if whole.extension(each.goal) else ():
                    keys = Evaluator(Program((*probe.program.rules, *asked.rules)), facts).extension(
                        probe.keys
                    )
                    assert not probe.columns or keys <= rows[str(probe.keys)]
    assert failing
