"""Keys that lie far from one another, looked for in parts: DuckDB decodes all rows that lie between the keys it joins.

    keys 1, 2, .., 1500, 2_000_017, 5_900_001        where 1 <= K <= 1500; where K < 1; where K > 1500

A relation's files are mostly in the order of its keys, and an update is of new rows, which lie together, and of a few
old ones. Up to `LISTED` keys DuckDB looks for one by one itself: of these it decodes the pages that have them.

The parts of the keys are disjoint and together all of them: null is no key here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from datalog.copies import replace
from datalog.model import Atom, Comparison, Constant, Predicate, Rule, Variable, Version
from datalog.sql.duckdb import relations as sql
from selfmaint.duckdb.database import Database
from selfmaint.duckdb.extensions import Extension, written
from selfmaint.duckdb.failures import writing_sql
from selfmaint.duckdb.relation import Stored
from selfmaint.engine.column_types import is_integer

APART = 3
"""For so many keys, whole numbers, each is looked for by itself in a relation of `MANY_ROWS`."""

MANY_ROWS = 1_000_000

LISTED = 50
"""So many values of a joined column DuckDB compares with what files say of their parts."""

NARROW = 4
"""Keys lie together that span a smaller part of what all of them span."""

_KEYS, _ROWS, _FOUND = (Predicate(name, Version.STEP) for name in ("keys", "rows", "found"))


def rows_of_keys(database: Database, rows: Extension, columns: Sequence[int], keys: Extension) -> Stored:
    """The rows whose values in some columns are one of some distinct keys, each as often as it is there; nulls equal.

    Raises:
        InputError: SM502 DuckDB compares otherwise than Spark.
    """
    types, names = rows.stored.types, [keys.stored.name, rows.stored.name]
    terms = tuple(Variable(f"X{i}") for i in range(len(types)))
    asked, found = Atom(_KEYS, tuple(terms[i] for i in columns)), Atom(_FOUND, terms)
    parts = by_parts(Rule(found, (asked, Atom(_ROWS, terms))), keys, rows)
    # Of two equal values the row's is taken: keys may have another type.
    parts = [replace(part, body=(part.body[1], part.body[0], *part.body[2:])) for part in parts]
    made = written(parts, {_KEYS: keys, _ROWS: rows})
    pairs = [(types[column], kind) for column, kind in zip(columns, keys.stored.types, strict=True)]
    is_one = all(one == other or (is_integer(one) and is_integer(other)) for one, other in pairs)
    with database.tuning.as_written():
        given = database.table(made.query(distinct=not is_one), made.types, names)
    if is_one:
        return given
    with writing_sql():  # two keys may equal one value: 2**53 and the next whole number are one double
        query = sql.matching((names[1], types), range(len(types)), (given.name, given.types))
    return database.table(query, types, [names[1], given.name])


def by_parts(rule: Rule, keys: Extension, stored: Extension) -> list[Rule]:
    """A rule over keys and a relation, in this order, for each part of the keys; as it is if they are in none."""
    number, rows = keys.stored.rows or 0, stored.stored.known_rows or 0
    is_apart = number > 1 and rows >= MANY_ROWS and all(map(is_integer, keys.stored.types))
    few = keys.stored.few if is_apart else None
    if few is None or keys.stored.with_null:
        return [rule]
    terms = rule.atoms[0].terms
    if number <= APART:
        tests = [[Comparison("=", t, Constant(v)) for t, v in zip(terms, r, strict=True)] for r in few.rows]
    else:
        near = _near(sorted({row[0] for row in few.rows}))
        if near is None:
            return [rule]
        first, last = map(Constant, near)
        tests = [
            [Comparison(">=", terms[0], first), Comparison("<=", terms[0], last)],
            [Comparison("<", terms[0], first)],
            [Comparison(">", terms[0], last)],
        ]
    return [replace(rule, body=(*rule.body, *its)) for its in tests]


def _near(values: Sequence[Any]) -> tuple[Any, Any] | None:
    """Between which values all lie but for those that are looked for one by one; None if they do not lie together."""
    number = len(values) - LISTED
    if number < 1:
        return None
    windows = ((values[i + number - 1] - values[i], i) for i in range(LISTED + 1))
    span, at = min(windows)
    # As much wider as it may be: what lies near them is not looked for elsewhere.
    first, last = at, at + number - 1
    while first and values[at] - values[first - 1] <= span:
        first -= 1
    while last + 1 < len(values) and values[last + 1] - values[at + number - 1] <= span:
        last += 1
    is_narrow = (values[last] - values[first]) * NARROW < values[-1] - values[0]
    return (values[first], values[last]) if is_narrow else None
