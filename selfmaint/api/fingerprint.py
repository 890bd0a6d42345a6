"""Did stored files change since they were looked at? Names, sizes, times and identities, no contents."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from selfmaint.errors import Code, input_error


def fingerprints(paths: Iterable[str]) -> dict[str, str]:
    """A digest of each path's files; of a path where nothing is, that of nothing."""
    return {path: _fingerprint(Path(path)) for path in paths}


def _fingerprint(path: Path) -> str:
    files = [path, *sorted(path.rglob("*"))] if path.is_dir() else [path] if path.exists() else []
    digest = hashlib.sha256()
    for file in files:
        found = file.stat()
        mark = (str(file.relative_to(path)), found.st_size, found.st_mtime_ns, found.st_ino)
        digest.update(repr(mark).encode())
    return digest.hexdigest()


def require_unchanged(before: Mapping[str, str]) -> None:
    """Refuses to go on where files are no longer what they were.

    Raises:
        InputError: SM405, naming the paths.
    """
    after = fingerprints(before)
    changed = [path for path, digest in before.items() if after[path] != digest]
    if changed:
        raise input_error(
            Code.WRITE_FAILED,
            f"{', '.join(f'`{path}`' for path in changed)} changed since the warehouse was loaded",
            note="what was computed from the old contents is out of date; nothing was written",
            hint="another process maintains the same views: run the command again",
        )
