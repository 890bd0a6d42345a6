"""Evaluating the maintenance queries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Generic

from datalog.model import Atom, Negation, Predicate, Program, Rule, Version
from selfmaint.canonical.support import CanonicalDatabase, Support
from selfmaint.engine.protocol import D, Engine
from selfmaint.maintain.core_rows import anchored
from selfmaint.maintain.groups import group_change
from selfmaint.warehouse.catalog import GroupedView, View
from selfmaint.warehouse.situation import Situation


@dataclass(frozen=True)
class Delta(Generic[D]):
    """A view's change: rows gained and rows lost, disjoint, over the old state.

    Of a view that keeps duplicates they are counted rows: the number of copies gained, or lost, is the last column.
    """

    gained: D
    lost: D


def applied(engine: Engine[D], view: View, stored: D, change: Delta[D]) -> D:
    """A view's rows after a change: those that it does not lose, and those that it gains; counted as before.

    Of a view that is not decided equal rows are as many as they stand.
    """
    if view.is_counted:
        return engine.bags.recounted([(stored, 1), (change.gained, 1), (change.lost, -1)])
    if not view.is_decided:
        return engine.bags.together([engine.minus_all(stored, change.lost), change.gained])
    return engine.union([engine.minus(stored, change.lost), change.gained])


def as_stored(engine: Engine[D], stored: D, change: Delta[D]) -> Delta[D]:
    """A change in the types of the view's stored rows, held by the engine.

    Equal values may have been found in columns of other types, and what computes with a view does so by its own.
    """
    sides = ((rows, engine.like(rows, stored)) for rows in (change.gained, change.lost))
    return Delta(*(rows if cast is rows else engine.keep(cast) for rows, cast in sides))


def difference(engine: Engine[D], view: View, new: D, old: D) -> Delta[D]:
    """How rows of a view differ from old ones, each as often as it stands, or as counted rows, if these are."""
    if view.is_counted:
        return recounted(engine, new, old)
    return Delta(*engine.beyond(new, old))


def recounted(engine: Engine[D], new: D, old: D) -> Delta[D]:
    """How counted rows differ from old ones, held by the engine."""
    more, fewer = ([(new, sign), (old, -sign)] for sign in (1, -1))
    return Delta(engine.keep(engine.bags.recounted(more)), engine.keep(engine.bags.recounted(fewer)))


def delta(
    known: CanonicalDatabase[D], view: View, *, whole: bool = False, among: Iterable[View] = ()
) -> Delta[D]:
    """The change of a view whose new state is determined, held by the engine.

    `whole`: all core rows of the groups that would be open are known. `among`: views whose changes are to be asked for,
    too: of those that do not group they are found in one go.
    """
    if isinstance(view, GroupedView):
        return _of_groups(known, view, whole=whole)
    if (Delta, view.name) not in known.kept:
        every = {one.name: one for one in (view, *among) if not isinstance(one, GroupedView)}
        known.kept.update({(Delta, name): found for name, found in _evaluated(known, every)})
    kept: Delta[D] = known.kept[Delta, view.name]
    return kept


def _evaluated(known: CanonicalDatabase[D], views: Mapping[str, View]) -> Iterator[tuple[str, Delta[D]]]:
    engine, facts = known.engine, known.facts
    made = [maintenance_program(known.support, known.situation, view) for view in views.values()]
    program = Program(tuple(dict.fromkeys(rule for part in made for rule in part.rules)))
    goals = {goal(view): view.columns for view in views.values() for goal in (gained, lost)}
    goals = {goal: columns for goal, columns in goals.items() if goal in program.heads}
    rows = engine.evaluate_all(program, goals, facts) if goals else {}
    for name, view in views.items():
        nothing = engine.empty(facts.relations[view.predicate])
        new, gone = (engine.keep(rows[g(view)]) if g(view) in rows else nothing for g in (gained, lost))
        yield name, Delta(new, gone)


def _of_groups(known: CanonicalDatabase[D], view: GroupedView, *, whole: bool) -> Delta[D]:
    """The rows of the touched groups, or their numbers of copies, as far as they differ."""
    engine = known.engine
    change = group_change(known, view, whole=whole)
    if change is None:
        nothing = engine.empty(known.facts.relations[view.predicate])
        return Delta(nothing, nothing)
    if change.open is not None:
        raise ValueError(f"groups of `{view.name}` are not determined")
    new = engine.like(change.new, known.facts.relations[view.predicate])
    if view.is_counted:
        return recounted(engine, new, change.old)
    return Delta(engine.keep(engine.minus(new, change.old)), engine.keep(engine.minus(change.old, new)))


def gained(view: View) -> Predicate:
    """The predicate of the rows that the view gains."""
    return view.predicate.of(Version.GAINED)


def lost(view: View) -> Predicate:
    """The predicate of the rows that the view loses."""
    return view.predicate.of(Version.LOST)


def maintenance_program(support: Support, situation: Situation, view: View) -> Program:
    """The rules of `view@gained` and `view@lost`; a predicate without rules is empty in this situation.

    The new state is Qk(U(D^)); only its difference from the stored state is computed, anchored on the update:

        v@gained(head) :- g@inserted, others@after, not v(head).
        v@lost(head)   :- v(head), g@deleted.

    A row of the view grounds its whole body, so it is lost iff one of its subgoals' facts is deleted.
    All deltas are over the old state of all views. The look into the view is left out where the update is effective:
    an inserted fact that was not there before supplied no stored row.

    Sound only for a view that is self-maintainable; for another it computes the certain part.
    """
    rules: list[Rule | None] = []
    for index, atom in enumerate(view.body):
        name = atom.predicate.name
        if name in situation.inserted:
            head = Atom(gained(view), view.head.terms)
            stored = [] if situation.effective else [Negation((view.head,))]
            rules.append(support.rule(head, anchored(view, index, Version.INSERTED, Version.AFTER), stored))
        if name in situation.deleted:
            removed = atom.of(Version.DELETED)
            rules.append(Rule(Atom(lost(view), view.head.terms), (removed, view.head)))
    return support.program([rule for rule in rules if rule is not None], [gained(view), lost(view)])
