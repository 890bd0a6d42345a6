"""Types: which columns hold what, and values that never meet.

Each place where a term stands gives it a type: a declared column, a constant equated to it, or the inferred
column of a relation that rules define. Types of one family compare; `any` compares with everything, since
nothing is known of it. What contradicts is reported, what is unknown is not.

Types of relations that rules define are inferred in evaluation order: a column's type is the narrowest one
that holds what each rule puts there. A recursive program is typed as far as its order goes.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import TypeAlias

from datalog.analysis.common_type import common_type, constant_type
from datalog.analysis.dependency import dependency_graph
from datalog.analysis.relations import all_atoms, declarations_by_name, declared_columns
from datalog.graphs import strong_components
from datalog.model.literals import Atom, Comparison, Literal
from datalog.model.predicates import Predicate
from datalog.model.rules import Program, Rule
from datalog.model.schema import ANY, ColumnType
from datalog.model.terms import Constant, Term, Variable

TypesOfPredicates: TypeAlias = Mapping[Predicate, tuple[ColumnType, ...]]


def column_types(program: Program) -> TypesOfPredicates:
    """The column types of every predicate of a program.

    Args:
        program: any program; where it contradicts itself, the type is `any`.

    Returns:
        By predicate, in the order of first appearance, a type a column. Declared relations have their
        declared types, in every version. A column of a relation that rules define has the narrowest type
        that holds what the rules put there; an undeclared base relation's columns are `any`.

    Example:
        >>> from datalog.syntax import parse_program
        >>> program = parse_program(".decl r(a: int, b: string). v(X, 1.5) :- r(X, _). v(X, 2) :- r(X, _).")
        >>> {str(p): [str(t) for t in types] for p, types in column_types(program).items()}
        {'v': ['int', 'decimal(11,1)'], 'r': ['int', 'string']}
    """
    declarations = declarations_by_name(program)
    atoms: dict[Predicate, Atom] = {}
    for atom in all_atoms(program):
        atoms.setdefault(atom.predicate, atom)
    types: dict[Predicate, tuple[ColumnType, ...]] = {}
    for predicate, atom in atoms.items():
        columns = declared_columns(predicate, declarations)
        types[predicate] = (ANY,) * atom.arity if columns is None else tuple(c.type for c in columns)
    rules_of: dict[Predicate, list[Rule]] = {}
    for rule in program.rules:
        rules_of.setdefault(rule.head.predicate, []).append(rule)
    for predicate in _inference_order(program):
        if predicate in rules_of and declared_columns(predicate, declarations) is None:
            types[predicate] = _inferred(rules_of[predicate], types)
    return types


def variable_types(rule_body: tuple[Literal, ...], types: TypesOfPredicates) -> dict[Variable, ColumnType]:
    """The type of each variable that a body binds: of the first column or equality that tells it.

    Args:
        rule_body: the body's literals; those inside negations tell nothing.
        types: the column types of the predicates.

    Returns:
        By variable; `any` where no column or equality says more.
    """
    found: dict[Variable, ColumnType] = {}

    def learn(term: Term, column_type: ColumnType | None) -> None:
        if isinstance(term, Variable) and column_type is not None and found.get(term, ANY) == ANY:
            found[term] = column_type

    for literal in rule_body:
        if isinstance(literal, Atom):
            for term, column_type in zip(literal.terms, types.get(literal.predicate, ()), strict=False):
                learn(term, column_type)
    equalities = [c for c in rule_body if isinstance(c, Comparison) and c.operator == "="]
    for _ in equalities:
        before = dict(found)
        for equality in equalities:
            learn(equality.left, term_type(equality.right, found))
            learn(equality.right, term_type(equality.left, found))
        if found == before:
            break
    return found


def term_type(term: Term, variables: Mapping[Variable, ColumnType]) -> ColumnType | None:
    """The type of a term, or none if nothing tells it: null, or a variable that is not bound."""
    return constant_type(term.value) if isinstance(term, Constant) else variables.get(term)


def _inference_order(program: Program) -> list[Predicate]:
    """Predicates behind those that they depend on; those of a cycle in any order."""
    return list(chain(*strong_components(dependency_graph(program))))


def _inferred(rules: list[Rule], types: TypesOfPredicates) -> tuple[ColumnType, ...]:
    """The types of a relation's columns, from what each of its rules puts there."""
    merged: list[ColumnType | None] = [None] * rules[0].head.arity
    for rule in rules:
        variables = variable_types(rule.body, types)
        for position, term in enumerate(rule.head.terms[: len(merged)]):
            new, old = term_type(term, variables), merged[position]
            merged[position] = old if new is None else new if old is None else common_type(old, new) or ANY
    return tuple(ANY if column_type is None else column_type for column_type in merged)
