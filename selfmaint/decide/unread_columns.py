"""Updates of columns that a view does not read: they leave it as it is, whatever its class.

    customers(Key, Name) :- customer(Key, Name, Segment), Segment != 'C'.
    customer@deleted(7, 'Ann', 'A'), customer@inserted(7, 'Ann', 'B')      the view reads Key and Name alone
    customer@inserted(8, 'Bob', 'C')                                       and has no such row

An effective update takes the deleted rows from a relation and adds the inserted ones, each once. If the deleted and the
inserted rows that a view reads hold the same in the columns that it reads (`rows_read.py`), as bags, then so does the
relation before and after. With a key among these columns bags are sets. Where there is none, the view stays as it is
if no row of the update is read. So it does, effective or not, where nothing of what it names changes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from datalog.model import Atom, Negation, OpaqueView, Predicate, Program, Rule, TextQuery, Variable, Version
from selfmaint.decide.knowledge import Knowledge
from selfmaint.decide.own_columns import SIDES
from selfmaint.decide.rows_read import Part, rows_read
from selfmaint.engine.protocol import D
from selfmaint.warehouse.catalog import Catalog, View
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
    rules = [
        rule
        for part, number in parts.items()
        for rule in _rules(
            catalog, number, part, [s for s in SIDES if part.atom.predicate.name in changed[s]]
        )
    ]
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
    for view in views:
        if view.name in texts.keys() - unclear and read[view.name].isdisjoint({*changed, *unclear}):
            yield view.name


def _rules(catalog: Catalog, number: int, part: Part, sides: Sequence[Version]) -> Iterator[Rule]:
    """What deleted or inserted rows hold of what is read, and the others do not."""
    moved = [Predicate(_MOVED, Version.STEP, (number, i)) for i in range(len(sides))]
    kept = catalog.relations[part.atom.predicate.name].with_key(part.columns) if len(sides) > 1 else None
    read = [(part.atom.of(side), *part.tests) for side in sides]
    if kept is None:
        yield from (Rule(Atom(goal, ()), body) for goal, body in zip(moved, read, strict=True))
        return
    terms = tuple(term for i in kept if isinstance(term := part.atom.terms[i], Variable))
    held = [Atom(Predicate("held", Version.STEP, (number, i)), terms) for i in range(len(sides))]
    yield from map(Rule, held, read)
    for goal, one, other in zip(moved, held, held[::-1], strict=True):
        yield Rule(Atom(goal, ()), (one, Negation((other,))))
