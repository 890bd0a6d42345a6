"""What `maintain` gives: verdicts, changes, and what was read for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Generic

from selfmaint.api.following.moved import Moved
from selfmaint.api.following.over_views import is_over_views
from selfmaint.api.update import Update
from selfmaint.api.verify import Difference, Verified
from selfmaint.canonical import copied
from selfmaint.decide.verdict import SelfMaintainable, Verdicts, html_table
from selfmaint.engine.protocol import D
from selfmaint.fallback.keyed_rows import KeyedDelta
from selfmaint.fallback.recompute import reads
from selfmaint.maintain import Delta
from selfmaint.sources.protocol import Read
from selfmaint.warehouse.catalog import Catalog


@dataclass(frozen=True, repr=False)
class Maintained(Generic[D]):
    """What `maintain` found.

    Attributes:
        verdicts: the verdict on each view before any base row was read.
        reads: every read of a base relation, in order.
        deltas: each view's change; of a view that keeps duplicates as counted rows, the number of copies gained or
            lost last.
        helpers: the same of the hidden views that others are computed from.
        verified: what recomputing the views from their sources shows; None if not asked for.
        update: the update, which partial copies follow as well.
        recomputed: the new contents of the views that were recomputed from their sources; their deltas count
            equal rows.
        before: the views' contents that the deltas are of.
        moved: what the definitions say now, where that is something else than what the contents before are of.
        by: the catalog by which views were followed that are not decided: some are queries over stored views there.
        keyed: the views that were followed by reading the base rows of the keys that the change affects; their deltas
            count equal rows.
    """

    verdicts: Verdicts
    reads: tuple[Read, ...]
    deltas: Mapping[str, Delta[D]]
    verified: Verified | None
    update: Update[D]
    recomputed: Mapping[str, D] = field(default_factory=dict)
    before: Mapping[str, D] = field(default_factory=dict)
    keyed: Mapping[str, KeyedDelta[D]] = field(default_factory=dict)
    moved: Moved | None = None
    helpers: Mapping[str, Delta[D]] = field(default_factory=dict)
    by: Catalog | None = field(default=None, repr=False)

    @property
    def every(self) -> Mapping[str, Delta[D]]:
        """The changes of all that is stored, hidden or not."""
        return {**self.deltas, **self.helpers}

    @property
    def differences(self) -> tuple[Difference, ...] | None:
        """What recomputing the views from their sources shows to be different; None if not asked for."""
        return None if self.verified is None else self.verified.differences

    @property
    def sources_before(self) -> list[str]:
        """The base relations whose sources were right before the update, which was added to what they gave."""
        again = () if self.verified is None else self.verified.reads
        return sorted({one.relation for one in (*self.reads, *again) if one.is_before})

    @property
    def unverified(self) -> list[str]:
        """The views that were recomputed from their sources, which is not done again, or that have several results."""
        again = of_sources(self.recomputed, self.by) if self.by else list(self.recomputed)
        return [*again, *(() if self.verified is None else self.verified.several)]

    def how(self, name: str) -> str:
        """How a view's change was found.

        `decided exactly` or `decided soundly`, `settled by reads` of base rows, `keyed reads`, `added up` from the rows
        that groups gain and lose, `from its helper`, `from other views` or the tables that they tell, or `recomputed`
        from the sources.
        """
        verdict = self.verdicts.get(name, True)
        is_followed = name in self.keyed or name in self.recomputed
        if self.by is not None and is_followed and is_above(self.by, name, self.keyed):
            return "from its helper" if name in self.by.helpers.values() else "from other views"
        if name in self.keyed:
            return "keyed reads" if self.keyed[name].of is None else "added up"
        if name in self.recomputed:
            return "recomputed"
        if not verdict:
            return "settled by reads"
        is_exact = isinstance(verdict, SelfMaintainable) and verdict.exact
        return "decided exactly" if is_exact else "decided soundly"

    def __repr__(self) -> str:
        return f"Maintained({', '.join(self.deltas)}; {len(self.reads)} reads)"

    def __str__(self) -> str:
        """How each view's change was found, and what is to be known of the sources."""
        width = max((len(name) for name in self.deltas), default=0)
        return "\n".join([*(f"{n:<{width}}  {self.how(n)}" for n in self.deltas), *self._remarks()])

    def _repr_html_(self) -> str:
        """The same for a notebook."""
        lines = "".join(f"<p>{escape(line)}</p>" for line in self._remarks())
        return html_table(("view", "change"), [(name, self.how(name)) for name in self.deltas]) + lines

    def _remarks(self) -> Iterator[str]:
        read = dict.fromkeys(one.relation for one in self.reads)
        if read:
            yield f"read of base relations: {', '.join(f'`{name}`' for name in read)}"
        if self.sources_before:
            yield nothing_of_it(self.sources_before)
        if self.differences:
            named = ", ".join(f"`{one.view}`" for one in self.differences)
            yield f"recomputing gives other rows of {named}: see `differences`"
        elif self.verified is not None:
            but = ", ".join(f"`{name}`" for name in self.unverified)
            yield f"verified: recomputing gives the same rows{f' of all views but {but}' if but else ''}"


def nothing_of_it(names: Iterable[str]) -> str:
    """That the sources of some base relations turned out to be right before the update, in words."""
    named = ", ".join(f"`{name}`" for name in names)
    return f"nothing of the update is in the source of {named}: it was added to what that gave"


def of_sources(recomputed: Iterable[str], by: Catalog) -> list[str]:
    """Of views that were recomputed those that were so from their sources alone, or may have several results."""
    return [name for name in recomputed if not is_over_views(by, by.view(name))]


def is_above(catalog: Catalog, name: str, keyed: Iterable[str]) -> bool:
    """Whether a view that was followed or recomputed was so from other views, or the tables that these tell, alone."""
    bases = catalog.relations.keys() & set(reads(catalog, catalog.view(name)))
    if name in keyed:
        return not bases
    return not bases - set(copied(catalog.apart)) or name in catalog.helpers.values()
