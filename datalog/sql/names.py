"""Readable names for table expressions: aliases, common table expressions, output columns."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from itertools import count

from datalog.model import Predicate, Version

_SHORT = {Version.INSERTED: "i", Version.DELETED: "d"}


def alias_for(predicate: Predicate, taken: Collection[str]) -> str:
    """A short alias for a predicate's rows that no enclosing query uses.

    >>> alias_for(Predicate("r", Version.INSERTED), {"i"}), alias_for(Predicate("v2"), ())
    ('i2', 'v2')
    """
    return unique(_SHORT.get(predicate.version) or identifier(str(predicate)), taken)


def identifier(text: str) -> str:
    """The text as a plain identifier.

    >>> identifier("t@known"), identifier("`; drop"), identifier("1")
    ('t_known', 't_drop', 't_1')
    """
    plain = re.sub(r"\W+", "_", text)
    return plain if plain[:1].isalpha() else f"t_{plain.strip('_')}".rstrip("_")


def unique(name: str, taken: Collection[str]) -> str:
    """The name, with a number if it is taken; `taken` is case-folded, for Spark ignores case.

    >>> unique("i", {"i"}), unique("v2", {"v2", "v2_2"})
    ('i2', 'v2_3')
    """
    if name.casefold() not in taken:
        return name
    stem = f"{name}_" if name[-1:].isdigit() else name
    return next(new for n in count(2) if (new := f"{stem}{n}").casefold() not in taken)


def unique_columns(names: Iterable[str]) -> tuple[str, ...]:
    """The names, numbered where they repeat.

    >>> unique_columns(["x", "X", "y"])
    ('x', 'X2', 'y')
    """
    result: list[str] = []
    for name in names:
        result.append(unique(name, casefolded(result)))
    return tuple(result)


def casefolded(names: Sequence[str]) -> frozenset[str]:
    """The names as Spark compares them."""
    return frozenset(name.casefold() for name in names)
