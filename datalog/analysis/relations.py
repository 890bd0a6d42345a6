"""Relations: which columns each has, that their declarations make sense, and that each is used as it is declared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from datalog.analysis.dependency import atoms_of
from datalog.diagnostics import Code, ContextSpan, Diagnostic
from datalog.model.literals import Atom
from datalog.model.predicates import Predicate, Version
from datalog.model.rules import Program
from datalog.model.schema import Column, ColumnType, Declaration, ForeignKey
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


def check_declarations(program: Program) -> list[Diagnostic]:
    """DL103 to DL108: declarations that contradict each other or themselves."""
    by_name = declarations_by_name(program)
    found: list[Diagnostic] = []
    for declaration in program.declarations:
        found += _declared_twice(declaration, by_name[declaration.name])
        found += _duplicate_columns(declaration)
        for kind, names in _constraints(declaration):
            found += _duplicates(names, kind, declaration.name, declaration.span)
            found += _unknown_columns(names, kind, declaration, declaration.span)
        for foreign_key in declaration.foreign_keys:
            found += _foreign_key(foreign_key, declaration, by_name)
    return found


def _constraints(declaration: Declaration) -> Iterator[tuple[str, tuple[str, ...]]]:
    if declaration.key is not None:
        yield "key", declaration.key
    for names in declaration.unique:
        yield "unique constraint", names


def _declared_twice(declaration: Declaration, first: Declaration) -> Iterator[Diagnostic]:
    if declaration is not first:
        yield Diagnostic(
            Code.DECLARED_TWICE,
            f"relation `{declaration.name}` is declared twice",
            declaration.span,
            "the second declaration",
            () if first.span is None else (ContextSpan(first.span, "the first one"),),
            hint="keep one of the declarations",
        )


def _duplicate_columns(declaration: Declaration) -> Iterator[Diagnostic]:
    first: dict[str, Column] = {}
    for column in declaration.columns:
        earlier = first.setdefault(column.name, column)
        if earlier is not column:
            yield Diagnostic(
                Code.DUPLICATE_COLUMN,
                f"relation `{declaration.name}` has two columns `{column.name}`",
                column.span or declaration.span,
                "the second one",
                () if earlier.span is None else (ContextSpan(earlier.span, "the first one"),),
                hint="give each column a name of its own",
            )


def _duplicates(names: Sequence[str], kind: str, relation: str, span: Span | None) -> Iterator[Diagnostic]:
    for name, number in Counter(names).items():
        if number > 1:
            yield Diagnostic(
                Code.DUPLICATE_COLUMN,
                f"column `{name}` occurs {number} times in the {kind} of relation `{relation}`",
                span,
                hint="keep one of them",
            )


def _unknown_columns(
    names: Sequence[str], kind: str, declaration: Declaration, span: Span | None
) -> Iterator[Diagnostic]:
    for name in dict.fromkeys(names):
        if name in declaration.column_names:
            continue
        near = get_close_matches(name, declaration.column_names, 1)
        columns = ", ".join(f"`{column}`" for column in declaration.column_names) or "none"
        yield Diagnostic(
            Code.UNKNOWN_COLUMN,
            f"unknown column `{name}` in {kind} of relation `{declaration.name}`",
            span,
            f"relation `{declaration.name}` has no column `{name}`",
            note=f"columns of `{declaration.name}` are {columns}",
            hint=f"a column `{near[0]}` exists" if near else None,
        )


def _foreign_key(
    foreign_key: ForeignKey, declaration: Declaration, by_name: dict[str, Declaration]
) -> Iterator[Diagnostic]:
    span = foreign_key.span or declaration.span
    yield from _duplicates(foreign_key.columns, "foreign key", declaration.name, span)
    yield from _unknown_columns(foreign_key.columns, "foreign key", declaration, span)
    target = by_name.get(foreign_key.target)
    if target is None:
        near = get_close_matches(foreign_key.target, by_name, 1)
        yield Diagnostic(
            Code.UNKNOWN_TARGET,
            f"foreign key of `{declaration.name}` references unknown relation `{foreign_key.target}`",
            span,
            "not declared",
            hint=f"a relation `{near[0]}` exists" if near else "declare it with `.decl`",
        )
        return
    yield from _duplicates(foreign_key.target_columns, "referenced columns", target.name, span)
    yield from _unknown_columns(foreign_key.target_columns, "referenced columns", target, span)
    if len(foreign_key.columns) != len(foreign_key.target_columns):
        yield Diagnostic(
            Code.FOREIGN_KEY_WIDTH,
            f"foreign key of `{declaration.name}` has another number of columns than it references",
            span,
            f"{len(foreign_key.columns)} here, {len(foreign_key.target_columns)} in `{target.name}`",
            note="the columns of a foreign key correspond by position",
        )
        return
    keys = [set(names) for _, names in _constraints(target)]
    wanted = foreign_key.target_columns
    sound = len(set(wanted)) == len(wanted) and set(wanted) <= set(target.column_names)
    if sound and set(wanted) not in keys:
        shown = ", ".join(f"`{name}`" for name in foreign_key.target_columns)
        yield Diagnostic(
            Code.FOREIGN_KEY_TARGET,
            f"foreign key of `{declaration.name}` references columns of `{target.name}` that are no key of it",
            span,
            f"{shown} may be there twice",
            note="a foreign key references the columns of a key or of a unique constraint",
            hint=f"declare `key({', '.join(foreign_key.target_columns)})` or `unique(...)` in `{target.name}`",
        )
    for name, target_name in zip(foreign_key.columns, foreign_key.target_columns, strict=True):
        yield from _foreign_key_types(declaration, name, target, target_name, span)


def _foreign_key_types(
    declaration: Declaration, name: str, target: Declaration, target_name: str, span: Span | None
) -> Iterator[Diagnostic]:
    column_type, target_type = _type_of(declaration, name), _type_of(target, target_name)
    if column_type is None or target_type is None:
        return
    families = {column_type.family, target_type.family}
    if len(families) > 1 and "any" not in families:
        yield Diagnostic(
            Code.FOREIGN_KEY_TYPE,
            f"foreign key column `{declaration.name}.{name}` of type `{column_type}`"
            f" references `{target.name}.{target_name}` of type `{target_type}`",
            span,
            "these are never equal",
            note="values of different families are never equal",
        )


def _type_of(declaration: Declaration, name: str) -> ColumnType | None:
    return next((column.type for column in declaration.columns if column.name == name), None)
