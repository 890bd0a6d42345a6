"""Views, updates and sources that are Delta tables: their last version, and never a file of a former one.

Oracle: what was written and deleted, by hand.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from selfmaint import SelfmaintError, Update, load
from tests.command_line import snapshot

WAREHOUSE = """\
program_text = "v(X, Y) :- r(X, Y), s(Y)."
engine.kind = "{}"
[views.v]
path = "a lake/v"
[sources.lake]
kind = "files"
[relations]
s = {{ source = "lake", path = "a lake/s" }}
"""


def write(path: Path, rows: dict[str, Any], gone: str | None = None, **more: Any) -> None:
    """A table of some rows, after one that overwrites others and a deletion."""
    from deltalake import DeltaTable, write_deltalake

    write_deltalake(str(path), pa.table({name: [8, 9] for name in rows}), **more)
    write_deltalake(str(path), pa.table(rows), mode="overwrite", **more)
    if gone is not None:
        DeltaTable(str(path)).delete(gone)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lake = tmp_path / "a lake"
    lake.mkdir()
    write(lake / "v", {"x": [1, 2, 3], "y": [1, 1, 3]}, "x = 3")
    write(lake / "s", {"y": [1, 2, 8]}, "y = 8")
    write(tmp_path / "u" / "r.insert.parquet", {"x": [4, 5, 6], "y": [2, 8, 1]}, "x = 6")
    return tmp_path


@pytest.mark.parametrize("kind", ["duckdb", "spark"])
def test_the_last_version_is_read(kind: str, folder: Path, request: pytest.FixtureRequest) -> None:
    if kind == "spark":
        request.getfixturevalue("spark")
    (folder / "w.toml").write_text(WAREHOUSE.format(kind), encoding="utf-8")
    before = snapshot(folder)
    with load(folder / "w.toml") as warehouse:
        engine = warehouse.engine
        assert set(engine.sample(warehouse.contents["v"], 9)) == {(1, 1), (2, 1)}
        update = Update.from_files(warehouse, folder / "u")
        assert set(engine.sample(update.inserted["r"], 9)) == {(4, 2), (5, 8)}
        maintained = warehouse.maintain(update)
        assert set(engine.sample(maintained.deltas["v"].gained, 9)) == {(4, 2)}
        assert [read.rows_read for read in maintained.reads] == [1]
        with pytest.raises(SelfmaintError, match="SM405"):
            warehouse.apply(maintained)
    assert snapshot(folder) == before


def refused(folder: Path) -> tuple[str, str]:
    (folder / "w.toml").write_text(WAREHOUSE.format("duckdb"), encoding="utf-8")
    with pytest.raises(SelfmaintError) as caught, load(folder / "w.toml"):
        pass
    (found,) = caught.value.diagnostics
    return found.code.value, found.message


def test_tables_whose_rows_are_not_those_of_their_files(folder: Path) -> None:
    from deltalake import write_deltalake

    log = folder / "a lake" / "v" / "_delta_log"
    needs = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors"]}
    protocol = {"protocol": {**needs, "writerFeatures": ["deletionVectors"]}}
    (log / f"{3:020d}.json").write_text(json.dumps(protocol) + "\n", encoding="utf-8")
    assert refused(folder)[0] == "SM502"
    (log / f"{3:020d}.json").write_text("{", encoding="utf-8")
    code, message = refused(folder)
    assert (code, "cannot be read" in message) == ("SM104", True)
    for file in (*log.iterdir(), log):
        file.rmdir() if file.is_dir() else file.unlink()
    rows = pa.table({"x": [1], "y": [1]})
    write_deltalake(str(folder / "a lake" / "v"), rows, partition_by=["y"], mode="overwrite")
    assert refused(folder)[0] == "SM502"


def test_tables_without_rows_or_without_the_package(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from deltalake import DeltaTable

    DeltaTable(str(folder / "a lake" / "v")).delete()
    (folder / "w.toml").write_text(WAREHOUSE.format("duckdb"), encoding="utf-8")
    with load(folder / "w.toml") as warehouse:
        contents = warehouse.contents["v"]
        assert (warehouse.engine.columns(contents), warehouse.engine.count(contents)) == (("x", "y"), 0)
    monkeypatch.setitem(sys.modules, "deltalake", None)
    assert refused(folder)[0] == "SM607"
