"""Values of all types through the log, one by one. Oracle: what `init` reads of the same rows, and PostgreSQL."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.command_line import run
from tests.follow.shops import LoggedShop, codes, logged_shop

pytestmark = pytest.mark.usefixtures("postgres")

TABLES = """
create table thing (
    "Id" bigint not null primary key, small smallint, whole int, large bigint, exact decimal(38, 10),
    money decimal(8, 2),
    single float, half double, wide double, yes boolean, day date, at timestamp, clock timestamp_ntz,
    word string, "od d" string
);
create view things as select * from thing;
"""
SCHEMA = """
create schema shop;
create table shop."Thing %" (
    "Id" bigint primary key, small int2, whole int4, large int8, exact numeric(38, 10), money numeric,
    single float4, half float4, wide float8, yes bool, day date, at timestamptz, clock timestamp,
    word varchar(10), "od d" text, unread bytea
);
alter table shop."Thing %" replica identity full;
"""
VALUES = {
    "small": ["-32768", "32767"],
    "whole": ["-2147483648", "2147483647"],
    "large": ["-9223372036854775808", "9223372036854775807"],
    "exact": ["9999999999999999999999999999.9999999999", "-0.0000000001", "1e5", "0"],
    "money": ["-999999.99", "0.10", "1"],
    "single": ["0.1", "-0", "'NaN'", "'Infinity'", "3.4e38", "1e-45"],
    "half": ["0.1", "16777217", "'-Infinity'", "'NaN'"],
    "wide": ["0.1", "-0.0", "'NaN'", "'Infinity'", "5e-324", "1.7976931348623157e308", "123456789012345678"],
    "yes": ["true", "false"],
    "day": ["'0001-01-01'", "'9999-12-31'", "'1969-12-31'"],
    "at": ["'2026-03-29 01:59:59.999999 Europe/Zurich'", "'0001-01-02 00:00Z'", "'9999-12-30 23:59:59.5-11'"],
    "clock": ["'2026-03-29 02:30:00'", "'1582-10-10 12:00:00.000001'"],
    "word": ["''", "'null'", "E'a\\tb\\nc\\\\'", "'日本語'"],
    '"od d"': ["repeat('é', 9000)", "'\\N'", "'\"{},'"],
}
TOO_MUCH = {
    "exact": ["'NaN'", "'9999999999999999999999999999.9999999999'::numeric + 0"],
    "money": ["1000000", "0.001", "'Infinity'"],
    "day": ["'infinity'", "'10000-01-01'", "'0044-03-15 BC'"],
    "at": ["'-infinity'", "'10000-01-01 00:00Z'"],
    "clock": ["'0044-03-15 BC'"],
}


@pytest.fixture
def shop(tmp_path: Path, postgres: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoggedShop]:
    monkeypatch.setattr("tests.follow.shops.SCHEMA", SCHEMA)
    with logged_shop(tmp_path, postgres, {}) as made:
        (tmp_path / "views.sql").write_text(TABLES, encoding="utf-8")
        text = made.toml.read_text(encoding="utf-8")
        before, _, rest = text.partition("[relations.customer]")
        thing = '[relations.thing]\nsource = "shop"\ntable = "shop.Thing %"\n'
        made.toml.write_text(before + thing + rest[rest.index("[follow]") :], encoding="utf-8")
        made.connection.execute("set extra_float_digits = 0")
        yield made


def inserted(shop: LoggedShop) -> int:
    """A row for each value, and one of nulls; how many."""
    number = 0
    for column, values in VALUES.items():
        for value in values:
            number += 1
            shop.execute(f'insert into shop."Thing %" ("Id", {column}) values ({number}, {value})')
    shop.execute(f'insert into shop."Thing %" ("Id") values ({number + 1})')
    return number + 1


def counted(shop: LoggedShop) -> Counter[str]:
    """The view's rows, told apart by how they are written, for -0.0 equals 0.0."""
    return Counter(map(repr, shop.stored()["things"].elements()))


@pytest.mark.parametrize("zone", ["UTC", "America/St_Johns"])
def test_a_value_through_the_log_is_the_value_that_is_read(shop: LoggedShop, zone: str) -> None:
    shop.made()
    shop.connection.execute(f"alter database {shop.connection.info.dbname} set timezone = '{zone}'")
    shop.connection.execute(f"alter database {shop.connection.info.dbname} set datestyle = 'SQL, DMY'")
    shop.connection.execute(f"alter database {shop.connection.info.dbname} set extra_float_digits = -5")
    number = inserted(shop)
    assert shop.follow("--once").status == 0
    by_log = counted(shop)
    assert by_log.total() == number
    assert run("import", str(shop.toml)).status == 0
    assert counted(shop) == by_log
    shop.execute(
        "update shop.\"Thing %\" set unread = '\\x01'", 'delete from shop."Thing %" where "Id" % 2 = 0'
    )
    assert shop.follow("--once").status == 0
    assert counted(shop).total() == (number + 1) // 2
    shop.execute('delete from shop."Thing %"')
    assert shop.follow("--once").status == 0
    assert counted(shop).total() == 0, "a row that goes is the row that came"


@pytest.mark.parametrize("column", TOO_MUCH)
def test_a_value_that_the_type_does_not_have_is_refused_with_its_place(shop: LoggedShop, column: str) -> None:
    shop.made()
    for value in TOO_MUCH[column]:
        try:
            shop.execute(f'insert into shop."Thing %" ("Id", {column}) values (1, {value})')
        except psycopg.errors.NumericValueOutOfRange:  # the server refuses it itself
            continue
        ran = shop.follow("--once")
        if ran.status == 0:
            assert column == "exact"
        else:
            assert codes(ran) == {"SM602"}, ran.stderr
            assert "at log sequence number" in ran.stderr
        shop.execute('delete from shop."Thing %"')
        assert run("import", str(shop.toml)).status == 0
