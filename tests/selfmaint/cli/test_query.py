"""Queries over the views: one state of all of them, exact values in every format, and nothing but reading."""

from __future__ import annotations

import csv
import datetime as dt
import io
import json
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import selfmaint
from selfmaint.errors import Code, InputError
from tests.command_line import run
from tests.selfmaint.store.test_lake import Row, Shop

PLACES = "".join(
    f'[views.{name}]\npath = "views/{name}"\n' for name in ("lines", "totals", "regions", "customers")
)
STORES = ["lake", "delta"]


@pytest.fixture
def shop(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return Shop(tmp_path).made(tmp_path_factory.getbasetemp())


@pytest.fixture(scope="module")
def still(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """A lake that is only read."""
    made = Shop(tmp_path_factory.mktemp("still"))
    assert made.command("init").status == 0
    return made


def plain(folder: Path) -> Shop:
    """The same views in plain files."""
    made = Shop(folder)
    assert made.command("init").status == 0
    with selfmaint.load(made.toml) as warehouse:
        for name in made.expected():
            (folder / "views" / name).mkdir(parents=True)
            pq.write_table(pa.table(warehouse.read(name)), folder / "views" / name / "part-0.parquet")
    text = made.toml.read_text(encoding="utf-8")
    store = '[store]\nkind = "lake"\npath = "lake"\n'
    assert store in text
    made.toml.write_text(text.replace(store, PLACES), encoding="utf-8")
    return made


def a_sale(shop: Shop, name: str = "monday") -> Path:
    return shop.update(name, {"sale": {(9, 2, 77)}}, {"sale": {(1, 1, 10)}})


def rows_of(table: pa.Table) -> Counter[Row]:
    return Counter(zip(*(column.to_pylist() for column in table.columns), strict=True))


def asked(shop: Shop, *arguments: object) -> Any:
    done = shop.command("query", *arguments, "--format", "json")
    assert done.status == 0, done
    return json.loads(done.stdout)["rows"]


def code_of(error: InputError) -> Code:
    (found,) = error.diagnostics
    return Code(found.code)


# ------------------------------------------------------------------------------------------------- states


@pytest.mark.parametrize("kind", STORES)
def test_every_state_of_a_store_by_snapshot_and_by_the_id_of_its_update(kind: str, tmp_path: Path) -> None:
    shop = Shop(tmp_path, kind)
    assert shop.command("init").status == 0
    states = [shop.expected()]
    for i, name in enumerate(("monday", "2nd")):
        update = shop.update(name, {"sale": {(9 + i, 2, 77)}}, {"sale": {(1 + i, 1, [10, None][i])}})
        assert shop.command("maintain", "--update", update, "--id", name).status == 0
        states.append(shop.expected())
    assert len({str(sorted(state["lines"], key=repr)) for state in states}) == 3
    versions = [
        one["snapshot"] for one in json.loads(shop.command("history", "--format", "json").stdout)["snapshots"]
    ]
    asking = [versions[0], "monday", "2nd"]
    with selfmaint.load(shop.toml, engine="duckdb") as warehouse:
        for version, by_id, state in zip(versions, asking, states, strict=True):
            for as_of in (version, by_id):
                for name, rows in state.items():
                    assert rows_of(warehouse.query(name, as_of=as_of)) == rows
        assert rows_of(warehouse.query("select * from lines")) == states[-1]["lines"]
    for as_of, state in zip(asking, states, strict=True):
        both = (
            "select (select count(*) from lines), (select sum(n) from totals), (select count(*) from regions)"
        )
        number = state["lines"].total()
        assert asked(shop, both, "--as-of", as_of) == [[number, number, number]]
        with selfmaint.load(shop.toml, as_of=as_of) as warehouse:
            assert rows_of(pa.table(warehouse.read("lines"))) == state["lines"]


def test_a_warehouse_goes_on_seeing_its_own_state_while_others_commit(shop: Shop) -> None:
    before = shop.expected()
    with selfmaint.load(shop.toml) as warehouse:
        update = a_sale(shop)
        assert shop.command("maintain", "--update", update).status == 0
        for name, rows in before.items():
            assert rows_of(warehouse.query(f"from {name}")) == rows
    assert shop.expected()["lines"] != before["lines"]
    with selfmaint.load(shop.toml) as warehouse:
        assert rows_of(warehouse.query("from lines")) == shop.expected()["lines"]
        other = selfmaint.Update.from_files(warehouse, a_sale_more(shop))
        warehouse.apply(warehouse.maintain(other))
        assert rows_of(warehouse.query("from lines")) == shop.expected()["lines"]


def a_sale_more(shop: Shop) -> Path:
    return shop.update("tuesday", {"sale": {(20, 3, 1)}}, {})


@pytest.mark.parametrize("command", ["query", "check", "explain", "maintain"])
def test_a_lake_that_was_still_being_made_is_no_state(shop: Shop, command: str) -> None:
    update = a_sale(shop)
    first = json.loads(shop.command("history", "--format", "json").stdout)["snapshots"][0]["snapshot"]
    assert first > 0
    arguments = {
        "query": ("lines",),
        "check": ("--update", update),
        "explain": ("lines", "--update", update),
        "maintain": None,
    }[command]
    if arguments is None:  # it has no such option: from Python alone
        with pytest.raises(InputError) as caught:
            selfmaint.load(shop.toml, as_of=first - 1)
        said = str(caught.value)
    else:
        done = shop.command(command, *arguments, "--as-of", first - 1)
        assert (done.status, done.stdout) == (2, "")
        said = done.stderr
        assert f"its first state is snapshot {first}" in said
        assert "import" not in said
        assert shop.command(command, *arguments, "--as-of", first).status in (0, 1)
    assert f"at snapshot {first - 1} the lake" in said
    assert "had no views yet" in said


@pytest.mark.parametrize("as_of", ["friday", 99, -1])
@pytest.mark.parametrize("kind", STORES)
def test_a_state_that_there_is_not(kind: str, as_of: Any, tmp_path: Path) -> None:
    shop = Shop(tmp_path, kind)
    assert shop.command("init").status == 0
    with selfmaint.load(shop.toml, engine="duckdb") as warehouse, pytest.raises(InputError) as caught:
        warehouse.query("lines", as_of=as_of)
    assert code_of(caught.value) is Code.LAKE
    done = shop.command("query", "lines", "--as-of", as_of)
    assert (done.status, done.stdout) == (2, "")
    assert "SM408" in done.stderr
    assert "`selfmaint history` lists" in done.stderr


def test_a_view_of_other_columns_is_read_as_it_was(shop: Shop) -> None:
    before = shop.expected()["customers"]
    program = shop.folder / "views.sql"
    text = program.read_text(encoding="utf-8")
    program.write_text(
        text.replace("select id, region from customer", "select id from customer"), encoding="utf-8"
    )
    refused = shop.command("query", "customers")
    assert (refused.status, refused.stdout) == (2, "")
    assert "SM411" in refused.stderr
    assert shop.command("import", "--view", "customers").status == 0
    assert asked(shop, "from customers order by id") == [[1], [2], [3]]
    with selfmaint.load(shop.toml) as warehouse:
        assert rows_of(warehouse.query("customers", as_of=3)) == before


# ------------------------------------------------------------------------------------------- what is read


def test_plain_files_and_frames_are_read_as_a_store_is(tmp_path: Path) -> None:
    shop = plain(tmp_path)
    for name, rows in shop.expected().items():
        assert Counter(map(tuple, asked(shop, f"select * from {name}"))) == rows
    assert dict(asked(shop)) == {name: rows.total() for name, rows in shop.expected().items()}
    done = shop.command("query", "lines", "--as-of", 3)
    assert (done.status, done.stdout) == (2, "")
    assert "which have no snapshots" in done.stderr
    update = a_sale(shop)
    with selfmaint.load(shop.toml) as warehouse:
        warehouse.apply(warehouse.maintain(selfmaint.Update.from_files(warehouse, update)))
        assert rows_of(warehouse.query("regions")) == shop.expected()["regions"]
    built = selfmaint.build(
        "v(X, Y) :- r(X, Y).", {"v": pa.table({"x": [1, 2], "y": ["a", None]})}, engine="duckdb"
    )
    assert built.query("select y, x from v order by x").to_pydict() == {"y": ["a", None], "x": [1, 2]}


def test_helpers_are_not_seen(shop: Shop) -> None:
    text = shop.toml.read_text(encoding="utf-8")
    shop.toml.write_text(text.replace('path = "lake"', 'path = "with"\nhelpers = true'), encoding="utf-8")
    program = shop.folder / "views.sql"
    mean = (
        "create view mean as select customer, sum(amount) / count(*) as mean from sale group by customer;\n"
    )
    program.write_text(program.read_text(encoding="utf-8") + mean, encoding="utf-8")
    assert shop.command("init").status == 0
    with selfmaint.load(shop.toml) as warehouse:
        (helper,) = warehouse.catalog.helpers
    assert [name for name, _ in asked(shop)] == ["lines", "totals", "regions", "customers", "mean"]
    for sql in (helper, f"from {helper}", f"select mean from mean union all select customer from {helper}"):
        done = shop.command("query", sql)
        assert (done.status, done.stdout) == (2, ""), done
    tables = "select table_name from information_schema.tables"
    with selfmaint.load(shop.toml) as warehouse:
        names = set(warehouse.query(f"{tables} /* mean */").column(0).to_pylist())
    assert names == {"mean"}


def test_views_are_found_by_whatever_name_they_have_wherever_they_are(tmp_path: Path) -> None:
    folder = tmp_path / "we[ir]d *'s"
    folder.mkdir()
    (folder / "v.dl").write_text('`A "b".c`(X, Y) :- r(X, Y).\n', encoding="utf-8")
    text = 'program = "v.dl"\n[store]\nkind = "lake"\npath = "lake"\n'
    (folder / "w.toml").write_text(text, encoding="utf-8")
    pq.write_table(pa.table({"x": [1], "y": [2]}), folder / "a.parquet")
    selfmaint.init(folder / "w.toml", origins={'A "b".c': folder / "a.parquet"})
    with selfmaint.load(folder / "w.toml") as warehouse:
        for sql in ('A "b".c', 'select * from "a ""B"".C"'):
            assert warehouse.query(sql).to_pylist() == [{"x": 1, "y": 2}]


def test_the_order_of_the_query_holds(tmp_path: Path) -> None:
    many = pa.table({"x": pa.array(range(50_000), pa.int64())})
    warehouse = selfmaint.build("v(X) :- r(X).", {"v": many}, engine="duckdb")
    down = warehouse.query("select x from v order by x desc").column(0).to_pylist()
    assert down == list(range(49_999, -1, -1))
    warehouse.close()
    assert not list(tmp_path.iterdir())


# ---------------------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("delete from lines", "SM108"),
        ("insert into lines select * from lines", "SM108"),
        ("copy lines to 'x.csv'", "SM108"),
        ("create table t as from lines", "SM108"),
        ("attach 'x.db'", "SM108"),
        ("set threads = 1", "SM108"),
        ("explain select 1", "SM108"),
        ("select 1; select 2", "SM108"),
        ("select 1; drop view lines", "SM108"),
        ("", "SM108"),
        ("-- nothing", "SM108"),
        ("selec id from lines", "SM108"),
        ("select id from lines where", "SM108"),
        ("select nothing from lines", "SM108"),
        ("select cast(region as int) from lines", "SM108"),
        ("from read_csv('FOLDER/views.sql', header = false)", "SM108"),
        ("from 'FOLDER/base/sale.parquet'", "SM108"),
        ("from glob('FOLDER/*')", "SM108"),
        ("select * from sale", "SM102"),
        ("select * from linez", "SM102"),
        ("linez", "SM102"),
        ("sale", "SM102"),
        ("select * from totals where region in (select region from regionz)", "SM102"),
    ],
)
def test_anything_but_a_select_over_the_views_is_refused(still: Shop, sql: str, code: str) -> None:
    sql = sql.replace("FOLDER", str(still.folder))
    before = {path: path.stat().st_mtime_ns for path in still.folder.rglob("*")}
    done = still.command("query", sql)
    assert (done.status, done.stdout) == (2, ""), done
    assert f"error[{code}]" in done.stderr
    said = json.loads(still.command("query", sql, "--format", "json").stderr)
    assert [one["code"] for one in said["errors"]] == [code]
    changed = {path.name for path in still.folder.rglob("*") if before.get(path) != path.stat().st_mtime_ns}
    assert changed <= {"lake", "catalog.sqlite-shm", "catalog.sqlite-wal"}


@pytest.mark.parametrize(
    ("sql", "place"),
    [
        ("select amont from lines", (1, 8)),
        ("select id,\n       amont\nfrom lines", (2, 8)),
        ("select id from lines join linez using (id)", (1, 27)),
        ("select " + "id + " * 60 + "amont from lines", (1, 308)),
        ("selec 1", (1, 1)),
    ],
)
def test_the_place_of_what_is_wrong(still: Shop, sql: str, place: tuple[int, int]) -> None:
    (found,) = json.loads(still.command("query", sql, "--format", "json").stderr)["errors"]
    assert (found["place"]["line"], found["place"]["column"]) == place
    shown = still.command("query", sql).stderr
    assert f"--> <query>:{place[0]}:{place[1]}" in shown
    assert "^" in shown


def test_of_a_base_relation_it_is_said_that_nothing_of_it_is_kept(still: Shop) -> None:
    (found,) = json.loads(still.command("query", "select * from Sale", "--format", "json").stderr)["errors"]
    assert found["message"] == "`Sale` is a base relation, of which nothing is kept here"
    assert found["hint"].startswith("query the views: `")


def test_what_runs_in_the_same_process_is_not_seen() -> None:
    mine = pa.table({"x": [1]})
    warehouse = selfmaint.build("v(X) :- r(X).", {"v": mine}, engine="duckdb")
    with pytest.raises(InputError) as caught:
        warehouse.query("select * from mine, v")
    assert code_of(caught.value) is Code.UNKNOWN_RELATION


def test_files_of_a_lake_that_are_gone_are_said_to_be(shop: Shop) -> None:
    with selfmaint.load(shop.toml) as warehouse:
        for file in (shop.folder / "lake" / "data").rglob("*lines/*.parquet"):
            file.unlink()
        with pytest.raises(InputError) as caught:
            warehouse.query("lines")
    assert code_of(caught.value) in (Code.MISSING_CONTENTS, Code.COLUMNS_DIFFER)
    assert "lines" in str(caught.value)


# --------------------------------------------------------------------------------------------- the values

ODD = """select 1.50::decimal(38, 10) d, 0.0000000001::decimal(38, 10) tiny, 9223372036854775807::hugeint * 4 as h,
    timestamptz '2026-03-29 01:30:00.000123+02' m, timestamp '9999-12-31 23:59:59.9' w, date '0001-01-01' e,
    'a"b,'::varchar s, '' empty, null n, '\\x00\\xffa'::blob b, 'nan'::double nan, '-inf'::float inf,
    0.1 + 0.2::double f, true t, [1, null] l, {'a': 1.50} st, 'x'::enum('x') en, time '10:00:00' tm"""
NAMES = [
    "d",
    "tiny",
    "h",
    "m",
    "w",
    "e",
    "s",
    "empty",
    "n",
    "b",
    "nan",
    "inf",
    "f",
    "t",
    "l",
    "st",
    "en",
    "tm",
]
TEXTS = [
    "1.5000000000",
    "0.0000000001",
    "36893488147419103228",
    "2026-03-28T23:30:00.000123Z",
    "9999-12-31T23:59:59.9",
    "0001-01-01",
    'a"b,',
    "",
    None,
    "00ff61",
    "NaN",
    "-Infinity",
    "0.30000000000000004",
    "true",
    "[1, null]",
    '{"a": "1.50"}',
    "x",
    "10:00:00",
]


def test_exact_values_in_json(still: Shop) -> None:
    said = json.loads(still.command("query", ODD, "--format", "json").stdout)
    assert [one["name"] for one in said["columns"]] == NAMES
    types = {one["name"]: one["type"] for one in said["columns"]}
    assert (types["d"], types["m"], types["b"]) == ("decimal128(38, 10)", "timestamp[us, tz=UTC]", "binary")
    (row,) = said["rows"]
    typed = {"h": 9223372036854775807 * 4, "f": 0.1 + 0.2, "t": True, "l": [1, None], "st": {"a": "1.50"}}
    assert row == [typed.get(name, text) for name, text in zip(NAMES, TEXTS, strict=True)]


def test_exact_values_in_csv(still: Shop) -> None:
    done = still.command("query", ODD, "--format", "csv")
    header, row = csv.reader(io.StringIO(done.stdout))
    assert header == NAMES
    assert row == ["" if text is None else text for text in TEXTS]
    assert ',"",,00ff61,' in done.stdout, "the empty text is not null"


def test_exact_values_in_a_table(still: Shop) -> None:
    done = still.command("query", "select 1.50::decimal(5,2) d, null n, '[red]x' s, 'nan'::double f")
    assert [cell.strip() for cell in done.stdout.splitlines()[3].split("│")[1:-1]] == [
        "1.50",
        "null",
        "[red]x",
        "NaN",
    ]
    assert done.stdout.splitlines()[-1] == "1 row"


def test_exact_values_in_parquet(still: Shop) -> None:
    file = still.folder / "x.parquet"
    sql = ODD.replace(", time '10:00:00' tm", "")
    assert still.command("query", sql, "--format", "parquet", "--output", file).status == 0
    found = pq.read_table(file)
    with selfmaint.load(still.toml) as warehouse:
        wanted = warehouse.query(sql)
    assert found.schema.field("d").type == pa.decimal128(38, 10)
    assert found.schema.field("m").type == pa.timestamp("us", "UTC")
    (one,), (other,) = found.to_pylist(), wanted.to_pylist()
    assert repr(one) == repr(other)  # NaN is no value that is equal to itself
    assert one["h"] == Decimal(9223372036854775807 * 4)
    assert one["m"] == dt.datetime(2026, 3, 28, 23, 30, 0, 123, tzinfo=dt.UTC)
    assert one["b"] == b"\x00\xffa"


def test_what_a_format_cannot_hold_is_refused_and_leaves_no_file(still: Shop) -> None:
    file = still.folder / "x"
    file.write_text("as it was", encoding="utf-8")
    for sql, format_ in (
        ("select interval 1 day as i", "parquet"),
        ("select null as n", "csv"),
        ("select case id when 4 then cast(region as int) end, id from lines order by id", "csv"),
    ):
        done = still.command("query", sql, "--format", format_, "-o", file)
        assert (done.status, done.stdout) == (2, ""), done
        assert "error[SM1" in done.stderr
        assert file.read_text(encoding="utf-8") == "as it was"
        assert not list(still.folder.glob(".*.part"))
    assert still.command("query", "lines", "--format", "parquet").status == 2  # where to?
    assert still.command("query", "lines", "--output", file).status == 2  # no table for people
    assert file.read_text(encoding="utf-8") == "as it was"
    missing = still.folder / "no" / "x"
    done = still.command("query", "lines", "--format", "csv", "-o", missing)
    assert done.status == 2
    assert "SM405" in done.stderr


def test_many_rows_are_counted_and_not_all_shown(still: Shop) -> None:
    lines = still.command("query", "from range(2500)").stdout.splitlines()
    assert lines[-1] == "the first 1,000 of 2,500 rows; other formats have all"
    assert len(lines) == 1000 + 5
    assert len(still.command("query", "from range(2500)", "--format", "csv").stdout.splitlines()) == 2501


# --------------------------------------------------------------------------------------- the command line


def test_sql_from_a_file_and_from_the_standard_input(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    sql = "select id from lines order by id desc;\n"
    (shop.folder / "q.sql").write_text(sql, encoding="utf-8")
    assert asked(shop, "--file", shop.folder / "q.sql") == [[4], [3], [2], [1]]
    monkeypatch.setattr("sys.stdin", io.StringIO(sql))
    assert asked(shop, "--file", "-") == [[4], [3], [2], [1]]
    assert shop.command("query", "lines", "--file", "-").status == 2
    done = shop.command("query", "--file", shop.folder / "none.sql")
    assert done.status == 2
    assert "SM103" in done.stderr


def test_without_sql_the_views_are_listed(shop: Shop) -> None:
    update = a_sale_more(shop)
    assert shop.command("maintain", "--update", update).status == 0
    assert asked(shop) == [["lines", 5], ["totals", 2], ["regions", 5], ["customers", 3]]
    assert asked(shop, "--as-of", 3) == [["lines", 4], ["totals", 2], ["regions", 4], ["customers", 3]]
    assert "│ customers │    3 │" in shop.command("query").stdout
    assert run("query", str(shop.folder / "none.toml")).status == 2


def test_views_that_are_called_like_words_of_sql_stand_in_quotes(tmp_path: Path) -> None:
    file = tmp_path / "w.toml"
    text = "create table t (id int primary key); create view overlaps as select id from t;"
    file.write_text(f'program_text = "{text}"\n[views.overlaps]\npath = "v.csv"\n', encoding="utf-8")
    (tmp_path / "v.csv").write_text("id\n1\n", encoding="utf-8")
    refused = run("query", str(file), "select count(*) from overlaps")
    assert 'names of views stand in quotes: "overlaps"' in refused.stderr
    assert run("query", str(file), 'select id from "overlaps"').status == 0
    assert "quotes" not in run("query", str(file), "select id frm x").stderr
