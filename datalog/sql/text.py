"""The only place where a tree becomes SQL text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal as OneOf

from sqlglot import ErrorLevel, exp

from datalog.errors import EmissionError
from datalog.model import TextQuery, TextRead


def text(
    tree: exp.Expr, *, pretty: bool = True, dialect: OneOf["spark", "duckdb"] = "spark", once: bool = False
) -> str:
    r"""The SQL of a tree, every identifier quoted; the tree may be changed if it is for `once`.

    Raises:
        EmissionError: an identifier holds `${`, which Spark would replace by a configuration value.
        sqlglot.errors.UnsupportedError: the tree has no faithful SQL of the dialect.

    >>> text(exp.select(exp.column("x", "t`")).from_(exp.to_identifier("t`")), pretty=False)
    'SELECT `t```.`x` FROM `t```'
    """
    sql = tree.sql(
        dialect=dialect, copy=not once, identify=True, pretty=pretty, unsupported_level=ErrorLevel.RAISE
    )
    if dialect == "duckdb" and "\0" in sql:
        return text(tree.transform(_without_zero), pretty=pretty, dialect=dialect)
    if dialect == "spark" and "${" in sql:
        raise EmissionError("an identifier holds `${`, which Spark would replace by a configuration value")
    return sql


def _without_zero(node: exp.Expr) -> exp.Expr:
    """A text without the character that ends DuckDB's statements."""
    if not (isinstance(node, exp.Literal) and node.is_string and "\0" in node.this):
        return node
    zero = exp.Anonymous(this="chr", expressions=[exp.Literal.number(0)])
    first, *others = (exp.Literal.string(part) for part in node.this.split("\0"))
    result: exp.Expr = first
    for other in others:
        result = exp.DPipe(this=exp.DPipe(this=result, expression=zero.copy()), expression=other)
    return exp.Paren(this=result)


def bound_text(query: TextQuery, names: Mapping[str, tuple[str, ...]]) -> str:
    """The text, in which each name of a relation is the name that it is bound under; nothing else is changed.

    >>> from datalog.model import TextRead
    >>> text = "select orders.id from db.orders left join item i on i.id = orders.id"
    >>> query = TextQuery(text, (TextRead(22, 31, "orders", "orders"), TextRead(42, 46, "item")))
    >>> bound_text(query, {"orders": ("t0",), "item": ("t1",)})
    'select orders.id from `t0` as `orders` left join `t1` i on i.id = orders.id'
    """
    found = query.text
    for read in sorted(query.reads, key=lambda r: r.start, reverse=True):
        alias = "" if read.alias is None else f" as {quoted(read.alias)}"
        found = found[: read.start] + _place(read, names) + alias + found[read.end :]
    return found


def _place(read: TextRead, names: Mapping[str, tuple[str, ...]]) -> str:
    if isinstance(read.of, str):
        return ".".join(map(quoted, names[read.of]))
    below = bound_text(read.of, names)
    columns = f"({', '.join(map(quoted, read.of.columns))})" if read.of.columns else ""
    # The text may end in a comment: its line ends before the parenthesis.
    return f"(select * from (\n{below}\n) as below{columns})"  # noqa: S608 - a query of the user's own


def quoted(name: str) -> str:
    """A name in backticks.

    >>> quoted("a`b")
    '`a``b`'
    """
    return exp.to_identifier(name, quoted=True).sql("spark")
