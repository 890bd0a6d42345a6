"""Near misses: what a misspelt name may have meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from selfmaint.errors import Code, input_error

SHOWN = 8
"""How many names a hint lists."""


def near_miss(name: str, known: Iterable[str], kind: str) -> str:
    """A hint for an unknown name.

    >>> near_miss("oders", ["orders", "customer"], "base relation")
    'a base relation `orders` exists'
    """
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1)
    if close:
        return f"a {kind} `{close[0]}` exists"
    shown = ", ".join(f"`{n}`" for n in names[:SHOWN]) or "none"
    return f"there are these: {shown}" + (", ..." if len(names) > SHOWN else "")


def no_view(name: str, views: Iterable[str], bases: Iterable[str]) -> tuple[str, str]:
    """What to say of a name that is read and is no view, and a hint.

    >>> no_view("Orders", ["order_list"], ["orders"])
    ('`Orders` is a base relation, of which nothing is kept here', 'query the views: `order_list`')
    """
    names = sorted(views)
    if name.casefold() in {base.casefold() for base in bases}:
        shown = ", ".join(f"`{n}`" for n in names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")
        return f"`{name}` is a base relation, of which nothing is kept here", f"query the views: {shown}"
    return f"`{name}` is no view of this warehouse", near_miss(name, names, "view")


def require_known(names: Iterable[str], known: Iterable[str], kind: str) -> None:
    """Refuses names that are not known.

    Raises:
        InputError: SM102, with near misses.
    """
    allowed = list(known)
    for name in names:
        if name not in allowed:
            raise input_error(
                Code.UNKNOWN_RELATION,
                f"`{name}` is no {kind} of this warehouse",
                hint=near_miss(name, allowed, kind),
            )
