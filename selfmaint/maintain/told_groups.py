"""What other views tell of a view's groups: aggregates that it does not store itself.

    spent(C, sum(A)) :- sale(I, C, A).        orders(C, count(*)) :- sale(I, C, A).
    sale(s1, k, 5) is deleted, and was all that `k` spent: that `orders` has one row tells that the group goes

A view is then maintained as if it stored these aggregates, too: over the groups that it has a row of.

Conditions of soundness:

1. The other view's core is this one's, up to names, with all that it tests: its rows stand for the same core rows.
2. It is at least as fine, and has a row for each of its groups that has core rows (`Grouped.tells_absence`).
3. An aggregate over a group is the sum, or the extremum, of those over the finer groups (`roll_up.py`).
4. Both are of one state, that before the update.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from datalog.model import ANY, Aggregate, AggregateFunction, Predicate, TypeName, Version, ViewDefinition
from selfmaint.canonical.support import CanonicalDatabase
from selfmaint.engine.protocol import D, Facts
from selfmaint.maintain.core_rows import Asked, or_empty, rows_before
from selfmaint.maintain.group_plan import ROWS, GroupPlan, Told
from selfmaint.maintain.roll_up import RollUp
from selfmaint.warehouse.catalog import Catalog, GroupedView
from selfmaint.warehouse.finer import finer_views
from selfmaint.warehouse.grouped import Measure

_ANYTHING = (AggregateFunction.COUNT, AggregateFunction.MIN, AggregateFunction.MAX)


class ToldGroups(Struct, frozen=True):
    """Aggregates over a view's groups from the rows of another view.

    Attributes:
        roll: how these are rolled up.
        told: the aggregates.
        definition: what computes them from the other view's rows.
    """

    roll: RollUp
    told: Told
    definition: ViewDefinition


def told_groups(catalog: Catalog, view: GroupedView) -> tuple[ToldGroups, ...]:
    """What other views tell of a view's groups; found once.

    Args:
        catalog: the warehouse's schema.
        view: a view of it with a core.
    """
    return catalog.once("told groups", view, lambda: tuple(_told_groups(catalog, view)))


def _told_groups(catalog: Catalog, view: GroupedView) -> Iterator[ToldGroups]:
    grouped = view.grouped
    is_summand = grouped.is_hidden and not grouped.block.having
    if is_summand or grouped.block.filters or len(grouped.group_terms) < len(grouped.columns):
        return
    first, wanted = (
        len(grouped.block.outputs) + len(grouped.tested),
        _wanted(GroupPlan(view, catalog.relations)),
    )
    own = grouped.measures if grouped.block.having else ()  # of groups that are not stored
    waiting = (*own, *grouped.tested, *(Measure(at, one) for at, one in enumerate(wanted, first)))
    for number, finer in enumerate(finer_views(catalog, view)):
        other = finer.view
        is_same = len(finer.subgoals) == len(view.core.body)
        if not isinstance(other, GroupedView) or not is_same:
            continue
        if len(set(other.core.filters)) < len(set(view.core.filters)):
            continue
        told = Told(Predicate(f"told{number}_", Version.STEP), waiting)
        roll = RollUp(GroupPlan(view, catalog.relations, told=(told,)), finer, other)
        found = tuple(m for m in waiting if roll.telling([m]) is not None)
        definition = roll.telling(found)
        if found and definition is not None:
            yield ToldGroups(roll, Told(told.predicate, found), definition)
            waiting = tuple(m for m in waiting if m not in found)


def told_beside(known: CanonicalDatabase[D], plan: GroupPlan, groups: Asked[D] | None) -> dict[Told, D]:
    """What other views tell of some groups; nothing if these are told by an expression."""
    found: dict[Told, D] = {}
    for one in told_groups(known.catalog, plan.view):
        if groups is None:
            break
        rows, types = rows_before(known, one.roll, groups), one.roll.column_types
        if rows is not None or plan.leaves_out:
            rows = or_empty(known.engine, rows, types)
            facts = Facts({ROWS: rows}, {}, frozenset({ROWS}))
            found[one.told] = known.engine.keep(
                known.engine.evaluate_view(one.definition, facts, {ROWS: types})
            )
    return found


def _wanted(plan: GroupPlan) -> Iterator[Aggregate]:
    """The aggregates that may help, and are not the view's own; no sum of what may be a double, or not fit a bigint."""
    own = {m.aggregate: plan.operands.get(m.column, ANY) for m in plan.measures}
    wanted = [Aggregate(AggregateFunction.COUNT)]
    for one, kind in own.items():
        if one.operand is not None:
            wanted += [Aggregate(function, one.operand) for function in _ANYTHING]
            if kind.family == "number" and not kind.name.is_floating and kind.name is not TypeName.BIGINT:
                wanted.append(Aggregate(AggregateFunction.SUM, one.operand))
    yield from (one for one in dict.fromkeys(wanted) if one not in own)
