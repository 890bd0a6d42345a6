"""Where a lake is: its folder of files, and its catalog."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from selfmaint.errors import Code, input_error
from selfmaint.store.lake_server import LakeServer, SqliteCatalog
from selfmaint.store.place import Place


@dataclass(frozen=True, slots=True)
class LakePlace(Place):
    """The folder of a lake.

    Attributes:
        server: where the catalog is, if not in the folder.
    """

    kind: ClassVar[str] = "lake"

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
        """See `Place`."""
        folder = self.folder.with_name(f"{self.folder.name}.new")
        return LakePlace(folder, home=self.folder, server=self.server and self.server.new())

    def require_none(self) -> None:
        """See `Place`."""
        Place.require_none(self)
        if self.server is not None and self.server.exists():
            message = f"there is a lake in the schema `{self.server.schema}` already"
            raise input_error(Code.WRITE_FAILED, message, "name another one: `schema`", "nothing was written")

    def cleared(self) -> None:
        """See `Place`."""
        Place.cleared(self)
        self.files.mkdir()
        self.catalog.cleared()

    def published(self, at: LakePlace) -> None:
        """See `Place`."""
        Place.published(self, at)
        self.catalog.published(at.catalog)

    def _held(self, what: str) -> contextlib.AbstractContextManager[None]:
        """The lock of a catalog that several machines write to."""
        return self.catalog.holding(what)
