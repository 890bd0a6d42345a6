"""What a statement of SQL is: a table, a view to store, a view to unfold, a query without a name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, unique

from sqlglot import exp, tokenize
from sqlglot.tokenizer_core import TokenType

from datalog.sql.views.source import Statement


@unique
class Kind(Enum):
    """What a statement defines."""

    TABLE = "table"
    VIEW = "view"
    UNFOLDED = "unfolded"
    """A temporary view: a name for a query."""
    QUERY = "query"
    """A query without a name."""
    UNREADABLE_VIEW = "unreadable view"
    """A view in a form that sqlglot does not take apart."""
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Defined:
    """A statement and what it defines.

    Attributes:
        kind: what.
        parts: the parts of the name, the last one first.
        columns: names of columns that are given with the name of a view.
        body: the query, or the columns of a table.
        name_tree: where the name stands.
    """

    kind: Kind
    parts: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    body: exp.Expr | None = None
    name_tree: exp.Expr | None = None


_VIEW = re.compile(
    r"create\b(?:(?!\bas\b).)*?\bview\s+(?:if\s+not\s+exists\s+)?([`\w.]+)", re.IGNORECASE | re.DOTALL
)


def defined(statement: Statement) -> Defined:
    """What a statement defines."""
    tree = statement.tree
    if isinstance(tree, exp.Select | exp.SetOperation | exp.Subquery):
        return Defined(Kind.QUERY, body=tree)
    if isinstance(tree, exp.Create) and str(tree.kind).upper() in ("TABLE", "VIEW"):
        return _created(tree)
    found = _VIEW.match(statement.text)
    if isinstance(tree, exp.Command) and found is not None:
        parts = tuple(part.strip("`") for part in reversed(found[1].split(".")))
        return Defined(Kind.UNREADABLE_VIEW, parts, body=tree)
    return Defined(Kind.OTHER, body=tree)


def _created(tree: exp.Create) -> Defined:
    word = str(tree.kind).upper()
    schema = tree.this if isinstance(tree.this, exp.Schema) else None
    table = tree.this if schema is None else schema.this
    parts = tuple(part.name for part in reversed(table.parts))
    if tree.expression is None:
        kind = Kind.TABLE if schema is not None and word == "TABLE" else Kind.OTHER
        return Defined(kind, parts, body=schema or tree, name_tree=table)
    columns = () if schema is None else tuple(one.name for one in schema.expressions)
    properties = tree.args.get("properties")
    temporary = properties is not None and properties.find(exp.TemporaryProperty) is not None
    kind = Kind.UNFOLDED if temporary and word == "VIEW" else Kind.VIEW
    return Defined(kind, parts, columns, tree.expression, table)


def query_text(statement: Statement) -> str:
    """The query of a statement as it is written: what stands behind the first AS outside parentheses.

    >>> from datalog.sql.views.source import SqlText, statements
    >>> (one,) = statements(SqlText("create view v (a comment 'x as y') as select 1 as a"), [])
    >>> query_text(one)
    'select 1 as a'
    """
    if not isinstance(statement.tree, exp.Create | exp.Command):
        return statement.text
    depth = 0
    for token in tokenize(statement.text, read="spark"):
        depth += (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)
        if token.token_type is TokenType.ALIAS and depth == 0:
            return statement.text[token.end + 1 :].strip()
    return statement.text
