"""What of a query's tree can be read: a list of what may stand where, so that nothing is passed over silently.

Each kind of node is allowed with some of its parts. Whatever is not on the list is named with its place and
the nearest thing that works.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from sqlglot import ErrorLevel, exp

from datalog.sql.views.calls import BY_NAME, NAMED, PARTS
from datalog.sql.views.kept.other_dialects import called_in_spark, otherwise_in_spark
from datalog.sql.views.moments import MOMENTS, is_moment
from datalog.sql.views.source import Problems

_BINARY = frozenset({"this", "expression"})
_ONE = frozenset({"this"})
_LIST = frozenset({"expressions"})
_NAMED = frozenset({"this", "expressions"})

_ALLOWED: Mapping[type[exp.Expr], frozenset[str]] = {
    exp.Select: frozenset(
        {"expressions", "from_", "joins", "where", "group", "having", "distinct", "with_", "hint", "order"}
        | {"sort", "operation_modifiers"}
    ),
    exp.From: _ONE,
    exp.Join: frozenset({"this", "on", "using", "method", "kind"}),
    exp.Table: frozenset({"this", "db", "catalog", "alias", "joins"}),
    exp.Identifier: frozenset({"this", "quoted"}),
    exp.TableAlias: frozenset({"this", "columns"}),
    exp.Subquery: frozenset({"this", "alias", "with_", "joins", "order"}),
    exp.Where: _ONE,
    exp.Group: _LIST,
    exp.Having: _ONE,
    exp.Distinct: _LIST,
    **dict.fromkeys(
        (exp.Union, exp.Intersect), frozenset({"this", "expression", "distinct", "with_", "order"})
    ),
    exp.With: _LIST,
    exp.CTE: frozenset({"this", "alias"}),
    exp.Column: frozenset({"this", "table", "db", "catalog"}),
    exp.Star: frozenset({"except_"}),
    exp.Alias: frozenset({"this", "alias"}),
    exp.Literal: frozenset({"this", "is_string"}),
    exp.Boolean: _ONE,
    exp.Null: frozenset(),
    exp.Paren: _ONE,
    **dict.fromkeys((exp.And, exp.Or, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE), _BINARY),
    **dict.fromkeys((exp.Is, exp.Like, exp.Add, exp.Sub, exp.Mul, exp.Nullif), _BINARY),
    exp.Not: _ONE,
    exp.In: frozenset({"this", "expressions", "query"}),
    exp.Tuple: _LIST,
    exp.Exists: _ONE,
    exp.Between: frozenset({"this", "low", "high"}),
    exp.Div: frozenset({"this", "expression", "typed", "safe"}),
    exp.Neg: _ONE,
    exp.Cast: frozenset({"this", "to", "_type"}),
    exp.TryCast: frozenset({"this", "to", "_type", "safe"}),
    exp.DataType: frozenset({"this", "expressions", "nested"}),
    exp.DataTypeParam: _ONE,
    exp.Coalesce: frozenset({"this", "expressions"}),
    exp.Concat: frozenset({"expressions", "safe", "coalesce"}),
    exp.DPipe: frozenset({"this", "expression", "safe"}),
    exp.Greatest: frozenset({"this", "expressions", "ignore_nulls"}),
    exp.Least: frozenset({"this", "expressions", "ignore_nulls"}),
    **dict.fromkeys((exp.Upper, exp.Lower, exp.Length, exp.Abs, exp.Ascii, exp.IsNan), _ONE),
    **dict.fromkeys((exp.Reverse, exp.SHA, exp.Sign, exp.Sqrt, exp.UnixSeconds), _ONE),
    **dict.fromkeys((exp.IntDiv, exp.Initcap, exp.Right), _BINARY),
    exp.Trim: frozenset({"this", "position"}),
    exp.Pad: frozenset({"this", "expression", "fill_pattern", "is_left"}),
    exp.RegexpExtract: frozenset({"this", "expression", "group", "null_if_pos_overflow"}),
    exp.RegexpLike: _BINARY,
    exp.RegexpReplace: frozenset({"this", "expression", "replacement", "position"}),
    exp.Repeat: frozenset({"this", "times"}),
    exp.SplitPart: frozenset({"this", "delimiter", "part_index"}),
    exp.StrPosition: frozenset({"this", "substr", "position"}),
    exp.StrToUnix: frozenset({"this", "format"}),
    exp.Translate: frozenset({"this", "from_", "to"}),
    **dict.fromkeys((exp.Sum, exp.Avg, exp.Min, exp.Max, *PARTS), _ONE),
    **dict.fromkeys(MOMENTS, _ONE),
    exp.AddMonths: _BINARY,
    **dict.fromkeys((exp.DateDiff, exp.TimestampAdd, exp.TimestampDiff), _BINARY | {"unit"}),
    exp.LastDay: _ONE,
    exp.TsOrDsAdd: frozenset({"this", "expression", "unit"}),
    exp.TsOrDsToDate: frozenset({"this", "safe"}),
    exp.Interval: frozenset({"this", "unit"}),
    **dict.fromkeys((exp.Ceil, exp.Floor, exp.MD5), _ONE),
    **dict.fromkeys((exp.Left, exp.Mod), _BINARY),
    exp.SHA2: frozenset({"this", "length"}),
    exp.Replace: frozenset({"this", "expression", "replacement"}),
    exp.Substring: frozenset({"this", "start", "length"}),
    exp.Round: frozenset({"this", "decimals"}),
    exp.If: frozenset({"this", "true", "false"}),
    exp.Case: frozenset({"this", "ifs", "default"}),
    exp.Extract: _BINARY,
    exp.Var: _ONE,
    exp.Count: frozenset({"this", "expressions", "big_int"}),
}

_UNREAD = frozenset({"hint", "order", "sort"})
"""Parts that do not change which rows there are."""

_LOADED = "compute its value when the rows are loaded"
_OWN_VIEW = "make it a materialized view of its own, and read that"
JOIN_HINT = (
    "show a key of the kept side, and a column of the other one that is never null: then it is analysed"
)
_FULL_HINT = "keep two views: a LEFT JOIN, and the rows of the other side without a match"
_TOLD_HINT = (
    "store views that tell all rows of the tables, as `SELECT * FROM t`: it is computed from these then"
)
_KINDS: Mapping[type[exp.Expr], tuple[str, str]] = {
    exp.Window: ("a window function", _TOLD_HINT),
    exp.Qualify: ("QUALIFY", _TOLD_HINT),
    exp.Except: ("EXCEPT", "keep the two sides as two views"),
    exp.Lateral: ("a lateral view or join", "unnest into a table before, and join that"),
    exp.TableSample: ("TABLESAMPLE", "the rows differ at each reading: leave it out"),
    exp.Bracket: (
        "an element of a list",
        "lists begin at 0 in Spark; `split_part(text, ',', 1)` is the first part of a text",
    ),
    exp.Pivot: ("PIVOT", "one `sum(case when ... then ... end)` for each column says the same"),
    exp.Values: (
        "VALUES",
        "put the rows into a view of their own: `select 1 as id, ... union all select 2, ...`",
    ),
    exp.Filter: ("FILTER of this aggregate", "count, sum, avg, min and max are analysed"),
    exp.Rollup: ("ROLLUP", "one view for each grouping"),
    exp.Cube: ("CUBE", "one view for each grouping"),
    exp.GroupingSets: ("GROUPING SETS", "one view for each grouping"),
    exp.Rand: ("a function that gives another value each time", "compute the value when the rows are loaded"),
    exp.Uuid: ("a function that gives another value each time", "compute the value when the rows are loaded"),
    exp.QueryTransform: ("TRANSFORM with USING", "run the script where the rows are loaded"),
}
_MOMENTS = (exp.CurrentDate, exp.CurrentTimestamp, exp.CurrentUser, exp.CurrentTime)
_PARTS: Mapping[str, tuple[str, str]] = {
    "limit": ("LIMIT", "leave it out, and limit when reading the view"),
    "offset": ("OFFSET", "leave it out, and skip rows when reading the view"),
    "qualify": ("QUALIFY", _TOLD_HINT),
    "laterals": ("LATERAL VIEW", "unnest into a table before, and join that"),
    "pivots": ("PIVOT", "one `sum(case when ... then ... end)` for each column says the same"),
    "sample": ("TABLESAMPLE", "the rows differ at each reading: leave it out"),
    "windows": ("a window", "aggregate with GROUP BY in a view, and rank when reading it"),
    "recursive": ("a recursive common table expression", "only views without recursion are analysed"),
    "rename": ("renaming columns of `*`", "list the columns"),
    "all": ("GROUP BY ALL of these columns", "list the grouping columns"),
    "rollup": ("ROLLUP", "one view for each grouping"),
    "cube": ("CUBE", "one view for each grouping"),
    "grouping_sets": ("GROUPING SETS", "one view for each grouping"),
}


WRITTEN_AS = "written as"
"""Under this an expression's `meta` has what stands for it in the text that was given."""


def report_outside(query: exp.Expr, problems: Problems) -> None:
    """Notes everything in a query that no view definition can hold (DL402), all at once."""
    for node, what, hint in _outside(query):
        problems.outside(what, node, hint)


def _outside(query: exp.Expr) -> Iterator[tuple[exp.Expr, str, str]]:
    waiting = [query]
    while waiting:
        inside: list[exp.Expr] = []
        yield from _at(waiting.pop(), inside)
        waiting += reversed(inside)


def _at(node: exp.Expr, inside: list[exp.Expr]) -> Iterator[tuple[exp.Expr, str, str]]:
    """What is outside at a node; its parts that are to be looked at are added to `inside`."""
    if (other := otherwise_in_spark(node)) is not None:
        yield (node, *other)
        return
    allowed = _ALLOWED.get(type(node))
    if isinstance(node, exp.Anonymous) and (node.name.lower() in BY_NAME | NAMED.keys() or is_moment(node)):
        allowed = _NAMED
    if allowed is None:
        yield (node, *unknown(node))
        return
    if isinstance(node, exp.Join):
        found = _join(node)
        if found is not None:
            yield (node.this, *found)
    if isinstance(node, exp.Subquery) and not isinstance(node.parent, _AROUND_QUERIES):
        hint = "join the tables, or read the value from a view of its own"
        yield node, "a subquery in an expression", hint
        return
    for part, value in node.args.items():
        if not value or part in _UNREAD:
            continue
        if part not in allowed:
            if not (isinstance(node, exp.Join) and part in ("side", "kind", "method")):
                at = value if isinstance(value, exp.Expr) else node
                what, hint = _PARTS.get(part, (f"this part of a query (`{part.strip('_')}`)", _OWN_VIEW))
                yield at, at.meta.get(WRITTEN_AS, what), hint
            continue
        children = value if isinstance(value, list) else [value]
        inside += [child for child in children if isinstance(child, exp.Expr)]


_AROUND_QUERIES = (
    exp.From,
    exp.Join,
    exp.Union,
    exp.Intersect,
    exp.Create,
    exp.Subquery,
    exp.CTE,
    exp.In,
    exp.Exists,
    type(None),
)


def _join(node: exp.Join) -> tuple[str, str] | None:
    side, kind, method = node.side, node.kind, node.method
    if side and side != "LEFT":  # which of these are inner joins the tables' foreign keys say
        hint = "write it as LEFT JOIN, the side that is kept first" if side == "RIGHT" else _FULL_HINT
        return f"{side} JOIN" if kind != "OUTER" else f"{side} OUTER JOIN", hint
    if kind not in ("", "INNER", "CROSS") and (side, kind) != ("LEFT", "OUTER"):
        return f"{kind} JOIN", f"write it as a condition with {'NOT EXISTS' if kind == 'ANTI' else 'EXISTS'}"
    if method not in ("", "NATURAL"):
        return f"{method} JOIN", "views over inner joins are analysed"
    return None


def unknown(node: exp.Expr) -> tuple[str, str]:
    """What a kind of node that is not on a list is called, and the nearest thing that works."""
    if type(node) in _KINDS:
        return _KINDS[type(node)]
    if isinstance(node, exp.WithinGroup | exp.IgnoreNulls | exp.RespectNulls):
        return unknown(node.this)
    if isinstance(node, _MOMENTS):
        hint = "it differs at each reading: keep the views in a store, which knows of which date they are"
        is_known = isinstance(node, exp.CurrentDate | exp.CurrentTimestamp)
        return f"`{node.sql_name().lower()}`", hint if is_known else "filter when reading the view"
    if isinstance(node, exp.Anonymous):
        return f"the function `{node.name.lower()}`", called_in_spark(node.name) or _LOADED
    if isinstance(node, exp.AggFunc):
        return f"the aggregate `{_name(node)}`", "count, sum, avg, min and max are analysed"
    if isinstance(node, exp.Func):
        return f"the function `{_name(node)}`", called_in_spark(node.sql_name()) or _LOADED
    return f"this (`{type(node).__name__.lower()}`)", _OWN_VIEW


def _name(node: exp.Func) -> str:
    """What a function is called in Spark's SQL: `date_trunc` and not `timestamp_trunc`."""
    if isinstance(node, exp.ToChar):
        return "to_char"  # the parser writes it as a cast
    found = re.match(r"(\w+)\(", node.sql("spark", unsupported_level=ErrorLevel.IGNORE))
    return (found[1] if found else node.sql_name()).lower()
