"""Files of another format than their names say, and records that cannot be read: what is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command_line import run

VIEWS = "create table r (a int not null primary key, b string); create view v as select a, b from r;"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("r.insert.parquet", "a,b\n1,x\n2,a longer text\n", "if it is of another format, name it by that"),
        ("r.insert.csv", 'a,b\n1,"ca"rd\n', "a quote inside is doubled"),
    ],
)
def test_what_cannot_be_read(
    name: str, text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "v.sql").write_text(VIEWS)
    (tmp_path / "v.csv").write_text("a,b\n")
    (tmp_path / "w.toml").write_text('program = "v.sql"\n[views.v]\npath = "v.csv"\n')
    (tmp_path / "u").mkdir()
    (tmp_path / "u" / name).write_text(text)
    done = run("check", "w.toml", "--update", "u")
    assert done.status == 2
    assert "SM104" in done.stderr
    assert said in " ".join(done.stderr.split())
