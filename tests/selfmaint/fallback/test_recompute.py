"""Recomputing what is not decided: rules and definitions in memory, from sources before or after the update.

Oracle: the views by the reference evaluators over the new state.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from datalog.budget import BudgetSpentError
from datalog.model import Row
from selfmaint import Undecided, Update, init, load
from selfmaint.api.following.not_maintained import NotMaintainedError
from selfmaint.api.maintain import new_contents
from selfmaint.api.warehouse import Warehouse, build
from selfmaint.countermodel.databases import Evaluation
from selfmaint.engine.memory import MemoryEngine
from selfmaint.errors import InputError, SourceError
from selfmaint.fallback.settle import Readable
from selfmaint.sources.memory import RowsSource
from tests.effort import effort

RULES = """
.decl r(a: int not null, b: int, c: double) key(a).
.decl s(a: int not null, b: int) key(a).
whole(A, B, C) :- r(A, B, C).
either(B) :- r(A, B, C).
either(B) :- s(A, B).
both(B) :- either(B), s(B, D).
left(B) :- either(B), not s(B, B).
sums(B, sum(C), count(*)) :- r(A, B, C).
counts(B, count(*)) :- s(A, B).
"""
UNTOLD = RULES.replace("whole(A, B, C) :- r(A, B, C).\n", "")
"""The same where no view tells all rows of `r`: they have to be read."""
COLUMNS = {"r": ("a", "b", "c"), "s": ("a", "b")}
Database = dict[str, frozenset[Row]]


@cache
def empty(rules: str) -> Warehouse[frozenset[Row]]:
    views = VIEWS if rules == RULES else VIEWS[1:]
    return build(rules, dict.fromkeys(views, frozenset()), MemoryEngine())


def warehouse(
    old: Database, source: Database, names: str = "rs", rules: str = RULES
) -> Warehouse[frozenset[Row]]:
    contents = {n: frozenset(rows) for n, rows in Evaluation(empty(rules).catalog).contents(old).items()}
    readable = {n: Readable(RowsSource("here", {n: (COLUMNS[n], source[n])})) for n in names}
    return build(rules, contents, MemoryEngine(), readable=readable)


VIEWS = ("whole", "either", "both", "left", "sums", "counts")


def database(random: Random) -> Database:
    keys = [k for k in range(6) if random.random() < 0.6]
    r = frozenset((k, random.choice([0, 1, 2, None]), random.choice([0.5, 1.0, None])) for k in keys)
    return {"r": r, "s": frozenset((k, random.randrange(3)) for k in range(4) if random.random() < 0.6)}


@pytest.mark.parametrize("seed", range(effort(60, 1000)))
def test_recomputed_views_are_those_of_the_new_state(seed: int) -> None:
    random = Random(seed)
    old, new = database(random), database(random)
    inserted, deleted = ({n: a[n] - b[n] for n in a} for a, b in ((new, old), (old, new)))
    source = {n: random.choice([old, new])[n] for n in old}
    effective = random.random() < 0.5
    if not effective:
        inserted = {
            n: rows | {row for row in old[n] & new[n] if random.random() < 0.3}
            for n, rows in inserted.items()
        }
    here = warehouse(old, source)
    update = Update(inserted, deleted, effective=effective)
    try:
        found = here.maintain(update, recompute=True)
    except SourceError:
        # Groups are settled by reading rows of a source that is after the update.
        assert source["s"] != new["s"]
        return
    expected = Evaluation(here.catalog).contents(new)
    for view in here.catalog.views:
        rows = new_contents(here, view, found.deltas[view.name])
        assert rows == frozenset(expected[view.name]), view.name
        assert found.recomputed.get(view.name, rows) == rows
    changed = {name for part in (inserted, deleted) for name, rows in part.items() if rows}
    unions = {"both", "left"} if changed else set()
    beyond = {"sums"} if "r" in changed else set[str]()
    assert {"both", "left"} & set(found.recomputed) == unions
    assert {"sums"} & set(found.keyed) == beyond, (
        "the sums of groups that change are computed from their rows"
    )
    assert ("either" in found.keyed) == (not found.verdicts["either"])


@pytest.mark.parametrize("seed", range(effort(20, 300)))
def test_sources_that_have_nothing_of_the_update_are_named(seed: int) -> None:
    random = Random(seed)
    old, new = database(random), database(random)
    inserted, deleted = ({n: a[n] - b[n] for n in a} for a, b in ((new, old), (old, new)))
    are_before = {n for n in old if random.random() < 0.5}
    source = {n: old[n] if n in are_before else new[n] for n in old}
    try:
        found = warehouse(old, source).maintain(
            Update(inserted, deleted, effective=True), recompute=True, verify=True
        )
    except SourceError:  # groups are settled by reading rows of a source that is after the update
        assert source["s"] != new["s"]
        return
    assert found.differences == ()
    assert found.sources_before == sorted(n for n in are_before if old[n] != new[n])


def test_a_source_that_has_moved_is_refused() -> None:
    old: Database = {"r": frozenset({(1, 1, 0.5)}), "s": frozenset({(1, 1)})}
    update = Update({"r": frozenset({(2, 2, 1.0)})}, effective=True)
    moved = frozenset({(2, 3, 1.0), (1, 1, 0.5)})
    with pytest.raises(SourceError, match="SM402"):
        warehouse(old, {**old, "r": moved}, rules=UNTOLD).maintain(update, recompute=True)
    found = warehouse(old, {**old, "r": frozenset()}).maintain(update, recompute=True)
    assert not any(one.relation == "r" for one in found.reads), "`whole` tells all of it"


def test_what_could_not_be_settled_in_time_is_recomputed(monkeypatch: pytest.MonkeyPatch) -> None:
    def in_vain(*_: object) -> None:
        raise BudgetSpentError("reading", 1)

    old: Database = {"r": frozenset({(1, 1, 0.5)}), "s": frozenset({(1, 1)})}
    new: Database = {**old, "s": frozenset({(1, 1), (2, 2)})}
    update = Update({"s": frozenset({(2, 2)})}, effective=True)
    monkeypatch.setattr(import_module("selfmaint.api.following.opened"), "settle", in_vain)
    rules = f"{RULES[: RULES.index('whole')]} joined(A, D) :- r(A, B, C), s(B, D)."
    readable = {n: Readable(RowsSource("here", {n: (COLUMNS[n], new[n])})) for n in "rs"}
    here = build(rules, {"joined": frozenset({(1, 1)})}, MemoryEngine(), readable=readable)
    with pytest.raises(NotMaintainedError, match="is undecided"):
        here.maintain(update, most_keys=0)
    by_keys = here.maintain(update)
    assert [one.keys for one in by_keys.keyed.values()] == [0], "no row of r has the new row's key"
    assert (by_keys.deltas["joined"].gained, by_keys.deltas["joined"].lost) == (frozenset(), frozenset())
    found = here.maintain(update, recompute=True, most_keys=0)
    assert found.recomputed == {"joined": frozenset({(1, 1)})}
    assert isinstance(found.verdicts["joined"], Undecided)


def test_what_a_view_is_made_of_is_not_lost_where_time_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A view with a LEFT JOIN is settled as two views, and followed as the one that it is."""

    def in_vain(*_: object) -> None:
        raise BudgetSpentError("reading", 1)

    (tmp_path / "views.sql").write_text(
        "create table c (id int primary key, name string not null);\n"
        "create table o (id int primary key, c int references c);\n"
        "create view v as select o.id, c.id as c, c.name from o left join c on o.c = c.id;\n",
        encoding="utf-8",
    )
    (tmp_path / "warehouse.toml").write_text(
        'program = "views.sql"\n[store]\nkind = "lake"\npath = "lake"\n[sources.s]\nkind = "files"\n'
        '[relations.c]\npath = "c.csv"\n[relations.o]\npath = "o.csv"\n[update]\neffective = true\n',
        encoding="utf-8",
    )
    (tmp_path / "c.csv").write_text("id,name\n1,ann\n2,bob\n", encoding="utf-8")
    (tmp_path / "o.csv").write_text("id,c\n1,1\n", encoding="utf-8")
    init(tmp_path / "warehouse.toml")
    (tmp_path / "o.csv").write_text("id,c\n1,1\n2,2\n", encoding="utf-8")
    (tmp_path / "u").mkdir()
    (tmp_path / "u" / "o.insert.csv").write_text("id,c\n2,2\n", encoding="utf-8")
    monkeypatch.setattr(import_module("selfmaint.api.following.opened"), "settle", in_vain)
    with load(tmp_path / "warehouse.toml", engine="duckdb") as here:
        update = Update.from_files(here, tmp_path / "u")
        with pytest.raises(NotMaintainedError, match="is undecided"):
            here.maintain(update, most_keys=0)
        found = here.maintain(update, verify=True)
        assert found.differences == ()
        assert [tuple(row.values()) for row in pa.table(found.deltas["v"].gained).to_pylist()] == [
            (2, 2, "bob")
        ]


def test_a_view_without_sources_is_refused() -> None:
    old: Database = {"r": frozenset({(1, 1, 0.5)}), "s": frozenset({(1, 1)})}
    update = Update({"s": frozenset({(2, 2)})}, effective=True)
    with pytest.raises(NotMaintainedError) as error:
        warehouse(old, old, "s", UNTOLD).maintain(update, recompute=True)
    assert {d.message for d in error.value.diagnostics} == {
        f"the view `{name}` cannot be recomputed: `r` has no source" for name in ("both", "left")
    }
    assert isinstance(error.value.verdicts["left"], Undecided)
    assert error.value.verdicts["either"]  # as rows of a union, what is inserted into a branch arrives
    assert error.value.verdicts["sums"]  # it reads nothing that changes
    with pytest.raises(InputError, match="strict mode"):
        warehouse(old, old, rules=UNTOLD).maintain(update, recompute=True, strict=True)
    with pytest.raises(NotMaintainedError):
        warehouse(old, old, rules=UNTOLD).maintain(update)
