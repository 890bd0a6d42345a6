"""Relations: each is known, and used with one number of terms."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from datalog.analysis.relations import all_atoms, declarations_by_name, declared_columns
from datalog.diagnostics import Code, ContextSpan, Diagnostic
from datalog.model.literals import Atom
from datalog.model.predicates import Predicate
from datalog.model.rules import Program
from datalog.model.spans import Span


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
