"""How often unreachable objects are looked for: planning makes millions of objects, and nearly all of them are kept."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

BETWEEN_COLLECTIONS = 2_000_000
"""How many objects are made before unreachable ones are looked for: by default 700, which imports make all the time.

Few commands make so many, and looking through 100,000 takes 20 ms; so many take some 100 MB at most.
"""


@contextmanager
def seldom_collected() -> Iterator[None]:
    """Looks for unreachable objects seldom meanwhile; leaves it to whoever has switched that off, or made it rarer."""
    youngest, *others = gc.get_threshold()
    if 0 < youngest < BETWEEN_COLLECTIONS:
        gc.set_threshold(BETWEEN_COLLECTIONS, *others)
    try:
        yield
    finally:
        gc.set_threshold(youngest, *others)
