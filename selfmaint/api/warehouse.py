"""A warehouse with its data, and an update of its base relations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Generic, Protocol, runtime_checkable

from datalog.budget import DEFAULT_S
from datalog.model import Predicate, Program, Version
from datalog.sql.views import SqlViews
from selfmaint.api.programs import catalog_of
from selfmaint.decide.procedure import Decision
from selfmaint.engine.protocol import D, Engine, Facts
from selfmaint.errors import Code, input_error
from selfmaint.fallback.settle import Readable
from selfmaint.feeds.report import FeedReport
from selfmaint.feeds.settings import FeedSettings
from selfmaint.warehouse.catalog import Catalog, View, with_inexact_sums
from selfmaint.warehouse.near import near_miss
from selfmaint.warehouse.situation import Situation


@runtime_checkable
class Closable(Protocol):
    """A source that holds a connection."""

    def close(self) -> None:
        """Ends the connection; another read would open a new one."""
        ...


@dataclass(frozen=True)
class Update(Generic[D]):
    """One update of the base relations, as a whole.

    Attributes:
        inserted: for each relation that gains rows, the rows; columns in declared order.
        deleted: for each relation that loses rows, the rows.
        effective: whether inserted rows were absent before and deleted rows present, as change data capture
            from a database guarantees.
        feed: where it comes from a change feed, how much was read, and up to which position.
        files: for each part that was read from files (a relation in the version `INSERTED` or `DELETED`), the path.
    """

    inserted: Mapping[str, D] = field(default_factory=dict)
    deleted: Mapping[str, D] = field(default_factory=dict)
    effective: bool = False
    feed: FeedReport | None = None
    files: Mapping[Predicate, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Warehouse(Generic[D]):
    """Materialized views over base relations that live elsewhere.

    Attributes:
        catalog: the views' definitions and the base relations' declarations.
        engine: where the data is, and what evaluates programs over it.
        contents: each view's rows before the update, columns in the order of its rule's head; of a view that keeps
            duplicates (`View.is_counted`) each row once, with its number of copies as a last column.
        present: partial copies: rows known to be in a base relation before the update.
        absent: partial copies: rows known not to be in a base relation before the update.
        readable: base relations that may be read, if need be; in the state right after the update.
        locations: where each view's contents are stored, for those that are files.
        copy_locations: the same for partial copies, by relation and `PRESENT` or `ABSENT`.
        effective: whether updates are effective unless they say otherwise.
        fingerprints: what the stored files looked like when they were loaded, so that nothing is written over
            what another process has written since.
        feeds: how change feeds of the base relations are to be read.
        budget_s: how many seconds the search for what a view depends on may take, and again its test on the data,
            unless a call says otherwise.
    """

    catalog: Catalog
    engine: Engine[D]
    contents: Mapping[str, D]
    present: Mapping[str, D] = field(default_factory=dict)
    absent: Mapping[str, D] = field(default_factory=dict)
    readable: Mapping[str, Readable[D]] = field(default_factory=dict)
    locations: Mapping[str, str] = field(default_factory=dict)
    copy_locations: Mapping[Predicate, str] = field(default_factory=dict)
    effective: bool = False
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    feeds: FeedSettings = field(default_factory=FeedSettings)
    budget_s: float = DEFAULT_S

    def __enter__(self) -> Warehouse[D]:
        """The warehouse; at the end of the block it is closed."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes the warehouse, whatever happened."""
        self.close()

    def close(self) -> None:
        """Ends the connections of the sources, and lets go of what the engine holds for this warehouse.

        Results that the engine keeps are gone then: write or count deltas before.
        """
        self.decision.forget()
        self.engine.release()
        for source in {id(entry.source): entry.source for entry in self.readable.values()}.values():
            if isinstance(source, Closable):
                source.close()

    def __post_init__(self) -> None:
        missing = [view.name for view in self.catalog.views if view.name not in self.contents]
        if missing:
            raise input_error(
                Code.MISSING_CONTENTS,
                f"the contents of {', '.join(f'`{name}`' for name in missing)} are not given",
                hint="the decision needs the stored rows of every view of the program",
            )
        require_known(self.contents, [view.name for view in self.catalog.views], "view")
        for names in (self.present, self.absent, self.readable):
            require_known(names, self.catalog.relations, "base relation")

    @cached_property
    def decision(self) -> Decision:
        """The symbolic side of deciding, made once."""
        return Decision(self.catalog, self.budget_s)

    def decision_within(self, budget_s: float | None) -> Decision:
        """The same, from now on with a budget; the warehouse's if None.

        Raises:
            InputError: SM101 a budget that is not positive.
        """
        seconds = self.budget_s if budget_s is None else budget_s
        if not seconds > 0:
            hint = "give a number of seconds, or `math.inf`"
            raise input_error(Code.WAREHOUSE_FILE, f"`budget_s` is {seconds}", hint)
        self.decision.budget_s = seconds
        return self.decision

    def view(self, name: str) -> View:
        """A view by name.

        Raises:
            InputError: SM102 no such view.
        """
        require_known([name], [view.name for view in self.catalog.views], "view")
        return self.catalog.view(name)

    def given(self, update: Update[D]) -> tuple[Facts[D], Situation]:
        """Everything that is known, as facts, and the kinds of it; parts of the update without rows are left out.

        Raises:
            InputError: SM102 the update changes something that is no base relation.
        """
        changes: dict[Predicate, D] = {}
        for version, part in ((Version.INSERTED, update.inserted), (Version.DELETED, update.deleted)):
            require_known(part, self.catalog.relations, "base relation")
            changes.update({Predicate(n, version): self.engine.keep(rows) for n, rows in part.items()})
        filled = self.engine.nonempty(Program(), tuple(changes), Facts(changes)) if changes else frozenset()
        small = {p: rows for p, rows in changes.items() if p in filled}
        copies = {Predicate(n, Version.PRESENT): rows for n, rows in self.present.items()}
        copies |= {Predicate(n, Version.ABSENT): rows for n, rows in self.absent.items()}
        stored = {self.catalog.view(name).predicate: rows for name, rows in self.contents.items()}
        facts = Facts({**stored, **copies}, self._not_null([*copies, *small])).extended(small)
        return facts, Situation.of([*copies, *small], effective=update.effective)

    def _not_null(self, predicates: Iterable[Predicate]) -> dict[Predicate, frozenset[int]]:
        columns = {view.predicate: self.catalog.not_null(view) for view in self.catalog.views}
        for predicate in predicates:
            relation = self.catalog.relations[predicate.name]
            columns[predicate] = frozenset(range(relation.arity)) - relation.nullable
        return columns


def require_known(names: Iterable[str], known: Iterable[str], kind: str) -> None:
    """Refuses names that are not known.

    Raises:
        InputError: SM102, with near misses.
    """
    allowed = list(known)
    for name in names:
        if name not in allowed:
            raise input_error(
                Code.UNKNOWN_RELATION,
                f"`{name}` is no {kind} of this warehouse",
                hint=near_miss(name, allowed, kind),
            )


def build(
    program: str | Program | SqlViews,
    contents: Mapping[str, D],
    engine: Engine[D],
    *,
    present: Mapping[str, D] | None = None,
    absent: Mapping[str, D] | None = None,
    readable: Mapping[str, Readable[D]] | None = None,
    inexact_sums: bool = False,
) -> Warehouse[D]:
    """A warehouse from rules and relations that are at hand.

    Args:
        program: view rules and declarations, or SQL, as text or parsed.
        contents: for each view its rows; of a view that keeps duplicates each row once, its number of copies last.
        engine: evaluates programs over relations of this kind.
        present: partial copies of base relations, rows known to be there.
        absent: rows known not to be there.
        readable: base relations that may be read if need be.
        inexact_sums: whether sums of doubles are maintained, though recomputing may give other last digits.

    Raises:
        ProgramError: the program is not valid.
        InputError: SM102 a name that is no view or base relation; SM103 a view without contents.
    """
    schema = with_inexact_sums(catalog_of(program)) if inexact_sums else catalog_of(program)
    return Warehouse(schema, engine, contents, present or {}, absent or {}, readable or {})
