"""The audit beside views that group or keep duplicates: an "always" is true whatever they hold.

Oracle: `tests/oracle/aggregates.py`, which lists every database over small domains and shares no code with the product.
Where the audit says "always" of a view, all databases that explain what is known must give it one new state.
"""

from __future__ import annotations

from random import Random

import pytest

from datalog.copies import replace
from datalog.syntax import parse_program
from selfmaint.api.file.programs import catalog_of
from selfmaint.audit.changes import ANYTHING, Change, Kind
from selfmaint.audit.example import Always, Depends, Unclear
from selfmaint.audit.search import Search
from selfmaint.warehouse.catalog import catalog
from selfmaint.warehouse.situation import Situation
from tests.oracle.aggregates import Question, Schema, View, questions
from tests.oracle.random_groups import random_groups
from tests.oracle.random_stars import random_star

SCHEMAS, UPDATES, KNOWN = 6, 4, 4


def with_plain_views(schema: Schema) -> Schema:
    """Beside each view that groups the one that keeps all its variables."""
    plain = tuple(
        View(f"p_{v.name}", tuple(dict.fromkeys(_variables(v))), (), v.body, v.compared) for v in schema.views
    )
    return replace(schema, views=(*schema.views[1:], plain[0]))


def _variables(view: View) -> list[str]:
    return [term for _, terms in view.body for term in terms if isinstance(term, str)]


def kinds_of(question: Question) -> list[Change]:
    """The kinds of change that an update is of: any mix on one relation or on all."""
    changed = {n for part in (question.inserted, question.deleted) for n, rows in part.items() if rows}
    return [ANYTHING, *(Change(Kind.ANY, name) for name in changed if len(changed) == 1)]


@pytest.mark.parametrize(("block", "bags"), [*((block, 0.0) for block in range(4)), (4, 0.9)])
def test_always_holds_beside_groups_and_bags(block: int, bags: float) -> None:
    for seed in range(block * SCHEMAS, (block + 1) * SCHEMAS):
        random = Random(seed)
        always_holds(with_plain_views(random_star(random, bags)), random)


@pytest.mark.parametrize("block", range(2))
def test_always_holds_of_averages(block: int) -> None:
    """Beside a view of all sales, too, where lost extrema and last rows leave nothing open."""
    seen = 0
    for seed in range(block * SCHEMAS, (block + 1) * SCHEMAS):
        random = Random(seed)
        schema = random_groups(random)
        seen += always_holds(with_plain_views(schema) if seed % 2 else schema, random)
    assert seen


def always_holds(schema: Schema, random: Random) -> int:
    """How often the audit says "always" of a view that a question is about; each time it has one new state."""
    search, found = Search(catalog(parse_program(schema.text)), Situation(effective=True)), 0
    for question in questions(schema, random, UPDATES, KNOWN):
        for view in search.catalog.views:
            for change in kinds_of(question):
                if isinstance(search.outcome(view, change), Always):
                    found += 1
                    assert len(question.states[view.name]) == 1, (schema.text, view.name, change, question)
    return found


@pytest.mark.parametrize(
    "measures", ["sum(fare)", "max(fare)", "count(*), sum(fare), avg(fare)", "min(fare), count(fare)"]
)
def test_groups_of_a_table_that_a_view_tells_always_follow(measures: str) -> None:
    """No count says whether a group or a sum of it goes: its rows do, as `check` says on any data."""
    table = "create table ride (id int primary key, status int not null, fare int);"
    grouped = f"create view v as select status, {measures} from ride group by status;"
    told = catalog_of(f"{table} create view rides as select * from ride; {grouped}")
    search = Search(told, Situation(effective=True))
    assert isinstance(search.outcome(told.view("v"), ANYTHING), Always)
    alone = catalog_of(f"{table} {grouped}")
    assert not isinstance(Search(alone, Situation(effective=True)).outcome(alone.view("v"), ANYTHING), Always)


def test_what_a_group_leaves_open_is_said_beside_a_text() -> None:
    made = catalog_of(
        """create table ride (id int primary key, status int not null, fare int);
        create view v as select status, count(*) as n, sum(fare) as s from ride group by status;
        create view w as select id, sum(fare) over (order by rand()) as s from ride;"""
    )
    outcome = Search(made, Situation(effective=True)).outcome(made.view("v"), Change(Kind.DELETE, "ride"))
    assert isinstance(outcome, Unclear)
    assert "may be the sum of no value" in outcome.reasons[0]


def test_a_row_that_only_a_group_proves_is_in_the_least_warehouse() -> None:
    program = """
        .decl r(a: int not null, b: int not null) key(a, b).
        .decl t(b: int not null, d: int not null) key(b, d).
        .decl q(d: int not null, e: int not null) key(d, e).
        w(A, B, count(*)) :- r(A, B).
        v(A, B, D, E) :- r(A, B), t(B, D), q(D, E).
    """
    search = Search(catalog(parse_program(program)), Situation(effective=True))
    outcome = search.outcome(search.catalog.view("v"), Change(Kind.INSERT, "t"))
    assert isinstance(outcome, Depends)
    assert [atom.predicate.name for atom in outcome.unknown] == ["q"]


def test_a_full_group_of_the_least_warehouse_is_not_full_in_others() -> None:
    program = """
        .decl r(a: int not null, b: int not null) key(a).
        .decl s(b: int not null, c: int not null) key(b).
        n(B, count(*)) :- r(A, B).
        first(B) :- r(1, B).
        v(B, A, C) :- r(1, B), r(A, B), s(B, C).
    """
    search = Search(catalog(parse_program(program)), Situation(effective=True))
    assert not isinstance(search.outcome(search.catalog.view("v"), Change(Kind.INSERT, "s")), Always)
