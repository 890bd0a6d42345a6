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
    assert found.reasons == (TOO_LARGE,)


def test_a_search_finds_what_is_forced() -> None:
    assert isinstance(verdict(FORCED, MemoryEngine(), t=1, r=1), SelfMaintainable)


def test_two_databases_are_shown_where_there_are_some() -> None:
    assert isinstance(verdict(FORCED, MemoryEngine(), t=2, r=1), NotSelfMaintainable)


@pytest.mark.parametrize("engine", [MemoryEngine, LargeEngine], ids=["small", "large"])
def test_a_further_key_that_nothing_ties_leaves_a_no(engine: type[MemoryEngine]) -> None:
    assert isinstance(verdict(FREE, engine(), t=1, r=1), NotSelfMaintainable)
