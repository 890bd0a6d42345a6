"""Running the command line inside this process, and the golden cases of what it says about bad input."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import pytest

from selfmaint.cli import app

GOLDENS = Path(__file__).parent / "golden" / "errors"
UPDATE = bool(os.environ.get("UPDATE_GOLDENS"))


@dataclass(frozen=True)
class Ran:
    """What a command line gave."""

    status: int
    stdout: str
    stderr: str


def run(*args: str) -> Ran:
    """Runs `selfmaint ARGS` in this process; an exception that is not an exit passes through."""
    out, err = io.StringIO(), io.StringIO()
    environment = mock.patch.dict(os.environ, {"COLUMNS": "110", "TERM": "dumb"})
    with environment, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = app(args)
        except SystemExit as ended:
            status = int(str(ended.code))
    return Ran(status, out.getvalue(), err.getvalue())


def cases(*, spark: bool = False) -> list[str]:
    """The golden cases but for those of Spark alone; or those that are run on Spark."""
    found = {path.parent.name: json.loads(path.read_text()) for path in sorted(GOLDENS.glob("*/case.json"))}
    return [
        name for name, case in found.items() if (case["spark"] if spark else "--engine" not in case["args"])
    ]


def check_golden(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs a case in a copy of its input, and compares all that it says."""
    case = GOLDENS / name
    settings = json.loads((case / "case.json").read_text())
    shutil.copytree(case / "in", folder / "in") if (case / "in").is_dir() else (folder / "in").mkdir()
    for variable, value in settings.get("env", {}).items():
        monkeypatch.setenv(variable, value)
    before = snapshot(folder / "in")
    monkeypatch.chdir(folder / "in")
    ran = run(*settings["args"])
    assert snapshot(folder / "in") == before, "bad input, and yet something was written"
    said = {"stderr.txt": ran.stderr, "stdout.txt": ran.stdout, "status.txt": f"{ran.status}\n"}
    for file, raw in said.items():
        text = raw.replace(str(folder / "in"), ".")
        golden = case / file
        if UPDATE:
            golden.unlink(missing_ok=True)
            if text:
                golden.write_text(text, encoding="utf-8")
        expected = golden.read_text(encoding="utf-8") if golden.is_file() else ""
        assert text == expected, f"{golden} differs; UPDATE_GOLDENS=1 rewrites it"


def snapshot(folder: Path) -> dict[str, bytes]:
    """Every file below a folder; a lock that was held leaves an empty file."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): data for path in files if (data := path.read_bytes())}
