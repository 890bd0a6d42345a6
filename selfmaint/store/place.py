"""Where a store is on this machine: its folder, and the lock of who writes to it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar, Self

from datalog.diagnostics import Diagnostic
from selfmaint.errors import BusyError, Code, first_line, input_error

_LONGEST_HOLDER = 500
_LOCK = "writer.lock"


@dataclass(frozen=True, slots=True)
class Place:
    """The folder of a store.

    Attributes:
        kind: what the store is, for people.
        folder: the folder.
        version: the snapshot that is read; by default the newest.
        home: where the folder will be, if it is being made elsewhere.
    """

    kind: ClassVar[str] = "store"

    folder: Path
    version: int | None = None
    home: Path | None = None

    @property
    def new(self) -> Self:
        """Where a new store is made, before it is put in its place as a whole."""
        raise NotImplementedError

    @property
    def elsewhere(self) -> dict[str, Path]:
        """Tables that are not in the folder; a new store takes them as they are."""
        return {}

    def where(self, table: str) -> Path:
        """Where a table is, for people."""
        return self.folder

    def require_none(self) -> None:
        """Refuses to make a store where something is.

        Raises:
            InputError: SM405.
        """
        if self.folder.exists() and (not self.folder.is_dir() or any(self.folder.iterdir())):
            message = f"there is something at `{self.folder}` already"
            hint = f"`selfmaint import` brings views into a {self.kind}; give a new one another folder"
            raise input_error(Code.WRITE_FAILED, message, hint, "nothing was written")

    def cleared(self) -> None:
        """Leaves nothing of a store that was being made here when its process died."""
        for left in self.folder.iterdir():
            if left.name != _LOCK:
                shutil.rmtree(left) if left.is_dir() else left.unlink()

    def published(self, at: Self) -> None:
        """Puts a new store in its place."""
        if at.folder.exists():
            at.folder.rmdir()
        self.folder.rename(at.folder)

    @contextlib.contextmanager
    def writing(self, what: str) -> Iterator[None]:
        """Holds the right to write; it ends with the process.

        Args:
            what: what is done, for who finds it held.

        Raises:
            InputError: SM405 another process holds it (`BusyError`), or the folder cannot be written to.
        """
        try:
            descriptor = os.open(self.folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as failure:
            message = f"the {self.kind} `{self.folder}` cannot be written to: {first_line(failure)}"
            raise input_error(Code.WRITE_FAILED, message, note="nothing was written") from failure
        with contextlib.closing(os.fdopen(descriptor, "r+", encoding="utf-8", errors="replace")) as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                held = lock.read(_LONGEST_HOLDER).strip() or "another process"
                message = f"the {self.kind} `{self.folder}` is being written to by {held}"
                hint = "wait until it has ended"
                raise BusyError(
                    [Diagnostic(Code.WRITE_FAILED, message, hint=hint, note="nothing was written")]
                ) from None
            except OSError as failure:
                message = f"the {self.kind} `{self.folder}` cannot be locked: {first_line(failure)}"
                hint = "keep it on a file system that has locks"
                raise input_error(Code.WRITE_FAILED, message, hint, "nothing was written") from failure
            _sign(lock.fileno(), what)
            with self._held(what):
                yield

    def _held(self, what: str) -> contextlib.AbstractContextManager[None]:
        """What else is to be held."""
        return contextlib.nullcontext()


def _sign(descriptor: int, what: str) -> None:
    """Says in the lock's file who holds it."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    program = Path(sys.argv[0]).name or "python"
    said = f"process {os.getpid()} on {socket.gethostname()} ({program}: {what}, since {now})\n"
    with contextlib.suppress(
        OSError
    ):  # on a full disk nobody is told, and what is written then fails by itself
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, said.encode(), 0)
