"""Where a store is on this machine: its folder, and the lock of who writes to it; of a lake its catalog, too."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import socket
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import ClassVar, Self

from msgspec import Struct, field

from datalog.diagnostics import Diagnostic
from selfmaint.errors import BusyError, Code, InputError, first_line, input_error
from selfmaint.store.lake_server import LakeServer, SqliteCatalog, require_right

_LONGEST_HOLDER = 500
_LOCK = "writer.lock"
_BEGUN = "begun"
"""Where a new lake's files are in object storage, while it is being made: what is there then is its own."""
_STAGING = "_staging"


class Place(Struct, frozen=True):
    """The folder of a store.

    Attributes:
        kind: what the store is, for people.
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
            if left.name not in {_LOCK, _BEGUN}:
                shutil.rmtree(left) if left.is_dir() else left.unlink()

    @contextlib.contextmanager
    def staging(self) -> Iterator[Path]:
        """Where new rows lie until the store has them: who enters holds the lock, and makes the folder if need be.

        It is in the store's folder, which all see that write files, such as Spark's executors on other machines.
        """
        folder = self.folder / _STAGING
        shutil.rmtree(folder, ignore_errors=True)  # of a process that died
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def published(self, at: Self) -> None:
        """Puts a new store in its place."""
        if at.folder.exists():
            at.folder.rmdir()
        self.folder.rename(at.folder)

    def require_newest(self, newest: int | None, read: int | None) -> None:
        """Refuses to write after another state than was read; after any where none was, in a new store.

        Raises:
            BusyError: SM405 another process has written since.
            InputError: SM405 the past was read.
        """
        if read in (newest, None):
            return
        is_past = self.version is not None
        raise (InputError if is_past else BusyError)(
            [
                Diagnostic(
                    Code.WRITE_FAILED,
                    f"the {self.kind} `{self.folder}` is at snapshot {newest}, and {read} was read",
                    note="what was computed is of an older state; nothing was written",
                    hint="the past is only read: leave the snapshot out"
                    if is_past
                    else "another process has written to it: run the command again",
                )
            ]
        )

    def require_writable(self) -> None:
        """Refuses who may not write, before there is work.

        Raises:
            InputError: SM405.
        """
        for path in (self.folder, self.folder / _LOCK):
            require_right(path)

    @contextlib.contextmanager
    def writing(self, what: str) -> Iterator[None]:
        """Holds the right to write; it ends with the process.

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


_PLAIN = re.compile(r"[^\w @.-]|^[._]|[. ]$")
"""What may not stand in the name of a folder; what begins so is hidden."""


class DeltaPlace(Place, frozen=True):
    """The folder of a store of Delta tables, with a table for each view.

    Attributes:
        given: the tables that have a place of their own.
    """

    kind: ClassVar[str] = "Delta store"

    given: Mapping[str, Path] = field(default_factory=dict)

    @property
    def journal(self) -> Path:
        """The Delta table that says which versions of the others belong together."""
        return self.folder / "_journal"

    @property
    def elsewhere(self) -> dict[str, Path]:
        """See `Place`."""
        return dict(self.given)

    @property
    def new(self) -> DeltaPlace:
        """See `Place`."""
        folder = self.folder.with_name(f"{self.folder.name}.new")
        return DeltaPlace(folder, home=self.folder, given=self.given)

    def where(self, table: str) -> Path:
        """See `Place`."""
        return self.table(table)

    def table(self, name: str) -> Path:
        """The folder of a table.

        >>> DeltaPlace(Path("/d")).table("_a/b@present")
        PosixPath('/d/~5fa~2fb@present')
        """
        plain = _PLAIN.sub(lambda found: "".join(f"~{byte:02x}" for byte in found[0].encode()), name)
        return self.given.get(name, self.folder / plain)


class Objects(Struct, frozen=True):
    """A folder in object storage that speaks the protocol of S3.

    Attributes:
        url: the folder, `s3://BUCKET/...`, without a slash at its end.
        endpoint: the server's URL; None for that of the environment, or Amazon's.
    """

    url: str
    endpoint: str | None = None


class LakePlace(Place, frozen=True):
    """The folder of a lake.

    Attributes:
        server: where the catalog is, if not in the folder.
        objects: where the Parquet files are, if not in the folder.
    """

    kind: ClassVar[str] = "lake"

    server: LakeServer | None = None
    objects: Objects | None = None

    @property
    def catalog(self) -> LakeServer:
        """The catalog."""
        return self.server or SqliteCatalog(self.folder / "catalog.sqlite", self.folder)

    @property
    def files(self) -> str:
        """The folder of Parquet files: a path, or a URL; with a slash at its end."""
        return f"{self.folder / 'data'}/" if self.objects is None else f"{self.objects.url}/"

    @property
    def begun(self) -> Path:
        """The file that says where a lake that is being made has its objects."""
        return self.folder / _BEGUN

    @property
    def new(self) -> LakePlace:
        """See `Place`."""
        folder = self.folder.with_name(f"{self.folder.name}.new")
        server = self.server and self.server.new()
        return LakePlace(folder, home=self.folder, server=server, objects=self.objects)

    def require_catalog(self) -> None:
        """Refuses to go on without a catalog, in whose place DuckDB would make an empty one.

        Raises:
            InputError: SM408.
        """
        if self.catalog.exists():
            return
        message, hint = f"there is no lake at `{self.folder}`", "`selfmaint init WAREHOUSE.toml` makes it"
        if (self.folder / _LOCK).exists():
            message = f"{self.catalog.name} is gone, and the folder `{self.folder}` is there"
            hint = "put both back from a backup, or move the folder away and make it anew: `selfmaint init`"
        raise input_error(Code.LAKE, message, hint, self.catalog.note)

    def require_none(self) -> None:
        """See `Place`."""
        Place.require_none(self)
        if self.server is not None and self.server.exists():
            message = f"there is a lake in the schema `{self.server.schema}` already"
            raise input_error(Code.WRITE_FAILED, message, "name another one: `schema`", "nothing was written")

    def require_writable(self) -> None:
        """See `Place`."""
        Place.require_writable(self)
        if self.objects is None:
            require_right(Path(self.files))
        self.catalog.require_writable()

    def cleared(self) -> None:
        """See `Place`."""
        Place.cleared(self)
        if self.objects is None:
            Path(self.files).mkdir()
        self.catalog.cleared()

    def published(self, at: LakePlace) -> None:
        """See `Place`."""
        Place.published(self, at)
        self.catalog.published(at.catalog)
        at.begun.unlink(missing_ok=True)

    @contextlib.contextmanager
    def writing(self, what: str) -> Iterator[None]:
        """See `Place`. Where catalog and files are elsewhere, each machine has a folder for its lock alone."""
        if self.server is not None and self.objects is not None:
            with contextlib.suppress(OSError):  # who locks in it says what is wrong
                self.folder.mkdir(parents=True, exist_ok=True)
        with Place.writing(self, what):
            yield

    def _held(self, what: str) -> contextlib.AbstractContextManager[None]:
        """The lock of a catalog that several machines write to."""
        return self.catalog.holding(what)
