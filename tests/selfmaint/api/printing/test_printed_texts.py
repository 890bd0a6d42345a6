"""What `selfmaint sql` prints for views of which the text is kept, run on DuckDB: by their own rows, and over others.

Oracles: the view's own text over all rows after the update; for the groups that are not settled, `check`.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import duckdb
import pyarrow as pa
import pytest
import sqlglot

import selfmaint
from selfmaint.api.file.programs import catalog_of
from selfmaint.api.following.shown_rows import UNSURE
from selfmaint.api.printing.over_statements import ITSELF
from selfmaint.api.printing.printed import StatementKind, Statements
from selfmaint.api.printing.statements import printed
from selfmaint.decide.decision import Decision
from selfmaint.decide.verdict import VerdictKind
from selfmaint.warehouse.situation import Situation
from tests.effort import effort

TABLES = """create table r (id int not null primary key, g int, d int not null, t string);
create table s (id int not null primary key, g int, n int not null);
"""
COLUMNS = {"r": ("id", "g", "d", "t"), "s": ("id", "g", "n")}
OF_OWN_ROWS = {
    "running": "select id, g, d, sum(d) over (partition by g order by d, id) as so_far from r",
    "places": "select upper(t) as u, id, d, g, rank() over (order by d) as place from r where d > 0",
    "last two": """select id, d, g, t from
        (select *, row_number() over (partition by g order by d desc, id) as n from r) where n <= 2""",
    "first ranks": """select id, d, g from (select *, dense_rank() over (partition by g order by d) as n from r
        where id > 0) where n < 3""",
    "three": "select d, id from r order by d desc, id limit 3",
    "named like ours": "select id, d as is_there, g, count(*) over (partition by g) as copies from r",
    "all columns": """select * from (select *, row_number() over (partition by g order by d, id) as n from r)
        where n < 3""",
}
OVER = {
    "words": "select g, array_join(sort_array(collect_set(t)), ',') as ts from r group by g -- of all",
    "ranks": "select id, g, rank() over (order by g, d) as place from r",
    "first of groups": "select g, n from sums order by n desc, g limit 2",
    "joined": """with few as (select * from sums where n < 9) select x.id, x.t, f.n,
        lag(x.t) over (order by x.id) as before from r x left join few f on f.g = x.g""",
    "counted": "select n, count(*) as k from sums group by n having count(*) > 1",
    "kinds": "select g, count(distinct t) as k from r group by g",
    "all columns": "select * from (select *, row_number() over (order by n, g) as k from sums) where k < 3",
}
BELOW = {"rows_of_r": "select * from r", "sums": "select g, sum(n) as n from s group by g"}
Rows = frozenset[tuple[Any, ...]]


def draw_rows(draw: random.Random, name: str) -> dict[int, tuple[Any, ...]]:
    groups = (None, 1, 2, 3)
    found = {}
    for i in draw.sample(range(12), draw.randint(2, 8)):
        row = (i, draw.choice(groups), draw.randrange(4))
        found[i] = (*row, draw.choice((None, "a", "b"))) if name == "r" else row
    return found


def nights(draw: random.Random) -> tuple[dict[str, Rows], dict[str, Rows]]:
    old = {name: draw_rows(draw, name) for name in COLUMNS}
    new = {}
    for name, rows in old.items():
        kept = {i: row for i, row in rows.items() if draw.random() < 0.75}
        more = {i: row for i, row in draw_rows(draw, name).items() if draw.random() < 0.4}
        new[name] = {**more, **kept}
    before, after = ({name: frozenset(rows.values()) for name, rows in one.items()} for one in (old, new))
    return before, after


def fill(
    connection: duckdb.DuckDBPyConnection, table: str, name: str, rows: Iterable[tuple[Any, ...]]
) -> None:
    kinds = ", ".join(f"{c} {'VARCHAR' if c == 't' else 'INT'}" for c in COLUMNS[name])
    connection.execute(f"CREATE OR REPLACE TABLE {table} ({kinds})")
    if rows := list(rows):
        connection.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(COLUMNS[name]))})", rows)


def in_duckdb(text: str) -> str:
    (made,) = sqlglot.transpile(text, read="spark", write="duckdb")
    return made


def rows_of(connection: duckdb.DuckDBPyConnection, query: str) -> Counter[tuple[Any, ...]]:
    return Counter(connection.execute(in_duckdb(query)).fetchall())


def script(query: str, others: Mapping[str, str], situation: Situation) -> Statements:
    text = "".join(f"create view {name} as {one}\n;" for name, one in {**others, "v": query}.items())
    return printed(Decision(catalog_of(TABLES + text)), "v", situation, {})


def changes(old: Mapping[str, Rows], new: Mapping[str, Rows]) -> Situation:
    inserted = frozenset(name for name in COLUMNS if new[name] - old[name])
    deleted = frozenset(name for name in COLUMNS if old[name] - new[name])
    return Situation(inserted=inserted, deleted=deleted, effective=True)


def verdict(query: str, stored: pa.Table, old: Mapping[str, Rows], new: Mapping[str, Rows]) -> VerdictKind:
    warehouse = selfmaint.build(f"{TABLES}create view v as {query};", {"v": stored}, engine="duckdb")

    def frames(one: Mapping[str, Rows], other: Mapping[str, Rows]) -> dict[str, pa.Table]:
        found = {}
        for name, rows in one.items():
            kinds = pa.schema([(c, pa.string() if c == "t" else pa.int32()) for c in COLUMNS[name]])
            gone = [dict(zip(COLUMNS[name], row, strict=True)) for row in rows - other[name]]
            if gone:
                found[name] = pa.Table.from_pylist(gone, kinds)
        return found

    update = selfmaint.Update.from_frames(warehouse, frames(new, old), frames(old, new), effective=True)
    return warehouse.check(update)["v"].kind


@pytest.mark.random
@pytest.mark.parametrize("name", OF_OWN_ROWS)
def test_own_rows(name: str) -> None:
    """Where no test has rows, the view's new rows are there; and where one has, `check` does not say yes."""
    draw, query, followed, unsettled, changed = random.Random(name), OF_OWN_ROWS[name], 0, 0, 0
    for _ in range(effort(8, 200)):
        old, new = nights(draw)
        situation = changes(old, new)
        if not {"r"} & (situation.inserted | situation.deleted):
            continue
        with duckdb.connect() as connection:
            fill(connection, "r", "r", old["r"])
            connection.execute(f"CREATE TABLE v AS {in_duckdb(query)}")
            stored = connection.sql("SELECT * FROM v").to_arrow_table()
            connection.execute("DROP TABLE r")
            fill(connection, "r_inserted", "r", new["r"] - old["r"])
            fill(connection, "r_deleted", "r", old["r"] - new["r"])
            is_unsettled = False
            for one in script(query, {}, situation):
                rows = connection.execute(in_duckdb(one.sql)).fetchall()
                is_unsettled |= one.kind is StatementKind.TEST and bool(rows)
            left = Counter(connection.execute("SELECT * FROM v").fetchall())
            fill(connection, "r", "r", new["r"])
            expected = rows_of(connection, query)
        assert (verdict(query, stored, old, new) is VerdictKind.YES) != is_unsettled
        if not is_unsettled:
            assert left == expected, (name, old, new)
            changed += expected != Counter(map(tuple, zip(*stored.to_pydict().values(), strict=True)))
        followed += not is_unsettled
        unsettled += is_unsettled
    assert followed > 2
    assert changed > 1
    assert bool(unsettled) == (name not in ("running", "places", "named like ours"))


@pytest.mark.random
@pytest.mark.parametrize("name", OVER)
def test_over_others(name: str) -> None:
    """Computed anew, when the views below are as the update leaves them, without a base table."""
    draw, query, changed = random.Random(name), OVER[name], 0
    for _ in range(effort(6, 100)):
        old, new = nights(draw)
        with duckdb.connect() as connection:
            found = []
            for state in (old, new):
                for table, rows in state.items():
                    fill(connection, table, table, rows)
                for below, text in BELOW.items():
                    connection.execute(f"CREATE OR REPLACE TABLE {below} AS {in_duckdb(text)}")
                found.append(connection.execute(in_duckdb(query)).fetchall())
                connection.execute(f"CREATE TABLE IF NOT EXISTS v AS {in_duckdb(query)}")
            for table in COLUMNS:
                connection.execute(f"DROP TABLE {table}")
            for one in script(query, BELOW, changes(old, new)):
                assert one.kind is StatementKind.ANEW
                assert one.sql.startswith("INSERT OVERWRITE TABLE `v`")
                connection.execute("DELETE FROM v")
                connection.execute(in_duckdb(one.sql.replace("OVERWRITE TABLE", "INTO", 1)))
            assert Counter(connection.execute("SELECT * FROM v").fetchall()) == Counter(found[1])
        changed += Counter(found[0]) != Counter(found[1])
    assert changed > 1


def test_what_is_not_printed_says_why() -> None:
    unsure = script(OF_OWN_ROWS["running"], {}, Situation.any_update(["r"], effective=False))
    assert (tuple(unsure), unsure.undecided) == ((), UNSURE)
    idle = script(OF_OWN_ROWS["running"], {}, Situation.any_update(["s"], effective=True))
    assert (tuple(idle), idle.unchanging) == ((), "these changes do not change `v`")
    idle = script(OVER["words"], BELOW, Situation.any_update(["s"], effective=True))
    assert (tuple(idle), idle.unchanging) == ((), "these changes do not change `v`")


@pytest.mark.parametrize(
    ("query", "is_told"),
    [
        ("select r.id, r.g, r.d, r.t, s.id as sid, s.n from r left join s on s.g = r.g", True),
        ("select r.*, (select max(n) from s where s.g = r.g) as m from r", False),
        ("select r.*, count(*) over (partition by s.n) as k from r left join s on s.id = r.d", False),
    ],
)
def test_a_view_is_not_replaced_from_its_own_rows(query: str, is_told: bool) -> None:
    found = script(query, {"ss": "select * from s"}, Situation.any_update(["r"], effective=True))
    kinds = {one.kind for one in found}
    assert StatementKind.ANEW not in kinds
    assert (StatementKind.CHANGES in kinds) or not is_told
    assert found.undecided != ITSELF or not found


def test_statements_of_own_rows_read_the_groups_that_are_touched() -> None:
    test, made, delete, insert = script(
        OF_OWN_ROWS["last two"], {}, Situation.any_update(["r"], effective=True)
    )
    assert test.kind is StatementKind.TEST
    assert [one.kind for one in (made, delete, insert)] == [
        StatementKind.CHANGES,
        StatementKind.DELETE,
        StatementKind.INSERT,
    ]
    assert made.reads == ("r_deleted", "r_inserted", "v")
    assert "`touched`.`g1` IS NOT DISTINCT FROM `it`.`g`" in made.sql
