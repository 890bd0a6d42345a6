"""No engine computes with texts that are compared without blanks or case: files do not say so."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import selfmaint
from selfmaint.errors import SelfmaintError

TABLE = "create table c (id bigint primary key, code char(5), v string collate utf8_lcase, x int);"
ROWS = pa.table(
    {
        "id": pa.array([1, 2], pa.int64()),
        "code": ["ab", "ab   "],
        "v": ["Ab", "ab"],
        "x": pa.array([1, 2], pa.int32()),
    }
)
VIEWS = {
    "padded": "select id from c where code = 'ab'",
    "like": "select id from c where code like 'ab'",
    "folded": "select id from c where v = 'ab'",
}


@pytest.mark.parametrize("query", VIEWS.values(), ids=VIEWS)
def test_no_change_is_told_of_them(query: str) -> None:
    stored = pa.table({"id": pa.array([7], pa.int64())})
    with selfmaint.build(f"{TABLE} create view w as {query};", {"w": stored}, engine="duckdb") as warehouse:
        update = selfmaint.Update.from_frames(warehouse, inserted={"c": ROWS}, effective=True)
        verdict = warehouse.check(update)["w"]
        assert isinstance(verdict, selfmaint.Undecided)
        with pytest.raises(SelfmaintError, match=r"SM404.*in which equal texts differ"):
            warehouse.maintain(update, recompute=True)


def test_a_lake_says_once_why_it_is_not_made(tmp_path: Path) -> None:
    """Not that Spark would do it: neither engine knows how the texts of a file are compared."""
    pq.write_table(ROWS, tmp_path / "c.parquet")
    file = tmp_path / "w.toml"
    program = f"{TABLE} create view w as {VIEWS['padded']};"
    lake = '[store]\nkind = "lake"\npath = "lake"\n[relations.c]\npath = "c.parquet"\n'
    file.write_text(f'program = "views.sql"\n{lake}', encoding="utf-8")
    (tmp_path / "views.sql").write_text(program, encoding="utf-8")
    with pytest.raises(SelfmaintError) as refused:
        selfmaint.init(file)
    assert [one.code.value for one in refused.value.diagnostics] == ["SM103"]


def test_a_view_that_does_without_them_is_followed() -> None:
    stored = pa.table({"x": pa.array([2], pa.int32()), "n": pa.array([1], pa.int64())})
    query = "select x, count(*) as n from c where x > 1 group by x"
    with selfmaint.build(f"{TABLE} create view w as {query};", {"w": stored}, engine="duckdb") as warehouse:
        update = selfmaint.Update.from_frames(warehouse, inserted={"c": ROWS.slice(0, 1)}, effective=True)
        assert warehouse.check(update)["w"]


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ("array(x, 1)", "array<int>"),
        ("named_struct('a', x)", "struct<a:int>"),
        ("interval 3 day", "interval day"),
        ("cast(v as binary)", "binary"),
    ],
)
def test_values_that_are_others_when_stored_are_not_stored_on_spark(
    spark: SparkSession, tmp_path: Path, column: str, kind: str
) -> None:
    """Views of such a view would be computed of strings that equal others only in case, or of bare numbers."""
    (tmp_path / "t.csv").write_text("id,v,x\n1,a,1\n2,A,2\n", encoding="utf-8")
    views = f"create view w as select id, {column} as n from t;"
    (tmp_path / "views.sql").write_text(f"create table t (id int primary key, v string, x int); {views}")
    file = tmp_path / "w.toml"
    store = '[store]\nkind = "lake"\npath = "lake"\n[relations.t]\npath = "t.csv"\n'
    file.write_text(f'program = "views.sql"\n{store}', encoding="utf-8")
    with pytest.raises(SelfmaintError, match=rf"SM404.*`w`.*its column `n` is of type `{kind}`"):
        selfmaint.init(file, spark=spark)
    assert not (tmp_path / "lake").exists()


def test_nor_is_what_reads_such_a_view_computed_from_its_stored_rows() -> None:
    views = "create view u as select id, v collate utf8_lcase as n from t; create view g as select distinct n from w;"
    views = (
        views.replace("create view u", "create temporary view u") + "create view w as select id, n from u;"
    )
    stored = {"w": pa.table({"id": pa.array([1], pa.int32()), "n": ["a"]}), "g": pa.table({"n": ["a"]})}
    program = f"create table t (id int primary key, v string not null, x int); {views}"
    inserted = pa.table({"id": pa.array([2], pa.int32()), "v": ["A"], "x": pa.array([1], pa.int32())})
    with selfmaint.build(program, stored, engine="duckdb") as warehouse:
        update = selfmaint.Update.from_frames(warehouse, inserted={"t": inserted}, effective=True)
        assert isinstance(warehouse.check(update)["g"], selfmaint.Undecided)
        with pytest.raises(SelfmaintError, match=r"`g` cannot be .*COLLATE by which equal texts differ"):
            warehouse.maintain(update, recompute=True)
