"""Loading, building and applying from Python: what ends up as which DataFrame, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from selfmaint import NotSelfMaintainable, SelfMaintainable, SelfmaintError, Update, build, load
from selfmaint.errors import Code, InputError
from selfmaint.sources.protocol import Source

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from selfmaint.api.warehouse import Warehouse

DECLARED = """\
.decl r(a: int, b: int).
.decl v(b: int, a: int).
v(Y, X) :- r(X, Y).
w(X, 7) :- r(X, 7).
"""
UNDECLARED = "v(Y, X) :- r(X, Y).\nw(X, 7) :- r(X, 7).\n"


def warehouse_file(folder: Path, program: str, more: str = "") -> Path:
    (folder / "views.dl").write_text(program, encoding="utf-8")
    views = '[views.v]\npath = "v.csv"\n[views.w]\npath = "w.jsonl"\n'
    path = folder / "w.toml"
    path.write_text(f'program = "views.dl"\n{views}{more}', encoding="utf-8")
    return path


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")


def rows(frame: DataFrame) -> set[tuple[object, ...]]:
    return {tuple(row) for row in frame.collect()}


def codes(error: SelfmaintError) -> list[str]:
    return [d.code.value for d in error.diagnostics]


def test_declared_columns_are_matched_by_name_and_read_as_declared(
    tmp_path: Path, spark: SparkSession
) -> None:
    write(tmp_path, v_csv="a,b\n1,7\n2,8\n", w_jsonl='{"c1": 7, "x": 1}\n')
    write(tmp_path, u__r_insert_csv="b,a\n7,3\n", u__r_delete_jsonl='{"b": 8, "a": 2}\n')
    with load(warehouse_file(tmp_path, DECLARED), spark) as warehouse:
        update = Update.from_files(warehouse, tmp_path / "u")
        assert rows(warehouse.contents["v"]) == {(7, 1), (8, 2)}
        assert rows(update.inserted["r"]) == {(3, 7)}
        assert [f.dataType.simpleString() for f in update.deleted["r"].schema.fields] == ["int", "int"]
        assert set(warehouse.check(update).values()) == {
            SelfMaintainable("v", exact=True),
            SelfMaintainable("w", exact=True),
        }
        written = warehouse.apply(warehouse.maintain(update))
    assert [(entry.name, Path(entry.path)) for entry in written] == [
        ("v", tmp_path / "v.csv"),
        ("w", tmp_path / "w.jsonl"),
    ]
    with load(warehouse_file(tmp_path, DECLARED), spark) as warehouse:
        assert rows(warehouse.contents["v"]) == {(7, 1), (7, 3)}
        assert rows(warehouse.contents["w"]) == {(1, 7), (3, 7)}
    assert (tmp_path / "v.csv").is_file()


def test_garbage_without_declared_columns_is_bad_input(tmp_path: Path, spark: SparkSession) -> None:
    from datalog.model import ANY
    from selfmaint.spark.tables import Expected, read_undeclared

    (tmp_path / "v.parquet").write_text("garbage", encoding="utf-8")
    for place in (tmp_path / "v.parquet", Path("/dev/null")):
        with pytest.raises(InputError, match="SM104"):
            read_undeclared(spark, str(place), Expected("v", ("a",), (ANY,)))


def test_undeclared_columns_are_matched_by_position(tmp_path: Path, spark: SparkSession) -> None:
    write(tmp_path, v_csv="second,first\n7,1\n8,2\n", w_jsonl='{"c1": 7, "x": 1}\n')
    write(tmp_path, u__r_insert_csv="p,q\n3,7\n")
    with load(warehouse_file(tmp_path, UNDECLARED), spark) as warehouse:
        update = Update.from_files(warehouse, tmp_path / "u")
        assert rows(warehouse.contents["v"]) == {(7, 1), (8, 2)}
        deltas = warehouse.maintain(update).deltas
        assert (rows(deltas["v"].gained), rows(deltas["w"].gained)) == ({(7, 3)}, {(3, 7)})


def test_names_that_half_fit_are_refused(tmp_path: Path, spark: SparkSession) -> None:
    write(tmp_path, v_csv="x,z\n7,1\n", w_jsonl='{"p": 7, "q": 1}\n')
    with pytest.raises(InputError) as caught:
        load(warehouse_file(tmp_path, UNDECLARED), spark)
    assert set(codes(caught.value)) == {"SM104"}
    assert {d.message.split("`")[1] for d in caught.value.diagnostics} == {"v", "w"}


def test_the_guarantee_of_the_file_can_be_overridden(tmp_path: Path, spark: SparkSession) -> None:
    write(tmp_path, v_csv="b,a\n7,1\n", w_jsonl='{"c1": 7, "x": 1}\n', u__r_insert_csv="a,b\n1,7\n")
    with load(warehouse_file(tmp_path, DECLARED, "[update]\neffective = true\n"), spark) as warehouse:
        assert not Update.from_files(warehouse, tmp_path / "u", effective=False).effective
        update = Update.from_files(warehouse, tmp_path / "u")
        assert update.effective
        with pytest.raises(InputError) as caught:
            warehouse.check(update)
    assert codes(caught.value) == [Code.CONTRADICTS.value]


def test_problems_of_an_update_come_together(tmp_path: Path, spark: SparkSession) -> None:
    warehouse = built(spark)
    with pytest.raises(InputError) as caught:
        Update.from_frames(
            warehouse,
            inserted={"r": spark.createDataFrame([(1,)], "a int"), "q": str(tmp_path)},
            deleted={"r": tmp_path / "none.parquet"},
        )
    assert sorted(set(codes(caught.value))) == ["SM102", "SM103", "SM104"]


def test_rows_that_are_no_dataframe_are_refused(spark: SparkSession) -> None:
    with pytest.raises(InputError) as caught:
        Update.from_frames(built(spark), {"r": [(1, 2)]}, {"r": None})  # type: ignore[dict-item]
    assert codes(caught.value) == ["SM104", "SM104"]
    assert caught.value.diagnostics[0].message == (
        "the rows of `r` are given as a `list`, not as a DataFrame or Arrow table"
    )
    assert caught.value.diagnostics[0].hint == (
        "`pandas.DataFrame(rows, columns=['a', 'b'])` makes one of a list of tuples"
    )
    with pytest.raises(InputError, match=r"SM104.*`v` are given as a `set`"):
        build(DECLARED, {"v": {(1, 2)}}, spark=spark)  # type: ignore[dict-item]


def built(spark: SparkSession, **sources: Source[DataFrame]) -> Warehouse[DataFrame]:
    v = spark.createDataFrame([(7, 1), (8, 2)], "b int, a int")
    w = spark.createDataFrame([(1, 7)], "x int, c1 int")
    return build(DECLARED, {"v": v, "w": w}, sources=sources, spark=spark)


def test_build_takes_dataframes(spark: SparkSession) -> None:
    with built(spark) as warehouse:
        update = Update.from_frames(
            warehouse,
            inserted={"r": spark.createDataFrame([(7, 3)], "b int, a int")},
            deleted={"r": spark.createDataFrame([(2, 8)], "a int, b int")},
        )
        found = warehouse.maintain(update)
        assert all(isinstance(v, SelfMaintainable) for v in found.verdicts.values())
        assert rows(found.deltas["v"].gained) == {(7, 3)}
        assert rows(found.deltas["v"].lost) == {(8, 2)}
        with pytest.raises(InputError) as caught:
            warehouse.apply(found)
    assert codes(caught.value) == ["SM405", "SM405"]


def test_build_refuses_what_does_not_fit(spark: SparkSession) -> None:
    v = spark.createDataFrame([("x", 1)], "b string, a int")
    with pytest.raises(InputError) as caught:
        build(DECLARED, {"v": v, "vv": v}, spark=spark)
    assert sorted(codes(caught.value)) == ["SM102", "SM104"]
    numbers = spark.createDataFrame([(7, 1)], "y int, x int")
    texts = spark.createDataFrame([("a", 7)], "x string, c1 int")
    with pytest.raises(InputError) as caught:
        build(UNDECLARED, {"v": numbers, "w": texts}, spark=spark)
    assert codes(caught.value) == ["SM104"]


def test_views_that_searches_decide(spark: SparkSession) -> None:
    frames = {
        "v": spark.createDataFrame([(1,)], "x int"),
        "w": spark.createDataFrame([(1, 1)], "x int, count bigint"),
    }
    warehouse = build("v(X) :- r(X, Y). w(X, count(*)) :- r(X, Y).", frames, spark=spark)
    update = Update.from_frames(warehouse, inserted={"r": spark.createDataFrame([(1, 2)], "p int, q int")})
    found = warehouse.check(update)
    assert isinstance(found["v"], SelfMaintainable)
    assert isinstance(found["w"], NotSelfMaintainable)  # whether (1, 2) was there is not told


def test_a_write_that_was_cut_off_is_put_right_when_loading(tmp_path: Path, spark: SparkSession) -> None:
    write(tmp_path, w_jsonl='{"c1": 7, "x": 1}\n')
    toml = warehouse_file(tmp_path, DECLARED)
    (tmp_path / "v.csv.old-0123456789ab").write_text("a,b\n1,7\n")
    (tmp_path / "v.csv").write_text("a,b\n9,9\n")
    moves = [{"path": "v.csv", "existed": True, "id": "0123456789ab"}]
    journal = tmp_path / ".selfmaint-journal-0123456789ab.json"
    journal.write_text(json.dumps({"state": "switching", "moves": moves}))
    with load(toml, spark) as warehouse:
        assert rows(warehouse.contents["v"]) == {(7, 1)}
    assert not journal.exists()


def test_nothing_is_written_over_what_another_process_wrote(tmp_path: Path, spark: SparkSession) -> None:
    write(tmp_path, v_csv="b,a\n7,1\n", w_jsonl='{"c1": 7, "x": 1}\n', u__r_delete_csv="a,b\n1,7\n")
    toml = warehouse_file(tmp_path, DECLARED)
    with load(toml, spark) as late, load(toml, spark) as early:
        computed = late.maintain(Update.from_files(late, tmp_path / "u"))
        first = Update.from_frames(early, inserted={"r": spark.createDataFrame([(5, 5)], "a int, b int")})
        assert [entry.name for entry in early.apply(early.maintain(first))] == ["v"]
        with pytest.raises(InputError) as caught:
            late.apply(computed)
    assert codes(caught.value) == ["SM405"]
    assert "v.csv" in caught.value.diagnostics[0].message
    with load(toml, spark) as warehouse:
        assert rows(warehouse.contents["v"]) == {(7, 1), (5, 5)}
