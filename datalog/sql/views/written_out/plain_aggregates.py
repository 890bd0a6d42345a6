"""Aggregates in other words, written as plain ones.

    coalesce(count(x), 0)      count(x), which is never null
    coalesce(sum(x), 0)        sum(x) of what is never null; else sum(coalesce(x, 0))
    sum(x) - sum(y)            sum(x - y) of what is never null
    -sum(x), 100 * sum(x)      sum(-x), sum(100 * x)
    trunc(max(day), 'MM')      max(trunc(day, 'MM')): so with whatever keeps the order

The first two are the same for any rows but none: so this holds under GROUP BY, and not of all rows of a table. The
others hold for those, too; they are left as they are where the view shows the aggregates that they are made of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal

from msgspec import Struct

from datalog.analysis.lossless import inside
from datalog.copies import replace
from datalog.model import (
    Aggregate,
    AggregateFunction,
    Arithmetic,
    Call,
    Cast,
    ColumnType,
    Constant,
    Expression,
    Minus,
    TypeName,
    Variable,
    aggregates_of,
    is_some,
    map_condition,
    map_expression,
)
from datalog.sql.views.scope import Draft, Variables

_BIGINT, _DATE = ColumnType(TypeName.BIGINT), ColumnType(TypeName.DATE)
_MOST_BITS, _ADDED = 62, 28
"""Whole numbers of so many bits are bigints, whatever their sum is; sums of decimals of so many digits have ten more,
none of which is cut off."""
_OF_DAYS = frozenset({"date_trunc", "last_day", "trunc", "year"})
_OF_NUMBERS = frozenset({"ceil", "floor", "round"})
"""Functions that keep the order of dates and of exact numbers. The day of a timestamp goes back in some time zones."""


def with_plain_aggregates(
    draft: Draft, variables: Variables, is_never_null: Callable[[Variable], bool]
) -> Draft:
    """A draft that groups, with plain aggregates; any other as it is."""
    if draft.groups is None:
        return draft
    outputs, having = draft.outputs, draft.having
    if draft.groups:

        def filled(value: Expression) -> Expression | None:
            return plain_aggregate(value, variables, is_never_null)

        outputs = tuple(map_expression(filled, one) for one in outputs)
        having = tuple(map_condition(filled, one) for one in having)
    words = _Words(variables, is_never_null)
    shown = {repr(one) for one in outputs}
    plain = [
        one if all(repr(its) in shown for its in aggregates_of([one])) else map_expression(words.plain, one)
        for one in outputs
    ]
    shown = {repr(inside(one)) for one in plain}
    outputs = tuple(
        made if all(repr(its) in shown for its in aggregates_of([made])) else one
        for one, made in zip(outputs, plain, strict=True)
    )
    return replace(draft, outputs=outputs, having=having)


def plain_aggregate(
    value: Expression, variables: Variables, is_never_null: Callable[[Variable], bool]
) -> Expression | None:
    """A count or a sum that is the same as a `coalesce` of one, of some rows; None if there is none."""
    match value:
        case Call("coalesce", (Aggregate(AggregateFunction.COUNT) as count, Constant())):
            return count if variables.type_of(value) == variables.type_of(count) else None
        case Call(
            "coalesce",
            (Aggregate(AggregateFunction.SUM, operand, distinct=False) as total, Constant(value=zero)),
        ) if operand is not None and isinstance(zero, int | Decimal) and zero is not False and zero == 0:
            kind = variables.type_of(operand)
            if variables.type_of(value) != variables.type_of(total) or kind is None or kind.is_open:
                return None
            if is_some(operand, is_never_null):
                return total
            nothing = Constant(Decimal(0).scaleb(-(kind.scale or 0)) if kind.name is TypeName.DECIMAL else 0)
            filled = Call("coalesce", (operand, nothing))
            is_same = variables.type_of(filled) == kind and not kind.name.is_floating
            return replace(total, operand=filled) if is_same else None
        case _:
            return None


class _Words(Struct, frozen=True):
    """Sums and extrema in other words."""

    variables: Variables
    is_never_null: Callable[[Variable], bool]

    def plain(self, value: Expression) -> Expression | None:
        """The aggregate that an expression around some is, if it is one; None of an aggregate itself."""
        match value:
            case Minus() | Arithmetic("+" | "-" | "*"):
                made: Aggregate | None = self._sum(value)
            case Call(function, arguments) if function in _OF_DAYS | _OF_NUMBERS:
                made = self._extremum(value, arguments)
            case _:
                return None
        is_same = made is not None and self.variables.type_of(made) == self.variables.type_of(value)
        return made if is_same else None

    def _sum(self, value: Expression) -> Aggregate | None:
        """Of whole numbers, or decimals of which no digit is cut off, as a sum."""
        match value:
            case Aggregate(AggregateFunction.SUM, distinct=False):
                return value
            case Minus(operand):
                return self._of(lambda its: Minus(its[0]), operand)
            case Arithmetic("*", Constant() as times, other):
                return self._of(lambda its: Arithmetic("*", times, its[0]), other)
            case Arithmetic("*", other, Constant() as times):
                return self._of(lambda its: Arithmetic("*", its[0], times), other)
            case Arithmetic("+" | "-" as sign, left, right):
                return self._of(lambda its: Arithmetic(sign, its[0], its[1]), left, right)
            case _:
                return None

    def _of(
        self, made: Callable[[Sequence[Expression]], Expression], *values: Expression
    ) -> Aggregate | None:
        """The sum of what is made of what some sums add up; of several only if that is never null."""
        operands = [its.operand for one in values if (its := self._sum(one)) is not None and its.operand]
        are_some = len(operands) == 1 or all(is_some(one, self.is_never_null) for one in operands)
        if len(operands) < len(values) or not are_some:
            return None
        kinds = [self.variables.type_of(one) for one in operands]
        if all(kind is not None and kind.name.is_integer for kind in kinds):
            operands = [
                one if kind == _BIGINT else Cast(one, _BIGINT)
                for one, kind in zip(operands, kinds, strict=True)
            ]
        kind = self.variables.type_of(operand := made(operands))
        if kind is None or not _is_exact(kind):
            return None
        if kind.name is TypeName.DECIMAL:
            is_kept = (kind.precision or 0) <= _ADDED
        else:
            is_kept = self._bits(operand) <= _MOST_BITS
        return Aggregate(AggregateFunction.SUM, operand) if is_kept else None

    def _bits(self, value: Expression) -> int:
        """What power of two no whole number of an expression is beyond."""
        match value:
            case Constant(int() as number):
                return number.bit_length()
            case Minus(operand):
                return self._bits(operand)
            case Arithmetic("*", left, right):
                return self._bits(left) + self._bits(right)
            case Arithmetic("+" | "-", left, right):
                return max(self._bits(left), self._bits(right)) + 1
            case Cast(operand):
                return self._bits(operand)
            case _:
                kind = self.variables.type_of(value)
                return _MOST_BITS + 1 if kind is None or kind.name.bits is None else kind.name.bits - 1

    def _extremum(self, value: Call, arguments: tuple[Expression, ...]) -> Aggregate | None:
        """The same of what the function gives, if it keeps the order."""
        at = next((i for i, one in enumerate(arguments) if isinstance(one, Aggregate)), None)
        if at is None or not all(isinstance(one, Constant) for i, one in enumerate(arguments) if i != at):
            return None
        one = arguments[at]
        assert isinstance(one, Aggregate)
        if one.function not in (AggregateFunction.MIN, AggregateFunction.MAX) or one.operand is None:
            return None
        kind = self.variables.type_of(one.operand)
        keeps = kind == _DATE if value.function in _OF_DAYS else kind is not None and _is_exact(kind)
        if not keeps:
            return None
        inner = (*arguments[:at], one.operand, *arguments[at + 1 :])
        return replace(one, operand=replace(value, arguments=inner))


def _is_exact(kind: ColumnType) -> bool:
    return not kind.is_open and (kind.name.is_integer or kind.name is TypeName.DECIMAL)
