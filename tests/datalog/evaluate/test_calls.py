"""Functions of texts and numbers: what the evaluator gives is what DuckDB gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from datalog.model import ViewDefinition
from datalog.sql.views import SqlText, read_sql
from selfmaint.duckdb import DuckEngine
from selfmaint.engine.memory import MemoryEngine
from tests.datalog.sql.duckdb.test_values_as_on_spark import (
    CALLS,
    CREATE,
    REFUSED,
    TESTS,
    T,
    computed,
    loaded,
    shown,
    types,
    view,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from datalog.model import Value


def rows(engine: DuckEngine | MemoryEngine, definition: ViewDefinition) -> list[Sequence[Value]]:
    found = engine.sample(engine.evaluate_view(definition, loaded(engine), {T: types()}), 99)  # type: ignore[arg-type]
    return sorted(found, key=lambda row: str(row[0]))


@pytest.mark.parametrize("calls", [CALLS, [f"case when {one} then 1 end" for one in TESTS]])
def test_the_evaluator_gives_what_duckdb_gives(calls: list[str]) -> None:
    query = f"select k, {', '.join(f'{one} as x{i}' for i, one in enumerate(calls))} from t"
    mine, its = (rows(one, view(query)) for one in (MemoryEngine(), DuckEngine(most_few=0)))
    for name, one, other in zip(["k", *calls], zip(*mine, strict=True), zip(*its, strict=True), strict=True):
        assert [*map(shown, one)] == [*map(shown, other)], name


@pytest.mark.parametrize("expression", REFUSED)
def test_what_differs_is_refused(expression: str) -> None:
    _, refused = computed(DuckEngine(), {expression: f"select k, {expression} as x from t"})
    assert refused == [expression]


@pytest.mark.parametrize(
    "call", ["stddev(d)", "var_pop(f)", "std(q)", "variance(distinct i4)", "stddev(i4 / 2)"]
)
def test_a_variance_of_what_is_not_exact_is_left_to_spark(call: str) -> None:
    found = read_sql([SqlText(CREATE, "tables"), SqlText(f"select b, {call} as x from t group by b", "v")])
    assert [view.name for view in found.opaque] == ["v"]
    assert "distinct" in call or "inexact_sums" in (found.warnings[0].hint or "")
