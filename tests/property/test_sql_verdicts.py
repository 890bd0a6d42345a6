"""Views in SQL of every shape: what the product answers is true of every database over small domains.

That the trials can fail is tried too: with answers that are spoilt, and rules that are wrong, they find something.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

import selfmaint
from datalog.sql.views import joins
from selfmaint.api import check as checking
from selfmaint.api import given, over_views
from selfmaint.api import maintain as maintaining
from selfmaint.decide.verdict import NotSelfMaintainable, SelfMaintainable, VerdictKind
from tests.effort import EXPLORE, effort
from tests.oracle.sql_shapes import SHAPES
from tests.property.sql_verdicts import answered

CASES, QUESTIONS = effort(2, 25), 4
"""Of each shape."""
DECIDED = ["selection: IN, OR, CASE, BETWEEN", "inner join", "COUNT, SUM", "MIN, MAX"]


@pytest.mark.parametrize("shape", SHAPES)
def test_no_database_contradicts_an_answer(shape: str) -> None:
    found = [
        one for n in range(CASES) for one in answered(str(n), shape, QUESTIONS, effort=3 if EXPLORE else 1)
    ]
    assert found
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


def _views_alone(catalog: Any, view: Any) -> tuple[str, ...]:
    from selfmaint.fallback.recompute import reads

    below = () if view.is_decided else tuple(n for n in reads(catalog, view) if n not in catalog.relations)
    return below or _BELOW(catalog, view)


def _never_null(warehouse: Any, predicates: Iterable[Any]) -> dict[Any, frozenset[int]]:
    views = {view.predicate: len(view.columns) for view in warehouse.catalog.apart.views}
    return {p: frozenset(range(views.get(p, 1))) for p in _NOT_NULL(warehouse, predicates)}


_CHANGE, _BELOW, _NOT_NULL = maintaining.determined_delta, over_views.views_below, given._not_null

SPOILT = {
    "everything is determined": (checking, "of_unions", _yes, "inner join"),
    "nothing is determined": (checking, "of_unions", _no, "COUNT, SUM"),
    "a row is not gained": (maintaining, "determined_delta", _less, "selection: LIKE"),
    "no row is lost": (maintaining, "determined_delta", _more, "MIN, MAX"),
    "every LEFT JOIN has a partner": (joins, "_has_partner", lambda *_: True, "LEFT JOIN"),
    "base relations beside views are not looked at": (
        over_views,
        "views_below",
        _views_alone,
        "views over views",
    ),
    "nothing is null": (given, "_not_null", _never_null, "COUNT, SUM"),
}


@pytest.mark.parametrize("name", SPOILT)
def test_what_is_wrong_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, function, wrong, shape = SPOILT[name]
    monkeypatch.setattr(module, function, wrong)
    # A refusal of what is possible is found, too: that of rows that the database has, or of what a "yes" promises.
    with pytest.raises((AssertionError, selfmaint.SelfmaintError)):
        _asked(shape)


def _asked(shape: str) -> None:
    for number in range(30):
        answered(f"spoilt.{number}", shape, QUESTIONS)
