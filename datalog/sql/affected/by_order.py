"""Which columns of a query may hold something else each time it is run: what breaks ties of an order, or follows one.

    SELECT id, x, row_number() OVER (PARTITION BY c ORDER BY x) AS n FROM s      `n` alone: the rows are there anyway
    SELECT id, x FROM s QUALIFY row_number() OVER (PARTITION BY c ORDER BY x) = 1      `id`: tied rows have one `x`

Where other rows may come for it, as behind LIMIT or a condition on such columns, nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct, field
from sqlglot import exp

from datalog.sql.affected.determined import DETERMINED, PLACES, used
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
    Series,
    Windows,
    below,
    linked,
    number_of,
)

_ALIKE = (
    *DETERMINED,
    *(exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance, exp.VariancePop, exp.CountIf),
    *(exp.LogicalAnd, exp.LogicalOr, exp.Median, exp.PercentileCont, exp.Quantile),
)
"""Aggregates that are the same in any order of rows, but for last digits."""


class _Found(Struct, frozen=True):
    """What is known of a plan's columns.

    Attributes:
        loose: those that ties may decide.
        places: by column of `row_number()` those of which each place has the same values, whatever ties decide.
    """

    loose: frozenset[int] = frozenset()
    places: Mapping[int, frozenset[int]] = field(default_factory=dict)


def columns_by_order(query: Query) -> frozenset[int] | None:
    """Positions of such columns; None if other rows may come, too."""
    found = _found(query.plan)
    if found is None:
        return None
    return frozenset(i for i, (_, number) in enumerate(query.outputs) if number in found.loose)


def _found(plan: Plan) -> _Found | None:
    parts = [_found(one) for one in below(plan)]
    if any(inner is None or inner.loose for inner in (_found(sub.plan) for sub in linked(plan))):
        return None
    loose, places = frozenset[int](), dict[int, frozenset[int]]()
    for one in parts:
        if one is None:
            return None
        loose |= one.loose
        places |= one.places
    match plan:
        case Windows(_, items):
            made = frozenset(n for n, tree in items if _is_loose(tree, loose))
            numbered = [(n, tree) for n, tree in items if isinstance(tree.this, exp.RowNumber)]
            firm = {n: _ordered(tree) for n, tree in numbered if loose.isdisjoint(_columns([tree]))}
            return _Found(loose | made, {**places, **firm})
        case Project(_, items, extends=extends):
            names = {inside: n for n, tree in items if (inside := number_of(tree)) is not None}
            names |= {n: n for n in plan.input.columns} if extends else {}
            made = frozenset(n for n, tree in items if not loose.isdisjoint(_columns([tree])))
            kept = {
                names[n]: frozenset(names[c] for c in its if c in names)
                for n, its in places.items()
                if n in names
            }
            return _Found(loose | made, kept)
        case Aggregate(_, groups, _, items):
            made = frozenset(n for n, tree in items if _is_loose(tree, loose))
            return _Found(made) if loose.isdisjoint(groups) else None
        case Filter():
            return _chosen(plan, loose, places)
        case Join() | Series() if not loose.isdisjoint(used(plan)):
            return None
        case Distinct() if not loose.isdisjoint(plan.columns):
            return None
        case Combined(kind, distinct, _, _, pairs):
            own = frozenset(number for number, one, other in pairs if {one, other} & loose)
            return None if own and (distinct or kind != "union") else _Found(own)
        case Limited():
            return None
        case _:
            return _Found(loose, {} if isinstance(plan, Series) else places)


def _chosen(plan: Filter, loose: frozenset[int], places: Mapping[int, frozenset[int]]) -> _Found | None:
    """The rows that conditions leave: by `row_number()` and what each of its places has, as many of the same values."""
    asked = set(used(plan))
    if loose.isdisjoint(asked):
        return _Found(loose, places)
    for number, its in places.items():
        firm = {number, *its}
        if asked & loose == {number} and asked <= firm:
            return _Found(frozenset(plan.columns) - firm)
    return None


def _is_loose(tree: exp.Expr, loose: frozenset[int]) -> bool:
    """Whether an aggregate or a window function depends on how ties are broken."""
    if not loose.isdisjoint(_columns([tree])):
        return True
    calls = list(tree.find_all(exp.AggFunc, exp.Anonymous))
    if isinstance(tree, exp.Window):
        frame = tree.args.get("spec")
        if isinstance(tree.this, PLACES) or (
            frame is not None and str(frame.args.get("kind")).upper() == "ROWS"
        ):
            return True
        ranks = (exp.Rank, exp.DenseRank)
        calls = [] if isinstance(tree.this, ranks) else list(tree.this.find_all(exp.AggFunc, exp.Anonymous))
    return not all(isinstance(one, _ALIKE) for one in calls)


def _ordered(tree: exp.Window) -> frozenset[int]:
    """The columns that a window is partitioned and ordered by."""
    order = tree.args.get("order")
    keys = [one.this for one in order.expressions] if order is not None else []
    found = (number_of(one) for one in (*(tree.args.get("partition_by") or ()), *keys))
    return frozenset(number for number in found if number is not None)


def _columns(trees: Iterable[exp.Expr]) -> set[int]:
    found = (number_of(one) for tree in trees for one in tree.find_all(exp.Column))
    return {number for number in found if number is not None}
