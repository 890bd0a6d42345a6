"""Views that are known by their text, kept in files without types, or with other types than their queries give.

Oracle: the rows that their queries give over the tables after the update, written out by hand.
"""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import selfmaint
from tests.command_line import run

PROGRAM = """
CREATE TABLE o (id BIGINT NOT NULL PRIMARY KEY, c BIGINT NOT NULL, x DECIMAL(20,2) NOT NULL, t TIMESTAMP);
CREATE TABLE c (id BIGINT NOT NULL PRIMARY KEY, n STRING NOT NULL);
CREATE VIEW oc AS SELECT * FROM o;
CREATE VIEW u AS SELECT c, id, x, t, rank() OVER (PARTITION BY c ORDER BY x, id) AS n FROM o;
CREATE VIEW v AS SELECT c, MAX(x) AS m, COUNT(DISTINCT n) AS k FROM u GROUP BY c;
CREATE VIEW l AS SELECT o.id, o.x, c.id AS c, c.n FROM o LEFT JOIN c ON o.c = c.id;
"""
BEFORE = {
    "oc": "id,c,x,t\n1,1,9.50,2026-01-01T10:00:00Z\n3,2,123456789012345678.03,\n",
    "u": "c,id,x,t,n\n1,1,9.50,2026-01-01T10:00:00Z,1\n2,3,123456789012345678.03,,1\n",
    "v": "c,m,k\n1,9.50,1\n2,123456789012345678.03,1\n",
    "l": "id,x,c,n\n1,9.50,1,Ann\n3,123456789012345678.03,2,Bob\n",
}
INSERTED = "id,c,x,t\n2,1,10.00,2026-01-01T11:00:00Z\n4,2,123456789012345678.05,\n"
AFTER = {
    "v": {("1", "10.00", "2"), ("2", "123456789012345678.05", "2")},
    "l": {
        ("1", "9.50", "1", "Ann"),
        ("2", "10.00", "1", "Ann"),
        ("3", "123456789012345678.03", "2", "Bob"),
        ("4", "123456789012345678.05", "2", "Bob"),
    },
}
KINDS = {
    "id": "bigint",
    "c": "bigint",
    "x": "decimal(20,2)",
    "t": "timestamptz",
    "n": "bigint",
    "m": "decimal(20,2)",
}


def warehouse(folder: Path, kind: str, of_u: dict[str, str] | None = None) -> Path:
    """Its file; its views and an update stand beside it, in files of a kind; `u` has columns of other types."""
    (folder / "program.sql").write_text(PROGRAM, encoding="utf-8")
    (folder / "up").mkdir()
    (folder / "up" / "o.insert.csv").write_text(INSERTED, encoding="utf-8")
    entries = []
    with duckdb.connect() as database:
        for name, text in BEFORE.items():
            (folder / f"{name}.csv").write_text(text, encoding="utf-8")
            names = text.partition("\n")[0].split(",")
            kinds = {
                **KINDS,
                "k": "bigint",
                **({"n": "varchar"} if name == "l" else {}),
                **(of_u if name == "u" and of_u else {}),
            }
            items = ", ".join(f"try_cast({n} as {kinds[n]}) as {n}" for n in names)
            rows = f"select {items} from read_csv('{folder / name}.csv', all_varchar = true)"
            if kind != "csv":
                how = "(format json)" if kind == "jsonl" else ""
                database.execute("set timezone = 'UTC'").execute(
                    f"copy ({rows}) to '{folder / name}.{kind}' {how}"
                )
            entries.append(f'[views.{name}]\npath = "{name}.{kind}"\n')
    file = folder / "warehouse.toml"
    more = '[engine]\nkind = "duckdb"\n[update]\neffective = true\n'
    file.write_text(f'program = "program.sql"\n{more}{"".join(entries)}', encoding="utf-8")
    return file


def stored(file: Path, name: str, kind: str) -> set[tuple[str, ...]]:
    """A view's rows, as texts."""
    place = file.parent / f"{name}.{kind}"
    parts = sorted(place.rglob(f"*.{kind}")) if place.is_dir() else [place]
    if kind == "parquet":
        with duckdb.connect() as database:
            rows = database.read_parquet([*map(str, parts)]).fetchall()
        return {tuple(map(str, row)) for row in rows}
    lines = [line for part in parts for line in part.read_text(encoding="utf-8").splitlines()]
    if kind == "csv":
        return {tuple(line.split(",")) for line in lines if line != lines[0]}
    return {tuple(map(str, json.loads(line, parse_float=Decimal).values())) for line in lines}


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_values_are_those_of_the_queries(kind: str, tmp_path: Path) -> None:
    file = warehouse(tmp_path, kind)
    checked = json.loads(run("check", str(file), "--update", str(tmp_path / "up"), "--format", "json").stdout)
    assert {one["view"]: one["verdict"] for one in checked["verdicts"]} == dict.fromkeys(BEFORE, "yes")
    done = run("maintain", str(file), "--update", str(tmp_path / "up"), "--strict")
    assert done.status == 0, done.stderr
    for name, rows in AFTER.items():
        assert stored(file, name, kind) == rows


@pytest.mark.parametrize("kind", ["varchar", "double", "decimal(20,3)"])
def test_rows_of_other_types_are_no_evidence(kind: str, tmp_path: Path) -> None:
    file = warehouse(tmp_path, "parquet", {"x": kind})
    before = stored(file, "v", "parquet")
    for command in ("check", "maintain"):
        done = run(command, str(file), "--update", str(tmp_path / "up"))
        assert done.status == 2
        assert "SM104" in done.stderr
        assert "`v` reads `u`, which is not stored as its query gives it: its column `x`" in done.stderr
    assert stored(file, "v", "parquet") == before


WIDE = """
CREATE TABLE t (k INT NOT NULL PRIMARY KEY, p INT NOT NULL);
CREATE TABLE s (k INT NOT NULL PRIMARY KEY, d INT NOT NULL);
CREATE VIEW u AS SELECT k, p, row_number() OVER (ORDER BY k) AS n FROM t;
CREATE VIEW s2 AS SELECT k, d FROM s;
CREATE VIEW w AS SELECT u.k, u.p / 3 AS x, q.d FROM u JOIN s2 q ON u.k = q.k;
"""


def test_what_is_computed_has_the_digits_of_the_types_of_queries() -> None:
    """A third of a decimal has six digits, a third of an int those of a double."""
    int_, wide = pa.int32(), pa.decimal128(20, 0)
    u = pa.table({"k": pa.array([1, 2], int_), "p": pa.array([1, 2], wide), "n": pa.array([1, 2], int_)})
    made: Any = selfmaint.build(
        WIDE,
        {
            "u": u,
            "s2": pa.table({"k": pa.array([1], int_), "d": pa.array([5], int_)}),
            "w": pa.table({"k": pa.array([1], int_), "x": [1 / 3], "d": pa.array([5], int_)}),
        },
        engine="duckdb",
        effective=True,
    )
    given = selfmaint.Update.from_frames(
        made, {"s": pa.table({"k": pa.array([2], int_), "d": pa.array([6], int_)})}
    )
    assert made.check(given)["w"]
    found = made.maintain(given, strict=True).deltas["w"]
    assert pa.table(found.gained).to_pylist() == [{"k": 2, "x": 2 / 3, "d": 6}]
    assert pa.table(found.lost).num_rows == 0


def test_a_store_is_not_filled_from_rows_of_other_types(tmp_path: Path) -> None:
    (tmp_path / "p.sql").write_text(WIDE, encoding="utf-8")
    with duckdb.connect() as database:
        for name, rows in (("u", "1::int as k, '9' as p, 1::int as n"), ("s", "1::int as k, 5::int as d")):
            database.sql(f"select {rows}").to_parquet(str(tmp_path / f"{name}.parquet"))
    (tmp_path / "w.toml").write_text(
        'program = "p.sql"\n[engine]\nkind = "duckdb"\n[store]\nkind = "lake"\npath = "lake"\n'
        '[relations.s]\npath = "s.parquet"\n',
        encoding="utf-8",
    )
    done = run("init", str(tmp_path / "w.toml"), "--from", f"u={tmp_path / 'u.parquet'}")
    assert done.status == 2
    assert "its column `p` is stored as string and not as int" in done.stderr
    assert not (tmp_path / "lake").exists()
