"""Encodings of values, positions, and how events name their tables."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

from datalog.model import ColumnType, TypeName
from selfmaint.errors import InputError
from selfmaint.feeds.debezium import position_in
from selfmaint.feeds.formats import recognised
from selfmaint.feeds.ranges import Scale, bounds, position_of, shown
from selfmaint.feeds.settings import DecimalText, FeedSettings, TimeUnit
from selfmaint.feeds.values import NO_SCHEMA, Encoding, decoded

MONEY = ColumnType(TypeName.DECIMAL, 10, 2)
DATE, TIME = ColumnType(TypeName.DATE), ColumnType(TypeName.TIMESTAMP)
BASE64 = FeedSettings(decimals=DecimalText.BASE64)
CONNECT = "org.apache.kafka.connect.data."


def of(name: str, kind: str = "int64", scale: int | None = None) -> Encoding:
    return Encoding(name, kind, scale)


@pytest.mark.parametrize(
    ("value", "declared", "encoding", "expected"),
    [
        (None, MONEY, NO_SCHEMA, None),
        (True, ColumnType(TypeName.BOOLEAN), NO_SCHEMA, True),
        (-128, ColumnType(TypeName.TINYINT), NO_SCHEMA, -128),
        (3, ColumnType(TypeName.DOUBLE), NO_SCHEMA, 3.0),
        ("-Infinity", ColumnType(TypeName.DOUBLE), NO_SCHEMA, float("-inf")),
        ("12.5", MONEY, NO_SCHEMA, Decimal("12.50")),
        ("-1.05", MONEY, NO_SCHEMA, Decimal("-1.05")),
        (Decimal("1.50"), MONEY, NO_SCHEMA, Decimal("1.50")),
        ("MDk=", MONEY, NO_SCHEMA, Decimal("123.45")),  # not digits, so base64
        ("1234", MONEY, of(CONNECT + "Decimal", "bytes", 4), None),
        ("/w==", MONEY, of(CONNECT + "Decimal", "bytes", 2), Decimal("-0.01")),
        ("1234", MONEY, Encoding(None, "string"), Decimal("1234.00")),
        ({"scale": 1, "value": "Dw=="}, MONEY, of("io.debezium.data.VariableScaleDecimal"), Decimal("1.50")),
        (20484, DATE, NO_SCHEMA, dt.date(2026, 1, 31)),
        (-1, DATE, of("io.debezium.time.Date", "int32"), dt.date(1969, 12, 31)),
        ("2026-01-31Z", DATE, of("io.debezium.time.IsoDate", "string"), dt.date(2026, 1, 31)),
        (1500, TIME, of("io.debezium.time.Timestamp"), dt.datetime(1970, 1, 1, 0, 0, 1, 500000)),
        (1, TIME, of("io.debezium.time.MicroTimestamp"), dt.datetime(1970, 1, 1, 0, 0, 0, 1)),
        (-1000, TIME, of("io.debezium.time.NanoTimestamp"), dt.datetime(1969, 12, 31, 23, 59, 59, 999999)),
        ("2026-01-31T12:00:00", TIME, NO_SCHEMA, dt.datetime(2026, 1, 31, 12)),
        ("x", ColumnType(TypeName.STRING), of("io.debezium.data.Enum", "string"), "x"),
    ],
)
def test_values_that_are_understood(
    value: Any, declared: ColumnType, encoding: Encoding, expected: Any
) -> None:
    if expected is None and value is not None:
        with pytest.raises(ValueError, match="does not fit"):
            decoded(value, declared, encoding, FeedSettings())
        return
    found = decoded(value, declared, encoding, FeedSettings())
    assert (found, type(found)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("value", "declared", "encoding", "said"),
    [
        ("1234", MONEY, NO_SCHEMA, "both as digits and as base64"),
        ("12.345", MONEY, NO_SCHEMA, "does not fit"),
        ("123456789.00", MONEY, NO_SCHEMA, "does not fit"),
        ("1e999999999", MONEY, NO_SCHEMA, "does not fit"),
        ("1e-999999999", MONEY, NO_SCHEMA, "does not fit"),
        ("abc def", MONEY, NO_SCHEMA, "is no decimal"),
        (True, MONEY, NO_SCHEMA, "is no decimal"),
        (128, ColumnType(TypeName.TINYINT), NO_SCHEMA, "is no tinyint"),
        (True, ColumnType(TypeName.INT), NO_SCHEMA, "is no int"),
        (1, ColumnType(TypeName.BOOLEAN), NO_SCHEMA, "is no boolean"),
        (Decimal("1.5"), ColumnType(TypeName.INT), NO_SCHEMA, "is no int"),
        ([1], ColumnType(TypeName.STRING), NO_SCHEMA, "is no string"),
        ("AA==", ColumnType(TypeName.STRING), Encoding(None, "bytes"), "bytes are not understood"),
        (5, ColumnType(TypeName.INT), of("io.debezium.time.Date", "int32"), "is not understood as a int"),
        (5, DATE, Encoding(None, "int32"), "is no date"),
        (10**12, DATE, NO_SCHEMA, "is no date"),
        ("31.1.2026", DATE, NO_SCHEMA, "is no date"),
        (5, TIME, NO_SCHEMA, "in a unit that no schema says"),
        (1, TIME, of("io.debezium.time.NanoTimestamp"), "finer than the microseconds"),
        (2**62, TIME, of("io.debezium.time.Timestamp"), "is no timestamp"),
        ("2026-01-31T12:00:00.1234567", TIME, NO_SCHEMA, "is no timestamp"),
        (5, TIME, of("io.debezium.time.MicroTime"), "is not understood"),
    ],
)
def test_values_that_are_refused(value: Any, declared: ColumnType, encoding: Encoding, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        decoded(value, declared, encoding, FeedSettings())


def test_settings_say_what_no_schema_does() -> None:
    assert decoded("1234", MONEY, NO_SCHEMA, FeedSettings(decimals=DecimalText.TEXT)) == Decimal("1234.00")
    assert (
        decoded("1234", MONEY, NO_SCHEMA, BASE64)
        == Decimal(int.from_bytes(b"\xd7\x6d\xf8", signed=True)) / 100
    )
    settings = FeedSettings(timestamps=TimeUnit.MILLIS)
    assert decoded(1, TIME, NO_SCHEMA, settings) == dt.datetime(1970, 1, 1, 0, 0, 0, 1000)


@pytest.mark.parametrize(
    ("source", "scale", "position"),
    [
        ({"lsn": 23803720, "ts_ms": 1}, Scale.LSN, (23803720,)),
        ({"file": "mysql-bin.000003", "pos": 154, "row": 1}, Scale.BINLOG, (3, 154, 1)),
        (
            {"commit_lsn": "00000025:00000b58:0003", "change_lsn": "00000025:00000b58:0002"},
            Scale.SQL_SERVER,
            (37, 2904, 3, 37, 2904, 2, 0),
        ),
        ({"scn": "1234567890123"}, Scale.SCN, (1234567890123,)),
        ({"ts_ms": 5}, Scale.TIME, (5,)),
        ({}, Scale.LINE, ()),
        (None, Scale.LINE, ()),
    ],
)
def test_positions_of_sources(source: Any, scale: Scale, position: tuple[int, ...]) -> None:
    assert position_in(source) == (scale, position)
    if position:
        assert position_of(shown(position)) == position


def test_ranges() -> None:
    found = bounds("mysql-bin.000003:154", "4")
    assert not found.holds((3, 154, 9))
    assert found.holds((3, 155, 0))
    assert found.holds((4, 10**9, 0))
    assert not found.holds((5, 0, 0))
    with pytest.raises(InputError):
        bounds("5", "4")


@pytest.mark.parametrize(
    "columns",
    [["a", "b"], ["_change_type", "a"], ["_change_type", "_commit_version", "_change_ordinal"], ["op", "after",
     "_change_type", "_commit_version"]],
)  # fmt: skip
def test_columns_of_no_format_or_of_several(columns: list[str]) -> None:
    with pytest.raises(InputError):
        recognised(columns, "the feed")
