"""Sums and averages without loss: nothing overflows, or is rounded, on the way to a value that its type holds.

Spark adds bigints as bigints, adds up their average as doubles, and cuts digits behind the point off where a decimal
would have more than 38. Conditions of soundness; a group whose numbers pass them is open, to be computed from its rows:

1. Whole numbers are added as decimals, which become a bigint at the end.
2. Decimals of 37 or 38 digits are added where they are held by 36: two additions then find a place for every digit.
3. A quotient is rounded twice, by the division and to the average's scale: the same as once where the division keeps
   as many digits more as the divisor has.
4. An average of whole numbers is exact where no sum of as many can pass 2^53: doubles hold all of them.
5. An average times the number of its values is rounded to their sum where it is less than half a unit away: of whole
   numbers where no sum of as many can pass 2^50, what is rounded being a quarter then; of decimals where the last
   digit of the average, as often, is less than half of the sum's last one.
"""

from __future__ import annotations

from decimal import Decimal

from datalog.model import (
    MAX_PRECISION,
    AllOf,
    AnyOf,
    Arithmetic,
    Call,
    Cast,
    ColumnType,
    Compared,
    Condition,
    Constant,
    Expression,
    TypeName,
)

_WHOLE = ColumnType(TypeName.DECIMAL, 20, 0)
"""Holds every bigint."""
_ADDED = 36
_DIVIDED = 24
_KEPT, _MORE = 6, 21
"""Digits behind the point that Spark never cuts off, and those that a product with a bigint has more."""
_BITS_OF_DOUBLES = 53
_TRUE: Condition = AllOf(())


def summand(operand: Expression, kind: ColumnType | None) -> Expression:
    """What is added up for a sum of a type (condition 1)."""
    return Cast(operand, _WHOLE) if _is_bigint(kind) else operand


def settled(total: Expression, kind: ColumnType | None) -> Expression:
    """A sum of summands, in the type of the sum."""
    return Cast(total, kind) if kind is not None and _is_bigint(kind) else total


def or_zero(value: Expression, kind: ColumnType | None) -> Expression:
    """A sum, of nothing 0; a plain 0 would take digits behind the point from a decimal."""
    is_sized = kind is not None and kind.name is TypeName.DECIMAL and kind.precision is not None
    zero: Expression = Cast(Constant(0), kind) if kind is not None and is_sized else Constant(0)
    return Call("coalesce", (value, zero))


def changed(old: Expression, gained: Expression, lost: Expression, kind: ColumnType | None) -> Expression:
    """A sum after a change, where `adds_up` says so; none of the values is null.

    Args:
        old: the sum before.
        gained: the sum of the summands gained.
        lost: the sum of the summands lost.
        kind: the type of the sum; None or `any` if it is not known.
    """
    if _is_bigint(kind):
        return settled(_sum(Cast(old, _WHOLE), gained, lost), kind)
    if kind is None or not _is_long(kind):
        return _sum(old, gained, lost)
    narrow = ColumnType(TypeName.DECIMAL, max(_ADDED, kind.scale or 0), kind.scale)
    return Cast(_sum(Cast(old, narrow), Cast(gained, narrow), Cast(lost, narrow)), kind)


def adds_up(values: tuple[Expression, ...], kind: ColumnType | None) -> Condition:
    """Whether some sums of a type, none of them null, can be added without loss (condition 2)."""
    if kind is None or not _is_long(kind):
        return _TRUE
    return AllOf(tuple(c for v in values for c in _within(v, _ADDED - (kind.scale or 0))))


def average(total: Expression, number: Expression, kind: ColumnType, result: ColumnType) -> Expression:
    """An average of decimals, where `divides` says so."""
    precision, scale = _divided(kind)
    dividend = Cast(total, ColumnType(TypeName.DECIMAL, precision, scale))
    return Cast(Arithmetic("/", dividend, Cast(number, _WHOLE)), result)


def divides(total: Expression, number: Expression, kind: ColumnType) -> Condition:
    """Whether the average of decimals is exact (condition 3)."""
    precision, scale = _divided(kind)
    digits = MAX_PRECISION - 4 - precision
    few = Compared("<=", number, Constant(10**digits)) if digits >= 0 else AnyOf(())
    return AllOf((*_within(total, precision - scale), few))


def counts_exactly(number: Expression, operand: ColumnType | None) -> Condition:
    """Whether the average of so many whole numbers is exact (condition 4)."""
    if operand is None or operand.name.bits is None or _is_bigint(operand):
        return _TRUE
    return Compared("<=", number, Constant(2 ** (_BITS_OF_DOUBLES - operand.name.bits + 1)))


def from_average(
    average: Expression,
    number: Expression,
    operand: ColumnType | None,
    kind: ColumnType,
    result: ColumnType | None,
) -> tuple[Condition, Expression]:
    """The sum of some values, by their average and number, and when it is that (condition 5).

    Args:
        average: not null.
        number: of the values.
        operand: the type of what is averaged, if it is known.
        kind: the type of the sum.
        result: the type of the average, if it is a decimal of a size.
    """
    if operand is not None and operand.name.bits is not None and not _is_bigint(operand):
        few = Compared("<=", number, Constant(2 ** (_BITS_OF_DOUBLES - operand.name.bits - 2)))
        near = Arithmetic("+", Arithmetic("*", average, number), Constant(Decimal("0.5")))
        return few, Call("floor", (near,))
    more = 0 if result is None else (result.scale or 0) - (kind.scale or 0)
    if result is None or more < 1 or (result.precision or 0) + more + 1 > MAX_PRECISION:
        return AnyOf(()), Constant(None)
    few = Compared("<", number, Constant(10**more // 2))
    product = Arithmetic("*", average, Cast(number, ColumnType(TypeName.DECIMAL, more, 0)))
    return few, Cast(product, kind)


def adds_up_undeclared(kind: ColumnType) -> bool:
    """Whether sums of a type are added without loss where the type is not known: Spark cuts no digit off."""
    return kind.family == "number" and not kind.name.is_floating and (kind.scale or 0) <= _KEPT


def multiplies(operand: ColumnType | None) -> bool:
    """Whether a decimal times a number of copies keeps its digits behind the point."""
    if operand is None or operand.name is not TypeName.DECIMAL or operand.precision is None:
        return True
    return (operand.scale or 0) <= _KEPT or operand.precision + _MORE <= MAX_PRECISION


def _is_bigint(kind: ColumnType | None) -> bool:
    return kind is not None and kind.name is TypeName.BIGINT


def _is_long(kind: ColumnType) -> bool:
    return kind.name is TypeName.DECIMAL and (kind.precision or 0) > _ADDED


def _divided(kind: ColumnType) -> tuple[int, int]:
    """The size that a sum is cast to before it is divided."""
    scale = kind.scale or 0
    return min(MAX_PRECISION, max(_DIVIDED, scale + 2)), scale


def _within(value: Expression, digits: int) -> tuple[Condition, ...]:
    """Whether a value has at most so many digits before the point."""
    if digits < 0:
        return (AnyOf(()),)
    limit = Decimal(10) ** digits
    return Compared("<", value, Constant(limit)), Compared(">", value, Constant(-limit))


def _sum(old: Expression, gained: Expression, lost: Expression) -> Expression:
    return Arithmetic("-", Arithmetic("+", old, gained), lost)
