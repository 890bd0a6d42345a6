"""Containment of queries with comparisons and null tests.

Oracle (Klug 1988, by enumeration): the contained query's body is frozen to every database that its terms can make,
over values that are enough for three variables and two constants: between and around the constants three values
each, null, and values of other families where no type excludes them. Each must give the frozen head. Queries are
answered from the definition, trying all rows for all atoms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from datalog.containment import contained_in, contained_in_union
from datalog.model import (
    ANY,
    Atom,
    ColumnType,
    Comparison,
    Constant,
    Literal,
    NullTest,
    Predicate,
    Rule,
    Term,
    Value,
    Variable,
    variables_of,
)
from datalog.syntax import show
from tests.datalog.order.orders import BOOLEAN, INT, NAMES, STRING, compares, kind

P, Q, V = Predicate("p"), Predicate("q"), Predicate("v")
ARITY = {P: 1, Q: 2}
AROUND = [n + Fraction(k, 4) for n in range(3) for k in range(1, 4)]
THEMES: Sequence[tuple[ColumnType, tuple[Value, Value], list[Any]]] = (
    (ANY, (1, 2), [None, 1, 2, *AROUND, "x", "y", True]),
    (INT, (1, 2), [None, *range(-2, 6)]),
    (INT, (1, 4), [None, *range(-2, 8)]),
    (STRING, ("a", "a\0"), [None, *(s + "\0" * n for s in ("", "\1", "a", "a\1") for n in range(4))]),
    (BOOLEAN, (True, False), [None, True, False]),
)


# What is drawn from is made once for all that it depends on: hypothesis looks through each new strategy.


@cache
def fixed(constants: tuple[Constant, ...]) -> st.SearchStrategy[Term]:
    return st.sampled_from(constants)


@cache
def bodies(constants: tuple[Constant, ...], atoms: int) -> st.SearchStrategy[list[Literal]]:
    names: st.SearchStrategy[Term] = st.sampled_from(NAMES)
    term = st.one_of(names, names, names, names, fixed(constants))
    edge = st.builds(lambda x, y: Atom(Q, (x, y)), term, term)
    colour = st.builds(lambda x: Atom(P, (x,)), term)
    return st.lists(st.one_of(edge, edge, colour), min_size=1, max_size=atoms)


@cache
def heads(constant: Constant, own: tuple[Variable, ...]) -> st.SearchStrategy[Term]:
    return st.sampled_from([*own, *own, constant])


@cache
def filters(constants: tuple[Constant, ...], own: tuple[Variable, ...]) -> st.SearchStrategy[list[Literal]]:
    mine: st.SearchStrategy[Term] = st.sampled_from(own)
    operators = st.sampled_from(("=", "!=", "<", "<=", ">", ">="))
    compared = st.builds(Comparison, operators, mine, st.one_of(mine, mine, fixed(constants)))
    tested = st.builds(NullTest, mine, st.booleans())
    return st.lists(st.one_of(compared, compared, compared, tested), max_size=3)


@st.composite
def queries(draw: st.DrawFn, values: Sequence[Value], width: int, atoms: int) -> Rule:
    constants = tuple(map(Constant, values))
    body = draw(bodies(constants, atoms))
    own = variables_of(body)
    head = [draw(heads(constants[0], own)) for _ in range(width)]
    return Rule(Atom(V, tuple(head)), (*body, *(draw(filters(constants, own)) if own else ())))


def key(value: Value) -> tuple[str, Value]:
    return kind(value), value


def freeze(
    query: Rule, values: Mapping[Variable, Value]
) -> tuple[list[Any], dict[Predicate, list[Any]]] | None:
    """The head and the body as rows, if the filters hold of the values."""

    def value(term: Term) -> Value:
        return term.value if isinstance(term, Constant) else values[term]

    for literal in query.body:
        if isinstance(literal, Comparison) and not compares(literal, values):
            return None
        if isinstance(literal, NullTest) and (value(literal.term) is None) == literal.negated:
            return None
    facts: dict[Predicate, list[Any]] = {P: [], Q: []}
    for atom in query.atoms:
        facts[atom.predicate].append([value(t) for t in atom.terms])
    return [key(value(t)) for t in query.head.terms], facts


def answers(query: Rule, facts: Mapping[Predicate, list[Any]], wanted: list[Any]) -> bool:
    for rows in product(*(facts[atom.predicate] for atom in query.atoms)):
        values: dict[Variable, Value] = {}
        fits = True
        for atom, row in zip(query.atoms, rows, strict=True):
            for term, cell in zip(atom.terms, row, strict=True):
                have = term.value if isinstance(term, Constant) else values.setdefault(term, cell)
                fits = fits and key(have) == key(cell)
        if fits and (found := freeze(query, values)) is not None and found[0] == wanted:
            return True
    return False


def contained(query: Rule, others: Sequence[Rule], values: Sequence[Value]) -> bool:
    own = variables_of(query.body)
    for chosen in product(values, repeat=len(own)):
        found = freeze(query, dict(zip(own, chosen, strict=True)))
        if found is not None and not any(answers(other, found[1], found[0]) for other in others):
            return False
    return True


@settings(max_examples=8 * settings().max_examples)
@given(st.sampled_from(THEMES), st.integers(0, 2), st.data())
def test_contained_is_what_all_frozen_databases_say(theme: Any, width: int, data: st.DataObject) -> None:
    column_type, constants, values = theme
    types = {predicate: (column_type,) * arity for predicate, arity in ARITY.items()}
    query = data.draw(queries(constants, width, 3))
    others = data.draw(st.lists(queries(constants, width, 2), min_size=1, max_size=3))
    expected = contained(query, others, values)
    assert contained_in_union(query, others, types) == expected, [show(r) for r in (query, *others)]
    if len(others) == 1:
        assert contained_in(query, others[0], types) == expected


@given(st.sampled_from(THEMES), st.integers(0, 1), st.data())
def test_weaker_queries_contain(theme: Any, width: int, data: st.DataObject) -> None:
    """Dropping filters and atoms only weakens; what is dropped is often what matters, the other way round."""
    column_type, constants, values = theme
    types = {predicate: (column_type,) * arity for predicate, arity in ARITY.items()}
    query = data.draw(queries(constants, width, 3))
    kept = [literal for literal in query.body if data.draw(st.booleans())]
    weaker = Rule(query.head, tuple(kept))
    bound = variables_of(weaker.atoms)
    if not weaker.atoms or not set(variables_of([weaker.head, *kept])) <= set(bound):
        return
    assert contained_in(query, weaker, types)
    assert contained_in(weaker, query, types) == contained(weaker, [query], values)
