"""A base relation as a feed's reader sees it: the columns to take from each record, and the key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from datalog.diagnostics import Diagnostic
from datalog.model import ANY, ColumnType, Declaration, TypeName
from selfmaint.errors import Code, InputError, input_error
from selfmaint.warehouse.catalog import Catalog
from selfmaint.warehouse.near import near_miss

_OPEN_DECIMAL = ColumnType(TypeName.DECIMAL, 38, 18)
"""What a decimal without precision is read as, as in any text file."""


@dataclass(frozen=True, slots=True)
class FeedTable:
    """The columns of a relation.

    Attributes:
        name: the relation.
        columns: column names, in declared order.
        types: their types.
        key: 0-based positions of the declared key (or of a unique constraint without null); None if there is none.
        not_null: 0-based positions that never hold null.
    """

    name: str
    columns: tuple[str, ...]
    types: tuple[ColumnType, ...]
    key: tuple[int, ...] | None
    not_null: frozenset[int]

    @property
    def identity(self) -> tuple[int, ...]:
        """The columns that tell rows apart: the key, or all of them."""
        return self.key if self.key is not None else tuple(range(len(self.columns)))

    @property
    def rest(self) -> tuple[int, ...]:
        """The columns beside the identity."""
        return tuple(i for i in range(len(self.columns)) if i not in self.identity)

    def check_columns(self, found: Sequence[str], where: str) -> None:
        """Whether a record's columns are the declared ones; further ones are left out if there is a key.

        Without a key, rows that differ in a column left out would look the same.

        Raises:
            InputError: SM104, every difference at once.
        """
        problems = [
            Diagnostic(
                Code.COLUMNS_DIFFER,
                f"{where} has no column `{name}` of `{self.name}`",
                note=f"its columns are {', '.join(f'`{c}`' for c in found) or 'none'}",
                hint=near_miss(name, found, "column") if found else None,
            )
            for name in self.columns
            if name not in found
        ]
        if self.key is None:
            problems += [
                Diagnostic(
                    Code.COLUMNS_DIFFER,
                    f"{where} has a column `{name}` that `{self.name}` has not",
                    note="without it, two rows of the table may look the same",
                    hint=f"declare `{name}`, or the key of `{self.name}`",
                )
                for name in dict.fromkeys(found)
                if name not in self.columns
            ]
        if problems:
            raise InputError(problems)


def feed_table(schema: Catalog, name: str) -> FeedTable:
    """The relation as a feed's reader sees it.

    Raises:
        InputError: SM104 its columns, or the type of one, are not declared.
    """
    relation = schema.relations[name]
    declaration = schema.program.declaration(name)
    if declaration is None:
        raise input_error(
            Code.COLUMNS_DIFFER,
            f"the columns of `{name}` are not declared, so no change feed of it can be read",
            hint=f"add `.decl {name}(column: type, ...) key(column, ...).` to the program",
        )
    undeclared = [c for c, t in zip(relation.columns, relation.types, strict=True) if t == ANY]
    if undeclared:
        raise input_error(
            Code.COLUMNS_DIFFER,
            f"the type of {', '.join(f'`{c}`' for c in undeclared)} of `{name}` is not declared",
            note="how a feed's value is to be read depends on the column's type",
            hint="write `column: type` in the declaration",
        )
    types = tuple(_OPEN_DECIMAL if _is_open(t) else t for t in relation.types)
    not_null = frozenset(range(relation.arity)) - relation.nullable
    return FeedTable(name, relation.columns, types, _key(declaration, not_null), not_null)


def _is_open(declared: ColumnType) -> bool:
    return declared.name is TypeName.DECIMAL and declared.precision is None


def _key(declaration: Declaration, not_null: frozenset[int]) -> tuple[int, ...] | None:
    position = {name: i for i, name in enumerate(declaration.column_names)}
    candidates = [] if declaration.key is None else [declaration.key]
    candidates += declaration.unique
    for columns in candidates:
        found = tuple(position[name] for name in columns)
        if set(found) <= not_null:
            return found
    return None
