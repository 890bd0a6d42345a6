"""The recorded cases, with exact answers from a solver that works from the definition alone."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from selfmaint.conformance.cases import Case, read_cases
from selfmaint.conformance.run import Outcome, Summary, run_case
from selfmaint.engine.memory import MemoryEngine
from tests.large_engine import LargeEngine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DATA = Path(__file__).parent / "data"
SPARK_CASES = 25
SPARK_ALONE_CASES = 2
GROUPED_ON_SPARK = 12
DUCKDB_CASES = 12


UNDECIDED_HARD = 20
"""Of the cases made to break the decision, at most so many views are undecided."""


@cache
def cases(file: str) -> tuple[Case, ...]:
    """They are parsed once."""
    return tuple(read_cases(DATA / file))


def summary(outcomes: list[Outcome]) -> Summary:
    counted = Summary("recorded")
    for outcome in outcomes:
        counted.add(outcome)
    return counted


ENGINES = [MemoryEngine(), LargeEngine()]

EXACT = {
    "no_projection": (400, 791, 397, 394),
    "constraints": (253, 540, 271, 269),
    "comparisons": (250, 547, 275, 272),
}
"""For each file: cases, views, of them yes and no."""

HALF_KNOWN = {"constraints": 7}
"""On large data no two databases are made: a "no" that rows known by their key alone could overturn is undecided."""


@pytest.mark.parametrize("engine", ENGINES, ids=lambda e: e.name)
@pytest.mark.parametrize("file", EXACT)
def test_views_without_projection_are_decided_exactly(file: str, engine: MemoryEngine) -> None:
    outcomes = [o for case in cases(f"{file}.jsonl") for o in run_case(case, engine)]
    assert [o for o in outcomes if o.disagreement] == []
    counted = summary(outcomes)
    assert (counted.cases, counted.views, counted.yes, counted.no + counted.undecided) == EXACT[file]
    is_large = engine.name != "memory"
    assert counted.undecided == (HALF_KNOWN.get(file, 0) if is_large else 0)


@pytest.mark.parametrize("engine", ENGINES, ids=lambda e: e.name)
def test_cases_made_to_break_the_decision(engine: MemoryEngine) -> None:
    """One inserted row, views as prohibitions: types with gaps, nulls, rows known by their key alone, several keys."""
    outcomes = [o for case in cases("hard.jsonl") for o in run_case(case, engine)]
    assert [o for o in outcomes if o.disagreement in ("unsound", "wrong state")] == []
    if not isinstance(engine, LargeEngine):  # of large data a "no" is not shown by two databases
        assert [o for o in outcomes if o.disagreement] == []
    assert sum(o.verdict == "undecided" for o in outcomes) <= UNDECIDED_HARD


SEARCHED = {"projection": (250, 514, 258, 256), "union": (200, 407, 204, 203)}
"""The same, of files that are decided exactly where the data are few enough to be searched."""


@pytest.mark.parametrize("file", SEARCHED)
def test_projections_and_unions_are_decided_exactly(file: str) -> None:
    outcomes = [o for case in cases(f"{file}.jsonl") for o in run_case(case, MemoryEngine())]
    assert [o for o in outcomes if o.disagreement] == []
    counted = summary(outcomes)
    assert (counted.cases, counted.views, counted.yes, counted.no) == SEARCHED[file]


@pytest.mark.parametrize("file", SEARCHED)
def test_projections_and_unions_never_get_a_wrong_yes_on_large_data(file: str) -> None:
    outcomes = [o for case in cases(f"{file}.jsonl") for o in run_case(case, LargeEngine())]
    assert [o for o in outcomes if o.disagreement in ("unsound", "wrong state")] == []
    assert {o.verdict for o in outcomes} >= {"yes", "undecided"}


DETERMINED = {"count": 116, "sum": 79, "min": 23, "max": 16, "no aggregate": 82}
"""For each kind of column: views that are determined (over small domains at least)."""


@pytest.mark.parametrize("engine", ENGINES, ids=lambda e: e.name)
def test_views_that_group_are_decided_and_never_wrongly(engine: MemoryEngine) -> None:
    determined: Counter[str] = Counter()
    decided: Counter[str] = Counter()
    for case in cases("aggregates.jsonl"):
        kinds = {
            view.name: {a.function.value for block in view.blocks for a in block.aggregates}
            for view in case.program.views
        }
        for outcome in run_case(case, engine):
            assert outcome.disagreement is None
            if outcome.expected == "yes":
                found = kinds.get(outcome.view, {"no aggregate"})
                determined.update(found)
                decided.update(found if outcome.verdict == "yes" else ())
    assert decided == determined == DETERMINED


def test_cases_found_by_search() -> None:
    """More demands of stored groups than Python nests calls. What is symbolic is the same for each engine."""
    outcomes = [o for case in cases("found.jsonl") for o in run_case(case, MemoryEngine())]
    assert [o for o in outcomes if o.disagreement] == []
    assert [o.verdict for o in outcomes] == ["yes"] * 5 + ["no", "yes", "no", "no"]


@pytest.mark.parametrize("file", EXACT)
def test_a_sample_on_spark(file: str, interpreting_spark: SparkSession) -> None:
    from selfmaint.spark.engine import SparkEngine

    every = cases(f"{file}.jsonl")
    chosen = every[:: len(every) // SPARK_CASES][:SPARK_CASES]
    outcomes = [o for case in chosen for o in run_case(case, SparkEngine(interpreting_spark))]
    assert [o for o in outcomes if o.disagreement or o.verdict == "undecided"] == []
    assert summary(outcomes).cases == SPARK_CASES


@pytest.mark.parametrize("file", EXACT)
def test_a_sample_that_only_spark_computes(file: str, interpreting_spark: SparkSession) -> None:
    from selfmaint.spark.engine import SparkEngine

    every = cases(f"{file}.jsonl")
    chosen = every[:: len(every) // SPARK_ALONE_CASES][:SPARK_ALONE_CASES]
    outcomes = [o for case in chosen for o in run_case(case, SparkEngine(interpreting_spark, near_values=0))]
    assert [o for o in outcomes if o.disagreement or o.verdict == "undecided"] == []


@pytest.mark.parametrize("file", [*EXACT, "hard", "aggregates", "projection", "union"])
def test_a_sample_on_duckdb(file: str) -> None:
    from selfmaint.duckdb import DuckEngine

    every = cases(f"{file}.jsonl")
    chosen = every[:: max(1, len(every) // DUCKDB_CASES)][:DUCKDB_CASES]
    on_duckdb = [o for case in chosen for o in run_case(case, DuckEngine(most_few=0))]
    in_memory = [o for case in chosen for o in run_case(case, MemoryEngine())]
    assert [o for o in on_duckdb if o.disagreement in ("unsound", "wrong state")] == []
    assert [(o.verdict, o.state) for o in on_duckdb] == [(o.verdict, o.state) for o in in_memory]


def test_views_that_group_on_spark(interpreting_spark: SparkSession) -> None:
    from selfmaint.spark.engine import SparkEngine

    every = cases("aggregates.jsonl")
    chosen = every[:: len(every) // GROUPED_ON_SPARK][:GROUPED_ON_SPARK]
    on_spark = [o for case in chosen for o in run_case(case, SparkEngine(interpreting_spark))]
    in_memory = [o for case in chosen for o in run_case(case, MemoryEngine())]
    assert [o for o in on_spark if o.disagreement] == []
    assert [o.verdict for o in on_spark] == [o.verdict for o in in_memory]
