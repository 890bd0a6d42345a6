"""Rows that settle views, from sources that are right after the update, or still right before it.

Oracle: the views' rows, computed in Python from the tables after the update.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from datalog.model import Row
from selfmaint.api.maintain import new_contents
from selfmaint.api.update import Update
from selfmaint.api.warehouse import build
from selfmaint.engine.memory import MemoryEngine
from selfmaint.errors import SourceError
from selfmaint.fallback.settle import Readable
from selfmaint.sources.memory import RowsSource
from tests.effort import effort

PROGRAM = """create table r (a int primary key, b int not null, c int not null);
create table s (f int primary key, d int not null);
create view v as select b, max(c) as m, count(*) as n from r group by b;
create view w as select r.a, r.c, s.d from r join s on s.f = r.b;"""
COLUMNS = {"r": ("a", "b", "c"), "s": ("f", "d")}
Database = dict[str, frozenset[Row]]


def views(base: Database) -> Database:
    groups: dict[object, list[int]] = {}
    for _, b, c in base["r"]:
        groups.setdefault(b, []).append(int(str(c)))
    rows = {(a, c, d) for a, b, c in base["r"] for f, d in base["s"] if f == b}
    return {"v": frozenset((b, max(its), len(its)) for b, its in groups.items()), "w": frozenset(rows)}


def changed(random: Random, rows: frozenset[Row], width: int) -> frozenset[Row]:
    """The rows without some of them, and with others of other keys, or of the same."""
    kept = {row for row in rows if random.random() < 0.7}
    there = {row[0] for row in kept}
    new = {(random.randrange(9), *(random.randrange(4) for _ in range(width - 1))) for _ in range(2)}
    return frozenset(kept | {row for row in {row[0]: row for row in new}.values() if row[0] not in there})


def nights(seed: int) -> Iterator[tuple[str, bool]]:
    """What was found wrong, and whether a source was read that was still before the update."""
    random = Random(seed)
    before: Database = {
        "r": frozenset((a, random.randrange(3), random.randrange(4)) for a in range(6)),
        "s": frozenset((f, random.randrange(4)) for f in range(3) if random.random() < 0.8),
    }
    after = {name: changed(random, rows, len(COLUMNS[name])) for name, rows in before.items()}
    given = {n: random.choice([before, after])[n] for n in COLUMNS}
    readable = {n: Readable(RowsSource("base", {n: (COLUMNS[n], given[n])})) for n in COLUMNS}
    here = build(PROGRAM, views(before), MemoryEngine(), readable=readable)
    inserted = {n: after[n] - before[n] for n in COLUMNS}
    deleted = {n: before[n] - after[n] for n in COLUMNS}
    found = here.maintain(Update(inserted, deleted, effective=True), most_keys=0)
    for name, right in views(after).items():
        new = new_contents(here, here.view(name), found.deltas[name])
        rows = frozenset(row[: len(next(iter(right), row))] for row in new)
        yield ("" if rows == right else name), bool(found.sources_before)


def test_sources_before_the_update_settle_as_those_after_it_do() -> None:
    seen = 0
    for seed in range(effort(15, 2000)):
        for wrong, was_before in nights(seed):
            assert not wrong, (seed, wrong)
            seen += was_before
    assert seen


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({(1, 1, 2), (2, 1, 1)}, "other rows with the keys of deleted ones"),
        ({(2, 1, 1), (3, 1, 0)}, "does not give the stored rows of `v`"),
        (set(), "does not give the stored rows of `v`"),
    ],
)
@pytest.mark.parametrize("verify", [False, True])
def test_a_source_of_another_time_is_refused_where_its_rows_tell(
    given: set[Row], why: str, *, verify: bool
) -> None:
    """Of group 1 one row goes, and one, (2, 1, 1), stays."""
    before: Database = {"r": frozenset({(1, 1, 3), (2, 1, 1)}), "s": frozenset()}
    source = RowsSource("base", {"r": (COLUMNS["r"], frozenset(given)), "s": (COLUMNS["s"], frozenset())})
    readable = {n: Readable(source) for n in COLUMNS}
    here = build(PROGRAM, views(before), MemoryEngine(), readable=readable)
    with pytest.raises(SourceError, match=f"SM402.*{why}"):
        here.maintain(Update({}, {"r": frozenset({(1, 1, 3)})}, effective=True), most_keys=0, verify=verify)


def test_keyed_reads_refuse_other_rows_with_deleted_keys() -> None:
    tables = "create table r (a int primary key, b int not null, c int not null);"
    program = f"{tables} create view v as select b, count(distinct c) as n from r group by b;"
    source = RowsSource("base", {"r": (COLUMNS["r"], frozenset({(1, 1, 2), (2, 1, 1)}))})
    here = build(program, {"v": frozenset({(1, 2)})}, MemoryEngine(), readable={"r": Readable(source)})
    with pytest.raises(SourceError, match=r"SM402.*other rows with the keys of deleted ones"):
        here.maintain(Update({}, {"r": frozenset({(1, 1, 3)})}, effective=True))


def test_a_table_without_a_key_whose_source_is_before_the_update_is_refused() -> None:
    """Without a key its rows do not tell, but the group's number does."""
    tables = "create table r (b int not null, c int not null);"
    program = f"{tables} create view v as select b, max(c) as m, count(*) as n from r group by b;"
    source = RowsSource("base", {"r": (("b", "c"), frozenset({(0, 2), (0, 0)}))})
    here = build(program, {"v": frozenset({(0, 2, 2)})}, MemoryEngine(), readable={"r": Readable(source)})
    with pytest.raises(SourceError, match="SM402"):
        here.maintain(Update({}, {"r": frozenset({(0, 2)})}, effective=True))


def test_a_source_with_half_an_update_is_refused() -> None:
    """Which is neither before it nor after it, and may be what a night later deletes."""
    before: Database = {"r": frozenset({(1, 1, 3), (2, 1, 3), (3, 1, 1)}), "s": frozenset()}
    given = {"r": before["r"] - {(1, 1, 3)}, "s": before["s"]}
    readable = {n: Readable(RowsSource("base", {n: (COLUMNS[n], given[n])})) for n in COLUMNS}
    here = build(PROGRAM, views(before), MemoryEngine(), readable=readable)
    gone = {"r": frozenset({(1, 1, 3), (2, 1, 3)})}
    with pytest.raises(SourceError, match="SM402"):
        here.maintain(Update({}, gone, effective=True), most_keys=0)
