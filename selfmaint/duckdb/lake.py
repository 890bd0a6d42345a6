"""The lake: views and partial copies as tables of one DuckLake, all changed in one transaction.

A table is Parquet files, with files beside them that say which of their rows are deleted; which of these files belong
to a snapshot says the catalog, a database of SQLite. Everything is read at one snapshot, and before a transaction
begins: within one that has deleted rows, DuckLake gives older snapshots without them, too.
"""

from __future__ import annotations

# ruff: noqa: S608 - names are quoted, values are bound
import contextlib
import importlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb

from selfmaint.duckdb.database import Database, Relation
from selfmaint.engine.protocol import Layout
from selfmaint.errors import Code, first_line, input_error
from selfmaint.store.lake_place import Commit, LakePlace

_EXTENSIONS = {"ducklake": "duckdb_extension_ducklake", "sqlite_scanner": "duckdb_extension_sqlite_scanner"}
"""DuckDB's extensions and the packages that have them."""

_LAKE = "lake"

META = f"__ducklake_metadata_{_LAKE}"
"""The schema of the catalog's own tables."""

_COMMITS = f"{_LAKE}.selfmaint.commits"
_INLINED_ROWS = 1_000
"""Commits are few rows each, and only added: so many wait in the catalog before they become a file."""


@dataclass(frozen=True)
class Change:
    """What becomes of a table.

    Attributes:
        gained: the rows that it gains, each as often as it does, in the order of its columns.
        lost: the rows that it loses; exactly so many of each.
    """

    gained: Relation | None = None
    lost: Relation | None = None


@dataclass(frozen=True, slots=True)
class LakeTable:
    """A table at a snapshot.

    Attributes:
        lake: its lake.
        name: its name.
        version: the snapshot.
    """

    lake: Lake
    name: str
    version: int


class Lake:
    """A DuckLake on this machine, attached to a database."""

    def __init__(self, database: Database, place: LakePlace, *, is_new: bool = False) -> None:
        """Attaches the lake; makes it if it is to be new.

        Raises:
            InputError: SM408 there is none, it cannot be read, or an extension is missing.
        """
        self.database, self.place = database, place
        if not is_new and not place.catalog.is_file():
            message = f"there is no lake at `{place.folder}`"
            raise input_error(Code.LAKE, message, "`selfmaint init WAREHOUSE.toml` makes it")
        for extension, package in _EXTENSIONS.items():
            database.run(f"LOAD {_text(_extension(extension, package))}")
        options = {
            "DATA_PATH": _text(f"{place.files}/"),
            "OVERRIDE_DATA_PATH": "true",  # the folder may have been moved
            "META_JOURNAL_MODE": "'WAL'",  # readers do not wait for who writes
            "META_BUSY_TIMEOUT": "10000",
            "CREATE_IF_NOT_EXISTS": str(is_new).lower(),
        }
        said = ", ".join(f"{name} {value}" for name, value in options.items())
        with self._failures("cannot be opened"):
            database.run(f"ATTACH {_text(f'ducklake:sqlite:{place.catalog}')} AS {_LAKE} ({said})")
            if is_new:
                self._begin()

    def detach(self) -> None:
        """Lets go of the lake: nothing of it is open then."""
        self.database.run(f"DETACH {_LAKE}")

    def _begin(self) -> None:
        run = self.database.run
        run(f"CALL {_LAKE}.set_option('data_inlining_row_limit', 0)")
        run(f"CREATE SCHEMA {_LAKE}.selfmaint")
        run(f"CREATE TABLE {_COMMITS} (version BIGINT, said VARCHAR)")
        run(
            f"CALL {_LAKE}.set_option('data_inlining_row_limit', {_INLINED_ROWS}, schema => 'selfmaint', "
            "table_name => 'commits')"
        )

    # ------------------------------------------------------------------------------------------- reading

    def newest(self) -> int:
        """The newest snapshot."""
        ((found,),) = self.query(f"SELECT max(snapshot_id) FROM {META}.ducklake_snapshot")
        return int(found)

    def query(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """What a statement over the lake gives.

        Raises:
            InputError: SM408 it cannot be read.
        """
        with self._failures("cannot be read"):
            return self.database.run(statement, values)

    def version(self) -> int:
        """The snapshot that is to be read: that of its place, or the newest.

        Raises:
            InputError: SM408 there is no such snapshot, or no more.
        """
        wanted = self.place.version
        if wanted is None:
            return self.newest()
        query = f"SELECT 1 FROM {META}.ducklake_snapshot WHERE snapshot_id = ?"
        if not self.query(query, [wanted]):
            message = f"the lake `{self.place.folder}` has no snapshot {wanted}"
            raise input_error(Code.LAKE, message, "`selfmaint history` lists those that there are")
        return wanted

    @cached_property
    def _layouts(self) -> dict[str, Layout]:
        """How the tables are stored at the newest snapshot."""
        deleted = f"""(SELECT data_file_id, sum(delete_count) AS gone FROM {META}.ducklake_delete_file
            WHERE end_snapshot IS NULL GROUP BY data_file_id)"""
        rows = self.query(
            f"""SELECT t.table_name, sum(f.record_count - coalesce(d.gone, 0)) FROM {META}.ducklake_table t
            JOIN {META}.ducklake_data_file f USING (table_id) LEFT JOIN {deleted} d USING (data_file_id)
            WHERE t.end_snapshot IS NULL AND f.end_snapshot IS NULL GROUP BY t.table_name"""
        )
        return {name: Layout(int(number), self._spreads.get(name, {})) for name, number in rows}

    @cached_property
    def _spreads(self) -> dict[str, dict[int, int]]:
        """For columns of whole numbers of each table, how many there are from the smallest to the largest."""
        found: dict[str, dict[int, int]] = {}
        rows = self.query(
            f"""SELECT t.table_name, c.column_order, s.min_value, s.max_value FROM {META}.ducklake_table t
            JOIN {META}.ducklake_column c USING (table_id)
            JOIN {META}.ducklake_table_column_stats s USING (table_id, column_id)
            WHERE t.end_snapshot IS NULL AND c.end_snapshot IS NULL AND c.column_type LIKE 'int%'
            AND s.min_value IS NOT NULL AND s.max_value IS NOT NULL"""
        )
        for name, place, least, most in rows:
            found.setdefault(name, {})[int(place) - 1] = int(most) - int(least) + 1
        return found

    def tables(self, version: int) -> frozenset[str]:
        """The names of the tables at a snapshot."""
        rows = self.query(
            f"""SELECT t.table_name FROM {META}.ducklake_table t JOIN {META}.ducklake_schema s USING (schema_id)
            WHERE s.schema_name = 'main' AND t.begin_snapshot <= ?
            AND (t.end_snapshot IS NULL OR t.end_snapshot > ?)""",
            [version, version],
        )
        return frozenset(name for (name,) in rows)

    def table(self, name: str, version: int) -> LakeTable:
        """A table at a snapshot.

        Raises:
            InputError: SM103 there is none.
        """
        if name not in self.tables(version):
            message = f"`{name}`: the lake `{self.place.folder}` has no such table"
            raise input_error(
                Code.MISSING_CONTENTS, message, f"`selfmaint import WAREHOUSE.toml --view {name}`"
            )
        return LakeTable(self, name, version)

    def rows(self, table: LakeTable) -> Relation:
        """The rows of a table, read when they are used."""
        files = [file for pair in self.data_files(table) for file in pair if file is not None]
        layout = self._layouts.get(table.name) if table.version == self.newest() else None
        with self._failures("cannot be read"):
            stored = self.database.stored(f"FROM {_at(table)}", files, layout or Layout())
        return Relation(stored, self.columns(table))

    def columns(self, table: LakeTable) -> tuple[str, ...]:
        """The names of a table's columns."""
        return tuple(row[0] for row in self.query(f"DESCRIBE FROM {_at(table)}"))

    def copied(self, table: LakeTable, folder: Path) -> str:
        """The path of a Parquet file of a table's rows, written into a folder now."""
        file = str(folder / "rows.parquet")
        self.query(f"COPY (FROM {_at(table)}) TO {_text(file)} (FORMAT parquet)")
        return file

    def data_files(self, table: LakeTable) -> list[tuple[str, str | None]]:
        """The Parquet files of a table, each with that of its deleted rows if there is one."""
        query = "SELECT data_file, delete_file FROM ducklake_list_files(?, ?, snapshot_version => ?)"
        found = self.query(query, [_LAKE, table.name, table.version])
        return [(file, deleted) for file, deleted in found]

    def commits(self) -> list[tuple[int, Commit]]:
        """What was committed, oldest first, with the snapshots."""
        rows = self.query(f"SELECT version, said FROM {_COMMITS} ORDER BY version")
        return [(int(version), Commit.read(said)) for version, said in rows]

    # ------------------------------------------------------------------------------------------- writing

    def commit(
        self, changes: Mapping[str, Change], said: Commit, *, new: Mapping[str, Relation] | None = None
    ) -> int:
        """Changes tables, makes others, and says so, in one transaction. Who calls it holds the place's lock.

        Args:
            changes: of tables that there are; their relations are in this lake's database, and held.
            said: what is committed.
            new: tables that are made, or made anew, with their rows; columns as these have them.

        Returns:
            The snapshot.

        Raises:
            InputError: SM104 a value that its column cannot hold; SM405 rows that a table is to lose are not in it.
            SelfmaintError: SM405 what is to be written cannot be. Nothing has changed then.
        """
        run, before = self.database.run, self.newest()
        with self._failures("cannot be written", Code.WRITE_FAILED):
            run("BEGIN")
            try:
                for name, rows in (new or {}).items():
                    run(f"CREATE OR REPLACE TABLE {_name(name)} AS {_named(rows)}")
                for name, change in changes.items():
                    if change.lost is not None:
                        self._delete(name, change.lost)
                    if change.gained is not None:
                        run(f"INSERT INTO {_name(name)} {_named(change.gained)}")
                run(f"INSERT INTO {_COMMITS} VALUES (?, ?)", [before + 1, said.text()])
                run(f"CALL {_LAKE}.set_commit_message('selfmaint', ?)", [said.kind])
                run("COMMIT")
            except BaseException:
                with contextlib.suppress(duckdb.Error):
                    run("ROLLBACK")
                raise
        self.__dict__.pop("_layouts", None)
        self.__dict__.pop("_spreads", None)
        return before + 1

    def _delete(self, name: str, lost: Relation) -> None:
        """Deletes as many copies of each row as there are to be lost.

        Raises:
            InputError: SM405 there are fewer.
        """
        run, given = self.database.run, lost.stored.name
        width = len(lost.types)
        places = [f"c{i}" for i in range(width)]
        nulls = ", ".join(f"count(*) - count({c})" for c in places)
        ((number, *with_null),) = run(f"SELECT count(*), {nulls or '0'} FROM {given}")
        columns = [row[0] for row in run(f"DESCRIBE {_name(name)}")]
        # Equality is what a hash join looks up; where no null is lost it says the same.
        tests = [
            f"old.{_quoted(column)} {'IS NOT DISTINCT FROM' if nulls else '='} lost.{c}"
            for column, c, nulls in zip(columns, places, with_null, strict=True)
        ]
        mine = ", ".join(f"lost.{c}" for c in places)
        (found,) = run(
            f"""DELETE FROM {_name(name)} WHERE rowid IN (
                SELECT place FROM (
                    SELECT old.rowid AS place, lost.copies, row_number() OVER (PARTITION BY {mine}) AS copy
                    FROM {_name(name)} AS old
                    JOIN (SELECT *, count(*) AS copies FROM {given} GROUP BY ALL) AS lost ON {" AND ".join(tests)}
                ) WHERE copy <= copies)"""
        )
        if found[0] != number:
            message = f"`{name}` is to lose {number} rows, and has {found[0]} of them"
            raise input_error(
                Code.WRITE_FAILED,
                message,
                "the lake was changed by something else: `selfmaint import` brings the view in anew",
                "nothing was written",
            )

    @contextlib.contextmanager
    def _failures(self, what: str, code: Code = Code.LAKE) -> Iterator[None]:
        """What DuckLake refuses, as an error of this package.

        Raises:
            InputError: SM408, or another code.
        """
        try:
            yield
        except duckdb.Error as failure:
            message = f"the lake `{self.place.folder}` {what}: {first_line(failure)}"
            note = "nothing was written" if code is Code.WRITE_FAILED else None
            raise input_error(code, message, note=note) from failure


def _extension(name: str, package: str) -> str:
    """The file of an extension of DuckDB.

    Raises:
        InputError: SM408 its package is not installed.
    """
    try:
        folder = Path(next(iter(importlib.import_module(package).__path__)))
        return str(next(folder.glob(f"extensions/v{duckdb.__version__}/{name}.duckdb_extension")))
    except (ImportError, StopIteration):
        wheel = package.replace("_", "-")
        message = f"a lake needs DuckDB's extension `{name}` for version {duckdb.__version__}"
        hint = f"pip install {wheel}=={duckdb.__version__}"
        raise input_error(Code.LAKE, message, hint) from None


def _named(rows: Relation) -> str:
    """The query of some rows, with their columns' names."""
    items = ", ".join(f"c{i} AS {_quoted(name)}" for i, name in enumerate(rows.columns))
    return f"SELECT {items} FROM {rows.stored.name}"


def _name(table: str) -> str:
    return f"{_LAKE}.main.{_quoted(table)}"


def _at(table: LakeTable) -> str:
    return f"{_name(table.name)} AT (VERSION => {table.version})"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
