"""Constants between text and values: reading and printing are inverse, and keep the Python type."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal, InvalidOperation
from typing import TypeVar, assert_never

from datalog.model.terms import Value, WallClock
from datalog.syntax.quoting import quote, unquote

MOST_DIGITS = 300
"""How many digits a number may have before and behind its point: it is held against doubles, which hold so many."""

_PLAIN_DECIMAL_DIGITS = 40


def read_constant(kind: str, text: str) -> Value:
    """The value of a constant.

    Raises:
        EscapeError: a backslash in a string starts no escape.
        ValueError: there is no such date, timestamp or number; the message says why.

    >>> read_constant("TYPED", "date '2026-01-31'"), read_constant("DECIMAL", "1.50")
    (datetime.date(2026, 1, 31), Decimal('1.50'))
    """
    if kind in ("INTEGER", "DECIMAL", "FLOAT"):
        _require_few_digits(text)
    match kind:
        case "INTEGER":
            return int(text)
        case "DECIMAL":
            return Decimal(text)
        case "FLOAT":
            return float(text)
        case "STRING":
            return unquote(text)
        case "TRUE" | "FALSE":
            return kind == "TRUE"
        case "NULL":
            return None
        case "TYPED":
            start = min(text.find(mark) for mark in "'\"" if mark in text)
            return _typed(text[:start].strip(), unquote(text[start:]))
        case _:
            raise AssertionError(f"no constant: {kind}")


def _require_few_digits(text: str) -> None:
    if sum(char.isdigit() for char in text) > MOST_DIGITS:
        raise ValueError(f"more than {MOST_DIGITS} digits")


def _typed(type_name: str, text: str) -> Value:
    match type_name:
        case "date":
            return dt.date.fromisoformat(text)
        case "timestamp":
            return dt.datetime.fromisoformat(text)
        case "timestamp_ntz":
            return WallClock.of(_without_zone(dt.datetime.fromisoformat(text), text))
        case "double":
            _require_few_digits(text)
            return _number(float(text), text)
        case "decimal":
            _require_few_digits(text)
            return _decimal(text)
        case _:
            raise AssertionError(f"no type of a constant: {type_name}")


def _decimal(text: str) -> Decimal:
    try:
        value = _number(Decimal(text), text)
    except InvalidOperation:
        raise ValueError(f"{text!r} is no decimal number") from None
    if value.is_finite() and abs(value.adjusted()) > MOST_DIGITS:
        raise ValueError(f"more than {MOST_DIGITS} digits")
    return value


def _without_zone(value: dt.datetime, text: str) -> dt.datetime:
    if value.tzinfo is not None:
        raise ValueError(f"{text!r} has a zone, and a timestamp_ntz has none")
    return value


NumberT = TypeVar("NumberT", float, Decimal)


def _number(value: NumberT, text: str) -> NumberT:
    """The value, unless it is not-a-number, which equals nothing."""
    if math.isnan(value):
        raise ValueError(f"{text!r} is no number")
    return value


def show_constant(value: Value) -> str:
    """The constant as it is written in a rule.

    >>> [show_constant(v) for v in (None, True, -3, 1.5, Decimal("1.50"), "it's", dt.date(2026, 1, 31))]
    ['null', 'true', '-3', '1.5e0', '1.50', "'it''s'", "date '2026-01-31'"]
    """
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(int(value))
        case float():
            return _show_float(value)
        case Decimal():
            return _show_decimal(value)
        case str():
            return quote(value, "'")
        case WallClock():
            return f"timestamp_ntz '{value.isoformat(sep=' ')}'"
        case dt.datetime():
            return f"timestamp '{value.isoformat(sep=' ')}'"
        case dt.date():
            return f"date '{value.isoformat()}'"
        case _:
            assert_never(value)


def _show_float(value: float) -> str:
    if not math.isfinite(value):
        return f"double '{value}'"
    text = repr(float(value))
    return text if "e" in text else f"{text}e0"


def _show_decimal(value: Decimal) -> str:
    exponent = value.as_tuple().exponent
    if isinstance(exponent, int) and -_PLAIN_DECIMAL_DIGITS <= exponent < 0:
        return format(value, "f")
    return f"decimal '{value}'"
