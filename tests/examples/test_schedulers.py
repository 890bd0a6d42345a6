"""The steps that a scheduler's job runs: by the real command, again and again, and what is to be tried again."""

from __future__ import annotations

import json
import random
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from selfmaint.api.stores.store_upkeep import store_of
from tests.command_line import run
from tests.selfmaint.store.test_lake import Shop, a_random_change

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """The example's module, which runs this checkout's command."""
    monkeypatch.syspath_prepend(ROOT / "examples" / "schedulers")
    command = tmp_path / "selfmaint"
    command.write_text(
        f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -m selfmaint "$@"\n', encoding="utf-8"
    )
    command.chmod(stat.S_IRWXU)
    monkeypatch.setenv("SELFMAINT", str(command))
    import steps as imported

    yield imported
    sys.modules.pop("steps", None)


def test_the_job_may_be_run_again_at_any_time(steps: Any, tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    assert run("init", str(shop.toml)).status == 0
    file, chance = str(shop.toml), random.Random(5)
    days = [a_random_change(shop, f"2026-01-0{day}", chance) for day in (1, 2)]
    for day in days:
        steps.check(file, str(day))
        assert json.loads(steps.maintain(file, str(day), day.name, alone=False))["written"]
    assert shop.stored() == shop.expected()
    for day in reversed(days):
        assert steps.check(file, str(day))
        assert "committed_before" in json.loads(steps.maintain(file, str(day), day.name, alone=True))
    assert shop.stored() == shop.expected()


JOIN = """
program_text = '''
.decl r(x: bigint not null, y: bigint not null).
.decl s(y: bigint not null, z: bigint not null).
v(X, Y, Z) :- r(X, Y), s(Y, Z).
'''
[store]
kind = "lake"
path = "lake"
[relations.r]
path = "r.csv"
[relations.s]
path = "s.csv"
[update]
effective = true
"""


def test_base_rows_are_asked_for_where_check_says_so(steps: Any, tmp_path: Path) -> None:
    file, update = tmp_path / "warehouse.toml", tmp_path / "u"
    file.write_text(JOIN, encoding="utf-8")
    (tmp_path / "r.csv").write_text("x,y\n1,2\n", encoding="utf-8")
    (tmp_path / "s.csv").write_text("y,z\n2,3\n4,5\n", encoding="utf-8")
    assert run("init", str(file)).status == 0
    update.mkdir()
    (update / "r.insert.csv").write_text("x,y\n7,4\n", encoding="utf-8")
    (tmp_path / "r.csv").write_text("x,y\n1,2\n7,4\n", encoding="utf-8")
    assert not steps.check(str(file), str(update))
    with pytest.raises(steps.HopelessError, match="exit status 1"):
        steps.maintain(str(file), str(update), "u", alone=True)
    said = json.loads(steps.maintain(str(file), str(update), "u", alone=False))
    assert [(one["relation"], one["rows_read"]) for one in said["reads"]] == [("s", 1)]


def test_what_may_go_later_is_told_from_what_will_not(steps: Any, tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    assert run("init", str(shop.toml)).status == 0
    update = str(shop.update("u", {"customer": {(9, "west")}}, {}))
    with pytest.raises(steps.HopelessError, match="SM103"):
        steps.check(str(shop.toml), str(tmp_path / "none"))
    with store_of(shop.toml).store.place.writing("a long import"), pytest.raises(RuntimeError, match="SM405"):
        steps.maintain(str(shop.toml), update, "u", alone=True)
    steps.maintain(str(shop.toml), update, "u", alone=True)
    assert shop.stored() == shop.expected()
