"""Warnings: what is said of one text is said once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command_line import run

VIEWS = """
create table r (id int not null primary key, x double, y double);
create view v as select id, power(x, 2) as a, power(y, 2) as b, power(x, y) as c from r;
create view w as select id, power(x, 3) as a from r;
"""


@pytest.mark.parametrize("form", ["table", "json"])
def test_what_is_alike_is_said_once_with_the_number_of_places(tmp_path: Path, form: str) -> None:
    for name, text in zip("rvw", VIEWS.split(";"), strict=False):
        (tmp_path / f"{name}.sql").write_text(text)
    (tmp_path / "w.toml").write_text('program = "."\n[store]\nkind = "lake"\npath = "lake"\n')
    ran = run("audit", str(tmp_path / "w.toml"), "--no-advice", "--format", form)
    assert ran.status == 0
    if form == "json":
        found = json.loads(ran.stderr)["warnings"]
        assert sum("power" in one["message"] for one in found) == 4
    else:
        assert ran.stderr.count("the function `power`") == 2
        assert ran.stderr.count("the same in 2 more places of this text") == 1
