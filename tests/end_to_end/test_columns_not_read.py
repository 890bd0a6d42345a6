"""Tables with columns whose types are not modelled: contents may have them; views that do without are followed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import selfmaint
from datalog.model import ColumnType, TypeName
from selfmaint.api.platforms.platform import platform_of
from selfmaint.duckdb import DuckEngine
from selfmaint.spark import SparkEngine

TABLE = (
    "create table t (id int primary key, payload binary, code char(2), v int not null, tags array<string>);"
)
VIEWS = """create view a as select id, v from t where v > 1;
    create view g as select v, count(*) as n from t group by v;
    create view w as select id, v, row_number() over (partition by v order by id) as r from t;"""
A = pa.table({"id": pa.array([1, 2], pa.int32()), "v": pa.array([2, 2], pa.int32())})
STORED = {
    "a": A,
    "g": pa.table({"v": pa.array([2], pa.int32()), "n": pa.array([2], pa.int64())}),
    "w": A.append_column("r", pa.array([1, 2], pa.int32())),
}


def rows(ids: list[int], v: list[int], tags: list[Any]) -> pa.Table:
    return pa.table(
        {
            "tags": pa.array(tags, pa.list_(pa.string())),
            "id": pa.array(ids, pa.int32()),
            "code": [f"{one} " for one in ids],
            "v": pa.array(v, pa.int32()),
            "payload": pa.array([b"x"] * len(ids), pa.binary()),
        }
    )


def all_rows(warehouse: Any, names: str) -> dict[str, list[tuple[Any, ...]]]:
    found = {name: pa.table(warehouse.read(name)).to_pylist() for name in names}
    return {name: sorted(tuple(row.values()) for row in its) for name, its in found.items()}


AFTER = {"a": [(1, 2), (3, 5)], "g": [(2, 1), (5, 1)], "w": [(1, 2, 1), (3, 5, 1)]}


def changes(warehouse: Any, update: Any) -> dict[str, tuple[set[Any], set[Any]]]:
    sample = warehouse.engine.sample
    deltas = warehouse.maintain(update).deltas
    return {name: ({*sample(its.gained, 9)}, {*sample(its.lost, 9)}) for name, its in deltas.items()}


def follow(given: Mapping[str, Any]) -> None:
    """One row has another list alone, one is new, and one is gone."""
    with selfmaint.build(TABLE + VIEWS, STORED, **given) as warehouse:
        new, old = rows([1, 3], [2, 5], [["x", "y"], None]), rows([1, 2], [2, 2], [["x"], None])
        update = selfmaint.Update.from_frames(
            warehouse, inserted={"t": new}, deleted={"t": old}, effective=True
        )
        assert all(warehouse.check(update).values())
        assert changes(warehouse, update) == {
            "a": ({(3, 5)}, {(2, 2)}),
            "g": ({(2, 1), (5, 1)}, {(2, 2)}),
            "w": ({(3, 5, 1)}, {(2, 2, 2)}),
        }


def test_frames_may_have_them() -> None:
    follow({"engine": "duckdb"})


def test_frames_may_have_them_on_spark(spark: SparkSession) -> None:
    follow({"engine": "spark", "spark": spark})


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl"])
@pytest.mark.parametrize("kept", [True, False])
def test_files_may_have_them_or_not(tmp_path: Path, suffix: str, kept: bool) -> None:
    in_a_lake(tmp_path, suffix, kept, {"engine": "duckdb"})


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl"])
def test_files_may_have_them_on_spark(spark: SparkSession, tmp_path: Path, suffix: str) -> None:
    in_a_lake(tmp_path, suffix, True, {"engine": "spark", "spark": spark})


def in_a_lake(tmp_path: Path, suffix: str, kept: bool, given: Mapping[str, Any]) -> None:
    """A lake is made of the table's file, and follows files of its changes."""
    columns = None if kept else ["id", "v"]
    (tmp_path / "u").mkdir()
    written(tmp_path / f"t.{suffix}", rows([1, 2], [2, 2], [["x"], None]), columns)
    written(tmp_path / "u" / f"t.delete.{suffix}", rows([1, 2], [2, 2], [["x"], None]), columns)
    written(tmp_path / "u" / f"t.insert.{suffix}", rows([1, 3], [2, 5], [["y"], None]), columns)
    (tmp_path / "views.sql").write_text(TABLE + VIEWS, encoding="utf-8")
    file = tmp_path / "w.toml"
    store = f'[store]\nkind = "lake"\npath = "lake"\n[relations.t]\npath = "t.{suffix}"\n'
    file.write_text(f'program = "views.sql"\n{store}', encoding="utf-8")
    selfmaint.init(file, **given)
    with selfmaint.load(file, **given) as warehouse:
        if not kept:  # the same row is deleted and inserted, and nothing says that something of it changed
            assert all_rows(warehouse, "a") == {"a": [(1, 2), (2, 2)]}
        update = selfmaint.Update.from_files(warehouse, tmp_path / "u", effective=True)
        warehouse.apply(warehouse.maintain(update))
        assert all_rows(warehouse, "agw") == AFTER


def written(path: Path, table: pa.Table, columns: list[str] | None) -> None:
    table = table if columns is None else table.select(columns)
    if path.suffix == ".parquet":
        pq.write_table(table, path)
        return
    records = [
        {name: one.decode() if isinstance(one, bytes) else one for name, one in row.items()}
        for row in table.to_pylist()
    ]
    if path.suffix == ".jsonl":
        path.write_text("".join(f"{json.dumps(row)}\n" for row in records), encoding="utf-8")
        return
    lines = [",".join(table.column_names)]
    lines += [",".join("" if one is None else f'"{one}"' for one in row.values()) for row in records]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_rows_of_a_table_without_a_key_count_each() -> None:
    """Two rows that differ in what is not read alone are two."""
    view = "create view g as select v, count(*) as n from t group by v;"
    stored = {"g": pa.table({"v": pa.array([1], pa.int32()), "n": pa.array([2], pa.int64())})}
    with selfmaint.build(
        f"create table t (k binary primary key, v int); {view}", stored, engine="duckdb"
    ) as warehouse:
        twice = pa.table({"k": [b"a", b"b"], "v": pa.array([1, 1], pa.int32())})
        once = pa.table({"k": [b"c"], "v": pa.array([1], pa.int32())})
        update = selfmaint.Update.from_frames(
            warehouse, inserted={"t": twice}, deleted={"t": once}, effective=True
        )
        assert warehouse.check(update)["g"]
        assert changes(warehouse, update) == {"g": ({(1, 3)}, {(1, 2)})}


def test_other_columns_are_refused_as_before() -> None:
    with selfmaint.build(TABLE + VIEWS, STORED, engine="duckdb") as warehouse:
        frame = rows([3], [5], [None]).append_column("w", pa.array([1], pa.int32()))
        with pytest.raises(selfmaint.InputError, match=r"SM104.*`w` not expected"):
            selfmaint.Update.from_frames(warehouse, inserted={"t": frame})


@pytest.mark.parametrize("key", ["primary key", ""])
def test_an_update_that_may_say_nothing_new_is_refused_where_that_matters(key: str) -> None:
    """The row that is there may have another list than the one that is deleted, and stay; a row may be there twice."""
    table = TABLE.replace("primary key", key)
    with selfmaint.build(
        f"{table} create view a as select id, v from t;", {"a": A}, engine="duckdb"
    ) as warehouse:
        old, new = rows([1], [2], [["x"]]), rows([3], [2], [["y"]])

        def update(inserted: pa.Table, deleted: pa.Table) -> Any:
            frames = {"inserted": {"t": inserted}, "deleted": {"t": deleted}}
            return selfmaint.Update.from_frames(warehouse, **frames, effective=False)

        for inserted, deleted in [(new, old), (new.slice(0, 0), old)] + (
            [] if key else [(new, old.slice(0, 0))]
        ):
            with pytest.raises(
                selfmaint.InputError, match=r"SM302.*`t` is not said to be effective, and `code`"
            ):
                update(inserted, deleted)
        assert warehouse.check(update(new.slice(0, 0), old.slice(0, 0)))["a"]
        if key:
            assert changes(warehouse, update(new, old.slice(0, 0))) == {"a": ({(3, 2)}, set())}


def test_frames_that_differ_in_them_alone_are_two_updates(tmp_path: Path) -> None:
    (tmp_path / "views.sql").write_text(
        "create table t (v int, tags array<string>); create view g as select v, count(*) as n from t group by v;"
    )
    file = tmp_path / "w.toml"
    file.write_text(
        'program = "views.sql"\n[store]\nkind = "lake"\npath = "lake"\n[relations.t]\npath = "t.csv"\n'
    )
    (tmp_path / "t.csv").write_text("v\n1\n")
    selfmaint.init(file)
    with selfmaint.load(file) as warehouse:
        for number, tag in enumerate("xy"):
            new = pa.table({"v": pa.array([1], pa.int32()), "tags": [[tag]]})
            update = selfmaint.Update.from_frames(warehouse, inserted={"t": new}, effective=True)
            warehouse.apply(warehouse.maintain(update))
            assert all_rows(warehouse, "g") == {"g": [(1, number + 2)]}


def test_pairs_of_equal_rows_are_told_from_other_pairs() -> None:
    of_pairs(DuckEngine())


def test_pairs_of_equal_rows_are_told_from_other_pairs_on_spark(spark: SparkSession) -> None:
    of_pairs(SparkEngine(spark))


def of_pairs(engine: Any) -> None:
    """What tells updates from one another: else the second would be taken for the first, and left out."""
    platform, text = platform_of(engine), ColumnType(TypeName.STRING)
    pairs = [engine.bags.together([engine.load([(value,)], ["x"], [text])] * 2) for value in "ab"]
    assert len({platform.digest(pair) for pair in pairs}) == 2
    assert platform.digest(pairs[0])[0] == 2
