"""Defects seeded into the decision, for every kind of view that is encoded: each is found, and its file written.

Of each kind two updates of one database: the new state is determined after the one, and open after the other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from selfmaint.api.update import Update
from selfmaint.api.warehouse import Warehouse, build
from selfmaint.countermodel.databases import Evaluation, stored_rows, updated
from selfmaint.cross_examine.examine import CrossExamination, Examined, Outcome
from selfmaint.decide.verdict import Change, NotSelfMaintainable, SelfMaintainable, Verdict
from selfmaint.engine.memory import MemoryEngine
from selfmaint.possible.new_state import TwoDatabases

TABLES = """
create table r (a int primary key, b int not null, c int not null);
create table s (f int primary key, e int not null);
create table d (a int primary key, b int not null, x double not null);
create table n (a int primary key, b int not null, x double not null);
"""

Rows = frozenset[tuple[Any, ...]]


@dataclass(frozen=True)
class Kind:
    """A view `v`, and what is inserted: what determines its new state, and what leaves it open."""

    views: str
    told: dict[str, Rows]
    open: dict[str, Rows]
    over: tuple[str, ...] = ()

    @cached_property
    def base(self) -> dict[str, Rows]:
        return {
            "r": frozenset({(1, 1, 4), (2, 1, 6), (3, 2, 7)}),
            "s": frozenset({(1, 5), (2, 8)}),
            "d": frozenset({(1, 1, 0.1), (2, 1, 0.2)}),
            "n": frozenset({(1, 1, math.nan), (2, 1, 0.5), (3, 2, math.nan)}),
        }

    def contents(self, here: Warehouse[Rows], base: dict[str, Rows]) -> dict[str, Rows]:
        found: Any = Evaluation(here.catalog).contents(base)
        return stored_rows(here.catalog, found)

    def warehouse(self) -> Warehouse[Rows]:
        program = TABLES + self.views
        if ":-" in self.views:
            program = ".decl r(a: int not null, b: int not null, c: int not null) key(a).\n"
            program += ".decl s(f: int not null, e: int not null) key(f).\n" + self.views
        none: Any = {
            name: frozenset() for name in ("u", "v") if f" {name} " in program or f"{name}(" in program
        }
        here = build(program, none, MemoryEngine(), inexact_sums=True)
        return build(program, self.contents(here, self.known(here)), MemoryEngine(), inexact_sums=True)

    def known(self, here: Warehouse[Rows]) -> dict[str, Rows]:
        return {name: rows for name, rows in self.base.items() if name in here.catalog.relations}

    def change(self, here: Warehouse[Rows], update: dict[str, Rows]) -> Change:
        after = self.contents(here, updated(self.known(here), update, {}))["v"]
        before: Rows = here.contents["v"]
        return Change(after - before, before - after)


def one(*row: Any) -> Rows:
    return frozenset({row})


KINDS = {
    "HAVING": Kind(
        "create view v as select b, count(*) as n from r group by b having count(*) > 1;",
        {"r": one(9, 1, 5)},
        {"r": one(9, 2, 5)},
    ),
    "averages": Kind(
        "create view v as select b, avg(c) as z from r group by b;", {"r": one(9, 7, 5)}, {"r": one(9, 1, 7)}
    ),
    "computed columns": Kind(
        "create view v as select b, sum(c) * 2 as z from r group by b;",
        {"r": one(9, 1, 5)},
        {"r": one(1, 1, 5)},
    ),
    "groups that are not shown": Kind(
        "create view v as select count(*) as n, max(c) as m from r group by b;",
        {"s": one(9, 9)},
        {"r": one(9, 5, 5)},
    ),
    "unions of groups": Kind(
        "create view v as select b, count(*) as n from r group by b union all select f, 9 from s;",
        {"s": one(9, 9)},
        {"r": one(9, 1, 5)},
    ),
    "views over views": Kind(
        "create view u as select b, sum(c) as n from r group by b; create view v as select b from u where n > 8;",
        {"r": one(9, 2, 5)},
        {"r": one(3, 2, 5)},
    ),
    "rows that repeat": Kind(
        "create view v as select b from r union all select e from s;", {"s": one(9, 3)}, {"s": one(9, 8)}
    ),
    "sums of doubles": Kind(
        "create view v as select b, sum(x) as z, count(*) as n from d group by b;",
        {"d": one(9, 1, 0.4)},
        {"d": one(1, 1, 0.4)},
    ),
    "NaN": Kind(
        "create view v as select b, max(x) as m, min(x) as l, count(*) as n from n group by b;",
        {"n": one(9, 2, math.nan)},
        {"n": one(1, 1, math.nan)},
    ),
    "negation in a negation": Kind(
        "v(A, C) :- r(A, _, C), not (s(A, E), not s(C, E)).", {"r": one(9, 5, 9)}, {"s": one(9, 9)}
    ),
}
NOT_EFFECTIVE = {
    "averages",
    "computed columns",
    "views over views",
    "unions of groups",
    "rows that repeat",
    "sums of doubles",
    "NaN",
}
"""Where an inserted row may have been there already, the new state is open."""


def examined(
    kind: Kind,
    update: dict[str, Rows],
    verdict: Verdict,
    patch: pytest.MonkeyPatch,
    folder: Path,
    *,
    is_effective: bool = True,
) -> Examined:
    def decide(*arguments: Any, **_: Any) -> dict[str, Verdict]:
        return {view.name: verdict for view in arguments[1]}

    patch.setattr("selfmaint.api.check.decide", decide)
    budget = CrossExamination(folder=folder, seconds=30, candidates=150)
    return (
        kind.warehouse()
        .check(Update(update, effective=is_effective), ["v"], cross_examine=budget)
        .examined["v"]
    )


def promised(kind: Kind, update: dict[str, Rows]) -> SelfMaintainable:
    return SelfMaintainable("v", change=kind.change(kind.warehouse(), update))


@pytest.mark.parametrize("name", KINDS)
def test_what_is_right_stays(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = KINDS[name]
    found = examined(kind, kind.told, promised(kind, kind.told), monkeypatch, tmp_path)
    assert (found.outcome, found.file) == (Outcome.AGREES, None), found.because


@pytest.mark.parametrize("name", KINDS)
def test_a_wrong_change_is_found(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = KINDS[name]
    right = kind.change(kind.warehouse(), kind.told)
    gained = frozenset(list(right.gained)[1:]) if right.gained else frozenset()
    lost = right.lost if right.gained else kind.warehouse().contents["v"]
    wrong = SelfMaintainable("v", change=Change(gained, lost))
    found = examined(kind, kind.told, wrong, monkeypatch, tmp_path)
    assert found.outcome is Outcome.CONTRADICTS, found.because
    assert found.file == tmp_path / "cross-examined-v.txt"
    assert "the new state that the verdict promises" in found.file.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", KINDS)
def test_a_wrong_yes_is_found(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What one of the databases gives is promised, where another one gives something else."""
    kind = KINDS[name]
    effective = name not in NOT_EFFECTIVE
    found = examined(
        kind, kind.open, promised(kind, kind.open), monkeypatch, tmp_path, is_effective=effective
    )
    assert found.outcome is Outcome.CONTRADICTS, found.because
    assert found.file == tmp_path / "cross-examined-v.txt"


@pytest.mark.parametrize("name", KINDS)
def test_a_wrong_no_is_found(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = KINDS[name]
    base = kind.known(kind.warehouse())
    wrong = NotSelfMaintainable("v", (), databases=TwoDatabases(base, base, ()))
    found = examined(kind, kind.told, wrong, monkeypatch, tmp_path)
    assert found.outcome is Outcome.CONTRADICTS, found.because
    assert "prove nothing" in found.because
    assert found.file == tmp_path / "cross-examined-v.txt"


def test_a_wrong_yes_of_a_view_over_views(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its new rows are not at hand: two databases that differ contradict it."""
    kind = KINDS["HAVING"]
    verdict = SelfMaintainable("v", over=("u",))
    found = examined(kind, kind.open, verdict, monkeypatch, tmp_path)
    assert found.outcome is Outcome.CONTRADICTS, found.because
    assert found.file is not None
    text = found.file.read_text(encoding="utf-8")
    assert "the first of two databases" in text
    assert "the second one" in text
