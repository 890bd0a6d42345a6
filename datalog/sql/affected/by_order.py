"""Which columns of a query may hold something else each time it is run: what breaks ties of an order, or follows one.

    SELECT id, x, row_number() OVER (PARTITION BY c ORDER BY x) AS n FROM s      `n` alone: the rows are there anyway

Where rows are chosen by such a column, or by LIMIT, other rows may come.
"""

from __future__ import annotations

from sqlglot import exp

from datalog.sql.affected.determined import DETERMINED, used
from datalog.sql.affected.plan import (
    Aggregate,
    Combined,
    Distinct,
    Filter,
    Join,
    Limited,
    Plan,
    Project,
    Query,
    Windows,
    below,
    linked,
    number_of,
)


def columns_by_order(query: Query) -> frozenset[int] | None:
    """Positions of such columns; None if other rows may come, too."""
    loose = _loose(query.plan)
    if loose is None:
        return None
    return frozenset(i for i, (_, number) in enumerate(query.outputs) if number in loose)


def _loose(plan: Plan) -> frozenset[int] | None:
    found = [_loose(one) for one in below(plan)]
    if any(_loose(sub.plan) != frozenset() for sub in linked(plan)):
        return None
    loose = frozenset[int]()
    for one in found:
        if one is None:
            return None
        loose |= one
    match plan:
        case Windows(_, items):
            return loose | {number for number, _ in items}
        case Project(_, items):
            return loose | {number for number, tree in items if not loose.isdisjoint(_columns(tree))}
        case Aggregate(_, groups, _, items):
            made = {n for n, tree in items if not loose.isdisjoint(_columns(tree)) or not _adds_up(tree)}
            return frozenset(made) if loose.isdisjoint(groups) else None
        case Filter() | Join() if not loose.isdisjoint(used(plan)):
            return None
        case Distinct() if not loose.isdisjoint(plan.columns):
            return None
        case Combined(kind, distinct, _, _, pairs):
            own = frozenset(number for number, one, other in pairs if {one, other} & loose)
            return None if own and (distinct or kind != "union") else own
        case Limited():
            return None
        case _:
            return loose


def _columns(tree: exp.Expr) -> set[int]:
    return {number for one in tree.find_all(exp.Column) if (number := number_of(one)) is not None}


def _adds_up(tree: exp.Expr) -> bool:
    """Whether an aggregate is the same in any order of its rows."""
    return all(isinstance(one, DETERMINED) for one in tree.find_all(exp.AggFunc, exp.Anonymous))
