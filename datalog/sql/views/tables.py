"""`CREATE TABLE` as a declaration: columns, types, not null, primary and unique keys, foreign keys."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from sqlglot import exp

from datalog.model import ANY, Column, ColumnType, Declaration, ForeignKey, Unmodelled
from datalog.sql.views.column_types import column_type, unmodelled
from datalog.sql.views.problems import Problems


@dataclass(slots=True)
class _Constraints:
    key: tuple[str, ...] | None = None
    unique: list[tuple[str, ...]] = field(default_factory=list)
    foreign: list[tuple[tuple[str, ...], exp.Reference, exp.Expr]] = field(default_factory=list)
    not_null: set[str] = field(default_factory=set)


def declaration(name: str, schema: exp.Schema, problems: Problems) -> Declaration:
    """The declaration that a table's columns and constraints make.

    Args:
        name: the relation's name.
        schema: the part of `CREATE TABLE` in parentheses.
        problems: where what is wrong is noted.

    Returns:
        Names as they are written first: a constraint may spell a column in another case. A foreign key that
        names no columns references the target's primary key; these are left empty for `filled_targets`.
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
    columns = tuple(
        Column(
            one.name, _type(one), one.name in found.not_null, problems.source.span_of(one), _unmodelled(one)
        )
        for one in definitions
    )
    foreign_keys = tuple(
        ForeignKey(mine, *_target(reference), problems.source.span_of(tree))
        for mine, reference, tree in found.foreign
    )
    unique = tuple(dict.fromkeys(found.unique))
    return Declaration(name, columns, found.key, unique, foreign_keys, problems.source.span_of(schema.this))


def _type(definition: exp.ColumnDef) -> ColumnType:
    kind = definition.args.get("kind")
    return ANY if not isinstance(kind, exp.DataType) else column_type(kind) or ANY


def _unmodelled(definition: exp.ColumnDef) -> Unmodelled | None:
    kind = definition.args.get("kind")
    if not isinstance(kind, exp.DataType):
        return None
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
        case exp.PrimaryKeyColumnConstraint():
            found.key = column
        case exp.PrimaryKey():
            found.key = spelt(tree.expressions)
        case exp.UniqueColumnConstraint():
            inner = tree.this
            found.unique.append(spelt(inner.expressions) if isinstance(inner, exp.Schema) else column)
        case exp.ForeignKey():
            found.foreign.append((spelt(tree.expressions), tree.args["reference"], tree))
        case exp.Reference():
            found.foreign.append((column, tree, tree))
        case _:
            return


def _target(reference: exp.Reference) -> tuple[str, tuple[str, ...]]:
    target = reference.this
    if isinstance(target, exp.Schema):
        return target.this.name, tuple(one.name for one in target.expressions)
    return target.name, ()
