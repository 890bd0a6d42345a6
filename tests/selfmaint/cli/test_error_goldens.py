"""What the command line says about bad input that needs no Spark to be found, word for word."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from selfmaint.errors import Code
from tests.command_line import GOLDENS, cases, check_golden

ROOT = Path(__file__).resolve().parents[3]
ELSEWHERE = {
    Code.READ_REFUSED: "tests/selfmaint/engine/test_engines.py",
    Code.WRITE_FAILED: "tests/end_to_end/test_whole_way.py",
    Code.LEFT_BEHIND: "tests/selfmaint/store/test_journal.py",
    Code.FOREIGN_JOURNAL: "tests/selfmaint/store/test_journal.py",
    Code.LAKE: "tests/selfmaint/store/test_lake.py",
    Code.COMMITTED: "tests/selfmaint/store/test_lake.py",
    Code.EDITED: "tests/selfmaint/api/test_edited.py",
    Code.CONFLICT: "tests/selfmaint/store/test_delta_store.py",
    Code.NO_ENGINE: "tests/selfmaint/cli/test_cli.py",
    Code.ENGINE_DIFFERS: "tests/datalog/sql/duckdb/test_values_as_on_spark.py",
    Code.FEED_PACKAGE: "tests/selfmaint/feeds/test_engines.py",
    Code.LOG: "tests/follow/test_refused.py",
    Code.CONTRADICTED: "tests/selfmaint/cross_examine/test_cross_examination.py",
}
"""Codes that no command line with small files raises, and the tests that do."""


@pytest.mark.parametrize("name", cases())
def test_golden(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_golden(name, tmp_path, monkeypatch)


@pytest.mark.parametrize("code", [code.value for code in Code])
def test_every_code_has_a_page(code: str) -> None:
    page = ROOT / "docs" / "codes" / f"{code}.md"
    assert page.is_file(), f"no page for {code}"
    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"# {code}: ")
    assert "## Example" in text
    assert "## What to do" in text


@pytest.mark.parametrize("code", list(Code))
def test_every_code_is_raised(code: Code) -> None:
    if code in ELSEWHERE:
        text = (ROOT / ELSEWHERE[code]).read_text(encoding="utf-8")
        assert code.value in text or code.name in text
        return
    raised = [path for path in GOLDENS.glob(f"{code.value}*/stderr.txt") if code.value in path.read_text()]
    assert raised, f"no golden raises {code.value}"


def test_no_golden_shows_a_traceback_or_a_password() -> None:
    for path in GOLDENS.glob("*/std*.txt"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"Traceback|hunter2|\bat org\.apache|java\.", text), path
