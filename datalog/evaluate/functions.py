"""The scalar functions of `FUNCTIONS`, as Spark defines them."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from datalog.evaluate.casts import cast_value
from datalog.evaluate.errors import EvaluationError
from datalog.model import ColumnType, TypeName, Value

_STRING = ColumnType(TypeName.STRING)


def call(function: str, arguments: Sequence[Value]) -> Value:
    """The value of a function.

    Args:
        function: a name of `FUNCTIONS`.
        arguments: its arguments.

    Raises:
        EvaluationError: no such function, or arguments that it does not take.

    Example:
        >>> call("substring", ["abcdef", -3, 2]), call("coalesce", [None, 1]), call("concat", ["a", None])
        ('de', 1, None)
    """
    if function in _OF_NULLS:
        return _OF_NULLS[function](arguments)
    if any(argument is None for argument in arguments):
        return None
    try:
        return _STRICT[function](*arguments)
    except (KeyError, TypeError, AttributeError, ValueError):
        shown = ", ".join(repr(argument) for argument in arguments)
        raise EvaluationError(f"`{function}` has no value for {shown}") from None


def equal(left: Value, right: Value) -> bool:
    """Whether two values that are not null are equal, a decimal compared with a double as a double."""
    one, other = comparable(left, right)
    return bool(one == other)


def comparable(left: Value, right: Value) -> tuple[Any, Any]:
    """Two values that are not null as Spark compares them."""
    if isinstance(left, float) and isinstance(right, Decimal):
        return left, float(right)
    if isinstance(left, Decimal) and isinstance(right, float):
        return float(left), right
    return left, right


def _coalesce(arguments: Sequence[Value]) -> Value:
    return next((argument for argument in arguments if argument is not None), None)


def _extreme(choose: Callable[[list[Any]], Any]) -> Callable[[Sequence[Value]], Value]:
    def chosen(arguments: Sequence[Value]) -> Value:
        known: list[Any] = [argument for argument in arguments if argument is not None]
        found: Value = choose(known) if known else None
        return found

    return chosen


def _nullif(arguments: Sequence[Value]) -> Value:
    left, right = arguments
    return None if left is not None and right is not None and equal(left, right) else left


def _substring(text: str, position: int, length: int | None = None) -> str:
    """As in Spark: from 1, where 0 is 1 too; a negative position counts from the end."""
    start = position - 1 if position > 0 else len(text) + position if position < 0 else 0
    end = len(text) if length is None else start + length
    return text[max(start, 0) : max(end, 0)] if end > max(start, 0) else ""


def _like(text: str, pattern: str) -> bool:
    r"""`%` any text, `_` any character, `\` before either takes it as it is."""
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    special = {"%": ".*", "_": "."}
    regex = "".join(special.get(part) or re.escape(part[-1]) for part in parts)
    return re.fullmatch(regex, text, re.DOTALL) is not None


def _concat(*arguments: Value) -> str:
    return "".join(str(cast_value(argument, _STRING)) for argument in arguments)


def _quarter(day: dt.date) -> int:
    return (day.month + 2) // 3


_OF_NULLS: Mapping[str, Callable[[Sequence[Value]], Value]] = {
    "coalesce": _coalesce,
    "greatest": _extreme(max),
    "least": _extreme(min),
    "nullif": _nullif,
}
_STRICT: Mapping[str, Callable[..., Value]] = {
    "abs": lambda number: number.copy_abs() if isinstance(number, Decimal) else abs(number),
    "concat": _concat,
    "day": lambda day: day.day,
    "length": len,
    "like": _like,
    "lower": str.lower,
    "month": lambda day: day.month,
    "quarter": _quarter,
    "substring": _substring,
    "trim": lambda text: text.strip(" "),
    "upper": str.upper,
    "year": lambda day: day.year,
}
