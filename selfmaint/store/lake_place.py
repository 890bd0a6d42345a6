"""Where a lake is on this machine: its catalog, its files, and the lock of who writes to it."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from datalog.diagnostics import Diagnostic
from selfmaint.errors import BusyError, Code, first_line, input_error
from selfmaint.store.lake_server import LakeServer, SqliteCatalog
from selfmaint.store.log_position import LogPosition

_LONGEST_HOLDER = 500


@dataclass(frozen=True, slots=True)
class LakePlace:
    """The folder of a lake.

    Attributes:
        folder: the folder.
        version: the snapshot that is read; by default the newest.
        home: where the folder will be, if it is being made elsewhere.
        server: where the catalog is, if not in the folder.
    """

    folder: Path
    version: int | None = None
    home: Path | None = None
    server: LakeServer | None = None

    @property
    def catalog(self) -> LakeServer:
        """The catalog."""
        return self.server or SqliteCatalog(self.folder / "catalog.sqlite", self.folder)

    @property
    def files(self) -> Path:
        """The folder of Parquet files."""
        return self.folder / "data"

    @property
    def new(self) -> LakePlace:
        """Where a new lake is made, before it is put in its place as a whole."""
        folder = self.folder.with_name(f"{self.folder.name}.new")
        return LakePlace(folder, home=self.folder, server=self.server and self.server.new())

    @contextlib.contextmanager
    def writing(self, what: str) -> Iterator[None]:
        """Holds the right to write; it ends with the process.

        Args:
            what: what is done, for who finds it held.

        Raises:
            InputError: SM405 another process holds it (`BusyError`), or the folder cannot be written to.
        """
        file = self.folder / "writer.lock"
        try:
            descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as failure:
            message = f"the lake `{self.folder}` cannot be written to: {first_line(failure)}"
            raise input_error(Code.WRITE_FAILED, message, note="nothing was written") from failure
        with contextlib.closing(os.fdopen(descriptor, "r+", encoding="utf-8", errors="replace")) as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                held = lock.read(_LONGEST_HOLDER).strip() or "another process"
                message = f"the lake `{self.folder}` is being written to by {held}"
                hint = "wait until it has ended"
                raise BusyError(
                    [Diagnostic(Code.WRITE_FAILED, message, hint=hint, note="nothing was written")]
                ) from None
            except OSError as failure:
                message = f"the lake `{self.folder}` cannot be locked: {first_line(failure)}"
                hint = "keep it on a file system that has locks"
                raise input_error(Code.WRITE_FAILED, message, hint, "nothing was written") from failure
            self._sign(lock.fileno(), what)
            with self.catalog.holding(what):
                yield

    def _sign(self, descriptor: int, what: str) -> None:
        """Says in the lock's file who holds it."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        program = Path(sys.argv[0]).name or "python"
        said = f"process {os.getpid()} on {socket.gethostname()} ({program}: {what}, since {now})\n"
        with contextlib.suppress(
            OSError
        ):  # on a full disk nobody is told, and what is written then fails by itself
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, said.encode(), 0)


_SHOWN_DIGEST = 12
"""How much of a digest is shown."""


@dataclass(frozen=True, slots=True)
class Commit:
    """What is said of a snapshot.

    Attributes:
        kind: `init`, `import`, `maintain` or `undo`.
        update: the id of the update that was maintained, or undone.
        positions: where the change feeds of relations ended; that under "" is for all others.
        changes: for each table the number of rows that it lost and gained.
        digest: that of the update's files, if it was given as files.
        given: what the update was given as, for people: a file, a folder of files, a feed.
        log: which transactions of a database's log the contents have, if they follow one.
    """

    kind: str
    update: str | None = None
    positions: dict[str, str] | None = None
    changes: dict[str, tuple[int, int]] | None = None
    digest: str | None = None
    given: str | None = None
    log: LogPosition | None = None

    @property
    def about(self) -> str:
        """What tells people which update it was: its id, or what it was given as."""
        if self.kind == "undo":
            return f"back to {self.update}"
        return self.update or self.given or (f"files {self.digest[:_SHOWN_DIGEST]}" if self.digest else "")

    def text(self) -> str:
        """As JSON."""
        said = {name: value for name, value in asdict(replace(self, log=None)).items() if name != "log"}
        return json.dumps(said if self.log is None else {**said, "log": self.log.entry()})

    @classmethod
    def read(cls, text: str) -> Commit:
        """From JSON.

        Raises:
            ValueError: it is none that was written here.
        """
        found = json.loads(text)
        changes = found["changes"]
        return cls(
            found["kind"],
            found["update"],
            found["positions"],
            None if changes is None else {name: (lost, gained) for name, (lost, gained) in changes.items()},
            found.get("digest"),
            found.get("given"),
            LogPosition.read(found["log"]) if found.get("log") else None,
        )
