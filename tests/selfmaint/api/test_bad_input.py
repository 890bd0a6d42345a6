"""Input of the wrong form: a code for each, never another exception; and short words for what comes of good input."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import selfmaint
from datalog.diagnostics import ProgramError
from selfmaint.api.check import check
from selfmaint.api.file.dbt_manifest import read_dbt_manifest
from selfmaint.api.file.programs import catalog_of
from selfmaint.api.file.warehouse_file import read_warehouse_file
from selfmaint.api.update import Update
from selfmaint.api.warehouse import build
from selfmaint.audit.matrix import read_baseline
from selfmaint.conformance.cases import read_cases
from selfmaint.engine.memory import MemoryEngine
from selfmaint.errors import InputError
from tests.command_line import run

NONE: frozenset[Any] = frozenset()


def codes(error: InputError | ProgramError) -> set[str]:
    return {one.code.value for one in error.diagnostics}


@pytest.mark.parametrize(
    "rules",
    [
        "v(X) :- r@deleted(X).",
        "v@inserted(X) :- r(X).",
        "v(X) :- r(X), not s@known(X).",
        "v(X, count(*)) :- r@new(X, Y).",
    ],
)
def test_views_are_not_over_versions(rules: str) -> None:
    with pytest.raises(ProgramError) as caught:
        catalog_of(rules)
    assert codes(caught.value) == {"DL009"}


@pytest.mark.parametrize(
    "rules", ["v(X) :- r(X, Y) group ().", "v(sum(sum(X))) :- r(X).", "v(X) :- r(X) having X > 1."]
)
def test_rules_that_group_are_checked(rules: str) -> None:
    with pytest.raises(ProgramError) as caught:
        catalog_of(rules)
    assert codes(caught.value) == {"DL405"}


@pytest.mark.parametrize(
    "text",
    [
        "a = " + "[" * 3000 + "]" * 3000,
        ".".join("a" * 3000) + " = 1",
        "program = " + "9" * 5000,
        "a = " + "{a=" * 3000,
    ],
)
def test_warehouse_files_beyond_limits(text: str, tmp_path: Path) -> None:
    path = tmp_path / "w.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_warehouse_file(path)
    assert codes(caught.value) == {"SM101"}


MODEL = {
    "resource_type": "model",
    "name": "m",
    "config": {"materialized": "table"},
    "compiled_code": "select 1 as a",
}


@pytest.mark.parametrize(
    ("node", "where"),
    [
        ({**MODEL, "columns": [1]}, "nodes.m.columns"),
        ({**MODEL, "columns": {"a": None}}, "nodes.m.columns.a"),
        ({**MODEL, "columns": {"a": {"data_type": 3}}}, "nodes.m.columns.a.data_type"),
        ({**MODEL, "constraints": {"type": "unique"}}, "nodes.m.constraints"),
        (
            {**MODEL, "constraints": [{"type": "unique", "columns": [[1]]}]},
            "nodes.m.constraints[0].columns[0]",
        ),
        ({**MODEL, "depends_on": {"nodes": 3}}, "nodes.m.depends_on.nodes"),
        ({**MODEL, "name": 3}, "nodes.m.name"),
        ({"resource_type": "model"}, "the node `m`"),
        (7, "nodes.m"),
    ],
)
def test_manifests_of_another_form(node: object, where: str, tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps({"nodes": {"m": node}, "sources": {}}), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_dbt_manifest(path)
    assert codes(caught.value) == {"SM107"}
    assert where in caught.value.diagnostics[0].message


def test_a_case_has_a_name(tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    case = {
        "id": ["x"],
        "program": "v(X) :- r(X).",
        "relations": {"r": 1},
        "views": {"v": []},
        "expected": {},
    }
    path.write_text(json.dumps(case) + "\n", encoding="utf-8")
    with pytest.raises(InputError) as caught:
        list(read_cases(path))
    assert codes(caught.value) == {"SM101"}


@pytest.mark.parametrize("text", ["[" * 100_000, "9" * 5000])
def test_json_beyond_limits(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(text, encoding="utf-8")
    warehouse = build(".decl r(a: int) key(a). v(X) :- r(X).", {"v": NONE}, MemoryEngine())
    for read, code in (
        (read_dbt_manifest, "SM107"),
        (read_baseline, "SM701"),
        (lambda path: list(read_cases(path)), "SM101"),
        (lambda path: Update.from_feed(warehouse, path), "SM602"),
    ):
        with pytest.raises(InputError) as caught:
            read(path)
        assert codes(caught.value) == {code}


@pytest.mark.parametrize(
    "event",
    [
        {"id": 1, "x": 10**400, "_change_type": "insert", "_commit_version": 1},
        {"id": 1, "x": {}, "_change_type": "insert", "_commit_version": 1},
        {"id": 1, "x": 1.5, "_change_type": {}, "_commit_version": 1},
        {"schema": {"fields": [{"field": "after", "fields": [{"field": "x", "name": {}}]}]},
         "payload": {"op": "c", "before": None, "after": {"id": 1, "x": 1}, "source": {"table": "r"}}},
        {"schema": {"fields": [{"field": "after", "fields": [{"field": "x", "parameters": {"scale": {}}}]}]},
         "payload": {"op": "c", "before": None, "after": {"id": 1, "x": 1}, "source": {"table": "r"}}},
    ],
)  # fmt: skip
def test_values_in_feeds_that_are_none(event: object, tmp_path: Path) -> None:
    path = tmp_path / "feed.jsonl"
    path.write_text(json.dumps(event) + "\n", encoding="utf-8")
    warehouse = build(".decl r(id: int, x: double) key(id). v(I, X) :- r(I, X).", {"v": NONE}, MemoryEngine())
    with pytest.raises(InputError) as caught:
        Update.from_feed(warehouse, {"r": path})
    assert codes(caught.value) <= {"SM602", "SM601"}


def test_a_filter_on_what_the_finer_view_hides() -> None:
    rules = "v(X, Z) :- w(X), t(Z). w(X) :- r(X, Y), s(Y)."
    warehouse = build(rules, {"v": NONE, "w": NONE}, MemoryEngine())
    found = check(warehouse, Update({"r": frozenset({(1, 3)})}, effective=True))
    assert set(found) == {"v", "w"}


def test_a_verdict_is_shown_in_a_line() -> None:
    warehouse = build("v(X, Y, Z) :- r(X, Y), s(Y, Z).", {"v": NONE}, MemoryEngine())
    found = check(warehouse, Update({"s": frozenset((n, n) for n in range(9))}))
    assert repr(found["v"]).startswith("NotSelfMaintainable('v', (Witness(r(X, ")
    assert repr(found["v"]).endswith(", ...))")
    assert len(repr(found["v"])) < 200


def test_a_frame_with_a_value_that_its_column_cannot_hold(tmp_path: Path) -> None:
    """Also where a store asks which update this is before anything looks at its values."""
    (tmp_path / "v.sql").write_text(
        "CREATE TABLE r (id BIGINT PRIMARY KEY, n DECIMAL(12,3) NOT NULL);CREATE VIEW v AS SELECT id, n FROM r;",
        encoding="utf-8",
    )
    (tmp_path / "r.csv").write_text("id,n\n1,5.000\n", encoding="utf-8")
    toml = tmp_path / "w.toml"
    toml.write_text(
        'program = "v.sql"\n[store]\nkind = "lake"\npath = "lake"\n'
        '[sources.s]\nkind = "files"\n[relations.r]\nsource = "s"\npath = "r.csv"\n',
        encoding="utf-8",
    )
    selfmaint.init(toml)
    rows = pa.table({"id": [2], "n": pa.array([Decimal("5.1234")], pa.decimal128(20, 4))})
    with selfmaint.load(toml, engine="duckdb") as warehouse, pytest.raises(InputError, match=r"hold 5\.1234"):
        selfmaint.Update.from_frames(warehouse, inserted={"r": rows}, effective=True)


def not_made(folder: Path, views: str) -> str:
    """What `init` says of views over `r` that it cannot compute."""
    texts = {
        "views.sql": f"create table r (id int primary key, a string, n int, d date, x double);\n{views}",
        "w.toml": 'program = "views.sql"\n[store]\nkind = "lake"\npath = "lake"\n'
        '[engine]\nkind = "duckdb"\n[relations.r]\npath = "r.csv"\n',
        "r.csv": "id,a,n,d,x\n1,b,2,2025-02-01,0.5\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    ran = run("init", str(folder / "w.toml"))
    assert ran.status == 2
    assert not (folder / "lake").exists()
    return ran.stderr


def test_a_new_store_names_all_that_it_cannot_compute(tmp_path: Path) -> None:
    found = not_made(
        tmp_path,
        "create view days as select id, d - date'2025-01-01' as n from r;\n"
        "create view first_of as select distinct on (a) a, id from r order by a, n;\n"
        "create view month as select id, strftime(d, '%Y-%m') as m from r;\n",
    )
    for said in (
        "`month` cannot be recomputed",
        "Spark's is `date_format",
        "`datediff(a, b)`",
        "DISTINCT ON",
    ):
        assert said in found, found


def test_what_definitions_compute_is_looked_at_before_a_store_is_made(tmp_path: Path) -> None:
    found = not_made(
        tmp_path,
        "create view part as select id, substring(a, n) as p from r;\n"
        "create view shown as select id, cast(x as string) as s from r;\n"
        "create view total as select a, sum(n) as n from r group by a;\n",
    )
    assert "the view `part` is not run by DuckDB" in found
    assert "the view `shown` is not run by DuckDB" in found
    assert "`total`" not in found


def test_what_spark_does_not_have_is_named_of_all_views_before_any_engine_starts(tmp_path: Path) -> None:
    found = not_made(
        tmp_path,
        "create view month as select id, to_char(d, 'YYYY-MM') as m from r;\n"
        "create view seconds as select id, extract(epoch from d) as s from r;\n"
        "create view here as select id, d at time zone 'Europe/Berlin' as h from r;\n"
        "create view last_of as select distinct on (a) a, n from r order by a, n desc;\n",
    )
    for said in (
        "`date_format(d, 'yyyy-MM')`",
        "`unix_timestamp(d)`",
        "`from_utc_timestamp(time, 'zone')`",
        "`QUALIFY row_number() OVER (PARTITION BY a ORDER BY n DESC NULLS LAST) = 1`",
    ):
        assert said in found, found
    assert "use the Spark engine" not in found
