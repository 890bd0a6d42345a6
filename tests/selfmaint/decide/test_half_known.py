"""Rows of which only the key is known: a "no" that they could overturn is shown, or it is none."""

from __future__ import annotations

import pytest

from datalog.model import Row
from selfmaint.api.check import check
from selfmaint.api.update import Update
from selfmaint.api.warehouse import build
from selfmaint.decide.procedure import TOO_LARGE
from selfmaint.decide.verdict import NotSelfMaintainable, SelfMaintainable, Undecided, Verdict
from selfmaint.engine.memory import MemoryEngine
from tests.large_engine import LargeEngine

FORCED = """
    .decl t(k: int not null) key(k).
    .decl s(a: int not null, k: int not null) key(a) unique(k) foreign(k) references t(k).
    .decl r(a: int not null) key(a) foreign(a) references s(a).
    .decl z(x: int not null) key(x).
    t_copy(K) :- t(K).
    r_copy(A) :- r(A).
    v(X, A, K) :- z(X), t(K), s(A, K).
"""
"""`s` has a row for each of `r`, and each has another row of `t`."""
FREE = FORCED.replace("foreign(k) references t(k)", "")


def verdict(program: str, engine: MemoryEngine, t: int, r: int) -> Verdict:
    stored: dict[str, frozenset[Row]] = {
        "t_copy": frozenset((i,) for i in range(t)),
        "r_copy": frozenset((10 + i,) for i in range(r)),
        "v": frozenset(),
    }
    warehouse = build(program, stored, engine)
    return check(warehouse, Update({"z": frozenset({(1,)})}, effective=True))["v"]


def test_what_is_forced_is_no_counterexample() -> None:
    """One row of `t` and one of `r`: the row of `s` is known although no view shows it."""
    found = verdict(FORCED, LargeEngine(), t=1, r=1)
    assert isinstance(found, Undecided)
    reason, more = found.reasons
    assert reason == TOO_LARGE
    assert more.startswith("the rows near the update leave two states open")


def test_a_search_finds_what_is_forced() -> None:
    assert isinstance(verdict(FORCED, MemoryEngine(), t=1, r=1), SelfMaintainable)


def test_two_databases_are_shown_where_there_are_some() -> None:
    assert isinstance(verdict(FORCED, MemoryEngine(), t=2, r=1), NotSelfMaintainable)


@pytest.mark.parametrize("engine", [MemoryEngine, LargeEngine], ids=["small", "large"])
def test_a_further_key_that_nothing_ties_leaves_a_no(engine: type[MemoryEngine]) -> None:
    assert isinstance(verdict(FREE, engine(), t=1, r=1), NotSelfMaintainable)


REFERENCED_TWICE = """
    .decl s(f: int not null, d: int not null, g: int not null) key(f).
    .decl r(a: int not null, b: int not null, c: int not null) key(a) foreign(b) references s(f).
    .decl t(x: int not null, y: int not null) key(x, y) foreign(x) references s(f).
    v(X, Y, B, C, D, G) :- t(X, Y), r(X, B, C), s(Y, D, G).
"""


@pytest.mark.parametrize(
    ("shown", "rows"),
    [
        ("e(B, G) :- s(B, D, G).", {(1, 1)}),
        ("e(A, B, G) :- r(A, B, C), s(B, D, G).", {(1, 1, 1)}),
        ("e(A, B, G) :- r(A, B, C), s(B, D, G).", {(1, 1, 1), (3, 1, 1)}),
    ],
)
def test_two_new_facts_may_reference_one_row_that_is_shown_in_part(shown: str, rows: set[Row]) -> None:
    """`t(1, 2)` and `r(1, 1, C)`, where there is one row of `s` for both."""
    stored = {"e": frozenset(rows), "v": frozenset[Row]()}
    update = Update({"s": frozenset[Row]({(2, 2, 1)})}, effective=True)
    found = check(build(REFERENCED_TWICE + shown, stored, MemoryEngine()), update)["v"]
    assert isinstance(found, NotSelfMaintainable)
    assert not check(build(REFERENCED_TWICE + shown, stored, LargeEngine()), update)["v"]


def test_no_is_not_shown_by_databases_that_give_a_row_of_a_bag_less_often() -> None:
    """`v` holds the row of two facts, and one goes: `e` keeps its row. Sets do not tell how often a row stands."""
    program = """
        create table r (a int not null primary key, b int not null, c int);
        create view e as select distinct b from r;
        create view v as select b as z from r where c > 1 union all select b as z from r where c <= 1;
    """
    stored = {"e": frozenset[Row]({(2,)}), "v": frozenset[Row]({(2,)})}
    found = check(
        build(program, stored, MemoryEngine()), Update({}, {"r": frozenset[Row]({(1, 2, 2)})}, effective=True)
    )
    assert isinstance(found["e"], Undecided)
