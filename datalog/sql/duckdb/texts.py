"""Texts as values of types: each in its usual spelling, exactly, or an error that shows it.

Decimals may not need rounding; a timestamp without a zone is on the clock of UTC.
"""

# ruff: noqa: S608 - columns are named here, and all other names are put in as trees
from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot import exp

from datalog.model import ColumnType, TypeName
from datalog.sql.duckdb.relations import numbered_items
from datalog.sql.duckdb.templates import filled, selected
from datalog.sql.duckdb.types import call, cast, type_name, unless

CANNOT_HOLD = ", which cannot hold "
"""What stands before the refused text at the end of an error."""
_FLOAT = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|NaN|[+-]?Inf(inity)?|[+-]?INF"
DAY = r"\d{4}-\d\d-\d\d"
_ZONE = r"(Z|[+-]((0\d|1[0-7]):[0-5]\d|18:00))"
_HOURS = r"[+-](0\d|1[0-8])"
"""A zone as PostgreSQL and DuckDB print it; where no type is declared, Spark need not take such a text for a time."""
_TIME = r"([T ]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{1,6})?)?)"
_TIME_OF_SECONDS = r"[T ]([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,6})?"
_SURELY_TEXT = r"(?is)[^\s\d+.\-nitf].*"
INFERRED = tuple(
    ColumnType(name)
    for name in (
        TypeName.INT,
        TypeName.BIGINT,
        TypeName.DOUBLE,
        TypeName.DATE,
        TypeName.TIMESTAMP,
        TypeName.BOOLEAN,
    )
)
"""The types that texts without a declared one are taken for, the first that all fit."""
_ANY_DECIMAL = ColumnType(TypeName.DECIMAL, 38, 18)
"""What a number in a text file is read as where a decimal without precision is declared."""


def settled_type(declared: ColumnType) -> ColumnType:
    """The type that texts of a declared type are read as."""
    is_open = declared.name is TypeName.DECIMAL and declared.precision is None
    return _ANY_DECIMAL if is_open else declared


def escaped(path: str) -> str:
    """A path as DuckDB takes it for that path alone, and no pattern."""
    return re.sub(r"[*?\[]", r"[\g<0>]", path)


def csv(files: Sequence[str], width: int) -> exp.Select:
    """The texts of CSV files with a header line each; null is a field that is empty and not in quotes."""
    types = ", ".join(f"'c{i}': 'VARCHAR'" for i in range(width))
    options = """header = TRUE, auto_detect = FALSE, delim = ',', quote = '"', escape = '"', nullstr = '',
        allow_quoted_nulls = FALSE, strict_mode = TRUE, hive_partitioning = FALSE"""
    places = exp.Array(expressions=[exp.Literal.string(file) for file in files])
    read = filled(f"read_csv(:places, columns = {{{types}}}, {options})", places=places)
    return exp.select(*(exp.column(f"c{i}", quoted=True) for i in range(width))).from_(read, copy=False)


def looks(name: str, place: int) -> exp.Select:
    """What all texts of a column look like, empty ones apart: one row of truths, all null if there is no text.

    They stand in the order of `INFERRED`; the last says whether some text is nothing else, however Spark reads it.
    """
    text = exp.column(f"c{place}", quoted=True)
    tests = [call("bool_and", _looks_like(text, kind)) for kind in INFERRED]
    tests.append(call("bool_or", matches(text, _SURELY_TEXT)))
    query = selected(f"SELECT 1 FROM :name WHERE c{place} <> ''", name=name)
    return query.select(*numbered_items(tests), append=False, copy=False)


def _looks_like(text: exp.Expr, kind: ColumnType) -> exp.Expr:
    pattern = pattern_of(kind)
    assert pattern is not None
    fits = matches(text, pattern)
    if not kind.name.is_integer:
        return fits
    template = f":fits AND TRY_CAST(:text AS {type_name(kind)}) IS NOT NULL"
    return filled(template, fits=fits, text=text)


def matches(text: exp.Expr, pattern: str) -> exp.Expr:
    """Whether all of a text fits a pattern."""
    return call("regexp_full_match", text.copy(), exp.Literal.string(pattern))


def typed_texts(
    name: str, columns: Sequence[tuple[int, str, ColumnType]], *, empty_lines: bool
) -> exp.Select:
    """The rows of a relation of texts as values.

    Args:
        name: the relation.
        columns: for each column of the result the text's place, its name for messages, and its type.
        empty_lines: whether a null that is alone in its row is an empty line, which is no row.
    """
    values = [_typed(exp.column(f"c{place}", quoted=True), label, kind) for place, label, kind in columns]
    known = " WHERE c0 IS NOT NULL" if empty_lines and len(columns) == 1 else ""
    query = selected(f"SELECT 1 FROM :name{known}", name=name)
    return query.select(*numbered_items(values), append=False, copy=False)


def _typed(text: exp.Expr, label: str, kind: ColumnType) -> exp.Expr:
    pattern = pattern_of(kind)
    if pattern is None:
        return text
    if kind.name is TypeName.TIMESTAMP:
        pattern = f"{pattern}|{DAY}{_TIME_OF_SECONDS}{_HOURS}"
    if kind.name is TypeName.DECIMAL:
        text = _without_exponent(text)
    fits = matches(text, pattern)
    said = exp.Literal.string(f"column `{label}` is `{kind}`{CANNOT_HOLD}")
    return unless(exp.Not(this=fits), exp.DPipe(this=said, expression=text.copy()), cast(text, kind))


def _without_exponent(text: exp.Expr) -> exp.Expr:
    """A decimal's text with all its zeros: Java writes 0.0000001230 as `1.230E-7`."""
    return filled(_WITHOUT_EXPONENT, text=text)


_WITHOUT_EXPONENT = r"""
    CASE WHEN regexp_full_match(:text, '[+-]?\d(\.\d+)?E-\d{1,2}') THEN regexp_extract(:text, '^[+-]?', 0) || '0.'
    || repeat('0', CAST(regexp_extract(:text, 'E-(\d+)$', 1) AS INTEGER) - 1) || regexp_extract(:text, '^[+-]?(\d)', 1)
    || regexp_extract(:text, '\.(\d+)E', 1) ELSE :text END
"""


CAST_TO_TIME = rf"{DAY}({_TIME}|{_TIME_OF_SECONDS}{_ZONE})?"
"""What of these Spark casts to a time."""


def pattern_of(kind: ColumnType) -> str | None:
    """What texts of a type look like; None where any text is one."""
    if kind.name.is_integer:
        return r"[+-]?\d+"
    if kind.name is TypeName.DECIMAL:
        _, scale = kind.decimal_size
        return rf"[+-]?(\d+(\.\d{{0,{scale}}}0*)?|\.\d{{1,{max(scale, 1)}}}0*)"
    return {
        TypeName.FLOAT: _FLOAT,
        TypeName.DOUBLE: _FLOAT,
        TypeName.BOOLEAN: r"(?i)true|false",
        TypeName.DATE: DAY,
        TypeName.TIMESTAMP: f"{DAY}({_TIME}{_ZONE}?)?",
        TypeName.TIMESTAMP_NTZ: f"{DAY}{_TIME}?",
    }.get(kind.name)
