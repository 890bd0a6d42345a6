"""Expressions and conditions on one row or group: SQL's meaning, in three-valued logic."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Context, Decimal
from functools import partial
from typing import Any, assert_never

from msgspec import Struct, field

from datalog.analysis.expression_types import expression_type
from datalog.errors import EvaluationError
from datalog.evaluate.casts import cast_value, rounded_to, try_cast_value
from datalog.evaluate.order import COMPARISONS, is_nan, nan_last, one_nan
from datalog.evaluate.strings import STRINGS
from datalog.evaluate.times import TIMES
from datalog.model import (
    Aggregate,
    AllOf,
    AnyOf,
    Arithmetic,
    Call,
    Case,
    Cast,
    ColumnType,
    Compared,
    Condition,
    Constant,
    Expression,
    Holds,
    IsNull,
    Minus,
    TypeName,
    Value,
    Variable,
)

_STRING = ColumnType(TypeName.STRING)
_WIDE = (TypeName.DECIMAL, TypeName.FLOAT, TypeName.DOUBLE)
_LEAST, _MOST = -(2**63), 2**63 - 1


def call(function: str, arguments: Sequence[Value]) -> Value:
    """The value of a function.

    Raises:
        EvaluationError: no such function, or arguments that it does not take.

    >>> call("substring", ["abcdef", -3, 2]), call("coalesce", [None, 1]), call("concat", ["a", None])
    ('de', 1, None)
    """
    if function in _OF_NULLS:
        return _OF_NULLS[function](arguments)
    if any(argument is None for argument in arguments):
        return None
    try:
        return _STRICT[function](*arguments)
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError):
        shown = ", ".join(repr(argument) for argument in arguments)
        raise EvaluationError(f"`{function}` has no value for {shown}") from None


def equal(left: Value, right: Value) -> bool:
    """Whether two values that are not null are equal, a decimal compared with a double as a double."""
    one, other = _comparable(left, right)
    return COMPARISONS["="](one, other)


def _comparable(left: Value, right: Value) -> tuple[Any, Any]:
    """Two values that are not null as Spark compares them."""
    if isinstance(left, float) and isinstance(right, Decimal):
        return left, float(right)
    if isinstance(left, Decimal) and isinstance(right, float):
        return float(left), right
    return left, right


def _coalesce(arguments: Sequence[Value]) -> Value:
    return next((argument for argument in arguments if argument is not None), None)


def _extreme(choose: Callable[..., Any]) -> Callable[[Sequence[Value]], Value]:
    def chosen(arguments: Sequence[Value]) -> Value:
        known: list[Any] = [argument for argument in arguments if argument is not None]
        found: Value = choose(known, key=nan_last) if known else None
        return found

    return chosen


def _nullif(arguments: Sequence[Value]) -> Value:
    left, right = arguments
    return None if left is not None and right is not None and equal(left, right) else left


def _concat(*arguments: Value) -> str:
    return "".join(str(cast_value(argument, _STRING)) for argument in arguments)


def _round(number: float | Decimal, places: int = 0) -> Value:
    """Halves are rounded away from zero, those of a double as they are in its shortest text."""
    match number:
        case Decimal():
            return number if -int(number.as_tuple().exponent) <= places else rounded_to(number, places)
        case float() if math.isfinite(number):
            return float(rounded_to(Decimal(repr(number)), places))
        case _:
            return number


def _whole(way: Callable[[Decimal], int], number: float | Decimal) -> Value:
    """A number rounded up or down; a double to one of 64 bits, to 0 where it is no number."""
    match number:
        case Decimal():
            return Decimal(way(number))
        case float() if math.isnan(number):
            return 0
        case _:
            return _of_64_bits(way(Decimal(number)))


def _mod(number: int, by: int) -> int:
    """The remainder, with the sign of what is divided."""
    if by == 0:
        raise EvaluationError("division by zero")
    rest = abs(number) % abs(by)
    return -rest if number < 0 else rest


def _of_64_bits(number: int) -> int:
    if not _LEAST <= number <= _MOST:
        raise EvaluationError(f"{number} does not fit in 64 bits")
    return number


def _quotient(number: int, by: int) -> int:
    """A quotient without its rest."""
    if by == 0:
        raise EvaluationError("division by zero")
    found = abs(number) // abs(by)
    return _of_64_bits(found if (number < 0) == (by < 0) else -found)


def _modulus(number: int, by: int) -> int:
    """The remainder, or where that is negative the one behind it."""
    rest = _mod(number, by)
    return _mod(rest + by, by) if rest < 0 else rest


def _sign(number: float | Decimal) -> float:
    found = float(number)
    return math.copysign(1.0, found) if found > 0 or found < 0 else found


def _root(number: float | Decimal) -> float:
    found = float(number)
    return math.nan if found < 0 else math.sqrt(found)


_OF_NULLS: Mapping[str, Callable[[Sequence[Value]], Value]] = {
    "coalesce": _coalesce,
    "greatest": _extreme(max),
    "isnan": lambda arguments: is_nan(arguments[0]),
    "least": _extreme(min),
    "nullif": _nullif,
}
_STRICT: Mapping[str, Callable[..., Value]] = {
    "abs": lambda number: number.copy_abs() if isinstance(number, Decimal) else abs(number),
    "concat": _concat,
    "ceil": partial(_whole, math.ceil),
    "floor": partial(_whole, math.floor),
    "mod": _mod,
    "round": _round,
    "div": _quotient,
    "pmod": _modulus,
    "sign": _sign,
    "sqrt": _root,
    **STRINGS,
    **TIMES,
}


_EXACT = Context(prec=200)


class Scalars(Struct, frozen=True):
    """Evaluates expressions.

    Attributes:
        types: the types of variables, which the digits of decimals depend on.
        row: the values of variables.
        computed: the values of grouping expressions and aggregates, by `expression_key`.
    """

    types: Mapping[Variable, ColumnType]
    row: Mapping[Variable, Value]
    computed: Mapping[str, Value] = field(default_factory=dict)

    def value(self, expression: Expression) -> Value:
        """The value of an expression.

        Raises:
            EvaluationError: it has none.
        """
        return one_nan(self._value(expression))

    def _value(self, expression: Expression) -> Value:
        if self.computed and (key := expression_key(expression)) in self.computed:
            return self.computed[key]
        match expression:
            case Constant(value):
                return value
            case Variable() if expression in self.row:
                return self.row[expression]
            case Variable() | Aggregate():
                raise EvaluationError(f"`{expression}` has no value here")
            case Minus(operand):
                return self._fitting(_negated(self.value(operand)), operand)
            case Arithmetic():
                return self._arithmetic(expression)
            case Cast():
                return self._cast(expression)
            case Call(function, arguments):
                if function == "concat":
                    arguments = tuple(Cast(argument, _STRING) for argument in arguments)
                found = call(function, [self.value(argument) for argument in arguments])
                return self._fitting(found, arguments[0]) if function == "abs" else found
            case Case(branches, otherwise):
                chosen = next((e for c, e in branches if self.truth(c)), otherwise)
                return self.value(chosen)
            case _:
                assert_never(expression)

    def _fitting(self, value: Value, of: Expression) -> Value:
        """A value that is of the type of an expression."""
        _require_fit(value, expression_type(of, self.types))
        return value

    def _cast(self, expression: Cast) -> Value:
        found, value = expression_type(expression.operand, self.types), self.value(expression.operand)
        if expression.safe:
            return try_cast_value(value, expression.type)
        if found is not None and found.name in _WIDE:  # `coalesce(price, 0)` has a decimal's text
            value = cast_value(value, found)
        scale = found.scale if found is not None and found.name is TypeName.DECIMAL else None
        return cast_value(value, expression.type, scale)

    def truth(self, condition: Condition) -> bool | None:
        """Whether a condition is true, false or (None) unknown."""
        match condition:
            case Compared(sign, left, right):
                one, other = self.value(left), self.value(right)
                if one is None or other is None:
                    return None
                return COMPARISONS[sign](*_comparable(one, other))
            case IsNull(operand, negated):
                return (self.value(operand) is None) is not negated
            case Holds(operand, negated):
                held = self.value(operand)
                return None if held is None else bool(held) is not negated
            case AllOf(conditions):
                return _kleene(map(self.truth, conditions), decisive=False)
            case AnyOf(conditions):
                return _kleene(map(self.truth, conditions), decisive=True)
            case _:
                assert_never(condition)

    def _arithmetic(self, expression: Arithmetic) -> Value:
        left, right = self.value(expression.left), self.value(expression.right)
        if left is None or right is None:
            return None
        if not _is_number(left) or not _is_number(right):
            raise EvaluationError(f"no arithmetic on {left!r} and {right!r}")
        found = expression_type(expression, self.types)
        is_by_values = found is None or found.name is TypeName.ANY
        if is_by_values:  # nothing is known of the columns
            plain = Arithmetic(expression.operator, Constant(left), Constant(right))
            found = expression_type(plain, {})
        as_decimal = found is not None and found.name is TypeName.DECIMAL
        result: int | Decimal | float = _compute(expression.operator, left, right, as_decimal=as_decimal)
        if not is_by_values:
            _require_fit(result, found)
        if found is not None and found.name is TypeName.DECIMAL and found.scale is not None and as_decimal:
            return cast_value(Decimal(result), found)
        return result


def expression_key(expression: Expression) -> str:
    """Tells expressions apart by the types of their constants too: `x / 2` is another one than `x / 2.0`."""
    return repr(expression)


def _require_fit(value: Value, kind: ColumnType | None) -> None:
    """Refuses a whole number that does not fit into a type: Spark computes no such."""
    bits = None if kind is None else kind.name.bits
    if bits is not None and isinstance(value, int) and not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
        raise EvaluationError(f"{value} does not fit into `{kind}`")


def _is_number(value: Value) -> bool:
    return isinstance(value, int | Decimal | float) and not isinstance(value, bool)


def _compute(sign: str, left: Any, right: Any, *, as_decimal: bool) -> Any:
    if as_decimal:
        one, other = Decimal(left), Decimal(right)
        match sign:
            case "+":
                return _EXACT.add(one, other)
            case "-":
                return _EXACT.subtract(one, other)
            case "*":
                return _EXACT.multiply(one, other)
            case _:
                return _EXACT.divide(one, _not_zero(other))
    if isinstance(left, float) or isinstance(right, float) or sign == "/":
        left, right = float(left), float(right)
    match sign:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case _:
            return left / _not_zero(right)


def _not_zero(value: Any) -> Any:
    if value == 0:
        raise EvaluationError("division by zero")
    return value


def _kleene(truths: Iterable[bool | None], *, decisive: bool) -> bool | None:
    """A disjunction (`decisive` true) or conjunction (false) in three-valued logic."""
    unknown = False
    for truth in truths:
        if truth is decisive:
            return decisive
        unknown = unknown or truth is None
    return None if unknown else not decisive


def _negated(value: Value) -> Value:
    match value:
        case None:
            return None
        case Decimal():
            return value.copy_negate()
        case bool() | str() | dt.date():
            raise EvaluationError(f"{value!r} is no number, and has no negative one")
        case _:
            return -value
