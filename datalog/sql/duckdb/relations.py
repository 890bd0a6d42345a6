"""Statements over whole relations in DuckDB: made, cast, counted. Columns are `c0`, `c1`, ...

Rows are written to files under the columns' names, and so that Spark reads the same values: a timestamp as an instant,
a `timestamp_ntz` as what a clock shows. A column of nothing but nulls is one of texts.
"""

# ruff: noqa: S608 - columns are named here, and all other names are put in as trees
from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TypeAlias

from sqlglot import exp

from datalog.model import ANY, ColumnType, TypeName
from datalog.sql.duckdb.templates import filled, selected
from datalog.sql.duckdb.types import SqlType, UnlikeSparkError, as_type, call, cast, common, type_name, unless
from datalog.sql.unions import UNIT_COLUMN

Query: TypeAlias = exp.Query

_BIGINT = ColumnType(TypeName.BIGINT)


def create(name: str, query: exp.Query, *, held: bool) -> exp.Create:
    """The statement that makes a temporary relation: with `held` a table, else a view."""
    properties = exp.Properties(expressions=[exp.TemporaryProperty()])
    table = exp.Table(this=exp.to_identifier(name, quoted=True))
    return exp.Create(this=table, kind="TABLE" if held else "VIEW", properties=properties, expression=query)


def rows(
    name: str, width: int, *, limit: int | None = None, distinct: bool = False, ordered: bool = False
) -> exp.Select:
    """The rows of a relation, at most `limit`; in the order of their columns, nulls first."""
    what = f"DISTINCT {_listed(width)}" if distinct else _listed(width)
    order = f" ORDER BY {_listed(width).replace(',', ' NULLS FIRST,')} NULLS FIRST" if ordered else ""
    query = selected(f"SELECT {what} FROM :name{order}", name=name)
    return query if limit is None else query.limit(limit, copy=False)


LOST = "nanoseconds would be lost"
"""What an error says of a timestamp that has some."""

NARROW = "which cannot hold "
"""What comes before a number in an error that says which type does not have it."""


def values_of(
    name: str, columns: Sequence[str], types: Sequence[SqlType], *, nanoseconds: Collection[str] = ()
) -> exp.Select:
    """The rows of a relation whose columns have names of its own, with columns of some types, numbered.

    Some columns are timestamps of nanoseconds: where one has any, it is an error where it is read.

    Doubles are multiplied by one, so that no test of them reaches a Parquet file: its Bloom filter takes 0.0 and -0.0,
    which are equal, for two values, and DuckDB then leaves out rows that have the other one.
    """
    items: list[exp.Expr] = []
    for column, kind in zip(columns, types, strict=True):
        stored = exp.column(column, quoted=True)
        value = cast(stored, kind)
        if column in nanoseconds:
            back = exp.cast(value.copy(), "TIMESTAMP_NS", dialect="duckdb")
            value = unless(exp.NEQ(this=back, expression=stored.copy()), exp.Literal.string(LOST), value)
        if isinstance(kind, ColumnType) and kind.name.is_floating:
            value = exp.Mul(this=value, expression=cast(exp.Literal.number(1), kind))
        items.append(value)
    return _select(name, numbered_items(items))


def with_texts(query: exp.Query, columns: Collection[int]) -> exp.Query:
    """A query that gives the texts of some columns, in the order of their values as before."""
    if not columns:
        return query
    query = query.copy()
    for i in columns:
        query.expressions[i].replace(exp.alias_(filled(f"CAST(c{i} AS VARCHAR)"), f"text{i}", quoted=True))
    return query


def listed(types: Sequence[SqlType]) -> exp.Select:
    """Rows that are given as parameters, a text for each column: a list as DuckDB writes it, of texts one in JSON.

    A list in Python is slower: of each of its texts DuckDB asks first whether it is pandas'.
    """
    return exp.select(*numbered_items([call("unnest", _list_of(kind)) for kind in types]))


def _list_of(kind: SqlType) -> exp.Expr:
    if kind == ColumnType(TypeName.STRING):
        return call("from_json", exp.Placeholder(), exp.Literal.string('["VARCHAR"]'))
    return exp.cast(exp.Placeholder(), exp.DataType.build(f"{type_name(kind)}[]", dialect="duckdb"))


def over_listed(query: exp.Query, width: int, tables: Mapping[str, Sequence[SqlType]]) -> exp.Select:
    """The rows of a query over tables whose rows are given as parameters, as `listed` has them."""
    found = exp.select(*(f"c{i}" for i in range(width))).from_(query.subquery("made", copy=False))
    for name, types in tables.items():
        found = found.with_(exp.to_identifier(name, quoted=True), listed(types), copy=False)
    return found


def number(name: str) -> exp.Select:
    """How many rows a relation has."""
    return selected("SELECT count(*) FROM :name", name=name)


def joined_rows(query: exp.Query, most: int, *, negating: bool) -> exp.Select:
    """How many rows a query has before equal ones are one, at most so many; of `negating`, what it negates left out."""
    plain = query.copy()
    plain.set("distinct", None)
    where = plain.args.get("where")
    if where is not None and not negating:
        tests = where.this.flatten() if isinstance(where.this, exp.And) else [where.this]
        kept = [test for test in tests if test.find(exp.Exists) is None]
        plain.set("where", exp.Where(this=exp.and_(*kept, copy=False)) if kept else None)
    plain.set("expressions", [exp.alias_(exp.Literal.number(1), "n")])
    return exp.select(exp.Count(this=exp.Star())).from_(plain.limit(most).subquery("joined"))


def span(name: str) -> exp.Select:
    """The least and the greatest value of a relation's first column."""
    return selected("SELECT min(c0), max(c0) FROM :name", name=name)


def least(keys: str, name: str, by: int, column: int) -> exp.Select:
    """For each of some keys that a column of a relation holds the least value of another one there, before the key."""
    query = f"SELECT min(data.c{column}) AS c0, keys.c0 AS c1 FROM :keys AS keys JOIN :data AS data"
    return selected(f"{query} ON data.c{by} = keys.c0 GROUP BY keys.c0", keys=keys, data=name)


def cast_rows(
    name: str,
    types: Sequence[SqlType],
    to: Sequence[SqlType],
    places: Sequence[int] | None = None,
    saying: Mapping[int, str] | None = None,
) -> exp.Select:
    """The rows with other types, an error where a value does not fit.

    By default all columns are taken, in order. `saying` has for some of the places what the error says of the value.

    Raises:
        UnlikeSparkError: a cast that DuckDB does otherwise.
    """
    columns = zip(range(len(types)) if places is None else places, types, to, strict=False)
    said = saying or {}
    items = [
        _saying(said[i], _column(i), wanted) if i in said else as_type(_column(i), kind, wanted)
        for i, kind, wanted in columns
    ]
    return _select(name, numbered_items(items) if types else [exp.column(UNIT_COLUMN, quoted=True)])


def _saying(said: str, value: exp.Column, to: SqlType) -> exp.Expr:
    """A number in a narrower type, and an error with what is said of one that does not fit."""
    fits = exp.TryCast(this=value, to=exp.DataType.build(type_name(to), dialect="duckdb"))
    lost = exp.NullSafeNEQ(this=fits, expression=value.copy())
    return unless(lost, call("concat", exp.Literal.string(said), value.copy()), cast(value.copy(), to))


def letters(name: str, columns: Sequence[int]) -> exp.Select:
    """How many bytes the texts of some columns have together."""
    each = " + ".join(["0", *(f"coalesce(strlen(c{i}), 0)" for i in columns)])
    return selected(f"SELECT CAST(coalesce(sum({each}), 0) AS BIGINT) FROM :name", name=name)


def minus_all(
    left: tuple[str, Sequence[SqlType]], right: tuple[str, Sequence[SqlType]]
) -> tuple[exp.Query, tuple[SqlType, ...]]:
    """The rows of one relation without as many equal ones as another has, and their types."""
    united = tuple(common(kinds) for kinds in zip(left[1], right[1], strict=True))
    one, other = (cast_rows(name, kinds, united) for name, kinds in (left, right))
    return exp.Except(this=one, expression=other, distinct=False), united


def minus_few(name: str, few: str, types: Sequence[SqlType]) -> exp.Query:
    """The rows of one relation without as many equal ones as another has, which are few."""
    every, (one, other) = range(len(types)), ((name, types), (few, types))
    met, unmet = matching(one, every, other), matching(one, every, other, negated=True)
    left = exp.Except(this=met, expression=rows(few, len(types)), distinct=False)
    rest = selected(f"SELECT {_listed(len(types))}").from_(left.subquery("rest", copy=False), copy=False)
    return exp.union(unmet, rest, distinct=False, copy=False)


def few_minus(few: str, name: str, types: Sequence[SqlType]) -> exp.Query:
    """Few rows without as many equal ones as another relation has."""
    met = matching((name, types), range(len(types)), (few, types))
    return exp.Except(this=rows(few, len(types)), expression=met, distinct=False)


def balance(
    left: tuple[str, Sequence[SqlType]], right: tuple[str, Sequence[SqlType]]
) -> tuple[exp.Query, tuple[SqlType, ...]]:
    """The rows of two relations that are not in both as often, with how many more the left one has, and their types."""
    united = tuple(common(kinds) for kinds in zip(left[1], right[1], strict=True))
    both = [
        cast_rows(name, kinds, united).select(exp.alias_(side, "is_left", quoted=True))
        for (name, kinds), side in ((left, exp.true()), (right, exp.false()))
    ]
    every, row = exp.union(*both, distinct=False, copy=False).subquery("every"), _listed(len(united))
    more = "count(*) FILTER (WHERE is_left) - count(*) FILTER (WHERE NOT is_left)"
    query = selected(f"SELECT {row}, {more} AS c{len(united)} GROUP BY {row} HAVING {more} <> 0")
    return query.from_(every, copy=False), (*united, _BIGINT)


def beyond(name: str, width: int, sign: int) -> exp.Select:
    """The rows of a balance that one side has more of (1 the left one), each as often as it has it more."""
    inner = f"SELECT {_listed(width)}, unnest(range({sign} * c{width})) AS copy FROM :name WHERE {sign} * c{width} > 0"
    return selected(f"SELECT {_listed(width)} FROM ({inner}) AS copies", name=name)


def matching(
    data: tuple[str, Sequence[SqlType]],
    columns: Sequence[int],
    keys: tuple[str, Sequence[SqlType]],
    *,
    negated: bool = False,
) -> exp.Select:
    """The rows of a relation whose values in some columns are a row of another one, or not; null being a value.

    Raises:
        UnlikeSparkError: types that are neither the same nor both of whole numbers.
    """
    for place, column in enumerate(columns):
        mine, other = data[1][column], keys[1][place]
        whole = all(isinstance(kind, ColumnType) and kind.name.is_integer for kind in (mine, other))
        if mine != other and not whole and ANY not in (mine, other):
            raise UnlikeSparkError(f"a key of type `{other}` for a column of type `{mine}`")
    tests = (f"data.c{column} IS NOT DISTINCT FROM keys.c{i}" for i, column in enumerate(columns))
    inside = f"SELECT 1 FROM :keys AS keys WHERE {' AND '.join(tests) or 'TRUE'}"
    query = f"SELECT {_listed(len(data[1]))} FROM :data AS data WHERE {'NOT ' if negated else ''}EXISTS ({inside})"
    return selected(query, data=data[0], keys=keys[0])


def together(parts: Sequence[tuple[str, Sequence[SqlType]]]) -> tuple[exp.Query, tuple[SqlType, ...]]:
    """All rows of some relations, and their types."""
    united = tuple(common(kinds) for kinds in zip(*(types for _, types in parts), strict=True))
    queries = [cast_rows(name, types, united) for name, types in parts]
    return (exp.union(*queries, distinct=False, copy=False) if len(queries) > 1 else queries[0]), united


def counted(name: str, types: Sequence[SqlType]) -> tuple[exp.Select, tuple[SqlType, ...]]:
    """The rows of a bag, each once, with its number of copies last, and their types."""
    width = len(types)
    by = f" GROUP BY {_listed(width)}" if width else ""
    query = f"SELECT {_followed(width)}count(*) AS c{width} FROM :name{by}"
    return selected(query, name=name), (*types, _BIGINT)


def numbered(name: str, types: Sequence[SqlType], sign: int) -> tuple[exp.Select, tuple[SqlType, ...]]:
    """The rows of a bag, each with its number among equal ones, from 1 on, times 1 or -1, and their types."""
    width = len(types)
    alike = f"PARTITION BY {_listed(width)}" if width else ""
    number = f"CAST(row_number() OVER ({alike}) * {sign} AS BIGINT) AS c{width}"
    return selected(f"SELECT {_followed(width)}{number} FROM :name", name=name), (*types, _BIGINT)


def copies(name: str, width: int) -> exp.Select:
    """The sum of the last column; 0 of no rows."""
    return selected(f"SELECT CAST(coalesce(sum(c{width - 1}), 0) AS BIGINT) FROM :name", name=name)


def recounted(parts: Sequence[tuple[str, Sequence[SqlType], int]]) -> tuple[exp.Query, tuple[SqlType, ...]]:
    """The sum of some bags of counted rows, each with 1 or -1, and its columns' types."""
    united = [common(kinds) for kinds in zip(*(types for _, types, _ in parts), strict=True)]
    last = len(united) - 1
    signed = []
    for name, types, sign in parts:
        query = cast_rows(name, types, [*united[:-1], _BIGINT])
        query.expressions[last].set("this", filled(f"CAST(c{last} AS BIGINT) * {sign}"))
        signed.append(query)
    every = exp.union(*signed, distinct=False, copy=False) if len(signed) > 1 else signed[0]
    total, by = f"CAST(sum(c{last}) AS BIGINT) AS c{last}", f" GROUP BY {_listed(last)}" if last else ""
    query = selected(f"SELECT {_followed(last)}{total} FROM parts{by} HAVING sum(c{last}) > 0")
    return query.from_(every.subquery("parts", copy=False), copy=False), (*united[:-1], _BIGINT)


def expanded(name: str, width: int) -> exp.Select:
    """Each row as often as its last column says, without that column."""
    kept = _listed(width - 1) if width > 1 else f"TRUE AS {UNIT_COLUMN}"
    inner = f"SELECT {kept}, unnest(range(c{width - 1})) AS copy FROM :name"
    return selected(f"SELECT {_listed(width - 1)} FROM ({inner}) AS copies", name=name)


def numbered_items(trees: Sequence[exp.Expr]) -> list[exp.Expr]:
    """Values as the columns `c0`, `c1`, ... of a query, which has one at least; the trees become part of them."""
    unit = [exp.alias_(exp.true(), UNIT_COLUMN, quoted=True)]
    return [exp.alias_(tree, f"c{i}", quoted=True, copy=False) for i, tree in enumerate(trees)] or unit


def _listed(width: int) -> str:
    return ", ".join(f"c{i}" for i in range(width)) or UNIT_COLUMN


def _followed(width: int) -> str:
    return "".join(f"c{i}, " for i in range(width))


def _column(number: int) -> exp.Column:
    return exp.column(f"c{number}", quoted=True)


def _select(name: str, items: Sequence[exp.Expr]) -> exp.Select:
    return exp.select(*items).from_(exp.Table(this=exp.to_identifier(name, quoted=True)), copy=False)


_SHOWN = "%Y-%m-%dT%H:%M:%S.%f"
_FORMATS = {TypeName.TIMESTAMP: f"{_SHOWN}Z", TypeName.TIMESTAMP_NTZ: _SHOWN}


def named(
    name: str, types: Sequence[SqlType], columns: Sequence[str], order: int | None = None
) -> exp.Select:
    """The rows for Parquet, in the order of a column."""
    items = [
        exp.alias_(filled("CAST(NULL AS VARCHAR)") if kind == ANY else _column(i), column, quoted=True)
        for i, (kind, column) in enumerate(zip(types, columns, strict=True))
    ]
    query = _select(name, items)
    return query if order is None else query.order_by(_column(order), copy=False)


def copy_to(query: exp.Query, file: str, *, dictionaries: bool) -> exp.Expr:
    """The statement that writes the rows of a query as Parquet; a dictionary holds one of 0.0 and -0.0 for both."""
    options = "FORMAT PARQUET" if dictionaries else "FORMAT PARQUET, DICTIONARY_SIZE_LIMIT 0"
    made = filled(f"COPY (SELECT 1) TO :file ({options})", file=file)
    made.this.set("this", query)
    return made


def texts_of(
    name: str, types: Sequence[SqlType], columns: Sequence[str], *, days_only: bool = False
) -> exp.Select:
    """The rows as texts; with `days_only` numbers, booleans and texts stay what they are."""
    items = [
        exp.alias_(_column(i) if days_only and not _is_day(kind) else _text(i, kind), column, quoted=True)
        for i, (kind, column) in enumerate(zip(types, columns, strict=True))
    ]
    return _select(name, items)


def null(name: str) -> exp.Select:
    """A row with null in the first column."""
    return selected("SELECT c0 FROM :name WHERE c0 IS NULL LIMIT 1", name=name)


def negative_zero(name: str, types: Sequence[SqlType]) -> exp.Select | None:
    """A row with -0.0 in some column; None if no column may hold it."""
    of = [f"c{i}" for i, kind in enumerate(types) if isinstance(kind, ColumnType) and kind.name.is_floating]
    tests = " OR ".join(f"({column} = 0 AND signbit({column}))" for column in of)
    return selected(f"SELECT {', '.join(of)} FROM :name WHERE {tests} LIMIT 1", name=name) if of else None


def _is_day(kind: SqlType) -> bool:
    return not isinstance(kind, str) and kind.name in {TypeName.DATE, *_FORMATS}


def _text(number: int, kind: SqlType) -> exp.Expr:
    if kind == ANY:
        return filled("CAST(NULL AS VARCHAR)")
    if not isinstance(kind, str) and kind.name in _FORMATS:
        return call("strftime", _column(number), exp.Literal.string(_FORMATS[kind.name]))
    if not isinstance(kind, str) and kind.name.is_floating:
        return filled(_FLOAT_TEXT, x=_column(number))
    return cast(_column(number), "VARCHAR")


_FLOAT_TEXT = """
    CASE WHEN :x = CAST('nan' AS DOUBLE) THEN 'NaN' WHEN :x = CAST('inf' AS DOUBLE) THEN 'Infinity'
    WHEN :x = CAST('-inf' AS DOUBLE) THEN '-Infinity' ELSE CAST(:x AS VARCHAR) END
"""
"""A floating-point number as Spark spells it."""
