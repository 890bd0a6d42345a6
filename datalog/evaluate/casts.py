"""`cast` of values, as Spark does it in ANSI mode: an error where a value does not fit."""

from __future__ import annotations

import datetime as dt
import re
from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal, InvalidOperation

from datalog.errors import EvaluationError
from datalog.model import ColumnType, TypeName, Value, WallClock

_EXACT = Context(prec=200)
"""Python's own context keeps 28 digits."""


_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?![^ T])")
_OFFSET = r"(Z|[+-]((0[0-9]|1[0-7]):[0-5][0-9]|18:00))"
_TIME = re.compile(
    rf"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}([ T][0-9]{{2}}:[0-9]{{2}}(:[0-9]{{2}}(\.[0-9]{{1,6}})?{_OFFSET}?)?)?"
)
_ZONE = re.compile(f"{_OFFSET} *$")
"""Texts as they are usually spelt: Spark takes others, too."""


def cast_value(value: Value, to: ColumnType, scale: int | None = None) -> Value:
    """A value as another type's.

    Null stays null. `scale` is that of the type that a decimal comes from, which its text shows.

    Raises:
        EvaluationError: the value does not fit, or its text is not defined here (that of a double).

    >>> cast_value("1.25", ColumnType(TypeName.DECIMAL, 3, 1)), cast_value(True, ColumnType(TypeName.STRING))
    (Decimal('1.3'), 'true')
    """
    if value is None:
        return None
    try:
        return _cast(value, to, scale)
    except (ValueError, InvalidOperation, OverflowError):
        raise EvaluationError(f"{value!r} cannot be cast to `{to}`") from None


def try_cast_value(value: Value, to: ColumnType) -> Value:
    """A text as another type's value; null where it is surely none.

    Raises:
        EvaluationError: it is no text, or spelt so that Spark may have a value.
    """
    if value is None:
        return None
    if not isinstance(value, str):
        raise EvaluationError(f"`try_cast` of {value!r}, which is no text")
    if to.name is TypeName.STRING:
        return value
    text = value.strip(_BLANK if to.name in _FRACTIONS else f"{_BLANK}\x7f")
    try:
        return _cast(text, to, None)
    except (ValueError, InvalidOperation, OverflowError):
        if _may_be_value(text, to):
            raise EvaluationError(f"{value!r} as `{to}` may be a value in Spark") from None
        return None


def _may_be_value(text: str, kind: ColumnType) -> bool:
    """Whether a text that is none as it is usually spelt may be a value of a type all the same."""
    if kind.name.is_integer or kind.name is TypeName.BOOLEAN:
        return False
    if text.startswith("0000"):  # a year that is none in Python
        return True
    usual = {TypeName.DECIMAL: _NUMBER.fullmatch, TypeName.DATE: _DAY.match}.get(kind.name, _TIME.fullmatch)
    return not usual(text) and (not text.isascii() or _MAY_BE[kind.family].match(text) is not None)


_BLANK = "".join(map(chr, range(0x21)))
"""What Spark cuts off both ends; of texts that are to be no fractions also the character of code 127."""
_FRACTIONS = (TypeName.DECIMAL, TypeName.FLOAT, TypeName.DOUBLE)
_MAY_BE = {
    "number": re.compile(r"[+-]?(\.?[0-9]|[nNiI])"),
    "date": re.compile(r"[+-]?[0-9]"),
    "timestamp": re.compile(r".*[0-9]", re.DOTALL),
    "timestamp_ntz": re.compile(r".*[0-9]", re.DOTALL),
}
"""How texts begin that may be values."""


def _cast(value: Value, to: ColumnType, scale: int | None) -> Value:
    match to.name:
        case TypeName.ANY:
            return value
        case TypeName.STRING:
            return _text(value, scale)
        case TypeName.DATE:
            return _date(value)
        case TypeName.TIMESTAMP:
            return _timestamp(value)
        case TypeName.TIMESTAMP_NTZ:
            is_zoned = isinstance(value, str) and _TIME.fullmatch(value.strip(" ")) is not None
            return WallClock.of(_timestamp(_ZONE.sub("", str(value)) if is_zoned else value))
        case TypeName.BOOLEAN:
            return _boolean(value)
        case TypeName.FLOAT | TypeName.DOUBLE:
            return float(_number(value))
        case TypeName.DECIMAL:
            return _decimal(Decimal(_number(value)), to)
        case _:
            if isinstance(value, str) and not value.strip(" ").lstrip("+-").isdecimal():
                raise ValueError
            whole = int(Decimal(_number(value)).to_integral_value(ROUND_DOWN))
            assert to.name.bits is not None
            half = 2 ** (to.name.bits - 1)
            return _require(whole, -half <= whole < half)


def _require(value: int, fits: bool) -> int:
    if not fits:
        raise ValueError
    return value


def _number(value: Value) -> int | Decimal | float:
    match value:
        case bool():
            return int(value)
        case int() | Decimal() | float():
            return value
        case str() if _NUMBER.fullmatch(value.strip(" ")):
            return Decimal(value.strip(" "))
        case _:
            raise ValueError


def _decimal(value: Decimal, to: ColumnType) -> Decimal:
    precision, scale = to.decimal_size
    rounded = rounded_to(value, scale)
    if rounded.copy_abs() >= Decimal(10) ** (precision - scale):
        raise ValueError
    return rounded or rounded.copy_abs()


def rounded_to(value: Decimal, scale: int) -> Decimal:
    """The decimal with so many digits behind the point, halves rounded away from zero."""
    return value.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, _EXACT)


def _text(value: Value, scale: int | None) -> str:
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case Decimal():
            return format(value if scale is None else rounded_to(value, scale), "f")
        case dt.datetime():
            shown = value.isoformat(sep=" ")
            return shown.rstrip("0").rstrip(".") if value.microsecond else shown
        case dt.date():
            return value.isoformat()
        case _:
            raise ValueError


def _date(value: Value) -> dt.date:
    match value:
        case dt.datetime():
            return value.date()
        case dt.date():
            return value
        case str() if _DAY.match(value.strip(" ")):
            return dt.date.fromisoformat(value.strip(" ")[:10])
        case _:
            raise ValueError


def _timestamp(value: Value) -> dt.datetime:
    match value:
        case dt.datetime():
            return dt.datetime.combine(value.date(), value.time())
        case dt.date():
            return dt.datetime.combine(value, dt.time())
        case str() if _TIME.fullmatch(value.strip(" ")):
            at = dt.datetime.fromisoformat(value.strip(" "))
            return at.astimezone(dt.UTC).replace(tzinfo=None) if at.tzinfo else at
        case _:
            raise ValueError


def _boolean(value: Value) -> bool:
    match value:
        case bool():
            return value
        case int() | float() | Decimal():
            return value != 0
        case str() if value.strip(" ").lower() in ("t", "true", "y", "yes", "1"):
            return True
        case str() if value.strip(" ").lower() in ("f", "false", "n", "no", "0"):
            return False
        case _:
            raise ValueError
