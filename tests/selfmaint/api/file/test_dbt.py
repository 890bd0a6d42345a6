"""dbt projects as they are: which columns their sources have, which models are stored, and what their macros write."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import selfmaint
from datalog.diagnostics import ProgramError
from datalog.syntax import show
from selfmaint.api.file.dbt_manifest import Given, catalog_of_dbt, read_dbt_manifest
from selfmaint.errors import Code, InputError
from tests.selfmaint.api.file.test_sql_programs import data_test

ORDERS = "source.p.raw.orders"
ASSERTED = "coalesce(date(day), nvl2(date(day), assert_true(date(day) is not null), null))"


def project(
    folder: Path,
    sql: str = "select id, day from raw.orders",
    columns: Mapping[str, Any] | None = None,
    *,
    adapter: str = "spark",
    materialized: str = "table",
    **more: Any,
) -> Path:
    """The manifest of a project with one source, of which the YAML says some columns, and a model over it."""
    source = {
        "resource_type": "source",
        "name": "o",
        "identifier": "orders",
        "schema": "raw",
        "database": "db",
    }
    model = {"resource_type": "model", "name": "m", "schema": "mart", "database": "db", "compiled_code": sql}
    model |= {"depends_on": {"nodes": [ORDERS]}, "config": {"materialized": materialized}, "columns": {}}
    data = {
        "metadata": {"adapter_type": adapter},
        "sources": {
            ORDERS: {**source, "columns": {n: {"name": n, **one} for n, one in (columns or {}).items()}}
        },
        "nodes": {"model.p.m": model, **more},
    }
    path = folder / "manifest.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


def catalog(folder: Path, columns: Mapping[str, str], **numbers: int) -> None:
    """What `dbt docs generate` writes."""
    said = {
        n: {"name": n, "type": kind, "index": numbers.get(n, i)}
        for i, (n, kind) in enumerate(columns.items())
    }
    (folder / "catalog.json").write_text(json.dumps({"nodes": {}, "sources": {ORDERS: {"columns": said}}}))


def parquet(folder: Path) -> Given:
    rows = pa.table({"id": pa.array([1], pa.int64()), "day": pa.array([None], pa.date32()), "tags": [["a"]]})
    pq.write_table(rows, folder / "orders.parquet")
    return Given({"orders": str(folder / "orders.parquet")})


def declared(path: Path, given: Given = Given()) -> str:  # noqa: B008
    (found,) = (one for one in read_dbt_manifest(path, given).declarations if one.name == "orders")
    return show(found)


def test_columns_are_those_of_the_files(tmp_path: Path) -> None:
    path = project(tmp_path)
    assert declared(path, parquet(tmp_path)).startswith(".decl orders(id: bigint, day: date")
    assert [one.name for one in read_dbt_manifest(path, parquet(tmp_path)).declarations[0].unread] == ["tags"]
    some = project(tmp_path, columns={"ID": {"data_type": "int"}, "gone": {}})
    assert declared(some, parquet(tmp_path)).startswith(".decl orders(id: int, day: date")
    missing = Given({"orders": str(tmp_path / "nowhere.parquet")})
    assert (
        declared(project(tmp_path, "select id from raw.orders", {"id": {}}), missing) == ".decl orders(id)."
    )


def test_columns_are_those_of_the_catalog_that_dbt_writes(tmp_path: Path) -> None:
    path = project(tmp_path, columns={"id": {}})
    catalog(tmp_path, {"note": "string", "day": "timestamp", "id": "bigint"}, note=9)
    assert declared(path) == ".decl orders(day: timestamp, id: bigint, note: string)."
    catalog(
        tmp_path, {"ID": "BIGINT", "day": "TIMESTAMP", "at": "TIMESTAMP WITH TIME ZONE", "l": "INTEGER[]"}
    )
    path = project(tmp_path, columns={"id": {}}, adapter="duckdb", t=data_test("not_null", ORDERS, "id"))
    assert declared(path) == ".decl orders(`ID`: bigint not null, day: timestamp_ntz, at: timestamp)."
    assert declared(path, parquet(tmp_path)).startswith(".decl orders(id: bigint not null, day: date")


def test_tests_name_columns_in_any_case(tmp_path: Path) -> None:
    tests = {str(i): data_test(kind, ORDERS, "id") for i, kind in enumerate(("unique", "not_null"))}
    catalog(tmp_path, {"ID": "bigint", "day": "date"})
    assert declared(project(tmp_path, **tests)) == ".decl orders(`ID`: bigint not null, day: date) key(`ID`)."


@pytest.mark.parametrize("text", ["{", "[]", '{"nodes": {}}', '{"nodes": [], "sources": {}}', "[" * 100_000])
def test_a_catalog_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    path = project(tmp_path, columns={"id": {}, "day": {}})
    (tmp_path / "catalog.json").write_text(text)
    with pytest.raises(InputError) as refused:
        read_dbt_manifest(path)
    assert [one.code for one in refused.value.diagnostics] == [Code.MANIFEST]


@pytest.mark.parametrize(
    "entry", [None, 1, {}, {"columns": None}, {"columns": {"id": None}}, {"columns": {"id": {"index": "x"}}}]
)
def test_a_catalog_that_says_nothing_of_a_table_is_passed_over(tmp_path: Path, entry: Any) -> None:
    path = project(tmp_path, "select id from raw.orders", {"id": {"data_type": "int"}})
    (tmp_path / "catalog.json").write_text(json.dumps({"nodes": {}, "sources": {ORDERS: entry}}))
    assert declared(path) == ".decl orders(id: int)."


def test_tables_without_columns_are_named_where_models_read_them(tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        read_dbt_manifest(project(tmp_path))
    (one,) = refused.value.diagnostics
    assert one.code is Code.MANIFEST
    assert "which columns `orders`" in one.message
    assert "`dbt docs generate`" in str(one.hint)
    unread = project(tmp_path, "select 1 as id")
    data = json.loads(unread.read_text())
    data["nodes"]["model.p.m"]["depends_on"] = {"nodes": []}
    unread.write_text(json.dumps(data))
    assert read_dbt_manifest(unread)


def test_a_column_that_the_yaml_leaves_out_is_told_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ProgramError) as wrong:
        read_dbt_manifest(project(tmp_path, columns={"id": {}}))
    (one,) = wrong.value.diagnostics
    assert "unknown column `day`" in one.message
    assert "`dbt docs generate`" in str(one.note)


def test_a_source_over_the_table_of_a_seed_or_model_is_that_relation(tmp_path: Path) -> None:
    seed = {"resource_type": "seed", "name": "orders", "schema": "RAW", "database": "db", "columns": {}}
    columns = {"id": {"data_type": "int"}, "day": {"data_type": "date"}}
    path = project(
        tmp_path, columns=columns, **{"seed.p.orders": seed, "t": data_test("unique", ORDERS, "id")}
    )
    assert declared(path) == ".decl orders(id: int, day: date) unique(id)."
    model = {"resource_type": "model", "name": "orders", "schema": "raw", "database": "db"}
    model |= {
        "compiled_code": "select 1 as id, date('2026-01-01') as day",
        "config": {"materialized": "table"},
    }
    found = read_dbt_manifest(project(tmp_path, columns=columns, **{"model.p.orders": model}))
    assert {one.name for one in (*found.views, *found.opaque)} == {"m", "orders"}


def test_models_that_are_not_stored_are_unfolded(tmp_path: Path) -> None:
    other = {"resource_type": "model", "name": "n", "schema": "mart", "database": "db", "columns": {}}
    other |= {"compiled_code": "select id from mart.m", "config": {"materialized": "table"}}
    path = project(tmp_path, columns={"id": {}, "day": {}}, **{"model.p.n": other})
    assert [view.name for view in catalog_of_dbt(path).views] == ["m", "n"]
    made = catalog_of_dbt(path, Given(unstored=("m",)))
    assert [view.name for view in made.views] == ["n"]
    assert {atom.predicate.name for atom in made.view("n").body} == {"orders"}
    with pytest.raises(InputError, match="`mm` is no model") as refused:
        catalog_of_dbt(path, Given(unstored=("mm",)))
    assert refused.value.diagnostics[0].code is Code.UNKNOWN_RELATION
    for nothing in (Given(unstored=("m", "n")), Given()):
        path = path if nothing.unstored else project(tmp_path, columns={"id": {}}, materialized="view")
        with pytest.raises(InputError, match="no model of the dbt manifest") as refused:
            catalog_of_dbt(path, nothing)
        assert refused.value.diagnostics[0].code is Code.MANIFEST


def test_what_datediff_asserts_keeps_no_model_from_being_read(tmp_path: Path) -> None:
    columns = {"id": {"data_type": "int"}, "day": {"data_type": "date"}}
    sql = f"select id, datediff({ASSERTED}, date('2026-01-01')) as age from raw.orders"
    found = read_dbt_manifest(project(tmp_path, sql, columns))
    assert [view.name for view in found.views] == ["m"]
    assert not found.opaque
    inside = (
        f"coalesce(date({ASSERTED}), nvl2(date({ASSERTED}), assert_true(date({ASSERTED}) is not null), null))"
    )
    assert read_dbt_manifest(project(tmp_path, f"select id, {inside} as d from raw.orders", columns)).views
    other = "select id, assert_true(id > 0) as ok from raw.orders"  # it may fail
    assert read_dbt_manifest(project(tmp_path, other, columns)).opaque


def test_a_project_from_its_files_alone(tmp_path: Path) -> None:
    given = parquet(tmp_path)
    project(tmp_path, f"select id, datediff({ASSERTED}, date('2026-01-01')) as age from raw.orders")
    (tmp_path / "w.toml").write_text(
        'dbt_manifest = "manifest.json"\n[store]\nkind = "lake"\npath = "lake"\n'
        '[relations.orders]\npath = "orders.parquet"\n'
    )
    assert given.places
    assert selfmaint.init(tmp_path / "w.toml")
    with selfmaint.load(tmp_path / "w.toml") as warehouse:
        assert pa.table(warehouse.read("m")).to_pylist() == [{"id": 1, "age": None}]
