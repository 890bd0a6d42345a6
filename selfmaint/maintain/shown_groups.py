"""Groups of which a HAVING leaves some out: what becomes of a group that is stored, and of one that is not.

    v(C, count(*), sum(A)) :- sale(I, C, A) having count(*) > 1.
    k1: 2 rows, 7 in all. A sale of 3 is deleted: one row is left, and the group is left out
    k2 is not stored, and a sale of it is deleted: it had one row at most, which is gone

A group that is not stored has no core rows, or some of which HAVING is not true. The number of its rows is hidden then,
and all else of it.

Conditions of soundness (a group that none of them settles is open):

1. A stored group's old aggregates are those of its row. It stays, with the new ones, where HAVING is true of these, and
   goes where it is not, or it has no rows. Of an aggregate that HAVING asks for and no column holds nothing is known
   but that HAVING was true of it, unless it asked for one of several: that stays so where what comes and goes only
   helps (condition 3, of the opposite).
2. Where HAVING is true of each group that has the rows lost and one more, one that is not stored had just the rows
   lost. So it has the rows gained, and no others.
3. Another group that is not stored stays so where nothing that HAVING asks for can become true of it by what comes and
   goes, as a count that was at most 1 by as many rows lost as gained; and if it may have had no rows, where HAVING is
   not true of the rows gained alone. A sum or an extremum over no value is null, and what is asked of it not true.
4. Another view with a row for each group, of the same core rows, tells its old aggregates, and by none that there
   were no core rows.
5. Extrema are compared in the order that they are found by: with values of their own kind, and no doubles. A sum that
   may have been cut off says nothing of its rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from msgspec import Struct

from datalog.copies import replace
from datalog.model import (
    OPPOSITE,
    Aggregate,
    AggregateFunction,
    AllOf,
    AnyOf,
    Arithmetic,
    Case,
    Compared,
    Condition,
    Constant,
    Expression,
    IsNull,
    Operator,
    map_condition,
    value_kind,
)
from selfmaint.maintain.conditions import negation
from selfmaint.maintain.exact_numbers import adds_up
from selfmaint.maintain.group_values import FALSE, NULL, TRUE, ZERO, GroupValues, Part
from selfmaint.warehouse.grouped import Measure
from selfmaint.warehouse.having import aggregate_first

_MORE: tuple[Operator, ...] = (">", ">=")
_ORDER: tuple[Operator, ...] = ("<", "<=", ">", ">=")


class ShownGroups(Struct, frozen=True, dict=True):
    """Expressions over a group's old row, if it is stored, and its parts.

    Attributes:
        values: the values of a stored group.
        measures: the aggregates that the parts have, and `values` may not know.
        having: the conditions, all of which are to be true.
        by_group: for each grouping expression where its value is.
        told: of each other view 1 if it has a row of the group, else 0; and the old values that it tells, by column.
    """

    values: GroupValues
    measures: Sequence[Measure]
    having: tuple[Condition, ...]
    by_group: Mapping[Expression, Expression]
    told: Sequence[tuple[Expression, Mapping[int, Expression]]] = ()

    @property
    def exists(self) -> Condition:
        """Whether the group is shown after the update."""
        values, alone = self.values, self._alone
        kept = AllOf((self._is_shown, values.exists, self._told(values)))
        new = AllOf((negation(self._is_shown), self._had_lost_alone, self._gains, self._told(alone)))
        return AnyOf((kept, new))

    @property
    def is_open(self) -> Condition:
        """Whether something about the group is not determined."""
        values, alone = self.values, self._alone
        doubt = AnyOf((values.is_open, AllOf((values.exists, negation(self._told(values))))))
        shown = AllOf((self._is_shown, negation(self._told(values, fails=True)), doubt))
        doubt = AnyOf((*(alone.open(m) for m in values.grouped.measures), negation(self._told(alone))))
        new = AllOf((self._had_lost_alone, self._gains, negation(self._told(alone, fails=True)), doubt))
        hidden = AllOf((negation(self._had_lost_alone), negation(self._stays_out)))
        return AnyOf((shown, AllOf((negation(self._is_shown), AnyOf((new, hidden))))))

    @property
    def is_overdrawn(self) -> Condition:
        """Whether more rows are lost than there were, as far as the old row tells: then the update cannot be."""
        return AllOf((self._is_shown, self.values.is_overdrawn))

    def new(self, measure: Measure) -> Expression:
        """A measure after the update, where it is determined."""
        return Case(((self._is_shown, self.values.new(measure)),), self._alone.new(measure))

    @property
    def _is_shown(self) -> Condition:
        return Compared("=", self.values.is_there, Constant(1))

    @cached_property
    def _alone(self) -> GroupValues:
        """The values of a group that has the rows gained and no others."""
        nothing = {m.column: NULL for m in self.measures}
        none = Part(ZERO, nothing, dict.fromkeys(nothing, ZERO))
        grouped = replace(self.values.grouped, measures=tuple(self.measures))
        return replace(self.values, grouped=grouped, is_there=ZERO, old=nothing, lost=none, known=none)

    @property
    def _gains(self) -> Condition:
        """Whether a group of the rows gained alone is there, but for HAVING."""
        return TRUE if self.values.grouped.is_total else _compared(">", self.values.gained.rows, ZERO)

    def _told(self, values: GroupValues, *, fails: bool = False) -> Condition:
        """Whether HAVING is known to be true of values; or not to be, if it `fails`."""
        return self._settled(values, AllOf(self.having), fails=fails, was_true=True)

    def _settled(
        self, values: GroupValues, condition: Condition, *, fails: bool, was_true: bool
    ) -> Condition:
        if isinstance(condition, AllOf | AnyOf):
            is_all = isinstance(condition, AllOf)
            made = tuple(
                self._settled(values, one, fails=fails, was_true=was_true and is_all)
                for one in condition.conditions
            )
            return AllOf(made) if is_all != fails else AnyOf(made)
        measure = self._measure(condition)
        if measure is None:
            asked = map_condition(self.by_group.get, condition)
            return negation(asked) if fails else asked
        if measure not in values.grouped.measures:
            return self._stays_true(condition, measure) if was_true and not fails else FALSE
        is_told = (values.exists, negation(values.open(measure)))
        asked = _of(condition, values.new(measure))
        if not fails:
            return AllOf((*is_told, asked))
        untrue = AllOf((*is_told, negation(asked)))
        if measure.aggregate.function is not AggregateFunction.SUM or not isinstance(condition, Compared):
            return untrue
        total = values.total(measure.column)  # if any value is left; else the sum is null
        return AnyOf((untrue, AllOf((IsNull(total, negated=True), negation(_of(condition, total))))))

    def _measure(self, condition: Condition) -> Measure | None:
        """The measure that a comparison is of; None of one of grouping expressions."""
        match condition:
            case IsNull(operand):
                found = operand
            case Compared():
                _, found, _ = aggregate_first(condition)
            case _:
                raise AssertionError("HAVING asks for nothing else: `asks_plainly`")
        return next((m for m in self.measures if repr(m.aggregate) == repr(found)), None)

    @cached_property
    def _had_lost_alone(self) -> Condition:
        """Conditions 2 and 4."""
        none = (_compared("=", has_row, ZERO) for has_row, _ in self.told)
        return AnyOf((self._is_sure(AllOf(self.having)), *none))

    def _is_sure(self, condition: Condition) -> Condition:
        """Whether a condition is true of each group that has the rows lost and one more."""
        match condition:
            case AllOf(conditions):
                return AllOf(tuple(map(self._is_sure, conditions)))
            case AnyOf(conditions):
                return AnyOf(tuple(map(self._is_sure, conditions)))
            case _:
                pass
        measure = self._measure(condition)
        if measure is None:
            return map_condition(self.by_group.get, condition)
        counts = measure.aggregate.function is AggregateFunction.COUNT
        if not counts or not isinstance(condition, Compared):
            return FALSE
        operator, _, least = aggregate_first(condition)
        may_be_null = measure.aggregate.operand is not None and measure.column not in self.values.never_null
        if operator not in _MORE or may_be_null:
            return FALSE
        return _compared(operator, Arithmetic("+", self.values.lost.rows, Constant(1)), least)

    @cached_property
    def _stays_out(self) -> Condition:
        """Conditions 3 and 4."""
        by_others = [self._told(one, fails=True) for one in self._told_alone]
        numbers = [] if self.values.grouped.is_total else [one.rows for one in self._told_alone]
        empty = [_compared("=", number, ZERO) for number in numbers if number is not None]
        return AnyOf((self._stays_untrue_of_all, *by_others, *empty))

    @property
    def _told_alone(self) -> Iterator[GroupValues]:
        """The values of a group that is not stored, as others tell them."""
        old = {column: value for _, its in self.told for column, value in its.items()}
        grouped = replace(self.values.grouped, measures=tuple(m for m in self.measures if m.column in old))
        for has_row, _ in self.told[:1]:
            yield replace(self.values, grouped=grouped, is_there=has_row, old=old)

    @property
    def _stays_untrue_of_all(self) -> Condition:
        """Condition 3."""
        stays = [self._stays_untrue(one) for one in _leaves(AllOf(self.having))]
        if self.values.grouped.is_total:
            return AllOf(tuple(stays))
        some = _compared(">", self.values.lost.rows, ZERO)
        new = AllOf((self._gains, negation(self._told(self._alone, fails=True))))
        return AllOf((*stays, AnyOf((some, negation(new)))))

    def _stays_true(self, condition: Condition, measure: Measure) -> Condition:
        """Whether a comparison that is true of an aggregate stays so (condition 1)."""
        opposite: Condition
        match condition:
            case Compared():
                operator, left, right = aggregate_first(condition)
                opposite = Compared(OPPOSITE[operator], left, right)
            case _:
                opposite = condition
        stays = self._stays_untrue(opposite)
        if measure.aggregate.function is AggregateFunction.COUNT:
            return stays
        gained, lost = (part.counts[measure.column] for part in (self.values.gained, self.values.lost))
        return AllOf((stays, AnyOf((_compared("=", lost, ZERO), _compared(">", gained, ZERO)))))

    def _stays_untrue(self, condition: Condition) -> Condition:
        """Whether a comparison that is not true of a group with rows is not afterwards either."""
        measure = self._measure(condition)
        if measure is None:
            return TRUE
        function, column = measure.aggregate.function, measure.column
        gained, lost = self.values.gained, self.values.lost
        if function is AggregateFunction.COUNT:
            is_of_all = measure.aggregate.operand is None
            more, fewer = ((p.rows if is_of_all else p.counts[column]) for p in (gained, lost))
            operator = aggregate_first(condition)[0] if isinstance(condition, Compared) else "="
            return _compared(_towards(operator), more, fewer)
        none_lost = _compared("=", lost.counts[column], ZERO)
        none_gained = _compared("=", gained.counts[column], ZERO)
        same = AllOf((none_gained, none_lost))
        if not isinstance(condition, Compared):
            return same
        operator, _, value = aggregate_first(condition)
        assert isinstance(value, Constant)
        match function:
            case AggregateFunction.SUM if adds_up((ZERO,), self.values.sums.get(column)) == TRUE:
                return AnyOf((same, self._sum_stays_untrue(column, operator, value)))
            case AggregateFunction.AVG:
                equal = _compared("=", gained.counts[column], lost.counts[column])
                return AllOf((equal, _compared("=", *self._sums(column))))
            case AggregateFunction.MIN | AggregateFunction.MAX if self._is_ordered(column, operator, value):
                is_true = [_compared(operator, part.values[column], value) for part in (gained, lost)]
                if (operator in _MORE) == (function is AggregateFunction.MAX):
                    return AnyOf((none_gained, negation(is_true[0])))  # only a value gained can make it true
                covered = AllOf((negation(none_gained), negation(is_true[0])))
                kept = AllOf((none_gained, AnyOf((none_lost, is_true[1]))))
                return AnyOf((covered, kept))
            case _:
                return same

    def _sum_stays_untrue(self, column: int, operator: Operator, value: Constant) -> Condition:
        """The same of a sum, which is no less than 0 or no more if there was no value, or is there as it was."""
        counts = (part.counts[column] for part in (self.values.gained, self.values.lost))
        more, fewer = counts
        was_there = AnyOf((_compared("=", more, ZERO), _compared(">", fewer, ZERO)))
        untrue = negation(_compared(operator, ZERO, value)) if operator in _ORDER else FALSE
        return AllOf((_compared(_towards(operator), *self._sums(column)), AnyOf((was_there, untrue))))

    def _sums(self, column: int) -> tuple[Expression, Expression]:
        """The sums gained and lost, 0 over no value."""
        _, gained, lost = replace(self._alone, lost=self.values.lost).added(column)
        return gained, lost

    def _is_ordered(self, column: int, operator: Operator, value: Constant) -> bool:
        """Condition 5."""
        kind = self.values.operands.get(column)
        is_exact = kind is not None and not kind.name.is_floating and kind.family == value_kind(value.value)
        return is_exact and operator in _ORDER


def _of(condition: Condition, value: Expression) -> Condition:
    """What a condition asks of an aggregate, of a value."""
    return map_condition(lambda one: value if isinstance(one, Aggregate) else None, condition)


def _towards(operator: Operator) -> Operator:
    """How what is gained compares with what is lost, so that a number does not come nearer to a comparison's truth."""
    return "<=" if operator in _MORE else ">=" if operator in _ORDER else "="


def _leaves(condition: Condition) -> Iterator[Condition]:
    """The comparisons that a condition is made of."""
    if isinstance(condition, AllOf | AnyOf):
        for one in condition.conditions:
            yield from _leaves(one)
    else:
        yield condition


def _compared(operator: Operator, left: Expression, right: Expression) -> Condition:
    return Compared(operator, left, right)
