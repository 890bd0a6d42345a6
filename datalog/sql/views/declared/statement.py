"""What a statement of SQL is: a table and its columns' types, a view to store or to unfold, a query without a name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum, unique

from msgspec import Struct, field
from sqlglot import exp, tokenize
from sqlglot.tokenizer_core import TokenType

from datalog.copies import replace
from datalog.diagnostics import Code, Diagnostic, Severity
from datalog.model import (
    ANY,
    MAX_PRECISION,
    Column,
    ColumnType,
    Declaration,
    ForeignKey,
    TypeName,
    Unmodelled,
)
from datalog.sql.dialect import SPARK
from datalog.sql.views.declared.column_types import column_type, misspelt, own_name, unmodelled
from datalog.sql.views.declared.dumps import is_dump, is_setting
from datalog.sql.views.source import Problems, Statement

_DUMPED_SCALE = 18
"""Digits behind the point of a `numeric` without a size, as PostgreSQL's values are read."""
_DECIMALS = (
    f"a decimal has 1 to {MAX_PRECISION} digits, none to all of them behind the point: `decimal(10, 2)`"
)


class _Constraints(Struct):
    key: tuple[str, ...] | None = None
    unique: list[tuple[str, ...]] = field(default_factory=list)
    foreign: list[tuple[tuple[str, ...], exp.Reference, exp.Expr]] = field(default_factory=list)
    not_null: set[str] = field(default_factory=set)


def declaration(name: str, schema: exp.Schema, problems: Problems) -> Declaration:
    """The declaration that a table's columns and constraints make.

    Returns:
        Names as they are written first: a constraint may spell a column in another case. What foreign keys reference
        is as it is written, for `declared_tables`.
    """
    found = _Constraints()
    definitions = [one for one in schema.expressions if isinstance(one, exp.ColumnDef)]
    names = {one.name.casefold(): one.name for one in definitions}
    for one in definitions:
        for constraint in one.args.get("constraints") or ():
            _take(constraint.args.get("kind"), (one.name,), found, names)
    for one in schema.expressions:
        if not isinstance(one, exp.ColumnDef):
            for part in _table_constraints(one):
                _take(part, (), found, names)
    for one in definitions:
        kind = one.args.get("kind")
        if isinstance(kind, exp.DataType) and _has_no_such_size(kind) and not is_dump(problems.source.text):
            message = f"column `{one.name}` of `{name}` is of type `{kind.sql().lower()}`, which there is not"
            problems.error(Code.UNKNOWN_TYPE, message, one, "no such size", hint=_DECIMALS)
        if isinstance(kind, exp.DataType) and (meant := misspelt(own_name(kind))):
            message = f"column `{one.name}` of `{name}` is of type `{own_name(kind)}`, which there is not"
            problems.error(Code.UNKNOWN_TYPE, message, one, hint=f"did you mean `{meant}`?")
    columns = tuple(
        Column(
            one.name,
            _type(one, problems),
            one.name in found.not_null,
            problems.source.span_of(one),
            _unmodelled(one),
        )
        for one in definitions
    )
    unique, foreign_keys = tuple(dict.fromkeys(found.unique)), _foreign_keys(found, problems)
    return Declaration(name, columns, found.key, unique, foreign_keys, problems.source.span_of(schema.this))


def constrained(table: Declaration, tree: exp.Alter, problems: Problems) -> Declaration:
    """A declaration with the constraints that `ALTER TABLE .. ADD CONSTRAINT` adds, as dumps of schemas have them."""
    found = _Constraints(key=table.key, unique=[*table.unique])
    names = {name.casefold(): name for name in table.column_names}
    for action in tree.args["actions"]:
        for one in action.expressions:
            for part in _table_constraints(one):
                _take(part, (), found, names)
    foreign_keys = (*table.foreign_keys, *_foreign_keys(found, problems))
    return replace(table, key=found.key, unique=tuple(dict.fromkeys(found.unique)), foreign_keys=foreign_keys)


def _foreign_keys(found: _Constraints, problems: Problems) -> tuple[ForeignKey, ...]:
    return tuple(
        ForeignKey(mine, *_target(reference), problems.source.span_of(tree))
        for mine, reference, tree in found.foreign
    )


def _type(definition: exp.ColumnDef, problems: Problems) -> ColumnType:
    kind = definition.args.get("kind")
    if not isinstance(kind, exp.DataType):
        return ANY
    if kind.this is exp.DType.DECIMAL and not kind.expressions and is_dump(problems.source.text):
        return ColumnType(
            TypeName.DECIMAL, MAX_PRECISION, _DUMPED_SCALE
        )  # Spark's has no digits behind the point
    return column_type(kind) or ANY


def _has_no_such_size(kind: exp.DataType) -> bool:
    """Whether a type is a decimal of more digits than Spark's have, or of others behind the point."""
    return kind.this is exp.DType.DECIMAL and column_type(kind) is None


def _unmodelled(definition: exp.ColumnDef) -> Unmodelled | None:
    kind = definition.args.get("kind")
    if not isinstance(kind, exp.DataType):
        return None
    if _has_no_such_size(kind):
        return Unmodelled(kind.sql().lower(), _DECIMALS)
    collation = definition.find(exp.CollateColumnConstraint)
    return unmodelled(kind, None if collation is None else collation.this.name)


def _table_constraints(tree: exp.Expr) -> Iterator[exp.Expr]:
    """The constraints of a table, named or not."""
    if isinstance(tree, exp.Constraint):
        yield from tree.expressions
    else:
        yield tree


def _take(tree: exp.Expr | None, column: tuple[str, ...], found: _Constraints, names: dict[str, str]) -> None:
    """Notes one constraint; `column` is the column that it stands at, if it does."""

    def spelt(trees: list[exp.Expr]) -> tuple[str, ...]:
        return tuple(names.get(one.name.casefold(), one.name) for one in trees)

    match tree:
        case exp.NotNullColumnConstraint() if not tree.args.get("allow_null"):
            found.not_null.update(column)
        case exp.PrimaryKeyColumnConstraint() if column:
            found.key = column
        case exp.PrimaryKey() if tree.expressions:  # without columns it is something else, read wrongly
            found.key = spelt(tree.expressions)
        case exp.UniqueColumnConstraint():
            inner = tree.this
            its = spelt(inner.expressions) if isinstance(inner, exp.Schema) else column
            found.unique += [its] if its and not (column and its != column) else []
        case exp.ForeignKey():
            found.foreign.append((spelt(tree.expressions), tree.args["reference"], tree))
        case exp.Reference():
            found.foreign.append((column, tree, tree))
        case _:
            return


def _target(reference: exp.Reference) -> tuple[str, tuple[str, ...]]:
    """What is referenced, its name as SQL has it, with all its parts."""
    target, columns = reference.this, tuple[str, ...]()
    if isinstance(target, exp.Schema):
        target, columns = target.this, tuple(one.name for one in target.expressions)
    return target.sql(dialect=SPARK, identify=True, comments=False), columns


@unique
class Kind(Enum):
    """What a statement defines."""

    TABLE = "table"
    CONSTRAINTS = "constraints"
    """Keys of a table that is there already."""
    CHILD = "child"
    """A table that inherits: its rows are rows of others, too, and no key of these tells them apart."""
    VIEW = "view"
    UNFOLDED = "unfolded"
    """A temporary view: a name for a query."""
    QUERY = "query"
    """A query without a name."""
    UNREADABLE_VIEW = "unreadable view"
    """A view in a form that sqlglot does not take apart."""
    OTHER = "other"


class Defined(Struct, frozen=True):
    """A statement and what it defines.

    Attributes:
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
    if isinstance(tree, exp.Select) and is_setting(statement.text):
        return Defined(Kind.OTHER, body=tree)
    if isinstance(tree, exp.Select | exp.SetOperation | exp.Subquery):
        return Defined(Kind.QUERY, body=tree)
    if isinstance(tree, exp.Alter) and _adds_constraints(tree):
        parts = tuple(part.name for part in reversed(tree.this.parts))
        return Defined(Kind.CONSTRAINTS, parts, body=tree, name_tree=tree.this)
    if isinstance(tree, exp.Create) and str(tree.kind).upper() in ("TABLE", "VIEW"):
        return _created(tree)
    found = _VIEW.match(statement.text)
    if isinstance(tree, exp.Command) and found is not None:
        parts = tuple(part.strip("`") for part in reversed(found[1].split(".")))
        return Defined(Kind.UNREADABLE_VIEW, parts, body=tree)
    return Defined(Kind.OTHER, body=tree)


def _adds_constraints(tree: exp.Alter) -> bool:
    """Whether a statement adds constraints that all rows of a table satisfy, and does nothing else."""
    actions = tree.args.get("actions") or ()
    plain = isinstance(tree.this, exp.Table) and bool(actions) and not tree.args.get("not_valid")
    return plain and all(isinstance(one, exp.AddConstraint) for one in actions)


def _created(tree: exp.Create) -> Defined:
    word = str(tree.kind).upper()
    schema = tree.this if isinstance(tree.this, exp.Schema) else None
    table = tree.this if schema is None else schema.this
    parts = tuple(part.name for part in reversed(table.parts))
    given = [] if schema is None else schema.expressions
    if any(isinstance(one, exp.LikeProperty | exp.Literal) for one in given):
        return Defined(Kind.OTHER, body=tree)  # columns of another table, or a name by IDENTIFIER('..')
    if tree.expression is None:
        if tree.find(exp.InheritsProperty):
            return Defined(Kind.CHILD, parts, body=tree, name_tree=table)
        kind = Kind.TABLE if schema is not None and word == "TABLE" else Kind.OTHER
        if schema is not None:
            schema.set("expressions", [*schema.expressions, *_partition_columns(tree)])
        return Defined(kind, parts, body=schema or tree, name_tree=table)
    columns = () if schema is None else tuple(one.name for one in schema.expressions)
    properties = tree.args.get("properties")
    empty = None if properties is None else properties.find(exp.WithDataProperty)
    if empty is not None and empty.args.get("no"):
        return Defined(Kind.OTHER, body=tree)  # a table of no rows, whatever its query gives
    temporary = properties is not None and properties.find(exp.TemporaryProperty) is not None
    kind = Kind.UNFOLDED if temporary and word == "VIEW" else Kind.VIEW
    return Defined(kind, parts, columns, tree.expression, table)


def _partition_columns(tree: exp.Create) -> list[exp.ColumnDef]:
    """Columns that a table has besides those in its parentheses: `PARTITIONED BY (day DATE)`."""
    its = (one.this for one in tree.find_all(exp.PartitionedByProperty))
    schemas = (one for one in its if isinstance(one, exp.Schema))
    return [one for schema in schemas for one in schema.expressions if isinstance(one, exp.ColumnDef)]


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
    for token in tokenize(statement.text, read=SPARK):
        depth += (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)
        if token.token_type is TokenType.ALIAS and depth == 0:
            return statement.text[token.end + 1 :].strip()
    return statement.text


def skipped(statement: Statement) -> Diagnostic:
    """The warning of a statement that defines nothing."""
    word = statement.text.split(maxsplit=1)[0].lower()
    return Diagnostic(
        Code.SQL_SKIPPED,
        f"a statement `{word}` defines no view and no table",
        statement.span,
        "passed over",
        hint="views are defined by CREATE VIEW, tables by CREATE TABLE with columns",
        severity=Severity.WARNING,
    )
