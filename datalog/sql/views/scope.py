"""What names mean in a query: the sources of its FROM and their columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import TypeAlias

from msgspec import Struct, field
from sqlglot import exp

from datalog.analysis.expression_types import expression_type
from datalog.diagnostics import Code
from datalog.model import (
    ANY,
    Atom,
    Cast,
    ColumnType,
    Condition,
    Expression,
    Literal,
    Term,
    Variable,
    aggregates_of,
    apply_literal,
    map_condition,
    map_expression,
)
from datalog.sql.names import identifier
from datalog.sql.views.near import near
from datalog.sql.views.source import Problems


class Variables(Struct):
    """Makes a block's variables, named after their columns, and knows their types and which have a number."""

    types: dict[Variable, ColumnType] = field(default_factory=dict)
    numbered: set[Variable] = field(default_factory=set)
    _taken: set[str] = field(default_factory=set)

    def fresh(self, column: str, column_type: ColumnType) -> Variable:
        """A new variable for a column."""
        plain = identifier(column)
        stem = plain[:1].upper() + plain[1:]
        names = (stem if n == 1 else f"{stem}_{n}" for n in count(1))
        name = next(name for name in names if name not in self._taken)
        if name != stem:
            self.numbered.add(Variable(name))
        self._taken.add(name)
        variable = Variable(name)
        self.types[variable] = column_type
        return variable

    def type_of(self, expression: Expression) -> ColumnType | None:
        """An expression's type; None for null."""
        return expression_type(expression, self.types)

    def are_one_where_equal(self, left: Variable, right: Variable) -> bool:
        """Whether equal values of two columns are one value: of one declared type, not -0.0 and 0.0."""
        kind = self.types.get(left)
        if kind is None or kind != self.types.get(right):
            return False
        return not (kind.is_open or kind.name.is_floating)


Meaning: TypeAlias = tuple[Expression, ColumnType | None]
"""What a name stands for, and its type if that is not the one of what it is: a null's, or a narrower number's."""
Typed: TypeAlias = tuple[str, Meaning]
"""A column: its name, and what it is."""


class Source(Struct, frozen=True):
    """One table, view or subquery of a FROM.

    Attributes:
        alias: the parts of the name by which its columns are qualified, the last one first.
        columns: its columns' names with what they are, in order.
        types: their types, where these are not those of what they are; none, or one a column.
        unread: names of further columns, which the query uses at most to leave them out; in lower case.
    """

    alias: tuple[str, ...]
    columns: tuple[tuple[str, Expression], ...]
    types: tuple[ColumnType | None, ...] = ()
    unread: frozenset[str] = frozenset()

    def fits(self, qualifier: Sequence[str]) -> bool:
        """Whether `qualifier`, its last part first, means this source."""
        mine = tuple(part.casefold() for part in self.alias[: len(qualifier)])
        return mine == tuple(part.casefold() for part in qualifier)

    def typed_columns(self) -> Iterator[Typed]:
        """Its columns, each with its type if that is not the one of what it is."""
        types = self.types or (None,) * len(self.columns)
        return ((name, (what, kind)) for (name, what), kind in zip(self.columns, types, strict=True))

    def named(self, name: str) -> list[Meaning]:
        """The columns of that name; Spark ignores case."""
        return [meaning for column, meaning in self.typed_columns() if column.casefold() == name.casefold()]


class Scope(Struct, frozen=True):
    """The sources that a query's names may refer to.

    Attributes:
        sources: those of its FROM.
        merged: columns that USING and NATURAL make one of, by case-folded name.
        aliases: columns of the select list that may be used by name, by case-folded name.
        aliases_first: whether those go before columns of the sources, as in HAVING.
        around: what the names of the query around mean, in a subquery: those that it has not.
    """

    sources: tuple[Source, ...] = ()
    merged: Mapping[str, Typed] = field(default_factory=dict)
    aliases: Mapping[str, Meaning] = field(default_factory=dict)
    aliases_first: bool = False
    around: Scope | None = None

    def resolve(self, column: exp.Column, problems: Problems) -> Expression:
        """What a column stands for.

        Raises:
            UnreadableError: DL101, DL403 or DL404.
        """
        what, _ = self.meaning(column, problems)
        return what

    def typed(self, column: exp.Column, problems: Problems) -> Expression:
        """The same as part of an expression, whose type depends on the column's.

        Raises:
            UnreadableError: DL101, DL403 or DL404.
        """
        what, kind = self.meaning(column, problems)
        return what if kind is None else Cast(what, kind, problems.source.span_of(column))

    def meaning(self, column: exp.Column, problems: Problems) -> Meaning:
        """What a column stands for, and its type if that is another.

        Raises:
            UnreadableError: DL101, DL403 or DL404.
        """
        qualifier = [part.name for part in reversed(column.parts[:-1])]
        name = column.name
        if qualifier:
            return self._qualified(column, name, qualifier, problems)
        folded = name.casefold()
        if self.aliases_first and folded in self.aliases:
            return self.aliases[folded]
        if folded in self.merged:
            return self.merged[folded][1]
        found = [what for source in self.sources for what in source.named(name)]
        if not found and folded in self.aliases:
            return self.aliases[folded]
        if not found and self.around is not None and self.around.knows(name):
            return self.around.meaning(column, problems)
        return self._only(found, column, name, problems)

    def outwards(self) -> Iterator[Scope]:
        """It and those around it, the innermost first."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.around

    def knows(self, name: str) -> bool:
        """Whether a name without a table means something here or further out."""
        folded = name.casefold()
        return any(
            folded in scope.merged or folded in scope.aliases or any(one.named(name) for one in scope.sources)
            for scope in self.outwards()
        )

    def _qualified(
        self, column: exp.Column, name: str, qualifier: Sequence[str], problems: Problems
    ) -> Meaning:
        sources = [source for source in self.sources if source.fits(qualifier)]
        shown = ".".join(reversed(qualifier))
        every = [source for scope in self.outwards() for source in scope.sources]
        if not sources and self.around is not None and any(source.fits(qualifier) for source in every):
            return self.around.meaning(column, problems)
        if not sources:
            known = [source.alias[0] for source in every if source.alias]
            raise problems.error(
                Code.UNKNOWN_RELATION,
                f"no table `{shown}` in this query's FROM",
                column,
                "not in FROM",
                hint=near(shown, known, "table") or _listed("its tables are", known),
            )
        if len(sources) > 1:
            raise problems.error(
                Code.SQL_AMBIGUOUS,
                f"`{shown}` is the name of {len(sources)} tables in this query",
                column,
                "which one?",
                hint="give each of them an alias of its own",
            )
        return self._only(sources[0].named(name), column, name, problems, sources)

    def _only(
        self,
        found: list[Meaning],
        column: exp.Column,
        name: str,
        problems: Problems,
        sources: Sequence[Source] = (),
    ) -> Meaning:
        among = sources or self.sources
        if not found:
            known = [n for source in among for n, _ in source.columns]
            if not sources:
                known += [n for scope in self.outwards() if scope is not self for n, _ in scope.star()]
            where = f"`{among[0].alias[0]}`" if len(among) == 1 and among[0].alias else "this query's tables"
            raise problems.error(
                Code.SQL_UNKNOWN_COLUMN,
                f"unknown column `{name}`",
                column,
                f"{where} has no such column" if len(among) == 1 else "no table in FROM has it",
                hint=near(name, known, "column") or _listed("there are", known),
            )
        if len(found) > 1:
            owners = [source.alias[0] for source in among if source.alias and source.named(name)]
            raise problems.error(
                Code.SQL_AMBIGUOUS,
                f"column `{name}` is ambiguous",
                column,
                f"{len(found)} tables have one",
                hint=_listed("say which:", [f"{owner}.{name}" for owner in owners]),
            )
        return found[0]

    def keeps_order(self, qualifier: Sequence[str]) -> bool:
        """Whether the columns of `t.*` stand as in `t`: those that joins made one of come first anyway."""
        names = [n.casefold() for s in self.sources if s.fits(qualifier) for n, _ in s.columns]
        merged = [name for name in self.merged if name in names]
        return names[: len(merged)] == merged

    def star(self, qualifier: Sequence[str] = ()) -> Iterator[tuple[str, Expression]]:
        """The columns that `*`, or `t.*`, stands for: merged ones first."""
        return ((name, what) for name, (what, _) in self.typed_star(qualifier))

    def typed_star(self, qualifier: Sequence[str] = ()) -> Iterator[Typed]:
        """The same with their types where these are others."""
        if not qualifier:
            yield from self.merged.values()
        for source in self.sources:
            if qualifier and not source.fits(qualifier):
                continue
            for name, meaning in source.typed_columns():
                if qualifier or name.casefold() not in self.merged:
                    yield name, meaning


def family(column_type: ColumnType | None) -> str:
    """What a type compares with; `any` where nothing is known, and for null."""
    return (column_type or ANY).family


def _listed(before: str, names: Sequence[str]) -> str | None:
    if not names:
        return None
    shown = ", ".join(f"`{name}`" for name in names[:8])
    return f"{before} {shown}{', ...' if len(names) > 8 else ''}"  # noqa: PLR2004 - as many as a line holds


class Draft(Struct, frozen=True):
    """A block that is not named yet.

    Attributes:
        body: atoms, comparisons and null tests.
        outputs: what the columns are.
        filters: conditions that are no literals.
        groups: grouping expressions; None without grouping.
    """

    body: tuple[Literal, ...] = ()
    outputs: tuple[Expression, ...] = ()
    filters: tuple[Condition, ...] = ()
    groups: tuple[Expression, ...] | None = None
    having: tuple[Condition, ...] = ()

    def substituted(self, substitution: Mapping[Variable, Term]) -> Draft:
        """The draft with variables replaced everywhere."""

        def change(value: Expression) -> Expression | None:
            return substitution.get(value) if isinstance(value, Variable) else None

        return Draft(
            tuple(apply_literal(substitution, literal) for literal in self.body),
            tuple(map_expression(change, output) for output in self.outputs),
            tuple(map_condition(change, one) for one in self.filters),
            None if self.groups is None else tuple(map_expression(change, one) for one in self.groups),
            tuple(map_condition(change, one) for one in self.having),
        )


class Query(Struct, frozen=True):
    """A query that was read.

    Attributes:
        columns: the names of its columns.
        drafts: the blocks whose rows are added up.
        distinct: whether equal rows then stand once.
        types: those of its columns, as Spark has them; None of what is always null.
    """

    columns: tuple[str, ...]
    drafts: tuple[Draft, ...]
    distinct: bool = False
    types: tuple[ColumnType | None, ...] = ()

    @property
    def reads(self) -> frozenset[str]:
        """The names of the relations whose rows it reads."""
        bodies = (literal for draft in self.drafts for literal in draft.body)
        return frozenset(literal.predicate.name for literal in bodies if isinstance(literal, Atom))

    @property
    def counts_once(self) -> bool:
        """Whether an aggregate takes equal values once."""
        return any(
            one.distinct for draft in self.drafts for one in aggregates_of([*draft.outputs, *draft.having])
        )
