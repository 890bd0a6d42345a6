"""Baselines: only what got worse counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from selfmaint.audit.matrix import baseline_text, read_baseline, worse
from selfmaint.errors import InputError

A, B = ("v", "r", "insert"), ("v", "s", "any")


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    words = {A: "always", B: "depends"}
    path.write_text(baseline_text(words), encoding="utf-8")
    assert read_baseline(path) == words


@pytest.mark.parametrize(
    ("before", "now", "least", "counts"),
    [
        ("always", "depends", "depends", True),
        ("depends", "depends", "depends", False),
        ("depends", "never", "depends", True),
        ("always", "depends", "never", False),
        ("undecided", "depends", "depends", False),
        ("never", "depends", "depends", False),
        (None, "depends", "depends", True),
        (None, "always", "depends", False),
    ],
)
def test_what_counts_as_worse(before: str | None, now: str, least: str, *, counts: bool) -> None:
    assert bool(worse({A: now}, {} if before is None else {A: before}, least)) is counts


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{", "SM701"),
        ("[]", "SM701"),
        ('{"selfmaint_audit_baseline": 9, "verdicts": []}', "SM701"),
        ('{"selfmaint_audit_baseline": 1, "verdicts": [["v", "r", "any", "perhaps"]]}', "SM701"),
    ],
)
def test_another_file_is_refused(tmp_path: Path, text: str, code: str) -> None:
    path = tmp_path / "baseline.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_baseline(path)
    assert [d.code.value for d in caught.value.diagnostics] == [code]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="SM103"):
        read_baseline(tmp_path / "none.json")
