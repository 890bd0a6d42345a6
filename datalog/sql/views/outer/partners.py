"""LEFT JOINs along foreign keys as two queries: rows with a partner, and rows without.

    SELECT p.id, coalesce(c.name, 'none') AS name FROM product p LEFT JOIN category c ON c.id = p.category

    SELECT p.id, coalesce(c.name, 'none') AS name FROM product p JOIN category c ON c.id = p.category
    UNION ALL SELECT p.id, coalesce(NULL, 'none') FROM product p WHERE p.category IS NULL

What each of the two gains and loses may be determined where the rows of the whole do not tell which of them they are
of, as those of `outer_joins.py` do. A view that groups groups over the two.

Conditions of soundness:

1. The join is along a foreign key, by nothing else, of which one column may be null: each row in which it is not has
   its partner, one, and no other row has any. A join with what is null where there was no partner finds none.
2. What is joined has, in a row without a partner, null for each column, of the type of the column: what is computed
   there has the same type as in a row with one.
"""

from __future__ import annotations

import datetime as dt

from datalog.analysis.types import constant_type
from datalog.copies import replace
from datalog.model import (
    Case,
    Cast,
    ColumnType,
    Compared,
    Constant,
    Expression,
    IsNull,
    TypeName,
    WallClock,
)
from datalog.sql.views.conditions import conjuncts
from datalog.sql.views.expressions import Reader
from datalog.sql.views.joins import Declared, Piece, foreign_keys_of
from datalog.sql.views.scope import Source

_SOME = {
    TypeName.BOOLEAN: Constant(False),
    TypeName.STRING: Constant(""),
    TypeName.DOUBLE: Constant(0.0),
    TypeName.DATE: Constant(dt.date(1970, 1, 1)),
    TypeName.TIMESTAMP: Constant(dt.datetime(1970, 1, 1)),  # noqa: DTZ001 - as one that is written in a query
    TypeName.TIMESTAMP_NTZ: Constant(WallClock(1970, 1, 1)),
}


def with_and_without(
    left: Piece, right: Piece, both: Piece, declared: Declared, reader: Reader
) -> list[Piece]:
    """The rows of a LEFT JOIN that have a partner, and those that have none; nothing if that cannot be told.

    `both` are the two sides joined, the conditions of the join last.
    """
    if right.draft.groups is not None:
        return []
    null = {one.operand for one in left.conditions if isinstance(one, IsNull) and not one.negated}
    made = conjuncts(both.conditions[len(left.conditions) :])
    sides = (side for one in made if isinstance(one, Compared) for side in (one.left, one.right))
    lost = [its for side in sides if (its := _told_by(side)) in null]
    if lost:
        alone = _without(left, right, both, lost[0], reader)
        return [] if alone is None else [alone]
    for pairs in foreign_keys_of(left, right, both, declared):
        missing = [mine for mine, _, is_never_null in pairs if not is_never_null]
        if len(missing) == 1:
            alone = _without(left, right, both, missing[0], reader)
            if alone is not None:
                return [both, replace(alone, conditions=(*left.conditions, IsNull(missing[0])))]
    return []


def _told_by(value: Expression) -> Expression:
    """What is null where a value is, if that is a column of what has no partner."""
    match value:
        case Case(branches=((IsNull(operand, negated=True), _),), otherwise=Constant(None)):
            return operand
        case _:
            return value


def _without(left: Piece, right: Piece, both: Piece, null: Expression, reader: Reader) -> Piece | None:
    """Rows without a partner, in which a value is null; None if some column is of no known type."""
    own, nothing = reader.variables.type_of(null), dict[Expression, Expression]()
    for _, what in right.scope.star():
        kind = reader.variables.type_of(what)
        some = None if kind is None else _some_value(kind)
        if some is None:
            return None
        nothing[what] = null if kind == own else Case(((IsNull(null, negated=True), some),))
    sources = (
        Source(one.alias, tuple((name, nothing[what]) for name, what in one.columns), one.types)
        for one in right.scope.sources
    )
    scope = replace(both.scope, sources=(*left.scope.sources, *sources))
    return Piece(left.draft, scope, left.conditions)


def _some_value(kind: ColumnType) -> Expression | None:
    """A value of a type; None of one that has no constants of its own."""
    if kind.is_open or kind.name is TypeName.FLOAT:
        return None
    its = _SOME.get(kind.name, Constant(0))
    return its if constant_type(its.value) == kind else Cast(its, kind)
