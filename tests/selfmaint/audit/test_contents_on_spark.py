"""`selfmaint audit --contents`: do the stored views contradict each other?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command_line import run

RULES = """.decl r(x: int not null, y: int not null).
.decl s(y: int not null).
joined(X, Y) :- r(X, Y), s(Y).
copy(Y) :- s(Y).
"""


def warehouse(folder: Path, copied: str) -> str:
    (folder / "views.dl").write_text(RULES, encoding="utf-8")
    (folder / "joined.csv").write_text("x,y\n1,2\n3,4\n", encoding="utf-8")
    (folder / "copy.csv").write_text(copied, encoding="utf-8")
    path = folder / "w.toml"
    path.write_text(
        'program = "views.dl"\n[views.joined]\npath = "joined.csv"\n[views.copy]\npath = "copy.csv"\n',
        encoding="utf-8",
    )
    return str(path)


@pytest.mark.usefixtures("spark")
def test_views_that_some_database_explains(tmp_path: Path) -> None:
    ran = run("audit", warehouse(tmp_path, "y\n2\n4\n5\n"), "--contents")
    assert ran.status == 0
    assert "consistent" in ran.stdout
    ran = run("audit", str(tmp_path / "w.toml"), "--contents", "--format", "json")
    assert json.loads(ran.stdout) == {"consistent": True, "partly": []}


@pytest.mark.usefixtures("spark")
def test_a_stale_copy_is_named_with_its_missing_rows(tmp_path: Path) -> None:
    file = warehouse(tmp_path, "y\n2\n")
    ran = run("audit", file, "--contents")
    assert ran.status == 1
    assert "SM203" in ran.stdout
    assert "`copy`" in ran.stdout
    assert "y=4" in ran.stdout
    found = json.loads(run("audit", file, "--contents", "--format", "json").stdout)
    assert not found["consistent"]
    assert [error["code"] for error in found["errors"]] == ["SM203"]
