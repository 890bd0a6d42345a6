"""What is said of a state of a store: which update made it, and what changed."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from datetime import datetime

from selfmaint.store.log_position import LogPosition

ROWS = "rows:"
"""What the digest of an update of frames begins with."""

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
        digest: that of the update's files, if it was given as files; behind `ROWS` if some of it was frames.
        given: what the update was given as, for people: a file, a folder of files, a feed.
        log: which transactions of a database's log the contents have, if they follow one.
        moment: of definitions that read the current date or time, the moment that the contents are of.
        definitions: by view, the definition that its rows are of from here on, as `written` has it; None of one that
            was left out.
    """

    kind: str
    update: str | None = None
    positions: dict[str, str] | None = None
    changes: dict[str, tuple[int, int]] | None = None
    digest: str | None = None
    given: str | None = None
    log: LogPosition | None = None
    moment: datetime | None = None
    definitions: dict[str, str | None] | None = None

    @property
    def about(self) -> str:
        """What tells people which update it was: its id, or what it was given as."""
        if self.kind == "undo":
            return f"back to {self.update}"
        what = "rows" if (self.digest or "").startswith(ROWS) else "files"
        shown = (self.digest or "").removeprefix(ROWS)[:_SHOWN_DIGEST]
        return self.update or self.given or (f"{what} {shown}" if shown else "")

    def text(self) -> str:
        """As JSON."""
        apart = ("log", "moment", "definitions")
        said = {n: value for n, value in asdict(replace(self, log=None)).items() if n not in apart}
        if self.log is not None:
            said["log"] = self.log.entry()
        if self.moment is not None:
            said["moment"] = self.moment.isoformat()
        if self.definitions:
            said["definitions"] = self.definitions
        return json.dumps(said)

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
            datetime.fromisoformat(found["moment"]) if found.get("moment") else None,
            found.get("definitions"),
        )
