"""The lake: views and partial copies as tables of one DuckLake, all changed in one transaction.

A table is Parquet files, with files beside them that say which of their rows are deleted; which of these files belong
to a snapshot says the catalog, a database of SQLite. Tables are read from their files, at one snapshot; only what
writes goes through DuckLake.

Its snapshots are returned to, put together, and let go of.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import duckdb

from selfmaint.duckdb import objects
from selfmaint.duckdb.bags import beyond
from selfmaint.duckdb.database import Database
from selfmaint.duckdb.failures import STORAGE
from selfmaint.duckdb.loading import check_ahead, extension_file, load
from selfmaint.duckdb.relation import Relation
from selfmaint.duckdb.store import (
    Change,
    Committed,
    files_query,
    has_like_columns,
    is_same,
    literal,
    quoted,
    require_names,
    stored_rows,
)
from selfmaint.engine.column_types import is_floating, is_integer
from selfmaint.errors import LONGEST_LINE, Code, InputError, first_line, input_error
from selfmaint.store.lake_catalog import HELPERS, LakeCatalog
from selfmaint.store.place import LakePlace
from selfmaint.store.stored_tables import Commit, TableFiles, require_same_tables

# ruff: noqa: S608 - names are quoted, values are bound
_RESERVED = frozenset({"rowid", "file_row_number"})
_LAKE = "lake"
_PLACES = "selfmaint_places"
_META = f"__ducklake_metadata_{_LAKE}"
_COMMITS = f"{_LAKE}.selfmaint.commits"
_OPTIONS = {"data_inlining_row_limit": 0, "parquet_version": 2, "parquet_row_group_size": 61_440}
"""Of all tables. Delta encodings make files smaller, and keys half as dear to look for; a key that a table is in the
order of is found in few of the smaller row groups, where dictionaries are not yet repeated too often."""

_SMALL = 20_000
"""A table of fewer rows is read whole sooner than a statement more is planned."""

_INLINED_ROWS = 1_000
"""Commits are few rows each, and only added: so many wait in the catalog before they become a file."""


def _stored(rows: Relation) -> str:
    """The query of some rows as they are stored: with 0.0 for -0.0.

    DuckDB's dictionaries hold one of the two for both, whichever comes first, and its Bloom filters tell them apart.
    """
    values = (f"c{i} + 0.0::FLOAT" if is_floating(kind) else f"c{i}" for i, kind in enumerate(rows.types))
    items = ", ".join(f"{value} AS {quoted(name)}" for value, name in zip(values, rows.columns, strict=True))
    return f"SELECT {items} FROM {rows.stored.name}"


class Lake:
    """A lake on this machine, read and written with a database."""

    def __init__(self, database: Database, place: LakePlace) -> None:
        """Nothing is read yet.

        Raises:
            InputError: SM408 there is none, or an extension for object storage is missing.
        """
        self.database, self.place = database, place
        self.catalog = LakeCatalog(place)
        objects.reach(database, place)

    @classmethod
    def new(cls, database: Database, place: LakePlace) -> Lake:
        """Makes a lake without tables.

        Args:
            database: what it is written with.
            place: where it is made; its folder is there.

        Raises:
            InputError: SM408 an extension is missing; SM405 it cannot be made, or there is something in its folder of
                object storage.
        """
        objects.reach(database, place)
        was_begun = objects.require_none(database, place)
        with _attached(database, place, "made", is_new=True) as run:
            for name, value in _OPTIONS.items():
                run(f"CALL {_LAKE}.set_option('{name}', {value})")
            run(f"CREATE SCHEMA {_LAKE}.selfmaint")
            run(f"CREATE TABLE {_COMMITS} (version BIGINT, said VARCHAR)")
            run(
                f"CALL {_LAKE}.set_option('data_inlining_row_limit', {_INLINED_ROWS}, schema => 'selfmaint', "
                "table_name => 'commits')"
            )
            _say_where(database, place)
            if was_begun:
                run(f"CALL ducklake_delete_orphaned_files('{_LAKE}', cleanup_all => true)")
        return cls(database, place)

    def commits(self) -> list[tuple[int, Commit]]:
        """What was committed, oldest first, with the snapshots."""
        found = self.catalog.inlined_commits()
        in_files = self.catalog.table("commits", self.catalog.newest(), ("selfmaint",))
        if in_files.files:
            for version, said in self.database.run(files_query(in_files)):
                found.append((int(version), Commit.read(said)))
        return sorted(found, key=lambda one: one[0])

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
        """See `Store`: one transaction of DuckLake."""
        require_names(new or {}, self.place, _RESERVED, "_ducklake_")
        now = self.catalog.newest()
        there = self.catalog.hidden(now)
        losing = [name for name, change in changes.items() if change.lost is not None]
        stored = {name: self.catalog.table(name, now) for name in losing}
        with _attached(self.database, self.place, "written to") as run, self.database.transaction():
            # From here on this is the transaction's state: who comes in between is refused when it ends.
            ((before,),) = run(f"FROM {_LAKE}.current_snapshot()")
            self.place.require_newest(before, after)
            if hidden:
                run(f"CREATE SCHEMA IF NOT EXISTS {_LAKE}.{HELPERS}")
            for name, rows in (new or {}).items():
                if (name in there) != (name in hidden):
                    run(f"DROP TABLE IF EXISTS {_name(name, there)}")
                many = rows.stored.most_rows()
                run(f"CREATE OR REPLACE TABLE {_name(name, hidden)} AS {_stored(rows)}", rows=many)
            for name, change in changes.items():
                if change.lost is not None:
                    self._delete(_name(name, there), stored[name], change.lost, change)
                if change.gained is not None:
                    many = change.gained.stored.most_rows()
                    run(f"INSERT INTO {_name(name, there)} {_stored(change.gained)}", rows=many)
            run(f"INSERT INTO {_COMMITS} VALUES (?, ?)", [before + 1, said.text()])
            run(f"CALL {_LAKE}.set_commit_message('selfmaint', ?)", [said.kind])
        return Committed(before + 1)

    def require_writable(self) -> None:
        """See `Store`."""
        self.place.require_writable()
        check_ahead(_extensions(self.place))

    def is_half_done(self) -> bool:
        """See `Store`: a transaction never is."""
        return False

    def recover(self) -> None:
        """See `Store`."""

    def undo(self, version: int, said: Commit) -> int:
        """See `Store`."""
        return _undone(self, version, said)

    def due(self) -> frozenset[str]:
        """See `Store`."""
        worn = self.catalog.worn(MOST_FILES, REWRITE_SHARE, FEWEST_DELETED)
        return worn & self.catalog.tables(self.catalog.newest())

    def compact(self, keep_days: float | None, tables: Collection[str] | None = None) -> None:
        """See `Store`."""
        _compacted(self, keep_days, tables)

    def _delete(self, table: str, stored: TableFiles, lost: Relation, change: Change) -> None:
        """Deletes from a table as many copies of each row as there are to be lost.

        Raises:
            InputError: SM405 there are fewer.
        """
        rows = math.inf if stored.rows is None else stored.rows
        run, given = partial(self.database.run, rows=rows + lost.stored.most_rows()), lost.stored.name
        columns, spreads, is_small = stored.columns, stored.spreads, rows <= _SMALL
        every = tuple(range(len(lost.types)))
        number, with_null = lost.stored.rows, [0] * len(every)
        if number is None or not (is_small or stored.never_null.issuperset(every)):
            nulls = ", ".join(f"count(*) - count(c{i})" for i in every)
            ((number, *with_null),) = run(f"SELECT count(*), {nulls or '0'} FROM {given}")
        # What is equal is looked for in statistics and Bloom filters of files: longer than reading a small table takes.
        # Where no null is lost it says the same, but for 0.0 and -0.0, which these filters tell apart.
        exact = [is_small or nulls or is_floating(t) for nulls, t in zip(with_null, lost.types, strict=True)]
        signs = ["IS NOT DISTINCT FROM" if one else "=" for one in exact]
        tests = [f"old.{quoted(columns[i])} {signs[i]} lost.c{i}" for i in every]

        def find(by: Sequence[int], more: str = "") -> int:
            """Puts down the places of the rows that agree with a lost one in some columns; how many those are."""
            gone = f"SELECT *, count(*) AS copies FROM {given} GROUP BY ALL"
            joined = f"{table} AS old JOIN ({gone}) AS lost ON {' AND '.join(tests[i] for i in by)}"
            places = f"SELECT old.rowid AS place FROM {joined} {more}"
            ((found,),) = run(f"CREATE OR REPLACE TEMP TABLE {_PLACES} AS {places}")
            return int(found)

        # What is lost was read from this very state. So if some columns find as many rows as are lost, it is these:
        # the one of the most values, a key's, or else numbers, so that no text has to be read; or all.
        whole = [column for column in spreads if not with_null[column]]  # IN finds no null
        if whole and not is_small:
            best = max(whole, key=lambda column: spreads[column])
            among = f"{table} WHERE {quoted(columns[best])} IN (SELECT c{best} FROM {given})"
            if run(f"SELECT count(*) FROM {among}") == [(number,)]:
                run(f"DELETE FROM {among}")
                return
        guess: Sequence[int] = [i for i in every if is_integer(lost.types[i])]
        if is_small:
            guess = every
        elif 0 < len(change.key) < len(every):
            guess = change.key
        if not guess or find(guess) != number:
            copy = f"row_number() OVER (PARTITION BY {', '.join(f'lost.c{i}' for i in every)})"
            find(every, f"QUALIFY {copy} <= lost.copies" if change.is_bag else "")
        ((found,),) = run(f"DELETE FROM {table} WHERE rowid IN (SELECT place FROM {_PLACES})")
        run(f"DROP TABLE {_PLACES}")
        if found != number:
            message = f"`{stored.name}` is to lose {number} rows, and has {found} of them"
            raise input_error(
                Code.WRITE_FAILED,
                message,
                "the lake was changed by something else: `selfmaint import` brings the view in anew",
                "nothing was written",
            )


_REMEDIES = {
    "HTTP": STORAGE,
    "disk I/O error": "see to the disk, and how full it is",
    "Could not write": "see to the disk, and how full it is",
    "ermission denied": "see to the right to write to the folder and all in it",
    ".parquet": "put the file back from a backup, or bring all views in anew: `selfmaint import`",
    "locked": "another program writes to the catalog: wait until it has ended",
    "malformed": "put the lake back from a backup",
    "not a database": "put the lake back from a backup",
}
"""What to do, by what DuckDB says; the first that fits."""


def _failed(place: LakePlace, what: str, failure: Exception) -> InputError:
    lines = str(failure).splitlines() or [""]
    reason = first_line(failure)
    if len(lines) > 1 and lines[0].startswith("TransactionContext"):  # the cause stands last
        reason = f"{reason}: {lines[-1].removeprefix('Failed to commit: ')}"[:LONGEST_LINE]
    where = (
        f"`{place.folder}`"
        if place.objects is None
        else f"`{place.folder}` with files in `{place.objects.url}`"
    )
    message = f"the lake {where} {what}: {place.catalog.shown(reason)}"
    hint = next((remedy for sign, remedy in _REMEDIES.items() if sign in str(failure)), None)
    return input_error(Code.WRITE_FAILED, message, hint, "the contents are as they were")


@contextlib.contextmanager
def _attached(
    database: Database, place: LakePlace, what: str, *, is_new: bool = False
) -> Iterator[Callable[..., list[tuple[Any, ...]]]]:
    """The lake as DuckLake writes it; gives what runs its statements. Who enters holds the place's lock.

    Raises:
        InputError: SM405 what fails; SM408 an extension is missing.
    """
    with place.catalog.lent():
        _attach(database, place, is_new=is_new)
        try:
            yield database.run
        except duckdb.Error as failure:
            raise _failed(place, f"cannot be {what}", failure) from failure
        finally:
            database.run(f"DETACH {_LAKE}")


def _attach(database: Database, place: LakePlace, *, is_new: bool = False) -> None:
    """Attaches a lake for DuckLake to write it.

    Raises:
        InputError: SM405 it refuses; SM408 an extension is missing.
    """
    catalog, own = place.catalog.attached_as
    options = {
        "DATA_PATH": literal(place.files),
        "OVERRIDE_DATA_PATH": "true",  # the folder may have been moved
        "CREATE_IF_NOT_EXISTS": str(is_new).lower(),
        **own,
    }
    said = ", ".join(f"{name} {value}" for name, value in options.items())
    try:
        for extension in _extensions(place):
            load(database.run, extension_file(extension))
        if not is_new:
            place.require_catalog()
        if (
            place.catalog.is_shared
        ):  # who comes in between is refused: what is committed is of the state before
            database.run("SET ducklake_max_retry_count = 0")
        else:  # it reads a table in several transactions
            database.run("SET sqlite_disable_multithreaded_scans = true")
        database.run(f"ATTACH {literal(catalog)} AS {_LAKE} ({said})")
        if not is_new:  # who reads with DuckDB alone goes where the catalog says
            _say_where(database, place)
    except duckdb.Error as failure:
        raise _failed(place, "cannot be opened", failure) from failure


def _extensions(place: LakePlace) -> tuple[str, str]:
    return "ducklake", "postgres_scanner" if place.catalog.is_shared else "sqlite_scanner"


def _say_where(database: Database, place: LakePlace) -> None:
    """Has the catalog say where the files are, or will be."""
    path = place.files
    if place.objects is None:
        path = f"{Path(LakePlace(place.home or place.folder).files).resolve()}/"
    meta = _META if place.catalog.schema is None else f"{_META}.{quoted(place.catalog.schema)}"
    tell = f"UPDATE {meta}.ducklake_metadata SET value = ? WHERE key = 'data_path' AND value <> ?"
    database.run(tell, [path, path])


def _name(table: str, hidden: Collection[str]) -> str:
    return f"{_LAKE}.{HELPERS if table in hidden else 'main'}.{quoted(table)}"


REWRITE_SHARE = 0.1
"""A file of which a larger share of the rows is deleted is written anew."""

_OF = f"'{_LAKE}', ?, schema => ?"

FEWEST_DELETED = 10_000
"""Fewer deleted rows are no reason to compact a table after a commit."""

MOST_FILES = 100
"""A table of more files is compacted after a commit."""


def _undone(lake: Lake, version: int, said: Commit) -> int:
    """Commits the contents that all tables had at an earlier snapshot; who calls it holds the place's lock.

    Raises:
        InputError: SM405; SM408 a table was made since, or has other columns.
    """
    catalog, now = lake.catalog, lake.catalog.newest()
    require_same_tables(version, catalog.tables(version), catalog.tables(now))
    changes, sizes = {}, {}
    for name in sorted(catalog.tables(now)):
        before, after = (catalog.table(name, v) for v in (version, now))
        if not has_like_columns(before, after):
            message = f"the table `{name}` had other columns at snapshot {version}"
            raise input_error(Code.LAKE, message, "`selfmaint import` brings views in", "nothing was written")
        if is_same(before, after):
            continue
        old, new = stored_rows(lake.database, before, after), stored_rows(lake.database, after, before)
        gained, lost = beyond(lake.database, old, new)
        if gained.stored.rows or lost.stored.rows:
            sizes[name] = (lost.stored.rows or 0, gained.stored.rows or 0)
            gaining, losing = (one if one.stored.rows else None for one in (gained, lost))
            changes[name] = Change(gaining, losing)
    return lake.commit(changes, Commit(said.kind, said.update, said.positions, sizes), after=now).version


def _compacted(lake: Lake, keep_days: float | None, only: Collection[str] | None) -> None:
    """Writes files with many deleted rows anew, puts small ones together; who calls it holds the place's lock."""
    version = lake.catalog.newest()
    tables, hidden = lake.catalog.tables(version), lake.catalog.hidden(version)
    many = lake.catalog.worn(MOST_FILES, math.inf, 0)
    with _attached(lake.database, lake.place, "written to") as run:
        for name in sorted(tables if only is None else tables.intersection(only)):
            its = [name, HELPERS if name in hidden else "main"]
            share = 0 if name in many else REWRITE_SHARE  # files with deleted rows are not put together
            run(f"CALL ducklake_rewrite_data_files({_OF}, delete_threshold => ?)", [*its, share])
            if only is not None:
                run(f"CALL ducklake_merge_adjacent_files({_OF})", its)
        if only is None:
            run("CALL ducklake_merge_adjacent_files('lake')")
        if keep_days is not None:
            age = int(keep_days * 86_400_000_000)
            run("CALL ducklake_expire_snapshots('lake', older_than => now() - to_microseconds(?))", [age])
            run("CALL ducklake_cleanup_old_files('lake', older_than => now() - to_microseconds(?))", [age])
        # Of commits that died: nobody else writes now, so that no file is on its way into the catalog.
        run("CALL ducklake_delete_orphaned_files('lake', cleanup_all => true)")
