"""Statements over whole relations in DuckDB: made, dropped, cast, counted. Columns are `c0`, `c1`, ...

Rows are written to files under the columns' names, and so that Spark reads the same values: a timestamp as an instant,
a `timestamp_ntz` as what a clock shows. A column of nothing but nulls is one of texts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from sqlglot import exp

from datalog.model import ANY, ColumnType, TypeName
from datalog.sql.duckdb.types import SqlType, UnlikeSparkError, as_type, cast, common, type_name
from datalog.sql.unions import UNIT_COLUMN

Query: TypeAlias = exp.Query

_BIGINT = ColumnType(TypeName.BIGINT)


def create(name: str, query: exp.Query, *, held: bool) -> exp.Create:
    """The statement that makes a temporary relation: with `held` a table, else a view."""
    properties = exp.Properties(expressions=[exp.TemporaryProperty()])
    kind = "TABLE" if held else "VIEW"
    return exp.Create(this=_table(name), kind=kind, properties=properties, expression=query)


def setting(name: str, value: str) -> exp.Set:
    """The statement that gives a setting a value."""
    given = exp.EQ(this=exp.to_identifier(name), expression=exp.Literal.string(value))
    return exp.Set(expressions=[exp.SetItem(this=given)])


def drop(name: str, *, held: bool) -> exp.Drop:
    """The statement that drops it."""
    return exp.Drop(tables=[_table(name)], kind="TABLE" if held else "VIEW", exists=True)


def rows(
    name: str, width: int, *, limit: int | None = None, distinct: bool = False, ordered: bool = False
) -> exp.Select:
    """The rows of a relation, at most `limit`; in the order of their columns, nulls first."""
    query = exp.select(*_columns(width)).from_(_table(name), copy=False)
    if distinct:
        query.set("distinct", exp.Distinct())
    if ordered:
        places = (exp.Ordered(this=column, nulls_first=True) for column in _columns(width))
        query.order_by(*places, copy=False)
    return query if limit is None else query.limit(limit, copy=False)


def values_of(name: str, columns: Sequence[str], types: Sequence[SqlType]) -> exp.Select:
    """The rows of a relation whose columns have names of its own, with columns of some types, numbered.

    Doubles are multiplied by one, so that no test of them reaches a Parquet file: its Bloom filter takes 0.0 and -0.0,
    which are equal, for two values, and DuckDB then leaves out rows that have the other one.
    """
    items: list[exp.Expr] = []
    for i, (column, kind) in enumerate(zip(columns, types, strict=True)):
        value = cast(exp.column(column, quoted=True), kind)
        if isinstance(kind, ColumnType) and kind.name.is_floating:
            value = exp.Mul(this=value, expression=cast(exp.Literal.number(1), kind))
        items.append(exp.alias_(value, f"c{i}", quoted=True))
    return exp.select(*(items or [exp.alias_(exp.true(), UNIT_COLUMN, quoted=True)])).from_(
        _table(name), copy=False
    )


def listed(types: Sequence[SqlType]) -> exp.Select:
    """Rows that are given as parameters, a list of values for each column."""
    items: list[exp.Expr] = []
    for i, kind in enumerate(types):
        values = exp.cast(exp.Placeholder(), exp.DataType.build(f"{type_name(kind)}[]", dialect="duckdb"))
        items.append(exp.alias_(exp.Anonymous(this="unnest", expressions=[values]), f"c{i}", quoted=True))
    return exp.select(*items)


def first(query: exp.Query) -> exp.Query:
    """A query cut to its first row."""
    return query.limit(1, copy=False)


def number(name: str) -> exp.Select:
    """How many rows a relation has."""
    return exp.select(exp.Count(this=exp.Star())).from_(_table(name), copy=False)


def span(name: str) -> exp.Select:
    """The least and the greatest value of a relation's first column."""
    return exp.select(exp.Min(this=_column(0)), exp.Max(this=_column(0))).from_(_table(name), copy=False)


def cast_rows(
    name: str, types: Sequence[SqlType], to: Sequence[SqlType], places: Sequence[int] | None = None
) -> exp.Select:
    """The rows with other types, an error where a value does not fit.

    By default all columns are taken, in order.

    Raises:
        UnlikeSparkError: a cast that DuckDB does otherwise.
    """
    items: list[exp.Expr] = [
        exp.alias_(as_type(_column(i if places is None else places[i]), kind, wanted), f"c{i}", quoted=True)
        for i, (kind, wanted) in enumerate(zip(types, to, strict=True))
    ]
    return exp.select(*(items or _columns(0))).from_(_table(name), copy=False)


def letters(name: str, columns: Sequence[int]) -> exp.Select:
    """How many bytes the texts of some columns have together."""
    zero = exp.Literal.number(0)
    each: exp.Expr = zero
    for column in columns:
        length = exp.Anonymous(this="strlen", expressions=[_column(column)])
        each = exp.Add(this=each, expression=exp.Coalesce(this=length, expressions=[zero.copy()]))
    total = exp.Coalesce(this=exp.Sum(this=each), expressions=[zero.copy()])
    return exp.select(cast(total, _BIGINT)).from_(_table(name), copy=False)


def minus_all(
    left: tuple[str, Sequence[SqlType]], right: tuple[str, Sequence[SqlType]]
) -> tuple[exp.Query, tuple[SqlType, ...]]:
    """The rows of one relation without as many equal ones as another has, and their types."""
    united = tuple(common(kinds) for kinds in zip(left[1], right[1], strict=True))
    one, other = (cast_rows(name, kinds, united) for name, kinds in (left, right))
    return exp.Except(this=one, expression=other, distinct=False), united


def matching(
    data: tuple[str, Sequence[SqlType]], columns: Sequence[int], keys: tuple[str, Sequence[SqlType]]
) -> exp.Select:
    """The rows of a relation whose values in some columns are a row of another one, null being a value.

    Raises:
        UnlikeSparkError: types that are neither the same nor both of whole numbers.
    """
    tests: list[exp.Expr] = []
    for place, column in enumerate(columns):
        mine, other = data[1][column], keys[1][place]
        whole = all(isinstance(kind, ColumnType) and kind.name.is_integer for kind in (mine, other))
        if mine != other and not whole and ANY not in (mine, other):
            raise UnlikeSparkError(f"a key of type `{other}` for a column of type `{mine}`")
        left, right = _column(column), _column(place)
        left.set("table", exp.to_identifier("data", quoted=True))
        right.set("table", exp.to_identifier("keys", quoted=True))
        tests.append(exp.NullSafeEQ(this=left, expression=right))
    inside = exp.select(exp.Literal.number(1)).from_(
        exp.alias_(_table(keys[0]), "keys", quoted=True), copy=False
    )
    if tests:
        inside = inside.where(exp.and_(*tests, copy=False), copy=False)
    return (
        exp.select(*_columns(len(data[1])))
        .from_(exp.alias_(_table(data[0]), "data", quoted=True), copy=False)
        .where(exp.Exists(this=inside), copy=False)
    )


def together(parts: Sequence[tuple[str, Sequence[SqlType]]]) -> tuple[exp.Query, tuple[SqlType, ...]]:
    """All rows of some relations, and their types."""
    united = tuple(common(kinds) for kinds in zip(*(types for _, types in parts), strict=True))
    queries = [cast_rows(name, types, united) for name, types in parts]
    return (exp.union(*queries, distinct=False, copy=False) if len(queries) > 1 else queries[0]), united


def counted(name: str, types: Sequence[SqlType]) -> tuple[exp.Select, tuple[SqlType, ...]]:
    """The rows of a bag, each once, with its number of copies last, and their types."""
    width = len(types)
    number_of = exp.alias_(exp.Count(this=exp.Star()), f"c{width}", quoted=True)
    query = exp.select(*_columns(width)[:width], number_of).from_(_table(name), copy=False)
    if width:
        query.set("group", exp.Group(expressions=[_column(i) for i in range(width)]))
    return query, (*types, _BIGINT)


def numbered(name: str, types: Sequence[SqlType], sign: int) -> tuple[exp.Select, tuple[SqlType, ...]]:
    """The rows of a bag, each with its number among equal ones, from 1 on, times 1 or -1, and their types."""
    width = len(types)
    number_of = exp.Window(this=exp.RowNumber(), partition_by=[_column(i) for i in range(width)])
    last = exp.alias_(
        cast(exp.Mul(this=number_of, expression=exp.convert(sign)), _BIGINT), f"c{width}", quoted=True
    )
    kept = _columns(width)[:width]
    return exp.select(*kept, last).from_(_table(name), copy=False), (*types, _BIGINT)


def copies(name: str, width: int) -> exp.Select:
    """The sum of the last column; 0 of no rows."""
    total = exp.Coalesce(this=exp.Sum(this=_column(width - 1)), expressions=[exp.Literal.number(0)])
    return exp.select(cast(total, _BIGINT)).from_(_table(name), copy=False)


def recounted(parts: Sequence[tuple[str, Sequence[SqlType], int]]) -> tuple[exp.Query, tuple[SqlType, ...]]:
    """The sum of some bags of counted rows, each with 1 or -1, and its columns' types."""
    united = [common(kinds) for kinds in zip(*(types for _, types, _ in parts), strict=True)]
    last = len(united) - 1
    signed = []
    for name, types, sign in parts:
        query = cast_rows(name, types, [*united[:-1], _BIGINT])
        counted = exp.Mul(this=cast(_column(last), _BIGINT), expression=exp.convert(sign))
        query.expressions[last].set("this", counted)
        signed.append(query)
    together = exp.union(*signed, distinct=False, copy=False) if len(signed) > 1 else signed[0]
    number_of = cast(exp.Sum(this=_column(last)), _BIGINT)
    query = exp.select(*_columns(last)[:last], exp.alias_(number_of, f"c{last}", quoted=True))
    query = query.from_(together.subquery("parts", copy=False), copy=False)
    if last:
        query.set("group", exp.Group(expressions=[_column(i) for i in range(last)]))
    some = exp.GT(this=exp.Sum(this=_column(last)), expression=exp.Literal.number(0))
    query.set("having", exp.Having(this=some))
    return query, (*united[:-1], _BIGINT)


def expanded(name: str, width: int) -> exp.Select:
    """Each row as often as its last column says, without that column."""
    numbers = exp.Anonymous(this="range", expressions=[_column(width - 1)])
    each = exp.Anonymous(this="unnest", expressions=[numbers])
    unit: list[exp.Expr] = [exp.alias_(exp.true(), UNIT_COLUMN, quoted=True)]
    kept = _columns(width - 1) if width > 1 else unit
    inner = exp.select(*kept, exp.alias_(each, "copy", quoted=True)).from_(_table(name), copy=False)
    return exp.select(*_columns(width - 1)).from_(inner.subquery("copies", copy=False), copy=False)


def _columns(width: int) -> list[exp.Expr]:
    unit: list[exp.Expr] = [exp.column(UNIT_COLUMN, quoted=True)]
    return [_column(i) for i in range(width)] or unit


def _column(number: int) -> exp.Column:
    return exp.column(f"c{number}", quoted=True)


def _table(name: str) -> exp.Table:
    return exp.Table(this=exp.to_identifier(name, quoted=True))


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


def copy_to(query: exp.Query, file: str, *, dictionaries: bool) -> exp.Copy:
    """The statement that writes the rows of a query as Parquet; a dictionary holds one of 0.0 and -0.0 for both."""
    options: list[tuple[str, exp.Expr]] = [("FORMAT", exp.var("PARQUET"))]
    if not dictionaries:
        options.append(("DICTIONARY_SIZE_LIMIT", exp.Literal.number(0)))
    return exp.Copy(
        this=exp.Subquery(this=query),
        kind=False,
        credentials=exp.Credentials(),
        files=[exp.Literal.string(file)],
        params=[exp.CopyParameter(this=exp.var(name), expression=value) for name, value in options],
    )


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


def negative_zeros(name: str, types: Sequence[SqlType]) -> exp.Select | None:
    """The rows with -0.0 in some column; None if no column may hold it."""
    columns = [
        _column(i) for i, kind in enumerate(types) if isinstance(kind, ColumnType) and kind.name.is_floating
    ]
    if not columns:
        return None
    zero = exp.Literal.number(0)
    tests = (exp.and_(exp.EQ(this=c, expression=zero), exp.func("signbit", c)) for c in columns)
    return _select(name, columns).where(exp.or_(*tests), copy=False)


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


def _cast(tree: exp.Expr, name: str) -> exp.Expr:
    return exp.Cast(this=tree, to=exp.DataType.build(name, dialect="duckdb"))
