"""Two databases for a "no" that a solver makes up, beside views that it does not take: the definition takes them."""

from __future__ import annotations

import pyarrow as pa
import pytest

import selfmaint
from datalog.model import Constant
from selfmaint.decide import differing
from selfmaint.decide.verdict import NotSelfMaintainable, VerdictKind
from tests import frames

PROGRAM = """create table customer (id int primary key, name string not null);
create table orders (id int primary key, customer int not null references customer, total int not null);
create table archive (id int primary key, customer int not null, total int not null);
create view most as select customer, max(total) as m from orders group by customer;
"""
COLUMNS = {
    "orders": {"id": pa.int32(), "customer": pa.int32(), "total": pa.int32()},
    "most": {"customer": pa.int32(), "m": pa.int32()},
    "every": {"id": pa.int32(), "customer": pa.int32(), "kind": pa.string()},
    "ranked": {"customer": pa.int32(), "r": pa.int32()},
    "totals": {"id": pa.int32(), "total": pa.int32(), "r": pa.int32()},
}
BESIDE: dict[str, tuple[str, frames.Rows, VerdictKind]] = {
    "every": (
        "select id, customer, 'now' as kind from orders union all select id, customer, 'old' as kind from archive",
        [(5, 1, "now"), (6, 1, "now"), (8, 1, "now"), (9, 2, "old")],
        VerdictKind.NO,
    ),
    "ranked": (
        "select customer, rank() over (order by customer) as r from (select distinct customer from orders)",
        [(1, 1)],
        VerdictKind.NO,
    ),
    "totals": (
        "select id, total, rank() over (order by id) as r from orders",
        [(5, 21, 1), (6, 7, 2)],
        VerdictKind.UNDECIDED,
    ),
}
"""A union told apart; a text that both databases give; one that tells what is asked: no two databases explain it."""


@pytest.mark.parametrize("beside", BESIDE)
def test_the_largest_of_a_group_goes(beside: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(differing, "MOST_SECONDS", 10.0)  # whatever else the machine does
    text, rows, kind = BESIDE[beside]
    stored = {"most": frames.frame(COLUMNS, "most", [(1, 21)]), beside: frames.frame(COLUMNS, beside, rows)}
    made = selfmaint.build(f"{PROGRAM}create view {beside} as {text};", stored, engine="duckdb")
    update = frames.update_of(made, COLUMNS, {}, {"orders": [(5, 1, 21)]}, effective=True)
    assert made.check(update)["most"].kind is kind
    shown = made.explain(update, "most").counterexample
    assert (shown is not None) is (kind is VerdictKind.NO)


def test_what_tells_equal_rows_apart_is_not_shown() -> None:
    """The number of a row of a table without a key, and that of a view's copies."""
    text = """create table t (a int, b int); create table u (k int not null primary key, w int);
        create view j as select u.k, t.a, t.b from t join u on t.a = u.w;"""
    with selfmaint.build(
        text, {"j": pa.table({"k": [2, 2], "a": [1, 1], "b": [0, 1]})}, engine="duckdb"
    ) as here:
        update = selfmaint.Update.from_frames(here, {"u": pa.table({"k": [3], "w": [5]})}, effective=True)
        verdict = here.check(update)["j"]
    assert isinstance(verdict, NotSelfMaintainable)
    ((fact,),) = verdict.unknown
    assert (fact.predicate.name, fact.arity, fact.terms[0]) == ("t", 2, Constant(5))
