"""Where a store of Delta tables is: its folder, with a table for each view, and the tables that are elsewhere."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from selfmaint.store.place import Place

_PLAIN = re.compile(r"[^\w @.-]|^[._]|[. ]$")
"""What may not stand in the name of a folder; what begins so is hidden."""


@dataclass(frozen=True, slots=True)
class DeltaPlace(Place):
    """The folder of a store of Delta tables.

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
