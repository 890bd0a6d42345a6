"""The views brought up to date with a server's log, transaction after transaction.

What is promised rests on four things:

1. A batch is whole transactions, the next ones in the order of their commits. Its end is stored in the store's one
   transaction that changes the views, and is where the next batch begins: a crash neither skips one nor repeats one.
2. The slot is moved after that commit, never before: what the views do not have yet stays in the log.
3. A base row that must be read is read in one snapshot. What that shows beyond the batch is undone, by transaction:
   the log is read up to where it ended after the snapshot was taken, and the snapshot says which of these it shows.
4. A snapshot that does not show all of the batch yet is not read from: the log may be ahead of what readers see.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep, time
from typing import TYPE_CHECKING, Generic, cast

from datalog.copies import replace
from datalog.sql import changes as sql
from selfmaint.api.apply import Written
from selfmaint.api.file.warehouse_file import WarehouseFile
from selfmaint.api.log.log_events import (
    OTHER_TABLE,
    OTHER_TYPES,
    REWRITTEN,
    Choice,
    LogEvents,
    Tally,
    changed_table,
)
from selfmaint.api.log.log_source import followed_tables
from selfmaint.api.maintained import Maintained
from selfmaint.api.platforms.platform import platform_of
from selfmaint.api.stores.store import commit_changes
from selfmaint.api.stores.store_upkeep import compact_if_due
from selfmaint.api.update import Update
from selfmaint.api.warehouse import Warehouse
from selfmaint.engine.protocol import D
from selfmaint.errors import Code, PassingError, SourceError, input_error
from selfmaint.fallback.settle import Readable
from selfmaint.feeds.changes import FeedReport, RelationReport
from selfmaint.feeds.condense import Changes, Condensed, condensed
from selfmaint.feeds.spilled import spilled
from selfmaint.feeds.table import feed_table
from selfmaint.postgres.connection import TIMEOUT_S
from selfmaint.postgres.log import LogState, ServerLog, log_error
from selfmaint.postgres.pgoutput import Begin
from selfmaint.postgres.published import LoggedTable, is_rewritten
from selfmaint.sources.rewound import ClosableSource, Later, RewoundSource
from selfmaint.store.log_position import LogPosition, Snapshot, lsn_text

if TYPE_CHECKING:
    from selfmaint.cross_examine.examine import CrossExamination, Examined
    from selfmaint.sources.protocol import Read

BATCH_TRANSACTIONS = 1_000
"""How many transactions are maintained at a time, unless it is said otherwise."""
BATCH_MESSAGES = 200_000
"""After so many changed rows, and what goes with them, a batch takes no further transaction."""
IDLE_BYTES = 16 * 2**20
"""After so much log that changes no base relation the position is moved on, for the server to let go of it."""


@dataclass(frozen=True)
class Followed:
    """What one step came to.

    Attributes:
        position: every transaction that committed before it is in the views.
        transactions: how many transactions the step took.
        changes: how many changed rows these have.
        lag_bytes: how much log there was behind the position when the step began and the batch was taken.
        is_drained: whether nothing was left that could be taken.
        snapshot: the store's snapshot.
        written: what changed.
        reads: every read of a base relation.
        lag_s: how many seconds after it committed, by the server's clock, the last transaction was in the views.
        examined: by view what a cross-examination of its verdict found, where one was asked for.
    """

    position: str
    transactions: int
    changes: int
    lag_bytes: int
    is_drained: bool
    snapshot: int
    written: tuple[Written, ...] = ()
    reads: tuple[Read, ...] = ()
    lag_s: float | None = None
    examined: Mapping[str, Examined] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FollowOptions:
    """How a log is followed.

    Attributes:
        transactions: how many transactions are maintained at a time, at most.
        strict: never read a base relation.
        recompute: recompute from its sources what is not decided otherwise.
        verify: recompute every view from its sources and compare, before each commit.
        budget_s: how many seconds a search may take for one view; by default as the warehouse says.
        cross_examine: as in `maintain`; a contradiction is a warning (SM801), and its view is followed another way.
        progress: told of each step.
    """

    transactions: int = BATCH_TRANSACTIONS
    strict: bool = False
    recompute: bool = False
    verify: bool = False
    budget_s: float | None = None
    cross_examine: bool | CrossExamination = False
    progress: Callable[[str], None] = lambda _message: None


class Follower(Generic[D]):
    """Follows a log with an open warehouse. After an error it is not used any more."""

    def __init__(
        self, file: WarehouseFile, warehouse: Warehouse[D], log: ServerLog, options: FollowOptions
    ) -> None:
        """Looks at where the views are, and at what the log says.

        Raises:
            InputError: SM101 no store; SM608 the views are at no place of a log, or of another.
            SourceError: what cannot be followed.
        """
        self._file, self._warehouse, self._log, self._options = file, warehouse, log, options
        self.position = self._stored_position()
        self._relations = {name: feed_table(file.catalog, name) for name in warehouse.catalog.relations}
        self._tables = self._same_tables()
        self._needed: frozenset[int] = frozenset()
        source = next(iter(warehouse.readable.values())).source
        twins = [name for name, one in warehouse.catalog.relations.items() if one.is_numbered]
        self._source = RewoundSource(
            cast("ClosableSource[D]", source), warehouse.engine, self._later_than, twins
        )
        warehouse.readable = {
            name: Readable(self._source, one.cost, is_after=True) for name, one in warehouse.readable.items()
        }

    @property
    def is_outdated(self) -> bool:
        """Whether the store has another state than the one that is open: another process has written to it."""
        open_ = self._warehouse.store
        return open_ is not None and open_.store.catalog.newest() != open_.version

    def step(self) -> Followed:
        """Takes the next transactions: all views follow them, then the slot does.

        Raises:
            see `follow`.
        """
        state = self._log.state()
        self._require_followable(state)
        if state.confirmed < self.position.lsn:  # it died before it moved the slot
            self._log.advance(self.position.lsn)
        idle_end = state.end if state.is_flushed else None
        if idle_end is None and state.end - self.position.lsn >= IDLE_BYTES:
            idle_end = self._log.flushed()
        self._source.close()
        with tempfile.TemporaryDirectory(prefix="selfmaint-log-") as folder:
            tally = Tally()
            found = self._net_effect(self._batch, tally, BATCH_MESSAGES, Path(folder))
            is_drained = not tally.is_stopped and tally.messages < BATCH_MESSAGES
            self._same_tables()  # now: what is committed below is from before this look
            if tally.end is None:
                return self._idle(idle_end, state)
            written, maintained = self._committed(found, tally)
        lag_s = None if tally.time_s is None else time() - tally.time_s
        self._log.advance(self.position.lsn)
        lag = max(0, state.end - self.position.lsn)
        open_ = self._warehouse.store
        assert open_ is not None
        compact_if_due(open_, self._options.progress)
        return Followed(
            lsn_text(self.position.lsn),
            tally.transactions,
            tally.changes,
            lag,
            is_drained,
            open_.version,
            written,
            () if maintained is None else maintained.reads,
            lag_s,
            {} if maintained is None else maintained.verdicts.examined,
        )

    # ------------------------------------------------------------------------------------- what is checked

    def _stored_position(self) -> LogPosition:
        open_ = self._warehouse.store
        if open_ is None:
            raise input_error(Code.WAREHOUSE_FILE, f"`{self._file.path}` keeps its views in no store")
        open_.store.require_writable()
        found = open_.log_position()
        if found is None:
            message = "nothing says at which place of the log the views are"
            hint = "bring them in anew: `selfmaint import WAREHOUSE.toml`"
            raise input_error(
                Code.LOG, message, hint, "they were made before `[follow]` was in the warehouse file"
            )
        if found.slot != self._log.slot:
            message = f"the views follow the slot `{found.slot}`, and `[follow]` names `{self._log.slot}`"
            raise input_error(Code.LOG, message, "name it, or bring all views in anew: `selfmaint import`")
        return found

    def _require_followable(self, state: LogState) -> None:
        """Refuses a slot that does not have what comes after the views."""
        at, hint = self.position.lsn, "bring all views in anew: `selfmaint import WAREHOUSE.toml`"
        shown = f"the views are at {lsn_text(at)}"
        slot = f"the slot `{self._log.slot}` of the source `{self._log.source}`"
        if state.system != self.position.system:
            raise log_error(f"the source `{self._log.source}` is another server than the views follow", hint)
        if state.end < at:
            message = f"the log of the source `{self._log.source}` ends at {lsn_text(state.end)}, and {shown}"
            raise log_error(message, hint, "the server was put back to an earlier state")
        if state.confirmed > at:
            message = f"{slot} has let go of the log before {lsn_text(state.confirmed)}, and {shown}"
            note = (
                "another reader has moved it, it was made anew, or the store was put back to an earlier state"
            )
            raise log_error(message, hint, note)

    def _same_tables(self) -> list[LoggedTable]:
        """The base relations' tables, which must be those that the views were made of."""
        found = followed_tables(self._file, self._log)
        tables, shapes = self.position.tables, self.position.shapes
        wrong = []
        for one in found:
            name, known = one.relation, tables.get(one.relation, one.mark)
            if one.mark != known:
                is_other = known.split()[0] != str(one.oid)
                wrong.append(changed_table(name, OTHER_TABLE if is_other else OTHER_TYPES))
            elif is_rewritten(shapes.get(name, one.shape), one.shape):
                wrong.append(changed_table(name, REWRITTEN))
        if wrong:
            raise SourceError(wrong)
        self.position = replace(self.position, shapes={one.relation: one.shape for one in found})
        return found

    # ---------------------------------------------------------------------------------------- what is done

    def _idle(self, end: int | None, state: LogState) -> Followed:
        """Nothing was there: what does not concern the views is let go of now and then."""
        if end is not None and end - self.position.lsn >= IDLE_BYTES:
            self._commit_position(self.position.after(end, self.position.unseen))
            self._log.advance(end)
        open_ = self._warehouse.store
        assert open_ is not None
        lag = max(0, state.end - self.position.lsn)
        return Followed(lsn_text(self.position.lsn), 0, 0, lag, True, open_.version)

    def _commit_position(self, position: LogPosition) -> None:
        commit_changes(self._warehouse, {}, Update(log=position))
        self.position = position

    def _committed(
        self, found: Mapping[str, Condensed[D]], tally: Tally
    ) -> tuple[tuple[Written, ...], Maintained[D] | None]:
        """Maintains all views, and commits them with the position; None where nothing changes."""
        assert tally.end is not None
        warehouse, options, engine = self._warehouse, self._options, self._warehouse.engine
        snapshot = self._log.snapshot()
        self._needed = frozenset([*self.position.unseen, *map(snapshot.whole, tally.xids)])
        unseen = [xid for xid in self._needed if not snapshot.shows(xid)]
        position = self.position.after(tally.end, unseen)
        reports = [
            RelationReport(
                name,
                one.events,
                one.repeated,
                engine.count(one.deleted),
                engine.count(one.inserted),
                lsn_text(position.lsn),
                self._relations[name].key is not None,
            )
            for name, one in found.items()
        ]
        if not any(report.deleted or report.inserted for report in reports):
            self._commit_position(position)
            return (), None
        report = FeedReport(tuple(reports))
        update = Update(
            {name: one.inserted for name, one in found.items()},
            {name: one.deleted for name, one in found.items()},
            report.has_keys or warehouse.effective,
            report,
            log=position,
        )
        self.position = position  # what a read undoes is behind it
        maintained = warehouse.maintain(
            update,
            strict=options.strict,
            recompute=options.recompute,
            verify=options.verify,
            budget_s=options.budget_s,
            cross_examine=options.cross_examine,
            progress=options.progress,
        )
        if maintained.differences:
            names = ", ".join(f"`{one.view}`" for one in maintained.differences)
            raise log_error(f"recomputing gives other rows of {names}; nothing was written")
        options.progress("committing")
        return warehouse.apply(maintained), maintained

    def _batch(self, begin: Begin, tally: Tally) -> Choice:
        """Which transactions the next batch has."""
        if self.position.has(begin.commit, begin.xid):
            return Choice.SKIP
        return Choice.TAKE if tally.transactions < self._options.transactions else Choice.STOP

    def _net_effect(
        self, choose: Callable[[Begin, Tally], Choice], tally: Tally, most: int | None, folder: Path
    ) -> dict[str, Condensed[D]]:
        """What some transactions of the log come to, by base relation."""
        engine = self._warehouse.engine
        exchange = platform_of(engine).exchange
        reader = LogEvents(self._tables, self._relations, self._file.feeds)
        self._options.progress("reading the log")
        with contextlib.closing(self._log.messages(most)) as messages:
            events = reader.events(messages, lambda begin: choose(begin, tally), tally)
            spills = spilled(events, self._relations, (), folder, exchange.zone)
        found = {}
        for name, spill in spills.items():
            table = self._relations[name]
            changes = Changes(sql.events(len(table.columns)), [exchange.entered(spill)], [])
            found[name] = condensed(engine, exchange, changes, table)
        return found

    def _later_than(self, state: str) -> Mapping[str, Later[D]] | None:
        """What became of the base relations between the batch and a state of the source.

        Returns:
            By relation what came and went; None if the state does not show all of the batch yet.
        """
        snapshot = Snapshot.parse(state)
        if not all(map(snapshot.shows, self._needed)):
            self._wait_for(self._needed)
            return None
        self._log.flushed()  # all that it shows can be read then

        def shown_only(begin: Begin, _tally: Tally) -> Choice:
            is_known = self.position.has(begin.commit, begin.xid)
            is_shown = snapshot.shows(snapshot.whole(begin.xid))
            return Choice.TAKE if is_shown and not is_known else Choice.SKIP

        with tempfile.TemporaryDirectory(prefix="selfmaint-log-") as folder:
            found = self._net_effect(shown_only, Tally(), None, Path(folder))
        return {name: Later(one.inserted, one.deleted) for name, one in found.items()}

    def _wait_for(self, xids: frozenset[int]) -> None:
        """Waits until readers see some transactions that have committed."""
        deadline = monotonic() + TIMEOUT_S
        while not all(map(self._log.snapshot().shows, xids)):
            if monotonic() > deadline:
                what = "waits for a standby, and is not seen by readers"
                failure = log_error(f"a transaction of the source `{self._log.source}` {what}")
                raise PassingError([replace(d, code=Code.SOURCE_UNREACHABLE) for d in failure.diagnostics])
            sleep(0.02)
