"""Window functions for DuckDB: those that give the same values there as in Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from sqlglot import exp

from datalog.model import ColumnType, TypeName
from datalog.sql.duckdb.types import SqlType, Typed, UnlikeSparkError, cast

if TYPE_CHECKING:
    from datalog.sql.duckdb.plans import Expressions

_INT, _DOUBLE = ColumnType(TypeName.INT), ColumnType(TypeName.DOUBLE)
_NUMBERS = (exp.RowNumber, exp.Rank, exp.DenseRank, exp.Ntile)
_SHARES = (exp.PercentRank, exp.CumeDist)
_VALUES = (exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.First, exp.Last)
_NAMES: Mapping[type[exp.Expr], str] = {
    exp.RowNumber: "row_number",
    exp.Rank: "rank",
    exp.DenseRank: "dense_rank",
    exp.Ntile: "ntile",
    exp.PercentRank: "percent_rank",
    exp.CumeDist: "cume_dist",
    exp.Lag: "lag",
    exp.Lead: "lead",
    exp.FirstValue: "first_value",
    exp.First: "first_value",
    exp.LastValue: "last_value",
    exp.Last: "last_value",
}
_AGGREGATES = (exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max)
_BOUNDS = ("UNBOUNDED", "CURRENT ROW")


def windowed(tree: exp.Window, values: Expressions) -> Typed:
    """A window function's value, and its type in Spark.

    Raises:
        UnlikeSparkError: it is not on the list.
    """
    partition = [values.value(one)[0] for one in tree.args.get("partition_by") or ()]
    order = tree.args.get("order")
    by = [ordered(values.value(one.this)[0], one) for one in order.expressions] if order is not None else []
    spec = _spec(tree.args.get("spec"))

    def over(call: exp.Expr) -> exp.Expr:
        return exp.Window(
            this=call,
            partition_by=[one.copy() for one in partition],
            order=exp.Order(expressions=[one.copy() for one in by]) if by else None,
            spec=None if spec is None else spec.copy(),
            over="OVER",
        )

    call = tree.this
    if isinstance(call, _NUMBERS) and by and isinstance(call.this, exp.Literal | None):
        arguments = [] if call.this is None else [call.this.copy()]
        return cast(over(exp.Anonymous(this=_NAMES[type(call)], expressions=arguments)), _INT), _INT
    if isinstance(call, _SHARES) and by:
        return over(exp.Anonymous(this=_NAMES[type(call)])), _DOUBLE
    if isinstance(call, _VALUES) and by:
        return _value(call, values, over)
    if type(call) in _AGGREGATES and not isinstance(call.this, exp.Distinct):
        found, kind = values.value(call, aggregates=True)
        return _each(found, over), kind
    raise _unlike(call)


def _value(call: exp.Expr, values: Expressions, over: Callable[[exp.Expr], exp.Expr]) -> Typed:
    inside, kind = values.value(call.this)
    extra = call.args.get("offset")
    if extra is not None and not isinstance(extra, exp.Literal):
        raise _unlike(call)
    arguments = [inside] if extra is None else [inside, extra.copy()]
    if call.args.get("default") is not None:
        arguments.append(_default(call, values, kind))
    return over(exp.Anonymous(this=_NAMES[type(call)], expressions=arguments)), kind


def _default(call: exp.Expr, values: Expressions, kind: SqlType) -> exp.Expr:
    """What stands where there is no such row: of the same type, or a whole number of one digit; Spark casts others."""
    written = call.args["default"]
    tree, its = values.value(written)
    if its == kind or isinstance(written, exp.Null):
        return tree
    if isinstance(written, exp.Literal) and written.is_int and len(written.name) == 1 and _has_digits(kind):
        return cast(tree, kind)
    raise _unlike(call)


def _has_digits(kind: SqlType) -> bool:
    """Whether a type has every whole number of one digit."""
    if isinstance(kind, str):
        return False
    precision, scale = kind.decimal_size if kind.name is TypeName.DECIMAL else (0, 0)
    return kind.name.is_integer or kind.name is TypeName.DOUBLE or precision > scale


def _unlike(call: exp.Expr) -> UnlikeSparkError:
    return UnlikeSparkError(f"the window function `{call.key}`, as it is written here")


def ordered(tree: exp.Expr, one: exp.Expr) -> exp.Expr:
    """A value as part of an order, with nulls where Spark has them."""
    if not isinstance(one, exp.Ordered):
        raise UnlikeSparkError("this order of a window")
    down, first = bool(one.args.get("desc")), one.args.get("nulls_first")
    return exp.Ordered(this=exp.Paren(this=tree), desc=down, nulls_first=not down if first is None else first)


def _spec(spec: exp.Expr | None) -> exp.Expr | None:
    if spec is None:
        return None
    ends = [spec.args.get(part) for part in ("start", "end")]
    kind = str(spec.args.get("kind")).upper()
    are_plain = all(one in _BOUNDS or one is None for one in ends)
    are_numbers = all(one in _BOUNDS or one is None or isinstance(one, exp.Literal) for one in ends)
    if not (are_numbers if kind == "ROWS" else are_plain and kind == "RANGE") or spec.args.get("exclude"):
        raise UnlikeSparkError("this frame of a window")
    return spec


def _each(tree: exp.Expr, over: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """The tree with every aggregate computed over a window."""
    if isinstance(tree, exp.Count | exp.Sum | exp.Min | exp.Max):
        return over(tree)
    for node in list(tree.find_all(exp.Count, exp.Sum, exp.Min, exp.Max)):
        node.replace(over(node.copy()))
    return tree
