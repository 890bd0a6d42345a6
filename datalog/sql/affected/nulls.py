"""Which columns of a plan are never null."""

from __future__ import annotations

from datalog.sql.affected.plan import (
    Aggregate,
    Distinct,
    Filter,
    Join,
    Plan,
    Project,
    Scan,
    Windows,
    equalities,
    number_of,
)


def never_null(plan: Plan, number: int) -> bool:
    """Whether a column is certainly not null in any row of a plan, given what is declared."""
    if number not in plan.columns:
        return False
    match plan:
        case Scan(table, _, columns):
            return columns.index(number) not in table.nullable
        case Filter(input, tests):
            return never_null(input, number) or any(number in pair for pair in equalities(tests))
        case Project(input, items):
            inside = next((number_of(tree) for n, tree in items if n == number), number)
            return inside is not None and never_null(input, inside)
        case Join(kind, left, right, tests):
            if kind == "full":
                return False
            given = kind == "inner" and any(number in pair for pair in equalities(tests))
            right_too = kind == "inner" and never_null(right, number)
            return given or never_null(left, number) or right_too
        case Aggregate(input, _, common):
            return number in common and never_null(input, number)
        case Distinct(input) | Windows(input):
            return never_null(input, number)
        case _:
            return False
