"""Top-down evaluation against meaning.

Oracle: the rows that the definition gives, computed row by row (`sql_programs.meaning`), which shares no code with
what is evaluated set by set here. What is given is fetched whole, or looked up by keys in relations that are taken
to be stored in no order or in that of their first column; then an answer may be out of reach, but never wrong.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datalog.model import Atom, Predicate, Program, Row, Rule, Variable
from selfmaint.engine.lookups import Lookups, near_rows
from selfmaint.engine.memory import MemoryEngine
from selfmaint.engine.protocol import Facts
from selfmaint.engine.topdown import OutOfReachError, TopDown
from tests.lookup_engine import LookupEngine
from tests.property.sql_programs import PLAIN, Generator, meaning, random_facts, relations

STORED = relations([*PLAIN, "boolean"])
randoms = st.randoms(use_true_random=False)


def evaluation(
    program: Program, facts: dict[Predicate, frozenset[Row]], engine: MemoryEngine, limit: int
) -> TopDown:
    return TopDown(program, Lookups(engine, limit).over(Facts(facts)))


@given(random=randoms)
def test_what_is_fetched_whole_gives_the_meaning(random: Random) -> None:
    program, goal, types = Generator(random, STORED).program()
    facts = random_facts(random, STORED)
    found = evaluation(program, facts, MemoryEngine(), 10_000).extension(goal, len(types))
    assert found == meaning(program, goal, facts)


@given(random=randoms, engine=st.sampled_from([LookupEngine(), LookupEngine(ordered_by=0)]))
def test_what_is_looked_up_gives_the_meaning_or_nothing(random: Random, engine: LookupEngine) -> None:
    """Every rule starts at a small relation, so that there is something to look up with."""
    program, _, _ = Generator(random, STORED).program()
    facts = random_facts(random, STORED)
    small = Predicate("small")
    given_ = {**facts, small: frozenset(row[:1] for row in facts[STORED[0].predicate])}
    rules = []
    for rule in program.rules:
        start = Atom(small, (next(iter(_variables(rule)), Variable("Other")),))
        rules.append(replace(rule, body=(start, *rule.body)))
    anchored = Program(tuple(rules))
    held = Facts(given_, small=frozenset({small}))
    queries = TopDown(anchored, Lookups(engine, random.choice((3, 1000))).over(held))
    for predicate in anchored.heads:
        arity = anchored.rules_for(predicate)[0].head.arity
        found = near_rows(queries, predicate, arity)
        assert found is None or found == meaning(anchored, predicate, given_)


def _variables(rule: Rule) -> list[Variable]:
    """The variables of a rule's positive atoms that could hold values of the small relation."""
    return [
        t
        for literal in rule.body
        if isinstance(literal, Atom)
        for t in literal.terms[:1]
        if isinstance(t, Variable)
    ]


def test_what_was_out_of_reach_once_is_not_taken_for_empty() -> None:
    """Two goals share a subquery that has more rows than may be held."""
    x, y = Variable("X"), Variable("Y")
    r, s, p, q = (Predicate(name) for name in "rspq")
    shared = Rule(Atom(s, (x, y)), (Atom(r, (x, y)),))
    program = Program(
        (shared, Rule(Atom(p, (x,)), (Atom(s, (x, y)),)), Rule(Atom(q, (y,)), (Atom(s, (x, y)),)))
    )
    facts = {r: frozenset((n, n) for n in range(9))}
    queries = evaluation(program, facts, MemoryEngine(), 5)
    for goal in (p, q, p):
        with pytest.raises(OutOfReachError):
            queries.extension(goal, 1)
