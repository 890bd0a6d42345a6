"""Rows that are written out, as queries.

    VALUES (1, 'a'), (2, 'b')     SELECT 1 AS col1, 'a' AS col2 UNION ALL SELECT 2, 'b'

What reads a query knows these. They are the same where each column has values that are written alike: else Spark finds
a type for a column of VALUES by other rules than for one of UNION ALL, and VALUES stay as they are. Where they are all
that a query is, and plainly differ, it says so: UNION, after which no row stands twice.
"""

from __future__ import annotations

from sqlglot import exp

MOST = 40
"""More rows stay as they are: each is a query."""


def with_queries(tree: exp.Expr) -> exp.Expr:
    """A tree with queries in place of all its VALUES that are such."""
    for node in list(tree.find_all(exp.Values)):
        made = queries_of_values(node)
        if node is tree:
            return made
        node.replace(made)
    return tree


def queries_of_values(node: exp.Expr) -> exp.Expr:
    """The queries whose rows are those of VALUES, in their place; VALUES themselves if these are not such.

    >>> from sqlglot import parse_one
    >>> tree = parse_one("select * from values (1, 'a'), (2, null) as t(x, y)", read="spark")
    >>> queries_of_values(tree.find(exp.Values)).sql("spark")
    "(SELECT 1 AS `x`, 'a' AS `y` UNION SELECT 2, NULL) AS t"
    """
    rows = [one.expressions if isinstance(one, exp.Tuple) else [one] for one in node.expressions]
    alias = node.args.get("alias")
    named = [] if alias is None else alias.args.get("columns") or []
    width = len(rows[0])
    columns = [one.name for one in named] or [f"col{i}" for i in range(1, width + 1)]
    if len(rows) > MOST or len(columns) != width or any(len(row) != width for row in rows):
        return node
    if not all(_are_alike(column) for column in zip(*rows, strict=True)):
        return node
    first, *others = rows
    found: exp.Query = exp.Select(
        expressions=[
            exp.alias_(v, name, quoted=True, copy=False) for v, name in zip(first, columns, strict=True)
        ]
    )
    differ = _is_whole(node) and any(_differ(column) for column in zip(*rows, strict=True))
    for row in others:
        found = exp.Union(this=found, expression=exp.Select(expressions=list(row)), distinct=differ)
    if not isinstance(node.parent, exp.From | exp.Join | exp.Lateral):
        return found
    table = None if alias is None or alias.this is None else exp.TableAlias(this=alias.this)
    return exp.Subquery(this=found, alias=table)


def _is_whole(node: exp.Expr) -> bool:
    """Whether a query is all columns of some VALUES, or these themselves."""
    if node.parent is None:
        return True
    query = node.parent.parent if isinstance(node.parent, exp.From) else None
    if not isinstance(query, exp.Select) or query.parent is not None:
        return False
    parts = {name for name, part in query.args.items() if part} - {"from_", "expressions", "kind"}
    return not parts and [type(one) for one in query.expressions] == [exp.Star]


def _differ(values: tuple[exp.Expr, ...]) -> bool:
    """Whether no two values of a column are equal, as far as it is plain."""
    found = [_plain(one) for one in values]
    return None not in found and len(set(found)) == len(found)


def _plain(value: exp.Expr) -> int | str | None:
    match value:
        case exp.Neg(this=exp.Literal(is_string=False) as number) if number.is_int:
            return -int(number.name)
        case exp.Literal() if value.is_string:
            return None if "\\" in value.name else value.name
        case exp.Literal() if value.is_int:
            return int(value.name)
        case _:
            return None


def _are_alike(values: tuple[exp.Expr, ...]) -> bool:
    kinds = {_kind(one) for one in values} - {"null"}
    return len(kinds) == 1 and "" not in kinds


def _kind(value: exp.Expr) -> str:
    """How a value is written; empty where it is otherwise."""
    match value:
        case exp.Null():
            return "null"
        case exp.Boolean():
            return "boolean"
        case exp.Neg(this=exp.Literal() as number) | (exp.Literal() as number):
            if number.is_string:
                return "string" if value is number else ""
            return "integer" if number.is_int else "decimal" if number.name.replace(".", "").isdigit() else ""
        case exp.Cast(this=exp.Literal(), to=exp.DataType() as kind):
            return kind.sql("spark")
        case _:
            return ""
