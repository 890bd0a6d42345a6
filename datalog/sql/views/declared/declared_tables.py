"""The tables that texts declare, with what later statements add to them or take away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct, field
from sqlglot import exp

from datalog.copies import replace
from datalog.diagnostics import Code, Diagnostic, Severity
from datalog.model import ANY, Column, Declaration, ForeignKey, Span, Unmodelled
from datalog.model.schema import UNKNOWN_HINT
from datalog.sql.dialect import SPARK
from datalog.sql.views.catalogue import Catalogue, fits, folded
from datalog.sql.views.declared.changed import altered, changing, plain, retyped, writes, writing
from datalog.sql.views.declared.column_types import column_of_text
from datalog.sql.views.declared.dumps import (
    altered_by_dropping,
    attached,
    inherited_by_altering,
    named_type,
    parts_of,
)
from datalog.sql.views.declared.statement import Defined, Kind, constrained, skipped
from datalog.sql.views.near import near
from datalog.sql.views.source import Problems, Statement


class DeclaredTables(Struct):
    """What statements behind one another say of tables.

    Attributes:
        catalogue: has the tables, behind those that were `given` before.
    """

    catalogue: Catalogue
    given: int
    _parents: list[tuple[str, ...]] = field(default_factory=list)
    _types: list[tuple[tuple[str, ...], str]] = field(default_factory=list)
    _partitions: list[tuple[str, ...]] = field(default_factory=list)
    _retyping: list[Statement] = field(default_factory=list)
    _altering: list[tuple[tuple[str, ...], Statement]] = field(default_factory=list)
    _writing: list[Statement] = field(default_factory=list)

    @property
    def every(self) -> tuple[Declaration, ...]:
        """The tables."""
        return tuple(self.catalogue.declarations.values())[self.given :]

    def take(self, statement: Statement, found: Defined, problems: Problems) -> None:
        """Takes what a statement says that defines no view and no table; a warning where that is nothing of keys."""
        if found.kind is Kind.CONSTRAINTS and isinstance(found.body, exp.Alter):
            table = self._meant(found.parts)
            if table is not None:
                self.catalogue.replace(table, constrained(table, found.body, problems))
                return
        text = plain(statement)
        if self._is_noted(statement, text):
            return
        if (change := changing(statement, self.catalogue)) is not None:
            problems.found.append(change)
            return
        if (parts := altered(text)) and not self.catalogue.bases(parts):
            self._altering.append((parts, statement))
        problems.found.append(skipped(statement))
        if found.kind is Kind.CHILD:
            tables = [one for its in statement.tree.find_all(exp.InheritsProperty) for one in its.expressions]
            self._parents += [tuple(part.name for part in reversed(one.parts)) for one in tables]
            self._doubt(", ".join(f"`{one.name}`" for one in tables), problems)
        elif both := inherited_by_altering(text):
            self._parents.append(both[0])
            self._partitions.append(both[1])  # its rows are its parent's, too
            self._doubt(f"`{both[0][0]}`", problems)
        elif parts := altered_by_dropping(text):
            doubted = [one for one in self.catalogue.bases(parts) if one in self.every]  # whichever is meant
            for table in doubted:
                self.catalogue.replace(table, _without_promises(table))
            if doubted:
                self._doubt(", ".join(f"`{one.name}`" for one in doubted), problems)

    def _is_noted(self, statement: Statement, text: str) -> bool:
        """Whether a statement says what is settled behind all of them, wherever they stand."""
        if made := named_type(text):
            self._types.append(made)
        elif partition := attached(text):
            self._partitions.append(partition)
        elif retyped(text):
            self._retyping.append(statement)
        elif writes(text):
            self._writing.append(statement)
        else:
            return False
        return True

    def _doubt(self, tables: str, problems: Problems) -> None:
        """Says of the last warning that keys are lost."""
        said = f"passed over, and no keys, foreign keys and NOT NULL of {tables} are believed"
        hint = "write CREATE TABLE with what holds of the table"
        problems.found[-1] = replace(problems.found[-1], label=said, hint=hint)

    def settle(self) -> Iterator[Diagnostic]:
        """To be called behind all statements: foreign keys reference what is declared; else it is said why not."""
        for parts in self._parents:
            for table in self.catalogue.bases(parts):
                self.catalogue.replace(table, _without_promises(table))
        for table in self.every:
            found = []
            for key in table.foreign_keys:
                parts = tuple(part.name for part in reversed(exp.to_table(key.target, dialect=SPARK).parts))
                targets = self.catalogue.bases(parts)
                if len(targets) > 1:
                    yield _several(parts, key.span)
                found.append(_references(key, parts, targets))
            self.catalogue.replace(table, replace(table, foreign_keys=tuple(found)))
        for parts in self._partitions:
            for table in self.catalogue.bases(parts):
                self.catalogue.forget(table)
        yield from self._settle_altered()
        for statement in self._retyping:
            yield from self._retype(statement)
        yield from self._leave_out_unread()
        yield from (writing(one, self.catalogue) or skipped(one) for one in self._writing)

    def _settle_altered(self) -> Iterator[Diagnostic]:
        """What is altered before it is defined: of several texts any may be the first."""
        for parts, statement in self._altering:
            if (change := changing(statement, self.catalogue)) is not None:
                yield change
            elif altered_by_dropping(plain(statement)):
                for table in self.catalogue.bases(parts):
                    self.catalogue.replace(table, _without_promises(table))

    def _retype(self, statement: Statement) -> Iterator[Diagnostic]:
        """Gives a column of a table another type; of a view that is an error, as any change of it."""
        parts, name, text = retyped(plain(statement)) or ((), "", "")
        views, bases = self.catalogue.meant(parts)
        if views or not bases:
            yield changing(statement, self.catalogue) or skipped(statement)
            return
        for table in bases:
            if name.casefold() not in map(str.casefold, table.column_names):
                message = f"`{table.name}` has no column `{name}`"
                hint = near(name, table.column_names, "column")
                yield Diagnostic(Code.SQL_UNKNOWN_COLUMN, message, statement.span, hint=hint)
            columns = (
                _with_type(c, text) if c.name.casefold() == name.casefold() else c for c in table.columns
            )
            self.catalogue.replace(table, replace(table, columns=tuple(columns)))

    def _leave_out_unread(self) -> Iterator[Diagnostic]:
        """Leaves out the columns whose types are not modelled, and the keys and foreign keys with one of them."""
        for table in [*self.catalogue.declarations.values()]:
            typed = replace(table, columns=tuple(map(self._of_named_type, table.columns)))
            read = typed.modelled()
            self.catalogue.replace(table, read)
            lost = () if read.key == table.key else table.key or ()
            for one in read.unread:
                kind = one.unmodelled
                if kind is not None and (one.name in lost or kind.hint == UNKNOWN_HINT):
                    what = f"column `{one.name}` of `{table.name}` is of type `{kind.text}`, and is not read"
                    label = "so the key is not used" if one.name in lost else "a type that is not known"
                    yield Diagnostic(
                        Code.SQL_NOT_READ, what, one.span, label, hint=kind.hint, severity=Severity.WARNING
                    )
        unread = {
            table.name: {one.name for one in table.unread} for table in self.catalogue.declarations.values()
        }
        for table in [*self.catalogue.declarations.values()]:
            keys = table.foreign_keys
            kept = tuple(key for key in keys if unread.get(key.target, set()).isdisjoint(key.target_columns))
            if kept != keys:
                self.catalogue.replace(table, replace(table, foreign_keys=kept))

    def _of_named_type(self, column: Column) -> Column:
        """A column of an enumeration as one of texts, and of a domain as of the type that it is made of."""
        kind = column.unmodelled
        if kind is None or kind.hint != UNKNOWN_HINT:
            return column
        types, text = list(self._types), kind.text
        while len(made := [one for one in types if fits(folded(parts_of(text)), one[0])]) == 1:
            types.remove(made[0])
            text = made[0][1]
        return _with_type(column, text)

    def _meant(self, parts: tuple[str, ...]) -> Declaration | None:
        """The one table of the texts that a name means."""
        views, bases = self.catalogue.meant(parts)
        is_one = len(bases) == 1 and not views and any(one is bases[0] for one in self.every)
        return bases[0] if is_one else None


def _with_type(column: Column, text: str) -> Column:
    its = column_of_text(column.name, text)
    unknown = Unmodelled(text, UNKNOWN_HINT) if its.type == ANY else None
    return replace(column, type=its.type, unmodelled=its.unmodelled or unknown)


def _without_promises(table: Declaration) -> Declaration:
    """A table of whose rows nothing is said."""
    columns = tuple(replace(one, not_null=False) for one in table.columns)
    return replace(table, columns=columns, key=None, unique=(), foreign_keys=())


def _several(parts: Sequence[str], place: Span | None) -> Diagnostic:
    message = f"`{'.'.join(reversed(parts))}` is the name of several relations"
    hint = "qualify it with its database"
    return Diagnostic(Code.SQL_AMBIGUOUS, message, place, "which one?", hint=hint)


def _references(key: ForeignKey, parts: Sequence[str], targets: Sequence[Declaration]) -> ForeignKey:
    """A foreign key with its target's name, as it is declared; without columns it references the primary key.

    What means no one relation keeps all parts of its name.
    """
    if len(targets) != 1:
        return replace(key, target=".".join(reversed(parts)))
    (target,) = targets
    spelt = {name.casefold(): name for name in target.column_names}
    columns = tuple(spelt.get(name.casefold(), name) for name in key.target_columns)
    return replace(key, target=target.name, target_columns=columns or target.key or ())
