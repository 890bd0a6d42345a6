"""The core rows that a view which groups gains and loses, where they are determined, and those known to be there.

    v@gained_0(all variables) :- g@inserted, others@after.
    v@lost_0(all variables)   :- g@deleted, others@known.

Conditions of soundness:

1. The update is effective: a gained row uses an inserted fact that was not there before, so it is new; a lost row
   uses a deleted fact that was there, and is gone.
2. Base relations are sets, so a core row stands once.

The rows that a coarser view is rolled up from are a finer view's rows joined with the other subgoals.

    gained   cust@inserted(C, R), by_customer@after(C, N, S)        and core rows of customers that stay
    lost     cust@deleted(C, R), by_customer(C, N, S)               and core rows of customers that stay
    all      cust@after(C, R), by_customer@after(C, N, S)

Conditions of soundness:

3. The finer view's rows after the update are at hand (`Situation.followed`), those before it are stored.
4. The update is effective: a core row is gained with an inserted fact of another subgoal, or with none such and an
   inserted fact of the finer view's subgoals; never both ways. So for lost ones.
5. For all rows of a group, all facts of the other subgoals must be known: their relations are, wholly, or plain
   views whose new rows are determined hold all their matches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Generic

from msgspec import Struct

from datalog.model import Atom, ColumnType, Literal, Negation, Predicate, Program, Rule, Version, variables_of
from selfmaint.canonical.support import CanonicalDatabase, Support
from selfmaint.engine.protocol import D, Engine
from selfmaint.maintain.roll_up import RollUp, roll_ups
from selfmaint.warehouse.catalog import Catalog, GroupedView, View
from selfmaint.warehouse.finer import finer_views
from selfmaint.warehouse.situation import Situation

_ROWS = Predicate("rows", Version.STEP)


def core_gained(view: GroupedView) -> Predicate:
    """The predicate of the core rows that a view gains, columns as in its core's head."""
    return Predicate(view.name, Version.GAINED, (0,))


def core_lost(view: GroupedView) -> Predicate:
    """The predicate of the core rows that a view loses, columns as in its core's head."""
    return Predicate(view.name, Version.LOST, (0,))


def core_program(
    support: Support, situation: Situation, view: GroupedView, dropped: Mapping[int, Atom]
) -> Program:
    """The rules of the core rows that a view gains and loses, as one program.

    Rows of the groups that lose all rows (`dropped_groups.py`) are not asked for.
    """
    core, rules = view.core, []
    for index, atom in enumerate(core.body):
        name = atom.predicate.name
        if name in situation.inserted:
            head = Atom(core_gained(view), core.head.terms)
            rules.append(support.rule(head, anchored(core, index, Version.INSERTED, Version.AFTER), ()))
        if name in situation.deleted and index not in dropped:
            head = Atom(core_lost(view), core.head.terms)
            lost, stays = anchored(core, index, Version.DELETED, Version.KNOWN), staying(dropped)
            rules.append(support.rule(head, lost, stays))
    made = [rule for rule in rules if rule is not None]
    return support.program(made, [core_gained(view), core_lost(view)])


def anchored(core: View, anchor: int, version: Version, others: Version) -> tuple[Literal, ...]:
    """The core's body with one subgoal in the update, then the others."""
    rest = (atom.of(others) for j, atom in enumerate(core.body) if j != anchor)
    return (core.body[anchor].of(version), *rest, *core.filters)


def staying(dropped: Mapping[int, Atom]) -> tuple[Negation, ...]:
    """That a group is not dropped, over the core's terms."""
    return tuple(Negation((atom,)) for atom in dropped.values())


def gained_rows(known: CanonicalDatabase[D], view: GroupedView) -> D | None:
    """The core rows that a view gains, columns as in its core's head, held by the engine; None if there are none."""
    return _core_rows(known, view, core_gained(view), {})


def lost_rows(known: CanonicalDatabase[D], view: GroupedView, dropped: Mapping[int, Atom]) -> D | None:
    """The core rows lost but for dropped groups, columns as in the core's head, held; None if there are none."""
    return _core_rows(known, view, core_lost(view), dropped)


def _core_rows(
    known: CanonicalDatabase[D], view: GroupedView, goal: Predicate, dropped: Mapping[int, Atom]
) -> D | None:
    key = (goal, frozenset(dropped))
    if key not in known.kept:
        program = core_program(known.support, known.situation, view, dropped)
        rules = program.rules_for(goal)
        names = [f"x{i}" for i in range(view.core.head.arity)]
        rows = known.engine.keep(known.engine.evaluate(program, goal, known.facts, names)) if rules else None
        known.kept[key] = rows if rows is not None and known.engine.count(rows) else None
    found: D | None = known.kept[key]
    return found


def rows_of(
    known: CanonicalDatabase[D],
    core: View,
    bodies: Iterable[Sequence[Literal]],
    given: Mapping[Predicate, D] | None = None,
) -> D | None:
    """The core rows that some bodies give, columns as in the core's head; None if there are none."""
    head = Atom(_ROWS, core.head.terms)
    return known.rows((Rule(head, tuple(body)) for body in bodies), given)


class Asked(Struct, Generic[D], frozen=True):
    """Some groups, as an atom over a core's terms, and its rows."""

    atom: Atom
    given: Mapping[Predicate, D]


def _usable(catalog: Catalog, situation: Situation, view: GroupedView) -> Iterator[RollUp]:
    """The ways of rolling up a view from finer ones whose new rows are at hand."""
    if situation.followed:
        yield from (found for found in roll_ups(catalog, view) if found.name in situation.followed)


def for_changes(catalog: Catalog, situation: Situation, view: GroupedView) -> RollUp | None:
    """How the core rows that a view gains and loses by changes of other subgoals are told by a finer view."""
    changed = situation.inserted | situation.deleted
    for found in _usable(catalog, situation, view):
        body = found.plan.core.body
        if found.part is not None and any(body[i].predicate.name in changed for i in found.others):
            return found
    return None


def for_all_rows(
    catalog: Catalog, situation: Situation, whole: frozenset[str], view: GroupedView
) -> RollUp | frozenset[int] | None:
    """How all core rows of a group after the update are told; all subgoals if the known facts do so.

    All facts of the relations in `whole` are known.

    Returns:
        A way of rolling up, or the subgoals' indices, or None if not all rows are told.
    """
    every = frozenset(range(len(view.core.body)))
    told = {i for i in every if view.core.body[i].predicate.name in whole}
    for finer in finer_views(catalog, view):
        if not isinstance(finer.view, GroupedView) and finer.view.name in situation.followed:
            told |= finer.subgoals
    if told == every:
        return every
    for found in _usable(catalog, situation, view):
        if told.issuperset(found.others):
            return found
    return None


def rolled_gained(known: CanonicalDatabase[D], roll: RollUp) -> D | None:
    """The rows gained with an inserted fact of another subgoal; columns as in `RollUp.columns`."""
    return _rolled(known, roll, Version.INSERTED, Version.AFTER)


def rolled_lost(known: CanonicalDatabase[D], roll: RollUp) -> D | None:
    """The rows lost with a deleted fact of another subgoal; columns as in `RollUp.columns`."""
    return _rolled(known, roll, Version.DELETED, Version.KNOWN)


def _rolled(known: CanonicalDatabase[D], roll: RollUp, version: Version, others: Version) -> D | None:
    body, names = roll.plan.core.body, _changing(known.situation, version)
    row = roll.row.of(others if others is Version.AFTER else Version.STORED)
    bodies = []
    for index in roll.others:
        if body[index].predicate.name in names:
            start = body[index].of(version)
            rest = [body[i].of(others) for i in roll.others if i != index]
            bodies.append((start, *rest, row))
    return _found(known, roll, bodies)


def all_rows(known: CanonicalDatabase[D], roll: RollUp, keys: Asked[D] | None) -> D | None:
    """All rows after the update, of some groups if these are given."""
    after = [roll.plan.core.body[i].of(Version.AFTER) for i in roll.others]
    start = [] if keys is None else [keys.atom]
    body = (*start, *after, roll.row.of(Version.AFTER))
    return _found(known, roll, [body], {} if keys is None else keys.given)


def rows_before(known: CanonicalDatabase[D], roll: RollUp, keys: Asked[D]) -> D | None:
    """The finer view's stored rows of some groups, where it stands for all subgoals; columns as in `RollUp.columns`."""
    return _found(known, roll, [(keys.atom, roll.row)], keys.given)


def or_empty(engine: Engine[D], rows: D | None, types: Sequence[ColumnType]) -> D:
    """Some rows; none, of columns of these types, for None."""
    return engine.load((), [f"x{i}" for i in range(len(types))], types) if rows is None else rows


def kept_gained(known: CanonicalDatabase[D], roll: RollUp) -> D | None:
    """Condition 4: the core rows gained without an inserted fact of another subgoal; columns as in the core's head."""
    return _kept(known, roll, Version.INSERTED, Version.AFTER)


def kept_lost(known: CanonicalDatabase[D], roll: RollUp) -> D | None:
    """Condition 4: the core rows lost without a deleted fact of another subgoal; columns as in the core's head."""
    return _kept(known, roll, Version.DELETED, Version.KNOWN)


def _kept(known: CanonicalDatabase[D], roll: RollUp, version: Version, others: Version) -> D | None:
    core, names = roll.plan.core, _changing(known.situation, version)
    stay = [
        Negation((core.body[i].of(version),)) for i in roll.others if core.body[i].predicate.name in names
    ]
    bodies = [
        (*anchored(core, index, version, others), *stay)
        for index in sorted(roll.finer.subgoals)
        if core.body[index].predicate.name in names
    ]
    return rows_of(known, core, bodies)


def _changing(situation: Situation, version: Version) -> frozenset[str]:
    """The relations that rows are inserted into, or deleted from."""
    return situation.inserted if version is Version.INSERTED else situation.deleted


def _found(
    known: CanonicalDatabase[D],
    roll: RollUp,
    bodies: Iterable[Sequence[Atom]],
    given: Mapping[Predicate, D] | None = None,
) -> D | None:
    tests = [f for f in roll.plan.core.filters if set(variables_of([f])) <= set(roll.columns)]
    found = known.bindings(((*body, *tests) for body in bodies), roll.columns, given)
    return None if found is None else found.rows


def new_rows(view: View) -> Predicate:
    """The predicate of a followed view's rows after the update."""
    return view.predicate.of(Version.AFTER)
