"""What is done with a lake's snapshots: they are returned to, put together, and let go of."""

from __future__ import annotations

from datalog.sql import duckdb as sql
from selfmaint.duckdb.database import Relation
from selfmaint.duckdb.lake import Lake
from selfmaint.duckdb.store import Change, stored_rows
from selfmaint.errors import Code, input_error
from selfmaint.store.commit import Commit

REWRITE_SHARE = 0.1
"""A file of which a larger share of the rows is deleted is written anew."""

FEWEST_DELETED = 1_000
"""Fewer deleted rows are no reason to compact a table after a commit."""

MOST_FILES = 100
"""A table of more files is compacted after a commit."""


def undone(lake: Lake, version: int, said: Commit) -> int:
    """Commits the contents that all tables had at an earlier snapshot; who calls it holds the place's lock.

    Raises:
        InputError: SM405; SM408 a table was made since.
    """
    catalog, now = lake.catalog, lake.catalog.newest()
    if catalog.tables(version) != catalog.tables(now):
        message = f"other tables than now made up the lake at snapshot {version}"
        raise input_error(Code.LAKE, message, "`selfmaint import` brings views in")
    changes, sizes = {}, {}
    for name in sorted(catalog.tables(now)):
        old, new = (stored_rows(lake.database, catalog.table(name, v)) for v in (version, now))
        gained, lost = _beyond(lake, old, new), _beyond(lake, new, old)
        if gained.stored.rows or lost.stored.rows:
            sizes[name] = (lost.stored.rows or 0, gained.stored.rows or 0)
            gaining, losing = (one if one.stored.rows else None for one in (gained, lost))
            changes[name] = Change(gaining, losing)
    return lake.commit(changes, Commit(said.kind, said.update, said.positions, sizes)).version


def _beyond(lake: Lake, one: Relation, other: Relation) -> Relation:
    """The rows of a relation beyond those of another, as bags, held."""
    query, types = sql.minus_all(*((rows.stored.name, rows.types) for rows in (one, other)))
    stored = lake.database.table(query, types, [one.stored.name, other.stored.name])
    return Relation(stored, one.columns)


def needs_compaction(lake: Lake) -> bool:
    """Whether some table has many files, or many deleted rows."""
    files, share = lake.catalog.worst(FEWEST_DELETED)
    return files > MOST_FILES or share > REWRITE_SHARE


def compacted(lake: Lake, keep_days: float | None) -> None:
    """Writes files with many deleted rows anew, puts small ones together; who calls it holds the place's lock.

    Args:
        lake: the lake.
        keep_days: older snapshots are let go of, and files that only these had; None keeps all.

    Raises:
        InputError: SM405.
    """
    tables = sorted(lake.catalog.tables(lake.catalog.newest()))
    with lake.attached() as run:
        for name in tables:
            rewrite = "CALL ducklake_rewrite_data_files('lake', ?, schema => 'main', delete_threshold => ?)"
            run(rewrite, [name, REWRITE_SHARE])
        run("CALL ducklake_merge_adjacent_files('lake')")
        if keep_days is not None:
            age = int(keep_days * 86_400_000_000)
            run("CALL ducklake_expire_snapshots('lake', older_than => now() - to_microseconds(?))", [age])
            run("CALL ducklake_cleanup_old_files('lake', older_than => now() - to_microseconds(?))", [age])
        # Of commits that died: nobody else writes now, so that no file is on its way into the catalog.
        run("CALL ducklake_delete_orphaned_files('lake', cleanup_all => true)")
