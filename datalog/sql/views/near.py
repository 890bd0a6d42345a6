"""Hints for names that mean nothing: another one that is like them."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from functools import lru_cache


def near(name: str, known: Iterable[str], kind: str) -> str | None:
    """A hint for an unknown name, if another one is like it.

    >>> near("CUSTID", ["custId", "name"], "column")
    'a column `custId` exists'
    """
    close = _closest(name.casefold(), tuple(known))
    return None if close is None else f"a {kind} `{close}` exists"


@lru_cache(4096)  # what is wrong is looked for again each time that a part of a query is read
def _closest(name: str, known: tuple[str, ...]) -> str | None:
    by_folded = {one.casefold(): one for one in known}
    close = get_close_matches(name, by_folded, 1)
    return by_folded[close[0]] if close else None
