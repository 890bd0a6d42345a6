"""Views over views: determined where all that they read is, and computed from it without base rows."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from selfmaint import Update, build, init, load
from selfmaint.api.following.over_views import INEXACT, OPEN_ORDER
from selfmaint.audit.example import Unclear
from selfmaint.decide.verdict import SelfMaintainable, Undecided
from tests.command_line import run

PROGRAM = """
CREATE TABLE customer (id INT PRIMARY KEY, name STRING NOT NULL, region STRING NOT NULL);
CREATE TABLE sale (id INT PRIMARY KEY, customer INT NOT NULL REFERENCES customer, total DECIMAL(10, 2) NOT NULL);
CREATE VIEW by_customer AS SELECT customer, SUM(total) AS total, COUNT(*) AS n FROM sale GROUP BY customer;
CREATE VIEW best AS SELECT customer, total FROM by_customer ORDER BY total DESC, customer LIMIT 1;
CREATE VIEW any_best AS SELECT customer, total FROM by_customer ORDER BY total DESC LIMIT 1;
CREATE VIEW share AS SELECT MAX(total) - MIN(total) AS spread FROM by_customer;
CREATE VIEW of_best AS SELECT COUNT(DISTINCT total) AS n FROM best;
CREATE VIEW means AS SELECT customer, AVG(total) AS mean FROM sale GROUP BY customer;
CREATE VIEW regions AS SELECT c.region, AVG(s.total) AS mean FROM sale s JOIN customer c ON s.customer = c.id
  GROUP BY c.region;
"""
WAREHOUSE = """program = "views.sql"
[store]
kind = "lake"
path = "lake"
helpers = true
[sources.files]
kind = "files"
[relations.customer]
path = "customer.csv"
[relations.sale]
path = "sale.csv"
[update]
effective = true
"""
CUSTOMERS = "id,name,region\n1,ann,north\n2,bob,south\n"
SALES = "id,customer,total\n1,1,10.00\n2,2,11.00\n"
MORE = "3,2,1.00\n"


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    """A warehouse in a lake, and an update that its sources have had already."""
    for name, text in {"views.sql": PROGRAM, "w.toml": WAREHOUSE, "customer.csv": CUSTOMERS}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "sale.csv").write_text(SALES, encoding="utf-8")
    assert run("init", str(tmp_path / "w.toml")).status == 0
    (tmp_path / "sale.csv").write_text(SALES + MORE, encoding="utf-8")
    (tmp_path / "u").mkdir()
    (tmp_path / "u" / "sale.insert.csv").write_text("id,customer,total\n" + MORE, encoding="utf-8")
    return tmp_path / "w.toml"


def test_what_determined_views_determine_is_determined(warehouse: Path) -> None:
    with load(warehouse) as wh:
        verdicts = wh.check(Update.from_files(wh, warehouse.parent / "u"))
    for view in ("best", "share", "of_best", "means"):
        assert isinstance(verdicts[view], SelfMaintainable), view
    assert "it is computed from what `means__sums` will be" in verdicts["means"].because
    assert isinstance(verdicts["any_best"], Undecided)  # one of those with the largest total
    undecided = verdicts["regions"]  # nothing tells the region of customer 2
    assert isinstance(undecided, Undecided)
    assert undecided.reasons[0] == "its helper `regions__sums` is undecided"
    assert set(verdicts) == {"by_customer", "best", "any_best", "share", "of_best", "means", "regions"}


RANKED = """
CREATE VIEW ranks AS SELECT customer, RANK() OVER (ORDER BY total DESC) AS place,
  SUM(n) OVER (PARTITION BY total) AS others FROM by_customer;
CREATE VIEW running AS SELECT customer, SUM(n) OVER (ORDER BY total) AS until FROM by_customer;
CREATE VIEW numbers AS SELECT customer, ROW_NUMBER() OVER (ORDER BY total DESC) AS place FROM by_customer;
CREATE VIEW places AS SELECT customer, ROW_NUMBER() OVER (ORDER BY total DESC, customer) AS place FROM by_customer;
CREATE VIEW by_rows AS
  SELECT customer, SUM(n) OVER (ORDER BY total ROWS UNBOUNDED PRECEDING) AS until FROM by_customer;
"""


def test_windows_that_take_equal_rows_together_are_determined(warehouse: Path) -> None:
    (warehouse.parent / "views.sql").write_text(PROGRAM + RANKED, encoding="utf-8")
    shutil.rmtree(warehouse.parent / "lake")
    assert run("init", str(warehouse)).status == 0
    update = warehouse.parent / "u2"
    update.mkdir()
    (update / "sale.insert.csv").write_text("id,customer,total\n4,1,2.00\n", encoding="utf-8")
    with load(warehouse) as wh:
        change = Update.from_files(wh, update)
        verdicts = wh.check(change)
        assert {
            view: bool(verdicts[view]) for view in ("ranks", "places", "running", "numbers", "by_rows")
        } == {
            "ranks": True,
            "places": True,
            "running": True,
            "numbers": False,
            "by_rows": False,
        }
        for view in ("numbers", "by_rows", "any_best"):
            verdict = verdicts[view]
            assert isinstance(verdict, Undecided)
            assert OPEN_ORDER in verdict.reasons
        wh.apply(wh.maintain(change))
        found = {
            view: sorted(tuple(row.values()) for row in pa.table(wh.read(view)).to_pylist())
            for view in verdicts
        }
        assert found["ranks"] == [(1, 1, 4), (2, 1, 4)]  # 12.00 each, of two sales
        assert found["places"] == [(1, 1), (2, 2)]
        assert found["running"] == [(1, 4), (2, 4)]


MONTHLY = """
CREATE TABLE bill (id INT PRIMARY KEY, customer INT NOT NULL REFERENCES customer, day DATE NOT NULL,
  amount DECIMAL(10, 2) NOT NULL, weight DOUBLE NOT NULL);
CREATE VIEW stg_bill AS SELECT id, customer, day, amount, weight FROM bill WHERE amount > 0;
CREATE VIEW stg_customer AS SELECT id, upper(name) AS name, coalesce(region, 'none') AS region FROM customer;
CREATE VIEW months AS SELECT c.id, c.region, date_trunc('month', b.day) AS month, SUM(b.amount) AS amount,
  AVG(b.amount) AS mean, COUNT(DISTINCT b.day) AS days
  FROM stg_bill b LEFT JOIN stg_customer c ON c.id = b.customer GROUP BY c.id, c.region, date_trunc('month', b.day);
CREATE VIEW running AS SELECT id, month, SUM(amount) OVER (PARTITION BY id ORDER BY month) AS until,
  LAG(amount) OVER (PARTITION BY id ORDER BY month) AS last FROM months;
CREATE VIEW weights AS SELECT customer, COUNT(DISTINCT day) AS days, SUM(weight) AS weight
  FROM stg_bill GROUP BY customer;
"""


def test_types_and_keys_of_views_below_tell_of_those_above(warehouse: Path) -> None:
    folder = warehouse.parent
    (folder / "views.sql").write_text(PROGRAM + MONTHLY, encoding="utf-8")
    text = WAREHOUSE.replace("[update]", '[relations.bill]\npath = "bill.csv"\n[update]')
    warehouse.write_text(text, encoding="utf-8")
    bills = "id,customer,day,amount,weight\n1,1,2026-01-02,5.00,0.5\n2,2,2026-02-03,6.00,1.5\n"
    (folder / "bill.csv").write_text(bills, encoding="utf-8")
    shutil.rmtree(folder / "lake")
    assert run("init", str(warehouse)).status == 0
    (folder / "bill.csv").write_text(bills + "3,1,2026-01-04,7.00,2.5\n", encoding="utf-8")
    (folder / "u3").mkdir()
    (folder / "u3" / "bill.insert.csv").write_text(
        "id,customer,day,amount,weight\n3,1,2026-01-04,7.00,2.5\n", encoding="utf-8"
    )
    with load(warehouse) as wh:
        verdicts = wh.check(Update.from_files(wh, folder / "u3"))
    for view in ("months", "running", "weights"):
        verdict = verdicts[view]
        assert isinstance(verdict, SelfMaintainable), str(verdict)
        assert (INEXACT in verdict.remarks) is (view == "weights")
    explained = run("explain", str(warehouse), "running", "--update", str(folder / "u3"))
    assert "LAG(amount) OVER (PARTITION BY id ORDER BY month)" in explained.stdout
    done = run("maintain", str(warehouse), "--update", str(folder / "u3"), "--strict", "--verify")
    assert done.status == 0, done.stderr
    assert "verified: recomputing every view from its sources gives the same rows" in done.stdout
    counted = run("query", str(warehouse), "running", "--as-of", "u3", "--format", "json")
    assert json.loads(counted.stdout)["rows"]
    (folder / "bill.csv").write_text(bills + "3,1,2026-01-04,8.00,2.5\n", encoding="utf-8")
    (folder / "u4").mkdir()
    (folder / "u4" / "sale.insert.csv").write_text("id,customer,total\n4,1,2.00\n", encoding="utf-8")
    (folder / "sale.csv").write_text(SALES + MORE + "4,1,2.00\n", encoding="utf-8")
    wrong = run("maintain", str(warehouse), "--update", str(folder / "u4"), "--verify")
    assert wrong.status != 0
    assert "running" in wrong.stdout  # a view over views is held against the sources, too


def test_one_view_is_decided_with_what_it_reads(warehouse: Path) -> None:
    with load(warehouse) as wh:
        verdicts = wh.check(Update.from_files(wh, warehouse.parent / "u"), ["of_best"])
    assert list(verdicts) == ["of_best"]
    assert verdicts


def test_no_base_row_is_read_for_them(warehouse: Path) -> None:
    update = ("--update", str(warehouse.parent / "u"), "--format", "json")
    done = json.loads(run("maintain", str(warehouse), *update, "--verify").stdout)
    assert done["verified"]
    assert {read["relation"] for read in done["reads"]} == {"customer"}  # for the regions
    shown = {one["view"]: (one["gained"], one["lost"]) for one in done["changes"]}
    assert shown == {
        **dict.fromkeys(("by_customer", "best", "any_best", "share", "means", "regions"), (1, 1)),
        "of_best": (0, 0),
    }
    assert not any("__sums" in one["name"] for one in done["written"])


def test_the_audit_says_of_them_what_it_says_of_what_they_read(warehouse: Path) -> None:
    with load(warehouse) as wh:
        found = wh.audit(advise=False).audit
        alone = wh.audit(views=["of_best"], advise=False).audit
    words = found.words()
    for view in ("best", "share", "of_best", "means"):
        assert {words[view, "sale", kind] for kind in ("insert", "delete", "update", "any")} == {"always"}, (
            view
        )
    assert words["regions", "customer", "insert"] == words["regions__sums", "customer", "insert"] == "always"
    assert words["regions", "sale", "insert"] == "undecided"
    (regions,) = (one for one in found.views if one.view.name == "regions")
    assert regions.anything.any == Unclear(
        ("it is computed from `regions__sums`, and determined where that is",)
    )
    assert {name for name, _, _ in alone.words()} == {"of_best"}
    assert alone.words()["of_best", "sale", "any"] == "always"


def test_it_is_said_that_duckdb_does_not_run_a_query_that_others_tell() -> None:
    program = """create table r (id int not null primary key, k int, b int);
        create view c as select id, k, b from r;
        create view m as select id from c where ((k, b) in (select b, k from c) or k = 1);
        create view n as select id from c where k in (select b from c) or k = 1;"""
    rows = pa.table({name: pa.array([1], pa.int32()) for name in ("id", "k", "b")})
    contents = {"c": rows, "m": rows.select(["id"]), "n": rows.select(["id"])}
    warehouse = build(program, contents, engine="duckdb", effective=True)
    more = pa.table({name: pa.array([2], pa.int32()) for name in ("id", "k", "b")})
    verdicts = warehouse.check(Update.from_frames(warehouse, {"r": more}))
    assert all(verdicts.values())
    assert "run by Spark alone: DuckDB is not known to compute the same for IN" in verdicts["m"].because
    assert "Spark" not in verdicts["n"].because


def test_a_view_that_stays_as_it_is_needs_no_source_to_be_computed_from() -> None:
    program = f"""{PROGRAM[: PROGRAM.index("CREATE VIEW")]}
    CREATE VIEW places AS
      SELECT id, region, ROW_NUMBER() OVER (PARTITION BY region ORDER BY id) AS place FROM customer;
    CREATE VIEW counts AS SELECT customer, COUNT(*) AS n FROM sale GROUP BY customer;
    CREATE VIEW paired AS SELECT p.region, SUM(c.n) AS n FROM places p LEFT JOIN counts c ON p.id = c.customer
      GROUP BY ROLLUP (p.region);
    """
    stored = {
        "places": pa.table(
            {"id": pa.array([1, 2], pa.int32()), "region": ["north", "south"], "place": [1, 1]}
        ),
        "counts": pa.table({"customer": pa.array([1, 2], pa.int32()), "n": [1, 1]}),
        "paired": pa.table({"region": ["north", "south", None], "n": [1, 1, 2]}),
    }
    with build(program, stored, engine="duckdb", effective=True) as wh:
        exact = pa.schema({"id": pa.int32(), "customer": pa.int32(), "total": pa.decimal128(10, 2)})
        sales = pa.table({"id": [3], "customer": [2], "total": [Decimal(1)]}, schema=exact)
        done = wh.maintain(Update.from_frames(wh, {"sale": sales}), strict=True)
    assert done.verdicts
    assert sorted(pa.table(done.deltas["paired"].gained).to_pylist(), key=str) == [
        {"region": "south", "n": 2},
        {"region": None, "n": 3},
    ]


def test_what_is_computed_from_other_views_and_a_table_is_verified(tmp_path: Path) -> None:
    (tmp_path / "views.sql").write_text(
        "create table r (a int not null primary key, b int); create table s (x int not null primary key, y int);\n"
        "create view w as select b, median(a) as m from r group by b;\n"
        "create view mart as select w.b, w.m, s.y from w join s on s.x = w.b;\n"
        "create view alone as select median(b) as m from r;\n",
        encoding="utf-8",
    )
    files = {
        "r": "a,b\n1,1\n2,1\n3,2\n4,2\n",
        "s": "x,y\n1,5\n2,6\n",
        "w": "b,m\n1,1.5\n2,3.0\n",
        "mart": "b,m,y\n1,1.5,5\n2,3.0,6\n",
        "alone": "m\n1.0\n",
        "up/r.insert": "a,b\n4,2\n",
    }
    (tmp_path / "up").mkdir()
    for name, text in files.items():
        (tmp_path / f"{name}.csv").write_text(text, encoding="utf-8")
    views = "".join(f'[views.{name}]\npath = "{name}.csv"\n' for name in ("w", "mart", "alone"))
    bases = "".join(f'[relations.{name}]\npath = "{name}.csv"\n' for name in "rs")
    settings = f'program = "views.sql"\n[update]\neffective = true\n{views}{bases}'
    (tmp_path / "w.toml").write_text(settings, encoding="utf-8")
    with load(tmp_path / "w.toml", engine="duckdb") as warehouse:
        update = Update.from_files(warehouse, tmp_path / "up")
        found = warehouse.maintain(update, recompute=True, verify=True, most_keys=0)
    assert set(found.unverified) == {"alone", "w"}
    assert "mart" in found.recomputed
    assert found.differences == ()


TIES = "select id, g, row_number() over (partition by g order by d) as n from r"
SUMS = "select g, sum(x / 100) as t, count(distinct x) as n from r group by g"


@pytest.mark.parametrize("wrong", [False, True])
def test_other_results_and_last_digits_are_no_differences(tmp_path: Path, wrong: bool) -> None:
    """Of queries with ties, over which a view is held against them, and of sums in a view that is not decided."""
    (tmp_path / "views.sql").write_text(
        "create table r (id int not null primary key, g int not null, d int, x int);\n"
        f"create view ties as {TIES};\ncreate view sums as {SUMS};\n"
        "create view above as select id, n from ties where n < 3;\n",
        encoding="utf-8",
    )
    old = [(i, i % 3, i % 2, i * 7 % 1000) for i in range(60)]
    new = [(100 + i, 0, i % 2, i * 13) for i in range(6)]
    write_csv(tmp_path / "r.csv", old)
    lines = 'program = "views.sql"\n[store]\nkind = "lake"\npath = "lake"\n[relations.r]\npath = "r.csv"\n'
    (tmp_path / "w.toml").write_text(lines + "[update]\neffective = true\n", encoding="utf-8")
    init(tmp_path / "w.toml")
    write_csv(
        tmp_path / "r.csv", [*reversed(new), *reversed([row for row in old if not wrong or row[0] != 1])]
    )
    with load(tmp_path / "w.toml", engine="duckdb") as warehouse:
        frame = pa.table(list(zip(*new, strict=True)), ["id", "g", "d", "x"])
        update = Update.from_frames(warehouse, {"r": frame})
        found = warehouse.maintain(update, verify=True)
    names = {one.view for one in found.differences or ()}
    assert names == ({"sums", "ties"} if wrong else set())  # no tie makes a row vanish
    assert set(found.unverified) <= {"ties", "above"}


@pytest.mark.parametrize(
    ("old", "new"),
    [(math.inf, 5.0), (5.0, math.inf), (math.nan, 5.0), (5.0, math.nan), (-math.inf, math.inf)],
)
def test_nothing_is_near_an_infinity(tmp_path: Path, old: float, new: float) -> None:
    (tmp_path / "views.sql").write_text(
        "create table p (id int not null primary key, c int not null, f double, g double);"
        "create view sums as select c, count(*) as n, sum(f) as sf, sum(g) as sg from p group by c;"
    )
    lines = 'program = "views.sql"\ninexact_sums = true\n[store]\nkind = "lake"\npath = "lake"\n'
    (tmp_path / "w.toml").write_text(
        lines + '[relations.p]\npath = "p.parquet"\n[update]\neffective = true\n'
    )

    def write(value: float, *more: tuple[int, int, float, float]) -> None:
        rows = [(1, 1, value, math.inf), (2, 2, 0.1, 0.1), (3, 2, 0.7, 0.2), *more]
        columns = [pa.array(one, kind) for one, kind in zip(zip(*rows, strict=True), KINDS, strict=True)]
        pq.write_table(pa.table(columns, ["id", "c", "f", "g"]), tmp_path / "p.parquet")

    write(old)
    init(tmp_path / "w.toml")
    for value in (old, new):
        write(value, (4, 2, 0.3, 0.5))
        with load(tmp_path / "w.toml", engine="duckdb") as warehouse:
            frame = pa.table(
                [pa.array([v], k) for v, k in zip((4, 2, 0.3, 0.5), KINDS, strict=True)], list("_" * 4)
            )
            update = Update.from_frames(warehouse, {"p": frame.rename_columns(["id", "c", "f", "g"])})
            found = warehouse.maintain(update, verify=True)
        assert [one.view for one in found.differences or ()] == ([] if value is old else ["sums"])


KINDS = (pa.int32(), pa.int32(), pa.float64(), pa.float64())


def write_csv(path: Path, rows: Sequence[tuple[int, ...]]) -> None:
    path.write_text("id,g,d,x\n" + "".join(f"{','.join(map(str, row))}\n" for row in rows), encoding="utf-8")
