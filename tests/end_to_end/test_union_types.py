"""Unions whose queries give numbers of several types: their columns hold all of them. Oracle: plain DuckDB."""

from __future__ import annotations

import json
from collections import Counter
from decimal import Decimal
from pathlib import Path

import duckdb
import pytest

import selfmaint
from tests.command_line import run

TYPES = {"int": 2, "bigint": 3, "decimal(10,0)": 1, "decimal(9,2)": Decimal("0.25"), "double": 0.5}
PAIRS = [(one, other) for one in TYPES for other in TYPES if one != other]
CASES = [(*pair, "union all" if number % 3 else "union") for number, pair in enumerate(PAIRS)]


def test_no_query_decides_alone_what_a_column_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each pair of types has its two relations and its view; all are of one warehouse."""
    monkeypatch.chdir(tmp_path)
    queries, program, sources = {}, "", ""
    Path("u").mkdir()
    with duckdb.connect() as plain:
        for number, (one, other, union) in enumerate(CASES):
            r, s = f"r{number}", f"s{number}"
            queries[f"v{number}"] = (
                f"select x from {r} {union} select x from {s} {union} select null from {r}"
            )
            for letter, kind in (("r", one), ("s", other)):
                name = f"{letter}{number}"
                program += f"create table {name} (id int primary key, x {kind});\n"
                sources += f'[relations.{name}]\nsource = "f"\npath = "{name}.parquet"\n'
                plain.execute(f"create table {name} (id int, x {kind})")
                rows = f"insert into {name} values (1, ?), (2, 7), (3, 7), (4, null)"
                plain.execute(rows, [TYPES[kind]])
                plain.execute(f"copy {name} to '{name}.parquet'")
            program += f"create view v{number} as {queries[f'v{number}']};\n"
        Path("v.sql").write_text(program)
        Path("w.toml").write_text(
            'program = "v.sql"\n[store]\nkind = "lake"\npath = "lake"\n[sources.f]\nkind = "files"\n'
            f"{sources}[update]\neffective = true\n[engine]\nkind = 'duckdb'\n"
        )
        assert run("init", "w.toml").status == 0
        held(plain, queries)
        for number, (_, other, _) in enumerate(CASES):
            name = f"s{number}"
            plain.execute(f"insert into {name} values (5, 11), (6, {TYPES[other]})")
            plain.execute(f"copy (from {name} where id > 4) to 'u/{name}.insert.parquet'")
            plain.execute(f"copy {name} to '{name}.parquet'")
        done = run("maintain", "w.toml", "--update", "u", "--recompute", "--format", "json")
        assert done.status == 0, done.stderr
        recomputed = json.loads(done.stdout)["recomputed"]
        for number, (one, other, union) in enumerate(CASES):
            if union == "union all":  # the other is decided by a search, on so few rows
                assert f"v{number}" not in recomputed, (one, other)
        held(plain, queries)


def held(plain: duckdb.DuckDBPyConnection, queries: dict[str, str]) -> None:
    """That the views hold what the queries give."""
    with selfmaint.load("w.toml") as warehouse:
        for name, query in queries.items():
            rows = warehouse.query(f"select x from {name}")["x"].to_pylist()
            assert Counter(rows) == Counter(x for (x,) in plain.execute(query).fetchall()), (name, query)
