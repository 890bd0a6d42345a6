"""0.0 and -0.0 are equal, wherever they are stored: in Parquet files with Bloom filters, and as rows that are to go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from random import Random

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import selfmaint
from datalog.model import ColumnType, Predicate, TypeName
from datalog.syntax import parse_program
from selfmaint.duckdb import DuckEngine
from selfmaint.duckdb.parquet_files import parquet
from selfmaint.duckdb.writing import writing
from selfmaint.engine.protocol import Facts
from selfmaint.store.formats import Format

DOUBLE = ColumnType(TypeName.DOUBLE)
ROWS = 30_000


@pytest.mark.parametrize("asked", [0.0, -0.0])
def test_a_file_of_the_other_zero_is_not_left_out(tmp_path: Path, asked: float) -> None:
    engine, file = DuckEngine(most_few=0), tmp_path / "v.parquet"
    # By DuckDB, which writes a Bloom filter for columns of few values.
    engine.database.run("CREATE TABLE v (i BIGINT, x DOUBLE)")
    engine.database.run(
        f"INSERT INTO v SELECT i, CASE WHEN i % 3 = 0 THEN {-asked} ELSE 1.5 END FROM range({ROWS}) AS t (i)"
    )
    engine.database.run(f"UPDATE v SET x = CAST('{-asked}' AS DOUBLE) WHERE x = 0")
    engine.database.run(f"COPY v TO '{file}'")
    v, k, goal = (Predicate(name) for name in ("v", "k", "found"))
    facts = Facts(
        {v: parquet(engine.database, [file], "v"), k: engine.load([(asked,)], ["x"], [DOUBLE])},
        not_null={v: frozenset({0, 1}), k: frozenset({0})},
        small=frozenset({k}),
    )
    found = engine.evaluate(parse_program("found(I, X) :- v(I, X), k(X)."), goal, facts, ["i", "x"])
    assert engine.count(found) == ROWS // 3


PROGRAM = """
create table a (id bigint primary key, x double not null);
create table b (id bigint primary key, x double not null);
create view u as select id, x from a union all select id, x from b;
create view d as select distinct x from a;
create view c as select id, x from a;
create view g as select x, count(*) as n from a group by x;
"""
FILE = """
program = "views.sql"
[store]
kind = "{kind}"
path = "store"
[sources.f]
kind = "files"
[relations.a]
source = "f"
path = "a.parquet"
[relations.b]
source = "f"
path = "b.parquet"
[update]
effective = true
"""
Rows = Mapping[int, float]


def write(file: Path, rows: Rows) -> None:
    columns = {"id": pa.array([*rows], pa.int64()), "x": pa.array([*rows.values()], pa.float64())}
    pq.write_table(pa.table(columns), file)


def held(base: Mapping[str, Rows]) -> dict[str, Counter[tuple[float, ...]]]:
    values = Counter(base["a"].values())
    return {
        "u": Counter((i, x) for rows in base.values() for i, x in rows.items()),
        "d": Counter((x,) for x in values),
        "c": Counter(base["a"].items()),
        "g": Counter(values.items()),
    }


def made(folder: Path, kind: str, base: Mapping[str, Rows]) -> Path:
    (folder / "views.sql").write_text(PROGRAM, encoding="utf-8")
    (folder / "w.toml").write_text(FILE.format(kind=kind), encoding="utf-8")
    for name, rows in base.items():
        write(folder / f"{name}.parquet", rows)
    selfmaint.init(folder / "w.toml")
    return folder / "w.toml"


def require_followed(toml: Path, update: Path, base: Mapping[str, Rows]) -> None:
    with selfmaint.load(toml) as warehouse:
        warehouse.apply(warehouse.maintain(selfmaint.Update.from_files(warehouse, update), recompute=True))
        for view, right in held(base).items():
            rows = warehouse.query(f"select * from {view}").to_pylist()
            assert Counter(tuple(row.values()) for row in rows) == right, (update.name, view)


MIXED = {i: [-0.0, 0.0, 1.5][i % 3] for i in range(ROWS)}


def test_a_lake_holds_one_zero_which_others_find_too(tmp_path: Path) -> None:
    """A dictionary holds one of the two for both, and a Bloom filter tells them apart."""
    toml = made(tmp_path, "lake", {"a": MIXED, "b": {}})
    with selfmaint.load(toml) as warehouse:
        counts = warehouse.query(
            "select count(*) filter (where x = 0) as zeros, count(*) filter (where signbit(x)) as negative from c"
        )
        assert counts.to_pylist() == [{"zeros": ROWS // 3 * 2, "negative": 0}]
    found = 0
    with duckdb.connect() as alone:
        for file in (tmp_path / "store" / "data").rglob("*.parquet"):
            columns = {name for name, *_ in alone.execute(f"describe from '{file}'").fetchall()}
            if columns == {"id", "x"} and "/c/" in str(file):
                found += alone.execute(f"select count(*) from '{file}' where x = 0").fetchall()[0][0]
    assert found == ROWS // 3 * 2


def test_plain_files_keep_the_signs_of_zeros(tmp_path: Path) -> None:
    engine = DuckEngine()
    rows = engine.load([*MIXED.items()], ["id", "x"], [ColumnType(TypeName.BIGINT), DOUBLE])
    writing(engine.database, rows)(tmp_path / "v", Format.PARQUET, None)
    stored = pq.read_table(tmp_path / "v").to_pydict()
    assert dict(zip(stored["id"], map(repr, stored["x"]), strict=True)) == {
        i: repr(x) for i, x in MIXED.items()
    }


@pytest.mark.parametrize("kind", ["lake", "delta"])
def test_what_is_deleted_is_found_by_the_other_zero(tmp_path: Path, kind: str) -> None:
    base = {"a": dict.fromkeys(range(20), 0.0), "b": dict.fromkeys(range(20), 1.5)}
    toml, update = made(tmp_path, kind, base), tmp_path / "update"
    update.mkdir()
    del base["a"][3]
    write(update / "a.delete.parquet", {3: -0.0})
    write(tmp_path / "a.parquet", base["a"])
    require_followed(toml, update, base)


@pytest.mark.parametrize("kind", ["lake", "delta"])
def test_rows_of_either_zero_come_and_go(tmp_path: Path, kind: str) -> None:
    random, number = Random(1), 100
    base = {name: {i: random.choice([-0.0, 0.0, 0.0, 1.5]) for i in range(6)} for name in "ab"}
    toml = made(tmp_path, kind, base)
    for step in range(5):
        update = tmp_path / f"u{step}"
        update.mkdir()
        for name, rows in base.items():
            gone = {i: rows.pop(i) for i in sorted(rows) if random.random() < 0.4}
            new = {number + i: random.choice([-0.0, 0.0, 1.5]) for i in range(random.randrange(4))}
            rows.update(new)
            number += 10
            write(update / f"{name}.delete.parquet", {i: -x if x == 0 else x for i, x in gone.items()})
            write(update / f"{name}.insert.parquet", new)
            write(tmp_path / f"{name}.parquet", rows)
        require_followed(toml, update, base)
