"""The command line end to end: views in Parquet, base relations in a real PostgreSQL.

Oracle: the views recomputed by hand from the base rows after each update, and `--verify`.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from psycopg import sql

import selfmaint
from tests.command_line import Ran, run, snapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROGRAM = """\
.decl r(a: int not null, b: int not null).
.decl s(b: int not null, c: int not null).
.decl t(c: int not null).
v1(X, Y, Z) :- r(X, Y), s(Y, Z), t(Z).
v2(Y, Z) :- s(Y, Z).
"""
COLUMNS = {"r": ["a", "b"], "s": ["b", "c"], "t": ["c"]}
BASE: Mapping[str, set[tuple[int, ...]]] = {
    "r": {(10, 1), (11, 7)},
    "s": {(1, 1), (2, 2), (2, 3)},
    "t": {(1,), (2,)},
}
SECRET = "hunter2"  # noqa: S105 - of nobody

Rows = set[tuple[int, ...]]


class Shop:
    """A warehouse's folder, and the base relations' schema in PostgreSQL."""

    def __init__(self, folder: Path, server: str, engine: str) -> None:
        self.folder = folder
        self.engine = engine
        self.toml = folder / "warehouse.toml"
        self.server = server
        self.schema = f"shop_{uuid.uuid4().hex[:8]}"
        self.base = {name: set(rows) for name, rows in BASE.items()}
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(self.schema)))
            for name, columns in COLUMNS.items():
                listed = sql.SQL(", ").join(
                    sql.SQL("{} integer NOT NULL").format(sql.Identifier(c)) for c in columns
                )
                connection.execute(sql.SQL("CREATE TABLE {} ({})").format(self.table(name), listed))
        self.sync()
        (folder / "views.dl").write_text(PROGRAM, encoding="utf-8")
        self.write_toml()
        write(folder / "views" / "v1" / "part-0.parquet", ["x", "y", "z"], self.v1())
        write(folder / "views" / "v2" / "part-0.parquet", ["y", "z"], self.base["s"])

    def write_toml(self, more: str = "") -> None:
        relations = "".join(
            f'[relations.{name}]\nsource = "ops"\ntable = "{self.schema}.{name}"\n' for name in COLUMNS
        )
        views = "".join(f'[views.{name}]\npath = "views/{name}"\n' for name in ("v1", "v2"))
        source = '[sources.ops]\nkind = "postgres"\nurl_env = "OPS_URL"\n'
        self.toml.write_text(
            f'program = "views.dl"\nengine.kind = "{self.engine}"\n{views}{source}{relations}{more}',
            encoding="utf-8",
        )

    def table(self, name: str) -> sql.Identifier:
        return sql.Identifier(self.schema, name)

    def v1(self) -> Rows:
        """The definition of v1, by hand."""
        base = self.base
        return {
            (x, y, z)
            for x, y in base["r"]
            for y2, z in base["s"]
            if y == y2
            for (z2,) in base["t"]
            if z == z2
        }

    def change(
        self, name: str, *, inserted: Mapping[str, Rows] = {}, deleted: Mapping[str, Rows] = {}
    ) -> str:
        """An update: its directory, and the base relations moved to the state after it."""
        folder = self.folder / name
        folder.mkdir()
        for part, changes in (("insert", inserted), ("delete", deleted)):
            for relation, rows in changes.items():
                write(folder / f"{relation}.{part}.parquet", COLUMNS[relation], rows)
        for relation, rows in deleted.items():
            self.base[relation] -= rows
        for relation, rows in inserted.items():
            self.base[relation] |= rows
        self.sync()
        return str(folder)

    def sync(self) -> None:
        with psycopg.connect(self.server, autocommit=True) as connection:
            for name, rows in self.base.items():
                connection.execute(sql.SQL("TRUNCATE {}").format(self.table(name)))
                if rows:
                    marks = sql.SQL(", ").join(sql.Placeholder() * len(COLUMNS[name]))
                    query = sql.SQL("INSERT INTO {} VALUES ({})").format(self.table(name), marks)
                    with connection.cursor() as cursor:
                        cursor.executemany(query, sorted(rows))

    def run(self, command: str, update: str, *more: str) -> tuple[Ran, Any]:
        ran = run(command, str(self.toml), "--update", update, "--format", "json", *more)
        return ran, json.loads(ran.stdout) if ran.stdout else None

    def stored(self, view: str) -> Rows:
        return rows_of(self.folder / "views" / view)


def write(path: Path, names: list[str], rows: Iterable[tuple[int, ...]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = [pa.array([row[i] for row in sorted(rows)], pa.int32()) for i in range(len(names))]
    pq.write_table(pa.Table.from_arrays(columns, names=names), path)


def rows_of(folder: Path) -> Rows:
    return {tuple(row.values()) for row in pq.read_table(folder).to_pylist()}


@pytest.fixture
def engine(request: pytest.FixtureRequest) -> str:
    name: str = getattr(request, "param", "duckdb")
    if name == "spark":
        request.getfixturevalue("spark")
    return name


both = pytest.mark.parametrize("engine", ["duckdb", "spark"], indirect=True)


@pytest.fixture
def shop(tmp_path: Path, postgres: str, monkeypatch: pytest.MonkeyPatch, engine: str) -> Iterator[Shop]:
    monkeypatch.setenv("OPS_URL", postgres)
    shop = Shop(tmp_path, postgres, engine)
    yield shop
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(shop.schema)))


@both
def test_the_whole_way(shop: Shop) -> None:
    update = shop.change("one", inserted={"r": {(20, 2)}})
    before = snapshot(shop.folder)

    ran, found = shop.run("check", update)
    assert ran.status == 1
    assert [(v["view"], v["verdict"]) for v in found["verdicts"]] == [("v1", "no"), ("v2", "yes")]
    assert found["verdicts"][0]["unknown"] == [["t(2)"], ["t(3)"]]

    ran, found = shop.run("maintain", update, "--strict")
    assert ran.status == 1
    assert json.loads(ran.stderr)["errors"][0]["code"] == "SM404"

    ran, found = shop.run("maintain", update, "--dry-run", "--verify")
    assert (ran.status, ran.stderr) == (0, "")
    assert found["changes"] == [
        {"view": "v1", "how": "settled by reads", "gained": 1, "lost": 0},
        {"view": "v2", "how": "decided exactly", "gained": 0, "lost": 0},
    ]
    assert [(r["relation"], r["key_columns"], r["keys_asked"], r["rows_read"]) for r in found["reads"]] == [
        ("t", ["c"], 2, 1)
    ]
    assert (found["verified"], found["written"], found["dry_run"]) == (True, [], True)
    assert snapshot(shop.folder) == before

    ran, found = shop.run("maintain", update, "--verify")
    assert (ran.status, found["verified"]) == (0, True)
    assert [entry["name"] for entry in found["written"]] == ["v1"]
    assert shop.stored("v1") == shop.v1() == {(10, 1, 1), (20, 2, 2)}
    assert shop.stored("v2") == shop.base["s"]

    second = shop.change("two", deleted={"t": {(2,)}, "s": {(2, 3)}})
    ran, found = shop.run("maintain", second, "--strict", "--verify")
    assert (ran.status, ran.stderr, found["verified"], found["reads"]) == (0, "", True, [])
    assert shop.stored("v1") == shop.v1() == {(10, 1, 1)}
    assert shop.stored("v2") == shop.base["s"] == {(1, 1), (2, 2)}


def test_an_update_that_changes_nothing(shop: Shop) -> None:
    before = snapshot(shop.folder / "views")
    update = shop.change("none", inserted={"t": {(1,)}}, deleted={"r": {(99, 99)}})
    ran, found = shop.run("maintain", update, "--verify")
    assert (ran.status, found["written"]) == (0, [])
    assert snapshot(shop.folder / "views") == before


def test_single_files_and_chosen_views(shop: Shop) -> None:
    update = Path(shop.change("one", inserted={"s": {(7, 9)}}))
    ran = run(
        "check",
        str(shop.toml),
        "--insert",
        f"s={update}/s.insert.parquet",
        "--view",
        "v2",
        "--format",
        "json",
    )
    assert ran.status == 0
    assert [v["view"] for v in json.loads(ran.stdout)["verdicts"]] == ["v2"]
    ran = run("check", str(shop.toml), "--delete", f"t={update}/s.insert.parquet")
    assert ran.status == 2
    assert "SM104" in ran.stderr


def test_tables_for_people(shop: Shop) -> None:
    update = shop.change("one", inserted={"r": {(20, 2)}})
    ran = run("maintain", str(shop.toml), "--update", update, "--verify")
    assert ran.status == 0, ran.stderr
    for text in ("self-maintainable?", "base relations read", "changes", "verified", "written: v1"):
        assert text in ran.stdout
    assert ran.stderr == ""


def test_a_difference_stops_the_writing(shop: Shop) -> None:
    update = shop.change("one", deleted={"t": {(1,)}})
    write(shop.folder / "views" / "v2" / "part-0.parquet", ["y", "z"], shop.base["s"] | {(5, 5)})
    before = snapshot(shop.folder)
    ran, found = shop.run("maintain", update, "--verify")
    assert ran.status == 1
    assert found["verified"] is False
    assert found["differences"] == [{"view": "v2", "missing": [], "extra": [[5, 5]]}]
    assert snapshot(shop.folder) == before
    ran = run("maintain", str(shop.toml), "--update", update, "--verify")
    assert "nothing was written" in ran.stdout


def test_partial_copies_follow_the_update(shop: Shop) -> None:
    """What the copy knows makes the view self-maintainable; after the update it knows that state."""
    write(shop.folder / "copies" / "present" / "p.parquet", ["c"], {(2,)})
    write(shop.folder / "copies" / "absent" / "p.parquet", ["c"], {(3,), (4,)})
    shop.write_toml('[copies.t]\npresent = "copies/present"\nabsent = "copies/absent"\n')
    update = shop.change("one", inserted={"r": {(20, 2)}, "t": {(4,)}}, deleted={"t": {(1,)}})
    ran, found = shop.run("maintain", update, "--strict", "--verify")
    assert (ran.status, ran.stderr, found["verified"]) == (0, "", True)
    assert {v["verdict"] for v in found["verdicts"]} == {"yes"}
    assert [entry["name"] for entry in found["written"]] == ["v1", "t@present", "t@absent"]
    assert rows_of(shop.folder / "copies" / "present") == {(2,), (4,)}
    assert rows_of(shop.folder / "copies" / "absent") == {(1,), (3,)}
    assert shop.stored("v1") == shop.v1() == {(20, 2, 2)}


@pytest.mark.parametrize("engine", ["spark"], indirect=True)
def test_a_table_is_not_written(shop: Shop, spark: SparkSession) -> None:
    """SM405: nothing is written when something that changes cannot be."""
    frame = spark.read.parquet(str(shop.folder / "views" / "v2"))
    frame.createOrReplaceGlobalTempView(
        "selfmaint_test_v2"
    )  # the command may run in a session beside this one
    try:
        toml = shop.toml.read_text().replace('path = "views/v2"', 'table = "global_temp.selfmaint_test_v2"')
        shop.toml.write_text(toml)
        update = shop.change("one", deleted={"s": {(1, 1)}})
        before = snapshot(shop.folder)
        ran, _ = shop.run("maintain", update)
        assert ran.status == 2
        assert [e["code"] for e in json.loads(ran.stderr)["errors"]] == ["SM405"]
        assert snapshot(shop.folder) == before
        assert shop.run("maintain", update, "--dry-run")[0].status == 0
    finally:
        spark.catalog.dropGlobalTempView("selfmaint_test_v2")


def test_a_wrong_password_is_not_printed(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    update = shop.change("one", inserted={"r": {(20, 2)}})
    separator = "&" if "?" in shop.server else "?"
    monkeypatch.setenv("OPS_URL", f"{shop.server}{separator}user=nobody_there&password={SECRET}")
    for form in ("json", "table"):
        ran = run("maintain", str(shop.toml), "--update", update, "--format", form)
        assert ran.status == 2
        assert "SM401" in ran.stderr
        assert SECRET not in ran.stdout + ran.stderr


def test_explain_shows_two_databases(shop: Shop) -> None:
    update = shop.change("one", inserted={"r": {(20, 2)}})
    ran = run("explain", str(shop.toml), "v1", "--update", update)
    assert ran.status == 0, ran.stderr
    assert "second database" in ran.stdout
    assert "SELECT" not in ran.stdout
    script = run("explain", str(shop.toml), "v1", "--update", update, "--sql").stdout
    assert script.startswith("-- the view before the update, on the first database\n")
    assert script.count("SELECT") >= 4
    assert run("explain", str(shop.toml), "v3", "--update", update).status == 2


@pytest.mark.usefixtures("spark")
def test_conformance_on_spark(tmp_path: Path) -> None:
    case = {
        "id": "one",
        "relations": {"r": 1, "s": 1},
        "program": "v(X) :- r(X), s(X).",
        "views": {"v": [[1], [3]]},
        "delete": {"r": [[1]]},
        "expected": {"v": {"self_maintainable": True, "state": [[3]]}},
    }
    file = tmp_path / "cases.jsonl"
    file.write_text(json.dumps(case) + "\n")
    ran = run("conformance", str(file), "--engine", "spark", "--format", "json")
    assert (ran.status, ran.stderr) == (0, "")
    assert json.loads(ran.stdout.splitlines()[0])["state"] == [[3]]


@both
def test_hostile_names_and_values_are_data(tmp_path: Path, engine: str) -> None:
    """Names with quotes, backticks and line feeds in rules, columns and files; values that look like code."""
    view, column = 'v`"; --\n', "a`.b'"
    value = "'); DROP TABLE x; -- ${y} [red]\x1b[31m\n"
    program = f'.decl `r``=`(`{column.replace("`", "``")}`: string).\n`v``"; --\\n`(X) :- `r``=`(X).\n'
    (tmp_path / "views.dl").write_text(program, encoding="utf-8")
    toml = f'program = "views.dl"\nengine.kind = "{engine}"\n[views.{json.dumps(view)}]\npath = "v"\n'
    (tmp_path / "w.toml").write_text(toml, encoding="utf-8")
    (tmp_path / "v").mkdir()
    pq.write_table(pa.table({"x": [value]}), tmp_path / "v" / "p.parquet")
    pq.write_table(pa.table({column: [value, "new"]}), tmp_path / "rows.parquet")
    ran = run(
        "maintain", str(tmp_path / "w.toml"), "--insert", f"r`=={tmp_path}/rows.parquet", "--format", "json"
    )
    assert (ran.status, ran.stderr) == (0, "")
    found = json.loads(ran.stdout)
    assert found["changes"] == [{"view": view, "how": "decided exactly", "gained": 1, "lost": 0}]
    assert {row["x"] for row in pq.read_table(tmp_path / "v").to_pylist()} == {value, "new"}
    ran = run("check", str(tmp_path / "w.toml"), "--insert", f"r`=={tmp_path}/rows.parquet")
    assert ran.status == 0
    assert "\x1b" not in ran.stdout


@pytest.mark.parametrize("engine", ["duckdb", "spark"])
def test_rows_are_written_in_the_types_that_are_declared(
    tmp_path: Path, engine: Literal["duckdb", "spark"]
) -> None:
    """Of columns of two types that are joined, an engine takes the wider type."""
    (tmp_path / "views.sql").write_text(
        "create table r (k bigint primary key, x int not null, d decimal(4,1) not null);"
        "create table s (k bigint primary key, x bigint not null, d decimal(6,2) not null);"
        "create view v as select r.k as a, r.x as b, s.k as c, r.d as d from r join s on r.x = s.x and r.d = s.d;"
        "create view w as select k, x, d from r;"
    )
    (tmp_path / "warehouse.toml").write_text(
        'program = "views.sql"\n[update]\neffective = true\n'
        '[views.v]\npath = "v.parquet"\n[views.w]\npath = "w.parquet"\n'
    )
    big, small, size = pa.int64(), pa.int32(), pa.decimal128(4, 1)
    stored = pa.schema([("a", big), ("b", small), ("c", big), ("d", size)])
    pq.write_table(stored.empty_table(), tmp_path / "v.parquet")
    row = {"k": pa.array([1], big), "x": pa.array([1], small), "d": pa.array([Decimal("2.5")], size)}
    pq.write_table(pa.table(row), tmp_path / "w.parquet")
    with selfmaint.load(tmp_path / "warehouse.toml", engine=engine) as warehouse:
        new = {
            "k": pa.array([7], big),
            "x": pa.array([1], big),
            "d": pa.array([Decimal("2.50")], pa.decimal128(6, 2)),
        }
        update = selfmaint.Update.from_frames(warehouse, {"s": pa.table(new)})
        warehouse.apply(warehouse.maintain(update))
    written = pq.read_table(tmp_path / "v.parquet")
    assert written.schema.types == stored.types
    assert written.to_pylist() == [{"a": 1, "b": 1, "c": 7, "d": Decimal("2.5")}]
    with selfmaint.load(tmp_path / "warehouse.toml", engine=engine) as warehouse:
        assert warehouse.contents["v"] is not None
