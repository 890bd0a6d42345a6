"""Aggregates that view definitions do not have, for DuckDB: those of which it is known what Spark gives.

    percentile(a, 0.9), median(a), percentile_cont(0.9) WITHIN GROUP (ORDER BY a)
    count(DISTINCT a, b)                                          of rows without null
    listagg(a, ', ') WITHIN GROUP (ORDER BY b)                    string_agg, too
    array_join(sort_array(collect_set(a)), ', ')                  of collect_list, too
    max_by(a, b), min_by(a, b)

Of what an order leaves equal Spark takes any: here it goes by the values. Refused: floating-point numbers that are
ordered or compared, as equal ones may look different.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from datalog.model import ColumnType, TypeName
from datalog.sql.duckdb.templates import filled
from datalog.sql.duckdb.types import Typed, UnlikeSparkError, as_double, as_type
from datalog.sql.duckdb.windows import ordered
from datalog.sql.views.kept.one_result import sorted_list

if TYPE_CHECKING:
    from datalog.sql.duckdb.plans import Expressions

_STRING, _DOUBLE, _BIGINT = (ColumnType(n) for n in (TypeName.STRING, TypeName.DOUBLE, TypeName.BIGINT))


def aggregated(tree: exp.Expr, values: Expressions) -> Typed | None:
    """An aggregate's value, and its type in Spark; None of what is not on the list.

    Raises:
        UnlikeSparkError: it is not known what DuckDB would compute.
    """
    match tree:
        case exp.ApproxQuantile():
            return None
        case exp.Median() | exp.Quantile() | exp.WithinGroup(this=exp.PercentileCont()):
            return _percentile(tree, values), _DOUBLE
        case exp.Count(this=exp.Distinct(expressions=[_, _, *_])):
            return _different(tree, values), _BIGINT
        case exp.GroupConcat():
            return _joined(tree, values), _STRING
        case exp.ArrayToString() | exp.ConcatWs() if sorted_list(tree):
            return _sorted_list(tree, values), _STRING
        case exp.ArgMax() | exp.ArgMin():
            return _of_extreme(tree, values)
        case _:
            return None


def _is_text(node: exp.Expr | None) -> bool:
    return isinstance(node, exp.Literal) and node.is_string


_PERCENTILE = """
    CASE WHEN :low = :high THEN :least ELSE :least + (:most - :least) * (:place - floor(:place)) END
"""
"""As Spark 4.3 computes it, digit by digit, between the two values beside a place."""


def _percentile(tree: exp.Expr, values: Expressions) -> exp.Expr:
    value, share = _value_and_share(tree)
    inside, kind = _exact(value, values)
    every = filled("list_sort(list(:x) FILTER (WHERE :x IS NOT NULL))", x=inside)
    place = filled("((len(:every) - 1) * CAST(:share AS DOUBLE))", every=every, share=share)
    ends = {
        name: filled(f":every[CAST({name}(:place) AS BIGINT) + 1]", every=every, place=place)
        for name in ("floor", "ceil")
    }
    low, high = ends["floor"], ends["ceil"]
    least, most = as_double(low, kind), as_double(high, kind)
    if least is None or most is None:
        raise UnlikeSparkError(f"a percentile of `{kind}`")
    return filled(_PERCENTILE, low=low, high=high, least=least, most=most, place=place)


def _value_and_share(tree: exp.Expr) -> tuple[exp.Expr, exp.Expr]:
    """What a percentile is of, and its share, which is written out."""
    share: exp.Expr = exp.Literal.number("0.5")
    value = tree.this
    if isinstance(tree, exp.WithinGroup):
        share, order = tree.this.this, tree.expression.expressions
        if len(order) != 1 or order[0].args.get("desc"):
            raise UnlikeSparkError("a percentile by this order")
        value = order[0].this
    elif isinstance(tree, exp.Quantile):
        share = tree.args["quantile"]
    known = {"this", "quantile", "expression"}
    is_written = isinstance(share, exp.Literal) and not share.is_string and 0 <= float(share.name) <= 1
    if (
        not is_written
        or isinstance(value, exp.Distinct)
        or any(v and k not in known for k, v in tree.args.items())
    ):
        raise UnlikeSparkError("this form of a percentile")
    return value, share


def _different(tree: exp.Expr, values: Expressions) -> exp.Expr:
    trees = [_exact(one, values)[0] for one in tree.this.expressions]
    known = [filled(":x IS NOT NULL", x=one) for one in trees]
    row = exp.Anonymous(this="row", expressions=trees)
    return filled("count(DISTINCT :row) FILTER (WHERE :known)", row=row, known=exp.and_(*known, copy=False))


def _joined(tree: exp.Expr, values: Expressions) -> exp.Expr:
    """`listagg`, which has an order."""
    separator = tree.args.get("separator") or exp.Literal.string("")
    listed, order = tree.this, []
    if isinstance(listed, exp.Order):
        listed, order = listed.this, listed.expressions
    is_distinct = isinstance(listed, exp.Distinct)
    inside = listed.expressions[0] if is_distinct else listed
    if not order or not _is_text(separator) or (is_distinct and [one.this for one in order] != [inside]):
        raise UnlikeSparkError("`listagg` without an order, or with a separator that is not written out")
    text = as_type(*_exact(inside, values), _STRING)
    by = [ordered(_exact(one.this, values)[0], one) for one in order]
    if not is_distinct:
        by.append(exp.Ordered(this=text.copy(), nulls_first=True))
    elif text.unnest() != by[0].this.unnest():
        raise UnlikeSparkError("`listagg` of different values that are no texts")
    return _texts_together(text, separator, by, is_distinct=is_distinct)


def _sorted_list(tree: exp.Expr, values: Expressions) -> exp.Expr:
    found = sorted_list(tree)
    assert found is not None
    collected, separator = found
    text, kind = values.value(collected.this)
    if kind != _STRING:
        raise UnlikeSparkError(f"a list of `{kind}` as a text")
    by: list[exp.Expr] = [exp.Ordered(this=text.copy(), nulls_first=True)]
    is_distinct = isinstance(collected, exp.ArrayUniqueAgg)
    together = _texts_together(text, separator, by, is_distinct=is_distinct)
    return filled("coalesce(:together, '')", together=together)


def _texts_together(
    text: exp.Expr, separator: exp.Expr, by: list[exp.Expr], *, is_distinct: bool
) -> exp.Expr:
    inside = exp.Distinct(expressions=[text]) if is_distinct else text
    arranged = exp.Order(this=separator.copy(), expressions=by)
    return exp.Anonymous(this="string_agg", expressions=[inside, arranged])


def _of_extreme(tree: exp.Expr, values: Expressions) -> Typed:
    """The value of the row with the largest or smallest other value; of several the largest."""
    if any(value and part not in ("this", "expression") for part, value in tree.args.items()):
        raise UnlikeSparkError("this form of `max_by` or `min_by`")
    (inside, kind), (by, _) = _exact(tree.this, values), _exact(tree.expression, values)
    down = "DESC" if isinstance(tree, exp.ArgMax) else "ASC"
    template = f"first(:x ORDER BY :by {down}, :x DESC NULLS LAST) FILTER (WHERE :by IS NOT NULL)"
    return filled(template, x=inside, by=by), kind


def _exact(tree: exp.Expr, values: Expressions) -> tuple[exp.Expr, ColumnType]:
    """A value of which equal ones look the same."""
    inside, kind = values.value(tree)
    if isinstance(kind, str) or kind.name.is_floating or kind.name is TypeName.ANY:
        raise UnlikeSparkError(f"an aggregate that orders or compares values of type `{kind}`")
    return inside, kind
