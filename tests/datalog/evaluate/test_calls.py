"""Functions of texts and numbers: what the evaluator gives is what DuckDB gives."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from datalog.errors import EvaluationError
from datalog.evaluate.casts import try_cast_value
from datalog.evaluate.scalars import Scalars
from datalog.model import (
    Arithmetic,
    Call,
    Constant,
    Expression,
    Minus,
    Value,
    Variable,
    ViewDefinition,
    WallClock,
)
from datalog.sql.views import SqlText, read_sql
from selfmaint.duckdb import DuckEngine
from selfmaint.engine.memory import MemoryEngine
from tests.datalog.sql.duckdb.test_values_as_on_spark import (
    CALLS,
    CREATE,
    REFUSED,
    TESTS,
    T,
    column_type,
    computed,
    loaded,
    shown,
    types,
    view,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


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


TEXTS = [
    # as Spark 4.3 casts them
    ("2024-01-01 10:00:00Z", "timestamp_ntz", WallClock(2024, 1, 1, 10)),
    ("2024-01-01 10:00:00.5+18:00", "timestamp_ntz", WallClock(2024, 1, 1, 10, 0, 0, 500_000)),
    ("2024-01-01 10:00:00+18:00", "timestamp", dt.datetime(2023, 12, 31, 16)),
    ("9" * 38, "decimal(38,0)", Decimal("9" * 38)),
    ("9" * 39, "decimal(38,0)", None),
    (" a", "string", " a"),
    ("1\x7f", "int", 1),
]
UNCLEAR = [
    ("2024-01-01 10:00:00+18:01", "timestamp"),
    ("2024-01-01 10:00Z", "timestamp"),
    ("0000-01-01", "date"),
    ("1\x7f", "double"),
]


@pytest.mark.parametrize(("text", "kind", "value"), TEXTS)
def test_texts_that_are_tried(text: str, kind: str, value: object) -> None:
    found = try_cast_value(text, column_type(kind))
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(("text", "kind"), UNCLEAR)
def test_texts_of_which_the_value_is_not_known(text: str, kind: str) -> None:
    with pytest.raises(EvaluationError):
        try_cast_value(text, column_type(kind))


@pytest.mark.parametrize(
    ("kind", "value", "expression"),
    [
        ("int", -(2**31), Minus(Variable("X"))),
        ("bigint", -(2**63), Call("abs", (Variable("X"),))),
        ("decimal(38,0)", Decimal("9" * 38), Arithmetic("+", Variable("X"), Constant(1))),
        ("decimal(38,0)", Decimal("9" * 38), Arithmetic("*", Variable("X"), Constant(2))),
    ],
)
def test_what_does_not_fit_is_no_value(kind: str, value: Value, expression: Expression) -> None:
    with pytest.raises(EvaluationError):
        Scalars({Variable("X"): column_type(kind)}, {Variable("X"): value}).value(expression)
