"""The types of columns, and the values between two values of an ordered type.

- Integers (``integer`` and the sizes of SQL) and dates are discrete, without end on both
  sides (dates: the years 1 to 9999, of whose ends no case should be near).
- Decimals, doubles and ``number`` are a dense order without ends. So is whatever has no
  declared type and is compared by size, unless texts are among its constants.
- Texts are ordered by code points. There is a least one, the empty text; above any text
  there is another; between two there are infinitely many (and room for any finite number
  in a row), except between ``t`` and ``t`` followed by NULs only, where there are just the
  ``t`` with fewer NULs.
- ``boolean`` is true and false. ``any``, the default, is every text and every number.

A value is a text, a number or a boolean; a date is its text, ``2024-01-31``.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date
from fractions import Fraction

from .rules import Constant

KINDS: Mapping[str, str] = {
    **dict.fromkeys(("integer", "tinyint", "smallint", "int", "bigint"), "integer"),
    **dict.fromkeys(("number", "float", "double", "decimal"), "number"),
    "string": "string",
    "date": "date",
    "boolean": "boolean",
    "any": "any",
}
SOME_DAY = 738_000
"""Far from the first and the last date."""
_DATE = re.compile(r"\d{4}-\d\d-\d\d")


def check_types(types: Mapping[str, Sequence[str]], arities: Mapping[str, int]) -> None:
    """Raise ValueError unless the types are known, and there is one for each column."""
    for name, its in types.items():
        if len(its) != arities.get(name) or not all(one in KINDS for one in its):
            raise ValueError(f"{list(its)} are not the types of the columns of {name}")


def fits(value: Constant, its: str) -> bool:
    """Whether a column of the type may hold the value."""
    match KINDS[its]:
        case "integer":
            return _numeric(value) and value == int(value)
        case "number":
            return _numeric(value)
        case "string":
            return isinstance(value, str)
        case "date":
            return isinstance(value, str) and _DATE.fullmatch(value) is not None
        case "boolean":
            return isinstance(value, bool)
        case _:
            return True


def _numeric(value: Constant) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def unused(kind: str, used: Collection[Constant]) -> list[Constant]:
    """A value of the kind that is not used, if there is one, where only equality matters."""
    match kind:
        case "integer" | "number":
            return [max((int(v) for v in used if _numeric(v)), default=0) + 1]
        case "date":
            return [_day(max((_ordinal(v) for v in used if fits(v, "date")), default=SOME_DAY) + 1)]
        case "boolean":
            return []
        case _:
            names = (f"fresh{number}" for number in itertools.count(1))
            return [next(name for name in names if name not in used)]


def between(
    low: Constant | None, high: Constant | None, kind: str, room: int, *, discrete: bool
) -> list[Constant]:
    """Values of the kind in the open interval: enough for what is at most ``room`` values to come.

    Whatever finite set of values there is in the interval, with at most ``room`` others
    than the one in question, one of those returned can be taken for that one, and others for the others, so
    that the order stays as it is, and so does who is an integer, or more become integers.

    Args:
        low: the lower end, or None for none.
        high: the upper end, or None for none.
        kind: a value of KINDS.
        room: how many other values may have to be placed in the interval.
        discrete: whether columns of discrete types are among those that share the values.

    """
    match kind:
        case "string":
            return _texts(str(low or ""), None if high is None else str(high))
        case "date":
            if low is None and high is None:
                return [_day(SOME_DAY)]
            start, stop = (None if end is None else Fraction(_ordinal(end)) for end in (low, high))
            return [_day(number) for number in _integers(start, stop, room)]
        case "boolean":
            return []
        case _:
            start, stop = (None if end is None else Fraction(end) for end in (low, high))
            if not discrete:
                return [_plain(_middle(start, stop))]
            integers = _integers(start, stop, room)
            if kind == "integer" or start is None or stop is None or _many(start, stop, room):
                return [*integers]
            edges = [start, *map(Fraction, integers), stop]
            halves = [_plain((a + b) / 2) for a, b in itertools.pairwise(edges)]
            return [*integers, *halves]


def _integers(low: Fraction | None, high: Fraction | None, room: int) -> list[int]:
    """All integers between, or, of many, one with as many as matter on both sides."""
    if low is None:
        return [0 if high is None else math.ceil(high) - 1 - room]
    if high is None:
        return [math.floor(low) + 1 + room]
    inner = range(math.floor(low) + 1, math.ceil(high))
    return [inner[len(inner) // 2]] if _many(low, high, room) else [*inner]


def _many(low: Fraction, high: Fraction, room: int) -> bool:
    """Whether some integer has so many others on both sides."""
    return math.ceil(high) - math.floor(low) - 1 > 2 * room


def _middle(low: Fraction | None, high: Fraction | None) -> Fraction:
    if low is None:
        return Fraction(0) if high is None else Fraction(math.ceil(high) - 1)
    return Fraction(math.floor(low) + 1) if high is None else (low + high) / 2


def _plain(value: Fraction) -> Constant:
    """As an integer or a double, which must be exact."""
    plain = int(value) if value.denominator == 1 else float(value)
    if Fraction(plain) != value:
        raise ValueError(f"no double is exactly {value}")
    return plain


def _texts(low: str, high: str | None) -> list[Constant]:
    if high is None:
        return [low + "m"]
    if not high.startswith(low):
        return [low + "m"]
    rest = high[len(low) :]
    nuls = len(rest) - len(rest.lstrip("\0"))
    if nuls == len(rest):
        return [low + "\0" * count for count in range(1, nuls)]
    first = ord(rest[nuls])
    if first == 1:
        return [low + "\0" * (nuls + 1) + "m"]
    return [low + "\0" * nuls + chr(min((1 + first) // 2, ord("m")))]


def in_order(values: Iterable[Constant]) -> list[Constant]:
    """The values of one ordered type from the least; raise ValueError if they are of several."""
    every = list(values)
    if len({isinstance(value, str) for value in every}) > 1:
        raise ValueError(f"texts and numbers have no common order: {every}")
    return sorted(every, key=lambda value: (value, "") if not isinstance(value, str) else (0, value))


def _ordinal(value: Constant) -> int:
    return date.fromisoformat(str(value)).toordinal()


def _day(ordinal: int) -> str:
    return date.fromordinal(ordinal).isoformat()
