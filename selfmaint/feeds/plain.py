"""Plain files of inserted and of deleted rows: `insert.SUFFIX` and `delete.SUFFIX`, or `RELATION.insert.SUFFIX`.

What goes comes before what comes: a row in both files stays, and a key in both has changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from selfmaint.feeds.changes import Kind

_KINDS = {"insert": Kind.INSERT, "delete": Kind.DELETE}


def plain_files(folder: Path) -> Iterator[tuple[str | None, Kind, Path]]:
    """The files of a directory that are named so: the relation (None: not in the name), the kind, and the file."""
    for path in sorted(folder.iterdir()):
        pieces = path.name.rsplit(".", 2)
        if path.name.startswith(("_", ".")) or len(pieces) == 1:
            continue
        if pieces[-2] in _KINDS:
            relation = pieces[0] if len(pieces) > len(("part", "suffix")) else None
            yield relation, _KINDS[pieces[-2]], path
