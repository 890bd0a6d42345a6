"""Tables without a key whose sources are right after an update, or still right before it, which little tells.

Oracle: plain DuckDB over all base rows.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import selfmaint
from tests.effort import effort
from tests.plain_duckdb import plain_duckdb

Row = tuple[Any, ...]
TABLES = """create table ev (room int, tag string);
create table log (room int, day int);
create table room (id int primary key, kind string);
"""
SCHEMAS = {
    "ev": {"room": pa.int32(), "tag": pa.string()},
    "log": {"room": pa.int32(), "day": pa.int32()},
    "room": {"id": pa.int32(), "kind": pa.string()},
}
QUERIES = [
    "select r.kind, e.tag from room r full join ev e on e.room = r.id",
    "select n.n + 0 as n, e.tag from (select unnest(range(1, 4)) as n) n left join ev e on e.room = n.n",
    "select r.kind, e.tag from room r left join ev e on e.room = r.id",
    "select r.kind from room r where not exists (select 1 from ev e where e.room = r.id)",
    "select r.id, (select count(*) from ev e where e.room = r.id) as n from room r",
    "select e.tag, rank() over (partition by e.room order by e.tag nulls first) as k from ev e",
    "select room, max(tag) as m from ev group by room",
    "select room, count(distinct tag) as m from ev group by room",
    "select distinct room, upper(tag) as t from ev",
    "select room, tag from ev",
    "select room, min(tag) as m, max(tag) as x from ev group by room",
    "select room, min(tag) as m, count(*) as x from ev group by room having count(*) > 1",
    "select l.room, max(e.tag) as m, min(l.day) as d from log l join ev e on e.room = l.room group by l.room",
    "select l.room, max(l.day) as m, count(distinct r.kind) as k from log l join room r on r.id = l.room group by 1",
    "select r.id, r.kind, l.day from room r join log l on l.room = r.id where l.day > 0",
    "select tag, count(distinct kind) as n from ev join room r on r.id = ev.room group by tag",
]


def table(name: str, rows: Counter[Row]) -> pa.Table:
    ordered = sorted(rows.elements(), key=repr)
    schema = SCHEMAS[name]
    return pa.table(
        {c: pa.array([r[i] for r in ordered], kind) for i, (c, kind) in enumerate(schema.items())}
    )


def rows_of(found: pa.Table) -> Counter[Row]:
    return Counter(tuple(row.values()) for row in found.to_pylist())


def in_spark(query: str) -> str:
    return query.replace("unnest(range(1, 4))", "explode(sequence(1, 3))")


def write(folder: Path, state: dict[str, Counter[Row]], names: list[str]) -> None:
    for name in names:
        pq.write_table(table(name, state[name]), folder / f"{name}.parquet")


def state_of(random: Random) -> dict[str, Counter[Row]]:
    return {
        "ev": Counter(
            (random.randint(1, 3), random.choice(["x", "y", "z", None])) for _ in range(random.randint(2, 7))
        ),
        "log": Counter((random.randint(1, 3), random.randint(0, 2)) for _ in range(random.randint(1, 5))),
        "room": Counter((i, random.choice("ab")) for i in range(1, 4) if random.random() < 0.8),
    }


def after_of(random: Random, before: dict[str, Counter[Row]]) -> dict[str, Counter[Row]]:
    after = dict(before)
    for name in ("ev", "log"):
        rows = sorted(before[name].elements(), key=repr)
        if name == "ev" or random.random() < 0.5:
            gone = Counter(random.sample(rows, min(len(rows), random.randint(1, 2))))
            new = state_of(random)[name] if random.random() < 0.3 else Counter[Row]()
            after[name] = before[name] - gone + Counter(dict([*new.items()][:1]))
    return after


def night(folder: Path, seed: int, *, late: list[str], queries: list[str], after_update: bool = False) -> str:
    """Follows an update while some sources have not got it; what is stored then is right, or the update refused."""
    random = Random(seed)
    before = state_of(random)
    after = after_of(random, before)
    return followed(folder, before, after, late=late, queries=queries, after_update=after_update)


def followed(
    folder: Path,
    before: dict[str, Counter[Row]],
    after: dict[str, Counter[Row]],
    *,
    late: list[str],
    queries: list[str],
    after_update: bool = False,
    not_there: pa.Table | None = None,
) -> str:
    """The same of any states; `not_there` is deleted besides, by an update that is not effective."""
    views = "".join(f"create view v{i} as {in_spark(q)};\n" for i, q in enumerate(queries))
    (folder / "views.sql").write_text(TABLES + views)
    said = "after_update = true\n" if after_update else ""
    bases = "".join(f'[relations.{name}]\npath = "{name}.parquet"\n{said}' for name in SCHEMAS)
    file = folder / "w.toml"
    effective = str(not_there is None).lower()
    file.write_text(
        f'program = "views.sql"\n[store]\nkind = "lake"\npath = "lake"\n{bases}[update]\neffective = {effective}\n'
    )
    write(folder, before, [*SCHEMAS])
    selfmaint.init(file, engine="duckdb")
    write(folder, after, [name for name in SCHEMAS if name not in late])
    with selfmaint.load(file, engine="duckdb") as warehouse:
        update = selfmaint.Update.from_frames(
            warehouse,
            {name: table(name, after[name] - before[name]) for name in SCHEMAS},
            {name: table(name, before[name] - after[name]) for name in SCHEMAS}
            if not_there is None
            else {"ev": pa.concat_tables([table("ev", before["ev"] - after["ev"]), not_there])},
        )
        try:
            found = warehouse.maintain(update, recompute=True)
        except selfmaint.SourceError as error:
            return "refused" if "SM402" in str(error) else str(error)
        warehouse.apply(found)
        got = {f"v{i}": rows_of(pa.table(warehouse.read(f"v{i}"))) for i in range(len(queries))}
    with plain_duckdb() as connection:
        for name in SCHEMAS:
            connection.register(name, table(name, after[name]))
        for i, query in enumerate(queries):
            right = rows_of(connection.sql(query).to_arrow_table())
            assert got[f"v{i}"] == right, (late, query, before, after)
    return "read" if found.reads else "decided"


@pytest.mark.parametrize("seed", range(effort(16, 400)))
def test_no_view_is_wrong_whatever_state_sources_are_in(tmp_path: Path, seed: int) -> None:
    random = Random(-seed)
    queries = random.sample(QUERIES, random.randint(1, 3))
    late = random.choice([["ev"], ["log"], ["ev", "log"]])
    night(tmp_path, seed, late=late, queries=queries)


@pytest.mark.parametrize("seed", range(effort(10, 200)))
def test_sources_after_the_update_are_never_refused_where_a_view_counts_or_the_file_says_so(
    tmp_path: Path, seed: int
) -> None:
    random = Random(-seed)
    query = random.choice([q for q in QUERIES if "log" not in q])
    if seed % 2:
        counts = ("count(*) as n, count(distinct tag) as k", "count(*) as n", "count(*) as n, sum(room) as s")
        counting = f"select room, {counts[seed // 2 % 3]} from ev group by room"
        assert night(tmp_path, seed, late=[], queries=[query, counting]) != "refused"
    else:
        assert night(tmp_path, seed, late=[], queries=[query], after_update=True) != "refused"


@pytest.mark.parametrize("late", [["ev"], []])
def test_what_nothing_tells_is_refused_unless_both_states_give_the_same(
    tmp_path: Path, late: list[str]
) -> None:
    """A twin that stays, or a source that has not got the deletion yet."""
    seen = {
        night(tmp_path / str(seed), seed, late=late, queries=[QUERIES[7]]) for seed in _folders(tmp_path, 12)
    }
    assert seen >= {"refused", "read"}


def _folders(root: Path, number: int) -> range:
    for seed in range(number):
        (root / str(seed)).mkdir()
    return range(number)


@pytest.mark.parametrize(
    ("queries", "late", "expected"),
    [
        ([QUERIES[7]], [], "refused"),
        ([QUERIES[7], "select room, count(*) as n from ev group by room"], [], "read"),
        ([QUERIES[7], "select room, count(*) as n from ev group by room"], ["ev"], "read"),
    ],
)
def test_a_night_that_removes_what_stands_twice(
    tmp_path: Path, queries: list[str], late: list[str], expected: str
) -> None:
    """Views that are decided without a read tell by their groups' numbers, if they count."""
    before = {"ev": Counter({(1, "x"): 2, (1, "y"): 1}), "log": Counter[Row](), "room": Counter[Row]()}
    after = {**before, "ev": Counter({(1, "x"): 1, (1, "y"): 1})}
    assert followed(tmp_path, before, after, late=late, queries=queries) == expected


STATES: dict[str, Counter[Row]] = {"log": Counter(), "room": Counter({(1, "a"): 1})}


@pytest.mark.parametrize(
    "query",
    [
        "select r.kind, max(e.tag) as n from room r join ev e on e.room = r.id group by r.kind having count(*) > 1",
        "select r.kind from room r where (select count(*) from ev e where e.room = r.id) > 1",
    ],
)
def test_deleted_rows_that_no_view_reads_tell_as_well(tmp_path: Path, query: str) -> None:
    """The row that comes has a twin, and the one that goes is of no room: only looking for it shows it there."""
    before = {**STATES, "ev": Counter({(1, "x"): 1, (9, "y"): 1})}
    after = {**STATES, "ev": Counter({(1, "x"): 2})}
    (tmp_path / "late").mkdir()
    assert followed(tmp_path / "late", before, after, late=["ev"], queries=[query]) == "refused"
    assert followed(tmp_path, before, after, late=[], queries=[query]) == "read"


def test_a_deleted_row_that_was_never_there_tells_nothing(tmp_path: Path) -> None:
    before = {**STATES, "ev": Counter({(1, "x"): 1, (1, "z"): 1})}
    after = {**STATES, "ev": Counter({(1, "x"): 1})}
    never = table("ev", Counter({(1, "q"): 1}))
    queries = [QUERIES[6], QUERIES[7]]
    assert followed(tmp_path, before, after, late=["ev"], queries=queries, not_there=never) == "refused"


def test_a_state_in_which_nothing_can_be_computed_is_not_that_of_the_sources_or_is_said(
    tmp_path: Path,
) -> None:
    query = (
        "select r.id, 10 / (2 - count(e.tag)) as t from room r left join ev e on e.room = r.id group by r.id"
    )
    before = {**STATES, "ev": Counter({(2, "2"): 2})}
    after = {**STATES, "ev": Counter({(2, "2"): 1, (1, "1"): 1})}
    assert followed(tmp_path, before, after, late=[], queries=[query]) == "refused"


def test_a_source_that_is_a_night_further_is_refused(tmp_path: Path) -> None:
    """Without a key stored rows alone tell that."""
    query = (
        "select 'a' as side, kind as what, room as n from room r join ev e on e.room = r.id "
        "union all select 'b', tag, room from ev"
    )
    before = {**STATES, "ev": Counter({(1, "x"): 1, (1, "y"): 1})}
    after = {**STATES, "ev": Counter({(1, "y"): 1})}
    file = tmp_path / "w.toml"
    assert followed(tmp_path, before, after, late=[], queries=[query], after_update=True) != "refused"
    write(tmp_path, {**after, "ev": Counter({(1, "y"): 1, (1, "w"): 1})}, ["ev"])
    assert selfmaint.undo(file)
    with selfmaint.load(file, engine="duckdb") as warehouse:
        gone = table("ev", Counter({(1, "x"): 1}))
        with pytest.raises(selfmaint.SourceError, match="does not give the stored rows"):
            warehouse.maintain(selfmaint.Update.from_frames(warehouse, {}, {"ev": gone}))
