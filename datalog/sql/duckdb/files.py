"""Rows as they are written to files: under the columns' names, and so that Spark reads the same values.

A timestamp is written as an instant, a `timestamp_ntz` as what a clock shows. A column of
nothing but nulls is one of texts.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from datalog.model import ANY, TypeName
from datalog.sql.duckdb.types import SqlType

_SHOWN = "%Y-%m-%dT%H:%M:%S.%f"
_FORMATS = {TypeName.TIMESTAMP: f"{_SHOWN}Z", TypeName.TIMESTAMP_NTZ: _SHOWN}


def named(
    name: str, types: Sequence[SqlType], columns: Sequence[str], order: int | None = None
) -> exp.Select:
    """The rows for Parquet, in the order of a column."""
    items = [
        exp.alias_(_stored(i, kind), column, quoted=True)
        for i, (kind, column) in enumerate(zip(types, columns, strict=True))
    ]
    query = _select(name, items)
    return query if order is None else query.order_by(_column(order), copy=False)


def texts_of(
    name: str, types: Sequence[SqlType], columns: Sequence[str], *, days_only: bool = False
) -> exp.Select:
    """The rows as texts; with `days_only` numbers, booleans and texts stay what they are."""
    items = [
        exp.alias_(_column(i) if days_only and not _is_day(kind) else _text(i, kind), column, quoted=True)
        for i, (kind, column) in enumerate(zip(types, columns, strict=True))
    ]
    return _select(name, items)


def nulls(name: str) -> exp.Select:
    """The rows with null in the first column."""
    is_null = exp.Is(this=_column(0), expression=exp.Null())
    return _select(name, [_column(0)]).where(is_null, copy=False)


def _is_day(kind: SqlType) -> bool:
    return not isinstance(kind, str) and kind.name in {TypeName.DATE, *_FORMATS}


def _stored(number: int, kind: SqlType) -> exp.Expr:
    if kind == ANY:
        return _cast(exp.Null(), "VARCHAR")
    return _column(number)


def _text(number: int, kind: SqlType) -> exp.Expr:
    column = _column(number)
    if kind == ANY:
        return _cast(exp.Null(), "VARCHAR")
    if not isinstance(kind, str) and kind.name in _FORMATS:
        return exp.Anonymous(this="strftime", expressions=[column, exp.Literal.string(_FORMATS[kind.name])])
    if not isinstance(kind, str) and kind.name.is_floating:
        return _float_text(column)
    return _cast(column, "VARCHAR")


def _float_text(column: exp.Expr) -> exp.Expr:
    """A floating-point number as Spark spells it."""
    spellings = {"NaN": "nan", "Infinity": "inf", "-Infinity": "-inf"}
    ifs = [
        exp.If(
            this=exp.EQ(this=column.copy(), expression=_cast(exp.Literal.string(own), "DOUBLE")),
            true=exp.Literal.string(spelling),
        )
        for spelling, own in spellings.items()
    ]
    return exp.Case(ifs=ifs, default=_cast(column, "VARCHAR"))


def _select(name: str, items: Sequence[exp.Expr]) -> exp.Select:
    return exp.select(*items).from_(exp.Table(this=exp.to_identifier(name, quoted=True)), copy=False)


def _column(number: int) -> exp.Column:
    return exp.column(f"c{number}", quoted=True)


def _cast(tree: exp.Expr, name: str) -> exp.Expr:
    return exp.Cast(this=tree, to=exp.DataType.build(name, dialect="duckdb"))
