"""Whether a query has one result: it chooses nothing among rows that its orders leave equal.

    SELECT region, total FROM v ORDER BY total DESC LIMIT 1           either region of two with the largest total
    SELECT region, total FROM v ORDER BY total DESC, region LIMIT 1   one of equal rows, which are the same
    SELECT region, RANK() OVER (ORDER BY total DESC) AS place FROM v  rows that the order leaves equal have one rank

What is on a list has one; the last digits of sums of doubles, which depend on the order of adding, are not looked at.
"""

from __future__ import annotations

import sqlglot
from sqlglot import exp

from datalog.model import TextQuery
from datalog.sql.views.kept.text_allowed import AGGREGATES, TEXT_FUNCTIONS
from datalog.sql.views.written_out.as_written import parsed
from datalog.sql.views.written_out.named_windows import windows_written_out

_CHOOSING = (exp.Offset, exp.Sort, exp.Cluster, exp.Distribute, exp.Lateral, exp.Pivot)
_AGGREGATES = (
    *(exp.Count, exp.CountIf, exp.Sum, exp.Avg, exp.Min, exp.Max, exp.LogicalAnd, exp.LogicalOr),
    *(exp.Median, exp.Quantile, exp.PercentileCont),
)
_RANKS = (exp.Rank, exp.DenseRank, exp.PercentRank, exp.CumeDist)


def has_one_result(query: TextQuery) -> bool:
    """Whether a query gives the same rows, each as often, however it is run.

    >>> has_one_result(TextQuery("select a, b from t order by b, a desc limit 3", ()))
    True
    >>> has_one_result(TextQuery("select a, b from t order by b limit 3", ()))
    False
    >>> has_one_result(TextQuery("select sum(a) over (partition by b order by c) as s from t", ()))
    True
    >>> has_one_result(TextQuery("select row_number() over (partition by b order by c) as n from t", ()))
    False
    """
    try:
        tree = parsed(windows_written_out(query.text))
    except (sqlglot.errors.SqlglotError, RecursionError):
        return False
    below = (read.of for read in query.reads)
    return all(map(_is_definite, tree.walk())) and all(
        isinstance(one, str) or has_one_result(one) for one in below
    )


def has_open_order(query: TextQuery) -> bool:
    """Whether an order of a query may leave rows equal, and it takes one of these before another.

    >>> has_open_order(TextQuery("select a, row_number() over (order by b) as n from t", ()))
    True
    """
    try:
        tree = parsed(windows_written_out(query.text))
    except (sqlglot.errors.SqlglotError, RecursionError):
        return False
    return any(not _is_definite(node) for node in tree.find_all(exp.Window, exp.Query))


def adds_up(query: TextQuery) -> bool:
    """Whether a query that is read has sums or averages."""
    tree = parsed(query.text)
    below = (read.of for read in query.reads)
    return tree.find(exp.Sum, exp.Avg) is not None or any(
        isinstance(one, TextQuery) and adds_up(one) for one in below
    )


def sorted_list(tree: exp.Expr) -> tuple[exp.Expr, exp.Expr] | None:
    """The list's aggregate, and the separator, of a call that makes one text of a group's values in their order.

    >>> from sqlglot import parse_one
    >>> sorted_list(parse_one("array_join(sort_array(collect_set(a)), ', ')", read="spark"))[1].name
    ', '
    """
    match tree:
        case exp.ArrayToString(this=exp.ArraySort() as lists, expression=separator) if not tree.args.get(
            "null"
        ):
            pass
        case exp.ConcatWs(expressions=[separator, exp.ArraySort() as lists]):
            pass
        case _:
            return None
    is_plain = isinstance(lists.this, exp.ArrayAgg | exp.ArrayUniqueAgg) and not any(
        value is not None and part not in ("this", "nulls_first") for part, value in lists.args.items()
    )
    is_written = isinstance(separator, exp.Literal) and separator.is_string
    return (lists.this, separator) if is_plain and is_written else None


def _is_definite(node: exp.Expr) -> bool:
    if isinstance(node, exp.Query) and node.args.get("limit") is not None:
        return _orders_all(node)
    if isinstance(node, exp.Window):
        return _takes_equal_rows_together(node)
    if isinstance(node, exp.GroupConcat):
        order = node.this if isinstance(node.this, exp.Order) else exp.Order(expressions=[])
        of = order.this.expressions if isinstance(order.this, exp.Distinct) else [order.this]
        return [one.this for one in order.expressions] == of
    if isinstance(node, exp.ArrayAgg | exp.ArrayUniqueAgg):
        around = node.parent and node.parent.parent
        return around is not None and sorted_list(around) is not None
    if isinstance(node, exp.AggFunc):
        return type(node) in (*_AGGREGATES, *_RANKS)
    if isinstance(node, exp.Distinct):
        return node.args.get("on") is None
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in TEXT_FUNCTIONS - AGGREGATES
    return not isinstance(node, _CHOOSING)


def _takes_equal_rows_together(window: exp.Window) -> bool:
    """Whether rows that a window's order leaves equal have the same value: of ranks, and of frames by values."""
    frame = window.args.get("spec")
    return isinstance(window.this, (*_AGGREGATES, *_RANKS)) and (
        frame is None or frame.args.get("kind") == "RANGE"
    )


def _orders_all(query: exp.Query) -> bool:
    """Whether an order is by all columns of a result, so that rows that it leaves equal are."""
    order = query.args.get("order")
    by = [one.this for one in order.expressions] if order is not None else []
    names = {one.name.casefold() for one in by if isinstance(one, exp.Column) and not one.table}
    its = [one.alias_or_name.casefold() for one in query.selects]
    return bool(its) and not query.is_star and names.issuperset(its)
