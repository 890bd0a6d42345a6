"""Ranges of small relations, written into the statements that look them up in large ones.

A large relation is joined with keys that are at hand; that the keys lie between their smallest and their largest
value is then a condition that Parquet's statistics can answer without reading the rows. Where the contents are
clustered by the key, a lookup reads little more than what it finds.

Before: `d(X, Z) :- keys(X), v(X, Z).`
After:  `d(X, Z) :- keys(X), v(X, Z), X >= 3, X <= 7.`

Conditions of soundness:

1. The smallest and largest values are those of a column without null, so the conditions hold for every match.
2. Inside a negation they may be added for a variable that is bound outside it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import Struct
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as f
from pyspark.sql import types as st

from datalog.copies import replace
from datalog.model import (
    Atom,
    Comparison,
    Constant,
    Literal,
    Negation,
    Predicate,
    Program,
    Row,
    Rule,
    Value,
    Variable,
)
from selfmaint.spark.frames import positional

Range: TypeAlias = tuple[Value, Value]
"""The smallest and the largest value of a column."""

ONE_PARTITION_ROWS = 50_000
"""A held relation with at most so many rows is read as one partition."""

LONGEST_TEXT = 200
"""Longer strings are not written into statements."""

_ORDERED = (st.IntegralType, st.DecimalType, st.StringType, st.DateType)


class Measure(Struct, frozen=True):
    """What is known about the size and values of a relation.

    Attributes:
        rows: the number of rows, or None.
        ranges: by 0-based column, for columns without null whose values can be ordered and written.
    """

    rows: int | None
    ranges: Mapping[int, Range]


def held(frame: DataFrame) -> tuple[DataFrame, Measure]:
    """The rows, computed now and cut off from their plan, and their measure, all in one job."""
    plain = positional(frame)
    columns = [i for i, field in enumerate(frame.schema.fields) if isinstance(field.dataType, _ORDERED)]
    wanted: list[Column] = [f.count(f.lit(1)).alias("rows")]
    for i in columns:
        column = f.col(plain.columns[i])
        wanted += [
            f.count(column).alias(f"count{i}"),
            _plain(f.min(column), frame.schema.fields[i].dataType).alias(f"min{i}"),
            _plain(f.max(column), frame.schema.fields[i].dataType).alias(f"max{i}"),
        ]
    watch = Observation()
    rows = plain.observe(watch, *wanted).localCheckpoint(eager=True).toDF(*frame.columns)
    seen = watch.get
    ranges = {}
    for i in columns:
        low, high = seen[f"min{i}"], seen[f"max{i}"]
        if (
            low is not None
            and seen[f"count{i}"] == seen["rows"] > 0
            and high is not None
            and _can_be_written(low)
            and _can_be_written(high)
        ):
            ranges[i] = (low, high)
    if seen["rows"] <= ONE_PARTITION_ROWS:
        rows = rows.coalesce(1)  # what follows then needs no shuffle to remove duplicates
    return rows, Measure(seen["rows"], ranges)


def _plain(bound: Column, kind: st.DataType) -> Column:
    """A bound that comes here as it is: null for a day before the Gregorian calendar, or after the year 9999."""
    if not isinstance(kind, st.DateType):
        return bound
    first, last = (f.lit(day).cast("date") for day in ("1582-10-15", "9999-12-31"))
    return f.when(bound.between(first, last), bound)


def measured(rows: Collection[Row], types: Sequence[st.DataType]) -> Measure:
    """The measure of rows that are at hand."""
    ranges: dict[int, Range] = {}
    for i, kind in enumerate(types):
        values: list[Any] = [row[i] for row in rows]
        if values and isinstance(kind, _ORDERED) and None not in values:
            low, high = min(values), max(values)
            if _can_be_written(low) and _can_be_written(high):
                ranges[i] = (low, high)
    return Measure(len(rows), ranges)


def _can_be_written(value: Value) -> bool:
    return not isinstance(value, str) or len(value) <= LONGEST_TEXT


def bounded(program: Program, measures: Mapping[Predicate, Measure]) -> Program:
    """The program with the ranges of the measured predicates' columns as conditions on the other atoms."""
    return replace(program, rules=tuple(_rule(rule, measures) for rule in program.rules))


def _rule(rule: Rule, measures: Mapping[Predicate, Measure]) -> Rule:
    ranges = _ranges(rule.body, measures)
    return replace(rule, body=_body(rule.body, ranges, measures)) if ranges else rule


def _ranges(body: Sequence[Literal], measures: Mapping[Predicate, Measure]) -> dict[Variable, Range]:
    """The ranges that a body's own atoms give its variables."""
    found: dict[Variable, Range] = {}
    for literal in body:
        if isinstance(literal, Atom) and literal.predicate in measures:
            for i, range_ in measures[literal.predicate].ranges.items():
                term = literal.terms[i] if i < literal.arity else None
                if isinstance(term, Variable):
                    found.setdefault(term, range_)
    return found


def _body(
    body: Sequence[Literal], ranges: Mapping[Variable, Range], measures: Mapping[Predicate, Measure]
) -> tuple[Literal, ...]:
    """The body with conditions where a ranged variable meets an atom that is not measured."""
    known = {**_ranges(body, measures), **ranges}
    large = {t for li in body if isinstance(li, Atom) and li.predicate not in measures for t in li.terms}
    conditions: list[Literal] = []
    for variable, (low, high) in known.items():
        if variable in large:
            conditions.append(Comparison(">=", variable, Constant(low)))
            conditions.append(Comparison("<=", variable, Constant(high)))
    inner = (
        replace(li, body=_body(li.body, known, measures)) if isinstance(li, Negation) else li for li in body
    )
    return (*inner, *(c for c in conditions if c not in body))
