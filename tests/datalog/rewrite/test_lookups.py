"""Rows that several programs use are held once, and the programs over them mean what they meant.

Oracle: the meaning of the program as it was (`sql_programs.meaning`), for each of several goals, on random databases.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datalog.evaluate import evaluate
from datalog.model import Atom, Predicate, Program, Rule, Variable
from datalog.rewrite import demand, held_apart
from datalog.rewrite.in_place import widened
from datalog.rewrite.inline import inline
from datalog.rewrite.lookups import Held
from datalog.rewrite.reachable import predicates_of
from datalog.syntax import parse_program, show
from tests.datalog.rewrite.test_meaning import STORED, TIGHT, Tight, randoms
from tests.datalog.sql.sql_programs import Generator, meaning, random_facts

NEW = Predicate("new")


def demanded(
    program: Program, goals: Iterable[Predicate], small: Iterable[Predicate]
) -> list[tuple[Program, Predicate]]:
    few = frozenset(small)
    return [(widened(demand(program, [goal], few, together=False)), goal) for goal in goals]


def in_one(program: Program, goal: Predicate) -> Program:
    """The rules that are left for one query."""
    return Program(tuple(chain(*inline(program, goal).values())))


@given(random=randoms, tight=st.booleans(), number=st.integers(2, 4))
def test_programs_over_held_rows_mean_the_same(random: Random, tight: bool, number: int) -> None:
    stored = TIGHT if tight else STORED
    program, _, _ = (Tight if tight else Generator)(random, stored).program()
    heads = sorted({*program.heads}, key=str)
    of = {Predicate(f"goal{n}"): random.choice(heads) for n in range(number)}
    rules = list(program.rules)
    for goal, head in of.items():
        terms = tuple(Variable(f"X{i}") for i in range(program.rules_for(head)[0].head.arity))
        rules.append(Rule(Atom(goal, terms), (Atom(head, terms),)))
    tables = {p for rule in program.rules for p in predicates_of(rule.body)} - {*program.heads}
    small = {p for p in sorted(tables, key=str) if random.random() < 0.5}
    held, programs = held_apart(demanded(Program(tuple(rules)), of, small))
    for _ in range(2):
        facts = dict(random_facts(random, stored))
        base = dict(facts)
        for one in held:
            facts[one.rows] = evaluate(in_one(one.program, one.rows), one.rows, facts)
            assert evaluate(one.whole, one.rows, base) == facts[one.rows]
        for (goal, head), over in zip(of.items(), programs, strict=True):
            assert evaluate(in_one(over, goal), goal, facts) == meaning(program, head, base), show(program)


def held_of(text: str, *goals: str) -> tuple[tuple[Held, ...], tuple[Program, ...]]:
    return held_apart(demanded(parse_program(text), map(Predicate, goals), [NEW]))


LOOKUPS = "p(X, Z) :- new(X, Y), r(Y, Z, _). q(X) :- new(X, Y), r(Y, _, _)."


def test_what_two_goals_look_up_by_the_same_values_is_held_with_the_columns_of_both() -> None:
    held, programs = held_of(LOOKUPS, "p", "q")
    (one,) = held
    assert one.rows.name == "r"
    assert one.by == (0,)
    assert [rule.head.arity for rule in one.program.rules_for(one.rows)] == [2]
    assert all(one.rows in {p for r in made.rules for p in predicates_of(r.body)} for made in programs)
    assert held_of(LOOKUPS, "p")[0] == ()


@pytest.mark.parametrize(
    "text",
    [
        "p(X, Z) :- new(X, Y), r(Y, Z, _). q(X, Z) :- new(X, Y), r(Y, _, Z).",  # neither has the other's columns
        "p(X, Z) :- new(X, Y), r(Y, Z, _). q(X, Z) :- new(Y, X), r(Y, Z, _).",  # of other values
    ],
)
def test_rows_of_other_columns_or_values_are_apart(text: str) -> None:
    assert held_of(text, "p", "q")[0] == ()


def test_what_a_goal_finds_is_held_for_another_that_reads_it() -> None:
    held, programs = held_of("p(X, Y) :- new(X, Y), r(Y, X, _). q(X) :- p(X, _).", "p", "q")
    (one,) = held
    assert one.rows.name == "p"
    assert [len(rule.body) for made in programs for rule in made.rules] == [1, 1]
    assert {p for made in programs for r in made.rules for p in predicates_of(r.body)} == {one.rows}


def test_what_a_negation_looks_up_is_held_for_one_program() -> None:
    (one,), _ = held_of("p(X, Y) :- new(X, Y), not r(Y, _, _).", "p")
    assert (one.rows.name, one.by) == ("r", (0,))
    assert held_of("p(X, Z) :- new(X, Y), r(Y, Z, _).", "p")[0] == ()
