"""Constants as SQL expressions. Quoting is sqlglot's, so a hostile string is just data."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

from sqlglot import exp

from datalog.model import Value, WallClock
from datalog.sql.errors import EmissionError


def constant(value: Value) -> exp.Expr:
    """The expression of a value.

    >>> constant(Decimal("1.50")).sql("spark"), constant(1.5).sql("spark"), constant(None).sql("spark")
    ('1.50', '1.5E0', 'NULL')
    >>> constant(dt.date(2024, 2, 29)).sql("spark")
    "CAST('2024-02-29' AS DATE)"
    """
    match value:
        case None:
            return exp.Null()
        case bool():
            return exp.Boolean(this=value)
        case int():
            return _number(str(value))
        case Decimal():
            if not value.is_finite():
                raise EmissionError(f"the decimal `{value}` has no SQL literal")
            return _number(format(value, "f"))
        case float():
            return _double(value)
        case str():
            return _string(value)
        case WallClock():
            return exp.cast(exp.Literal.string(value.isoformat(sep=" ")), exp.DType.TIMESTAMPNTZ)
        case dt.datetime():
            return exp.cast(exp.Literal.string(value.isoformat(sep=" ")), exp.DType.TIMESTAMP)
        case dt.date():
            return exp.cast(exp.Literal.string(value.isoformat()), exp.DType.DATE)


def _number(digits: str) -> exp.Expr:
    if digits.startswith("-"):
        return exp.Neg(this=exp.Literal.number(digits[1:]))
    return exp.Literal.number(digits)


def _double(value: float) -> exp.Expr:
    """A double: a literal with an exponent, for one without is a decimal."""
    if not math.isfinite(value):
        return exp.cast(exp.Literal.string(str(value)), exp.DType.DOUBLE)
    digits = repr(value)
    return _number(digits if "e" in digits else f"{digits}E0")


def _string(value: str) -> exp.Expr:
    """A string in which Spark sees no variable: it replaces `${name}` even inside quotes."""
    parts = value.split("${")
    if len(parts) == 1:
        return exp.Literal.string(value)
    texts = [f"{'{' if i else ''}{part}{'$' if i < len(parts) - 1 else ''}" for i, part in enumerate(parts)]
    return exp.Concat(expressions=[exp.Literal.string(t) for t in texts], safe=False, coalesce=False)
