"""Trees of SQL that is written out, with parts put in by name: `CASE WHEN :x < 0 THEN 0 ELSE :x END`."""

from __future__ import annotations

from functools import lru_cache
from typing import TypeVar

import sqlglot
from sqlglot import exp

T = TypeVar("T", bound=exp.Expr)

_CLOSED = (exp.Column, exp.Func, exp.Literal, exp.Null, exp.Boolean, exp.Paren)
_OPEN = (exp.Binary, exp.Unary, exp.Predicate)
"""Operators, which stand in parentheses inside others."""


def filled(template: str, **parts: exp.Expr | str | int) -> exp.Expr:
    """An expression or a statement in which `:name` stands for a part, as one operand.

    Args:
        template: SQL of DuckDB, which is parsed once.
        parts: by name a tree, which is copied; or a constant, in place of a table its name.

    >>> filled("CASE WHEN :x < 0 THEN -:x ELSE :x END", x=exp.column("c0")).sql("duckdb")
    'CASE WHEN c0 < 0 THEN -c0 ELSE c0 END'
    """
    tree = _parsed(template).copy()
    for place in list(tree.find_all(exp.Placeholder)):
        place.replace(_part(parts[place.name], place))
    return tree


def selected(template: str, **parts: exp.Expr | str | int) -> exp.Select:
    """A SELECT in which `:name` stands for a part; see `filled`."""
    found = filled(template, **parts)
    assert isinstance(found, exp.Select)
    return found


@lru_cache(maxsize=4096)
def _parsed(template: str) -> exp.Expr:
    return without_places(sqlglot.parse_one(template, dialect="duckdb"))


def without_places(tree: T) -> T:
    """A tree that does not say where in a text it stood: most of the time that copying takes is for that."""
    for node in tree.walk():
        node._meta = None
    return tree


def _part(part: exp.Expr | str | int, place: exp.Expr) -> exp.Expr:
    if isinstance(part, str):
        is_table = isinstance(place.parent, exp.Table)
        return exp.to_identifier(part, quoted=True) if is_table else exp.Literal.string(part)
    if isinstance(part, int):
        return exp.Literal.number(part)
    is_closed = isinstance(part, _CLOSED) and (isinstance(part, exp.Paren) or not isinstance(part, _OPEN))
    return part.copy() if is_closed else exp.Paren(this=part.copy())
