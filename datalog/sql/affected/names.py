"""What names mean in a query whose shape is read: columns by number, ignoring case, as Spark finds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct, field
from sqlglot import exp

from datalog.copies import replace
from datalog.sql.affected.plan import column, number_of

Named = tuple[str, int]
"""A column's name in lower case, and its number."""


class UnknownShapeError(Exception):
    """Why a query's shape is not known."""


class Scope(Struct, frozen=True):
    """The sources of a FROM.

    Attributes:
        sources: their aliases, each with its columns.
        star: what `*` means.
        merged: columns that USING and NATURAL make one of.
        aliases: columns of the select list that may be used by name.
        aliases_first: whether a name may mean one of these where a source has it too, as in HAVING.
        added_up: the scope inside aggregates, where it is another one.
        around: the scope of the query around.
    """

    sources: tuple[tuple[str, tuple[Named, ...]], ...] = ()
    star: tuple[Named, ...] = ()
    merged: Mapping[str, int] = field(default_factory=dict)
    aliases: Mapping[str, exp.Expr] = field(default_factory=dict)
    aliases_first: bool = False
    added_up: Scope | None = None
    around: Scope | None = None

    def resolved(self, tree: exp.Column) -> exp.Expr:
        """What a column means.

        Raises:
            UnknownShapeError: it is not known, or may mean several things.
        """
        parts = [part.name.casefold() for part in tree.parts]
        if len(parts) > 2:  # noqa: PLR2004 - a table and a column
            raise UnknownShapeError(f"the name `{'.'.join(parts)}` has more parts than a table and a column")
        found = self._meaning(parts)
        if found is None:
            raise UnknownShapeError(f"it is not known what `{'.'.join(parts)}` means")
        return found

    def _meaning(self, parts: Sequence[str]) -> exp.Expr | None:
        *qualifier, name = parts
        if qualifier:
            numbers = [n for alias, its in self.sources if alias == qualifier[0] for k, n in its if k == name]
            known = any(alias == qualifier[0] for alias, _ in self.sources)
        else:
            known = False
            numbers = [n for _, its in self.sources for k, n in its if k == name]
            if name in self.merged:
                numbers = [self.merged[name]]
        alias = None if qualifier else self.aliases.get(name)
        if len(numbers) > 1:
            raise UnknownShapeError(f"`{name}` may mean several columns")
        if numbers:
            if self.aliases_first and alias is not None and number_of(alias) != numbers[0]:
                raise UnknownShapeError(f"`{name}` is a column and another one of the select list")
            return column(numbers[0])
        if alias is not None:
            return alias.copy()
        if known or self.around is None:
            return None
        # A subquery does not see the names of the select list around it.
        return replace(self.around, aliases={})._meaning(parts)

    def columns_of(self, alias: str) -> tuple[Named, ...]:
        """The columns of one source, for `t.*`."""
        found = [its for name, its in self.sources if name == alias]
        if len(found) != 1:
            raise UnknownShapeError(f"it is not known what `{alias}.*` means")
        return found[0]


def without_left_out(star: exp.Expr, every: Sequence[Named]) -> tuple[Named, ...]:
    """The columns that a `*` shows."""
    inside = star.this if isinstance(star, exp.Column) else star
    if any(inside.args.get(part) for part in ("replace", "rename")):
        raise UnknownShapeError("it changes columns of `*`")
    names = [name for name, _ in every]
    out = [one.sql().casefold() for one in inside.args.get("except_") or ()]
    if any(names.count(name) != 1 for name in out):
        raise UnknownShapeError("it leaves a column out of `*` that is not known")
    return tuple((name, number) for name, number in every if name not in out)
