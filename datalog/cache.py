"""What is found once and kept from one process to the next, in files that may be deleted at any time."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path | None:
    """Where it is kept, for this user alone; None where no folder can be made."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "selfmaint"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        return None
    return folder
