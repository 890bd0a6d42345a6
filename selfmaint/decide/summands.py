"""Unions whose rows do not tell which rule they come from, decided by what each rule gains and loses.

    SELECT day FROM web UNION ALL SELECT day FROM shop        web gains a row: the union does, whatever it holds

Conditions of soundness:

1. The update is effective.
2. What a rule gains and loses is the same on all databases that explain the other views: all those that explain the
   union as well are among them. Its own rows are known to nobody (`Grouped.is_hidden`).
3. The copies of a row of a UNION ALL are those of all rules together.
4. A row of a UNION that a rule loses stays if a rule gains it, or certainly gives it after the update, or if it is
   written in the union. Else it goes if there is one rule besides written rows, which gives each row once. Else nobody
   knows whether it stays, and the union is not decided here.
5. The rows of a group over a UNION ALL are those of all rules together: what it gains and loses is what the rules'
   groups do, and its stored values are kept up as those of any group (`group_values.py`). Where types are not the same
   in all rules, it is not decided; a column is never null that is so in all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Generic

from msgspec import Struct

from datalog.copies import replace
from datalog.model import (
    ANY,
    Atom,
    Constant,
    Negation,
    Predicate,
    Program,
    Row,
    Rule,
    Variable,
    Version,
    ViewDefinition,
)
from selfmaint.canonical.constraint_checks import NOT_EFFECTIVE
from selfmaint.decide.knowledge import Knowledge
from selfmaint.engine.protocol import D, Engine
from selfmaint.errors import Code, input_error
from selfmaint.maintain import Delta
from selfmaint.maintain.group_plan import GroupPlan
from selfmaint.maintain.groups import GroupChange, certain_rows, core_changes, summed_change
from selfmaint.warehouse.catalog import BaseRelation, GroupedView, View

_GAINED, _LOST, _NEW, _LEFT, _OPEN, _GIVEN = (
    Predicate(name, Version.STEP) for name in ("gained", "lost", "new", "left", "open", "given")
)


def untold(part: GroupedView) -> str:
    """Why a union is not decided where what one of its rules gains and loses is not determined."""
    definition = part.definition
    if isinstance(definition, ViewDefinition) and definition.is_split:
        return "which rows come and go, with or without what its LEFT JOINs look up, is not determined"
    return f"what its query {part.name.rpartition('#')[2]} gains or loses is not determined"


class Told(Struct, Generic[D], frozen=True, dict=True):
    """A summand whose core rows gained and lost are determined.

    Attributes:
        known: everything known, in the schema in which they are.
    """

    known: Knowledge[D]
    part: GroupedView

    @cached_property
    def changes(self) -> tuple[D | None, D | None]:
        """What it gains and loses, as counted rows; None if there are none."""
        return core_changes(self.known, self.part)


class Summed(Struct, Generic[D], frozen=True, dict=True):
    """The change of a union from those of its summands.

    Attributes:
        told: the summands that may change.
    """

    known: Knowledge[D]
    view: View
    told: Sequence[Told[D]]

    @property
    def _engine(self) -> Engine[D]:
        return self.known.engine

    @property
    def _columns(self) -> tuple[Variable, ...]:
        return tuple(Variable(f"C{i}") for i in range(len(self.view.columns)))

    @cached_property
    def _sides(self) -> tuple[D | None, D | None]:
        """The counted rows that all summands gain, and those that they lose, equal rows of several apart."""
        gained = [rows for told in self.told if (rows := told.changes[0]) is not None]
        lost = [rows for told in self.told if (rows := told.changes[1]) is not None]
        return self._sum(gained), self._sum(lost)

    def _sum(self, parts: Sequence[D]) -> D | None:
        return (
            self._engine.keep(self._engine.bags.recounted([(rows, 1) for rows in parts])) if parts else None
        )

    def is_open(self) -> bool:
        """Condition 4: whether it is a UNION, and loses a row that may stay."""
        if self._sides[1] is None or not self.view.stands_once or self._gives_once:
            return False
        return bool(self._engine.count(self._not_given))

    @property
    def _gives_once(self) -> bool:
        """Whether there is one rule besides written rows, which gives each row once."""
        parts = self.known.catalog.summands[self.view.name]
        return len(parts) == 1 and parts[0].grouped.is_single and self._written is not None

    @cached_property
    def _written(self) -> Sequence[Row] | None:
        """The rows that are written in the union; None if one of them is computed."""
        definition = self.view.definition
        blocks = definition.blocks if isinstance(definition, ViewDefinition) else ()
        every = [one.outputs for one in blocks if one.is_constant]
        found = [tuple(o.value for o in outputs if isinstance(o, Constant)) for outputs in every]
        return found if all(len(row) == len(self.view.columns) for row in found) else None

    @cached_property
    def _not_given(self) -> D:
        """The rows lost that no rule gains, nor certainly gives, and that are not written."""
        given = dict(zip((_GAINED, _LOST), self._sides, strict=True))
        return self._made(_OPEN, dict(self._still(given)))

    def _still(self, given: Mapping[Predicate, D | None]) -> Iterator[tuple[Predicate, D]]:
        """Rows lost and not gained, and those of them that are certainly given."""
        columns = self._columns
        less = [Negation((Atom(_GAINED, (*columns, Variable("M"))),))] if given[_GAINED] is not None else []
        lost = Rule(Atom(_LEFT, (*columns, Constant(1))), (Atom(_LOST, (*columns, Variable("N"))), *less))
        left = self._evaluated([lost], {p: rows for p, rows in given.items() if rows is not None})
        yield _LEFT, left
        parts = [rows for t in self.told if (rows := certain_rows(t.known, t.part, left)) is not None]
        if self._written:
            names = self._engine.columns(left)
            rows = self._engine.load([(*row, 1) for row in self._written], names, [ANY] * len(names))
            parts.append(self._engine.like(rows, left))
        some = self._sum(parts)
        if some is not None:
            yield _GIVEN, some

    def _made(self, goal: Predicate, given: Mapping[Predicate, D]) -> D:
        columns = self._columns
        known = [Negation((Atom(_GIVEN, (*columns, Variable("N"))),))] if _GIVEN in given else []
        return self._evaluated(
            [Rule(Atom(goal, columns), (Atom(_LEFT, (*columns, Constant(1))), *known))], given
        )

    def _evaluated(self, rules: Sequence[Rule], given: Mapping[Predicate, D]) -> D:
        head = rules[0].head
        names = [f"c{i}" for i in range(head.arity)]
        facts = self.known.facts.extended(given)
        return self._engine.keep(self._engine.evaluate(Program(tuple(rules)), head.predicate, facts, names))

    def delta(self) -> Delta[D]:
        """The change, held by the engine: of a UNION ALL each row as often as it does.

        Raises:
            InputError: SM302 more rows are lost than are stored.
        """
        gained, lost = self._sides
        stored = self.known.facts.relations[self.view.predicate]
        nothing = self._engine.empty(stored)
        if self.view.stands_once:
            new = nothing if gained is None else self._engine.like(self._not_stored(gained), stored)
            gone = nothing
            if lost is not None and self._gives_once:
                gone = self._engine.keep(self._engine.like(self._not_given, stored))
                self._require_stored(gone, stored)
            return Delta(self._engine.keep(new), gone)
        sides = []
        for more, fewer in ((gained, lost), (lost, gained)):
            parts = [(rows, sign) for rows, sign in ((more, 1), (fewer, -1)) if rows is not None]
            if more is None:
                sides.append(nothing)
                continue
            net = self._engine.bags.expanded(self._engine.keep(self._engine.bags.recounted(parts)))
            sides.append(self._engine.keep(self._engine.like(net, stored)))
        if lost is not None:
            self._require_stored(sides[1], stored)
        return Delta(*sides)

    def _not_stored(self, gained: D) -> D:
        columns = self._columns
        stands = Negation((Atom(self.view.predicate, columns),))
        rule = Rule(Atom(_NEW, columns), (Atom(_GAINED, (*columns, Variable("N"))), stands))
        return self._evaluated([rule], {_GAINED: gained})

    def _require_stored(self, lost: D, stored: D) -> None:
        every = range(len(self.view.columns))
        there = self._engine.bags.matching(stored, every, lost)
        if self._engine.count(self._engine.minus_all(lost, there)):
            message = f"more rows are deleted than there were: {self.view.shown} would lose rows that it does not hold"
            raise input_error(Code.CONTRADICTS, message, NOT_EFFECTIVE)


class OverQueries(Struct, frozen=True, dict=True):
    """A view that groups over a UNION ALL, by its groups over each query (condition 5).

    Attributes:
        view: the view.
        summands: its groups over each query.
        relations: the base relations.
    """

    view: View
    summands: Sequence[GroupedView]
    relations: Mapping[str, BaseRelation]

    @cached_property
    def plans(self) -> Sequence[GroupPlan]:
        """How the groups over each query are kept up."""
        return [GroupPlan(part, self.relations) for part in self.summands]

    @property
    def never_null(self) -> frozenset[int]:
        """The columns of aggregates whose operand is null in no row of any query."""
        return frozenset[int].intersection(*(plan.never_null for plan in self.plans))

    @cached_property
    def keys(self) -> tuple[int, ...]:
        """The columns that tell the queries apart: one value in each of them, and not the same in all."""
        each = [part.grouped.block.outputs for part in self.summands]
        return tuple(
            i
            for i, its in enumerate(zip(*each, strict=True))
            if all(isinstance(one, Constant) for one in its) and len(set(map(repr, its))) > 1
        )

    @cached_property
    def whole(self) -> GroupedView | None:
        """The view, which groups by what tells the queries apart, too; None if its groups are not those together."""
        each = [(p.operands, p.sums, p.averages, p.grouped.columns) for p in self.plans]
        one = next((plan.view for plan in self.plans if plan.never_null == self.never_null), None)
        if any(its != each[0] for its in each) or one is None or (self.keys and one.grouped.is_total):
            return None
        grouped, more = one.grouped, {i: Variable(f"Query_{i}") for i in self.keys}
        outputs = tuple(more.get(i, output) for i, output in enumerate(grouped.block.outputs))
        groups = None if grouped.block.groups is None else (*grouped.block.groups, *more.values())
        made = replace(
            grouped,
            block=replace(grouped.block, outputs=outputs, groups=groups),
            columns=(*grouped.columns, *more),
            terms={**grouped.terms, **{v: v for v in more.values()}},
            is_single=False,
        )
        head = replace(one.head, predicate=self.view.predicate)
        return replace(one, name=self.view.name, head=head, grouped=made)


class SummedGroups(Struct, Generic[D], frozen=True, dict=True):
    """The change of such a view.

    Attributes:
        known: everything known.
        its: the view, by its groups over each query.
        told: those that may change.
    """

    known: Knowledge[D]
    its: OverQueries
    told: Sequence[Told[D]]

    def is_open(self) -> bool:
        """Whether some group's new row is not determined."""
        return self.its.whole is None or (self._change is not None and self._change.open is not None)

    @cached_property
    def _change(self) -> GroupChange[D] | None:
        parts = [
            (told.known, told.part, [o for i in self.its.keys if isinstance(o := outputs[i], Constant)])
            for told in self.told
            for outputs in [told.part.grouped.block.outputs]
        ]
        assert self.its.whole is not None
        return summed_change(self.known, self.its.whole, parts)

    def delta(self) -> Delta[D]:
        """The change, held by the engine."""
        engine, change = self.known.engine, self._change
        stored = self.known.facts.relations[self.its.view.predicate]
        if change is None:
            return Delta(engine.empty(stored), engine.empty(stored))
        new = engine.like(change.new, stored)
        return Delta(engine.keep(engine.minus(new, change.old)), engine.keep(engine.minus(change.old, new)))
