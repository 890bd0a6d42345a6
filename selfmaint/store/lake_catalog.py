"""A lake's catalog, read: which snapshots there are, and which files make up a table at one.

The tables are those of DuckLake's specification 1.0. They are read here, and not through DuckDB, because it reads each
of them in a transaction of its own, and a large one in several: a commit in between can hide that rows are deleted.
"""

from __future__ import annotations

# ruff: noqa: S608 - names are this module's own, values are bound
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from selfmaint.errors import Code, input_error
from selfmaint.store.lake_server import Run
from selfmaint.store.place import LakePlace
from selfmaint.store.stored_tables import Commit, DataFile, Occupied, Snapshot, TableFiles

_TYPES = {
    "boolean": "BOOLEAN",
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "float32": "FLOAT",
    "float64": "DOUBLE",
    "varchar": "VARCHAR",
    "blob": "BLOB",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "timestamptz": "TIMESTAMP WITH TIME ZONE",
}
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
HELPERS = "helpers"
"""The schema of the tables that readers are not shown."""
_NOW = "begin_snapshot <= :at AND (end_snapshot IS NULL OR end_snapshot > :at)"


class LakeCatalog:
    """The catalog of a lake, read in one transaction for each question."""

    def __init__(self, place: LakePlace) -> None:
        """Nothing is read yet.

        Raises:
            InputError: SM408 there is none.
        """
        self.place = place
        self._server = place.catalog
        place.require_catalog()

    def newest(self) -> int:
        """The newest snapshot."""
        with self._server.reading() as run:
            return _newest(run)

    def version(self) -> int:
        """The snapshot that is to be read: that of its place, or the newest.

        Raises:
            InputError: SM408 there is no such snapshot, or no more.
        """
        with self._server.reading() as run:
            wanted = self.place.version
            if wanted is None:
                return _newest(run)
            query = "SELECT 1 FROM ducklake_snapshot WHERE snapshot_id = :wanted"
            found = run(query, {"wanted": wanted})
        if not found:
            message = f"the lake `{self.place.folder}` has no snapshot {wanted}"
            raise input_error(Code.LAKE, message, "`selfmaint history` lists those that there are")
        return wanted

    def tables(self, version: int) -> frozenset[str]:
        """The names of the tables at a snapshot."""
        return self._names(version, ("main", HELPERS))

    def hidden(self, version: int) -> frozenset[str]:
        """Of the tables at a snapshot those that readers are not shown."""
        return self._names(version, (HELPERS,))

    def _names(self, version: int, schemas: Sequence[str]) -> frozenset[str]:
        query = f"""SELECT table_name FROM ducklake_table WHERE {_NOW} AND schema_id IN
            (SELECT schema_id FROM ducklake_schema WHERE schema_name IN ({_listed(schemas)}))"""
        with self._server.reading() as run:
            return frozenset(name for (name,) in run(query, {"at": version}))

    def table(self, name: str, version: int, schemas: Sequence[str] = ("main", HELPERS)) -> TableFiles:
        """A table at a snapshot; its name is in one of the schemas.

        Raises:
            InputError: SM103 there is none; SM408 a column of a type that is not written here.
        """
        with self._server.reading() as run:
            found = run(
                f"""SELECT t.table_id, t.path, t.path_is_relative, s.path, s.path_is_relative FROM ducklake_table t
                JOIN ducklake_schema s USING (schema_id) WHERE t.table_name = :name
                AND s.schema_name IN ({_listed(schemas)})
                AND table_id IN (SELECT table_id FROM ducklake_table WHERE {_NOW})""",
                {"name": name, "at": version},
            )
            if not found:
                message = f"`{name}`: the lake `{self.place.folder}` has no such table"
                hint = f"`selfmaint import WAREHOUSE.toml --view {name}`"
                raise input_error(Code.MISSING_CONTENTS, message, hint)
            number, *parts = found[0]
            folder = self._folder(parts)
            columns = self._columns(run, number, version)
            return TableFiles(
                name,
                version,
                tuple(column for column, _ in columns),
                tuple(self._type(name, column, kind) for column, kind in columns),
                _files(run, number, version, folder),
                _spreads(run, number),
                _never_null(run, number),
            )

    def _folder(self, parts: Sequence[Any]) -> str:
        """The folder of a table, from its path and its schema's, each with whether it is relative."""
        table, is_in_schema, schema, is_in_lake = parts
        above = _joined(self.place.files, schema) if is_in_lake else schema
        return _joined(above, table) if is_in_schema else str(table)

    def _columns(self, run: Run, number: int, version: int) -> list[tuple[str, str]]:
        query = f"""SELECT column_name, column_type FROM ducklake_column
            WHERE table_id = :number AND parent_column IS NULL AND {_NOW} ORDER BY column_order"""
        return [(str(name), str(kind)) for name, kind in run(query, {"number": number, "at": version})]

    def _type(self, table: str, column: str, kind: str) -> str:
        decimal = _DECIMAL.fullmatch(kind)
        found = _TYPES.get(kind) if decimal is None else f"DECIMAL({decimal[1]},{decimal[2]})"
        if found is None:
            message = (
                f"column `{column}` of `{table}` in the lake `{self.place.folder}` has the type `{kind}`"
            )
            raise input_error(Code.LAKE, message, f"`selfmaint import` brings `{table}` in anew")
        return found

    def inlined_commits(self) -> list[tuple[int, Commit]]:
        """What was committed, as far as it lies in the catalog and not in files, with the snapshots."""
        query = """SELECT i.table_name FROM ducklake_inlined_data_tables i JOIN ducklake_table t USING (table_id)
            JOIN ducklake_schema s USING (schema_id) WHERE t.table_name = 'commits' AND s.schema_name = 'selfmaint'"""
        found = []
        with self._server.reading() as run:
            for (name,) in run(query, {}):
                rows = run(f'SELECT version, said FROM "{name}" WHERE end_snapshot IS NULL', {})
                found += [(int(version), Commit.read(_as_text(said))) for version, said in rows]
        return found

    def history(self, commits: Sequence[tuple[int, Commit]]) -> list[Snapshot]:
        """The snapshots that there are, oldest first."""
        said = dict(commits)
        first = min(said, default=0)  # those before are of a lake that is being made
        added = " UNION ALL ".join(
            f"SELECT begin_snapshot, file_size_bytes FROM ducklake_{kind}_file" for kind in ("data", "delete")
        )
        with self._server.reading() as run:
            rows = run(
                f"""SELECT s.snapshot_id, s.snapshot_time, count(f.begin_snapshot), coalesce(sum(file_size_bytes), 0)
                FROM ducklake_snapshot s LEFT JOIN ({added}) f ON f.begin_snapshot = s.snapshot_id
                WHERE s.snapshot_id >= :first GROUP BY 1, 2 ORDER BY 1""",
                {"first": first},
            )
        return [Snapshot(v, _time(at), said.get(v), number, size) for v, at, number, size in rows]

    def occupied(self) -> Occupied:
        """What the lake's files take up."""
        parts = " UNION ALL ".join(
            f"SELECT CASE WHEN end_snapshot IS NULL THEN 1 ELSE 0 END AS now, file_size_bytes AS size, {gone} AS gone "
            f"FROM ducklake_{kind}_file"
            for kind, gone in (("data", "0"), ("delete", "delete_count"))
        )
        with self._server.reading() as run:
            (found,) = run(
                f"SELECT sum(now), sum(now * size), sum(now * gone), count(*), sum(size) FROM ({parts}) AS f",
                {},
            )
        return Occupied(*(int(number or 0) for number in found))

    def worn(self, files: int, share: float, fewest: int) -> frozenset[str]:
        """The tables of more files than that, or of which a larger share of rows is deleted, and these are not few."""
        with self._server.reading() as run:
            rows = run(
                """SELECT min(t.table_name), count(*), sum(f.record_count), sum(coalesce(d.gone, 0))
                FROM ducklake_data_file f JOIN ducklake_table t ON t.table_id = f.table_id AND t.end_snapshot IS NULL
                LEFT JOIN (SELECT data_file_id, sum(delete_count) AS gone FROM ducklake_delete_file
                WHERE end_snapshot IS NULL GROUP BY 1) d USING (data_file_id)
                WHERE f.end_snapshot IS NULL GROUP BY f.table_id""",
                {},
            )
        return frozenset(
            name
            for name, of, number, gone in rows
            if of > files or (gone >= fewest and int(gone) > share * int(number))
        )


def _listed(schemas: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in schemas)


def _newest(run: Run) -> int:
    ((found,),) = run("SELECT max(snapshot_id) FROM ducklake_snapshot", {})
    if found is None:
        raise ValueError("it has no snapshot")
    return int(found)


def _joined(folder: str, path: str) -> str:
    """A path or URL in a folder; both may have a slash at their ends."""
    return f"{folder.rstrip('/')}/{path}"


def _files(run: Run, number: int, version: int, folder: str) -> tuple[DataFile, ...]:
    given = {"number": number, "at": version}
    deleted = {
        of: (path if not is_relative else _joined(folder, path), count, latest)
        for of, path, is_relative, count, latest in run(
            f"""SELECT data_file_id, path, path_is_relative, delete_count, partial_max FROM ducklake_delete_file
            WHERE table_id = :number AND {_NOW}""",
            given,
        )
    }
    found = []
    for file, path, is_relative, count, latest in run(
        f"""SELECT data_file_id, path, path_is_relative, record_count, partial_max FROM ducklake_data_file
        WHERE table_id = :number AND {_NOW} ORDER BY data_file_id""",
        given,
    ):
        gone, gone_count, gone_latest = deleted.get(file, (None, 0, None))
        found.append(
            DataFile(
                _joined(folder, path) if is_relative else path,
                count - gone_count,
                latest is not None and latest > version,
                gone,
                gone_latest is not None and gone_latest > version,
            )
        )
    return tuple(found)


_STATISTICS = """FROM ducklake_column c JOIN ducklake_table_column_stats s USING (table_id, column_id)
    WHERE c.table_id = :number AND c.parent_column IS NULL AND c.end_snapshot IS NULL"""


def _spreads(run: Run, number: int) -> dict[int, int]:
    query = f"""SELECT c.column_order, s.min_value, s.max_value {_STATISTICS} AND c.column_type LIKE 'int%'
        AND s.min_value IS NOT NULL AND s.max_value IS NOT NULL"""
    rows = run(query, {"number": number})
    return {place - 1: int(most) - int(least) + 1 for place, least, most in rows}


def _never_null(run: Run, number: int) -> frozenset[int]:
    query = f"SELECT c.column_order {_STATISTICS} AND NOT s.contains_null"
    return frozenset(place - 1 for (place,) in run(query, {"number": number}))


def _time(said: str | datetime) -> datetime:
    return (said if isinstance(said, datetime) else datetime.fromisoformat(said)).astimezone()


def _as_text(said: str | bytes) -> str:
    return said.decode() if isinstance(said, bytes) else said
