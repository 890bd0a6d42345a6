"""Views in SQL of every shape: what the product answers is true of every database over small domains.

That the trials can fail is tried too: with answers that are spoilt, and rules that are wrong, they find something.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

import selfmaint
from datalog.copies import replace
from datalog.sql.views import joins
from selfmaint.api import check as checking
from selfmaint.api import maintain as maintaining
from selfmaint.api.following import over_views
from selfmaint.decide.verdict import NotSelfMaintainable, SelfMaintainable, VerdictKind
from selfmaint.duckdb import DuckEngine
from selfmaint.engine.memory import MemoryEngine
from tests.effort import EXPLORE, effort
from tests.end_to_end.sql_verdicts import Answered, answered
from tests.oracle.sql_shapes import SHAPES

CASES, QUESTIONS = effort(1, 25), effort(3, 4)
"""Of each shape; of those in `DECIDED` more cases."""
DECIDED = ["selection: IN, OR, CASE, BETWEEN", "inner join", "LEFT JOINs that tell", "COUNT, SUM", "MIN, MAX"]


@pytest.mark.parametrize("shape", SHAPES)
def test_no_database_contradicts_an_answer(shape: str) -> None:
    found: list[Answered] = []
    number, cases = 0, CASES * (effort(2, 4) if shape in DECIDED else 1)
    # Some cases have no question that the engine can be asked.
    while number < cases or not found:
        assert number < cases + 20
        found += answered(str(number), shape, QUESTIONS, effort=3 if EXPLORE else 1)
        number += 1
    if shape in DECIDED:
        assert any(one.verdict is VerdictKind.YES for one in found)


def _yes(_catalog: Any, found: Iterable[str]) -> dict[str, Any]:
    return {name: SelfMaintainable(name) for name in found}


def _no(_catalog: Any, found: Iterable[str]) -> dict[str, Any]:
    return {name: NotSelfMaintainable(name, ()) for name in found}


def _less(*asked: Any) -> Any:
    found = _CHANGE(*asked)
    return (
        replace(found, gained=frozenset(sorted(found.gained, key=repr)[1:])) if _is_at_hand(found) else found
    )


def _more(*asked: Any) -> Any:
    found = _CHANGE(*asked)
    return replace(found, lost=frozenset()) if _is_at_hand(found) else found


def _is_at_hand(found: Any) -> bool:
    return isinstance(found.gained, frozenset)


def _views_alone(catalog: Any, view: Any, *, is_anew: bool = False) -> over_views.Below | None:
    from selfmaint.fallback.recompute import reads

    below = () if view.is_decided else tuple(n for n in reads(catalog, view) if n not in catalog.relations)
    return over_views.Below(below, ()) if below else _BELOW(catalog, view, is_anew=is_anew)


def _never_null(warehouse: Any, predicates: Iterable[Any]) -> dict[Any, frozenset[int]]:
    views = {view.predicate: len(view.columns) for view in warehouse.catalog.apart.views}
    return {p: frozenset(range(views.get(p, 1))) for p in _NOT_NULL(warehouse, predicates)}


def _once(warehouse: Any, side: Any, rows: Any) -> Any:
    return _CHANGED(warehouse, side, warehouse.engine.union([rows, rows]))


_CHANGE, _BELOW = maintaining.determined_delta, over_views._what_is_below
_NOT_NULL, _CHANGED = checking._not_null, checking._changed

SPOILT = {
    "everything is determined": (checking, "of_unions", _yes, "inner join"),
    "nothing is determined": (checking, "of_unions", _no, "COUNT, SUM"),
    "a row is not gained": (maintaining, "determined_delta", _less, "selection: LIKE"),
    "no row is lost": (maintaining, "determined_delta", _more, "MIN, MAX"),
    "every LEFT JOIN has a partner": (joins, "has_partner", lambda *_: True, "LEFT JOIN"),
    "base relations beside views are not looked at": (
        over_views,
        "_what_is_below",
        _views_alone,
        "views over views",
    ),
    "nothing is null": (checking, "_not_null", _never_null, "COUNT, SUM"),
    "equal rows of an update count once": (checking, "_changed", _once, "copies"),
}


AT_HAND = {"everything is determined", "nothing is determined", "a row is not gained", "no row is lost"}
"""What is found by rows at hand, and sooner."""


@pytest.mark.parametrize("name", SPOILT)
def test_what_is_wrong_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, function, wrong, shape = SPOILT[name]
    monkeypatch.setattr(module, function, wrong)
    # A refusal of what is possible is found, too: that of rows that the database has, or of what a "yes" promises.
    with pytest.raises((AssertionError, selfmaint.SelfmaintError)):
        _asked(shape, MemoryEngine if name in AT_HAND else DuckEngine)


def _asked(shape: str, engine: type[DuckEngine | MemoryEngine]) -> None:
    for number in range(30):
        answered(f"spoilt.{number}", shape, 4, engines=[engine])
