"""Warehouses in files with the DuckDB engine: read, checked, maintained and written as with Spark."""

from __future__ import annotations

import datetime as dt
import json
import re
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datalog.model import ANY, ColumnType, Row, TypeName, WallClock
from selfmaint import SelfMaintainable, SelfmaintError, Update, load
from selfmaint.duckdb import DuckEngine, Relation
from selfmaint.duckdb.file_source import DuckSource, StoredFiles
from selfmaint.duckdb.files import read_contents
from selfmaint.duckdb.layouts import finding
from selfmaint.duckdb.writing import writing
from selfmaint.errors import Code, InputError, SourceError
from selfmaint.store.expected import Expected
from selfmaint.store.formats import Format, format_of
from tests.command_line import run

BIGINT, INT, STRING = (ColumnType(TypeName(name)) for name in ("bigint", "int", "string"))
NAMES = ("n", "name", "price", "day", "at", "shown", "flag", "ratio", "part")
TYPES = (
    BIGINT,
    STRING,
    ColumnType(TypeName.DECIMAL, 38, 10),
    *(
        ColumnType(TypeName(name))
        for name in ("date", "timestamp", "timestamp_ntz", "boolean", "double", "float")
    ),
)
AT = dt.datetime(2024, 1, 2, 3, 4, 5, 123456)
ROWS: list[Row] = [
    (
        1,
        "plain",
        Decimal("1234567890123456789012345678.0000000001"),
        dt.date(2024, 2, 29),
        AT,
        WallClock(9999, 12, 31, 23, 59, 59, 999999),
        True,
        0.1,
        0.5,
    ),
    (2, "", None, None, None, None, None, None, None),
    (
        None,
        None,
        Decimal("0E-10"),
        dt.date(1, 1, 1),
        dt.datetime(1970, 1, 1),
        WallClock(1, 1, 1),
        False,
        -1e300,
        float("inf"),
    ),
    (3, ' "quoted", \\ and\nbroken\r\nlines ', None, None, None, None, None, float("-inf"), None),
    (
        4,
        "'; DROP TABLE x; -- ${a} `",
        Decimal("-0.5000000000"),
        dt.date(9999, 12, 31),
        None,
        None,
        None,
        5e-324,
        None,
    ),
    (5, "\0", None, None, None, None, None, None, None),
    (6, "\u00e9\U0001f600", None, None, None, None, None, 1e22, None),
]


@pytest.fixture
def engine() -> DuckEngine:
    return DuckEngine(most_few=0)


def expected(names: tuple[str, ...] = NAMES, types: tuple[ColumnType, ...] = TYPES) -> Expected:
    return Expected("v", names, types)


def written(engine: DuckEngine, rows: list[Row], path: Path, order: str | None = None) -> None:
    writing(engine.database, engine.load(rows, NAMES, TYPES))(path, format_of(str(path)), order)


def read(engine: DuckEngine, path: Path, wanted: Expected, *, declared: bool = True) -> list[Row]:
    return engine.sample(read_contents(engine.database, str(path), wanted, declared=declared), 99)


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl"])
def test_what_is_written_is_what_is_read(suffix: str, engine: DuckEngine, tmp_path: Path) -> None:
    path = tmp_path / f"v {{1}}[2]*?.{suffix}"
    written(engine, ROWS, path)
    order = [3, 0, 7, 6, 1, 5, 2, 4, 8]
    wanted = expected(tuple(NAMES[i] for i in order), tuple(TYPES[i] for i in order))
    found = read(engine, path, wanted)
    assert sorted(found, key=repr) == sorted((tuple(row[i] for i in order) for row in ROWS), key=repr)


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl"])
def test_a_file_that_is_written_anew_is_read_anew(suffix: str, engine: DuckEngine, tmp_path: Path) -> None:
    """However soon: DuckDB itself tells by the second whether what it keeps of a file is still that of the file."""
    path = tmp_path / f"v.{suffix}"
    for i in range(12):
        number = i % 3 + 1
        if suffix == "parquet":
            pq.write_table(ints(n=[4] * number), path)
        else:
            line, first = ("4\n", "n\n") if suffix == "csv" else ('{"n": 4}\n', "")
            path.write_text(first + line * number, encoding="utf-8")
        assert read(engine, path, expected(("n",), (BIGINT,))) == [(4,)] * number


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl"])
def test_spark_reads_what_is_written_and_is_read_in_turn(
    suffix: str, engine: DuckEngine, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """On Spark."""
    from selfmaint.spark import SparkEngine
    from selfmaint.spark.formats import write_files
    from selfmaint.spark.tables import read_contents as read_by_spark

    spark = SparkEngine(request.getfixturevalue("spark"), near_values=0)
    rows = [row for row in ROWS if row[0] != 5]
    names, types = NAMES[:-1], TYPES[:-1]
    wanted = Expected("v", names, types)
    cut = [row[:-1] for row in rows]
    writing(engine.database, engine.load(cut, names, types))(tmp_path / f"one.{suffix}", Format(suffix), None)
    by_spark = spark.sample(read_by_spark(spark.spark, str(tmp_path / f"one.{suffix}"), wanted), 99)
    assert sorted(map(repr, by_spark)) == sorted(map(repr, cut))
    write_files(spark.load(cut, names, types), tmp_path / f"other.{suffix}", Format(suffix))
    assert sorted(map(repr, read(engine, tmp_path / f"other.{suffix}", wanted))) == sorted(map(repr, cut))


def test_instants_as_spark_writes_them_by_default(
    engine: DuckEngine, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """On Spark: what it writes itself, and what is written by a session of such settings."""
    from selfmaint.spark import SparkEngine
    from selfmaint.spark.formats import write_files

    session = request.getfixturevalue("spark").newSession()
    session.conf.set("spark.sql.parquet.outputTimestampType", "INT96")
    spark = SparkEngine(session, near_values=0)
    names, types = (
        ("n", "at", "shown"),
        (BIGINT, ColumnType(TypeName.TIMESTAMP), ColumnType(TypeName.TIMESTAMP_NTZ)),
    )
    rows = [(1, AT, WallClock(2024, 1, 2, 3)), (2, None, None)]
    data = spark.load(rows, names, types)
    data.write.parquet((tmp_path / "by_spark.parquet").as_uri())
    write_files(data, tmp_path / "here.parquet", Format.PARQUET)
    assert session.conf.get("spark.sql.parquet.outputTimestampType") == "INT96"
    file = next((tmp_path / "here.parquet").glob("*.parquet"))
    assert pq.read_schema(file).field("at").type == pa.timestamp("us", "UTC")
    for name in ("by_spark", "here"):
        found = read(engine, tmp_path / f"{name}.parquet", Expected("v", names, types))
        assert sorted(found, key=repr) == sorted(rows, key=repr)


def test_a_null_that_is_alone_in_its_row_is_a_row_of_json_and_none_of_csv(
    engine: DuckEngine, tmp_path: Path
) -> None:
    """An empty line of CSV is no row, as Spark has it; nor is one of JSON lines, where null has a line of its own."""
    lines, text = tmp_path / "v.jsonl", tmp_path / "v.csv"
    lines.write_text('{"x": "a"}\n{"x": null}\n\n{}\n')
    text.write_text("x\na\n\n")
    for kind in (STRING, ANY):
        wanted = expected(("x",), (kind,))
        assert sorted(read(engine, lines, wanted), key=repr) == [("a",), (None,), (None,)]
        assert read(engine, text, wanted) == [("a",)]


def test_parquet_is_written_in_the_order_that_it_had(engine: DuckEngine, tmp_path: Path) -> None:
    rows: list[Row] = [(i, str(i), None, None, None, None, None, None, None) for i in (3, 1, 2)]
    written(engine, rows, tmp_path / "v.parquet", "n")
    (file,) = (tmp_path / "v.parquet").iterdir()
    table = pq.read_table(file)
    assert table.column("n").to_pylist() == [1, 2, 3]
    assert str(table.schema.field("at").type) == "timestamp[us, tz=UTC]"
    assert str(table.schema.field("shown").type) == "timestamp[us]"


def test_hand_written_files_are_read_by_name_or_position(engine: DuckEngine, tmp_path: Path) -> None:
    csv, lines = tmp_path / "a.csv", tmp_path / "b.jsonl"
    csv.write_text('\ufeffname,n\n"a, ""b""",1\n\n,2\n"",+3', encoding="utf-8")
    lines.write_text('{"n": 1, "name": "a, \\"b\\""}\n\n{"n": 2}\n{"name": "", "n": 3}\n', encoding="utf-8")
    for path in (csv, lines):
        found = read(engine, path, expected(("n", "name"), (INT, STRING)))
        assert sorted(found) == [(1, 'a, "b"'), (2, None), (3, "")], path.name
    found = read(engine, csv, expected(("x", "y"), (STRING, INT)), declared=False)
    assert sorted(found, key=repr) == sorted([('a, "b"', 1), (None, 2), ("", 3)], key=repr)


@pytest.mark.parametrize("name", ["v.parquet", "v.csv", "v.jsonl"])
def test_missing_and_extra_columns_are_all_told_with_near_misses(
    name: str, engine: DuckEngine, tmp_path: Path
) -> None:
    data = engine.load([(1, 2, 3)], ["Qty", "item", "more"], [ANY] * 3)
    writing(engine.database, data)(tmp_path / name, format_of(name), None)
    with pytest.raises(InputError) as refused:
        read(engine, tmp_path / name, expected(("item", "qty", "price"), (INT, INT, INT)))
    (found,) = refused.value.diagnostics
    assert (
        found.message == "the columns of `v` do not fit: `qty`, `price` missing; `Qty`, `more` not expected"
    )
    assert found.hint == "rename `Qty` to `qty`"


@pytest.mark.parametrize(
    ("stored", "declared", "fits"),
    [
        (pa.int32(), "bigint", True),
        (pa.int64(), "int", True),
        (pa.uint8(), "smallint", True),
        (pa.uint64(), "bigint", True),
        (pa.string(), "bigint", False),
        (pa.float32(), "double", True),
        (pa.decimal128(8, 2), "decimal(10,2)", True),
        (pa.decimal128(8, 2), "decimal(8,3)", True),
        (pa.decimal128(38, 2), "decimal(10,2)", True),
        (pa.date32(), "timestamp", False),
        (pa.timestamp("us", "Europe/Berlin"), "timestamp", True),
        (pa.timestamp("ms"), "timestamp", False),
        *((pa.timestamp(unit), "timestamp_ntz", True) for unit in ("s", "ms", "us", "ns")),
        (pa.timestamp("us", "Europe/Berlin"), "timestamp_ntz", False),
        (pa.null(), "string", True),
        (pa.binary(), "string", False),
    ],
)
def test_a_stored_type_may_be_narrower_and_of_exact_numbers_wider(
    stored: pa.DataType, declared: str, fits: bool, engine: DuckEngine, tmp_path: Path
) -> None:
    pq.write_table(pa.table({"x": pa.nulls(2, stored)}), tmp_path / "v.parquet")
    name, _, sizes = declared.partition("(")
    kind = ColumnType(TypeName(name), *(int(n) for n in sizes.rstrip(")").split(",") if sizes))
    if fits:
        assert read(engine, tmp_path / "v.parquet", expected(("x",), (kind,))) == [(None,), (None,)]
        return
    with pytest.raises(InputError) as refused:
        read(engine, tmp_path / "v.parquet", expected(("x",), (kind,)))
    assert refused.value.diagnostics[0].code is Code.COLUMNS_DIFFER


def test_a_wider_integer_is_read_where_its_values_fit(engine: DuckEngine, tmp_path: Path) -> None:
    """pandas, polars and DuckDB write whole numbers as `bigint`."""
    values, path = [2**31 - 1, -(2**31), None], tmp_path / "v.parquet"
    pq.write_table(pa.table({"n": pa.array(values, pa.int64())}), path)
    assert sorted(read(engine, path, expected(("n",), (INT,))), key=repr) == sorted(
        ((v,) for v in values), key=repr
    )
    pq.write_table(pa.table({"n": pa.array([1, 2**31], pa.int64())}), path)
    with pytest.raises(
        InputError, match="`n` of `v` is declared `int`, which cannot hold 2147483648"
    ) as refused:
        read(engine, path, expected(("n",), (INT,)))
    (found,) = refused.value.diagnostics
    assert found.code is Code.COLUMNS_DIFFER
    assert found.hint == "declare a wider type for its column, or correct the value"


@pytest.mark.parametrize(
    ("values", "stored", "declared", "lost"),
    [
        (["1.50", None], pa.decimal128(38, 2), (10, 2), None),
        (["99999999.99"], pa.decimal128(38, 2), (10, 2), None),
        (["100000000.00"], pa.decimal128(38, 2), (10, 2), "100000000.00"),
        (["1.500"], pa.decimal128(10, 3), (10, 2), None),
        (["1.505"], pa.decimal128(10, 3), (10, 2), "1.505"),
        (["7"], pa.decimal128(20, 0), (4, 2), None),
    ],
)
def test_a_wider_decimal_is_read_where_its_values_fit(
    values: list[str | None],
    stored: pa.DataType,
    declared: tuple[int, int],
    lost: str | None,
    engine: DuckEngine,
    tmp_path: Path,
) -> None:
    """polars writes decimals of 38 digits; no digit is lost."""
    rows = [None if one is None else Decimal(one) for one in values]
    pq.write_table(pa.table({"n": pa.array(rows, stored)}), tmp_path / "v.parquet")
    wanted = expected(("n",), (ColumnType(TypeName.DECIMAL, *declared),))
    if lost is None:
        assert set(read(engine, tmp_path / "v.parquet", wanted)) == {(one,) for one in rows}
        return
    with pytest.raises(InputError, match=f"which cannot hold {re.escape(lost)}"):
        read(engine, tmp_path / "v.parquet", wanted)


def test_the_index_of_a_filtered_frame_is_no_column(engine: DuckEngine, tmp_path: Path) -> None:
    frame = pd.DataFrame({"n": [1, 2, 3]})
    frame[frame.n > 1].to_parquet(tmp_path / "v.parquet")
    assert "__index_level_0__" in pq.read_schema(tmp_path / "v.parquet").names
    assert sorted(read(engine, tmp_path / "v.parquet", expected(("n",), (BIGINT,)))) == [(2,), (3,)]


def test_nanoseconds_that_are_none_are_read(engine: DuckEngine, tmp_path: Path) -> None:
    """pandas writes timestamps of them."""
    wanted, path = expected(("at",), (ColumnType(TypeName.TIMESTAMP_NTZ),)), tmp_path / "v.parquet"
    times = [-315619199999999000, None]
    pq.write_table(pa.table({"at": pa.array(times, pa.timestamp("ns"))}), path)
    rows = read(engine, path, wanted)
    assert {None, WallClock(1960, 1, 1, 0, 0, 0, 1)} == {at for (at,) in rows}
    pq.write_table(pa.table({"at": pa.array([1], pa.timestamp("ns"))}), path)
    with pytest.raises(InputError, match="nanoseconds would be lost"):
        read(engine, path, wanted)


ODD = [
    ("date", "infinity"),
    ("date", "2024-1-1"),
    ("date", "0001-01-01 BC"),
    ("timestamp", "10000-01-01T00:00:00"),
    ("timestamp", "2024-01-01 24:00:00"),
    ("timestamp", "2024-01-01 00:00:00+25:00"),
    ("timestamp_ntz", "2024-01-01T00:00:00Z"),
]
"""Texts that Spark refuses, or reads as what they hardly mean."""


def test_a_column_of_nulls_alone_is_to_be_cast(engine: DuckEngine, tmp_path: Path) -> None:
    """DuckDB writes them as numbers."""
    pq.write_table(
        pa.table({"n": pa.array([1]), "name": pa.array([None], pa.int32())}), tmp_path / "v.parquet"
    )
    with pytest.raises(InputError, match="column `name` of `v` is `int`, not `string`") as refused:
        read(engine, tmp_path / "v.parquet", expected(("n", "name"), (BIGINT, STRING)))
    hint = refused.value.diagnostics[0].hint
    assert hint == "store it as `string`, by a cast if it is null everywhere, or declare `name` as `int`"


@pytest.mark.parametrize(
    ("name", "text", "kind", "place"),
    [
        ("v.csv", "x\n1\ntwo\n", "int", (3, 1)),
        ("v.csv", "x\n1.0\n", "int", (2, 1)),
        ("v.csv", "x\n3000000000\n", "int", (2, 1)),
        ("v.csv", "x\n1.239\n", "decimal(5,2)", (2, 1)),
        ("v.csv", "x\n2024-02-30\n", "date", (2, 1)),
        ("v.csv", "x,y\n1\n", "int", (2, 1)),
        *(
            ("v.csv", f"y,x\na,1\nb,{text}\n", "double", (3, 3))
            for text in ("nan", "infinity", "1_0", "x", " 1")
        ),
        *(("v.csv", f"y,x\n{text},{text}\n", kind, (2, 2 + len(text))) for kind, text in ODD),
        *(
            ("v.jsonl", f'{{"y": "{text}", "x": "{text}"}}\n', kind, (1, 17 + len(text)))
            for kind, text in ODD
        ),
        ("v.jsonl", '{"x": 1.5}\n{"x": NaN}\n', "double", (2, 7)),
        ("v.jsonl", '{"x": "nan"}\n', "double", (1, 8)),
        ("v.jsonl", '{"x": 1e2}\n', "decimal(5,1)", (1, 7)),
        ("v.jsonl", '{"x": 1}\n{"x": "1"}\n', "int", (2, 8)),
        ("v.jsonl", '{"x": 1.25}\n', "decimal(5,1)", (1, 7)),
        ("v.jsonl", '{"x": 1\n', "int", (1, 8)),
        ("v.jsonl", "[1]\n", "int", (1, 1)),
    ],
)
def test_text_that_is_not_what_is_declared_stops_the_reading(
    name: str, text: str, kind: str, place: tuple[int, int], engine: DuckEngine, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    word, _, sizes = kind.partition("(")
    declared = ColumnType(TypeName(word), *(int(n) for n in sizes.rstrip(")").split(",") if sizes))
    names = ("x", "y") if any(named in text for named in (",y", "y,", '"y"')) else ("x",)
    with pytest.raises(InputError) as refused:
        read(engine, tmp_path / name, expected(names, (declared, STRING)[: len(names)]))
    found = refused.value.diagnostics[0]
    assert found.code is Code.COLUMNS_DIFFER
    assert found.span is not None
    assert (found.span.line, found.span.column) == place


def test_a_whole_number_in_json_of_thousands_of_digits_is_no_value(
    engine: DuckEngine, tmp_path: Path
) -> None:
    (tmp_path / "v.jsonl").write_text(f'{{"x": 1}}\n{{"x": {"9" * 5000}}}\n', encoding="utf-8")
    with pytest.raises(InputError) as refused:
        read(engine, tmp_path / "v.jsonl", expected(("x",), (ANY,)))
    assert refused.value.diagnostics[0].code is Code.ENGINE_DIFFERS


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["1", "-2", ""], "int"),
        (["1", "5000000000"], "bigint"),
        (["1", "2.5"], "double"),
        (["1e3", "NaN"], "double"),
        (["2024-02-29"], "date"),
        (["2024-02-29", "2024-02-29 10:00:00"], "timestamp"),
        (["true", "FALSE"], "boolean"),
        (["1", "a"], "string"),
        (["2024-02-29", "1"], None),
        (["99999999999999999999"], "double"),
        (["1 "], None),
        ([""], "string"),
    ],
)
def test_types_of_undeclared_texts_are_told_from_them(
    texts: list[str], kind: str | None, engine: DuckEngine, tmp_path: Path
) -> None:
    (tmp_path / "v.csv").write_text("x,y\n" + "".join(f"{text},1\n" for text in texts), encoding="utf-8")
    wanted = expected(("x", "y"), (ANY, INT))
    if kind is None:
        with pytest.raises(InputError) as refused:
            read(engine, tmp_path / "v.csv", wanted)
        assert refused.value.diagnostics[0].code is Code.ENGINE_DIFFERS
        return
    found = read_contents(engine.database, str(tmp_path / "v.csv"), wanted, declared=True)
    assert found.types[0] == ColumnType(TypeName(kind))


def test_what_only_spark_reads_is_refused(engine: DuckEngine, tmp_path: Path) -> None:
    part = tmp_path / "parts" / "k=1"
    part.mkdir(parents=True)
    pq.write_table(pa.table({"x": [1]}), part / "a.parquet")
    for place in ("s3://bucket/v", str(tmp_path / "parts")):
        with pytest.raises(InputError) as refused:
            read_contents(engine.database, place, expected(("x",), (INT,)), declared=True)
        assert refused.value.diagnostics[0].code is Code.ENGINE_DIFFERS, place


# ------------------------------------------------------------------------------------------------ warehouses

PROGRAM = """\
.decl r(a: int, b: int) key(a).
.decl s(b: int, name: string) key(b).
v(B, A) :- r(A, B).
.decl w(a: int, b: int, name: string).
w(A, B, N) :- r(A, B), s(B, N).
.view totals(b, n, t) bag.
totals(B, count(*), sum(A)) :- r(A, B).
.view names(b) bag.
names(B) :- r(A, B).
"""
FILE = """\
program = "views.dl"
[engine]
kind = "duckdb"
threads = 1
memory_limit = "500MB"
[views.v]
path = "v"
[views.w]
path = "w.csv"
[views.totals]
path = "totals.jsonl"
[views.names]
path = "names.csv"
[sources.files]
kind = "files"
[relations.r]
source = "files"
path = "after/r.parquet"
[relations.s]
source = "files"
path = "after/s.csv"
[copies.s]
present = "s_present.csv"
[update]
effective = true
"""


def ints(**columns: list[int]) -> pa.Table:
    return pa.table({name: pa.array(values, pa.int32()) for name, values in columns.items()})


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A warehouse over r = {(1, 7), (2, 8), (3, 7)} and s = {(7, a), (8, null)}; one row moves, one goes, one comes."""
    (tmp_path / "views.dl").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "w.toml").write_text(FILE, encoding="utf-8")
    (tmp_path / "v").mkdir()
    for number, (b, a) in enumerate((([7, 8], [1, 2]), ([7], [3]))):
        pq.write_table(ints(b=b, a=a), tmp_path / "v" / f"{number}.parquet")
    (tmp_path / "w.csv").write_text("a,b,name\n1,7,a\n2,8,\n3,7,a\n", encoding="utf-8")
    lines = [{"b": 7, "n": 2, "t": 4}, {"b": 8, "n": 1, "t": 2}]
    (tmp_path / "totals.jsonl").write_text(
        "".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8"
    )
    (tmp_path / "names.csv").write_text("b\n7\n8\n7\n", encoding="utf-8")
    (tmp_path / "s_present.csv").write_text("b,name\n7,a\n", encoding="utf-8")
    update = tmp_path / "update"
    update.mkdir()
    (update / "r.delete.csv").write_text("a,b\n2,8\n3,7\n", encoding="utf-8")
    (update / "r.insert.jsonl").write_text('{"a": 3, "b": 9}\n', encoding="utf-8")
    (update / "s.insert.csv").write_text("b,name\n9,new\n", encoding="utf-8")
    after = tmp_path / "after"
    after.mkdir()
    pq.write_table(ints(a=[1, 3], b=[7, 9]), after / "r.parquet")
    (after / "s.csv").write_text("b,name\n7,a\n8,\n9,new\n", encoding="utf-8")
    return tmp_path


def rows(warehouse: Any, relation: Relation) -> set[Row]:
    return set(warehouse.engine.sample(relation, 99))


def test_a_warehouse_is_checked_maintained_verified_and_written(shop: Path) -> None:
    with load(shop / "w.toml") as warehouse:
        assert warehouse.engine.name == "duckdb"
        update = Update.from_files(warehouse, shop / "update")
        verdicts = warehouse.check(update)
        assert all(isinstance(verdict, SelfMaintainable) for verdict in verdicts.values())
        found = warehouse.maintain(update, verify=True)
        assert found.differences == ()
        written_ = [entry.name for entry in warehouse.apply(found)]
        assert written_ == ["v", "w", "totals", "names", "s@present"]
    with load(shop / "w.toml") as warehouse:
        contents = {name: rows(warehouse, relation) for name, relation in warehouse.contents.items()}
        assert contents == {
            "v": {(7, 1), (9, 3)},
            "w": {(1, 7, "a"), (3, 9, "new")},
            "totals": {(7, 1, 1), (9, 1, 3)},
            "names": {(7, 1), (9, 1)},
        }
        assert rows(warehouse, warehouse.present["s"]) == {(7, "a"), (9, "new")}


def test_no_java_is_started_and_no_spark_imported(shop: Path) -> None:
    code = f"""
import sys
from selfmaint.cli import main
sys.argv = ["selfmaint", "maintain", {str(shop / "w.toml")!r}, "--update", {str(shop / "update")!r}, "--verify"]
try:
    main()
except SystemExit as ended:
    assert not ended.code, ended.code
assert not any(name.split(".")[0] in ("pyspark", "py4j") for name in sys.modules)
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "verified: recomputing every view from its sources gives the same rows" in ended.stdout


def test_both_engines_say_and_write_the_same_on_spark(shop: Path, request: pytest.FixtureRequest) -> None:
    request.getfixturevalue("spark")
    found = {}
    for engine in ("duckdb", "spark"):
        with load(shop / "w.toml", engine=engine) as warehouse:  # type: ignore[call-overload]
            update = Update.from_files(warehouse, shop / "update")
            deltas = warehouse.maintain(update).deltas
            found[engine] = {
                name: [
                    sorted(warehouse.engine.sample(part, 99), key=repr) for part in (delta.gained, delta.lost)
                ]
                for name, delta in deltas.items()
            }
    assert found["duckdb"] == found["spark"]


def test_an_undetermined_view_reads_its_source_by_key(shop: Path) -> None:
    (shop / "s_present.csv").write_text("b,name\n", encoding="utf-8")
    (shop / "update" / "s.insert.csv").unlink()
    with load(shop / "w.toml") as warehouse:
        found = warehouse.maintain(Update.from_files(warehouse, shop / "update"), verify=True)
    assert [(read.relation, read.key_columns, read.keys_asked, read.rows_read) for read in found.reads] == [
        ("s", ("b",), 1, 1)
    ]
    assert found.differences == ()


def test_the_command_line_names_the_engine(shop: Path) -> None:
    start, rest = FILE.split("[engine]\n")
    (shop / "w.toml").write_text(f"{start}[views.v]{rest.split('[views.v]')[1]}", encoding="utf-8")
    ran = run("check", str(shop / "w.toml"), "--update", str(shop / "update"), "--engine", "duckdb")
    assert (ran.status, ran.stderr) == (0, "")
    assert "w.toml" not in ran.stdout


def test_rows_are_given_as_relations_of_the_engine(shop: Path) -> None:
    with load(shop / "w.toml") as warehouse:
        given = warehouse.engine.load([(4, 7)], ["a", "b"], [INT, INT])
        update = Update.from_frames(warehouse, {"r": given})
        assert set(warehouse.engine.sample(update.inserted["r"], 9)) == {(4, 7)}
        with pytest.raises(InputError, match="not as a DataFrame or Arrow table"):
            Update.from_frames(warehouse, {"r": [(4, 7)]})


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ('kind = "duck"', "`duck` is no kind of engine"),
        ('kind = "spark"\nthreads = 2', "`threads` is a setting of the engine `duckdb`"),
        ('kind = "duckdb"\nthreads = 0', "at least 1"),
        ('kind = "duckdb"\nmemory = "1GB"', "unknown key `memory`"),
    ],
)
def test_a_wrong_entry_about_the_engine_is_told(shop: Path, entry: str, message: str) -> None:
    start, rest = FILE.split("[engine]\n")
    (shop / "w.toml").write_text(
        f"{start}[engine]\n{entry}\n[views.v]{rest.split('[views.v]')[1]}", encoding="utf-8"
    )
    with pytest.raises(SelfmaintError, match=message) as refused:
        load(shop / "w.toml")
    assert refused.value.diagnostics[0].code is Code.WAREHOUSE_FILE


def truncated(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-20])


def overwritten(file: Path) -> None:
    whole = file.read_bytes()
    file.write_bytes(whole[:4] + b"\xff" * 60 + whole[64:])


def of_another_column(file: Path) -> None:
    pq.write_table(ints(z=[1]), file)


GONE, CHANGED = "there is no file `{}` any more", "`{}` has changed since it was first looked at"
HARM: list[tuple[Callable[[Path], None], Code, str]] = [
    (Path.unlink, Code.MISSING_CONTENTS, GONE),
    (truncated, Code.COLUMNS_DIFFER, CHANGED),
    (overwritten, Code.COLUMNS_DIFFER, CHANGED),
    (of_another_column, Code.COLUMNS_DIFFER, CHANGED),
]


@pytest.mark.parametrize(("harm", "code", "message"), HARM)
@pytest.mark.parametrize("file", ["v/1.parquet", "update/r.insert.parquet"])
def test_a_file_that_is_harmed_while_it_is_used_is_told(
    shop: Path, file: str, harm: Callable[[Path], None], code: Code, message: str
) -> None:
    (shop / "update" / "r.insert.jsonl").unlink()
    pq.write_table(ints(a=[3], b=[9]), shop / "update" / "r.insert.parquet")
    with load(shop / "w.toml") as warehouse:
        update = Update.from_files(warehouse, shop / "update")
        harm(shop / file)
        with pytest.raises(InputError, match=re.escape(message.format(shop / file))) as refused:
            warehouse.check(update)
    assert refused.value.diagnostics[0].code is code


def test_a_file_that_was_damaged_before_is_told(shop: Path) -> None:
    """Its footer is whole."""
    overwritten(shop / "v" / "1.parquet")
    with load(shop / "w.toml") as warehouse:
        update = Update.from_files(warehouse, shop / "update")
        with pytest.raises(InputError, match="is damaged, or cannot be read") as refused:
            warehouse.check(update)
    assert refused.value.diagnostics[0].code is Code.COLUMNS_DIFFER


def test_a_file_in_another_encoding_is_told(engine: DuckEngine, tmp_path: Path) -> None:
    """Wherever it is found: the start of a file is read for its header."""
    text = "x,y\n" + "1,a\n" * 10_000
    (tmp_path / "v.csv").write_bytes(f"{text}2,\u00e9\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"CSV Error on Line: 10002 .*not utf-8") as refused:
        read(engine, tmp_path / "v.csv", expected(("x", "y"), (INT, STRING)))
    assert refused.value.diagnostics[0].code is Code.COLUMNS_DIFFER


def test_tables_are_sparks(shop: Path) -> None:
    file = shop / "w.toml"
    file.write_text(
        file.read_text(encoding="utf-8").replace('path = "v"', 'table = "db.v"'), encoding="utf-8"
    )
    with pytest.raises(InputError) as refused:
        load(file)
    assert refused.value.diagnostics[0].code is Code.ENGINE_DIFFERS


def test_footers_tell_sizes_nulls_and_which_column_finds_few_rows(engine: DuckEngine, tmp_path: Path) -> None:
    many = 4000
    table = pa.table({"k": range(many), "g": [i % 3 for i in range(many)], "t": ["x", None] * (many // 2)})
    pq.write_table(table, tmp_path / "v.parquet", row_group_size=1000)
    wanted = expected(("t", "g", "k"), (STRING, BIGINT, BIGINT))
    data = read_contents(engine.database, str(tmp_path / "v.parquet"), wanted, declared=True)
    layout = data.stored.layout
    assert (layout.rows, layout.never_null, dict(layout.spreads)) == (many, {1, 2}, {1: 3, 2: many})
    assert (engine.count(data), engine.fetch(data, many - 1)) == (many, None)
    assert [finding(layout, columns) for columns in ((0, 1, 2), (0, 1), (0,))] == [2, None, None]


def test_footers_of_files_with_another_order_of_columns_tell_no_columns(
    engine: DuckEngine, tmp_path: Path
) -> None:
    pq.write_table(pa.table({"a": [1, 2], "b": [3, 4]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"b": [5, 6], "a": pa.array([None, 7], pa.int64())}), tmp_path / "2.parquet")
    expected = Expected("r", ("a", "b"), (BIGINT, BIGINT))
    read = read_contents(engine.database, str(tmp_path), expected, declared=True)
    assert read.stored.layout.never_null == frozenset()
    assert set(engine.sample(read, 9)) == {(1, 3), (2, 4), (None, 5), (7, 6)}


@pytest.mark.parametrize(
    ("first", "second", "is_read"),
    [
        ({"a": [1]}, {"a": [1.5]}, False),
        ({"a": [1.5]}, {"a": [2**53 + 1]}, False),
        ({"a": [Decimal("1.0")]}, {"a": [Decimal("1.05")]}, False),
        ({"a": [1]}, {"a": ["7"]}, False),
        ({"a": [AT.date()]}, {"a": [AT]}, False),
        ({"a": [AT]}, {"a": [AT.replace(tzinfo=dt.UTC)]}, False),
        ({"a": [1]}, {"a": [1], "b": [1]}, False),
        ({"a": [1]}, {"b": [1]}, False),
        ({"a": [1]}, {"a": pa.array([2], pa.int8())}, True),
        ({"a": [None, 1]}, {"a": [None]}, True),
        ({"a": ["x"]}, {"a": pa.array(["y"]).dictionary_encode()}, True),
    ],
)
def test_files_of_one_folder_have_the_same_types(
    first: dict[str, Any], second: dict[str, Any], is_read: bool, engine: DuckEngine, tmp_path: Path
) -> None:
    """DuckDB casts the values of a file to the types of the first one: 1.5 would be 2."""
    for number, columns in enumerate((first, second)):
        pq.write_table(pa.table(columns), tmp_path / f"{number}.parquet")
    wanted = Expected("r", ("a",), (ANY,))
    if is_read:
        read = read_contents(engine.database, str(tmp_path), wanted, declared=True)
        values = [x for columns in (first, second) for x in pa.array(columns["a"]).to_pylist()]
        assert sorted(engine.sample(read, 9), key=repr) == sorted(((x,) for x in values), key=repr)
        return
    with pytest.raises(InputError, match="differ in column") as refused:
        read_contents(engine.database, str(tmp_path), wanted, declared=True)
    assert refused.value.diagnostics[0].code is Code.COLUMNS_DIFFER


@pytest.mark.parametrize(
    "line", ['{"a": ' * 12_000, '{"a": ' + "9" * 5000 + "}", '{"a": "' + "9" * 5000 + '"}', '{"a": [[1]]}']
)
def test_deep_and_long_json_is_no_traceback(line: str, engine: DuckEngine, tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").write_text(line + "\n")
    with pytest.raises(InputError):
        read_contents(
            engine.database, str(tmp_path / "r.jsonl"), Expected("r", ("a",), (BIGINT,)), declared=True
        )


def test_a_delta_table_without_rows_has_columns(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    engine = DuckEngine()
    empty = pa.table({"b": pa.array([], pa.int64()), "a": pa.array([], pa.string())})
    deltalake.write_deltalake(str(tmp_path / "r"), empty)
    found = read_contents(
        engine.database, str(tmp_path / "r"), expected(("a", "b"), (STRING, BIGINT)), declared=True
    )
    assert (engine.columns(found), engine.count(found)) == (("a", "b"), 0)
    with pytest.raises(InputError, match="SM104"):
        read_contents(
            engine.database, str(tmp_path / "r"), expected(("a", "z"), (STRING, BIGINT)), declared=True
        )


def test_a_file_that_is_cut_off_is_named_where_its_rows_are_counted(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "r.parquet")
    whole = (tmp_path / "r.parquet").read_bytes()
    (tmp_path / "r.parquet").write_bytes(whole[: len(whole) // 2])
    stored = StoredFiles(str(tmp_path / "r.parquet"), expected(("a",), (BIGINT,)))
    source = DuckSource("files", DuckEngine(), {"r": stored})
    with pytest.raises(SourceError, match=r"SM104.*r\.parquet` cannot be read as Parquet"):
        source.row_count("r")
