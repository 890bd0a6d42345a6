"""Views whose rows are each of one row of a relation, and show its key: what goes from it takes these rows with it.

    SELECT s.id, s.day, coalesce(r.name, '-') AS resort
    FROM lesson s JOIN instructor i ON i.id = s.instructor LEFT JOIN resort r ON r.id = i.resort

When lessons are deleted, the view loses the rows that have their ids, whatever stands in the other relations.

Conditions of soundness:

1. The relation is read once, and not where a row of the result might do without one of it, or be of several.
2. A key of it is among the outputs, as it is: the rows of a key are those that the one row with it gives.
3. Where it is behind a grouping, the key is among what is grouped by: a group is of one row of the relation.
4. Nothing else that the query reads changes, and no row of the relation comes; those that are said to go were there.
"""

from __future__ import annotations

from collections.abc import Mapping

from datalog.sql.affected.plan import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    Plan,
    Project,
    Query,
    Scan,
    Series,
    every,
    number_of,
)


def tables_read(query: Query) -> frozenset[str]:
    """The relations that a query reads."""
    return frozenset(plan.table.name for plan in every(query.plan) if isinstance(plan, Scan))


def shown_key(query: Query, name: str) -> Mapping[int, str] | None:
    """Where a query shows a key of a relation, by position there the output; None if rows may be of none, or several.

    Conditions 1 to 3 hold then.
    """
    scans = [plan for plan in every(query.plan) if isinstance(plan, Scan) and plan.table.name == name]
    if len(scans) != 1:
        return None
    (scan,) = scans
    outputs: dict[int, str] = {}
    for output, number in query.outputs:
        origin = _origin(query.plan, number)
        if origin is not None:
            outputs.setdefault(origin, output)
    for key in scan.table.keys:
        columns = {position: scan.columns[position] for position in key}
        if outputs.keys() >= {*columns.values()} and _is_of_one(query.plan, scan, {*columns.values()}):
            return {position: outputs[number] for position, number in columns.items()}
    return None


def _origin(plan: Plan, number: int) -> int | None:
    """The column of a relation that a column is, as it is."""
    match plan:
        case Scan(_, _, columns):
            return number if number in columns else None
        case Project(input, items):
            own = next((tree for item, tree in items if item == number), None)
            if own is None:
                return _origin(input, number) if plan.extends else None
            inner = number_of(own)
            return None if inner is None else _origin(input, inner)
        case Filter(input) | Distinct(input) | Series(input):
            return _origin(input, number)
        case Aggregate(input, groups):
            return _origin(input, number) if number in groups and not plan.sets else None
        case Join(kind, left, right):
            if number in left.columns:
                return None if kind == "full" else _origin(left, number)
            return _origin(right, number) if kind == "inner" else None
        case _:
            return None


def _is_of_one(plan: Plan, scan: Scan, key: set[int]) -> bool:
    """Whether each row of a plan is of one row of a relation, of which it shows a key."""
    match plan:
        case Scan():
            return plan is scan
        case Filter(input) | Distinct(input) | Project(input) | Series(input):
            return _is_of_one(input, scan, key)
        case Join(kind, left, right):
            on_the_right = kind == "inner" and _is_of_one(right, scan, key)
            return on_the_right or (kind != "full" and _is_of_one(left, scan, key))
        case Aggregate(input, groups):
            by = {_origin(input, number) for number in groups}
            return not plan.sets and key <= by and _is_of_one(input, scan, key)
        case _:
            return False
