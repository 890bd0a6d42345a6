"""Subgoals that foreign keys give exactly one row for are left out of cores, and views mean what they meant.

Oracle: the definitions as written, evaluated on databases that keep the constraints.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from datalog.evaluate import evaluate, evaluate_view
from datalog.model import Constant, Predicate, Program, Row, Rule, Term, Value, Variable, ViewDefinition
from datalog.rewrite import guard_joins
from datalog.syntax import parse_program
from selfmaint.warehouse.catalog import GroupedView, View, catalog
from tests.effort import effort

DECLARED = """
    .decl r(k: int not null, a: int, b: int not null) key(k) foreign(a) references s(k) foreign(b) references s(k).
    .decl s(k: int not null, t: int, x: int) key(k) unique(x) foreign(t) references t(k) foreign(x) references r(k).
    .decl t(k: int not null, n: int not null, m: int not null) key(k).
    .decl p(c: int, d: int) foreign(c, d) references q(c, d) foreign(c) references t(k).
    .decl q(c: int, d: int, e: int) unique(d, c).
"""
ARITIES = {"r": 3, "s": 3, "t": 3, "p": 2, "q": 3}


def database(random: Random) -> dict[str, set[Row]]:
    """Rows that keep the constraints."""
    few: tuple[Value, ...] = (1, 2, None)

    def some(*columns: tuple[Value, ...]) -> set[Row]:
        return {tuple(random.choice(column) for column in columns) for _ in range(random.randint(0, 3))}

    t = {(k, random.choice((1, 2)), random.choice((1, 2))) for k in (1, 2) if random.random() < 0.8}
    q = {(1, d, random.choice(few)) for d in few if random.random() < 0.8}
    keys = tuple(k for k, _, _ in t)
    s = {(k, random.choice((*keys, None)), None) for k in (1, 2) if random.random() < 0.8}
    there = tuple(k for k, _, _ in s)
    r = {(k, random.choice((*there, None)), random.choice(there)) for k in (1, 2) if there}
    s = {(k, one, k if r and random.random() < 0.7 else None) for k, one, _ in s}
    p = {
        (c, d)
        for c, d in some((*keys, None), few)
        if c is None or d is None or (c, d) in {(x, y) for x, y, _ in q}
    }
    return {"r": r, "s": s, "t": t, "p": p, "q": q}


def body(random: Random) -> tuple[str, list[str]]:
    """Some subgoals that join where foreign keys do, or elsewhere, and a test; with its variables."""
    first = random.choice(("r", "r", "s", "p"))
    atoms = [(first, [f"V{i}" for i in range(ARITIES[first])])]
    for step in range(random.randint(1, 3)):
        name = random.choice(("s", "t", "q", "r"))
        terms = [f"W{step}{i}" for i in range(ARITIES[name])]
        over = random.choice(atoms)[1]
        for i in range(2 if name == "q" else 1):
            terms[i] = over[
                i if name == "q" and random.random() < 0.7 and i < len(over) else random.randrange(len(over))
            ]
        if random.random() < 0.2:
            terms[-1] = random.choice(("1", terms[0], terms[-2], "V0", "null"))
        atoms.append((name, terms))
    names = sorted({t for _, terms in atoms for t in terms if t[0] in "VW"})
    test = random.choice(
        ("", "", "", f", {random.choice(names)} is not null", f", {random.choice(names)} = 1")
    )
    return ", ".join(f"{name}({', '.join(terms)})" for name, terms in atoms) + test, names


def matches(view: View, terms: list[Term], rows: dict[str, set[Row]]) -> Counter[Row]:
    """How often each row of terms is one of a core's matches."""
    assert isinstance(view, GroupedView)
    rule = Rule(view.core.head, (*view.core.body, *view.core.filters))
    facts = {Predicate(name): frozenset(its) for name, its in rows.items()}
    places = {term: i for i, term in enumerate(view.core.head.terms)}
    found = evaluate(Program((rule,)), rule.head.predicate, facts)
    return Counter(
        tuple(t.value if isinstance(t, Constant) else row[places[t]] for t in terms) for row in found
    )


@pytest.mark.parametrize("seed", range(effort(4, 40)))
def test_what_is_left_of_a_core_has_the_same_matches(seed: int) -> None:
    random = Random(seed)
    fewer = 0
    for _ in range(100):
        text, names = body(random)
        shown = random.sample(names, k=min(len(names), random.randint(1, 3)))
        head = ", ".join(shown)
        schema = catalog(parse_program(f"{DECLARED} g({head}, count(*)) :- {text}. v({head}) :- {text}."))
        grouping, plain = schema.view("g"), schema.view("v")
        fewer += len(plain.body) < text.count("(")
        for _ in range(5):
            rows = database(random)
            facts = {Predicate(name): frozenset(its) for name, its in rows.items()}
            bags = {predicate: Counter(its) for predicate, its in facts.items()}
            written = Program(
                tuple(guard_joins(one) for one in schema.program.rules if one.head.predicate.name == "v")
            )
            if plain.unchanging is None:
                left = Rule(plain.head, (*plain.body, *plain.filters))
                assert evaluate(Program((left,)), plain.predicate, facts) == evaluate(
                    written, Predicate("v"), facts
                ), text
            if isinstance(grouping, GroupedView):
                assert isinstance(grouping.definition, ViewDefinition)
                terms = [grouping.grouped.terms[Variable(name)] for name in shown]
                counted = matches(grouping, terms, rows)
                groups = {(*row, n) for row, n in counted.items()}
                assert set(evaluate_view(grouping.definition, bags)) == groups, text
    assert fewer > 10
