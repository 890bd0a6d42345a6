"""What each relation of a program has for columns: declared, or as its first rule or use shows."""

from __future__ import annotations

from collections.abc import Iterator

from datalog.analysis.dependency import atoms_of
from datalog.model.literals import Atom
from datalog.model.predicates import Predicate, Version
from datalog.model.rules import Program
from datalog.model.schema import Column, Declaration

_KEYED = frozenset({Version.REGION, Version.PROBE})
"""Versions that have only the columns that the predicate names."""
_OWN_COLUMNS = frozenset({Version.CORE, Version.PROBLEM, Version.DEPENDS, Version.STEP})
"""Versions whose columns are not those of the relation: they hold bindings."""


def all_atoms(program: Program) -> Iterator[Atom]:
    """Every atom of a program, in the order of the text: heads, subgoals, and those inside negations."""
    for rule in program.rules:
        yield rule.head
        for literal in rule.body:
            yield from atoms_of(literal)


def declarations_by_name(program: Program) -> dict[str, Declaration]:
    """The declarations by relation; of several for one relation the first counts."""
    by_name: dict[str, Declaration] = {}
    for declaration in program.declarations:
        by_name.setdefault(declaration.name, declaration)
    return by_name


def declared_columns(predicate: Predicate, declarations: dict[str, Declaration]) -> tuple[Column, ...] | None:
    """The columns that a declaration gives a predicate, or none if it gives none.

    A relation's versions have the relation's columns, except that regions and probes have key columns only,
    and that versions that hold bindings have columns of their own.
    """
    declaration = declarations.get(predicate.name)
    if declaration is None or predicate.version in _OWN_COLUMNS:
        return None
    if predicate.version not in _KEYED:
        return declaration.columns
    if any(position >= declaration.arity for position in predicate.columns):
        return None
    return tuple(declaration.columns[position] for position in predicate.columns)
