"""The journal of a switch of contents: what is under way, on disk, so that a crash can be put right.

    writing    new contents are being written        -> recovery removes them
    switching  some paths are new, some are old      -> recovery puts the old ones back
    done       every path is new                     -> recovery removes the old ones

While a switch is under way, each path has the neighbours `<path>.new-<id>` and `<path>.old-<id>`. One process
at a time writes to the paths of a directory: it locks the directory, and the lock ends with the process.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum, unique
from pathlib import Path

_LOG = logging.getLogger(__name__)
_PREFIX = ".selfmaint-journal-"


@unique
class State(Enum):
    """How far a switch has come."""

    WRITING = "writing"
    SWITCHING = "switching"
    DONE = "done"


@unique
class Outcome(Enum):
    """What recovery did about writes that had not ended."""

    UNDONE = "undone"
    """The old contents are in place."""
    COMPLETED = "completed"
    """The new contents are in place."""


@dataclass(frozen=True, slots=True)
class Recovered:
    """One unfinished set of writes, and what became of it."""

    outcome: Outcome
    paths: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Move:
    """One view's contents: where they are, where the new ones wait, and where the old ones go."""

    path: Path
    existed: bool
    id: str

    @property
    def new(self) -> Path:
        """Where the new contents are written."""
        return self.path.with_name(f"{self.path.name}.new-{self.id}")

    @property
    def old(self) -> Path:
        """Where the old contents wait until every path is switched."""
        return self.path.with_name(f"{self.path.name}.old-{self.id}")

    def switch(self) -> None:
        """The new contents in place of the old ones."""
        if self.existed:
            self.path.rename(self.old)
        self.new.rename(self.path)

    def undo(self) -> None:
        """The old contents in place, from whatever state `switch` was left in."""
        if self.old.exists():
            if self.path.exists():
                self.path.rename(self.new)
            self.old.rename(self.path)
        elif not self.existed and self.path.exists() and not self.new.exists():
            self.path.rename(self.new)


@dataclass(frozen=True, slots=True)
class Journal:
    """What is under way, on disk."""

    file: Path
    moves: tuple[Move, ...]

    @classmethod
    def beside(cls, moves: Iterable[Move]) -> Journal:
        """A journal, not recorded yet, in the directory of the first of one or more moves."""
        first, *others = moves
        return cls(first.path.with_name(f"{_PREFIX}{first.id}.json"), (first, *others))

    def record(self, state: State) -> None:
        """Replaces the journal's text in one step; when this raises, the old text stands."""
        here = self.file.parent
        entries = [
            {"path": os.path.relpath(move.path, here), "existed": move.existed, "id": move.id}
            for move in self.moves
        ]
        draft = self.file.with_name(f"{self.file.name}.draft")
        with draft.open("w", encoding="utf-8") as out:
            json.dump({"state": state.value, "moves": entries}, out)
            out.flush()
            os.fsync(out.fileno())
        draft.replace(self.file)
        with contextlib.suppress(OSError):
            sync(self.file.parent)

    @classmethod
    def read(cls, file: Path) -> tuple[State, Journal]:
        """The state on disk, and the journal. Its paths are relative to it: all may have been moved."""
        text = json.loads(file.read_text(encoding="utf-8"))
        moves = tuple(
            Move(
                Path(os.path.normpath(file.parent / entry["path"])), bool(entry["existed"]), str(entry["id"])
            )
            for entry in text["moves"]
        )
        return State(text["state"]), cls(file, moves)

    def undo(self) -> None:
        """The old contents in place, and nothing left of the new ones."""
        for move in reversed(self.moves):
            move.undo()
        self._clear([move.new for move in self.moves])

    def complete(self) -> None:
        """Nothing left of the old contents."""
        self._clear([path for move in self.moves for path in (move.old, move.new)])

    def _clear(self, leftovers: Iterable[Path]) -> None:
        for path in leftovers:
            remove(path)
        self.file.unlink(missing_ok=True)


def is_under_way(directories: Iterable[Path]) -> bool:
    """Whether a journal is in one of the directories: of a live process, or of one that died."""
    return any(True for directory in directories for _ in directory.glob(f"{_PREFIX}*"))


def settle(directories: Iterable[Path]) -> list[Recovered]:
    """Puts right every unfinished switch whose journal is in one of the directories, which must be locked."""
    found = []
    for directory in sorted(directories):
        for draft in directory.glob(f"{_PREFIX}*.draft"):
            draft.unlink()
        for file in sorted(directory.glob(f"{_PREFIX}*.json")):
            state, journal = Journal.read(file)
            if state is State.DONE:
                journal.complete()
            else:
                journal.undo()
            outcome = Outcome.COMPLETED if state is State.DONE else Outcome.UNDONE
            found.append(Recovered(outcome, tuple(move.path for move in journal.moves)))
    return found


@contextlib.contextmanager
def locked(directories: Iterable[Path]) -> Iterator[None]:
    """Holds the right to write to the paths of some directories, where the file system has locks.

    Raises:
        BlockingIOError: another process, or another writer of this one, holds it.
    """
    with contextlib.ExitStack() as held:
        for directory in sorted(directories):
            descriptor = os.open(directory, os.O_RDONLY)
            held.callback(os.close, descriptor)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise
            except OSError:
                _LOG.warning("the file system of %s has no locks", directory, exc_info=True)
        yield


def remove(path: Path) -> None:
    """Removes a file or a directory with everything in it, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Has the operating system write a file, or a directory's entries, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(path: Path) -> None:
    """The same for everything under a path, and the path itself."""
    for below in path.rglob("*"):
        sync(below)
    sync(path)
