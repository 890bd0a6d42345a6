"""Constants of SQL as values of another type, where a cast of them loses nothing."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from decimal import Decimal

from datalog.analysis.types import common_type, constant_type
from datalog.model import ANY, ColumnType, TypeName, Value, WallClock
from datalog.sql.views.blocks import with_scale

_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{1,6})?|\d{4}-\d\d-\d\d")
_DECIMAL = re.compile(r"-?\d+(\.\d+)?")


def typed_constant(value: Value, to: ColumnType) -> Value:
    """A constant of another type, where that loses nothing; else None.

    >>> typed_constant("2024-02-29", ColumnType(TypeName.DATE))
    datetime.date(2024, 2, 29)
    """
    match value, to.name:
        case str() as text, TypeName.DATE if _DAY.fullmatch(text):
            return _or_none(dt.date.fromisoformat, text)
        case str() as text, TypeName.TIMESTAMP if _TIMESTAMP.fullmatch(text):
            return _or_none(dt.datetime.fromisoformat, text)
        case str() as text, TypeName.TIMESTAMP_NTZ if _TIMESTAMP.fullmatch(text):
            return _or_none(WallClock.fromisoformat, text)
        case str() as text, TypeName.DECIMAL if _DECIMAL.fullmatch(text):
            found = Decimal(text)
            fits = common_type(constant_type(found) or ANY, to) == to
            return with_scale(found, to.decimal_size[1]) if fits else None
        case int(), TypeName.INT | TypeName.BIGINT if not isinstance(value, bool):
            size = constant_type(value)
            return value if size is not None and common_type(size, to) == to else None
        case _:
            return None


def _or_none(read: Callable[[str], Value], text: str) -> Value:
    try:
        return read(text)
    except ValueError:
        return None
