"""A store of tables that are read at a state of all of them, and changed together: what every kind of it offers.

Tables are read from their files, in the same way for every kind. `docs/guide/storing.md` says what each promises.
"""

from __future__ import annotations

# ruff: noqa: S608 - names are quoted
from collections.abc import Collection, Mapping
from typing import Any, Protocol

import duckdb
from msgspec import Struct, field

from datalog.sql.duckdb.texts import escaped
from selfmaint.duckdb.database import Database
from selfmaint.duckdb.relation import Relation
from selfmaint.engine.protocol import Layout
from selfmaint.errors import Code, first_line, input_error
from selfmaint.store.place import LakePlace, Place
from selfmaint.store.stored_tables import (
    SNAPSHOT_COLUMN,
    Commit,
    DataFile,
    Rewritten,
    StoredTables,
    TableFiles,
)


class Change(Struct, frozen=True):
    """What becomes of a table.

    Attributes:
        gained: the rows that it gains, each as often as it does, in the order of its columns.
        lost: the rows that it loses; exactly so many of each.
        key: the columns that tell its rows apart, where they are known.
        is_bag: whether a row may stand several times.
    """

    gained: Relation | None = None
    lost: Relation | None = None
    key: tuple[int, ...] = ()
    is_bag: bool = True


class Committed(Struct, frozen=True):
    """What a commit came to.

    Attributes:
        version: the snapshot.
        rewritten: by table, where files are written anew.
    """

    version: int
    rewritten: Mapping[str, Rewritten] = field(default_factory=dict)


class Store(Protocol):
    """A store on this machine, read and written with a database. Who writes holds the place's lock."""

    @property
    def database(self) -> Database:
        """What it is read and written with."""
        ...

    @property
    def place(self) -> Place:
        """Where it is."""
        ...

    @property
    def catalog(self) -> StoredTables:
        """Its states, and its tables at each."""
        ...

    def commits(self) -> list[tuple[int, Commit]]:
        """What was committed, oldest first, with the snapshots."""
        ...

    def require_writable(self) -> None:
        """Refuses who may not write, before there is work; readies what writing needs beside it.

        Raises:
            InputError: SM405.
        """
        ...

    def is_half_done(self) -> bool:
        """Whether a commit has not ended, of a process that works or of one that died."""
        ...

    def recover(self) -> None:
        """Puts right what a process left behind that died; nothing where every commit is atomic by itself.

        Raises:
            InputError: SM405; SM410 somebody else has written to a table.
        """
        ...

    def commit(
        self,
        changes: Mapping[str, Change],
        said: Commit,
        *,
        after: int | None,
        new: Mapping[str, Relation] | None = None,
        hidden: Collection[str] = (),
    ) -> Committed:
        """Changes tables, makes others, and says so, as one.

        Args:
            changes: of tables that there are; their relations are in this store's database, and held.
            said: what is committed.
            after: the snapshot that was read for it, so that none other may come in between; None in a new store.
            new: tables that are made, or made anew, with their rows; columns as these have them.
            hidden: those of them that readers are not shown, as far as the store can.

        Raises:
            InputError: SM104 a value that its column cannot hold; SM405 rows that a table is to lose are not in it;
                SM410 somebody else has written to it.
            BusyError: SM405 the store is at another snapshot than was read.
            SelfmaintError: SM405 what is to be written cannot be. Nothing has changed then.
        """
        ...

    def undo(self, version: int, said: Commit) -> int:
        """Commits the contents that all tables had at an earlier snapshot; gives the new one.

        Raises:
            InputError: SM405; SM408 a table was made since.
        """
        ...

    def due(self) -> frozenset[str]:
        """The tables that should be compacted."""
        ...

    def compact(self, keep_days: float | None, tables: Collection[str] | None = None) -> None:
        """Puts files together, of all tables or some, and lets go of snapshots older than some days; None keeps all.

        Files that only these snapshots had go, whatever table they are of.

        Raises:
            InputError: SM405.
        """
        ...


def opened(database: Database, place: Place) -> Store:
    """The store at a place.

    Raises:
        InputError: SM408 there is none; SM607 `deltalake` is missing.
    """
    found: Store = _kind(place)(database, place)
    return found


def made(database: Database, place: Place) -> Store:
    """A new store without tables, in a folder that is there.

    Raises:
        InputError: SM405 it cannot be made; SM408 an extension is missing; SM607 `deltalake` is.
    """
    found: Store = _kind(place).new(database, place)
    return found


def _kind(place: Place) -> Any:
    """The class of stores of the kind of a place; only what it needs is imported."""
    if isinstance(place, LakePlace):
        from selfmaint.duckdb.lake import Lake  # noqa: PLC0415 - see above

        return Lake
    from selfmaint.duckdb.delta import DeltaTables  # noqa: PLC0415 - see above

    return DeltaTables


def stored_rows(database: Database, table: TableFiles, but: TableFiles | None = None) -> Relation:
    """The rows of a table, read when they are used; without those that it has in the same places in another state.

    Raises:
        InputError: SM103 a file is gone; SM104 one cannot be read.
    """
    files = [path for file in table.files for path in (file.path, file.deleted) if path is not None]
    if but is not None:
        files += [file.deleted for file in but.files if file.deleted is not None]
    layout = Layout(table.rows if but is None else None, table.spreads, table.never_null)
    try:
        return Relation(database.stored(files_query(table, but), files, layout), table.columns)
    except duckdb.Error as failure:
        message = f"a file of the stored table `{table.name}` is not what was written: {first_line(failure)}"
        hint = f"`selfmaint import WAREHOUSE.toml --view {table.name}` brings its rows in anew"
        raise input_error(Code.COLUMNS_DIFFER, message, hint) from failure


def is_same(one: TableFiles, other: TableFiles) -> bool:
    """Whether a table has the same rows in two states, as its files tell without being read."""
    return set(one.files) == set(other.files) and None not in (one.rows, other.rows)


def has_like_columns(one: TableFiles, other: TableFiles) -> bool:
    """Whether rows of one state go into another as they are, or not at all: whole numbers do, others may be rounded."""
    pairs = zip(one.types, other.types, strict=False)
    alike = (a == b or all(kind.endswith(("INT", "INTEGER")) for kind in (a, b)) for a, b in pairs)
    return one.columns == other.columns and all(alike)


def files_query(table: TableFiles, but: TableFiles | None = None) -> str:
    """The rows of a table, from its files; no test of doubles reaches these, see `datalog.sql.duckdb.values_of`.

    `but` is another state of it: a row of a file that both have is left out where it is there in both.
    """
    names = ", ".join(
        f"{quoted(column)} * CAST(1 AS {kind}) AS {quoted(column)}"
        if kind in ("FLOAT", "DOUBLE")
        else quoted(column)
        for column, kind in zip(table.columns, table.types, strict=True)
    )
    others = {} if but is None else {file.path: file for file in but.files if not file.is_newer}
    both = {file.path: others[file.path] for file in table.files if file.path in others and not file.is_newer}
    plain = [
        file.path
        for file in table.files
        if file.deleted is None and not file.is_newer and file.path not in both
    ]
    parts = []
    if plain:
        listed = ", ".join(literal(escaped(path)) for path in plain)
        parts.append(f"SELECT {names} FROM read_parquet([{listed}], hive_partitioning = false)")
    for file in table.files:
        tests = [f"file.{SNAPSHOT_COLUMN} <= {table.version}"] if file.is_newer else []
        if file.deleted is not None:
            tests.append(f"NOT {_is_deleted(file, table.version)}")
        if but is not None and (other := both.get(file.path)) is not None:
            is_alike = file == other and not file.is_deleted_newer
            if other.deleted is None or is_alike:
                continue
            tests.append(_is_deleted(other, but.version))
        if tests:
            rows = f"read_parquet({literal(escaped(file.path))}, file_row_number = true, hive_partitioning = false)"
            parts.append(f"SELECT {names} FROM {rows} AS file WHERE {' AND '.join(tests)}")
    if parts:
        return " UNION ALL ".join(parts)
    typed = zip(table.types, table.columns, strict=True)
    items = ", ".join(f"CAST(NULL AS {kind}) AS {quoted(column)}" for kind, column in typed)
    return f"SELECT {items} WHERE false"


def _is_deleted(file: DataFile, version: int) -> str:
    """Whether a row of a file is deleted at a snapshot."""
    upto = f" AND gone.{SNAPSHOT_COLUMN} <= {version}" if file.is_deleted_newer else ""
    gone = f"read_parquet({literal(escaped(file.deleted or ''))}) AS gone"
    return f"EXISTS (SELECT 1 FROM {gone} WHERE gone.pos = file.file_row_number{upto})"


def named(rows: Relation) -> str:
    """The query of some rows, with their columns' names."""
    items = ", ".join(f"c{i} AS {quoted(name)}" for i, name in enumerate(rows.columns))
    return f"SELECT {items} FROM {rows.stored.name}"


def require_names(tables: Mapping[str, Relation], place: Place, kept: frozenset[str], prefix: str) -> None:
    """Refuses columns that a store would take for its own; and tables without any.

    `kept` are the names that the store keeps for itself, in small letters; others of its own begin with `prefix`.

    Raises:
        InputError: SM408.
    """
    for name, rows in tables.items():
        wrong = [c for c in rows.columns if c.lower() in kept or c.lower().startswith(prefix)]
        if wrong:
            message = f"the column `{wrong[0]}` of `{name}` has a name that a {place.kind} keeps for itself"
            raise input_error(Code.LAKE, message, "name it otherwise in the view", "nothing was written")
        if not rows.columns:
            message = f"`{name}` has no columns, and a table of a {place.kind} has some"
            raise input_error(Code.LAKE, message, "give the view a column", "nothing was written")


def quoted(name: str) -> str:
    """A name in a statement."""
    return '"' + name.replace('"', '""') + '"'


def literal(value: str) -> str:
    """A text in a statement."""
    return "'" + value.replace("'", "''") + "'"
