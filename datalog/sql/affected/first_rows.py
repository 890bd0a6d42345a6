"""The first rows of a query: ORDER BY and LIMIT, where the order is by columns of the result.

    SELECT p.id AS n, sum(p.qty) AS sold FROM part p GROUP BY p.id ORDER BY sum(p.qty) DESC, p.id LIMIT 10

They are named as in the result, by their numbers there, or as they are selected: no alias is qualified, so `p.id` is
`n`. An expression is what the same one selects if no name in it is one of the result's, which would come first.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from datalog.sql.affected.plan import Limited, Query


def limited(tree: exp.Expr, query: Query) -> Limited:
    """The first rows of a query; of no number where their order is not known."""
    limit, order = tree.args.get("limit"), tree.args.get("order")
    number = limit.expression if isinstance(limit, exp.Limit) else None
    names, outputs = dict(query.outputs), [output for _, output in query.outputs]
    items = tree.expressions if len(tree.expressions) == len(outputs) else []  # else there is `*`
    by: list[tuple[int, bool, bool]] = []
    for one in order.expressions if order is not None else ():
        down, first = bool(one.args.get("desc")), one.args.get("nulls_first")
        found = _meant(one.this, names, outputs, dict(zip(items, outputs, strict=False)))
        if found is None:
            return Limited(query.plan)
        by.append((found, down, not down if first is None else bool(first)))
    is_known = tree.args.get("offset") is None and by and len(names) == len(outputs)
    if is_known and isinstance(number, exp.Literal) and number.is_int:
        return Limited(query.plan, tuple(by), int(number.name))
    return Limited(query.plan)


def _meant(
    by: exp.Expr, names: Mapping[str, int], outputs: list[int], selected: Mapping[exp.Expr, int]
) -> int | None:
    """The column of the result that an order is by; None if that is not plain."""
    if isinstance(by, exp.Column):
        if not by.table:
            return names.get(by.name.casefold())
        its = by.sql().casefold()
        return next((n for item, n in selected.items() if item.unalias().sql().casefold() == its), None)
    if isinstance(by, exp.Literal) and by.is_int:
        return outputs[int(by.name) - 1] if 0 < int(by.name) <= len(outputs) else None
    if any(not one.table and one.name.casefold() in names for one in by.find_all(exp.Column)):
        return None
    return next((n for item, n in selected.items() if item.unalias() == by), None)
