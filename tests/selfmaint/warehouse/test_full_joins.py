"""Views with FULL JOINs, in what a warehouse is asked for; that the answers are right the random SQL holds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import pyarrow as pa
import pytest

import selfmaint
from selfmaint.api.audit import AuditOptions, audit_catalog
from selfmaint.api.file.programs import catalog_of
from selfmaint.audit.changes import Kind
from selfmaint.audit.example import Always, Depends
from selfmaint.decide.verdict import VerdictKind
from selfmaint.errors import InputError
from selfmaint.warehouse.situation import Situation
from tests.frames import Rows, frame, rows_of, update_of

PROGRAM = """create table sale (id int primary key, day int, amount int not null);
create table buy (id int primary key, day int, amount int not null);
create view days as
    with a as (select day, count(*) as n, sum(amount) as sold from sale where amount > 0 group by day),
        b as (select day, count(*) as m, max(amount) as most from buy group by day)
    select coalesce(a.day, b.day) as day, n, sold, coalesce(m, 0) as m, most, n - coalesce(m, 0) as more
    from a full join b on a.day = b.day;
create view pairs as
    select s.id, s.day, b.id as buy, b.day as its from sale s full join buy b on s.day = b.day;
"""
INT, BIG = pa.int32(), pa.int64()
COLUMNS = {
    "sale": {"id": INT, "day": INT, "amount": INT},
    "buy": {"id": INT, "day": INT, "amount": INT},
    "days": {"day": INT, "n": BIG, "sold": BIG, "m": BIG, "most": INT, "more": BIG},
    "pairs": {"id": INT, "day": INT, "buy": INT, "its": INT},
}
# sales: 1 and 2 on day 1, 3 on day 2, 4 on none; buys: 5 on day 1, 6 on day 3, 7 on none
STORED: Mapping[str, list[tuple[Any, ...]]] = {
    "days": [
        (1, 2, 30, 1, 8, 1),
        (2, 1, 5, 0, None, 1),
        (3, None, None, 1, 9, None),
        (None, 1, 7, 0, None, 1),
        (None, None, None, 1, 4, None),
    ],
    "pairs": [
        (1, 1, 5, 1),
        (2, 1, 5, 1),
        (3, 2, None, None),
        (4, None, None, None),
        (None, None, 6, 3),
        (None, None, 7, None),
    ],
}
CHANGES = [
    # a sale on a day of buys alone
    (
        {"sale": [(8, 3, 2)]},
        {},
        {
            "days": ({(3, 1, 2, 1, 9, 0)}, {(3, None, None, 1, 9, None)}),
            "pairs": ({(8, 3, 6, 3)}, {(None, None, 6, 3)}),
        },
    ),
    # the only buy of a day goes, and one without a day comes
    (
        {"buy": [(9, None, 6)]},
        {"buy": [(5, 1, 8)]},
        {
            "days": (
                {(1, 2, 30, 0, None, 2), (None, None, None, 2, 6, None)},
                {STORED["days"][0], STORED["days"][4]},
            ),
            "pairs": (
                {(1, 1, None, None), (2, 1, None, None), (None, None, 9, None)},
                {(1, 1, 5, 1), (2, 1, 5, 1)},
            ),
        },
    ),
    # a sale moves to a day that nothing is known of
    (
        {"sale": [(3, 9, 5)]},
        {"sale": [(3, 2, 5)]},
        {
            "days": ({(9, 1, 5, 0, None, 1)}, {(2, 1, 5, 0, None, 1)}),
            "pairs": ({(3, 9, None, None)}, {(3, 2, None, None)}),
        },
    ),
]


def warehouse(engine: Literal["duckdb", "spark"], stored: Mapping[str, Rows] = STORED, **more: Any) -> Any:
    return selfmaint.build(
        PROGRAM, {name: frame(COLUMNS, name, rows) for name, rows in stored.items()}, engine=engine, **more
    )


def follow(made: Any, inserted: Mapping[str, Rows], deleted: Mapping[str, Rows]) -> dict[str, Any]:
    found = made.maintain(update_of(made, COLUMNS, inserted, deleted), strict=True)
    assert found.reads == ()
    return {name: (rows_of(one.gained), rows_of(one.lost)) for name, one in found.deltas.items()}


@pytest.mark.parametrize(("inserted", "deleted", "expected"), CHANGES)
def test_what_is_determined_is_followed(
    inserted: Mapping[str, Rows], deleted: Mapping[str, Rows], expected: Mapping[str, Any]
) -> None:
    assert follow(warehouse("duckdb"), inserted, deleted) == expected


def test_it_is_followed_on_spark(spark: Any) -> None:
    inserted, deleted, expected = CHANGES[1]
    assert follow(warehouse("spark", spark=spark), inserted, deleted) == expected


def test_a_group_that_loses_its_largest_value_is_not_determined() -> None:
    made: Any = selfmaint.build(
        PROGRAM.split("create view pairs", maxsplit=1)[0],
        {"days": frame(COLUMNS, "days", [(1, 2, 30, 3, 8, -1)])},
        engine="duckdb",
    )
    given = update_of(made, COLUMNS, {}, {"buy": [(5, 1, 8)]})
    found = made.explain(given, "days")
    assert found.verdict.kind is VerdictKind.NO
    assert found.counterexample is not None
    assert found.view.shown == "those of `b` of `days`"


@pytest.mark.parametrize(
    "row",
    [
        (None, None, None, None),
        (1, 1, 5, 2),
        (None, 1, 6, 3),
        (3, 2, None, 2),
    ],
)
def test_rows_that_a_full_join_cannot_give_are_named(row: tuple[Any, ...]) -> None:
    made = warehouse("duckdb", {**STORED, "pairs": [*STORED["pairs"], row]})
    with pytest.raises(InputError, match="`pairs` stores rows that its query can never produce"):
        made.check(update_of(made, COLUMNS, {"sale": [(80, 3, 2)]}, {}))


def test_the_audit_of_what_it_is_made_of() -> None:
    found = audit_catalog(catalog_of(PROGRAM), Situation(effective=True), AuditOptions(advise=False))
    by_name = {one.view.name: one for one in found.audit.views}
    for line in by_name["pairs"].lines:
        assert all(isinstance(one, Always) for one in line.outcomes.values())
    (line,) = (one for one in by_name["days"].lines if one.relation == "buy")
    shown = line.outcomes[Kind.DELETE]
    assert not isinstance(shown, Always)
    if isinstance(shown, Depends):
        assert all(len(row) == len(COLUMNS["days"]) for row in shown.example.contents["days"])
