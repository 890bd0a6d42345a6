"""Constants as SQL expressions, quoted by sqlglot, and readable names for what a query makes."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Collection, Iterable, Sequence
from decimal import Decimal
from itertools import count

from sqlglot import exp

from datalog.errors import EmissionError
from datalog.model import MAX_PRECISION, Predicate, Value, Version, WallClock

_STEPS = (Version.STEP, Version.DEMANDED, Version.PROJECTED)
_SHORT = {Version.INSERTED: "i", Version.DELETED: "d"}


def alias_for(predicate: Predicate, taken: Collection[str]) -> str:
    """A short alias for a predicate's rows that no enclosing query uses.

    >>> alias_for(Predicate("r", Version.INSERTED), {"i"}), alias_for(Predicate("v2"), ())
    ('i2', 'v2')
    """
    return unique(_SHORT.get(predicate.version) or plain_name(predicate), taken)


def plain_name(predicate: Predicate) -> str:
    """A predicate's name as a plain identifier; steps have no numbers of their own.

    >>> plain_name(Predicate("t@known", Version.DEMANDED, (3,))), plain_name(Predicate("t", Version.KNOWN))
    ('t_known', 't_known')
    """
    return identifier(predicate.name if predicate.version in _STEPS else str(predicate))


def identifier(text: str) -> str:
    """The text as a plain identifier.

    >>> identifier("t@known"), identifier("`; drop"), identifier("1")
    ('t_known', 't_drop', 't_1')
    """
    plain = re.sub(r"\W+", "_", text)
    return plain if plain[:1].isalpha() else f"t_{plain.strip('_')}".rstrip("_")


def unique(name: str, taken: Collection[str]) -> str:
    """The name, with a number if it is taken; `taken` is case-folded, for Spark ignores case.

    >>> unique("i", {"i"}), unique("v2", {"v2", "v2_2"})
    ('i2', 'v2_3')
    """
    if name.casefold() not in taken:
        return name
    stem = f"{name}_" if name[-1:].isdigit() else name
    return next(new for n in count(2) if (new := f"{stem}{n}").casefold() not in taken)


def unique_columns(names: Iterable[str]) -> tuple[str, ...]:
    """The names, numbered where they repeat.

    >>> unique_columns(["x", "X", "y"])
    ('x', 'X2', 'y')
    """
    result: list[str] = []
    for name in names:
        result.append(unique(name, casefolded(result)))
    return tuple(result)


def casefolded(names: Sequence[str]) -> frozenset[str]:
    """The names as Spark compares them."""
    return frozenset(name.casefold() for name in names)


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
            return _decimal(value)
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


def _decimal(value: Decimal) -> exp.Expr:
    """A decimal. The zero before the point is left out where DuckDB would count it as one digit too many."""
    digits = format(value, "f")
    sign, rest = digits[: digits.startswith("-")], digits.removeprefix("-")
    return _number(sign + (rest[1:] if rest.startswith("0.") and len(rest) > MAX_PRECISION + 1 else rest))


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
