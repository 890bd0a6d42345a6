"""Which base relation a source table is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from selfmaint.errors import Code
from selfmaint.feeds.changes import RecordError
from selfmaint.feeds.settings import FeedSettings
from selfmaint.feeds.table import FeedTable
from selfmaint.warehouse.near import near_miss


@dataclass(frozen=True, slots=True)
class TableNames:
    """The relations that a feed may be of.

    Attributes:
        relations: them, by name.
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

        Args:
            names: what the table may be called, the fullest name first; none if the event does not say it.

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
