"""A few of the seeded defects, with rows in Spark: those of which the engine must give copies, and doubles."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from datalog.model import ColumnType, TypeName
from selfmaint import CrossExamination, Update
from selfmaint.api.warehouse import build
from selfmaint.cross_examine.examine import Outcome
from selfmaint.decide.verdict import Change, SelfMaintainable
from tests.selfmaint.cross_examine.test_defects import KINDS, TABLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INT, BIGINT, DOUBLE = (ColumnType(name) for name in (TypeName.INT, TypeName.BIGINT, TypeName.DOUBLE))
COLUMNS = {
    "rows that repeat": {"v": [INT], "s": [INT, INT]},
    "sums of doubles": {"v": [INT, DOUBLE, BIGINT], "d": [INT, INT, DOUBLE]},
    "NaN": {"v": [INT, DOUBLE, DOUBLE, BIGINT], "n": [INT, INT, DOUBLE]},
}


@pytest.mark.parametrize("name", COLUMNS)
def test_a_wrong_change_is_found(
    name: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from selfmaint.spark import SparkEngine

    kind, engine = KINDS[name], SparkEngine(spark.newSession())
    here = kind.warehouse()
    right = kind.change(here, kind.told)

    def loaded(relation: str, rows: Any) -> Any:
        types = COLUMNS[name][relation]
        return engine.load(rows, [f"c{i}" for i in range(len(types))], types)

    twice = [(1,)] if name == "rows that repeat" else []
    stored = {"v": loaded("v", [*here.contents["v"], *twice])}
    warehouse = build(TABLES + kind.views, stored, engine, inexact_sums=True)
    ((changed, rows),) = kind.told.items()
    update = Update({changed: loaded(changed, rows)}, effective=True)
    for given, expected in ((right.gained, Outcome.AGREES), (frozenset(), Outcome.CONTRADICTS)):
        verdict = SelfMaintainable("v", change=Change(given, right.lost))
        monkeypatch.setattr("selfmaint.api.check.decide", lambda *_, said=verdict, **__: {"v": said})
        budget = CrossExamination(folder=tmp_path, seconds=30, candidates=150)
        found = warehouse.check(update, ["v"], cross_examine=budget).examined["v"]
        assert found.outcome is expected, found.because
