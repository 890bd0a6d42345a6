"""Unknown values that stored groups or comparisons narrow down to one that another new fact references."""

from __future__ import annotations

import pytest

from datalog.model import Row
from selfmaint.api.check import check
from selfmaint.api.update import Update
from selfmaint.api.warehouse import build
from selfmaint.decide.verdict import NotSelfMaintainable, SelfMaintainable, Undecided, Verdict
from selfmaint.engine.memory import MemoryEngine
from tests.large_engine import LargeEngine

TABLES = """
    .decl r(x: int not null, y: int not null) key(x) foreign key (y) references t(y).
    .decl t(x: int not null, y: int not null) key(y).
    p(A, B, C, E) :- t(A, B), r(C, A), t(E, C).
"""
BY_GROUPS = TABLES + "g(X, count(*)) :- r(X, Y)."
BY_COMPARISONS = TABLES + (
    "more(E, C) :- t(E, C), C > 1.\nless(E, C) :- t(E, C), C < 1.\nfirst(C, Y) :- r(C, Y), C < 1."
)
INSERTED: Update[frozenset[Row]] = Update({"t": frozenset({(1, 0)})}, effective=True)


def rows(*given: Row) -> frozenset[Row]:
    return frozenset(given)


@pytest.mark.parametrize(
    ("engine", "expected"),
    [(MemoryEngine, NotSelfMaintainable), (LargeEngine, Undecided)],
    ids=["small", "large"],
)
def test_the_only_group_is_the_referenced_row(engine: type[MemoryEngine], expected: type[Verdict]) -> None:
    """`r(1, 1)` and `t(0, 1)`, which it references, are the row of `p` that `t(1, 0)` gives."""
    warehouse = build(BY_GROUPS, {"p": rows(), "g": rows((1, 1))}, engine())
    assert isinstance(check(warehouse, INSERTED)["p"], expected)


def test_another_group_is_not_the_referenced_row() -> None:
    """`r(2, 1)` references `t(E, 1)`; `t(1, 0)` joins with no row of `t` but one of key 2, and a copy has none."""
    program = BY_GROUPS + "copy(X, Y) :- t(X, Y)."
    warehouse = build(program, {"p": rows(), "g": rows((2, 1)), "copy": rows((5, 1))}, MemoryEngine())
    assert isinstance(check(warehouse, INSERTED)["p"], SelfMaintainable)


@pytest.mark.parametrize("engine", [MemoryEngine, LargeEngine], ids=["small", "large"])
def test_the_only_value_that_comparisons_leave_is_the_referenced_one(engine: type[MemoryEngine]) -> None:
    """All rows of `t` have key 1, and those of `r` no smaller one: again `r(1, 1)` and `t(0, 1)`."""
    stored = {name: rows() for name in ("p", "more", "less", "first")}
    warehouse = build(BY_COMPARISONS, stored, engine())
    assert isinstance(check(warehouse, INSERTED)["p"], NotSelfMaintainable)


def test_a_fresh_value_beside_one_that_comparisons_place_is_not_null() -> None:
    """New rows of `r` have an `x` from 1 on; those of 1 reference `t(null, 1)`, which joins with no fresh `D`."""
    program = """
        .decl r(x: int not null, y: int not null) key(y) foreign key (x) references t(y).
        .decl t(x: int, y: int not null) key(y).
        small(X, Y) :- r(X, Y), X < 1.
        p(A, B, D, C) :- r(A, B), r(A, D), t(B, C).
    """
    warehouse = build(program, {"small": rows((0, 1)), "p": rows()}, MemoryEngine())
    update: Update[frozenset[Row]] = Update({"t": rows((1, 1))}, effective=True)
    assert isinstance(check(warehouse, update)["p"], SelfMaintainable)


def test_a_witness_of_a_row_of_which_the_key_is_known_can_be_ruled_out() -> None:
    """Groups rule out the witnesses of a test that looks at a referenced row, of which only the key is known."""
    program = """
        .decl r(x: int not null, y: int not null) key(x) foreign key (x) references t(y).
        .decl t(x: int not null, y: int not null) key(y).
        .view p(x, square, n) bag.
        p(X, Y * Y, count(*)) :- t(A, Y), r(X, Y).
    """
    warehouse = build(program, {"p": rows((1, 1, 1), (0, 0, 1))}, MemoryEngine())
    update = Update({}, {"r": rows((1, 1)), "t": rows((0, 1))}, effective=True)
    assert isinstance(check(warehouse, update)["p"], SelfMaintainable)
