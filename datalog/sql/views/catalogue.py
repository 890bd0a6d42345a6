"""The relations that SQL texts speak of: tables, views to be stored, and queries to be unfolded."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct, field
from sqlglot import exp

from datalog.diagnostics import Code, ContextSpan
from datalog.model import Column, Declaration, Span
from datalog.sql.views.near import near
from datalog.sql.views.query import Inlined, Stored
from datalog.sql.views.source import Problems, UnreadableError


class Named(Struct):
    """A view of a text.

    Attributes:
        parts: the parts of its name as written, the last one first.
        columns: the columns' names that are given with the name.
        stored: whether it is a view of the warehouse; else it is unfolded wherever it is read.
        text: its query as text.
        span: where its name stands.
        columns_found: its columns, once it has been read.
        failed: whether it cannot be read.
        names: the names of its columns all the same, where they are known.
        uses_unread: whether it uses a column that is not read.
    """

    name: str
    parts: tuple[str, ...]
    tree: exp.Expr
    columns: tuple[str, ...]
    stored: bool
    problems: Problems
    text: str
    span: Span | None = None
    columns_found: tuple[Column, ...] = ()
    failed: bool = False
    names: tuple[str, ...] | None = None
    uses_unread: bool = False


UNREAD = " is defined by SQL that cannot be read"
"""What follows from another error, of which it says nothing new."""


class Catalogue(Struct):
    """Finds relations by name, ignoring case; a qualified name also fits by its last parts.

    Attributes:
        declarations: base relations, by the parts of their names, last first.
        read: reads a view, and fills in `columns_found` or `failed`.
        reading: the views that are being read, outermost first.
        names: the names of them all, in lower case.
        unread: the names that are defined by what cannot be parsed, in lower case.
    """

    read: Callable[[Named], None]
    declarations: dict[tuple[str, ...], Declaration] = field(default_factory=dict)
    views: list[Named] = field(default_factory=list)
    reading: list[Named] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    unread: set[str] = field(default_factory=set)
    _views: dict[str, list[Named]] = field(default_factory=dict)
    _bases: dict[str, list[tuple[str, ...]]] = field(default_factory=dict)

    def declare(self, parts: tuple[str, ...], new: Declaration) -> None:
        """Adds a base relation."""
        mine = folded(parts)
        if mine not in self.declarations:
            self._bases.setdefault(mine[0], []).append(mine)
        self.declarations[mine] = new
        self.names.add(new.name.casefold())

    def replace(self, old: Declaration, new: Declaration) -> None:
        """Puts another declaration of a base relation in the place of one."""
        mine = next(parts for parts, one in self.declarations.items() if one is old)
        self.declarations[mine] = new

    def forget(self, table: Declaration) -> None:
        """Takes away a base relation: its rows are those of another one, under whose name they change."""
        mine = next(parts for parts, one in self.declarations.items() if one is table)
        del self.declarations[mine]
        self._bases[mine[0]].remove(mine)

    def declared(self, name: str) -> Declaration | None:
        """A base relation by the name that programs have for it."""
        return next((one for one in self.declarations.values() if one.name == name), None)

    def add(self, view: Named) -> None:
        """Adds a view."""
        self.views.append(view)
        self._views.setdefault(view.parts[0].casefold(), []).append(view)
        self.names.add(view.name.casefold())

    def called(self, parts: tuple[str, ...]) -> Named | Declaration | None:
        """The first relation of just this name."""
        mine = folded(parts)
        view = next((view for view in self._views.get(mine[0], ()) if folded(view.parts) == mine), None)
        return view or self.declarations.get(mine)

    def find(self, table: exp.Table, problems: Problems) -> Stored | Inlined:
        """What a name in FROM means; see `Relations`. Of a view that is kept these are its rows."""
        parts = folded(part.name for part in reversed(table.parts))
        views, bases = self.meant(parts)
        if len(views) + len(bases) > 1:
            raise problems.error(
                Code.SQL_AMBIGUOUS,
                f"`{'.'.join(reversed(parts))}` is the name of several relations",
                table,
                "which one?",
                hint="qualify it with its database",
            )
        if views:
            return self._view(views[0], table, problems)
        if bases:
            return Stored(bases[0].name, bases[0].columns, bases[0].unread)
        raise self.unknown(table, problems)

    def meant(self, parts: tuple[str, ...]) -> tuple[list[Named], list[Declaration]]:
        """The views and base relations that a name may mean; of several that fit, the one view that fits exactly.

        The parts of a name are given last first.
        """
        asked = folded(parts)
        views = [view for view in self._views.get(asked[0], ()) if fits(asked, view.parts)]
        bases = self._fitting(asked)
        exact = [view for view in views if folded(view.parts) == asked]
        return (exact, []) if len(views) + len(bases) > 1 and len(exact) == 1 else (views, bases)

    def _fitting(self, asked: tuple[str, ...]) -> list[Declaration]:
        return [self.declarations[known] for known in self._bases.get(asked[0], ()) if fits(asked, known)]

    def bases(self, parts: tuple[str, ...]) -> list[Declaration]:
        """The base relations that a name may mean; the one that is called just so, if several do."""
        asked = folded(parts)
        found = self._fitting(asked)
        return [self.declarations[asked]] if len(found) > 1 and asked in self.declarations else found

    def _view(self, view: Named, table: exp.Table, problems: Problems) -> Stored | Inlined:
        if view in self.reading:
            path = " -> ".join(f"`{one.name}`" for one in (*self.reading[self.reading.index(view) :], view))
            raise problems.error(
                Code.RECURSION, f"`{view.name}` depends on itself: {path}", table, "here it is read again"
            )
        self.read(view)
        if view.failed:
            raise problems.outside(
                f"a read of `{view.name}`, which cannot be analysed itself,",
                table,
                f"it is decided where the change of `{view.name}` is known; else read the tables below that",
            )
        stored = Stored(view.name, view.columns_found) if view.stored else None
        if stored is not None and view.problems.source.kept:
            return stored
        return Inlined(view.tree, view.columns, view.problems, {}, stored)

    def unknown(self, table: exp.Table, problems: Problems) -> UnreadableError:
        """Notes a name in FROM that means nothing."""
        if table.name.casefold() in self.unread:
            return problems.error(Code.SQL_SYNTAX, f"`{table.name}`{UNREAD}", table)
        known = [*(one.name for one in self.declarations.values()), *(view.name for view in self.views)]
        return problems.error(
            Code.UNKNOWN_RELATION,
            f"unknown table `{'.'.join(part.name for part in table.parts)}`",
            table,
            "neither declared nor a view",
            hint=near(table.name, known, "relation")
            or "declare its columns: `create table ... (column type, ...)` or `.decl`",
        )


def fits(asked: tuple[str, ...], known: Iterable[str]) -> bool:
    """Whether a name that is asked for means a known one; parts are last first, `asked` in lower case.

    A name with fewer parts means every one that ends so, and one with more parts any that is its end.
    """
    mine = folded(known)
    length = min(len(asked), len(mine))
    return asked[:length] == mine[:length]


def folded(parts: Iterable[str]) -> tuple[str, ...]:
    """The parts as Spark compares them."""
    return tuple(part.casefold() for part in parts)


def second(place: Span | None) -> tuple[ContextSpan, ...]:
    """The place of a first definition, to point at from a second one."""
    return () if place is None else (ContextSpan(place, "the first one"),)
