"""What one bag of rows has beyond another: each row of the other takes away one equal row; nulls are equal.

Both ways at once it is one grouping of all rows by what they are: a third of what two EXCEPT ALL take. Where there are
doubles it is these two: of 0.0 and -0.0, which are equal, a group has either.
"""

from __future__ import annotations

from datalog.sql.duckdb import SqlType
from datalog.sql.duckdb import relations as sql
from selfmaint.duckdb.database import Database, Relation
from selfmaint.duckdb.failures import writing_sql


def minus_all(database: Database, left: Relation, right: Relation) -> Relation:
    """The rows of `left` without as many equal ones as `right` has, computed now."""
    with writing_sql():
        query, types = sql.minus_all(*((one.stored.name, one.types) for one in (left, right)))
    return Relation(database.table(query, types, [left.stored.name, right.stored.name]), left.columns)


def beyond(database: Database, one: Relation, other: Relation) -> tuple[Relation, Relation]:
    """The rows of each without as many equal ones as the other has, computed now."""
    if not one.types or any(map(_may_be_floating, (*one.types, *other.types))):
        return minus_all(database, one, other), minus_all(database, other, one)
    with writing_sql():
        query, types = sql.balance(*((its.stored.name, its.types) for its in (one, other)))
    balance = database.table(query, types, [one.stored.name, other.stored.name])
    width = len(one.types)
    if not balance.rows:
        nothing = database.computed(frozenset(), types[:-1])
        return Relation(nothing, one.columns), Relation(nothing, other.columns)
    more, less = (
        database.table(sql.beyond(balance.name, width, sign), types[:-1], [balance.name]) for sign in (1, -1)
    )
    return Relation(more, one.columns), Relation(less, other.columns)


def _may_be_floating(kind: SqlType) -> bool:
    return isinstance(kind, str) or kind.name.is_floating
