"""Unknown values that stored groups or comparisons narrow down to one that another new fact references."""

from __future__ import annotations

import pytest

from datalog.model import Row
from selfmaint.api.check import check
from selfmaint.api.warehouse import Update, build
from selfmaint.decide.verdict import NotSelfMaintainable, SelfMaintainable, Undecided, Verdict
from selfmaint.engine.memory import MemoryEngine
from tests.staged_engine import StagedEngine

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
    [(MemoryEngine, NotSelfMaintainable), (StagedEngine, Undecided)],
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


@pytest.mark.parametrize("engine", [MemoryEngine, StagedEngine], ids=["small", "large"])
def test_the_only_value_that_comparisons_leave_is_the_referenced_one(engine: type[MemoryEngine]) -> None:
    """All rows of `t` have key 1, and those of `r` no smaller one: again `r(1, 1)` and `t(0, 1)`."""
    stored = {name: rows() for name in ("p", "more", "less", "first")}
    warehouse = build(BY_COMPARISONS, stored, engine())
    assert isinstance(check(warehouse, INSERTED)["p"], NotSelfMaintainable)
