"""Stored contents in every format: what is read is what is stored, or it is refused with its reason."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from datalog.model import ANY, ColumnType, Row, TypeName
from selfmaint.errors import Code, InputError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from selfmaint.spark import SparkEngine
    from selfmaint.store.expected import Expected

BIGINT, INT, STRING = (ColumnType(TypeName(name)) for name in ("bigint", "int", "string"))
NAMES = ("n", "name", "price", "day", "at", "flag", "ratio")
TYPES = (
    BIGINT,
    STRING,
    ColumnType(TypeName.DECIMAL, 10, 2),
    *(ColumnType(TypeName(name)) for name in ("date", "timestamp", "boolean", "double")),
)
ROWS: list[Row] = [
    (1, "plain", Decimal("1.50"), dt.date(2024, 2, 29), dt.datetime(2024, 1, 2, 3, 4, 5, 123456), True, 0.1),
    (2, "", None, None, None, None, None),
    (None, None, Decimal("-0.01"), dt.date(1999, 12, 31), dt.datetime(1970, 1, 1), False, -1e300),
    (3, ' "quoted", \\ and\nbroken\r\nlines ', None, None, None, None, None),
    (4, "'; DROP TABLE x; -- ${a} `", None, None, None, None, None),
    (5, "\0", None, None, None, None, None),
    (6, "\0\0 null", None, None, None, None, None),
]


@pytest.fixture(scope="module")
def engine(spark: SparkSession) -> SparkEngine:
    from selfmaint.spark import SparkEngine

    return SparkEngine(spark)


def expected(names: tuple[str, ...] = NAMES, types: tuple[ColumnType, ...] = TYPES) -> Expected:
    from selfmaint.store.expected import Expected

    return Expected("v", names, types)


def read(spark: SparkSession, location: Path | str, wanted: Expected) -> DataFrame:
    from selfmaint.spark.tables import read_contents

    return read_contents(spark, str(location), wanted)


def refusal(spark: SparkSession, location: Path | str, wanted: Expected) -> InputError:
    with pytest.raises(InputError) as refused:
        read(spark, location, wanted)
    return refused.value


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl"])
def test_what_is_written_is_what_is_read(suffix: str, engine: SparkEngine, tmp_path: Path) -> None:
    from selfmaint.spark.formats import write_files
    from selfmaint.store.formats import format_of

    # A path is not a pattern. In that of a CSV file Spark would take it for one.
    path = tmp_path / ("v 1.csv" if suffix == "csv" else f"v {{1}}[2]*.{suffix}")
    write_files(engine.load(ROWS, NAMES, TYPES), path, format_of(str(path)))
    order = [3, 0, 6, 1, 5, 2, 4]
    wanted = expected(tuple(NAMES[i] for i in order), tuple(TYPES[i] for i in order))
    found = engine.sample(read(engine.spark, path, wanted), 99)
    assert sorted(found, key=repr) == sorted((tuple(row[i] for i in order) for row in ROWS), key=repr)
    assert engine.columns(read(engine.spark, path, wanted)) == wanted.columns


def test_hand_written_files_are_read_by_name(engine: SparkEngine, tmp_path: Path) -> None:
    csv, json = tmp_path / "a.csv", tmp_path / "b.jsonl"
    csv.write_text('name,n\n"a, ""b""",1\n,2\n"",3\n', encoding="utf-8")
    json.write_text('{"n": 1, "name": "a, \\"b\\""}\n{"n": 2}\n{"name": "", "n": 3}\n', encoding="utf-8")
    for path in (csv, json):
        found = engine.sample(read(engine.spark, path, expected(("n", "name"), (INT, STRING))), 9)
        assert sorted(found) == [(1, 'a, "b"'), (2, None), (3, "")], path.name
        assert sorted(engine.sample(read(engine.spark, path, expected(("n", "name"), (ANY, ANY))), 9)) == [
            *[(1, 'a, "b"'), (2, None), (3, "")]
        ], path.name


def test_missing_and_extra_columns_are_all_told_with_near_misses(engine: SparkEngine, tmp_path: Path) -> None:
    frame = engine.load([(1, 2, 3)], ["Qty", "item", "more"], [ANY] * 3)
    frame.write.parquet(str(tmp_path / "v.parquet"))
    (tmp_path / "v.csv").write_text("Qty,item,more\n1,2,3\n", encoding="utf-8")
    (tmp_path / "v.jsonl").write_text('{"Qty": 1, "item": 2, "more": 3}\n', encoding="utf-8")
    for name in ("v.parquet", "v.csv", "v.jsonl"):
        wanted = expected(("item", "qty", "price"), (ANY, ANY, ANY))
        (found,) = refusal(engine.spark, tmp_path / name, wanted).diagnostics
        assert found.code is Code.COLUMNS_DIFFER
        assert found.message == (
            "the columns of `v` do not fit: `qty`, `price` missing; `Qty`, `more` not expected"
        )
        assert found.note == "there are `Qty`, `item`, `more`; expected are `item`, `qty`, `price`"
        assert found.hint == "rename `Qty` to `qty`"


@pytest.mark.parametrize(
    ("stored", "declared", "fits"),
    [
        ("int", "bigint", True),
        ("bigint", "int", True),
        ("string", "bigint", False),
        ("bigint", "string", False),
        ("tinyint", "double", True),
        ("bigint", "double", False),
        ("float", "double", True),
        ("double", "float", False),
        ("decimal(8,2)", "decimal(10,2)", True),
        ("decimal(8,2)", "decimal(8,3)", True),
        ("int", "decimal(12,2)", True),
        ("int", "decimal(10,2)", True),
        ("decimal(5,0)", "int", True),
        ("date", "timestamp", False),
        ("timestamp_ntz", "timestamp", False),
        ("timestamp", "timestamp_ntz", False),
        ("timestamp_ntz", "timestamp_ntz", True),
        ("string collate UTF8_LCASE", "string", False),
        ("string collate UTF8_LCASE", "any", False),
        ("binary", "any", False),
        ("boolean", "int", False),
    ],
)
def test_a_stored_type_may_be_narrower_and_of_exact_numbers_wider(
    stored: str, declared: str, fits: bool, spark: SparkSession
) -> None:
    from selfmaint.spark.column_types import spark_type
    from selfmaint.spark.tables import conform

    name, _, size = declared.rstrip(")").partition("(")
    wanted = ColumnType(TypeName(name), *(int(digits) for digits in size.split(",") if digits))
    frame = spark.range(0).selectExpr(f"CAST(NULL AS {stored}) AS n")
    if fits:
        assert conform(frame, expected(("n",), (wanted,))).schema["n"].dataType == spark_type(wanted)
        return
    with pytest.raises(InputError) as refused:
        conform(frame, expected(("n",), (wanted,)))
    (found,) = refused.value.diagnostics
    assert found.code is Code.COLUMNS_DIFFER
    assert found.message == f"column `n` of `v` is `{stored}`, not `{declared}`"


def test_a_wider_integer_is_read_where_its_values_fit(spark: SparkSession) -> None:
    from selfmaint.spark.failures import translated
    from selfmaint.spark.tables import conform

    wanted = expected(("n",), (ColumnType(TypeName.SMALLINT),))
    frame = conform(spark.sql("SELECT explode(array(32767L, -32768L, NULL)) AS n"), wanted)
    assert [tuple(row) for row in frame.collect()] == [(32767,), (-32768,), (None,)]
    with (
        pytest.raises(InputError, match="`n` of `v` is declared `smallint`, which cannot hold 32768"),
        translated(),
    ):
        conform(spark.sql("SELECT explode(array(1L, 32768L)) AS n"), wanted).collect()
    price = expected(("n",), (ColumnType(TypeName.DECIMAL, 4, 2),))
    frame = conform(spark.sql("SELECT explode(array(1.500BD, NULL)) AS n"), price)
    assert [str(row[0]) for row in frame.collect()] == ["1.50", "None"]
    for value in ("1.505", "100.000"):
        with pytest.raises(InputError, match=f"`decimal.4,2.`, which cannot hold {value}"), translated():
            conform(spark.sql(f"SELECT explode(array({value}BD)) AS n"), price).collect()


def test_an_undeclared_type_is_the_stored_one(spark: SparkSession) -> None:
    from selfmaint.spark.tables import conform

    frame = spark.sql("SELECT CAST(1 AS SMALLINT) AS a, CAST(1 AS DECIMAL(7, 3)) AS b, 'x' AS c, 1 AS d")
    types = (ANY, ColumnType(TypeName.DECIMAL), ANY, ColumnType(TypeName.DECIMAL))
    found = conform(frame, expected(("a", "b", "c", "d"), types))
    assert [f.dataType.simpleString() for f in found.schema.fields] == [
        *["smallint", "decimal(7,3)", "string", "decimal(10,0)"]
    ]


def test_types_that_the_language_does_not_have_are_refused(spark: SparkSession) -> None:
    from selfmaint.spark.tables import conform

    frame = spark.sql("SELECT array(1) AS a, X'00' AS b")
    with pytest.raises(InputError) as refused:
        conform(frame, expected(("a", "b"), (ANY, ANY)))
    assert len(refused.value.diagnostics) == 2


@pytest.mark.parametrize(
    ("name", "text", "message", "place"),
    [
        ("v.csv", "n,name\n1,a\nx,b\n", "column `n` of `v` is `int`, which cannot hold `x`", (3, 1, 1)),
        ("v.csv", "name,n\na,1\nb,1.5\n", "column `n` of `v` is `int`, which cannot hold `1.5`", (3, 3, 3)),
        ("v.csv", "n,name\n3000000000,a\n", "`int`, which cannot hold `3000000000`", (2, 1, 10)),
        ("v.csv", 'n,name\n1,"a\nb"\nx,c\n', "which cannot hold `x`", (4, 1, 1)),
        ("v.csv", "n,name\n1,a\n1,b,c\n", "it has 3 values, and the header 2", (3, 1, 1)),
        ("v.jsonl", '{"n": 1, "name": "a"}\n{"n": "x", "name": "b"}\n', "cannot hold `x`", (2, 8, 1)),
        ("v.jsonl", '{"n": 1.5, "name": "a"}\n', "`int`, which cannot hold `1.5`", (1, 7, 3)),
        ("v.jsonl", '{"n": 1, "name": "a"}\n{"n": \n', "a record of `v` cannot be read: no JSON", (2, 6, 1)),
        ("v.jsonl", '{"n": 1, "name": "a"}\n[1]\n', "a record of `v` cannot be read: no JSON obj", (2, 1, 1)),
    ],
)
def test_text_that_is_not_what_is_declared_stops_the_reading(
    name: str, text: str, message: str, place: tuple[int, int, int], engine: SparkEngine, tmp_path: Path
) -> None:
    file = tmp_path / f"a {name}"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as refused:
        engine.sample(read(engine.spark, file, expected(("n", "name"), (INT, STRING))), 9)
    (found,) = refused.value.diagnostics
    assert found.code is Code.COLUMNS_DIFFER
    assert message in found.message
    assert found.span is not None
    assert (found.span.source, found.span.line) == (str(file), place[0])
    assert (found.span.column, found.span.length) == place[1:]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("v.jsonl", '{"n": 1, "name": 7}\n', "column `name` of `v` is `bigint`, not `string`"),
        ("v.csv", 'n,name\n"",a\n', '`{}` cannot be read as what is declared: For input string: ""'),
        ("v.csv", "", "`v`: `{}` is empty"),
    ],
)
def test_text_whose_fault_has_no_line_is_refused_with_its_file(
    name: str, text: str, message: str, engine: SparkEngine, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as refused:
        engine.sample(read(engine.spark, tmp_path / name, expected(("n", "name"), (INT, STRING))), 9)
    (found,) = refused.value.diagnostics
    assert (found.code, found.message) == (Code.COLUMNS_DIFFER, message.format(tmp_path / name))
    assert found.hint


@pytest.mark.parametrize(
    ("name", "text"), [("v.csv", "d\n1.25\n{}\n"), ("v.jsonl", '{{"d": 1.25}}\n{{"d": {}}}\n')]
)
def test_a_decimal_in_text_is_never_rounded(
    name: str, text: str, engine: SparkEngine, tmp_path: Path
) -> None:
    wanted = expected(("d",), (ColumnType(TypeName.DECIMAL, 10, 2),))
    (tmp_path / name).write_text(text.format("-12345678.5"), encoding="utf-8")
    found = engine.sample(read(engine.spark, tmp_path / name, wanted), 9)
    assert sorted(found) == [(Decimal("-12345678.50"),), (Decimal("1.25"),)]
    for bad in ("1.239", "123456789", "0.0000000001"):
        (tmp_path / name).write_text(text.format(bad), encoding="utf-8")
        with pytest.raises(
            InputError, match=f"`d` of `v` is `decimal.10,2.`, which cannot hold `{bad}`"
        ) as no:
            engine.sample(read(engine.spark, tmp_path / name, wanted), 9)
        assert str(no.value.diagnostics[0].span).startswith(f"{tmp_path / name}:{text.count(chr(10))}:")


def test_files_of_one_directory_with_other_headers_are_refused(engine: SparkEngine, tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("n,name\n1,2\n", encoding="utf-8")
    (tmp_path / "2.csv").write_text("name,n\n1,2\n", encoding="utf-8")
    with pytest.raises(InputError):
        engine.sample(read(engine.spark, tmp_path, expected(("n", "name"), (INT, STRING))), 9)


def test_what_is_not_there_is_said_to_be_missing(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for location in (
        tmp_path / "nothing.parquet",
        tmp_path / "nothing",
        tmp_path / "empty",
        "no_such.table",
        "a b;c",
    ):
        found = refusal(spark, location, expected()).diagnostics
        assert [d.code for d in found] == [Code.MISSING_CONTENTS], location
    (tmp_path / "v[1].csv").write_text("n\n1\n", encoding="utf-8")
    assert "cannot hold any of" in str(refusal(spark, tmp_path / "v[1].csv", expected()))


def test_files_that_are_no_parquet_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "v.parquet").write_text("n\n1\n", encoding="utf-8")
    assert refusal(spark, tmp_path / "v.parquet", expected()).diagnostics[0].code is Code.COLUMNS_DIFFER


def test_tables_of_the_catalog_are_read_by_name(engine: SparkEngine) -> None:
    spark = engine.spark
    spark.range(3).selectExpr("'x' AS name", "CAST(id AS INT) AS n").createTempView("tables_test_view")
    try:
        found = read(spark, "tables_test_view", expected(("n", "name"), (BIGINT, STRING)))
        assert engine.sample(found, 9) == [(0, "x"), (1, "x"), (2, "x")]
        assert found.schema["n"].dataType.simpleString() == "bigint"
    finally:
        spark.catalog.dropTempView("tables_test_view")


def test_contents_are_read_anew_though_the_caller_cached_the_old_ones(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "v"
    spark.range(1).write.parquet(str(path))
    cached = spark.read.parquet(str(path)).cache()
    try:
        assert cached.count() == 1
        spark.range(2).write.mode("overwrite").parquet(str(path))
        assert read(spark, path, expected(("id",), (BIGINT,))).count() == 2
    finally:
        cached.unpersist()
