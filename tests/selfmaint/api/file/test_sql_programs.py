"""SQL and dbt projects as warehouses: what the decision sees, and what stays undecided with a reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from datalog.diagnostics import ProgramError, Severity
from datalog.model import OpaqueView, Row, Semantics, ViewDefinition
from datalog.syntax import show
from selfmaint.api.check import check
from selfmaint.api.file.dbt_manifest import read_dbt_manifest
from selfmaint.api.file.dbt_remarks import more_than_sql
from selfmaint.api.file.programs import catalog_of, is_sql
from selfmaint.api.file.warehouse_file import read_warehouse_file
from selfmaint.api.update import Update
from selfmaint.api.warehouse import build
from selfmaint.decide.verdict import NotSelfMaintainable, SelfMaintainable, Undecided
from selfmaint.engine.memory import MemoryEngine
from selfmaint.errors import Code, InputError
from selfmaint.warehouse.catalog import Outside
from tests.command_line import run

TABLES = """
create table customer (id int not null primary key, name string not null);
create table sale (id int not null primary key, customer int not null, price decimal(9,2) not null);
create table log (note string);
"""
VIEWS = """
create view customers as select id, name from customer;
create view sales as select s.id, customer, price, name from sale s join customer c on c.id = s.customer;
create view totals as select customer, sum(price) as total from sale group by customer;
create view names as select name from customer;
create view notes as select distinct note from log;
create view doubled as select id, price * 2 as twice from sale;
create view lonely as select c.id from customer c left join sale s on s.customer = c.id;
"""


def rows(*given: Row) -> frozenset[Row]:
    return frozenset(given)


def test_every_view_has_a_place_and_a_reason_if_it_is_more_than_a_rule() -> None:
    found = catalog_of(TABLES + VIEWS)
    kinds = {view.name: view.limitation.kind if view.limitation else None for view in found.views}
    assert kinds == {
        "customers": None,
        "sales": None,
        "totals": Outside.AGGREGATE,
        "names": Outside.BAG,
        "notes": Outside.PROJECTION,
        "doubled": Outside.COMPUTED,
        "lonely": Outside.OPAQUE,
    }
    assert isinstance(found.view("totals").definition, ViewDefinition)
    assert isinstance(found.view("lonely").definition, OpaqueView)
    assert found.view("totals").columns == ("customer", "total")
    assert [atom.predicate.name for atom in found.view("sales").body] == ["sale", "customer"]
    assert set(found.relations) == {"customer", "sale", "log"}


def test_plain_views_are_decided_and_the_others_are_not_guessed() -> None:
    empty = rows()
    sql = TABLES + VIEWS
    contents = {"customers": rows((1, "a")), **dict.fromkeys(("sales", "totals", "names", "notes"), empty)}
    given = build(sql, {**contents, "doubled": empty, "lonely": empty}, MemoryEngine())
    changed = {"customer": rows((2, "b"))}
    untouched = check(given, Update(inserted=changed, effective=True))
    assert isinstance(untouched["notes"], SelfMaintainable)
    verdicts = check(given, Update(inserted={**changed, "log": rows(("x",))}, effective=True))
    assert isinstance(verdicts["customers"], SelfMaintainable)
    assert isinstance(verdicts["totals"], SelfMaintainable)
    assert isinstance(verdicts["doubled"], SelfMaintainable)
    assert verdicts["names"] == SelfMaintainable("names", semantics=Semantics.BAG)
    assert isinstance(verdicts["notes"], SelfMaintainable)
    verdict = verdicts["lonely"]
    assert isinstance(verdict, Undecided)
    assert any("`lonely`" in reason for reason in verdict.reasons)
    assert not isinstance(verdicts["sales"], NotSelfMaintainable)


def test_sql_and_rules_say_the_same() -> None:
    rules = """.decl customer(id: int not null, name: string not null) key(id).
               customers(Id, Name) :- customer(Id, Name)."""
    sql = TABLES + "create view customers as select id, name from customer;"
    for program in (rules, sql):
        (view,) = catalog_of(program).views
        assert show(view.rule) == "customers(Id, Name) :- customer(Id, Name)."
        assert view.limitation is None


def test_a_row_joined_with_itself_on_all_columns_has_no_null() -> None:
    """Both subgoals are one atom then, and its columns are joined all the same."""
    sql = """
        create table cust (id int not null primary key, region string);
        create view own as select a.id, a.region from cust a join cust b on a.id = b.id and a.region = b.region;
    """
    warehouse = build(sql, {"own": rows()}, MemoryEngine())
    update = Update({"cust": rows((1, "eu"), (2, None))}, {"cust": rows((3, None))}, effective=True)
    assert warehouse.maintain(update).deltas["own"].gained == rows((1, "eu"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select a from r", True),
        ("  -- x\n/* y */ CREATE TABLE t (a int)", True),
        ("with q as (select 1) select 1", True),
        ("(select 1)", True),
        ("select(X) :- r(X).", False),
        ("create :- r.", False),
        ("% select\nv(X) :- r(X).", False),
        ("", False),
    ],
)
def test_sql_is_told_from_rules(text: str, expected: bool) -> None:
    assert is_sql(text) is expected


# ----------------------------------------------------------------------------------------- warehouse files


def test_a_warehouse_file_names_sql_a_folder_of_it_or_has_it_inside(tmp_path: Path) -> None:
    query = "select id, name from customer"
    (tmp_path / "one.sql").write_text(f"{TABLES} create view people as {query};", encoding="utf-8")
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "people.sql").write_text(query, encoding="utf-8")
    (folder / "tables.dl").write_text(".decl customer(id: int, name: string) key(id).", encoding="utf-8")
    inside = f"program_text = '''{TABLES} create view people as {query}'''\n"
    for program in ('program = "one.sql"\n', 'program = "models"\n', inside):
        path = tmp_path / "w.toml"
        path.write_text(f'{program}[views.people]\npath = "p"\n', encoding="utf-8")
        (view,) = read_warehouse_file(path).catalog.views
        assert (view.name, view.columns, view.limitation) == ("people", ("id", "name"), None)


def test_a_folder_is_read_with_its_subfolders(tmp_path: Path) -> None:
    for name, text in {
        "models/schema.sql": TABLES,
        "models/staging/names.sql": "select id, name from customer",
        "models/marts/sub/count.sql": "create view n as select count(*) as n from customer",
        "models/.old/names.sql": "select nothing from nowhere",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "w.toml").write_text('program = "models"\n[views.names]\npath = "a"\n[views.n]\npath = "b"\n')
    assert {view.name for view in read_warehouse_file(tmp_path / "w.toml").catalog.views} == {"names", "n"}


def test_a_folder_without_sql_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    path = tmp_path / "w.toml"
    path.write_text('program = "empty"\n[views]\n', encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_warehouse_file(path)
    assert caught.value.diagnostics[0].code is Code.WAREHOUSE_FILE


def test_the_rules_that_a_view_became_are_printed(tmp_path: Path) -> None:
    (tmp_path / "views.sql").write_text(TABLES + VIEWS, encoding="utf-8")
    names = ("customers", "sales", "totals", "names", "notes", "doubled", "lonely")
    places = "".join(f'[views.{name}]\npath = "{name}"\n' for name in names)
    path = tmp_path / "w.toml"
    path.write_text(f'program = "views.sql"\n{places}[update]\neffective = true\n', encoding="utf-8")
    plain = run("sql", str(path), "sales", "--datalog", "--insert-into", "sale")
    assert plain.stdout.startswith("% view: sales\nsales(Id, Customer, Price, Name) :- sale(")
    grouped = run("sql", str(path), "totals", "--datalog")
    assert grouped.status == 0
    assert "totals(Customer, sum(Price)) :- sale(_, Customer, Price)." in grouped.stdout
    assert "MERGE INTO `totals` AS `old`" in run("sql", str(path), "totals").stdout
    bag = run("sql", str(path), "names").stdout
    assert "CREATE OR REPLACE TEMPORARY VIEW `names_counted` AS" in bag
    assert "LATERAL EXPLODE(SEQUENCE(1, `changes`.`copies`))" in bag
    again = run("sql", str(path), "notes").stdout
    assert "MERGE INTO `notes` AS `old`" in again
    lonely = run("sql", str(path), "lonely")
    assert "left join" in lonely.stdout
    # Where it stands, and what works.
    assert "warning[DL402]: LEFT JOIN cannot be analysed" in lonely.stderr
    assert "views.sql:12:" in lonely.stderr
    assert "hint: show a column of `s` that is never null: `s.id`" in lonely.stderr
    kept = run("sql", str(path), "lonely", "--datalog")
    assert "% select c.id from customer c left join" in kept.stdout


# ------------------------------------------------------------------------------------------------------ dbt


def model(name: str, sql: str, materialized: str = "table", **more: Any) -> dict[str, Any]:
    return {
        "resource_type": "model",
        "name": name,
        "alias": name,
        "schema": "mart",
        "database": "db",
        "compiled_code": sql,
        "raw_code": more.pop("raw_code", "..."),
        "config": {"materialized": materialized},
        **more,
    }


def column(name: str, data_type: str | None = None, *constraints: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "data_type": data_type, "constraints": list(constraints)}


def data_test(
    name: str, owner: str, on: str, config: dict[str, Any] | None = None, **kwargs: Any
) -> dict[str, Any]:
    return {
        "resource_type": "test",
        "test_metadata": {"name": name, "kwargs": {"column_name": on, **kwargs}},
        "attached_node": owner,
        "depends_on": {"nodes": [*([kwargs["target"]] if "target" in kwargs else []), owner]},
        "config": config or {"severity": "ERROR"},
    }


def manifest(folder: Path) -> Path:
    orders, customers = "source.p.raw.orders", "source.p.raw.customers"
    columns = {
        "id": column("id", "bigint"),
        "customer_id": column("customer_id", "bigint"),
        "amount": column("amount", "decimal(9,2)"),
    }
    people = {
        "id": column("id", "bigint"),
        "name": column("name", "string"),
        "code": column("code", "string"),
    }
    source = {"resource_type": "source", "schema": "raw", "database": "db"}
    data = {
        "metadata": {"adapter_type": "spark"},
        "sources": {
            orders: {**source, "name": "orders", "identifier": "orders", "columns": columns},
            customers: {**source, "name": "customers", "identifier": "customers", "columns": people},
        },
        "nodes": {
            "model.p.stg_orders": model("stg_orders", "select * from `db`.`raw`.`orders`", "view"),
            "model.p.orders": model(
                "orders",
                "with __dbt__cte__big as (select * from db.mart.stg_orders where amount > 10) "
                "select o.id, name, amount from __dbt__cte__big o join db.raw.customers c on c.id = customer_id",
            ),
            "model.p.per_customer": model(
                "per_customer",
                "select customer_id, count(*) as n from mart.stg_orders group by customer_id",
                "incremental",
            ),
            "model.p.grown": model(
                "grown", "select id from raw.orders", "incremental", raw_code="{% if is_incremental() %}"
            ),
            "test.1": data_test("unique", orders, "id"),
            "test.2": data_test("not_null", orders, "id"),
            "test.3": data_test("unique", customers, "id"),
            "test.4": data_test("not_null", customers, "id"),
            "test.5": data_test("relationships", orders, "customer_id", field="id", target=customers),
            "test.6": data_test("unique", customers, "name", {"severity": "warn"}),
            "test.7": data_test("not_null", customers, "name", {"where": "id > 3"}),
            "test.8": data_test("accepted_values", customers, "name"),
            "test.9": data_test("unique", customers, "code"),
            "test.20": data_test("not_null", customers, "code", {"severity": "ERROR", "error_if": ">10"}),
            "test.21": data_test("unique", orders, "amount", {"error_if": "> 10", "warn_if": "!= 0"}),
            "test.22": data_test("unique", orders, "amount", {"fail_calc": "sum(n) - 5"}),
        },
    }
    path = folder / "manifest.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    return path


def test_double_quotes_are_of_names_where_dbt_compiled_for_another_engine(tmp_path: Path) -> None:
    path = manifest(tmp_path)
    data = json.loads(path.read_text(encoding="utf-8"))
    data["metadata"]["adapter_type"] = "postgres"
    quoted = 'select "id", \'"id"\' as "a word" from "db"."raw"."orders"'
    data["nodes"]["model.p.orders"]["compiled_code"] = quoted
    path.write_text(json.dumps(data), encoding="utf-8")
    found = read_dbt_manifest(path)
    (orders,) = (view for view in found.views if view.name == "mart.orders")
    assert orders.text == "select `id`, '\"id\"' as `a word` from `db`.`raw`.`orders`"
    assert orders.columns == ("id", "a word")
    warning = found.warnings[0]
    assert warning.code is Code.MANIFEST
    assert "was compiled for `postgres`; its SQL is read as Spark's" in warning.message


def test_a_test_that_lets_some_rows_fail_promises_nothing(tmp_path: Path) -> None:
    path, orders = manifest(tmp_path), "source.p.raw.orders"
    data = json.loads(path.read_text(encoding="utf-8"))

    def unique() -> tuple[tuple[str, ...], ...]:
        declared = {one.name: one for one in read_dbt_manifest(path).declarations}
        return declared["raw.orders"].unique

    data["nodes"]["test.23"] = data_test("not_null", orders, "amount")
    for config, promised in (
        ({"error_if": "> 10"}, False),
        ({"fail_calc": "sum(n) - 5"}, False),
        ({"error_if": " != 0", "fail_calc": "count(*)"}, True),
    ):
        data["nodes"]["test.21"] = data_test("unique", orders, "amount", config)
        data["nodes"].pop("test.22", None)
        path.write_text(json.dumps(data), encoding="utf-8")
        assert (("amount",) in unique()) is promised, config


def test_sources_without_types_are_named_where_models_read_them(tmp_path: Path) -> None:
    path = manifest(tmp_path)
    data = json.loads(path.read_text(encoding="utf-8"))
    for source in data["sources"].values():
        source["columns"] = {
            name: {**column, "data_type": "int"} for name, column in source["columns"].items()
        }
    path.write_text(json.dumps(data), encoding="utf-8")
    assert not any("types" in one.message for one in read_dbt_manifest(path).warnings)
    for column in data["sources"]["source.p.raw.orders"]["columns"].values():
        del column["data_type"]
    path.write_text(json.dumps(data), encoding="utf-8")
    (said,) = (one for one in read_dbt_manifest(path).warnings if "types" in one.message)
    assert "the types of columns of `raw.orders`" in said.message
    assert "`data_type`" in (said.hint or "")


def test_columns_that_dbt_utils_says_are_unique_together_are_a_key(tmp_path: Path) -> None:
    path, orders = manifest(tmp_path), "source.p.raw.orders"
    data = json.loads(path.read_text(encoding="utf-8"))
    together = data_test("unique_combination_of_columns", orders, "id")
    together["test_metadata"]["kwargs"] = {"combination_of_columns": ["id", "customer_id"]}
    together["column_name"] = None
    data["nodes"] |= {"test.1": together, "test.10": data_test("not_null", orders, "customer_id")}
    path.write_text(json.dumps(data), encoding="utf-8")
    declared = {one.name: show(one) for one in read_dbt_manifest(path).declarations}
    assert " key(id, customer_id)" in declared["raw.orders"]


def test_a_dbt_project(tmp_path: Path) -> None:
    found = read_dbt_manifest(manifest(tmp_path))
    declared = {one.name: show(one) for one in found.declarations}
    assert declared["raw.orders"] == (
        ".decl `raw.orders`(id: bigint not null, customer_id: bigint, amount: decimal(9,2)) key(id)"
        " foreign(customer_id) references customers(id)."
    )
    assert declared["customers"] == (
        ".decl customers(id: bigint not null, name: string, code: string) key(id) unique(code)."
    )
    assert [view.name for view in found.views] == ["mart.orders", "per_customer"]
    orders, per_customer = (show(view).replace("\n    ", " ").splitlines()[1] for view in found.views)
    assert orders == (
        "`mart.orders`(Id, Name, Amount) :- `raw.orders`(Id, Customer_id, Amount), "
        "Amount > 10, customers(Customer_id, Name, _)."
    )
    assert per_customer == "per_customer(Customer_id, count(*)) :- `raw.orders`(_, Customer_id, _)."
    (grown,) = found.opaque
    assert "is_incremental" in grown.reasons[0]


def test_a_dbt_project_is_a_warehouse(tmp_path: Path) -> None:
    manifest(tmp_path)
    names = ('"mart.orders"', "per_customer", "grown")
    places = "".join(f'[views.{name}]\ntable = "t"\n' for name in names)
    path = tmp_path / "w.toml"
    path.write_text(f'dbt_manifest = "manifest.json"\n{places}', encoding="utf-8")
    views = {view.name: view for view in read_warehouse_file(path).catalog.views}
    assert list(views) == ["mart.orders", "per_customer", "grown"]
    limitations = {name: view.limitation.kind for name, view in views.items() if view.limitation}
    assert limitations == {
        "mart.orders": Outside.PROJECTION,
        "per_customer": Outside.AGGREGATE,
        "grown": Outside.OPAQUE,
    }


def test_wrong_sql_in_a_manifest_names_the_model(tmp_path: Path) -> None:
    path = manifest(tmp_path)
    path.write_text(path.read_text().replace("select o.id, name", "select o.id, nam"), encoding="utf-8")
    with pytest.raises(ProgramError) as caught:
        read_dbt_manifest(path)
    (found,) = (d for d in caught.value.diagnostics if d.severity is Severity.ERROR)
    assert found.span is not None
    assert found.span.source.endswith("manifest.json (mart.orders)")


@pytest.mark.parametrize(
    ("hooks", "writes"),
    [
        ([{"sql": "\n delete from {{ this }} where id < 0", "transaction": True}], True),
        (["grant select on {{ this }} to role x", "MERGE INTO {{ this }} using x on true"], True),
        ("insert into {{ this }} select 1", True),
        ([{"sql": "optimize {{ this }}"}, "analyze table {{ this }} compute statistics"], False),
        ([], False),
    ],
)
def test_a_model_whose_hooks_write_rows_is_not_what_its_sql_says(hooks: Any, writes: bool) -> None:
    node = model("a", "select 1 as x", config={"materialized": "table", "post-hook": hooks})
    assert (more_than_sql(node) is not None) == writes
