"""Columns cast to types that have all their values, as staging models write them; and constants that columns cast."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import selfmaint
from selfmaint.api.file.programs import catalog_of
from selfmaint.errors import InputError
from tests.frames import rows_of

TABLE = "create table o (id int primary key, c int, t decimal(8, 2), x int not null);\n"
STAGED = """create view staged as select cast(id as bigint) as o_id, cast(c as int) as c, round(t, 2) as t,
    cast(x as decimal(12, 1)) as x, cast(id as decimal(10, 0)) as again from o;
"""
DISTINCT = "create view v as select c, count(distinct t) as n from o group by c;"
TYPES = {"id": pa.int32(), "c": pa.int32(), "t": pa.decimal128(8, 2), "x": pa.int32()}
CENTS = Decimal("1.50")
HELD = {
    "o_id": pa.array([1, 2], pa.int64()),
    "c": pa.array([7, None], pa.int32()),
    "t": pa.array([CENTS, None], pa.decimal128(9, 2)),
    "x": pa.array([Decimal(3), Decimal(4)], pa.decimal128(12, 1)),
    "again": pa.array([Decimal(1), Decimal(2)], pa.decimal128(10, 0)),
}


def rows(*given: tuple[Any, ...]) -> dict[str, pa.Table]:
    columns = zip(*given, strict=True)
    arrays = {n: pa.array(its, kind) for (n, kind), its in zip(TYPES.items(), columns, strict=True)}
    return {"o": pa.table(arrays)}


def staged(**engine: Any) -> selfmaint.Warehouse[Any]:
    counts = pa.table({"c": pa.array([7, None], pa.int32()), "n": pa.array([1, 0], pa.int64())})
    return selfmaint.build(TABLE + STAGED + DISTINCT, {"staged": pa.table(HELD), "v": counts}, **engine)


def followed(warehouse: selfmaint.Warehouse[Any]) -> tuple[set[Any], set[Any]]:
    """The rows of `staged` that come and go, where one row changes, one goes and one comes."""
    update = selfmaint.Update.from_frames(
        warehouse,
        inserted=rows((1, None, Decimal("2.25"), 5), (3, 7, CENTS, -1)),
        deleted=rows((1, 7, CENTS, 3), (2, None, None, 4)),
        effective=True,
    )
    verdicts = warehouse.check(update)
    assert {one.kind.value for one in verdicts.values()} == {"yes"}, "`staged` tells all rows of `o`"
    delta = warehouse.maintain(update).deltas["staged"]
    return rows_of(delta.gained), rows_of(delta.lost)


GAINED = {(1, None, Decimal("2.25"), Decimal("5.0"), Decimal(1)), (3, 7, CENTS, Decimal("-1.0"), Decimal(3))}
LOST = {(1, 7, CENTS, Decimal("3.0"), Decimal(1)), (2, None, None, Decimal("4.0"), Decimal(2))}


def test_they_tell_the_table() -> None:
    with staged(engine="duckdb") as warehouse:
        assert followed(warehouse) == (GAINED, LOST)


def test_a_key_that_is_shown_is_not_inserted_again() -> None:
    with staged(engine="duckdb") as warehouse:
        again = selfmaint.Update.from_frames(warehouse, inserted=rows((2, 7, CENTS, 3)), effective=True)
        with pytest.raises(InputError, match=r"SM303.*have the key"):
            warehouse.check(again)


@pytest.mark.parametrize(
    ("shown", "is_told"),
    [
        ("cast(id as bigint) as id, cast(c as bigint) as c", True),
        ("cast(id as int) as id, cast(t as decimal(8, 2)) as t", True),
        ("cast(x as bigint) as x", False),  # rows may stand twice
        ("cast(id as string) as id", False),
        ("cast(t as decimal(8, 1)) as t, id", False),  # digits are lost
        ("cast(t as double) as t, id", False),
        ("cast(c as bigint) + 1 as c, id", False),
    ],
)
def test_which_are_told(shown: str, is_told: bool) -> None:
    found = catalog_of(f"{TABLE} create view v as select {shown} from o;")
    assert (
        all(type(one).__name__ == "View" or one.grouped.is_single for one in found.apart.views)
    ) or not is_told
    (view,) = found.apart.views
    plain = {term for term in view.head.terms if term in {t for a in view.body for t in a.terms}}
    assert (len(plain) == len(view.head.terms)) is is_told


def test_a_view_without_rows() -> None:
    query = "select cast(id as bigint) as a, cast(id as bigint) as b from o where x is null"
    program = f"{TABLE} create view v as {query};"
    nothing = pa.table({"a": pa.array([], pa.int64()), "b": pa.array([], pa.int64())})
    with selfmaint.build(program, {"v": nothing}, engine="duckdb") as warehouse:
        update = selfmaint.Update.from_frames(warehouse, inserted=rows((2, 7, CENTS, 3)), effective=True)
        assert warehouse.check(update)["v"].kind.value == "yes"


@pytest.mark.parametrize(
    ("one", "other", "is_apart"),
    [
        ("1", "2", True),
        ("0.3", "0.1e0", True),
        ("1", "1.0", False),
        ("0.1", "0.1e0", False),
        ("9007199254740993", "9007199254740992e0", False),
        ("20250101", "20250102", True),
    ],
)
@pytest.mark.parametrize("union", ["union", "union all"])
@pytest.mark.parametrize("more", ["", ", -id"])
def test_constants_that_one_type_makes_equal_tell_nothing(
    one: str, other: str, is_apart: bool, union: str, more: str
) -> None:
    text = f"select {one} as w, id{more and more + ' as y'} from o {union} select {other}, id{more} from o"
    assert ("v" in catalog_of(f"{TABLE} create view v as {text};").unions) is is_apart


def test_a_constant_beside_single_precision_tells_nothing() -> None:
    table = "create table f (id int primary key, r float);"
    text = "select 16777217 as w, id from f union select 16777216, id from f union select r, id + 0 from f"
    assert not catalog_of(f"{table} create view v as {text};").unions


def test_they_tell_the_table_on_spark(spark: Any) -> None:
    with staged(engine="spark", spark=spark) as warehouse:
        assert followed(warehouse) == (GAINED, LOST)
