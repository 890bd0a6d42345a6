"""New contents of several views, written so that all of them change, or none.

Each view's new contents are written beside the old ones. Only when all are on disk are they switched to, by
renaming, under a journal: whatever fails, and whenever the process dies, the old contents are put back,
unless every path had been switched. A reader may see some views old and some new while the renames last.

New rows are stored in the order of the old ones, as the statistics of Parquet files tell it.
"""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, final

from datalog.diagnostics import Diagnostic
from selfmaint.errors import Code, SelfmaintError, first_line
from selfmaint.store.formats import Format, data_files, format_of
from selfmaint.store.journal import (
    Journal,
    Move,
    Recovered,
    State,
    is_under_way,
    locked,
    remove,
    settle,
    sync,
    sync_tree,
)

if TYPE_CHECKING:
    import pyarrow.parquet as pq


class Write(Protocol):
    """Writes some rows in a format into a new directory, which must not exist yet."""

    def __call__(self, path: Path, format_: Format, order: str | None, /, *, single: bool = False) -> None:
        """Whatever the engine fails with is an `OSError` or an error of this package.

        `order` is, of Parquet, the column in whose order the rows are written; `single` asks for one file.
        """
        ...


@final
class StagedWrites:
    """New contents for several paths, switched to together.

        with StagedWrites(paths) as writes:
            for path, write in new_contents:
                writes.add(path, write)
            writes.switch()

    Leaving the block without `switch` leaves the old contents in place and nothing else. After `switch` the
    files that relations are computed from are gone: release kept relations before the paths are read again.
    """

    def __init__(self, paths: Iterable[Path], known: Iterable[Path] = ()) -> None:
        """Nothing is done yet.

        `known` are other paths of the warehouse, which unfinished writes may be of.
        """
        self._paths = sorted({_real(path) for path in paths})
        self._known = {*self._paths, *(_real(path) for path in known)}
        self._switching = False
        self._moves: dict[Path, Move] = {}
        self._written: set[Path] = set()
        self._journal: Journal | None = None
        self._locks = contextlib.ExitStack()

    def __enter__(self) -> StagedWrites:
        """Locks the directories and puts right what an earlier process left unfinished.

        Raises:
            SelfmaintError: SM405 another process is writing, or a directory cannot be written to; SM407 a
                journal of unfinished writes that is not of these paths.
        """
        directories = {path.parent for path in self._paths}
        with contextlib.ExitStack() as held, _failures("new contents cannot be written"):
            for directory in directories:
                directory.mkdir(parents=True, exist_ok=True)
            held.enter_context(locked(directories))
            settle(directories, self._known)
            run = uuid.uuid4().hex[:12]
            self._moves = {path: Move(path, path.exists(), run) for path in self._paths}
            if self._moves:
                self._journal = Journal.beside(self._moves.values())
                self._journal.record(State.WRITING)
            self._locks = held.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Removes what was written but not switched to, and unlocks."""
        with self._locks:
            self._undo()

    def add(self, path: Path, write: Write, format_: Format | None = None) -> None:
        """Writes new contents for one of the paths, beside the present ones; Parquet in the order that these are in.

        The path is a directory or a single file. What is written is all rows of the new contents, or of a delta if the
        path holds one; the format is that of the present contents by default, or what the path's name says.

        Raises:
            SelfmaintError: SM405 the contents cannot be written.
            InputError: SM103 or SM104, stored contents that turn out to be unreadable.
        """
        move = self._moves[_real(path)]
        with _failures(f"the new contents of `{move.path}` cannot be written"):
            order = order_of(move.path) if move.path.is_dir() else None
            wanted = format_ or _present_format(move.path)
            write(move.new, wanted, order, single=move.path.is_file())
            if move.path.is_file():
                _become_file(move)
            sync_tree(move.new)
        self._written.add(move.path)

    def switch(self) -> None:
        """Puts all new contents in place of the old ones.

        Raises:
            SelfmaintError: SM405 a rename failed; every old contents is in place.
        """
        unwritten = set(self._paths) - self._written
        if unwritten:
            raise ValueError(f"nothing was written for {', '.join(sorted(map(str, unwritten)))}")
        if self._journal is None:
            return
        self._switching = True
        try:
            self._journal.record(State.SWITCHING)
            for move in self._journal.moves:
                move.switch()
            for directory in {move.path.parent for move in self._journal.moves}:
                sync(directory)
            self._journal.record(State.DONE)
        except OSError as failure:
            self._undo()
            raise _write_failed("the new contents cannot be switched to", failure) from failure
        journal, self._journal = self._journal, None
        journal.complete()

    def _undo(self) -> None:
        """The old contents in place."""
        journal, self._journal = self._journal, None
        if journal is None:
            return
        try:
            journal.settle(State.SWITCHING if self._switching else State.WRITING)
        except OSError as failure:
            raise _write_failed(
                "the old contents cannot be put back",
                failure,
                note=f"some contents lie beside their places; `{journal.file}` says which",
                hint="mend what the system reports; the next run then puts them back",
            ) from failure


def recover(paths: Iterable[Path]) -> list[Recovered]:
    """Puts right what earlier processes left unfinished beside some views' paths.

    Returns:
        Each unfinished set of writes and what became of it; nothing if all is well.

    Raises:
        SelfmaintError: SM405 another process is writing just now, or something cannot be put right; SM407 a
            journal that was not written for these paths: nothing was touched.
    """
    known = {_real(path) for path in paths}
    directories = {path.parent for path in known}
    present = {directory for directory in directories if directory.is_dir()}
    if not is_under_way(present):
        return []
    with _failures("unfinished writes cannot be put right"), locked(present):
        return settle(present, known)


def _real(path: str | Path) -> Path:
    """The path without links; of links that lead round in a circle, the path itself."""
    return Path(os.path.realpath(path))


def _present_format(path: Path) -> Format:
    """The format of what is at a path, or else the one that its name says, or Parquet."""
    if path.is_dir() and not data_files(path):
        return Format.PARQUET
    return format_of(path.as_uri() if not path.exists() else str(path))


def _become_file(move: Move) -> None:
    """Puts the one data file of the new contents in the place of their directory."""
    (file,) = data_files(move.new)
    file.replace(move.part)
    remove(move.new)
    move.part.replace(move.new)


@contextlib.contextmanager
def _failures(what: str) -> Iterator[None]:
    """What the system refuses, as an error of this package."""
    try:
        yield
    except BlockingIOError as failure:
        raise _write_failed(
            f"{what}: another process is writing to the same directory", hint="wait until it has ended"
        ) from failure
    except OSError as failure:
        raise _write_failed(what, failure) from failure


def _write_failed(
    what: str,
    failure: Exception | None = None,
    note: str | None = "the old contents are in place",
    hint: str | None = None,
) -> SelfmaintError:
    message = what if failure is None else f"{what}: {first_line(failure)}"
    return SelfmaintError([Diagnostic(code=Code.WRITE_FAILED, message=message, note=note, hint=hint)])


MOST_FILES = 1000
"""Of more files the statistics are not read."""

MOST_OVERLAPS = 0.25
"""The part of the row groups that may overlap the next one in a column that is taken to be in order."""


def order_of(path: Path) -> str | None:
    """The column in whose order the Parquet files under a local directory are, if there is one."""
    import pyarrow as pa  # noqa: PLC0415 - not where nothing is written
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        footers = [pq.ParquetFile(file).metadata for file in data_files(path)[:MOST_FILES]]
    except (OSError, pa.ArrowException):
        return None
    groups = [footer.row_group(i) for footer in footers for i in range(footer.num_row_groups)]
    names = footers[0].schema.names if footers else []
    return next((name for name in names if is_in_order(ranges_of(groups, name))), None)


def ranges_of(groups: Sequence[pq.RowGroupMetaData], name: str) -> list[tuple[Any, Any]]:
    """The smallest and the largest value of a column in each row group; nothing where one does not say."""
    ranges = []
    for group in groups:
        columns = (group.column(i) for i in range(group.num_columns))
        found = next((c.statistics for c in columns if c.path_in_schema == name), None)
        ends = range_of(found)
        if ends is None:
            return []
        ranges.append(ends)
    return ranges


def range_of(statistics: pq.Statistics | None) -> tuple[Any, Any] | None:
    """The smallest and the largest value, if they are told and Python has such values: no day before the year 1."""
    if statistics is None or not statistics.has_min_max:
        return None
    try:
        return statistics.min, statistics.max
    except (OverflowError, ValueError):
        return None


def is_in_order(ranges: Sequence[tuple[Any, Any]]) -> bool:
    """Whether the row groups, one after the other, hold ever larger values."""
    overlaps = sum(high > low for (_, high), (low, _) in pairwise(sorted(ranges)))
    return len(ranges) > 1 and overlaps <= MOST_OVERLAPS * (len(ranges) - 1)
