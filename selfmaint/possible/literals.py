"""Atoms and bodies of rules as the solver's text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def atom_text(name: str, terms: Sequence[object]) -> str:
    """An atom.

    >>> atom_text("b1", [3, "X"]), atom_text("differs", [])
    ('b1(3,X)', 'differs')
    """
    return f"{name}({','.join(map(str, terms))})" if terms else name


def body_text(literals: Iterable[str]) -> str:
    """A body: each literal once, without those that are empty."""
    return ", ".join(dict.fromkeys(literal for literal in literals if literal))


def if_text(literals: Iterable[str]) -> str:
    """What follows a head: nothing where there is no body."""
    body = body_text(literals)
    return f" :- {body}" if body else ""
