"""The values of JSON records, in the encodings that Debezium and writers of JSON lines use, as plain values.

| declared type | understood |
|---|---|
| boolean | true, false |
| tinyint to bigint | an integer in the type's range |
| float, double | a number; "NaN", "Infinity", "-Infinity" |
| decimal | digits in a string, a number, base64 of the unscaled value, `{"scale", "value"}`; never rounded |
| string | a string; not bytes |
| date | days since 1970-01-01, or an ISO 8601 date |
| timestamp | milli-, micro- or nanoseconds since 1970-01-01 on the clock, or ISO 8601 with or without a zone |
| timestamp_ntz | the same, without a zone |

Where a record comes with a schema, that says the encoding. Where not, what could mean two things is refused.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import datetime as dt
import re
from collections.abc import Mapping
from decimal import Decimal

from msgspec import Struct

from datalog.model import ColumnType, TypeName, Value, WallClock
from selfmaint.feeds.settings import DecimalText, FeedSettings, TimeUnit

_EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - a timestamp of the language carries no zone
_MOST_SCALE = 1000
"""Of a decimal's digits behind the point; no type has more than 38."""
_DATES = {"io.debezium.time.Date", "org.apache.kafka.connect.data.Date", "io.debezium.time.IsoDate"}
_UNITS = {
    "io.debezium.time.Timestamp": TimeUnit.MILLIS,
    "org.apache.kafka.connect.data.Timestamp": TimeUnit.MILLIS,
    "io.debezium.time.MicroTimestamp": TimeUnit.MICROS,
    "io.debezium.time.NanoTimestamp": TimeUnit.NANOS,
}
_TIMES = {*_UNITS, "io.debezium.time.ZonedTimestamp", "io.debezium.time.IsoTimestamp"}
_DECIMALS = {"org.apache.kafka.connect.data.Decimal", "io.debezium.data.VariableScaleDecimal"}
_TEXTS = {
    *("io.debezium.data.Enum", "io.debezium.data.EnumSet", "io.debezium.data.Json", "io.debezium.data.Uuid"),
    "io.debezium.data.Xml",
}
_NAMES = {
    TypeName.DATE: _DATES,
    TypeName.TIMESTAMP: _TIMES,
    TypeName.TIMESTAMP_NTZ: _TIMES - {"io.debezium.time.ZonedTimestamp"},
    TypeName.DECIMAL: _DECIMALS,
}
_NOT_FINITE = {"NaN", "Infinity", "-Infinity"}
_DIGITS = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_TOO_FINE = re.compile(r"\.\d{6}\d*[1-9]")
_LONGEST = 60


class Encoding(Struct, frozen=True):
    """What a record's schema says of a column; nothing without a schema.

    Attributes:
        name: the semantic type, such as `io.debezium.time.Date`.
        type: the plain type, such as `int32` or `bytes`.
        scale: digits behind the point, of a decimal.
    """

    name: str | None = None
    type: str | None = None
    scale: int | None = None

    @property
    def is_known(self) -> bool:
        """Whether there is a schema."""
        return self.type is not None


NO_SCHEMA = Encoding()


def decoded(value: object, declared: ColumnType, encoding: Encoding, settings: FeedSettings) -> Value:
    """A record's value as the declared type's.

    Numbers with a point come as `Decimal`.

    Raises:
        ValueError: it is no such value, or could be several; the text says which.
    """
    if value is None:
        return None
    if encoding is not NO_SCHEMA:
        _check_encoding(encoding, declared)
    match declared.name:
        case TypeName.BOOLEAN if isinstance(value, bool):
            return value
        case name if name.is_integer:
            return _integer(value, declared)
        case TypeName.FLOAT | TypeName.DOUBLE:
            return _double(value, declared)
        case TypeName.DECIMAL:
            return _fitting(_decimal(value, declared, encoding, settings), declared)
        case TypeName.STRING if isinstance(value, str):
            return value
        case TypeName.DATE:
            return _date(value, declared, encoding)
        case TypeName.TIMESTAMP:
            return _timestamp(value, declared, encoding, settings)
        case TypeName.TIMESTAMP_NTZ:
            shown = _timestamp(value, declared, encoding, settings)
            if shown.tzinfo is not None:
                raise ValueError(f"{value} has a zone, which a {declared} has not")
            return WallClock.of(shown)
        case _:
            raise _no(value, declared)


def _no(value: object, declared: ColumnType) -> ValueError:
    text = repr(value) if isinstance(value, str) else str(value)
    return ValueError(f"{text if len(text) <= _LONGEST else text[:_LONGEST] + '...'} is no {declared}")


def _check_encoding(encoding: Encoding, declared: ColumnType) -> None:
    """Whether the schema's type is one that the declared one is written as."""
    name = encoding.name
    if name is not None and name not in _NAMES.get(declared.name, _TEXTS):
        raise ValueError(f"a `{name}` is not understood as a {declared}")
    if name is None and encoding.type == "bytes":
        raise ValueError(f"bytes are not understood as a {declared}")


def _integer(value: object, declared: ColumnType) -> int:
    assert declared.name.bits is not None
    limit = 1 << (declared.name.bits - 1)
    if isinstance(value, bool) or not isinstance(value, int) or not -limit <= value < limit:
        raise _no(value, declared)
    return value


def _double(value: object, declared: ColumnType) -> float:
    is_number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    if is_number or (isinstance(value, str) and value in _NOT_FINITE):
        with contextlib.suppress(OverflowError):
            return float(value)  # type: ignore[arg-type]
    raise _no(value, declared)


def _decimal(value: object, declared: ColumnType, encoding: Encoding, settings: FeedSettings) -> Decimal:
    match value:
        case bool():
            raise _no(value, declared)
        case int() | Decimal():
            return Decimal(value)
        case {"scale": int() as scale, "value": str() as text}:
            return _unscaled(text, scale, declared)
        case str():
            return _decimal_text(value, declared, encoding, settings)
        case _:
            raise _no(value, declared)


def _decimal_text(text: str, declared: ColumnType, encoding: Encoding, settings: FeedSettings) -> Decimal:
    """Digits or base64: as the schema says, else as the settings do, else whichever of the two it can be."""
    scale = declared.scale or 0
    if encoding.name in _DECIMALS:
        return _unscaled(text, scale if encoding.scale is None else encoding.scale, declared)
    form = DecimalText.TEXT if encoding.is_known else settings.decimals
    if form is DecimalText.BASE64:
        return _unscaled(text, scale, declared)
    is_digits = _DIGITS.fullmatch(text) is not None
    if form is None and is_digits and _is_base64(text):
        raise ValueError(
            f"{text!r} is a {declared} both as digits and as base64, and no schema says which is meant"
        )
    if is_digits:
        return Decimal(text)
    if form is None and _is_base64(text):
        return _unscaled(text, scale, declared)
    raise _no(text, declared)


def _is_base64(text: str) -> bool:
    try:
        return len(base64.b64decode(text, validate=True)) > 0
    except (binascii.Error, ValueError):
        return False


def _unscaled(text: str, scale: int, declared: ColumnType) -> Decimal:
    """The decimal of an unscaled value's bytes; `Decimal.scaleb` would round to the context's precision.

    >>> _unscaled("MDk=", 2, ColumnType(TypeName.DECIMAL, 10, 2))
    Decimal('123.45')
    """
    if not _is_base64(text) or abs(scale) > _MOST_SCALE:
        raise _no(text, declared)
    number = int.from_bytes(base64.b64decode(text), "big", signed=True)
    return Decimal(f"{number}E{-scale}")


def _fitting(value: Decimal, declared: ColumnType) -> Decimal:
    """The decimal, if the declared type holds it without rounding."""
    precision, scale = declared.precision or 38, declared.scale or 0
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise _no(value, declared)
    if exponent == -scale and len(digits) <= precision and value:  # as it is mostly written
        return value
    number = int("".join(str(d) for d in digits))
    shift = exponent + scale
    if number and not -len(digits) < shift <= precision:  # before computing with such powers
        raise ValueError(f"{value} does not fit into {declared}")
    unscaled, lost = 0, 0
    if number:
        unscaled, lost = (number * 10**shift, 0) if shift >= 0 else divmod(number, 10**-shift)
    if lost or unscaled >= 10**precision:
        raise ValueError(f"{value} does not fit into {declared}")
    sign = "-" if value.is_signed() and unscaled else ""
    return Decimal(f"{sign}{unscaled}E{-scale}")


def _date(value: object, declared: ColumnType, encoding: Encoding) -> dt.date:
    try:
        match value:
            case bool():
                raise _no(value, declared)
            case int() if encoding.name in _DATES or not encoding.is_known:
                return (_EPOCH + dt.timedelta(days=value)).date()
            case str():
                return dt.date.fromisoformat(value.removesuffix("Z"))
            case dt.date() if not isinstance(value, dt.datetime):
                return value
    except (ValueError, OverflowError):
        raise _no(value, declared) from None
    raise _no(value, declared)


def _timestamp(
    value: object, declared: ColumnType, encoding: Encoding, settings: FeedSettings
) -> dt.datetime:
    match value:
        case bool():
            raise _no(value, declared)
        case int():
            unit = _UNITS.get(encoding.name or "") or settings.timestamps
            if unit is None:
                raise ValueError(f"{value} is a {declared} in a unit that no schema says")
            micros, rest = divmod(value * unit.nanoseconds, 1000)
            if rest:
                raise ValueError(f"{value} is finer than the microseconds that a {declared} holds")
            try:
                return _EPOCH + dt.timedelta(microseconds=micros)
            except OverflowError:
                raise _no(value, declared) from None
        case str() if not _TOO_FINE.search(value):
            try:
                return dt.datetime.fromisoformat(value)
            except ValueError:
                raise _no(value, declared) from None
        case dt.datetime() if not getattr(value, "nanosecond", 0):  # which those of pandas have
            return value
        case _:
            raise _no(value, declared)


def encodings(schema: object) -> Mapping[str, Encoding]:
    """The columns' encodings in the schema of a row, as Kafka Connect's JSON converter writes it.

    Raises:
        ValueError: a name or a scale that is none.
    """
    fields = schema.get("fields") if isinstance(schema, dict) else None
    found = {}
    for entry in fields if isinstance(fields, list) else ():
        if isinstance(entry, dict) and isinstance(entry.get("field"), str):
            parameters = entry.get("parameters")
            scale = parameters.get("scale") if isinstance(parameters, dict) else None
            name = entry.get("name")
            if name is not None and not isinstance(name, str):
                raise ValueError(f"the schema calls an encoding `{name}`")
            found[entry["field"]] = Encoding(
                name, str(entry.get("type")), None if scale is None else _scale(scale)
            )
    return found


def _scale(scale: object) -> int:
    if re.fullmatch(r"-?[0-9]{1,4}", str(scale)):
        return int(str(scale))
    raise ValueError(f"the schema has a decimal of scale `{scale}`")
