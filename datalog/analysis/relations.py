"""Relations: which columns each has, that each is known, and used with one number of terms."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from datalog.analysis.dependency import atoms_of
from datalog.diagnostics import Code, ContextSpan, Diagnostic
from datalog.model.literals import Atom
from datalog.model.predicates import Predicate, Version
from datalog.model.rules import Program
from datalog.model.schema import Column, Declaration
from datalog.model.spans import Span

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


def check_relations(program: Program) -> list[Diagnostic]:
    """DL101 for unknown relations, if the program has declarations; DL102 for a wrong number of terms.

    A relation is known if it is declared or some rule defines it, in whatever version.
    """
    return [*_unknown(program), *_arities(program)]


def _unknown(program: Program) -> Iterator[Diagnostic]:
    if not program.declarations:
        return
    known = {declaration.name for declaration in program.declarations}
    known.update(predicate.name for predicate in program.heads)
    for atom in all_atoms(program):
        name = atom.predicate.name
        if name in known:
            continue
        near = get_close_matches(name, sorted(known), 1)
        yield Diagnostic(
            Code.UNKNOWN_RELATION,
            f"unknown relation `{name}`",
            atom.span,
            "neither declared nor defined by a rule",
            hint=f"a relation `{near[0]}` exists" if near else "declare it, or define it by a rule",
        )


def _arities(program: Program) -> Iterator[Diagnostic]:
    declarations = declarations_by_name(program)
    first: dict[Predicate, Atom] = {}
    for atom in all_atoms(program):
        predicate = atom.predicate
        columns = declared_columns(predicate, declarations)
        if columns is not None:
            if atom.arity != len(columns):
                names = ", ".join(f"`{column.name}`" for column in columns) or "none"
                declaration = declarations[predicate.name]
                yield _arity(
                    atom, len(columns), declaration.span, "declared here", f"its columns are {names}"
                )
            continue
        earlier = first.setdefault(predicate, atom)
        if earlier.arity != atom.arity:
            yield _arity(
                atom, earlier.arity, earlier.span, f"`{predicate}` with {_terms(earlier.arity)}", None
            )


def _arity(atom: Atom, arity: int, place: Span | None, label: str, note: str | None) -> Diagnostic:
    return Diagnostic(
        Code.ARITY_DIFFERS,
        f"relation `{atom.predicate}` has {_terms(arity, 'column')}, not {atom.arity}",
        atom.span,
        f"{_terms(atom.arity)} here",
        () if place is None else (ContextSpan(place, label),),
        note=note,
        hint="write `_` for a column that does not matter" if atom.arity < arity else None,
    )


def _terms(number: int, noun: str = "term") -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
