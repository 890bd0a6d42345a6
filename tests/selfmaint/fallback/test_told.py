"""Views of any class over tables that other views tell whole, alone or together: followed though these are gone."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from pathlib import Path

import duckdb
import pytest

import selfmaint
from datalog.model import Row
from selfmaint.api.following.over_views import INEXACT
from selfmaint.api.update import Update
from selfmaint.api.warehouse import build
from selfmaint.decide.verdict import SelfMaintainable
from selfmaint.engine.memory import MemoryEngine
from tests.command_line import run
from tests.effort import effort

TABLES = """
CREATE TABLE product (id BIGINT PRIMARY KEY, name STRING NOT NULL, weight BIGINT);
CREATE TABLE line (id BIGINT PRIMARY KEY, product BIGINT NOT NULL REFERENCES product(id), pieces BIGINT, place BIGINT);
"""
COPIES = """
CREATE VIEW lines AS SELECT l.*, p.name FROM line l JOIN product p ON l.product = p.id;
CREATE VIEW products AS SELECT * FROM product;
"""
PARTS = """
CREATE VIEW line_products AS SELECT l.id, l.product, p.name FROM line l JOIN product p ON l.product = p.id;
CREATE VIEW products AS SELECT * FROM product;
CREATE VIEW line_pieces AS SELECT id, pieces, place FROM line;
"""
BRANCHES = """
CREATE VIEW line_products AS SELECT l.id, l.product, p.name FROM line l LEFT JOIN product p ON l.place = p.id;
CREATE VIEW products AS SELECT * FROM product;
CREATE VIEW numbers AS SELECT id AS line, 'pieces' AS what, pieces AS n FROM line
  UNION ALL SELECT id, 'place', place FROM line;
"""
VIEWS = {
    "once": "SELECT product, count(DISTINCT pieces) AS n, count(DISTINCT place) AS m FROM line GROUP BY product",
    "by_place": "SELECT place, count(DISTINCT product) AS n, sum(pieces) AS s FROM line GROUP BY place",
    "named": "SELECT p.name, count(DISTINCT l.place) AS n FROM line l JOIN product p ON l.product = p.id "
    "GROUP BY p.name",
    "either": "SELECT l.id, p.name, p.weight FROM line l FULL JOIN product p ON l.product = p.id",
    "share": "SELECT id, pieces, sum(pieces) OVER (PARTITION BY product) AS whole FROM line",
    "newest": "SELECT id, pieces FROM (SELECT *, row_number() OVER "
    "(PARTITION BY product ORDER BY pieces DESC NULLS LAST, id) AS n FROM line) WHERE n = 1",
    "before": "SELECT id, lag(pieces) OVER (PARTITION BY place ORDER BY id) AS p FROM line",
    "first": "SELECT id, pieces FROM line ORDER BY pieces NULLS FIRST, id LIMIT 3",
    "rolled": "SELECT product, id, sum(pieces) AS s FROM line GROUP BY ROLLUP (product, id)",
    "wide": "SELECT p.id, (SELECT max(pieces) FROM line l WHERE l.product = p.id) AS most FROM product p",
}
TOML = """
program = "shop.sql"
[store]
kind = "lake"
path = "lake"
[sources.shop]
kind = "files"
[relations.product]
source = "shop"
path = "base/product.parquet"
[relations.line]
source = "shop"
path = "base/line.parquet"
[update]
effective = true
"""


def some_lines(draw: random.Random, ids: range) -> list[tuple[int, int, int | None, int | None]]:
    return [(i, draw.randrange(6), draw.choice([None, 1, 2, 3]), draw.choice([None, 1, 2])) for i in ids]


@pytest.mark.parametrize(
    ("copies", "told_by", "options", "steps"),
    [
        (COPIES, "`lines`, which tells", [], effort(2, 12)),
        (PARTS, "`line_products` and `line_pieces`, which together tell", ["--strict"], effort(2, 12)),
        (BRANCHES, "`numbers` and `line_products`, which together tell", ["--strict"], effort(2, 12)),
    ],
)
def test_views_follow_though_the_tables_are_gone(
    tmp_path: Path, copies: str, told_by: str, options: list[str], steps: int
) -> None:
    draw = random.Random(5)
    base = duckdb.connect()
    base.sql(TABLES.replace("STRING", "VARCHAR"))
    base.sql("INSERT INTO product SELECT i, 'product ' || i % 4, i FROM range(6) r(i)")
    base.executemany("INSERT INTO line VALUES (?, ?, ?, ?)", some_lines(draw, range(40)))
    (tmp_path / "base").mkdir()
    for name in ("product", "line"):
        base.table(name).write_parquet(str(tmp_path / "base" / f"{name}.parquet"))
    views = "".join(f"CREATE VIEW {name} AS {query};\n" for name, query in VIEWS.items())
    (tmp_path / "shop.sql").write_text(TABLES + copies + views, encoding="utf-8")
    toml = tmp_path / "warehouse.toml"
    toml.write_text(TOML, encoding="utf-8")
    assert run("init", str(toml)).status == 0
    shutil.rmtree(tmp_path / "base")
    for step in range(steps):
        update = a_change(base, draw, tmp_path / f"update{step}", 100 * (step + 1))
        assert step or run("check", str(toml), "--update", str(update)).status == 0
        done = run("maintain", str(toml), "--update", str(update), *options)
        assert done.status == 0, done.stderr
        assert f"`line` was read from {told_by} all of its rows" in done.stdout
        assert "no base relation was read" in done.stdout
        assert "recomputed" not in done.stdout
        with selfmaint.load(toml, engine="duckdb") as warehouse:
            for name, query in VIEWS.items():
                stored = warehouse.query(f"SELECT * FROM {name}").to_pylist()
                assert Counter(tuple(row.values()) for row in stored) == Counter(
                    base.sql(query).fetchall()
                ), name


def a_change(base: duckdb.DuckDBPyConnection, draw: random.Random, folder: Path, first: int) -> Path:
    """Lines that come and go, a product that is named anew, and one more; done to the tables, too."""
    folder.mkdir()
    known = [row[0] for row in base.sql("SELECT id FROM line").fetchall()]
    gone = draw.sample(known, 5)
    product = draw.randrange(6)
    for name, rows in {
        "line.delete": f"FROM line WHERE id IN {tuple(gone)}",
        "product.delete": f"FROM product WHERE id = {product}",
        "product.insert": f"SELECT id, 'named {first}' AS name, weight FROM product WHERE id = {product} "
        f"UNION ALL SELECT {first}, 'new', NULL",
    }.items():
        base.sql(rows).write_parquet(str(folder / f"{name}.parquet"))
    base.sql("CREATE OR REPLACE TEMP TABLE more AS FROM line LIMIT 0")
    base.executemany("INSERT INTO more VALUES (?, ?, ?, ?)", some_lines(draw, range(first, first + 6)))
    base.table("more").write_parquet(str(folder / "line.insert.parquet"))
    base.sql(f"DELETE FROM line WHERE id IN {tuple(gone)}")
    base.sql("INSERT INTO line FROM more")
    base.sql(f"UPDATE product SET name = 'named {first}' WHERE id = {product}")
    base.sql(f"INSERT INTO product VALUES ({first}, 'new', NULL)")
    return folder


@pytest.mark.parametrize(("shown", "told"), [("l.*", ("line",)), ("l.id, l.product, l.pieces", None)])
def test_a_verdict_says_what_a_view_is_computed_from(shown: str, told: tuple[str, ...] | None) -> None:
    program = TABLES + COPIES.replace("l.*", shown) + f"CREATE VIEW once AS {VIEWS['once']};"
    row: Row = (1, 1, 2, 1, "a") if told else (1, 1, 2, "a")
    stored = {
        "lines": frozenset({row}),
        "products": frozenset({(1, "a", 7)}),
    }
    contents: dict[str, frozenset[Row]] = {**stored, "once": frozenset({(1, 1, 1)})}
    more = Update(inserted={"line": frozenset[Row]({(2, 1, 3, 1)})}, effective=True)
    verdict = build(program, contents, MemoryEngine()).check(more)["once"]
    assert (verdict.told if isinstance(verdict, SelfMaintainable) else None) == told


def test_sums_of_doubles_are_said_to_depend_on_the_order() -> None:
    program = """create table m (id int primary key, g int not null, x double not null);
    create view every as select * from m;
    create view v as select g, count(distinct x) as n, sum(x) as s from m group by g;
    """
    contents = {"every": frozenset[Row]({(1, 1, 0.5)}), "v": frozenset[Row]({(1, 1, 0.5)})}
    more = Update(inserted={"m": frozenset[Row]({(2, 1, 0.25)})}, effective=True)
    verdict = build(program, contents, MemoryEngine()).check(more)["v"]
    assert isinstance(verdict, SelfMaintainable)
    assert verdict.told == ("m",)
    assert verdict.remarks == (INEXACT,)


def test_what_a_view_shows_of_a_wider_type_is_read_as_declared(tmp_path: Path) -> None:
    """`CAST(1.5000 AS STRING)` is another text than that of 1.50, which the table holds."""
    (tmp_path / "shop.sql").write_text(
        "CREATE TABLE rate (y DECIMAL(12, 4) PRIMARY KEY, name STRING NOT NULL);\n"
        "CREATE TABLE sale (id BIGINT PRIMARY KEY, x DECIMAL(10, 2) NOT NULL REFERENCES rate(y), z BIGINT);\n"
        "CREATE VIEW rates AS SELECT s.id, r.y AS x, r.name FROM sale s JOIN rate r ON s.x = r.y;\n"
        "CREATE VIEW places AS SELECT id, z FROM sale;\n"
        "CREATE VIEW texts AS SELECT id, CAST(x AS STRING) AS t, row_number() OVER (PARTITION BY z ORDER BY id) AS n "
        "FROM sale;\n",
        encoding="utf-8",
    )
    toml = tmp_path / "warehouse.toml"
    head, _, tail = TOML.partition("[relations.product]")
    sources = '[relations.rate]\npath = "rate.csv"\n[relations.sale]\npath = "sale.csv"\n'
    toml.write_text(head + sources + tail[tail.index("[update]") :], encoding="utf-8")
    (tmp_path / "rate.csv").write_text("y,name\n1.5000,low\n", encoding="utf-8")
    (tmp_path / "sale.csv").write_text("id,x,z\n1,1.50,7\n2,1.50,7\n", encoding="utf-8")
    assert run("init", str(toml)).status == 0
    for name in ("rate", "sale"):
        (tmp_path / f"{name}.csv").unlink()
    (tmp_path / "update").mkdir()
    (tmp_path / "update" / "sale.delete.csv").write_text("id,x,z\n1,1.50,7\n", encoding="utf-8")
    done = run("maintain", str(toml), "--update", str(tmp_path / "update"), "--strict")
    assert done.status == 0, done.stderr
    with selfmaint.load(toml, engine="duckdb") as warehouse:
        assert warehouse.query("SELECT id, t, n FROM texts").to_pylist() == [{"id": 2, "t": "1.50", "n": 1}]
