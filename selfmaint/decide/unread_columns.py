"""Updates of columns that a view does not read: they leave it as it is, whatever its class.

    customers(Key, Name) :- customer(Key, Name, Segment), Segment != 'C'.
    customer@deleted(7, 'Ann', 'A'), customer@inserted(7, 'Ann', 'B')      the view reads Key and Name alone
    customer@inserted(8, 'Bob', 'C')                                       and has no such row

An effective update takes the deleted rows from a relation and adds the inserted ones, each once. If the deleted and the
inserted rows that a view reads hold the same in the columns that it reads (`rows_read.py`), as bags, then so does the
relation before and after. With a key among these columns bags are sets. Where there is none, the view stays as it is
if no row of the update is read. So it does, effective or not, where nothing of what it names changes.

    sold(Name, Order) :- customer(Key, Name), orders(Order, Key).
    customer@inserted(9, 'Cleo')                            no order can be hers, but for those of the same update
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from datalog.copies import replace
from datalog.model import (
    Atom,
    Literal,
    Negation,
    NullTest,
    OpaqueView,
    Predicate,
    Program,
    Rule,
    TextQuery,
    Variable,
    Version,
)
from selfmaint.decide.knowledge import Knowledge
from selfmaint.decide.own_columns import SIDES
from selfmaint.decide.rows_read import Part, rows_read
from selfmaint.engine.protocol import D
from selfmaint.warehouse.base_relations import BaseRelation
from selfmaint.warehouse.catalog import Catalog, View
from selfmaint.warehouse.constraints import Reference
from selfmaint.warehouse.reads import reads

_MOVED = "moved"


def untouched(known: Knowledge[D], views: Iterable[View]) -> frozenset[str]:
    """The names of views that an update leaves as they are because it changes nothing of what they read.

    But for views that name nothing that changes, nothing is found if the update may not be effective.
    """
    catalog, situation = known.catalog, known.situation
    changed = {Version.DELETED: situation.deleted, Version.INSERTED: situation.inserted}
    names = situation.inserted | situation.deleted
    views = tuple(views)
    elsewhere = frozenset(_reading_others(catalog, views, names))
    if not situation.effective:
        return elsewhere
    asked: dict[str, list[Part]] = {}
    for view in views:
        its = [part for name, parts in rows_read(catalog, view).items() if name in names for part in parts]
        if its and view.name not in elsewhere:
            asked[view.name] = its
    parts = {
        one: number for number, one in enumerate(dict.fromkeys(one for its in asked.values() for one in its))
    }
    rules = [rule for part, number in parts.items() for rule in _rules(catalog, number, part, changed)]
    goals = list(dict.fromkeys(rule.head.predicate for rule in rules if rule.head.predicate.name == _MOVED))
    found = known.engine.nonempty(Program(tuple(rules)), goals, known.facts) if goals else ()
    moved = {goal.columns[0] for goal in found}
    same = (name for name, its in asked.items() if moved.isdisjoint(parts[one] for one in its))
    return elsewhere.union(same)


def _reading_others(catalog: Catalog, views: Sequence[View], changed: Collection[str]) -> Iterator[str]:
    """The views kept as text that read nothing that changes."""
    texts = {view.name: view.definition for view in catalog.views if isinstance(view.definition, OpaqueView)}
    unclear = {name for name, one in texts.items() if not isinstance(one.query, TextQuery)}
    read = reads(catalog) if texts.keys() - unclear else {}
    known = {*catalog.relations, *catalog.unions, *(view.name for view in catalog.views)} - {
        *changed,
        *unclear,
    }
    yield from (
        view.name for view in views if view.name in texts.keys() - unclear and read[view.name] <= known
    )


def _rules(
    catalog: Catalog, number: int, part: Part, changed: Mapping[Version, Collection[str]]
) -> Iterator[Rule]:
    """What deleted or inserted rows hold of what is read, and the others do not."""
    name, terms = part.atom.predicate.name, part.atom.terms
    sides = [side for side in SIDES if name in changed[side]]
    moved = [Predicate(_MOVED, Version.STEP, (number, i)) for i in range(len(sides))]
    read = list[tuple[Literal, ...]]()
    for i, side in enumerate(sides):
        alone = list[Literal]()
        for k, (other, reference) in enumerate(sorted(part.referenced, key=str)):
            head = Predicate("alone", Version.STEP, (number, i, k))
            yield _alone(catalog, head, side, other, reference, changed)
            alone.append(Negation((Atom(head, tuple(terms[i] for i in reference.target_columns)),)))
        read.append((part.atom.of(side), *part.tests, *alone))
    kept = _with_key(catalog.relations[name], part) if len(sides) > 1 else None
    if kept is None:
        yield from (Rule(Atom(goal, ()), body) for goal, body in zip(moved, read, strict=True))
        return
    shown = tuple(term for i in kept if isinstance(term := terms[i], Variable))
    held = [Atom(Predicate("held", Version.STEP, (number, i)), shown) for i in range(len(sides))]
    yield from map(Rule, held, read)
    for goal, one, its in zip(moved, held, held[::-1], strict=True):
        yield Rule(Atom(goal, ()), (one, Negation((its,))))


def _with_key(relation: BaseRelation, part: Part) -> tuple[int, ...] | None:
    """The columns that are read and a key of the rows that are: where they are not null, a UNIQUE is one, too."""
    tested = {t.term for t in part.tests if isinstance(t, NullTest) and t.negated}
    some = frozenset(i for i, term in enumerate(part.atom.terms) if term in tested)
    return replace(relation, nullable=relation.nullable - some).with_key(part.columns)


def _alone(
    catalog: Catalog,
    head: Predicate,
    side: Version,
    other: str,
    reference: Reference,
    changed: Mapping[Version, Collection[str]],
) -> Rule:
    """The keys of rows of one side that no row references, neither before the update nor after it.

    What is inserted under a new key nobody referenced before, and what is deleted nobody does after: so says the
    foreign key. What references it on this side comes, or goes, with it.
    """
    target = catalog.relations[reference.target]
    row = [Variable(f"X{i}") for i in range(target.arity)]
    key = {i: row[i] for i in reference.target_columns}
    again = [key.get(i, Variable(f"Y{i}")) for i in range(target.arity)]
    image = dict(zip(reference.columns, key.values(), strict=True))
    referencing = [image.get(i, Variable(f"Z{i}")) for i in range(catalog.relations[other].arity)]
    (back,) = (one for one in SIDES if one is not side)
    body: list[Literal] = [Atom(Predicate(reference.target, side), tuple(row))]
    if reference.target in changed[back]:
        body.append(Negation((Atom(Predicate(reference.target, back), tuple(again)),)))
    if other in changed[side]:
        body.append(Negation((Atom(Predicate(other, side), tuple(referencing)),)))
    return Rule(Atom(head, tuple(key.values())), tuple(body))
