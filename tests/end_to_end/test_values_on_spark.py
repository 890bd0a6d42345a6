"""Every type that a declaration may name, with its odd values, in every kind of view, on a clock that changes.

Oracle: Spark computes the views' SQL from the rows after the update. Compared are texts of the values, which tell
-0.0 from 0.0 and instants of the same time of day apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, TypeAlias

import pytest

from selfmaint import Update, build
from selfmaint.api.maintain import new_contents
from tests.many_statements import interpreting
from tests.selfmaint.spark.test_groups_on_spark import FrameSource

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

Text: TypeAlias = tuple[int, int, int, str | None]
VALUES: dict[str, list[str]] = {
    "boolean": ["true", "false"],
    "tinyint": ["-128", "0", "127"],
    "smallint": ["-32768", "-1", "32767"],
    "int": ["-2147483648", "0", "2147483647"],
    "bigint": ["-9223372036854775808", "9007199254740993", "9007199254740992", "9223372036854775807", "0"],
    "float": ["-0.0", "0.0", "NaN", "Infinity", "-Infinity", "1.4E-45", "16777217", "-1.5"],
    "double": ["-0.0", "0.0", "NaN", "Infinity", "-Infinity", "4.9E-324", "0.1", "9007199254740993"],
    "decimal(5,2)": ["-999.99", "0", "0.01", "999.99"],
    "decimal(28,10)": [
        "0.0000000001",
        "123456789012345678.0123456789",
        "-123456789012345678.0123456789",
        "1",
    ],
    "decimal(38,0)": [
        "99999999999999999999999999999999999999",
        "-1",
        "-99999999999999999999999999999999999999",
    ],
    "decimal(38,18)": ["0.000000000000000001", "1234567890123456.123456789012345678", "-3.5", "7"],
    "string": ["", " ", "a", "a ", "A", "ä", "a\u0308", "ß", "\ufffd", "null"],
    "varchar(9)": ["", "a", "a ", "A"],
    "date": ["0001-01-01", "1582-10-04", "1582-10-15", "9999-12-31", "-0044-03-15", "+10000-01-01"],
    "timestamp": [
        *("2026-03-29 01:59:59.999999", "2026-03-29 03:00:00", "2026-10-25T00:30:00Z"),
        *("2026-10-25T01:30:00Z", "0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"),
        *("1893-03-31 23:30:00", "1582-10-10 12:00:00"),
    ],
    "timestamp_ntz": [
        *("2026-03-29 02:30:00", "2026-03-29 03:30:00", "2026-03-29 01:30:00", "2026-10-25 02:30:00"),
        *("0001-01-01 00:00:00", "9999-12-31 23:59:59.999999", "1582-10-10 12:00:00"),
    ],
}
EXACTLY_ADDED = ("tinyint", "smallint", "int", "decimal(5,2)", "decimal(28,10)", "decimal(38,18)")
KINDS = list(VALUES)
COLUMNS = [f"x{i}" for i, _ in enumerate(KINDS)]
ZONE = "Europe/Berlin"
LIST = ", ".join(COLUMNS)


def aggregates() -> str:
    found = ["g", "count(*) as n"]
    for i, (kind, x) in enumerate(zip(KINDS, COLUMNS, strict=True)):
        found += [f"count({x}) as n_{x}", f"{'min' if i % 2 else 'max'}({x}) as best_{x}"]
        if kind in EXACTLY_ADDED:
            found += [f"sum({x}) as sum_{x}", f"avg({x}) as avg_{x}"]
    return ", ".join(found)


TABLE = f"""create table r (k int not null primary key, g int not null,
    {", ".join(f"{x} {kind}" for kind, x in zip(KINDS, COLUMNS, strict=True))})"""
PLAIN = "select * from r"
VIEWS = {
    "narrow": f"select distinct {LIST} from r",
    "by_value": f"select {LIST}, count(*) as n from r group by {LIST}",
    "bag": f"select {LIST} from r",
    "by_group": f"select {aggregates()} from r group by g",
}


@pytest.fixture(scope="module")
def on_a_changing_clock(spark: SparkSession) -> Iterator[SparkSession]:
    zone = spark.conf.get("spark.sql.session.timeZone")
    with interpreting(spark):
        spark.conf.set("spark.sql.session.timeZone", ZONE)
        yield spark
    spark.conf.set("spark.sql.session.timeZone", str(zone))


def numbered_rows(random: Random) -> tuple[list[Text], list[Text], list[Text]]:
    """Rows kept, deleted and inserted, as texts: each has a value of one type, and null of all others."""
    parts: tuple[list[Text], list[Text], list[Text]] = [], [], []
    for i, values in enumerate(VALUES.values()):
        for value in [*values, None]:
            for _ in range(4):
                key = sum(map(len, parts))
                random.choice(parts).append((key, 4 * i + random.randrange(3), i, value))
    return parts


def frame_of(spark: SparkSession, rows: list[Text]) -> DataFrame:
    texts = spark.createDataFrame(rows, "k int not null, g int not null, i int, value string").coalesce(1)
    typed = (
        f"case when i = {i} then cast(value as {'string' if 'varchar' in kind else kind}) end as x{i}"
        for i, kind in enumerate(KINDS)
    )
    return texts.selectExpr("k", "g", *typed).localCheckpoint()


def shown(frame: DataFrame, *, signs: bool) -> Counter[tuple[str | None, ...]]:
    """The rows as texts; without `signs` of zeros."""
    from pyspark.sql import functions as f

    def text(name: str, kind: str) -> Column:
        column = f.col(name)
        if kind == "timestamp":
            column = f.unix_micros(column)
        elif kind in ("float", "double") and not signs:
            column = column + f.lit(0.0).cast(kind)
        return column.cast("string")

    return Counter(tuple(row) for row in frame.select(*(text(n, kind) for n, kind in frame.dtypes)).collect())


@dataclass(frozen=True)
class Rows:
    """The rows of the relation: those before and after the update, those deleted and those inserted."""

    before: DataFrame
    after: DataFrame
    gone: DataFrame
    new: DataFrame


@pytest.fixture(scope="module")
def rows_of_every_type(on_a_changing_clock: SparkSession) -> Rows:
    kept, gone, new = (frame_of(on_a_changing_clock, rows) for rows in numbered_rows(Random(1)))
    return Rows(kept.union(gone).localCheckpoint(), kept.union(new).localCheckpoint(), gone, new)


def test_every_type_is_maintained_as_it_is_recomputed(
    on_a_changing_clock: SparkSession, rows_of_every_type: Rows
) -> None:
    spark, given = on_a_changing_clock, rows_of_every_type
    views = {"plain": PLAIN, **VIEWS}
    program = ";\n".join([TABLE, *(f"create view {name} as {query}" for name, query in views.items())])
    given.before.createOrReplaceTempView("r")
    before = {name: spark.sql(query).localCheckpoint() for name, query in views.items()}
    warehouse = build(program, before, sources={"r": FrameSource({"r": given.after})}, spark=spark)
    update = Update({"r": given.new}, {"r": given.gone}, effective=True)
    found = warehouse.maintain(update, verify=True)
    assert not found.differences

    given.after.createOrReplaceTempView("r")
    for name, query in views.items():
        rows = new_contents(warehouse, warehouse.view(name), found.deltas[name])
        if name == "bag":
            rows = warehouse.engine.bags.expanded(rows)
        signs = name == "plain"
        expected = shown(spark.sql(query), signs=signs)
        assert shown(rows, signs=signs) == expected, name
    spark.catalog.dropTempView("r")  # tests share the session
