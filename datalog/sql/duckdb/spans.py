"""Rows of a relation in DuckDB whose value in a column of dates or times lies in one of some spans."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from datalog.sql.duckdb.relations import rows
from datalog.sql.duckdb.templates import filled
from datalog.sql.duckdb.types import SqlType, cast


def between(
    name: str,
    types: Sequence[SqlType],
    column: int,
    spans: Sequence[tuple[str | None, str | None]],
    *,
    with_null: bool,
) -> exp.Select:
    """The rows of a relation whose value in a column lies in one of some spans, given as texts in order."""
    tests = [_within(f"c{column}", types[column], *ends) for ends in spans]
    tests += [filled(f"c{column} IS NULL")] if with_null else []
    found = rows(name, len(types)).where(exp.or_(*tests, copy=False) if tests else exp.false(), copy=False)
    bounded = [end for ends in spans for end in ends]
    if spans and not with_null and None not in bounded:  # what files tell of all their rows is asked first
        found.where(_within(f"c{column}", types[column], spans[0][0], spans[-1][1]), copy=False)
    return found


def _within(column: str, kind: SqlType, start: str | None, end: str | None) -> exp.Expr:
    given = {":column >= :at": start, ":column < :at": end}
    tests = [
        filled(test, column=exp.column(column), at=cast(exp.Literal.string(at), kind))
        for test, at in given.items()
        if at is not None
    ]
    return exp.and_(*tests, copy=False) if tests else filled(":column IS NOT NULL", column=exp.column(column))
