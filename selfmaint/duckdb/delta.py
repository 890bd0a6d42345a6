"""A store of Delta tables: each view one, changed by MERGE in Delta's own engine; the journal makes them one commit.

First each table that changes is committed, and says what it belongs to; then the row of the journal that says which
versions belong together. Readers read the versions of its last row; see `delta_commits` for what dies in between.

Delta rewrites a file to delete a row of it (copy on write); what that takes is told.
"""

from __future__ import annotations

# ruff: noqa: S608 - names are quoted
import contextlib
import uuid
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeAlias

from datalog.copies import replace
from selfmaint.duckdb.database import Database
from selfmaint.duckdb.relation import Relation
from selfmaint.duckdb.store import Change, Committed, files_query, named, quoted, require_names
from selfmaint.errors import BusyError, Code, InputError, SelfmaintError, input_error
from selfmaint.store.delta import delta_table, is_delta_table, require_package, sync_version, table_files
from selfmaint.store.delta_commits import Mark, ahead, conflict, is_half_done, put_back, recover
from selfmaint.store.delta_journal import DeltaJournal, Entry, failures
from selfmaint.store.place import DeltaPlace
from selfmaint.store.stored_tables import Commit, Rewritten, TableFiles, require_same_tables

_RESERVED = frozenset({"_change_type", "_commit_version", "_commit_timestamp"})
"""Columns of the change data feed."""
_SOURCE = "selfmaint_source"
_FLAG = "is_lost"
_TRIES = 5
_STREAMED_ROWS = 1_000_000
"""Of more rows Delta does not look for the files that their values may be in, and holds fewer at a time.

Nor may it beside doubles: statistics leave NaN out, and it takes what they say for all values of a file.
"""
_FEED = {"delta.enableChangeDataFeed": "true"}
_MOST_FILES = 100
"""A table of more files is compacted after a commit."""


_Step: TypeAlias = Callable[[Mark, int], tuple[int, Rewritten]]
"""A commit of one table, from its mark and the version that the journal has: the new version, and what it took."""


class DeltaTables:
    """A store of Delta tables on this machine, read and written with a database."""

    def __init__(self, database: Database, place: DeltaPlace) -> None:
        """Nothing is read yet.

        Raises:
            InputError: SM408 there is none.
        """
        require_package(place.folder)
        self.database, self.place = database, place
        self.catalog = DeltaJournal(place)

    @classmethod
    def new(cls, database: Database, place: DeltaPlace) -> DeltaTables:
        """Makes a store without tables; its first commit takes those that are elsewhere as they are.

        Raises:
            InputError: SM405 it cannot be made; SM607 `deltalake` is missing.
        """
        require_package(place.folder)
        with failures(place, "cannot be made"):
            DeltaJournal.new(place)
        return cls(database, place)

    def commits(self) -> list[tuple[int, Commit]]:
        """See `Store`."""
        return self.catalog.commits()

    # ------------------------------------------------------------------------------------------- writing

    def commit(
        self,
        changes: Mapping[str, Change],
        said: Commit,
        *,
        after: int | None,
        new: Mapping[str, Relation] | None = None,
        hidden: Collection[str] = (),
    ) -> Committed:
        """See `Store`."""
        made = new or {}
        require_names(made, self.place, _RESERVED, "\0")
        entries = self.catalog.entries()
        before = entries[-1] if entries else None
        self.place.require_newest(None if before is None else before.snapshot, after)
        steps: dict[str, _Step] = {name: partial(self._change, name, one) for name, one in changes.items()}
        steps |= {name: partial(self._make, name, rows) for name, rows in made.items()}
        return self._commit(before, said, steps)

    def undo(self, version: int, said: Commit) -> int:
        """See `Store`: each table is restored, which writes no rows."""
        before, old = self.catalog.last(), self.catalog.at(version)
        require_same_tables(version, old.versions.keys(), before.versions.keys())
        if version < before.oldest:
            raise input_error(
                Code.LAKE, f"snapshot {version} is let go of", "`selfmaint history` lists the others"
            )
        wanted = {name: its for name, its in old.versions.items() if its != before.versions[name]}
        steps: dict[str, _Step] = {name: partial(self._restore, name, its) for name, its in wanted.items()}
        return self._commit(before, said, steps).version

    def _commit(self, before: Entry | None, said: Commit, steps: Mapping[str, _Step]) -> Committed:
        """A commit of each table, then the row of the journal; or nothing."""
        versions = dict(before.versions) if before is not None else self._elsewhere()
        number = 1 if before is None else before.snapshot + 1
        after = number - 1
        mark = Mark(self.catalog.id, after, number, tuple(sorted(steps)), said.text(), uuid.uuid4().hex)
        rewritten: dict[str, Rewritten] = {}
        try:
            with failures(self.place, "cannot be written to"):
                for name, step in steps.items():
                    versions[name], rewritten[name] = step(mark, versions.get(name, -1))
                    sync_version(self.place.table(name), versions[name])
            files = sum(one.added for one in rewritten.values())
            size = sum(one.size for one in rewritten.values())
            oldest = number if before is None else before.oldest
            entry = Entry(number, datetime.now(UTC), said, versions, oldest, files, size)
            self.catalog.append(before, entry)
        except BaseException as failure:
            if before is not None:
                self._put_back(before, mark.by, failure)
            raise
        with contextlib.suppress(SelfmaintError):  # what is committed is; the next one tries again
            self.catalog.compact()
        return Committed(number, rewritten)

    def _put_back(self, before: Entry, by: str, failure: BaseException) -> None:
        """Undoes what was done of a commit; where that fails too, the next command does it."""
        try:
            put_back(self.catalog, before, by)
        except SelfmaintError as second:
            failure.add_note(f"the tables are put right by the next command: {second}")

    def _elsewhere(self) -> dict[str, int]:
        """The versions of the tables that the store takes as they are."""
        found = {}
        for name, path in self.place.elsewhere.items():
            with failures(self.place, "cannot be made"):
                found[name] = int(delta_table(path).version())
        return found

    def _change(self, name: str, change: Change, mark: Mark, base: int) -> tuple[int, Rewritten]:
        """Commits what a table gains and loses; the version, and what it took."""
        from deltalake.exceptions import CommitFailedError  # noqa: PLC0415 - see `Mark`

        lost = self._prepare(name, table_files(name, self.place.table(name), base), change)
        mark = replace(mark, lost=lost)
        for _ in range(_TRIES):
            table = self._current(name, base)
            start = int(table.version())
            try:
                found = self._merge(table, change, mark)
            except CommitFailedError:
                continue  # somebody was faster: `_current` says whether that matters
            if found != lost:
                raise _missing(name, lost, found)
            return start + 1, self._took(name, start)
        message = f"others commit to the Delta table of `{name}` all the time"
        raise BusyError(input_error(Code.WRITE_FAILED, message, "run the command again").diagnostics)

    def _prepare(self, name: str, table: TableFiles, change: Change) -> int:
        """Puts down the rows of a MERGE: those to be deleted, each once, and those to be added; how many go.

        Of rows that may stand several times all copies go, and what is left of them is added again.
        """
        run, columns = self.database.run, range(len(table.columns))
        gaining, losing = (one and self._fitted(one, table) for one in (change.gained, change.lost))
        typed = ", ".join(f"c{i} {kind}" for i, kind in enumerate(table.types))
        run(f"CREATE OR REPLACE TEMP TABLE {_SOURCE} ({_FLAG} BOOLEAN, {typed})")
        items = ", ".join(f"c{i}" for i in columns)
        insert = f"INSERT INTO {_SOURCE} SELECT {{}}, {items} FROM {{}}"
        if gaining is not None:
            run(insert.format("false", gaining))
        if losing is None:
            return 0
        ((number,),) = run(f"SELECT count(*) FROM {losing}")
        # The table compares bits: of doubles the rows as they are stored are to go, for 0.0 that with -0.0.
        if not change.is_bag and not {"FLOAT", "DOUBLE"}.intersection(table.types):
            run(insert.format("true", losing))
            return int(number)
        # The stored rows that agree with a lost one, numbered.
        lost = f"SELECT {items}, count(*) AS copies FROM {losing} GROUP BY ALL"
        tests = " AND ".join(
            f"old.{quoted(n)} IS NOT DISTINCT FROM lost.c{i}" for i, n in enumerate(table.columns)
        )
        part = ", ".join(f"lost.c{i}" for i in columns)
        olds = ", ".join(f"old.{quoted(n)} AS c{i}" for i, n in enumerate(table.columns))
        numbered = (
            f"SELECT {olds}, row_number() OVER (PARTITION BY {part}) AS n, lost.copies "
            f"FROM ({files_query(table)}) AS old JOIN ({lost}) AS lost ON {tests}"
        )
        run(f"CREATE OR REPLACE TEMP TABLE {_SOURCE}_old AS {numbered}")
        ((going, every),) = run(f"SELECT count(*) FILTER (n <= copies), count(*) FROM {_SOURCE}_old")
        if going != number:
            raise _missing(name, number, going)
        run(insert.format("true", f"(SELECT * FROM {_SOURCE}_old WHERE n = 1)"))
        run(insert.format("false", f"(SELECT * FROM {_SOURCE}_old WHERE n > copies)"))
        run(f"DROP TABLE {_SOURCE}_old")
        return int(every)

    def _fitted(self, rows: Relation, table: TableFiles) -> str:
        """Rows with columns as a table has them, which was perhaps made by somebody else: in its order and types."""
        places = list(range(len(table.columns)))
        if {*rows.columns} == {*table.columns}:
            places = [rows.columns.index(name) for name in table.columns]
        cast = [f"TRY_CAST(c{place} AS {kind})" for place, kind in zip(places, table.types, strict=True)]
        lost = " OR ".join(f"{made} IS DISTINCT FROM c{i}" for made, i in zip(cast, places, strict=True))
        ((wrong,),) = self.database.run(f"SELECT count(*) FROM {rows.stored.name} WHERE {lost}")
        if wrong:
            message = f"{wrong} rows do not fit the columns of the Delta table of `{table.name}`"
            hint = f"`selfmaint import WAREHOUSE.toml --view {table.name}` makes the table anew, in the view's types"
            raise input_error(Code.COLUMNS_DIFFER, message, hint, "nothing was written")
        return (
            f"(SELECT {', '.join(f'{made} AS c{i}' for i, made in enumerate(cast))} FROM {rows.stored.name})"
        )

    def _merge(self, table: Any, change: Change, mark: Mark) -> int:
        """One commit of what was put down; how many rows it deleted."""
        import deltalake  # noqa: PLC0415 - see `Mark`

        run, fields = self.database.run, table.schema().fields
        names = [field.name for field in fields]
        has_doubles = any(getattr(field.type, "type", None) in ("float", "double") for field in fields)
        if change.lost is None:
            items = ", ".join(f"c{i} AS {quoted(name)}" for i, name in enumerate(names))
            rows = self.database.stream(f"SELECT {items} FROM {_SOURCE}")
            deltalake.write_deltalake(table, rows, mode="append", commit_properties=mark.properties())
            return 0
        nulls = ", ".join(f"count(*) FILTER (c{i} IS NULL)" for i in range(len(names)))
        ((number, *with_null),) = run(f"SELECT count(*), {nulls} FROM {_SOURCE} WHERE {_FLAG}")
        # Equality is what files are left out by; where no null is lost it says the same.
        tests = [
            f"(t.{_delta_name(name)} {'IS NOT DISTINCT FROM' if null else '='} s.c{i})"
            for i, (name, null) in enumerate(zip(names, with_null, strict=True))
        ]
        merging = table.merge(
            self.database.stream(f"SELECT * FROM {_SOURCE}"),
            " AND ".join([f"s.{_FLAG}", *tests]),
            source_alias="s",
            target_alias="t",
            streamed_exec=has_doubles or number > _STREAMED_ROWS,
            commit_properties=mark.properties(),
        )
        added = {_delta_name(name): f"s.c{i}" for i, name in enumerate(names)}
        merging = merging.when_matched_delete().when_not_matched_insert(added, predicate=f"NOT s.{_FLAG}")
        return int(merging.execute()["num_target_rows_deleted"])

    def _make(self, name: str, rows: Relation, mark: Mark, _base: int) -> tuple[int, Rewritten]:
        """A table, made or made anew with some rows, whatever it has now."""
        import deltalake  # noqa: PLC0415 - see `Mark`

        path = self.place.table(name)
        given = {"mode": "overwrite", "commit_properties": mark.properties()}
        data = self.database.stream(named(rows))
        if not is_delta_table(path):
            deltalake.write_deltalake(str(path), data, configuration=_FEED, **given)
            return 0, self._took(name, -1)
        table = delta_table(path)
        start = int(table.version())
        deltalake.write_deltalake(table, data, schema_mode="overwrite", **given)
        return start + 1, self._took(name, start)

    def _restore(self, name: str, version: int, mark: Mark, base: int) -> tuple[int, Rewritten]:
        """A table with the contents of an earlier version."""
        table = self._current(name, base)
        start = int(table.version())
        table.restore(version, commit_properties=mark.properties())
        return start + 1, Rewritten(0, 0, 0)

    def _took(self, name: str, start: int) -> Rewritten:
        """What the commit after a version took."""
        old = self.catalog.sizes(name, start) if start >= 0 else {}
        new = self.catalog.sizes(name, start + 1)
        added = [size for file, size in new.items() if file not in old]
        return Rewritten(len(old.keys() - new.keys()), len(added), sum(added))

    # ------------------------------------------------------------------------- what others and the dead left

    def _current(self, name: str, base: int) -> Any:
        """The table at its last version, which has the rows of a version."""
        found = ahead(self.catalog, name, base)
        if found.foreign is not None:
            raise conflict(name, self.place.table(name), found.foreign)
        if found.mark is not None:
            message = f"somebody else writes to the Delta store `{self.place.folder}` just now"
            raise BusyError(input_error(Code.WRITE_FAILED, message, "run the command again").diagnostics)
        return delta_table(self.place.table(name), found.last)

    def require_writable(self) -> None:
        """See `Store`."""
        self.place.require_writable()

    def is_half_done(self) -> bool:
        """See `Store`."""
        return is_half_done(self.catalog)

    def recover(self) -> None:
        """See `Store`: what is whole but for the journal is finished, all else is put back."""
        if self.is_half_done():
            recover(self.catalog)

    # ------------------------------------------------------------------------------------------- upkeep

    def due(self) -> frozenset[str]:
        """See `Store`."""
        last = self.catalog.last()
        return frozenset(n for n, v in last.versions.items() if len(self.catalog.sizes(n, v)) > _MOST_FILES)

    def compact(self, keep_days: float | None, tables: Collection[str] | None = None) -> None:
        """See `Store`. Before files go, the journal says which snapshots it was that had them."""
        before = self.catalog.last()
        oldest = self.catalog.kept_since(keep_days)
        if oldest != before.oldest:
            now = datetime.now(UTC)
            after = replace(
                before, snapshot=before.snapshot + 1, at=now, said=None, oldest=oldest, files=0, size=0
            )
            self.catalog.append(before, after)
            before = after
        with failures(self.place, "cannot be compacted"):
            for name in before.versions:
                table = delta_table(self.place.table(name))
                if tables is None or name in tables:
                    table.optimize.compact()
                if keep_days is not None:
                    # Files of commits that died go, too; those of others on their way are younger than a day.
                    hours, is_old = int(keep_days * 24), keep_days >= 1
                    table.vacuum(hours, dry_run=False, enforce_retention_duration=False, full=is_old)
            recover(self.catalog)
            self.catalog.compact(always=True)


def _missing(name: str, wanted: int, found: int) -> InputError:
    return input_error(
        Code.WRITE_FAILED,
        f"`{name}` is to lose {wanted} rows, and has {found} of them",
        "the view is not what was maintained: `selfmaint import` brings it in anew",
        "nothing was written",
    )


def _delta_name(name: str) -> str:
    """A name in a statement of Delta's engine."""
    return "`" + name.replace("`", "``") + "`"
