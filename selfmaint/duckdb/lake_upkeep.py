"""What is done with a lake's snapshots: they are listed, returned to, and let go of."""

from __future__ import annotations

# ruff: noqa: S608 - names are quoted, values are bound
from dataclasses import dataclass
from datetime import datetime

from selfmaint.duckdb.database import Relation
from selfmaint.duckdb.lake import META, Change, Lake, LakeTable
from selfmaint.errors import Code, input_error
from selfmaint.store.lake_place import Commit

REWRITE_SHARE = 0.1
"""A file of which a larger share of the rows is deleted is written anew."""

MOST_FILES = 100
"""A table of more files is compacted after a commit."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A state of the lake.

    Attributes:
        version: its number.
        at: when it was committed.
        said: what was committed; None for the lake's own upkeep.
        files: how many files it added.
        size: how many bytes these have.
    """

    version: int
    at: datetime
    said: Commit | None
    files: int
    size: int


@dataclass(frozen=True, slots=True)
class Occupied:
    """What the files of a lake take up.

    Attributes:
        files: how many belong to the newest snapshot.
        size: how many bytes these have.
        deleted: how many of their rows are deleted.
        all_files: how many there are for any snapshot.
        all_size: how many bytes these have.
    """

    files: int
    size: int
    deleted: int
    all_files: int
    all_size: int


def history(lake: Lake) -> list[Snapshot]:
    """The snapshots that there are, oldest first."""
    added = " UNION ALL ".join(
        f"SELECT begin_snapshot, file_size_bytes FROM {META}.ducklake_{kind}_file"
        for kind in ("data", "delete")
    )
    rows = lake.query(
        f"""SELECT s.snapshot_id, epoch_us(s.snapshot_time::TIMESTAMPTZ), count(f.begin_snapshot),
        coalesce(sum(f.file_size_bytes), 0)
        FROM {META}.ducklake_snapshot s LEFT JOIN ({added}) f ON f.begin_snapshot = s.snapshot_id
        GROUP BY ALL ORDER BY 1"""
    )
    said = dict(lake.commits())
    first = min(said, default=0)  # those before are of a lake that is being made
    return [
        Snapshot(int(v), datetime.fromtimestamp(at / 1e6).astimezone(), said.get(int(v)), int(n), int(size))
        for v, at, n, size in rows
        if v >= first
    ]


def undone(lake: Lake, version: int, said: Commit) -> int:
    """Commits the contents that all tables had at an earlier snapshot; who calls it holds the place's lock.

    Raises:
        InputError: SM408 a table was made since.
    """
    now = lake.newest()
    if lake.tables(version) != lake.tables(now):
        message = f"other tables than now made up the lake at snapshot {version}"
        raise input_error(Code.LAKE, message, "`selfmaint import` brings views in")
    changes, sizes = {}, {}
    for name in sorted(lake.tables(now)):
        old, new = (lake.rows(LakeTable(lake, name, v)) for v in (version, now))
        gained, lost = _beyond(lake, old, new), _beyond(lake, new, old)
        sizes[name] = (lost.stored.rows or 0, gained.stored.rows or 0)
        changes[name] = Change(*(one if one.stored.rows else None for one in (gained, lost)))
    kept = {name: change for name, change in changes.items() if any(sizes[name])}
    told = {name: pair for name, pair in sizes.items() if any(pair)}
    return lake.commit(kept, Commit(said.kind, said.update, said.positions, told))


def _beyond(lake: Lake, one: Relation, other: Relation) -> Relation:
    """The rows of a relation beyond those of another, as bags, held."""
    query = f"FROM {one.stored.name} EXCEPT ALL FROM {other.stored.name}"
    return Relation(lake.database.held(query, one.stored.types), one.columns)


def occupied(lake: Lake) -> Occupied:
    """What the lake's files take up."""
    parts = " UNION ALL ".join(
        f"SELECT end_snapshot IS NULL AS now, file_size_bytes AS size, {gone} AS gone FROM {META}.ducklake_{kind}_file"
        for kind, gone in (("data", "0"), ("delete", "delete_count"))
    )
    ((files, size, gone, all_files, all_size),) = lake.query(
        f"""SELECT count(*) FILTER (now), coalesce(sum(size) FILTER (now), 0), coalesce(sum(gone) FILTER (now), 0),
        count(*), coalesce(sum(size), 0) FROM ({parts})"""
    )
    return Occupied(int(files), int(size), int(gone), int(all_files), int(all_size))


def needs_compaction(lake: Lake) -> bool:
    """Whether some table has many files, or many deleted rows, as `compacted` would find them."""
    deleted = f"""(SELECT data_file_id, sum(delete_count) AS gone FROM {META}.ducklake_delete_file
        WHERE end_snapshot IS NULL GROUP BY data_file_id)"""
    rows = lake.query(
        f"""SELECT count(*), sum(f.record_count), sum(coalesce(d.gone, 0)) FROM {META}.ducklake_data_file f
        LEFT JOIN {deleted} d USING (data_file_id) WHERE f.end_snapshot IS NULL GROUP BY f.table_id"""
    )
    return any(files > MOST_FILES or gone > REWRITE_SHARE * number for files, number, gone in rows)


def compacted(lake: Lake, keep_days: float | None) -> None:
    """Writes files with many deleted rows anew, puts small ones together; who calls it holds the place's lock.

    Args:
        lake: the lake.
        keep_days: older snapshots are let go of, and files that only these had; None keeps all.
    """
    for name in sorted(lake.tables(lake.newest())):
        lake.query(
            "CALL ducklake_rewrite_data_files('lake', ?, schema => 'main', delete_threshold => ?)",
            [name, REWRITE_SHARE],
        )
    lake.query("CALL ducklake_merge_adjacent_files('lake')")
    if keep_days is not None:
        lake.query(
            "CALL ducklake_expire_snapshots('lake', older_than => now() - to_microseconds(?))",
            [int(keep_days * 86_400_000_000)],
        )
        lake.query("CALL ducklake_cleanup_old_files('lake', cleanup_all => true)")
