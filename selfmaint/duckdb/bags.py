"""What one bag of rows has beyond another: each row of the other takes away one equal row; nulls are equal.

Both ways at once it is one grouping of all rows by what they are: a third of what two EXCEPT ALL take. Where there are
doubles it is these two: of 0.0 and -0.0, which are equal, a group has either. One bag that is much smaller than the
other is looked up in it: what agrees with no row of it is not grouped.
"""

from __future__ import annotations

import math

from datalog.sql.duckdb import Query, SqlType
from datalog.sql.duckdb import relations as sql
from selfmaint.duckdb.database import Database
from selfmaint.duckdb.failures import writing_sql
from selfmaint.duckdb.relation import Relation

FEW = 8
"""Of two bags one that has so many times fewer rows than the other is looked up in it."""


def minus_all(database: Database, left: Relation, right: Relation) -> Relation:
    """The rows of `left` without as many equal ones as `right` has, computed now."""
    name, other, types = left.stored.name, right.stored.name, left.types
    sizes = left.stored.most_rows(), right.stored.most_rows()
    is_plain = types == right.types and not any(map(_may_be_floating, types))
    with writing_sql():
        if types and is_plain and sizes[1] * FEW <= sizes[0] and not math.isinf(sizes[1]):
            query: Query = sql.minus_few(name, other, types)
        elif types and is_plain and sizes[0] * FEW <= sizes[1] and not math.isinf(sizes[0]):
            query = sql.few_minus(name, other, types)
        else:
            query, types = sql.minus_all((name, types), (other, right.types))
    return Relation(database.table(query, types, [name, other]), left.columns)


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
