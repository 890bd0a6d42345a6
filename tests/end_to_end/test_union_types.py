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


@pytest.mark.parametrize(("one", "other", "union"), CASES)
def test_no_query_decides_alone_what_a_column_holds(
    one: str, other: str, union: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    query = f"select x from r {union} select x from s {union} select null from r"
    tables = (
        f"create table r (id int primary key, x {one});\ncreate table s (id int primary key, x {other});\n"
    )
    Path("v.sql").write_text(f"{tables}create view v as {query};\n")
    source = "".join(f'[relations.{n}]\nsource = "f"\npath = "{n}.parquet"\n' for n in "rs")
    Path("w.toml").write_text(
        f'program = "v.sql"\n[store]\nkind = "lake"\npath = "lake"\n[sources.f]\nkind = "files"\n{source}'
        "[update]\neffective = true\n[engine]\nkind = 'duckdb'\n"
    )
    Path("u").mkdir()
    with duckdb.connect() as plain:
        for name, kind, value in (("r", one, TYPES[one]), ("s", other, TYPES[other])):
            plain.execute(f"create table {name} (id int, x {kind})")
            plain.execute(f"insert into {name} values (1, ?), (2, 7), (3, 7), (4, null)", [value])
            plain.execute(f"copy {name} to '{name}.parquet'")
        assert run("init", "w.toml").status == 0
        held(plain, query)
        plain.execute(f"insert into s values (5, 11), (6, {TYPES[other]})")
        plain.execute("copy (from s where id > 4) to 'u/s.insert.parquet'")
        plain.execute("copy s to 's.parquet'")
        done = run("maintain", "w.toml", "--update", "u", "--recompute", "--format", "json")
        assert done.status == 0, done.stderr
        if union == "union all":  # the other is decided by a search, on so few rows
            both = {one, other} <= {"int", "bigint"}
            assert (json.loads(done.stdout)["recomputed"] == ["v"]) is not both
        held(plain, query)


def held(plain: duckdb.DuckDBPyConnection, query: str) -> None:
    """That the view holds what the query gives."""
    rows = selfmaint.load("w.toml").query("select x from v")["x"].to_pylist()
    assert Counter(rows) == Counter(x for (x,) in plain.execute(query).fetchall())
