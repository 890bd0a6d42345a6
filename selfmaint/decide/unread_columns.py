"""Updates of columns that a view does not read: they leave it as it is, whatever its class.

    customers(Key, Name) :- customer(Key, Name, Segment).
    customer@deleted(7, 'Ann', 'A'), customer@inserted(7, 'Ann', 'B')      the view reads Key and Name alone

An effective update takes the deleted rows from a relation and adds the inserted ones, each once. A view that reads
some columns is a query over the bag of what the relation's rows hold there. If the deleted and the inserted rows hold
the same there, as bags, then so do the relation before and after. With a key among these columns bags are sets. Every
relation that the view reads has to be so; of a view of which only the text is known, all columns are taken as read.
Where that reads no relation that changes, the view stays as it is, effective or not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TypeAlias

from datalog.analysis import atoms_of
from datalog.model import (
    Atom,
    Comparison,
    Literal,
    Negation,
    NullTest,
    OpaqueView,
    Predicate,
    Program,
    Rule,
    Term,
    TextQuery,
    Variable,
    Version,
    ViewDefinition,
    variables_of,
)
from datalog.rewrite import alternatives
from selfmaint.decide.knowledge import Knowledge
from selfmaint.decide.own_columns import SIDES, projected_changes
from selfmaint.engine.protocol import D
from selfmaint.warehouse.catalog import Catalog, View
from selfmaint.warehouse.reads import reads
from selfmaint.warehouse.views import Outside

_MOVED = "moved"

_Held: TypeAlias = tuple[str, tuple[int, ...]]
"""A relation, and some of its columns."""


def untouched(known: Knowledge[D], views: Iterable[View]) -> frozenset[str]:
    """The names of views that an update leaves as they are because it changes no column that they read.

    Nothing is found if the update may not be effective.
    """
    catalog, situation = known.catalog, known.situation
    changed, both = situation.inserted | situation.deleted, situation.inserted & situation.deleted
    views = tuple(views)
    elsewhere = frozenset(_reading_others(catalog, views, changed))
    if not situation.effective or not both:
        return elsewhere
    asked: dict[str, list[_Held]] = {}
    for view in views:
        its = {name: at for name, at in read_columns(catalog, view).items() if name in changed}
        kept = {name: catalog.relations[name].with_key(at) for name, at in its.items()}
        held = [(name, at) for name, at in kept.items() if at is not None]
        if held and len(held) == len(its) and both.issuperset(its):
            asked[view.name] = held
    tests = {
        one: number for number, one in enumerate(dict.fromkeys(one for its in asked.values() for one in its))
    }
    program = Program(tuple(rule for (name, at), n in tests.items() for rule in _rules(catalog, n, name, at)))
    goals = [head for head in program.heads if head.name == _MOVED]
    moved = (
        {goal.columns[0] for goal in known.engine.nonempty(program, goals, known.facts)} if goals else set()
    )
    same = (name for name, its in asked.items() if moved.isdisjoint(tests[one] for one in its))
    return elsewhere.union(same)


def _reading_others(catalog: Catalog, views: Sequence[View], changed: Collection[str]) -> Iterator[str]:
    """The views kept as text that read nothing that changes."""
    texts = {view.name: view.definition for view in catalog.views if isinstance(view.definition, OpaqueView)}
    unclear = {name for name, one in texts.items() if not isinstance(one.query, TextQuery)}
    read = reads(catalog) if texts.keys() - unclear else {}
    for view in views:
        if view.name in texts.keys() - unclear and read[view.name].isdisjoint({*changed, *unclear}):
            yield view.name


def _rules(catalog: Catalog, number: int, name: str, places: tuple[int, ...]) -> Iterator[Rule]:
    """What deleted and inserted rows hold in some columns, and what of it the others do not."""
    sides = {side: Predicate(_MOVED, Version.STEP, (number, i)) for i, side in enumerate(SIDES)}
    return projected_changes(name, catalog.relations[name].arity, places, SIDES, sides.__getitem__)


def read_columns(catalog: Catalog, view: View) -> dict[str, frozenset[int]]:
    """The positions of the columns that a view reads, by base relation; all where that is not known.

    A column is not read that a variable stands in which stands nowhere else. What is neither a base relation nor a view
    (a name that stands behind `not` alone) is nothing that an update changes.
    """
    found: dict[str, frozenset[int]] = {}
    views = {one.name: one for one in catalog.views}
    for atom, places, _ in read_subgoals(catalog, view):
        below = {atom.predicate.name: places} if atom.predicate.name in catalog.relations else {}
        if atom.predicate.name in views:
            below = read_columns(catalog, views[atom.predicate.name])
        for name, its in below.items():
            found[name] = found.get(name, frozenset()) | its
    return found


def read_subgoals(catalog: Catalog, view: View) -> Iterator[tuple[Atom, frozenset[int], tuple[Literal, ...]]]:
    """The subgoals of a view's definition, those behind `not` too.

    Returns:
        For each the places in it that matter, and what its conjunction says of its variables alone.
    """
    if isinstance(view.definition, OpaqueView):
        query = view.definition.query
        for name in query.relations if isinstance(query, TextQuery) else catalog.relations:
            terms = tuple(Variable(f"X{i}") for i in range(_arity(catalog, name)))
            yield Atom(Predicate(name), terms), frozenset(range(len(terms))), ()
        return
    for body, above in _bodies(catalog, view):
        atoms = [atom for literal in body for atom in atoms_of(literal)]
        tested = frozenset(t for literal in body for t in _tested(literal))
        times = Counter(term for atom in atoms for term in atom.terms)
        tests = [li for li in body if isinstance(li, Comparison | NullTest)]
        for atom in atoms:
            places = frozenset(
                i
                for i, term in enumerate(atom.terms)
                if not isinstance(term, Variable) or term in above or term in tested or times[term] > 1
            )
            own = tuple(t for t in tests if atom in body and set(variables_of([t])).issubset(atom.terms))
            yield atom, places, own


def _bodies(catalog: Catalog, view: View) -> Iterator[tuple[Sequence[Literal], frozenset[Term]]]:
    """Each conjunction that a view is made of, and what is used of it above."""
    if isinstance(view.definition, ViewDefinition):
        for block in view.definition.blocks:
            for tests in alternatives(block.filters) or [()]:
                yield (*block.core.body, *tests), frozenset(block.core.head.terms)
    elif view.limitation is None or view.limitation.kind is Outside.PROJECTION:
        yield (*view.body, *view.filters), frozenset(view.head.terms)
    else:
        for rule in catalog.program.rules:
            if rule.head.predicate.name == view.name:
                yield rule.body, frozenset(rule.head.terms)


def _tested(literal: Literal) -> tuple[Term, ...]:
    """The terms of which a literal that is no subgoal says something."""
    match literal:
        case Comparison(left=left, right=right):
            return left, right
        case NullTest(term=term):
            return (term,)
        case Negation(body=body):
            return tuple(t for one in body for t in _tested(one))
        case _:
            return ()


def _arity(catalog: Catalog, name: str) -> int:
    relation = catalog.relations.get(name)
    return 0 if relation is None else relation.arity
