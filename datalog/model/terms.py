"""Terms: variables and constants.

A constant's value is a plain Python value. `None` is the constant null: as a stored value it is one more
constant, equal to itself (`IS NOT DISTINCT FROM`).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import TypeAlias

from datalog.model.spans import Placed, Span


class WallClock(dt.datetime):
    """A date and a time of day that no zone makes an instant: a value of the type `timestamp_ntz`."""

    @classmethod
    def of(cls, value: dt.datetime) -> WallClock:
        """What a clock shows, without its zone.

        >>> WallClock.of(dt.datetime(2026, 3, 29, 2, 30))
        WallClock(2026, 3, 29, 2, 30)
        """
        return cls.combine(value.date(), value.time())


Value: TypeAlias = bool | int | Decimal | float | str | dt.date | dt.datetime | None
Row: TypeAlias = tuple[Value, ...]


def value_kind(value: Value) -> str:
    """The family a value belongs to; values of different families are never equal.

    >>> value_kind(True), value_kind(1), value_kind('1')
    ('boolean', 'number', 'string')
    """
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | Decimal() | float():
            return "number"
        case str():
            return "string"
        case WallClock():
            return "timestamp_ntz"
        case dt.datetime():
            return "timestamp"
        case dt.date():
            return "date"


class Variable(Placed, frozen=True, cache_hash=True):
    """A variable; its name starts with a capital letter or an underscore."""

    name: str
    span: Span | None = None

    def __str__(self) -> str:
        return self.name


class Constant(Placed, frozen=True, eq=False):
    """A constant. Equality is by value within a family: `true`, `1` and `'1'` are three constants."""

    value: Value
    span: Span | None = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Constant):
            return NotImplemented
        return self.value == other.value and value_kind(self.value) == value_kind(other.value)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.value)

    def __str__(self) -> str:
        return repr(self.value)


Term: TypeAlias = Variable | Constant


def value_of(term: Term, values: Mapping[Variable, Value]) -> Value:
    """A constant's value, or what a variable stands for."""
    return term.value if isinstance(term, Constant) else values[term]


def ground(terms: Iterable[Term], values: Mapping[Variable, Value]) -> Row:
    """The values of some terms."""
    return tuple(value_of(t, values) for t in terms)
