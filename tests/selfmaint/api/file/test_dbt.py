"""dbt projects as they are: which columns their sources have, which models are stored, and what their macros write."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import selfmaint
from datalog.diagnostics import ProgramError
from datalog.sql.views.written_out.asserted import without_assertions
from datalog.syntax import show
from selfmaint.api.file.dbt_manifest import Given, catalog_of_dbt, read_dbt_manifest
from selfmaint.errors import Code, InputError
from tests.selfmaint.api.file.test_sql_programs import data_test, model

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


@pytest.mark.parametrize("value", ["abs(id) + 1", "(id) - 3", "id"])
def test_what_is_asserted_of_keeps_together(value: str) -> None:
    """Without parentheses `abs(id) + 1` would be `abs(id) + 1 * 2`."""
    sql = f"select coalesce({value}, nvl2({value}, assert_true({value} is not null), null)) * 2 from t"
    assert without_assertions(sql) == f"select ({value}) * 2 from t"


def test_an_assertion_of_another_text_is_left() -> None:
    sql = "select coalesce(f('A'), nvl2(f('a'), assert_true(f('A') is not null), null)) from t"
    assert without_assertions(sql) == sql


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


@pytest.mark.parametrize(
    ("adapter", "text", "kind"),
    [
        # Without a size a number of another dialect may have any digits: no whole numbers.
        ("snowflake", "NUMBER", "any"),
        ("snowflake", "NUMBER(9,2)", "decimal(9,2)"),
        ("snowflake", "INT", "decimal(38,0)"),
        ("postgres", "numeric", "any"),
        ("postgres", "numeric(9,2)", "decimal(9,2)"),
        ("bigquery", "NUMERIC", "any"),
        ("spark", "decimal", "decimal(10,0)"),
        ("bigquery", "DATETIME", "timestamp_ntz"),
        ("bigquery", "TIMESTAMP", "timestamp"),
        ("trino", "timestamp(6)", "timestamp_ntz"),
        ("trino", "timestamp(6) with time zone", "timestamp"),
        ("snowflake", "TIMESTAMP_TZ", "timestamp"),
        ("sqlserver", "datetime2", "timestamp_ntz"),
        ("sqlserver", "float", "any"),
        ("duckdb", "FLOAT", "float"),
        ("what", "INT", "any"),
        # No column of ours.
        ("snowflake", "TIME", None),
        ("duckdb", "TIME", None),
        ("postgres", "time without time zone", None),
        ("postgres", "money", None),
        ("postgres", "character", None),
        ("postgres", "bit", None),
        ("postgres", "USER-DEFINED", None),
        ("postgres", '"char"', None),
        ("duckdb", "BIT", None),
        ("duckdb", "FLOAT[3]", None),
        ("duckdb", "HUGEINT", None),
        ("sqlserver", "tinyint", None),
        ("mysql", "int unsigned", None),
    ],
)
@pytest.mark.parametrize("is_catalog", [True, False])
def test_types_are_those_of_the_adapter(
    tmp_path: Path, adapter: str, text: str, kind: str | None, is_catalog: bool
) -> None:
    said = {"id": {"data_type": "int"}, "x": {"data_type": text}}
    path = project(tmp_path, "select id from raw.orders", {} if is_catalog else said, adapter=adapter)
    if is_catalog:
        catalog(tmp_path, {"id": "int", "x": text})
    (found,) = (one for one in read_dbt_manifest(path).declarations if one.name == "orders")
    types = {column.name: str(column.type) for column in found.columns}
    assert types.get("x") == kind
    assert (kind is None) == ("x" in {column.name for column in found.unread})


def test_whether_a_number_is_whole_is_not_taken_from_a_type_without_a_size(tmp_path: Path) -> None:
    """A row with 3.50 may be in the table: that none of 3 or less, and of 4 or more, is shown proves nothing."""
    path = project(tmp_path, "select id, v from raw.orders where v <= 3", adapter="snowflake")
    data = json.loads(path.read_text())
    model = data["nodes"]["model.p.m"]
    data["nodes"]["model.p.n"] = {
        **model,
        "name": "n",
        "compiled_code": "select id, v from raw.orders where v > 3.9",
    }
    other = {**data["sources"][ORDERS], "name": "s", "identifier": "s"}
    data["sources"]["source.p.raw.s"] = other
    sql = "select s.id, a.v, s.x from raw.orders a join raw.s s on a.id = s.id"
    data["nodes"]["model.p.j"] = {**model, "name": "j", "compiled_code": sql}
    for i, one in enumerate((ORDERS, "source.p.raw.s")):
        data["nodes"] |= {f"t{i}{n}": data_test(n, one, "id") for n in ("unique", "not_null")}
        data["nodes"][f"v{i}"] = data_test("not_null", one, "vx"[i])
    path.write_text(json.dumps(data))
    columns = [{n: {"name": n, "type": "NUMBER"} for n in names} for names in (("id", "v"), ("id", "x"))]
    sources = dict(zip((ORDERS, "source.p.raw.s"), [{"columns": one} for one in columns], strict=True))
    (tmp_path / "catalog.json").write_text(json.dumps({"nodes": {}, "sources": sources}))
    number = pa.decimal128(9, 2)
    stored = {"m": [(1, 3)], "n": [(2, 4)], "j": []}
    for name, rows in stored.items():
        names = ["id", "v", "x"] if name == "j" else ["id", "v"]
        columns_of = [pa.array([Decimal(row[i]) for row in rows], number) for i in range(len(names))]
        pq.write_table(pa.table(columns_of, names), tmp_path / f"{name}.parquet")
    views = "".join(f'[views.{name}]\npath = "{name}.parquet"\n' for name in stored)
    (tmp_path / "w.toml").write_text(f'dbt_manifest = "manifest.json"\n{views}[update]\neffective = true\n')
    with selfmaint.load(tmp_path / "w.toml", engine="duckdb") as warehouse:
        update = selfmaint.Update.from_frames(
            warehouse,
            {"s": pa.table({n: pa.array([Decimal(v)], number) for n, v in {"id": 7, "x": 1}.items()})},
        )
        assert not warehouse.check(update)["j"]


def test_tables_of_one_name_in_two_databases_are_two(tmp_path: Path) -> None:
    path = project(tmp_path, "select x.id from db.raw.orders x left anti join d2.raw.orders y on x.id = y.id")
    data = json.loads(path.read_text())
    columns = {"id": {"name": "id", "data_type": "int"}}
    data["sources"][ORDERS]["columns"] = columns
    data["sources"]["source.p.d2.o"] = {**data["sources"][ORDERS], "database": "d2"}
    path.write_text(json.dumps(data))
    assert [one.name for one in read_dbt_manifest(path).declarations][:2] == [
        "db.raw.orders",
        "d2.raw.orders",
    ]


@pytest.mark.parametrize("unstored", [(), ("n",)])
def test_a_reference_to_a_model_that_is_not_stored_is_none(tmp_path: Path, unstored: tuple[str, ...]) -> None:
    other = {"resource_type": "model", "name": "n", "schema": "mart", "database": "db", "columns": {}}
    other |= {
        "compiled_code": "select id from raw.orders",
        "config": {"materialized": "table" if unstored else "view"},
    }
    test = data_test("relationships", "model.p.m", "id", target="model.p.n", field="id")
    source = data_test("relationships", ORDERS, "id", target="model.p.n", field="id")
    path = project(tmp_path, columns={"id": {}, "day": {}}, **{"model.p.n": other, "t": test, "s": source})
    assert [view.name for view in catalog_of_dbt(path, Given(unstored=unstored)).views] == ["m"]


@pytest.mark.parametrize("together", [5, "id", {"a": 1}, None, [], [1]])
def test_columns_together_that_are_no_list_are_no_key(tmp_path: Path, together: Any) -> None:
    test = data_test("unique_combination_of_columns", ORDERS, "id")
    test["test_metadata"]["kwargs"] = {"combination_of_columns": together}
    path = project(tmp_path, columns={"id": {}, "day": {}}, t=test)
    assert declared(path) == ".decl orders(id, day)."


def test_a_test_of_another_package_promises_nothing(tmp_path: Path) -> None:
    for package, promised in (("mine", ""), ("dbt", " unique(id)"), (None, " unique(id)")):
        test = data_test("unique", ORDERS, "id")
        test["test_metadata"]["namespace"] = package
        assert (
            declared(project(tmp_path, columns={"id": {}, "day": {}}, t=test))
            == f".decl orders(id, day){promised}."
        )


def test_why_files_do_not_tell_columns_is_said(tmp_path: Path) -> None:
    (tmp_path / "orders.parquet").write_text("no Parquet")
    for name in ("orders.parquet", "nowhere.parquet"):
        with pytest.raises(InputError) as refused:
            read_dbt_manifest(project(tmp_path), Given({"orders": str(tmp_path / name)}))
        assert name in str(refused.value.diagnostics[0].note)


def test_columns_that_differ_in_case_alone_are_refused(tmp_path: Path) -> None:
    path = project(tmp_path)
    catalog(tmp_path, {"Id": "int", "id": "int", "day": "date"})
    with pytest.raises(InputError, match="`Id` and `id`") as refused:
        read_dbt_manifest(path)
    assert refused.value.diagnostics[0].code is Code.MANIFEST


def test_a_model_in_python_is_a_table_like_others(tmp_path: Path) -> None:
    made = {"resource_type": "model", "name": "p", "schema": "mart", "database": "db", "language": "python"}
    made |= {"compiled_code": "def model(dbt, session): ...", "config": {"materialized": "table"}}
    made |= {"columns": {"id": {"name": "id", "data_type": "int"}}}
    path = project(tmp_path, "select id from mart.p", {"id": {}}, **{"model.p.p": made})
    found = catalog_of_dbt(path)
    assert [view.name for view in found.views] == ["m"]
    assert {"orders", "p"} >= found.relations.keys() >= {"p"}


@pytest.mark.parametrize(
    ("to", "schema", "found"),
    [
        ("k", "raw", "raw.k"),
        ("k", "other", "other.k"),
        ("other.k", "raw", "other.k"),
        ("`db`.`raw`.`K`", "other", "raw.k"),
        ("k", "third", None),  # which is not in the manifest
        ("d2.raw.k", "raw", None),
    ],
)
def test_a_reference_is_to_the_table_beside_it(
    tmp_path: Path, to: str, schema: str, found: str | None
) -> None:
    key = {"id": {"name": "id", "data_type": "int", "constraints": [{"type": "primary_key"}]}}
    seeds = {
        f"seed.p.{one}": {
            "resource_type": "seed",
            "name": "k",
            "schema": one,
            "database": "db",
            "columns": key,
        }
        for one in ("other", "raw")
    }
    said = [{"type": "foreign_key", "columns": ["v"], "to": to, "to_columns": ["ID"]}]
    data = json.loads(project(tmp_path, "select id from orders", {"id": {}, "v": {}}, **seeds).read_text())
    data["sources"][ORDERS] |= {"schema": schema, "constraints": said}
    (tmp_path / "manifest.json").write_text(json.dumps(data))
    (orders,) = (
        one for one in read_dbt_manifest(tmp_path / "manifest.json").declarations if one.name == "orders"
    )
    targets = [(one.target, one.target_columns) for one in orders.foreign_keys]
    assert targets == ([] if found is None else [(found, ("id",))])


@pytest.mark.parametrize(
    "constraint",
    [
        {"type": "primary_key", "columns": []},
        {"type": "unique", "columns": []},
        {"type": "unique", "columns": ["id", "ID"]},
        {"type": "foreign_key", "columns": ["id"], "to": "orders", "to_columns": ["id", "day"]},
        {"type": "foreign_key", "columns": [], "to": "orders", "to_columns": ["id"]},
    ],
)
def test_constraints_that_say_nothing_are_none(tmp_path: Path, constraint: dict[str, Any]) -> None:
    data = json.loads(project(tmp_path, columns={"id": {}, "day": {}}).read_text())
    data["sources"][ORDERS]["constraints"] = [constraint]
    (tmp_path / "manifest.json").write_text(json.dumps(data))
    assert declared(tmp_path / "manifest.json") == ".decl orders(id, day)."


@pytest.mark.parametrize("kind", ["int", "string", "date"])
def test_a_reference_between_types_of_two_families_is_none(tmp_path: Path, kind: str) -> None:
    """dbt's test casts, and passes."""
    key = {"id": {"name": "id", "data_type": "string", "constraints": [{"type": "primary_key"}]}}
    seed = {"resource_type": "seed", "name": "k", "schema": "raw", "database": "db", "columns": key}
    test = data_test("relationships", ORDERS, "id", target="seed.p.k", field="ID")
    columns = {"id": {"data_type": kind}, "day": {}}
    path = project(tmp_path, columns=columns, **{"seed.p.k": seed, "t": test})
    assert catalog_of_dbt(path)
    assert ("references" in declared(path)) == (kind == "string")


SHOWN = [
    "select id as o_id, day from raw.orders",
    "with source as (select * from raw.orders), renamed as (select id as o_id, day from source) select * from renamed",
    "select id as o_id, date_trunc('month', day) as day, 1 as one from raw.orders order by day",
    "select upper(day) as day, id as O_ID, id as again from raw.orders where true",
]
"""Staging models that have each row of the source."""
NOT_SHOWN = [
    "select distinct id as o_id, day from raw.orders",
    "select id as o_id, day from raw.orders where day > date '2026-01-01'",
    "select id as o_id, day from raw.orders where id is not null",
    "select id as o_id, day from raw.orders limit 10",
    "select id as o_id, max(day) as day from raw.orders group by id",
    "select id as o_id, day from raw.orders group by id, day",
    "select id as o_id, day from raw.orders having count(*) > 0",
    "select id as o_id, day from raw.orders qualify row_number() over (partition by id order by day) = 1",
    "select id as o_id, day from (select *, row_number() over (order by id) as n from raw.orders) where n = 1",
    "select a.id as o_id, a.day from raw.orders a join raw.k on a.id = k.id",
    "select a.id as o_id, a.day from raw.orders a left semi join raw.k on a.id = k.id",
    "select a.id as o_id, a.day from raw.orders a where exists (select 1 from raw.k where a.id = k.id)",
    "select id as o_id, day from raw.orders except all select id, day from raw.orders where id = 5",
    "select id as o_id, day from raw.orders union select id, day from raw.orders",
    "select cast(id as string) as o_id, day from raw.orders",
    "select cast(id as bigint) as o_id, day from raw.orders",
    "select id + 1 as o_id, day from raw.orders",
    "select coalesce(id, 0) as o_id, day from raw.orders",
    "select 1 as o_id, day from raw.orders",
    "select day as o_id, id as day from raw.orders where id = id",
    "select id as o_id, day from raw.orders tablesample (10 percent)",
    "select id as o_id, day from raw.orders where rand() < 0.5",
    "select id as o_id, day from raw.orders where 1 = 2",
    "select id as o_id, day from raw.orders version as of 3",
    "select id as o_id, explode(array(day)) as day from raw.orders",
    "select id as o_id, day from raw.orders cross join (values (1), (2))",
    "select try_cast(id as tinyint) as o_id, day from raw.orders",
]
"""Others, and those that show the key otherwise."""


def staged(folder: Path, sql: str, tests: Mapping[str, Any], **more: Any) -> Path:
    """A project whose model reads a staging model over the source."""
    model = {"resource_type": "model", "name": "s", "schema": "mart", "database": "db", "columns": {}}
    model |= {"compiled_code": sql, "config": {"materialized": "view"}} | more
    key = {"id": {"name": "id", "data_type": "int", "constraints": [{"type": "primary_key"}]}}
    seed = {"resource_type": "seed", "name": "k", "schema": "raw", "database": "db", "columns": key}
    columns = {"id": {"data_type": "int"}, "day": {"data_type": "date"}}
    return project(folder, "select * from mart.s", columns, **{"model.p.s": model, "seed.p.k": seed, **tests})


def key_tests(of: str = "model.p.s") -> dict[str, Any]:
    return {name: data_test(name, of, "o_id") for name in ("unique", "not_null")}


@pytest.mark.parametrize("sql", SHOWN)
def test_what_is_tested_of_a_staging_model_is_so_of_what_it_shows(tmp_path: Path, sql: str) -> None:
    path = staged(tmp_path, sql, key_tests())
    assert declared(path) == ".decl orders(id: int not null, day: date) key(id)."
    assert catalog_of_dbt(path)
    only = {"unique": data_test("unique", "model.p.s", "o_id")}
    assert declared(staged(tmp_path, sql, only)).endswith(") unique(id).")


@pytest.mark.parametrize("sql", NOT_SHOWN)
def test_what_is_tested_of_other_queries_is_not_so_of_what_they_read(tmp_path: Path, sql: str) -> None:
    plain = declared(staged(tmp_path, SHOWN[0], {}))
    try:
        found = declared(staged(tmp_path, sql, key_tests()))
    except ProgramError:
        return  # a query that is not read promises nothing
    assert found == plain


@pytest.mark.parametrize("kind", ["incremental", "table"])
def test_tests_of_a_model_that_dbt_stores_are_not_so_of_what_it_reads(tmp_path: Path, kind: str) -> None:
    """An incremental model that is merged by its key has one row where its source has many."""
    path = staged(tmp_path, SHOWN[0], key_tests(), config={"materialized": kind, "unique_key": "o_id"})
    for given in (Given(), Given(unstored=("s",))):
        assert "key(" not in declared(path, given)
        assert "unique(" not in declared(path, given)


def test_references_between_staging_models_are_between_what_they_show(tmp_path: Path) -> None:
    other = {"resource_type": "model", "name": "k2", "schema": "mart", "database": "db", "columns": {}}
    other |= {"compiled_code": "select id as k_id from raw.k", "config": {"materialized": "view"}}
    tests = {"r": data_test("relationships", "model.p.s", "o_id", target="model.p.k2", field="k_id")}
    assert "references k(id)" in declared(staged(tmp_path, SHOWN[0], {"model.p.k2": other, **tests}))
    other["compiled_code"] = "select id as k_id from raw.k where id > 5"
    assert "references" not in declared(staged(tmp_path, SHOWN[0], {"model.p.k2": other, **tests}))
    assert "references" not in declared(staged(tmp_path, NOT_SHOWN[1], {"model.p.k2": other, **tests}))


KEYED = ".decl orders(id: int not null, day: date) key(id)."
PLAIN = ".decl orders(id: int, day: date)."


@pytest.mark.parametrize("kind", ["incremental", "table", "materialized_view"])
@pytest.mark.parametrize("reads", [{"nodes": ["model.p.i"]}, {}])
def test_tests_of_a_view_over_what_dbt_stores_are_not_so_of_what_that_reads(
    tmp_path: Path, kind: str, reads: Any
) -> None:
    """The view has the rows that dbt merged by their key, not those of the query here."""
    stored = model("i", "select id, day from raw.orders", kind)
    path = staged(tmp_path, "select id as o_id, day from mart.i", {"model.p.i": stored, **key_tests()})
    data = json.loads(path.read_text())
    data["nodes"]["model.p.s"]["depends_on"] = reads
    path.write_text(json.dumps(data))
    for unstored in ((), ("i",)):
        assert declared(path, Given(unstored=unstored)) == PLAIN


def test_what_is_tested_counts_whatever_other_models_read(tmp_path: Path) -> None:
    """A report over a stored model, one over that, and one that dbt knows nothing of."""
    reports = {
        "model.p.r": model("r", "select * from mart.m", "view", depends_on={"nodes": ["model.p.m"]}),
        "model.p.r2": model("r2", "select * from mart.r", "view", depends_on={"nodes": ["model.p.r"]}),
        "model.p.r3": model("r3", "select * from mart.m", "view"),
        "model.p.r4": model("r4", "select * from mart.r3", "view"),
    }
    assert declared(staged(tmp_path, SHOWN[0], {**reports, **key_tests()})) == KEYED


@pytest.mark.parametrize(
    ("to", "is_one"),
    [
        ("ref('s')", True),
        ("{{ ref('s') }}", True),
        ('ref("p", "s")', True),
        ("ref('other', 's')", False),
        ("ref('s', v=1)", False),
        ("mart.s", False),
        ("source('raw', 'orders')", False),
        ("(select o_id from {{ ref('s') }})", False),
        ("ref('s') where true", False),
        ("ref(var('s'))", False),
        (5, False),
    ],
)
def test_a_reference_to_the_same_relation_is_one_where_it_is_named(
    tmp_path: Path, to: Any, is_one: bool
) -> None:
    test = data_test("relationships", "model.p.s", "again", to=to, field="o_id")
    sql = "select id as o_id, id as again from raw.orders"
    found = declared(staged(tmp_path, sql, {"r": test, **key_tests()}))
    assert ("references orders(id)" in found) == is_one


@pytest.mark.parametrize(
    ("to", "reads", "is_one"),
    [
        ("source('raw', 'k')", ["source.p.raw.k", ORDERS], True),
        ("{{ source( \"raw\", 'k' ) }}", [ORDERS, "source.p.raw.k", "model.p.m"], True),
        ("ref('k')", ["source.p.raw.k", ORDERS], False),
        ("source('raw', 'k')", ["source.p.raw.orders"], False),
        ("ref('k2')", ["model.p.k2.v1", ORDERS], True),
        ("ref('k2', version='1')", ["model.p.k2.v2", "model.p.k2.v1", ORDERS], True),
        ("ref('k2')", ["model.p.k2.v1", "model.p.k2.v2", ORDERS], False),
        (None, ["source.p.raw.k", ORDERS], True),
        (None, ["source.p.raw.k", "model.p.m", ORDERS], False),
        (
            "(select id from {{ source('raw','k') }} union all select id from x)",
            ["source.p.raw.k", ORDERS],
            False,
        ),
    ],
)
def test_a_reference_is_to_what_the_test_names(
    tmp_path: Path, to: str | None, reads: list[str], is_one: bool
) -> None:
    key = {"id": {"name": "id", "data_type": "int", "constraints": [{"type": "primary_key"}]}}
    source = {"resource_type": "source", "name": "k", "schema": "raw", "database": "db", "columns": key}
    test = data_test("relationships", ORDERS, "id", field="id", **({} if to is None else {"to": to}))
    test["depends_on"] = {"nodes": reads}
    more = {f"model.p.k2.v{i}": model(f"k2_v{i}", "select id from raw.k", "view") for i in (1, 2)}
    path = project(tmp_path, columns={"id": {"data_type": "int"}, "day": {}}, t=test, **more)
    data = json.loads(path.read_text())
    data["sources"]["source.p.raw.k"] = source
    path.write_text(json.dumps(data))
    assert ("references k(id)" in declared(path)) == is_one


@pytest.mark.parametrize(
    ("said", "of"),
    [
        ("{{ get_where_subquery(ref('s')) }}", "s"),
        ("{{ get_where_subquery(source('raw', 'orders')) }}", "orders"),
        ("{{ ref('s') }}", "s"),
        ("{{ mine(ref('s')) }}", None),
        ("{{ get_where_subquery(...) }}", None),
        (None, None),
    ],
)
def test_a_test_is_of_the_relation_that_it_is_called_with(
    tmp_path: Path, said: str | None, of: str | None
) -> None:
    """Older manifests do not say it otherwise, and list the nodes in an order of their own."""
    test = data_test("not_null", "", "o_id" if of == "s" else "day", model=said)
    test |= {"attached_node": None, "depends_on": {"nodes": ["model.p.s", ORDERS]}}
    found = declared(staged(tmp_path, SHOWN[0], {"t": test}))
    named = {"s": "id: int not null, day: date", "orders": "id: int, day: date not null"}
    assert found == (f".decl orders({named[of]})." if of else PLAIN)
    test["depends_on"] = {"nodes": [ORDERS]}
    assert "day: date not null" in declared(staged(tmp_path, SHOWN[0], {"t": test})) or of == "s"


@pytest.mark.parametrize("table", ["archive.orders", "db2.raw.orders", "`Archive`.orders"])
def test_a_table_of_another_schema_is_another_one(tmp_path: Path, table: str) -> None:
    columns = {"id": {}, "day": {}}
    for sql in (f"select id from {table}", f"select percentile(id, 0.5) as p from {table}"):
        with pytest.raises(ProgramError, match="unknown table"):
            read_dbt_manifest(project(tmp_path, sql, columns))
    for known in ("orders", "RAW.orders", "db.raw.orders", "`db`.`raw`.`Orders`"):
        assert read_dbt_manifest(project(tmp_path, f"select id from {known}", columns)).views
    unread = staged(tmp_path, f"select id as o_id, day from {table}", key_tests())
    with pytest.raises(ProgramError, match="unknown table"):
        read_dbt_manifest(unread)


@pytest.mark.parametrize("contract", [None, {"enforced": False}, {"enforced": True}])
@pytest.mark.parametrize("kind", ["view", "ephemeral", "table"])
def test_constraints_of_models_that_dbt_does_not_check_are_none(
    tmp_path: Path, kind: str, contract: Any
) -> None:
    said = {"id": {"name": "id", "constraints": [{"type": "unique"}, {"type": "not_null"}]}}
    sql = "select id, day from raw.orders"
    config = {"materialized": kind, "contract": contract}
    path = staged(tmp_path, sql, {}, config=config, columns=said, constraints=[])
    assert declared(path) == PLAIN
    checked = [one.name for one in read_dbt_manifest(path).declarations if one.key and one.name == "s"]
    assert checked == (["s"] if kind == "table" and contract == {"enforced": True} else [])


@pytest.mark.parametrize(
    ("macros", "is_of_dbt"),
    [
        (["macro.dbt.test_unique", "macro.dbt.get_where_subquery"], True),
        (["macro.p.test_unique"], False),
        (["macro.dbt.test_unique", "macro.p.get_where_subquery"], False),
        ([], True),
        (None, True),
    ],
)
def test_a_test_that_a_project_defines_itself_promises_nothing(
    tmp_path: Path, macros: list[str] | None, is_of_dbt: bool
) -> None:
    test = data_test("unique", ORDERS, "id")
    test["depends_on"]["macros"] = macros
    path = project(tmp_path, columns={"id": {}, "day": {}}, t=test)
    assert ("unique" in declared(path)) == is_of_dbt
    data = json.loads(path.read_text())
    for name in ("default__test_unique", "spark__get_where_subquery", "test_other"):
        data["metadata"]["project_name"] = "p"
        data["macros"] = {f"macro.p.{name}": {}, "macro.dbt.default__test_unique": {}}
        path.write_text(json.dumps(data))
        assert ("unique" in declared(path)) == (is_of_dbt and name == "test_other")


@pytest.mark.parametrize("limit", [0, 1, 500])
def test_a_test_of_some_rows_promises_nothing(tmp_path: Path, limit: int) -> None:
    test = data_test("unique", ORDERS, "id", {"severity": "ERROR", "limit": limit})
    assert declared(project(tmp_path, columns={"id": {}, "day": {}}, t=test)) == ".decl orders(id, day)."


@pytest.mark.parametrize(
    ("sql", "is_shown"),
    [
        ("select id as o_id, day from raw.orders", True),
        ("select *, id as o_id from raw.orders", True),
        ("select *, id as o_id from raw.orders where tags is not null", False),
        ("select id as tags, tags as o_id from raw.orders", False),
    ],
)
def test_a_column_of_another_type_keeps_no_key_from_being_known(
    tmp_path: Path, sql: str, is_shown: bool
) -> None:
    path = staged(tmp_path, sql, key_tests())
    data = json.loads(path.read_text())
    data["sources"][ORDERS]["columns"]["tags"] = {"name": "tags", "data_type": "array<string>"}
    data["nodes"]["model.p.m"]["compiled_code"] = "select id from raw.orders"
    path.write_text(json.dumps(data))
    assert catalog_of_dbt(path)
    assert ("key(id)" in declared(path)) == is_shown


def test_two_columns_that_show_one_are_one_column_of_a_key(tmp_path: Path) -> None:
    together = data_test("unique_combination_of_columns", "model.p.s", "", combination_of_columns=["a", "b"])
    sql = "select id as a, id as b, day from raw.orders"
    assert declared(staged(tmp_path, sql, {"t": together})) == f"{PLAIN[:-1]} unique(id)."
    path = staged(tmp_path, sql, {"t": together})
    data = json.loads(path.read_text())
    reference = {"type": "foreign_key", "columns": ["id", "v"], "to": "mart.s", "to_columns": ["a", "b"]}
    key = {n: {"name": n, "data_type": "int"} for n in ("id", "v")}
    data["sources"]["source.p.raw.x"] = {**data["sources"][ORDERS], "name": "x", "identifier": "x"}
    data["sources"]["source.p.raw.x"] |= {"columns": key, "constraints": [reference]}
    path.write_text(json.dumps(data))
    assert catalog_of_dbt(path)
    assert not any(one.foreign_keys for one in read_dbt_manifest(path).declarations)
