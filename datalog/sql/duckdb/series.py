"""The values from one to another as rows: see `datalog.sql.affected.series`."""

from __future__ import annotations

from sqlglot import exp

from datalog.model import ColumnType, TypeName
from datalog.sql.duckdb.templates import filled
from datalog.sql.duckdb.types import SqlType, Typed, UnlikeSparkError, cast, unless

FIRST, LAST, STEP, PLACE = "series_first", "series_last", "series_step", "series_place"
_BIGINT = ColumnType(TypeName.BIGINT)
_WIDER = [ColumnType(n) for n in (TypeName.TINYINT, TypeName.SMALLINT, TypeName.INT, TypeName.BIGINT)]
_MOST_INT = 2**31 - 1
_MONTHS = "(year(:last) - year(:first)) * 12 + month(:last) - month(:first)"  # as many, or one more, are whole months
_WRONG = "the ends of a sequence lie in the other direction than its step"


def listed(first: Typed, last: Typed, step: tuple[int, str] | None) -> tuple[dict[str, exp.Expr], SqlType]:
    """What is to be selected for `value`, by name, and its type: a row for each of its values, and perhaps one more.

    Raises:
        UnlikeSparkError: values of which it is not known what comes after them.
    """
    (one, kind), (other, its) = first, last
    is_date = isinstance(kind, ColumnType) and kind.name is TypeName.DATE
    is_number = isinstance(kind, ColumnType) and kind.name.is_integer
    both_numbers = is_number and isinstance(its, ColumnType) and its.name.is_integer
    if (kind != its and not both_numbers) or not (is_date or is_number):
        raise UnlikeSparkError(f"a sequence from `{_name(kind)}` to `{_name(its)}`")
    if step and ((step[1] == "number") != is_number or abs(step[0]) > _MOST_INT):
        raise UnlikeSparkError(f"a sequence of `{_name(kind)}` by {step[0]} {step[1]}")
    if is_number:  # Spark takes the widest type, that of the step among them
        kind = max((kind, its, *([ColumnType(TypeName.INT)] if step else ())), key=_WIDER.index)
    ends = {"first": cast(one, kind), "last": cast(other, kind)}
    by: exp.Expr = filled("CASE WHEN :first <= :last THEN 1 ELSE -1 END", **ends)
    size, unit = (1, "number") if step is None else step
    if step is not None:
        against = filled(":first > :last" if size > 0 else ":first < :last", **ends)
        by = unless(against, exp.Literal.string(_WRONG), cast(exp.Literal.number(size), _BIGINT))
    far = filled(_MONTHS if unit == "month" else ":last - :first", **ends)
    if is_number:
        far = filled("CAST(:last AS HUGEINT) - CAST(:first AS HUGEINT)", **ends)
    places = filled(f"UNNEST(RANGE(CAST(ABS(:far) // {abs(size)} AS BIGINT) + 1))", far=far)
    return {FIRST: ends["first"], LAST: ends["last"], STEP: by, PLACE: places}, kind


def value(kind: SqlType, step: tuple[int, str] | None) -> tuple[exp.Expr, exp.Expr]:
    """A value over what is selected, and whether it is one of them."""
    way = f"{PLACE} * {STEP}"
    if step is not None and step[1] == "month":
        found = filled(f"CAST({FIRST} + to_months(CAST({way} AS INTEGER)) AS DATE)")
    elif isinstance(kind, ColumnType) and kind.name is TypeName.DATE:
        found = filled(f"{FIRST} + CAST({way} AS INTEGER)")
    else:
        found = cast(filled(f"CAST({FIRST} AS HUGEINT) + CAST({PLACE} AS HUGEINT) * {STEP}"), kind)
    test = f"CASE WHEN {STEP} > 0 THEN :value <= {LAST} ELSE :value >= {LAST} END"
    return found, filled(test, value=found)


def _name(kind: SqlType) -> str:
    return str(kind).lower()
