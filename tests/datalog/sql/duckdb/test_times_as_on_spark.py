"""Functions of dates and times: DuckDB's answer, and that of the evaluator in memory, is Spark's."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from datalog.evaluate.views import evaluate_view
from datalog.model import ColumnType, Predicate, Row, TypeName, Value, ViewDefinition, WallClock
from datalog.model.times import DATE_UNITS, TIME_UNITS
from datalog.sql.views import SqlText, read_sql
from selfmaint.duckdb import DuckEngine
from selfmaint.engine.protocol import Facts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from selfmaint.spark import SparkEngine

T = Predicate("t")
TIMES = [
    *(dt.datetime(2024, 2, 29, 23, 59, 59, 999999), dt.datetime(1969, 12, 31, 23, 59, 59, 999999)),
    *(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999), dt.datetime(1582, 10, 10, 12)),
    *(
        dt.datetime(2026, 3, 29, 2, 30),
        dt.datetime(2026, 10, 25, 1, 30, 0, 1),
        dt.datetime(1893, 3, 31, 23, 53, 28),
    ),
    *(dt.datetime(2025, 12, 29), dt.datetime(2027, 1, 3, 12, 34, 56, 123456), dt.datetime(2021, 1, 1)),
    *(dt.datetime(1900, 2, 28, 0, 0, 1), dt.datetime(33, 7, 4, 5, 6, 7, 8), dt.datetime(2024, 1, 31)),
]
KINDS = {"e": "date", "m": "timestamp", "w": "timestamp_ntz"}
NAMES = {"int": TypeName.INT, **{kind: TypeName(kind) for kind in KINDS.values()}}
CREATE = f"create table t (k int, n int, {', '.join(f'{name} {kind}' for name, kind in KINDS.items())});\n"
FAR = {
    **{name: name for name in KINDS},
    "b": "date_add(e, -1000000)",
    "c": "cast(date_add(e, 1000000) as timestamp)",
}
"""What the functions are of; the last two reach far before year 1, and after 9999."""
PARTS = ["year", "quarter", "month", "day", "hour", "minute", "second", "dayofmonth"]
PARTS += ["dayofweek", "dayofyear", "weekday", "weekofyear", "last_day", "date", "to_date"]
EXTRACTED = ["year", "quarter", "month", "week", "day", "dow", "dayofweek", "doy", "hour", "minute"]
PATTERNS = [
    "yyyy-MM-dd HH:mm:ss",
    "yyyyMM",
    "yyyy",
    "dd.MM.yyyy",
    "yyyy-MM-dd'T'HH:mm",
    "HH",
    "yyyy/MM, dd_mm'100%'",
]


INTERVALS = ("1 day", "'2' week", "3 months", "'4' years", "5 hours", "'90' minutes", "7 seconds")


def expressions() -> list[str]:
    found = [f"{part}({x})" for part in PARTS for x in FAR.values()]
    found += [f"extract({part} from {x})" for part in EXTRACTED for x in FAR.values()]
    found += [f"date_part('{part}', {x})" for part in EXTRACTED[::3] for x in KINDS]
    found += [f"date_trunc('{unit}', {x})" for unit in TIME_UNITS for x in FAR.values()]
    found += [f"date_trunc('{unit.upper()}', m)" for unit in TIME_UNITS]
    found += [f"trunc({x}, '{unit}')" for unit in DATE_UNITS for x in FAR.values()]
    found += [f'date_format({x}, "{pattern}")' for pattern in PATTERNS for x in KINDS]
    found += [f"datediff({x}, {y})" for x in FAR.values() for y in KINDS]
    found += [
        f"{call}({x}, {n})"
        for call in ("date_add", "date_sub", "add_months")
        for x in KINDS
        for n in ("n", "n * 13")
    ]
    found += [
        f"if(k in (2, 3), e, e {sign} interval {n})"
        for sign in "+-"
        for n in ("1 day", "'2' week", "3 months", "'4' years", "1 year")
    ]
    units = ("microsecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year")
    found += [f"timestampdiff({unit}, {x}, {y})" for unit in units for x, y in ("mw", "wm", "em", "we")]
    found += [
        f"datediff({unit}, {x}, {y})" for unit in ("hour", "day", "month") for x, y in ("ee", "mw", "we")
    ]
    ends = [f"{way} interval {days} days" for way in "+-" for days in (28, 30, 59, 90, 1461)]
    late = (
        "date_trunc('month', if(k in (2, 3), timestamp '2026-01-05', m)) - interval 1 day + interval 10 hours"
    )
    found += [
        f"timestampdiff({unit}, {late}, {late} {far} {sign} interval 1 hour)"
        for unit in ("month", "quarter", "year")
        for far in ends
        for sign in "+-"
    ]
    found += [f"timestampadd({unit}, n % 11, m)" for unit in units]
    found += [
        f"if(k in (2, 3), {x}, {x} {sign} interval {n})" for x in "mw" for sign in "+-" for n in INTERVALS
    ]
    found += ["dateadd(day, n, e)", "date_diff(minute, e, m)", "dateadd(hour, n, w)"]
    found += [
        "cast(date_trunc('month', m) as date)",
        "date_trunc('day', date(w))",
        "year(date_trunc('quarter', e))",
    ]
    return found


def types() -> list[ColumnType]:
    return [ColumnType(NAMES[kind]) for kind in ("int", "int", *KINDS.values())]


def rows() -> list[Row]:
    found: list[Row] = [
        (k, 0 if at.year in (1, 9999) else k % 5 - 2, at.date(), at, WallClock.of(at))
        for k, at in enumerate(TIMES)
    ]
    nulls: list[Value] = [None] * (1 + len(KINDS))
    return [*found, (len(found), *nulls)]


def view(query: str) -> ViewDefinition:
    found = read_sql([SqlText(CREATE, "tables"), SqlText(query, "v")])
    assert not found.opaque, (query, found.opaque[0].reasons)
    return found.views[0]


def loaded(engine: DuckEngine | SparkEngine) -> Facts:
    return Facts({T: engine.load(rows(), ["k", "n", *KINDS], types())})


CHUNK = 40


@pytest.mark.parametrize("start", range(0, len(expressions()), CHUNK))
def test_times(start: int, spark: SparkSession) -> None:
    from selfmaint.spark import SparkEngine

    spark.conf.set("spark.sql.codegen.wholeStage", "false")
    names = expressions()[start : start + CHUNK]
    engine = SparkEngine(spark, near_values=0)
    for some, ways in (
        ([name for name in names if "1000000" not in name], (by_duckdb, in_memory)),
        ([name for name in names if "1000000" in name], (by_duckdb,)),
    ):
        columns = ["k", *(shown(e, i) for i, e in enumerate(some))]
        definition = view(f"select {', '.join(columns)} from t")
        right = sorted(engine.sample(engine.evaluate_view(definition, loaded(engine), {T: types()}), 99))
        for way in ways:
            assert [
                (way.__name__, name, row[0], mine, its)
                for one, row in zip(way(definition), right, strict=True)
                for name, mine, its in zip(some, one[1:], row[1:], strict=True)
                if (mine, type(mine)) != (its, type(its))
            ] == []


def shown(expression: str, number: int) -> str:
    """An expression as a column: of what reaches beyond Python's years the days, for dates and times."""
    is_far = "1000000" in expression and expression.startswith(
        ("trunc", "date_t", "date(", "to_date", "last_day")
    )
    return (
        f"datediff({expression}, date '2000-01-01') as x{number}" if is_far else f"{expression} as x{number}"
    )


def by_duckdb(definition: ViewDefinition) -> list[Row]:
    duck = DuckEngine(most_few=0)
    return sorted(duck.sample(duck.evaluate_view(definition, loaded(duck), {T: types()}), 99))


def in_memory(definition: ViewDefinition) -> list[Row]:
    return sorted(evaluate_view(definition, {T: Counter(rows())}, {T: types()}))
