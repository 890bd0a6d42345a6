"""Rows of an update that a view does not read: they leave it as it is, whatever its class.

    berlin(Key, Name) :- customer(Key, Name, 'B').
    customer@inserted(8, 'Bob', 'C')                    no subgoal has such a row

Conditions of soundness:

1. A row counts in a view only where it matches a subgoal of its definition, of one behind `not` too: it has the
   subgoal's constants, and satisfies what the conjunction that the subgoal stands in says of its variables alone.
2. The relations before and after an update differ in rows of the update only, whether it is effective or not.
3. Of a view of which only the text is known, every row of what it names is read. Where nothing is found that a
   definition reads, nothing is concluded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeAlias

from datalog.model import (
    Atom,
    Constant,
    Literal,
    Predicate,
    Program,
    Rule,
    Term,
    Variable,
    Version,
    apply_literal,
)
from selfmaint.decide.knowledge import Knowledge
from selfmaint.decide.own_columns import SIDES
from selfmaint.decide.unread_columns import read_subgoals
from selfmaint.engine.protocol import D
from selfmaint.warehouse.catalog import Catalog, View

_MOST_KINDS = 8
"""A view that reads more kinds of rows of one relation is taken to read all of them."""

_Kind: TypeAlias = tuple[Atom, tuple[Literal, ...]]
"""Rows that match an atom over variables of its columns, and satisfy some literals."""


def with_unmet(known: Knowledge[D]) -> Knowledge[D]:
    """The same, with the views that read no row of the update; found once."""
    if with_unmet not in known.kept:
        found, situation = unmet(known, known.catalog.views), known.situation
        is_known = found == situation.unmet
        more = known if is_known else known.learning(known.facts, replace(situation, unmet=found))
        known.kept[with_unmet] = more.kept[with_unmet] = more
    kept: Knowledge[D] = known.kept[with_unmet]
    return kept


def unmet(known: Knowledge[D], views: Iterable[View]) -> frozenset[str]:
    """The names of the views that read no row of the update, but some relation that changes."""
    situation = known.situation
    changed = {Version.DELETED: situation.deleted, Version.INSERTED: situation.inserted}
    asked: dict[str, list[frozenset[_Kind]]] = {}
    for view in views:
        its = rows_read(known.catalog, view)
        names = [name for name in its if name in situation.deleted | situation.inserted]
        if names:
            asked[view.name] = [its[name] for name in names]
    goals = {
        kinds: Predicate("met", Version.STEP, (number,))
        for number, kinds in enumerate(dict.fromkeys(kinds for its in asked.values() for kinds in its))
    }
    rules = [
        Rule(Atom(goal, ()), (atom.of(side), *tests))
        for kinds, goal in goals.items()
        for atom, tests in sorted(kinds, key=str)
        for side in SIDES
        if atom.predicate.name in changed[side]
    ]
    met = known.engine.nonempty(Program(tuple(rules)), list(goals.values()), known.facts) if rules else ()
    return frozenset(name for name, its in asked.items() if not any(goals[kinds] in met for kinds in its))


def rows_read(catalog: Catalog, view: View) -> Mapping[str, frozenset[_Kind]]:
    """The kinds of rows that a view reads, by base relation."""
    found: dict[str, set[_Kind]] = {}
    views = {one.name: one for one in catalog.views}
    for atom, _, tests in read_subgoals(catalog, view):
        name = atom.predicate.name
        if name in views:
            for below, its in rows_read(catalog, views[name]).items():
                found.setdefault(below, set()).update(its)
        elif name in catalog.relations:
            found.setdefault(name, set()).add(_kind(atom, tests))
    return {name: frozenset(its if len(its) <= _MOST_KINDS else [_every(its)]) for name, its in found.items()}


def _kind(atom: Atom, tests: Iterable[Literal]) -> _Kind:
    columns = [Variable(f"X{i}") for i in range(atom.arity)]
    terms = (
        t if t != Constant(None) and isinstance(t, Constant) else c
        for t, c in zip(atom.terms, columns, strict=True)
    )
    image: dict[Variable, Term] = {}
    for term, column in zip(atom.terms, columns, strict=True):
        if isinstance(term, Variable):
            image.setdefault(term, column)
    return Atom(atom.predicate, tuple(terms)), tuple(apply_literal(image, test) for test in tests)


def _every(kinds: Iterable[_Kind]) -> _Kind:
    """All rows of the relation that some kinds are of."""
    atom = next(iter(kinds))[0]
    return Atom(atom.predicate, tuple(Variable(f"X{i}") for i in range(atom.arity))), ()
