"""The change of a view that groups, from the core rows gained and lost: the groups that they touch, anew.

The parts of each touched group (gained, lost, known) are put beside its old row by the steps of the plan: the full
outer join of the textbook's RGnet. What a lost extremum leaves open is asked of the rows that are known to be there;
what stays open is told group by group.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Generic

from msgspec import Struct, field

from datalog.copies import replace
from datalog.model import Atom, Constant, Predicate, Program, Rule, Term, Version, ViewDefinition
from datalog.syntax import show
from selfmaint.canonical.constraint_checks import NOT_EFFECTIVE
from selfmaint.canonical.support import CanonicalDatabase
from selfmaint.engine.protocol import D, Engine, Facts
from selfmaint.errors import Code, in_view, input_error
from selfmaint.maintain.core_rows import (
    Asked,
    all_rows,
    for_all_rows,
    for_changes,
    gained_rows,
    kept_gained,
    kept_lost,
    lost_rows,
    or_empty,
    rolled_gained,
    rolled_lost,
)
from selfmaint.maintain.dropped_groups import dropping
from selfmaint.maintain.group_plan import BESIDE, OLD, PARTS, ROWS, GroupPlan, Told
from selfmaint.maintain.group_values import variables
from selfmaint.maintain.left_references import left_references
from selfmaint.maintain.roll_up import UNITED, RollUp, united
from selfmaint.maintain.side_by_side import Step
from selfmaint.maintain.stored_groups import ASKED, asked_groups, known_rows, of_groups
from selfmaint.maintain.told_groups import told_beside
from selfmaint.warehouse.catalog import GroupedView, View
from selfmaint.warehouse.grouped import Grouped

_OVERDRAWN, _KEYS, _NEW, _LEFT = (
    Predicate(name, Version.STEP) for name in ("overdrawn", "keys", "new", "left")
)
_SHOWN = 5


class GroupChange(Struct, Generic[D], frozen=True):
    """The change of a view that groups.

    Attributes:
        new: the new rows of the touched groups that are there after the update, where they are determined.
        old: the stored rows of the touched groups.
        open: the values of the groups whose new row is not determined; None if there are none.
    """

    new: D
    old: D
    open: D | None


def group_change(
    known: CanonicalDatabase[D], view: GroupedView, *, whole: bool = False
) -> GroupChange[D] | None:
    """The change of a view whose gained and lost core rows are determined; None if none are. Computed once a state.

    `whole`: all core rows of the groups that would be open are known, and these are computed anew.
    """
    key, less = (GroupChange, view.name, whole), (GroupChange, view.name, False)
    if key not in known.kept and less in known.kept and not _is_open(known.kept[less]):
        key = less
    if key not in known.kept:
        is_unmet = view.name in known.situation.unmet
        with in_view(view.shown):
            known.kept[key] = None if is_unmet else _change(_Work(known, view), whole=whole)
    found: GroupChange[D] | None = known.kept[key]
    return found


def _is_open(change: GroupChange[D] | None) -> bool:
    return change is not None and change.open is not None


def keep_changes(before: CanonicalDatabase[D], known: CanonicalDatabase[D], names: Collection[str]) -> None:
    """Keeps the changes of some views, which were determined before more was known, and stay so.

    Args:
        before: what was known.
        known: the same and more.
        names: the views.
    """
    for key in ((GroupChange, name, False) for name in names):
        if key in before.kept and not _is_open(before.kept[key]):
            known.kept[key] = before.kept[key]


def core_changes(known: CanonicalDatabase[D], view: GroupedView) -> tuple[D | None, D | None]:
    """The rows that the core rows gained and lost make by themselves, held; None where there are none."""
    work = _Work(known, view)
    gained, lost = gained_rows(known, view), lost_rows(known, view, {})
    return work.rows_of_core(gained), work.rows_of_core(lost)


def summed_change(
    known: CanonicalDatabase[D],
    view: GroupedView,
    parts: Iterable[tuple[CanonicalDatabase[D], GroupedView, Sequence[Constant]]],
) -> GroupChange[D] | None:
    """The change of a view whose groups' rows are those of several views' groups; None if none are gained or lost.

    Args:
        known: everything known.
        view: the view, with the columns of the others.
        parts: these, of which nothing is stored, each with everything known where its core rows gained and lost are
            determined, and with what it has for the last columns that the view groups by, and it does not.
    """
    work = _Work(known, view)
    made = [(_Work(its, part).parts(), constants) for its, part, constants in parts]
    every = {
        name: work.together([(its[name], constants) for its, constants in made])
        for name in ("gained", "lost")
    }
    return work.changed(every) if any(rows is not None for rows in every.values()) else None


def certain_rows(known: CanonicalDatabase[D], view: GroupedView, rows: D) -> D | None:
    """The rows that a view certainly has after the update, with the groups of some rows; None if none are known.

    The rows have all columns of the view but the number of copies, and a 1 behind them.
    """
    work = _Work(known, view)
    columns = variables("C", len(view.stored_columns))
    keys: tuple[Term, ...] = (*(columns[c] for c in view.grouped.columns), Constant(1))
    rule = Rule(Atom(_KEYS, keys), (Atom(ASKED, (*columns, Constant(1))),))
    return work.rows_of_core(work.known_rows(work.held([rule], {ASKED: rows})))


def _change(work: _Work[D], *, whole: bool) -> GroupChange[D] | None:
    parts = work.parts()
    some = any(rows is not None for rows in parts.values())
    found = _of_parts(work, parts, whole=whole) if some else None
    if found is not None:
        work.require_references(found.new)
    dropped = work.dropped_rows()
    if dropped is None:
        return found
    if found is None:
        return GroupChange(work.engine.empty(dropped), dropped, None)
    return replace(found, old=work.engine.keep(work.engine.union([found.old, dropped])))


def _of_parts(work: _Work[D], parts: Mapping[str, D | None], *, whole: bool) -> GroupChange[D]:
    """The change of the groups that gain or lose some core rows."""
    known, view = work.known, work.view
    found = work.changed(parts)
    if found.open is None:
        return found
    told = for_all_rows(known.catalog, known.situation, known.support.whole, view)
    if isinstance(told, RollUp):
        rolled = work.rolled_up(found, found.open, told)
        if rolled.open is None or not whole:
            return rolled
    if told is None and (parts["lost"] is not None or view.grouped.alone or work.plan.leaves_out):
        rows, others = work.known_rows(found.open), work.told_beside(parts)
        if others:
            work = replace(work, others=others)
            parts = work.parts()
        if rows is not None or others:
            found = work.changed({**parts, "known": work.aggregated(rows)})
    if found.open is not None and (whole or told is not None):
        return work.anew(found, found.open)
    return found


class _Work(Struct, Generic[D], dict=True):
    """The evaluation of one view's change.

    Attributes:
        known: everything known.
        view: the view.
        others: what other views tell of its groups.
    """

    known: CanonicalDatabase[D]
    view: GroupedView
    others: Mapping[Told, D] = field(default_factory=dict)

    @cached_property
    def dropped(self) -> Mapping[int, Atom]:
        return dropping(self.known.catalog, self.known.situation, self.view)

    @cached_property
    def plan(self) -> GroupPlan:
        dropped, told = tuple(self.dropped.values()), tuple(self.others)
        return GroupPlan(self.view, self.known.catalog.relations, dropped=dropped, told=told)

    @property
    def engine(self) -> Engine[D]:
        return self.known.engine

    @property
    def core(self) -> View:
        return self.plan.core

    @property
    def grouped(self) -> Grouped:
        return self.plan.grouped

    def aggregated(self, rows: D | None) -> D | None:
        """The part that some core rows are: groups, their number, and two columns for each measure."""
        return None if rows is None else self.engine.keep(self._over_rows(self.plan.part(), rows))

    def rows_of_core(self, rows: D | None) -> D | None:
        """The view's rows that some core rows make."""
        return None if rows is None else self.engine.keep(self._over_rows(self.plan.anew, rows))

    def _over_rows(self, definition: ViewDefinition, rows: D) -> D:
        facts = _small({ROWS: rows})
        return self.engine.evaluate_view(definition, facts, {ROWS: self.plan.column_types})

    def told_beside(self, parts: Mapping[str, D | None]) -> dict[Told, D]:
        """What other views tell of the groups of some parts."""
        given = {PARTS[name]: rows for name, rows in parts.items() if rows is not None}
        asked, keys = Atom(ASKED, (*self.plan.keys, Constant(1))), self.plan.keys
        if for_changes(self.known.catalog, self.known.situation, self.view) is not None:
            return {}  # the parts are groups of a finer view, which has the view's own aggregates alone
        groups = self.held([Rule(asked, (Atom(p, (*keys, *self.plan.own(p.name))),)) for p in given], given)
        return told_beside(self.known, self.plan, self._keys(groups))

    def changed(self, parts: Mapping[str, D | None]) -> GroupChange[D]:
        """The new rows of the groups that are gained or lost rows' groups."""
        engine, given = self.engine, {PARTS[name]: rows for name, rows in parts.items() if rows is not None}
        plan = self.plan.of(name for name in PARTS if PARTS[name] in given)
        given |= {one.predicate: rows for one, rows in self.others.items()}
        for step in plan.steps:
            given[step.predicate] = self._made(step, given)
        beside = _small({BESIDE: given[BESIDE]})
        new = engine.keep(engine.evaluate_view(plan.new, beside, {}))
        if not plan.may_be_unsettled:
            return GroupChange(new, given[OLD], None)
        left = engine.keep(engine.evaluate_view(plan.unsettled, beside, {}))
        if not engine.count(left):
            return GroupChange(new, given[OLD], None)
        self._require_not_overdrawn(left)
        return GroupChange(new, given[OLD], left)

    def _require_not_overdrawn(self, groups: D) -> None:
        """Refuses groups that would lose more rows than they have, as `is_overdrawn` says."""
        keys = variables("G", len(self.grouped.columns))
        rule = Rule(Atom(_OVERDRAWN, keys), (Atom(ASKED, (*keys, Constant(0))),))
        names = [self.view.columns[c] for c in self.grouped.columns]
        if not (rows := self.engine.sample(self.held([rule], {ASKED: groups}), _SHOWN)):
            return
        shown = "; ".join(
            ", ".join(f"{n}={show(Constant(v))}" for n, v in zip(names, row, strict=True)) or "its only one"
            for row in sorted(rows, key=repr)
        )
        message = f"more rows are deleted than there were: groups of {self.view.shown} would lose more than they have"
        raise input_error(Code.CONTRADICTS, f"{message}: {shown}", NOT_EFFECTIVE)

    def require_references(self, new: D) -> None:
        """Refuses new rows of groups that reference what is deleted (`left_references.py`)."""
        known, changes = self.known, (Version.DELETED, Version.INSERTED)
        given = {p: rows for p, rows in known.facts.relations.items() if p.version in changes} | {_NEW: new}
        for message, rule in left_references(known.catalog, known.situation, self.view, _NEW, _LEFT):
            for row in self.engine.sample(self.held([rule], given), 1):
                shown = ", ".join(map(show, map(Constant, row)))
                raise input_error(
                    Code.BREAKS_CONSTRAINT,
                    f"{message}, as {self.view.shown} would show: ({shown})",
                    NOT_EFFECTIVE,
                )

    def dropped_rows(self) -> D | None:
        """The stored rows of the groups that are dropped; None if there are none."""
        if not self.dropped:
            return None
        rows = self._made(self.plan.old_dropped, {})
        return rows if self.engine.count(rows) else None

    def _made(self, step: Step, given: Mapping[Predicate, D]) -> D:
        """The rows of one step of the plan, held by the engine."""
        if isinstance(step.made, Program):
            facts = self.known.facts.extended(given)
            return self.engine.keep(self.engine.evaluate(step.made, step.predicate, facts, step.columns))
        return self.engine.keep(self.engine.evaluate_view(step.made, _small(given), {}))

    def held(self, rules: Sequence[Rule], given: Mapping[Predicate, D]) -> D:
        """The rows of a predicate over small relations, held by the engine."""
        head = rules[0].head
        names = [f"c{i}" for i in range(head.arity)]
        return self.engine.keep(
            self.engine.evaluate(Program(tuple(rules)), head.predicate, _small(given), names)
        )

    def parts(self) -> dict[str, D | None]:
        """The parts that the gained and lost rows are; None where there are none."""
        known = self.known
        roll = for_changes(self.known.catalog, known.situation, self.view)
        if roll is None:
            gained, lost = gained_rows(known, self.view), lost_rows(known, self.view, self.dropped)
            rows = {"gained": gained, "lost": lost}
            return {name: self.aggregated(found) for name, found in rows.items()}
        return {
            "gained": self._with_rolled(kept_gained(known, roll), roll, rolled_gained(known, roll)),
            "lost": self._with_rolled(kept_lost(known, roll), roll, rolled_lost(known, roll)),
        }

    def _with_rolled(self, rows: D | None, roll: RollUp, rolled: D | None) -> D | None:
        """The part that some core rows are together with rows that are rolled up."""
        own = self.aggregated(rows)
        if rolled is None:
            return own
        assert roll.part is not None
        facts = _small({ROWS: rolled})
        more = self.engine.keep(self.engine.evaluate_view(roll.part, facts, {ROWS: roll.column_types}))
        return self.together([(own, ()), (more, ())])

    def together(self, parts: Iterable[tuple[D | None, Sequence[Constant]]]) -> D | None:
        """The part that the core rows of several parts are; None where there are none.

        Args:
            parts: each with constants for the last keys, which it does not have.
        """
        some = [(part, its) for part, its in parts if part is not None]
        if not some or (len(some) == 1 and not some[0][1]):
            return some[0][0] if some else None
        keys, own = self.plan.keys, self.plan.own("p")
        sides: dict[Predicate, D] = {}
        rules = []
        for i, (part, constants) in enumerate(some):
            side, its = Predicate(f"side{i}", Version.STEP), keys[: len(keys) - len(constants)]
            sides[side] = part
            head = Atom(UNITED, (*its, *constants, *own, Constant(i)))
            rules.append(Rule(head, (Atom(side, (*its, *own)),)))
        facts = _small({UNITED: self.held(rules, sides)})
        return self.engine.keep(self.engine.evaluate_view(united(self.plan), facts, {}))

    def anew(self, change: GroupChange[D], groups: D) -> GroupChange[D]:
        """The change with the open groups computed from all their core rows."""
        rows = or_empty(self.engine, self.known_rows(groups, every=True), self.plan.column_types)
        return self._closed(change, groups, self._over_rows(self.plan.anew, rows))

    def rolled_up(self, change: GroupChange[D], groups: D, roll: RollUp) -> GroupChange[D]:
        """The change with the open groups computed from a finer view's rows; they stay open where that loses digits."""
        rows = or_empty(self.engine, all_rows(self.known, roll, self._keys(groups)), roll.column_types)
        assert roll.anew is not None
        facts, types = _small({ROWS: rows}), {ROWS: roll.column_types}
        lossy, evaluated = roll.lossy, self.engine.evaluate_view
        if lossy is not None and self.engine.sample(evaluated(lossy, facts, types), 1):
            return change
        return self._closed(change, groups, evaluated(roll.anew, facts, types))

    def _closed(self, change: GroupChange[D], groups: D, found: D) -> GroupChange[D]:
        """The change with new rows of the open groups, among rows of perhaps more groups."""
        engine, rows = self.engine, of_groups(self.engine, self.view, groups, found)
        stored = self.known.facts.relations[self.view.predicate]
        both = [engine.like(part, stored) for part in (change.new, rows)]
        return GroupChange(engine.keep(engine.union(both)), change.old, None)

    def known_rows(self, groups: D, *, every: bool = False) -> D | None:
        """The core rows of some groups that are there after the update for certain; None if none are known.

        Args:
            groups: values of the groups, with a 1 behind them.
            every: where a group is told by an expression, the rows of all groups instead of none.
        """
        return known_rows(self.known, self.core, self._keys(groups), every=every)

    def _keys(self, groups: D) -> Asked[D] | None:
        """Some groups as an atom over the core's terms; None if a group is told by an expression."""
        return asked_groups(self.grouped, groups)


def _small(given: Mapping[Predicate, D]) -> Facts[D]:
    """Relations whose size follows the update's."""
    return Facts(dict(given), {}, frozenset(given))
