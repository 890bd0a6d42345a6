"""The only place where a tree becomes SQL text."""

from __future__ import annotations

from typing import Literal as OneOf

from sqlglot import ErrorLevel, exp

from datalog.sql.errors import EmissionError


def text(tree: exp.Expr, *, pretty: bool = True, dialect: OneOf["spark", "duckdb"] = "spark") -> str:
    r"""The SQL of a tree, every identifier quoted.

    Args:
        tree: any sqlglot expression.
        pretty: whether to break and indent lines.
        dialect: of which engine.

    Raises:
        EmissionError: an identifier holds `${`, which Spark would replace by a configuration value.
        sqlglot.errors.UnsupportedError: the tree has no faithful SQL of the dialect.

    >>> text(exp.select(exp.column("x", "t`")).from_(exp.to_identifier("t`")), pretty=False)
    'SELECT `t```.`x` FROM `t```'
    """
    sql = tree.sql(dialect=dialect, identify=True, pretty=pretty, unsupported_level=ErrorLevel.RAISE)
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
