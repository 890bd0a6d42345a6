"""Small modules, small functions, telling names, and nothing that points outside the repository."""

from __future__ import annotations

import ast
import os
import re
import statistics
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("datalog", "selfmaint")

MODULE_LINES = 400
MEDIAN_LINES = 170  # some 200 modules of 34,000 lines, the aim, have so many on the average
FUNCTION_LINES = 60
EMPTY_NAMES = {"util", "utils", "helper", "helpers", "manager", "managers"}

# Put together here, so that this file does not hold what it looks for. A longer path that merely contains
# the folder, such as a user's, is not meant.
TOP = "work"
OUTSIDE = re.compile(rf"(?<![\w.~-])/{TOP}/")
NOT_OURS = {"__pycache__", "build", "dist", "tests", "spark-warehouse", "metastore_db"}
HIDDEN_BUT_OURS = {".ci", ".github"}


def modules() -> list[Path]:
    return sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def lines_of(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def short(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), filename=str(path))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def files_outside_tests() -> Iterator[Path]:
    for folder, subfolders, names in os.walk(ROOT):
        subfolders[:] = [
            name
            for name in subfolders
            if name not in NOT_OURS
            and not name.endswith(".egg-info")
            and (not name.startswith(".") or name in HIDDEN_BUT_OURS)
        ]
        yield from (Path(folder, name) for name in names if name != ".git")


def references_outside(text: str) -> list[int]:
    """The lines, counted from 1, that name a place outside the repository."""
    return [number for number, line in enumerate(text.splitlines(), 1) if OUTSIDE.search(line)]


@pytest.mark.parametrize("package", PACKAGES)
def test_there_are_modules_to_measure(package: str) -> None:
    assert list((ROOT / package).rglob("*.py"))


def test_no_module_is_too_long() -> None:
    found = {short(path): lines_of(path) for path in modules()}
    assert {name: lines for name, lines in found.items() if lines > MODULE_LINES} == {}


def test_most_modules_are_short() -> None:
    # An empty `__init__.py` is no module to speak of: counting it would only flatter the median.
    lines = [count for path in modules() if (count := lines_of(path)) > 1]
    assert statistics.median(lines) < MEDIAN_LINES


def test_no_function_is_too_long() -> None:
    # From `def` to the last line, the docstring included, decorators not.
    found = {
        f"{short(path)}:{function.lineno} {function.name}": length
        for path in modules()
        for function in functions(path)
        if (length := (function.end_lineno or function.lineno) - function.lineno + 1) >= FUNCTION_LINES
    }
    assert found == {}


def test_no_module_or_folder_has_an_empty_name() -> None:
    found = [
        short(path)
        for path in modules()
        if EMPTY_NAMES & {part.lstrip("_").lower() for part in path.relative_to(ROOT).with_suffix("").parts}
    ]
    assert found == []


def test_nothing_points_outside_the_repository() -> None:
    found = {
        short(path): lines
        for path in files_outside_tests()
        if (lines := references_outside(path.read_text(encoding="utf-8", errors="replace")))
    }
    assert found == {}


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("see {}notes", [1]),
        ("first\npath = '{}notes'\n", [2]),
        ("/home/someone{}notes", []),
        ("https://example.org{}notes", []),
        ("the work at hand", []),
    ],
)
def test_what_points_outside(text: str, lines: list[int]) -> None:
    assert references_outside(text.format(f"/{TOP}/")) == lines
