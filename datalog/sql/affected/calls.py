"""Which calls in an expression look at more than one row, or make several of one."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from datalog.sql.views.text_allowed import AGGREGATES

_GENERATORS = frozenset(
    "explode explode_outer posexplode posexplode_outer inline inline_outer stack json_tuple".split()  # noqa: SIM905
)
_AROUND = (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)


def called(node: exp.Expr, text: str) -> str:
    """The name by which a function is called in a text; empty of what is no call by name."""
    place = node.meta.get("start") if isinstance(node, exp.Func) else None
    return "" if place is None else text[place : node.meta["end"] + 1].strip("`").casefold()


def is_aggregate(node: exp.Expr, text: str) -> bool:
    """Whether a call, with what is written behind it, aggregates rows."""
    if isinstance(node, _AROUND):
        return is_aggregate(node.this, text)
    return isinstance(node, exp.AggFunc) or called(node, text) in AGGREGATES


def is_generator(node: exp.Expr, text: str) -> bool:
    """Whether a call makes several rows, or columns, of one."""
    return isinstance(node, exp.Explode | exp.Posexplode | exp.Inline) or called(node, text) in _GENERATORS


def rebuilt(node: exp.Expr, change: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """A node with its parts changed, one by one; the node itself is left as it is."""
    args: dict[str, object] = {}
    for name, value in node.args.items():
        if isinstance(value, list):
            args[name] = [change(one) if isinstance(one, exp.Expr) else one for one in value]
        else:
            args[name] = change(value) if isinstance(value, exp.Expr) else value
    made = type(node)(**args)
    made.meta.update(node.meta)
    return made


def windowed(node: exp.Window, change: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """A window with its function's arguments, its partition and its order changed, but not the call itself."""

    def of_call(one: exp.Expr) -> exp.Expr:
        return rebuilt(one, of_call) if isinstance(one, _AROUND) else rebuilt(one, change)

    def part(one: exp.Expr) -> exp.Expr:
        return of_call(one) if one is node.this else change(one)

    return rebuilt(node, part)
