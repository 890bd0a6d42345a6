"""Sums of doubles in a query: their last digits depend on the order of adding, and so may what is made of them.

SELECT k, sum(y) AS total FROM r GROUP BY k                  the last digits of a column that is shown
SELECT k FROM r GROUP BY k HAVING sum(y) > 0.6               which rows there are
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

from datalog.model import ANY, ColumnType
from datalog.sql.affected.determined import used
from datalog.sql.affected.plan import Aggregate, Plan, Project, Windows, every, number_of

_SUMS = (exp.Sum, exp.Avg)
_ARITHMETIC = (exp.Column, exp.Paren, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Neg, exp.Literal, exp.Null)
"""What gives near values for near ones."""


def inexact_sums(plan: Plan, kinds: Mapping[int, ColumnType]) -> frozenset[int]:
    """The columns that hold sums or averages of doubles, or of what is of no known type."""
    return frozenset(
        number
        for one in every(plan)
        for number, tree in _items(one)
        if any(_is_inexact(number, tree, call, kinds) for call in tree.find_all(*_SUMS))
    )


def _is_inexact(number: int, tree: exp.Expr, call: exp.Expr, kinds: Mapping[int, ColumnType]) -> bool:
    of = number_of(call.this)
    if of is None and _bare(tree) is call:  # that of a computed value is of its type, or a double
        of = number
    return of is None or kinds.get(of, ANY).name.has_signed_zeros


def are_only_shown(plan: Plan, columns: frozenset[int]) -> bool:
    """Whether columns are handed on, added up and multiplied, and decide nothing else."""
    near, size = set(columns), -1
    while len(near) > size:
        size = len(near)
        for one in every(plan):
            for number, tree in _items(one):
                if number in columns or not near.isdisjoint(_columns(tree)):
                    if not _is_near(tree):
                        return False
                    near.add(number)
            if not near.isdisjoint(_deciding(one)):
                return False
    return True


def _items(plan: Plan) -> tuple[tuple[int, exp.Expr], ...]:
    return tuple(plan.items) if isinstance(plan, Project | Aggregate | Windows) else ()


def _deciding(plan: Plan) -> Iterator[int]:
    """The columns by which an operator chooses, groups or orders rows."""
    match plan:
        case Project():
            pass
        case Aggregate(groups=groups):
            yield from groups
        case Windows(items=items):
            for _, tree in items:
                parts = [*(tree.args.get("partition_by") or ()), tree.args.get("order")]
                yield from (number for part in parts if part is not None for number in _columns(part))
        case _:
            yield from used(plan)


def _columns(tree: exp.Expr) -> Iterator[int]:
    numbers = (number_of(column) for column in tree.find_all(exp.Column))
    return (number for number in numbers if number is not None)


def _bare(tree: exp.Expr) -> exp.Expr:
    while isinstance(tree, exp.Paren | exp.Window | exp.Filter):
        tree = tree.this
    return tree


def _is_near(tree: exp.Expr) -> bool:
    call = _bare(tree)
    if isinstance(call, (*_SUMS, exp.Min, exp.Max)):
        return True
    if not isinstance(call, _ARITHMETIC):
        return False
    return isinstance(call, exp.Column) or all(map(_is_near, call.iter_expressions()))
