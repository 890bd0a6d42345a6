"""The only place where a tree becomes SQL text."""

from __future__ import annotations

from sqlglot import ErrorLevel, exp

from datalog.sql.errors import EmissionError


def text(tree: exp.Expr, *, pretty: bool = True) -> str:
    r"""Spark SQL of a tree, every identifier quoted.

    Args:
        tree: any sqlglot expression.
        pretty: whether to break and indent lines.

    Raises:
        EmissionError: an identifier holds `${`, which Spark would replace by a configuration value.
        sqlglot.errors.UnsupportedError: the tree has no faithful Spark SQL.

    >>> text(exp.select(exp.column("x", "t`")).from_(exp.to_identifier("t`")), pretty=False)
    'SELECT `t```.`x` FROM `t```'
    """
    sql = tree.sql(dialect="spark", identify=True, pretty=pretty, unsupported_level=ErrorLevel.RAISE)
    if "${" in sql:
        raise EmissionError("an identifier holds `${`, which Spark would replace by a configuration value")
    return sql
