"""SQL views over small tables of integers, and what they hold: as DuckDB says."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import TypeAlias

from datalog.model import Predicate, Row, Version
from tests.plain_duckdb import plain_duckdb

Tables: TypeAlias = Mapping[str, Mapping[int, Row]]
"""For each table its rows, by their key."""


def some_condition(random: Random, columns: Sequence[str]) -> str:
    """A WHERE clause over one of some columns, or none."""
    tests = ("{} = 1", "{} < 2", "{} IS NULL", "{} IS NOT NULL", "({} = 1 OR {} IS NULL)")
    column = random.choice(columns)
    return random.choice(["", "", *(f" WHERE {test.format(column, column)}" for test in tests)])


def contents(columns: Mapping[str, Sequence[str]], tables: Tables, views: str) -> dict[str, list[Row]]:
    """What views hold, in some order that is always the same.

    Args:
        columns: the columns of each table.
        tables: their rows.
        views: CREATE VIEW statements.
    """
    with plain_duckdb() as connection:
        for name, its in columns.items():
            connection.execute(f"CREATE TABLE {name} ({', '.join(f'{c} INT' for c in its)})")
            for row in tables[name].values():
                connection.execute(f"INSERT INTO {name} VALUES ({', '.join('?' * len(row))})", row)
        connection.execute(views)
        names = re.findall(r"CREATE VIEW (\w+)", views)
        return {n: sorted(connection.execute(f"FROM {n}").fetchall(), key=repr) for n in names}


def update_between(before: Tables, after: Tables) -> dict[Predicate, frozenset[Row]]:
    """The effective update that leads from some tables to others."""
    sides = {
        Predicate(name, version): frozenset(one[name].values()) - frozenset(other[name].values())
        for name in before
        for version, one, other in ((Version.DELETED, before, after), (Version.INSERTED, after, before))
    }
    return {predicate: rows for predicate, rows in sides.items() if rows}
