"""Types of expressions, as Spark has them in ANSI mode.

Source: Spark SQL, `DecimalPrecision` and `ANSI compliance` in its guide: the precision and scale of decimal
arithmetic, cut to 38 digits so that at least 6 digits stay behind the point.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import assert_never

from datalog.analysis.types import as_decimal, common_type, constant_type
from datalog.model import (
    ANY,
    MAX_PRECISION,
    Aggregate,
    AggregateFunction,
    Arithmetic,
    Call,
    Case,
    Cast,
    ColumnType,
    Constant,
    Expression,
    Minus,
    TypeName,
    Variable,
)

_LEAST_SCALE = 6
_INT, _BIGINT, _DOUBLE = (ColumnType(name) for name in (TypeName.INT, TypeName.BIGINT, TypeName.DOUBLE))
_STRING, _BOOLEAN = ColumnType(TypeName.STRING), ColumnType(TypeName.BOOLEAN)
DIGITS_OF_COUNTS = 12
"""No group has so many rows that their number has more digits."""

_OF_CALLS = {
    **dict.fromkeys(("concat", "date_format", "lower", "substring", "trim", "upper"), _STRING),
    **dict.fromkeys(("year", "quarter", "month", "day", "hour", "minute", "second"), _INT),
    **dict.fromkeys(("datediff", "dayofweek", "dayofyear", "length", "weekday", "weekofyear"), _INT),
    **dict.fromkeys(("add_months", "date_add", "last_day", "trunc"), ColumnType(TypeName.DATE)),
    "date_trunc": ColumnType(TypeName.TIMESTAMP),
    **dict.fromkeys(("md5", "replace", "sha2"), _STRING),
    **dict.fromkeys(("initcap", "lpad", "ltrim", "repeat", "reverse", "right", "rpad"), _STRING),
    **dict.fromkeys(("regexp_extract", "regexp_replace"), _STRING),
    **dict.fromkeys(("rtrim", "sha1", "split_part", "translate"), _STRING),
    **dict.fromkeys(("ascii", "locate"), _INT),
    **dict.fromkeys(("div", "timestampdiff", "unix_seconds", "unix_timestamp"), _BIGINT),
    **dict.fromkeys(("sign", "sqrt"), _DOUBLE),
    **dict.fromkeys(("isnan", "like", "rlike"), _BOOLEAN),
    "make_date": ColumnType(TypeName.DATE),
}


def expression_type(expression: Expression, variables: Mapping[Variable, ColumnType]) -> ColumnType | None:
    """The type of an expression's values, given those of its variables; `any` where they are not known.

    Returns:
        The type; `any` if it cannot be told, None for what is always null.

    >>> price = ColumnType(TypeName.DECIMAL, 15, 2)
    >>> product = Arithmetic("*", Variable("P"), Arithmetic("-", Constant(1), Variable("D")))
    >>> str(expression_type(product, {Variable("P"): price, Variable("D"): price}))
    'decimal(32,4)'
    """
    match expression:
        case Variable():
            return variables.get(expression, ANY)
        case Constant(value):
            return constant_type(value)
        case Minus(operand):
            return expression_type(operand, variables)
        case Cast(_, column_type):
            return settled(column_type)
        case Arithmetic(operator, left, right):
            sides = [(side, _operand(side, variables)) for side in (left, right)]
            known = [one for one in sides if one[1] is not None]
            sides = known * 2 if len(known) == 1 else sides  # null has the type of the other side
            if operator != "/" and all(kind is not None and _is_whole(kind) for _, kind in sides):
                return _common(
                    constant_type(side.value) if isinstance(side, Constant) else kind for side, kind in sides
                )
            return _arithmetic(operator, *(kind for _, kind in sides))
        case Call(function, arguments):
            return _called(function, arguments, variables)
        case Case(branches, otherwise):
            results = (*(result for _, result in branches), otherwise)
            return _common(expression_type(result, variables) for result in results)
        case Aggregate(function, operand):
            return _aggregate(function, None if operand is None else expression_type(operand, variables))
        case _:
            assert_never(expression)


def _called(
    function: str, arguments: Sequence[Expression], variables: Mapping[Variable, ColumnType]
) -> ColumnType | None:
    """The type of a call's values."""
    if function in _OF_CALLS:
        return _OF_CALLS[function]
    if function == "round":
        return _rounded(expression_type(arguments[0], variables), arguments[1:])
    if function == "timestampadd":
        return _later(expression_type(arguments[2], variables))
    if function in ("ceil", "floor"):
        return _whole(expression_type(arguments[0], variables))
    given = arguments[:1] if function in ("abs", "nullif") else arguments
    found = _common(expression_type(argument, variables) for argument in given)
    is_of_rest = function in ("mod", "pmod") and found is not None and not found.name.is_integer
    return ANY if is_of_rest else found


def sum_type(operand: ColumnType | None) -> ColumnType:
    """The type of a sum of values of a type."""
    if operand is None or operand.name.is_floating:
        return _DOUBLE
    if operand.name is TypeName.DECIMAL and not operand.is_open:
        precision, scale = as_decimal(operand)
        return ColumnType(TypeName.DECIMAL, min(MAX_PRECISION, precision + 10), scale)
    return _BIGINT if operand.name.is_integer else ANY


def average_type(operand: ColumnType | None) -> ColumnType:
    """The type of an average of values of a type."""
    if operand is None or operand.name.is_integer or operand.name.is_floating:
        return _DOUBLE
    if operand.name is not TypeName.DECIMAL or operand.is_open:
        return ANY
    precision, scale = as_decimal(operand)
    return _cut(precision + 4, scale + 4, exact_scale=True)


def _later(at: ColumnType | None) -> ColumnType:
    """The type of a later time: a date becomes a time with a zone."""
    return ColumnType(TypeName.TIMESTAMP) if at is None or at.name is not TypeName.TIMESTAMP_NTZ else at


def _rounded(operand: ColumnType | None, places: Sequence[Expression]) -> ColumnType | None:
    """The type of a rounded number: a decimal may get one more digit before the point."""
    if operand is None or operand.name.is_integer or operand.name.is_floating:
        return operand
    wanted = places[0].value if places and isinstance(places[0], Constant) else None if places else 0
    if operand.name is not TypeName.DECIMAL or operand.is_open or type(wanted) is not int or wanted < 0:
        return ANY
    precision, scale = as_decimal(operand)
    kept = min(scale, wanted)
    return ColumnType(TypeName.DECIMAL, min(MAX_PRECISION, precision - scale + 1 + kept), kept)


def _whole(operand: ColumnType | None) -> ColumnType | None:
    """The type of a number rounded up or down to a whole one."""
    if operand is None or operand.name.is_integer or operand.name.is_floating:
        return None if operand is None else _BIGINT
    if operand.name is not TypeName.DECIMAL or operand.is_open:
        return ANY
    precision, scale = as_decimal(operand)
    return ColumnType(TypeName.DECIMAL, min(MAX_PRECISION, precision - scale + 1) if scale else precision, 0)


def _aggregate(function: AggregateFunction, operand: ColumnType | None) -> ColumnType | None:
    match function:
        case AggregateFunction.COUNT:
            return _BIGINT
        case AggregateFunction.SUM:
            return sum_type(operand)
        case AggregateFunction.AVG:
            return average_type(operand)
        case AggregateFunction.MIN | AggregateFunction.MAX:
            return operand
        case _:
            assert_never(function)


def _operand(expression: Expression, variables: Mapping[Variable, ColumnType]) -> ColumnType | None:
    """The type of an operand; a whole constant has as many digits as it is written with."""
    if (
        isinstance(expression, Constant)
        and isinstance(expression.value, int)
        and not isinstance(expression.value, bool)
    ):
        return ColumnType(TypeName.DECIMAL, len(str(abs(expression.value))), None)
    found = expression_type(expression, variables)
    return ANY if found is not None and found.is_open else found


def _arithmetic(operator: str, left: ColumnType | None, right: ColumnType | None) -> ColumnType | None:
    if left is None or right is None:
        return None
    if _is_whole(left) and _is_whole(right):
        return _DOUBLE
    if TypeName.ANY in (left.name, right.name):
        return ANY
    if left.name.is_floating or right.name.is_floating:
        return _DOUBLE
    if "number" not in (left.family, right.family):
        return ANY
    return _decimal(operator, as_decimal(left), as_decimal(right))


def _is_whole(column_type: ColumnType) -> bool:
    """Whether it is a whole-number type, or that of a whole constant."""
    literal = column_type.name is TypeName.DECIMAL and column_type.scale is None
    return (literal and column_type.precision is not None) or column_type.name.is_integer


def _decimal(operator: str, left: tuple[int, int], right: tuple[int, int]) -> ColumnType:
    (p1, s1), (p2, s2) = left, right
    if operator == "*":
        return _cut(p1 + p2 + 1, s1 + s2)
    if operator == "/":
        scale = max(_LEAST_SCALE, s1 + p2 + 1)
        return _cut(p1 - s1 + s2 + scale, scale)
    scale = max(s1, s2)
    return _cut(max(p1 - s1, p2 - s2) + scale + 1, scale)


def _cut(precision: int, scale: int, *, exact_scale: bool = False) -> ColumnType:
    """A decimal type within 38 digits; digits behind the point go first, down to 6 of them."""
    if precision <= MAX_PRECISION or exact_scale:
        return ColumnType(TypeName.DECIMAL, min(precision, MAX_PRECISION), min(scale, MAX_PRECISION))
    kept = max(MAX_PRECISION - (precision - scale), min(scale, _LEAST_SCALE))
    return ColumnType(TypeName.DECIMAL, MAX_PRECISION, kept)


def settled(column_type: ColumnType) -> ColumnType:
    """The type; of a decimal, with the sizes that it has in Spark."""
    if column_type.name is not TypeName.DECIMAL:
        return column_type
    return ColumnType(TypeName.DECIMAL, *column_type.decimal_size)


def _common(types: Iterable[ColumnType | None]) -> ColumnType | None:
    known = [one for one in types if one is not None]
    if not known:
        return None
    return reduce(lambda left, right: common_type(left, right) or ANY, known)
