"""The dbt project: what the guide shows of its audit is what is printed."""

from __future__ import annotations

import json
from pathlib import Path

from tests.command_line import run

ROOT = Path(__file__).resolve().parents[2]
WAREHOUSE = ROOT / "examples" / "dbt" / "warehouse.toml"


def test_the_guide_shows_what_is_printed() -> None:
    shown = (
        (ROOT / "docs" / "guide" / "audit.md")
        .read_text(encoding="utf-8")
        .split("<!-- dbt -->")[1]
        .split("```")[1]
    )
    _, command, *expected = [line.rstrip() for line in shown.splitlines()]
    assert command == "$ selfmaint audit examples/dbt/warehouse.toml --no-advice"
    ran = run("audit", str(WAREHOUSE), "--no-advice")
    assert ran.status == 0
    printed = [line.rstrip() for line in ran.stdout.splitlines()]
    assert [line for line in expected if line] == [line for line in printed if line][: len(expected)]


def test_verdicts_and_examples_are_told_to_machines() -> None:
    ran = run("audit", str(WAREHOUSE), "--no-advice", "--format", "json")
    text = json.dumps(json.loads(ran.stdout))
    assert '"depends"' in text
    assert "largest" in text


def test_models_are_shown_as_rules() -> None:
    ran = run("sql", str(WAREHOUSE), "revenue", "--datalog")
    assert ran.status == 0
    assert "count(*)" in ran.stdout
    assert "Status = 'paid'" in ran.stdout or "'paid'" in ran.stdout
