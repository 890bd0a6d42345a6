"""A base relation as a feed's reader sees it: the columns to take from each record, and the key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from datalog.diagnostics import Diagnostic
from datalog.model import ANY, ColumnType, Declaration, TypeName
from selfmaint.errors import Code, InputError, input_error
from selfmaint.feeds.changes import RecordError
from selfmaint.feeds.settings import FeedSettings
from selfmaint.warehouse.catalog import Catalog
from selfmaint.warehouse.near import near_miss

_OPEN_DECIMAL = ColumnType(TypeName.DECIMAL, 38, 18)
"""What a decimal without precision is read as, as in any text file."""


class FeedTable(Struct, frozen=True):
    """The columns of a relation.

    Attributes:
        columns: column names, in declared order.
        key: 0-based positions of the declared key (or of a unique constraint without null); None if there is none.
        not_null: 0-based positions that never hold null.
        unread: further columns that files of rows may have, if there is a key; see `check_columns`.
        has_twins: whether a row may stand twice.
    """

    name: str
    columns: tuple[str, ...]
    types: tuple[ColumnType, ...]
    key: tuple[int, ...] | None
    not_null: frozenset[int]
    unread: frozenset[str] = frozenset()
    has_twins: bool = False

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
                    hint=f"declare the key of `{self.name}`, or `{name}` by a type that is read",
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
    names, declared = relation.columns[: relation.given], relation.types[: relation.given]
    undeclared = [c for c, t in zip(names, declared, strict=True) if t == ANY]
    if undeclared:
        raise input_error(
            Code.COLUMNS_DIFFER,
            f"the type of {', '.join(f'`{c}`' for c in undeclared)} of `{name}` is not declared",
            note="how a feed's value is to be read depends on the column's type",
            hint="write `column: type` in the declaration",
        )
    types = tuple(_OPEN_DECIMAL if t.is_open else t for t in declared)
    not_null = frozenset(range(relation.given)) - relation.nullable
    key = _key(declaration, not_null)
    unread = () if key is None else (column.name for column in declaration.unread)
    return FeedTable(name, names, types, key, not_null, frozenset(unread), relation.is_numbered)


def _key(declaration: Declaration, not_null: frozenset[int]) -> tuple[int, ...] | None:
    position = {name: i for i, name in enumerate(declaration.column_names)}
    candidates = [] if declaration.key is None else [declaration.key]
    candidates += declaration.unique
    for columns in candidates:
        found = tuple(position[name] for name in columns)
        if set(found) <= not_null:
            return found
    return None


class TableNames(Struct, frozen=True):
    """The relations that a feed may be of.

    Attributes:
        undeclared: base relations of which no feed can be read, for their columns or types are not declared.
        settings: which tables the warehouse file maps to which relation, and which are ignored.
        only: the relation that the whole feed is said to be of, if any.
    """

    relations: Mapping[str, FeedTable]
    settings: FeedSettings
    only: str | None = None
    undeclared: frozenset[str] = frozenset()

    def table(self, names: tuple[str, ...]) -> FeedTable | None:
        """The relation that a source table is.

        Names are given the fullest first; there are none if the event does not say it.

        Returns:
            The relation, or None for a table that is to be ignored.

        Raises:
            RecordError: SM102 a table that is neither; SM601 another relation's table, or no table said.
        """
        if not names:
            if self.only is not None:
                return self.relations[self.only]
            raise RecordError(
                Code.FEED_FORMAT,
                "an event that does not say its table",
                hint="give the feed as `RELATION=PATH`",
            )
        if not self.settings.ignored.isdisjoint(names):
            return None
        relation = next((self.settings.tables[n] for n in names if n in self.settings.tables), None)
        if relation is None:
            relation = names[-1] if names[-1] in {*self.relations, *self.undeclared} else None
        if relation is None:
            raise RecordError(
                Code.UNKNOWN_RELATION,
                f"the table `{names[0]}` is no base relation",
                hint=f'{near_miss(names[-1], self.relations, "base relation")}; say `"{names[0]}" = "RELATION"` '
                "in `[feed.tables]` of the warehouse file, or name it in `ignored` of `[feed]`",
            )
        if self.only is not None and relation != self.only:
            raise RecordError(
                Code.FEED_FORMAT,
                f"an event of `{relation}` (table `{names[0]}`) in the feed of `{self.only}`",
                hint="give a feed of several tables as `PATH`, without a relation",
            )
        if relation in self.undeclared:
            raise RecordError(
                Code.COLUMNS_DIFFER,
                f"the columns of `{relation}` or their types are not declared, so no change feed of it can be read",
                hint=f"add `.decl {relation}(column: type, ...) key(column, ...).` to the program",
            )
        return self.relations[relation]

    def shown(self, names: tuple[str, ...]) -> str:
        """The table's full name, unless the warehouse file says what it is."""
        return "" if not names or any(n in self.settings.tables for n in names) else names[0]
