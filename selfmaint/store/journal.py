"""The journal of a switch of contents: what is under way, on disk, so that a crash can be put right.

    writing    new contents are being written        -> recovery removes them
    switching  some paths are new, some are old      -> recovery puts the old ones back
    done       every path is new                     -> recovery removes the old ones

While a switch is under way, each path has the neighbours `<path>.new-<id>` and `<path>.old-<id>`. One process
at a time writes to the paths of a directory: it locks the directory, and the lock ends with the process.

A journal is believed only as far as it is one that this module writes: of its form, in its place, and of paths that
are the warehouse's own. Any other is refused before anything is touched, for to settle it is to rename and to remove.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import re
import shutil
import stat
from collections.abc import Collection, Iterable, Iterator
from enum import Enum, unique
from pathlib import Path
from typing import Any

from msgspec import Struct

from datalog.diagnostics import Diagnostic, Severity
from selfmaint.errors import Code, InputError, input_error

_LOG = logging.getLogger(__name__)
_PREFIX = ".selfmaint-journal-"
_NAME = re.compile(rf"{re.escape(_PREFIX)}([0-9a-f]{{12}})\.json(?:\.draft)?")
_LONGEST_BYTES = 4 * 2**20


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


class Recovered(Struct, frozen=True):
    """One unfinished set of writes, and what became of it."""

    outcome: Outcome
    paths: tuple[Path, ...]


class Move(Struct, frozen=True):
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

    @property
    def part(self) -> Path:
        """Where the one file of new contents waits while its directory goes."""
        return self.new.with_name(f"{self.new.name}.part")

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


class Journal(Struct, frozen=True):
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
        try:
            with draft.open("w", encoding="utf-8") as out:
                json.dump({"state": state.value, "moves": entries}, out)
                out.flush()
                os.fsync(out.fileno())
            draft.replace(self.file)
        except OSError:
            with contextlib.suppress(OSError):
                draft.unlink(missing_ok=True)
            raise
        with contextlib.suppress(OSError):
            sync(self.file.parent)

    @classmethod
    def read(cls, file: Path, known: Collection[Path]) -> tuple[State, Journal]:
        """The state on disk, and the journal.

        Its paths are relative to it: all may have been moved. A path that is not `known` is refused.

        Raises:
            InputError: SM407 it is none that was written for these paths.
        """
        try:
            state, entries = _contents(file)
            moves = tuple(_move(file, entry) for entry in entries)
        except (ValueError, RecursionError) as error:
            raise _refused(file, f"it is no journal of this program: {error}") from None
        strange = sorted({str(move.path) for move in moves if move.path not in known})
        if strange:
            raise _refused(file, f"it names {', '.join(f'`{path}`' for path in strange)}")
        return state, cls(file, moves)

    def undo(self) -> tuple[Path, ...]:
        """The old contents in place, and nothing left of the new ones but what is returned."""
        for move in reversed(self.moves):
            move.undo()
        with contextlib.suppress(OSError):
            # Should something stay behind, nobody may undo again over what is written later.
            self.record(State.WRITING)
        return self.discard()

    def discard(self) -> tuple[Path, ...]:
        """Nothing left of new contents that were not switched to, but what is returned."""
        return self._clear(path for move in self.moves for path in (move.new, move.part))

    def complete(self) -> tuple[Path, ...]:
        """Nothing left of the old contents, but what is returned."""
        return self._clear(path for move in self.moves for path in (move.old, move.new, move.part))

    def settle(self, state: State) -> tuple[Path, ...]:
        """Puts right what was left in a state; what cannot be removed is returned."""
        match state:
            case State.WRITING:
                return self.discard()
            case State.SWITCHING:
                return self.undo()
            case State.DONE:
                return self.complete()

    def _clear(self, leftovers: Iterable[Path]) -> tuple[Path, ...]:
        """Removes paths, and then the journal; what cannot be removed is said, and left to the next run."""
        left = tuple(path for path in leftovers if not _removed(path))
        if not left and not _removed(self.file):
            left = (self.file,)
        for path in left:
            found = Diagnostic(
                Code.LEFT_BEHIND,
                f"`{path}` cannot be removed",
                note="the views are in order; the next run tries to remove it again",
                hint="see to its rights, or remove it by hand",
                severity=Severity.WARNING,
            )
            _LOG.warning("%s: %s", found.message, found.note, extra={"diagnostic": found})
        return left


def _contents(file: Path) -> tuple[State, list[Any]]:
    """The state and the entries that a journal's text holds."""
    found = file.lstat()
    if not stat.S_ISREG(found.st_mode) or found.st_size > _LONGEST_BYTES:
        raise ValueError("it is no plain file of some kilobytes")
    text = json.loads(file.read_text(encoding="utf-8"))
    match text:
        case {"state": str(state), "moves": [_, *_] as entries} if len(text) == 2:  # noqa: PLR2004
            return State(state), entries
        case _:
            raise ValueError("it has not the entries `state` and `moves`")


def _move(file: Path, entry: Any) -> Move:
    """One entry of a journal."""
    name = _NAME.fullmatch(file.name)
    match entry:
        case {"path": str(path), "existed": bool(existed), "id": str(id_)} if name and name[1] == id_:
            return Move(Path(os.path.normpath(file.parent / path)), existed, id_)
        case _:
            raise ValueError("an entry of `moves` has not the `path`, `existed` and `id` of the journal")


def _refused(file: Path, why: str) -> InputError:
    return input_error(
        Code.FOREIGN_JOURNAL,
        f"the journal `{file}` is not of these views: {why}",
        "run the command of the warehouse file that it was written for; if there is none, remove it",
        "nothing was touched",
    )


def is_under_way(directories: Iterable[Path]) -> bool:
    """Whether a journal is in one of the directories: of a live process, or of one that died."""
    return any(True for directory in directories for _ in directory.glob(f"{_PREFIX}*"))


def settle(directories: Iterable[Path], known: Collection[Path]) -> list[Recovered]:
    """Puts right every unfinished switch whose journal is in one of the directories, which must be locked.

    A journal that names a path which is not one of the `known` of the warehouse is refused.

    Raises:
        InputError: SM407 a journal that was not written for these paths; nothing was touched.
    """
    found = []
    here = sorted(directories)
    drafts = [draft for directory in here for draft in directory.glob(f"{_PREFIX}*.draft")]
    files = [file for directory in here for file in sorted(directory.glob(f"{_PREFIX}*.json"))]
    for state, journal in [Journal.read(file, known) for file in files]:
        journal.settle(state)
        outcome = Outcome.COMPLETED if state is State.DONE else Outcome.UNDONE
        found.append(Recovered(outcome, tuple(move.path for move in journal.moves)))
    for draft in drafts:
        if _NAME.fullmatch(draft.name) and draft.is_file() and not draft.is_symlink():
            _removed(draft)
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


def _removed(path: Path) -> bool:
    """Removes what is at a path; whether nothing is there now."""
    try:
        remove(path)
    except OSError:
        return False
    return True


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
