"""Texts as values of types: each in its usual spelling, exactly, or an error that shows it.

Decimals may not need rounding; a timestamp without a zone is on the clock of UTC.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from datalog.model import ColumnType, TypeName
from datalog.sql.duckdb.types import call, cast, type_name, unless

CANNOT_HOLD = ", which cannot hold "
"""What stands before the refused text at the end of an error."""
_FLOAT = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|NaN|[+-]?Inf(inity)?|[+-]?INF"
_DAY = r"\d{4}-\d\d-\d\d"
_ZONE = r"(Z|[+-](0\d|1[0-8]):[0-5]\d)"
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


def csv(files: Sequence[str], width: int) -> exp.Select:
    """The texts of CSV files with a header line each; null is a field that is empty and not in quotes."""
    columns = [
        exp.PropertyEQ(this=exp.Literal.string(f"c{i}"), expression=exp.Literal.string("VARCHAR"))
        for i in range(width)
    ]
    options: dict[str, exp.Expr] = {
        "header": exp.true(),
        "columns": exp.Struct(expressions=columns),
        "auto_detect": exp.false(),
        "delim": exp.Literal.string(","),
        "quote": exp.Literal.string('"'),
        "escape": exp.Literal.string('"'),
        "nullstr": exp.Literal.string(""),
        "allow_quoted_nulls": exp.false(),
        "strict_mode": exp.true(),
        "hive_partitioning": exp.false(),
    }
    given = [exp.EQ(this=exp.to_identifier(name), expression=value) for name, value in options.items()]
    places = exp.Array(expressions=[exp.Literal.string(file) for file in files])
    return exp.select(*(exp.column(f"c{i}", quoted=True) for i in range(width))).from_(
        call("read_csv", places, *given), copy=False
    )


def looks(name: str, place: int) -> exp.Select:
    """What all texts of a column look like, empty ones apart: one row of truths, all null if there is no text.

    They stand in the order of `INFERRED`; the last says whether some text is nothing else, however Spark reads it.
    """
    text = exp.column(f"c{place}", quoted=True)
    tests = [call("bool_and", _looks_like(text, kind)) for kind in INFERRED]
    tests.append(call("bool_or", _matches(text, _SURELY_TEXT)))
    items = [exp.alias_(test, f"c{i}", quoted=True) for i, test in enumerate(tests)]
    not_empty = exp.NEQ(this=text.copy(), expression=exp.Literal.string(""))
    table = exp.Table(this=exp.to_identifier(name, quoted=True))
    return exp.select(*items).from_(table, copy=False).where(not_empty, copy=False)


def _looks_like(text: exp.Expr, kind: ColumnType) -> exp.Expr:
    pattern = _pattern(kind)
    assert pattern is not None
    matches = _matches(text, pattern)
    if not kind.name.is_integer:
        return matches
    fits = exp.TryCast(this=text.copy(), to=exp.DataType.build(type_name(kind), dialect="duckdb"))
    known = exp.Is(this=fits, expression=exp.Not(this=exp.Null()))
    return exp.and_(matches, known, copy=False)


def _matches(text: exp.Expr, pattern: str) -> exp.Expr:
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
    items: list[exp.Expr] = [
        exp.alias_(_typed(exp.column(f"c{place}", quoted=True), label, kind), f"c{i}", quoted=True)
        for i, (place, label, kind) in enumerate(columns)
    ]
    table = exp.Table(this=exp.to_identifier(name, quoted=True))
    query = exp.select(*items).from_(table, copy=False)
    if empty_lines and len(columns) == 1:
        known = exp.Is(this=exp.column("c0", quoted=True), expression=exp.Not(this=exp.Null()))
        query.where(known, copy=False)
    return query


def _typed(text: exp.Expr, label: str, kind: ColumnType) -> exp.Expr:
    pattern = _pattern(kind)
    if pattern is None:
        return text
    if kind.name is TypeName.TIMESTAMP:
        pattern = f"{pattern}|{_DAY}{_TIME_OF_SECONDS}{_HOURS}"
    if kind.name is TypeName.DECIMAL:
        text = _without_exponent(text)
    fits = _matches(text, pattern)
    said = exp.Literal.string(f"column `{label}` is `{kind}`{CANNOT_HOLD}")
    return unless(exp.Not(this=fits), exp.DPipe(this=said, expression=text.copy()), cast(text, kind))


def _without_exponent(text: exp.Expr) -> exp.Expr:
    """A decimal's text with all its zeros: Java writes 0.0000001230 as `1.230E-7`."""
    power = exp.Cast(
        this=_extracted(text, r"E-(\d+)$", 1), to=exp.DataType.build("INTEGER", dialect="duckdb")
    )
    less = exp.Sub(this=power, expression=exp.Literal.number(1))
    result: exp.Expr = _extracted(text, "^[+-]?", 0)
    for part in (
        exp.Literal.string("0."),
        call("repeat", exp.Literal.string("0"), less),
        _extracted(text, r"^[+-]?(\d)", 1),
        _extracted(text, r"\.(\d+)E", 1),
    ):
        result = exp.DPipe(this=result, expression=part)
    short = exp.If(this=_matches(text, r"[+-]?\d(\.\d+)?E-\d{1,2}"), true=result)
    return exp.Case(ifs=[short], default=text)


def _extracted(text: exp.Expr, pattern: str, group: int) -> exp.Expr:
    return call("regexp_extract", text.copy(), exp.Literal.string(pattern), exp.Literal.number(group))


def _pattern(kind: ColumnType) -> str | None:
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
        TypeName.DATE: _DAY,
        TypeName.TIMESTAMP: f"{_DAY}({_TIME}{_ZONE}?)?",
        TypeName.TIMESTAMP_NTZ: f"{_DAY}{_TIME}?",
    }.get(kind.name)
