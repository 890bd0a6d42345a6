"""Types: which columns hold what, and values that never meet.

Each place where a term stands gives it a type: a declared column, a constant equated to it, or the inferred
column of a relation that rules define. Types of one family compare; `any` compares with everything, since
nothing is known of it. What contradicts is reported, what is unknown is not.

Types of relations that rules define are inferred in evaluation order: a column's type is the narrowest one
that holds what each rule puts there. A recursive program is typed as far as its order goes.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from itertools import chain
from typing import TypeAlias, assert_never

from datalog.analysis.dependency import dependency_graph
from datalog.analysis.relations import all_atoms, declarations_by_name, declared_columns
from datalog.graphs import strong_components
from datalog.model.literals import Atom, Comparison, Literal
from datalog.model.predicates import Predicate
from datalog.model.rules import Program, Rule
from datalog.model.schema import ANY, MAX_PRECISION, ColumnType, TypeName
from datalog.model.terms import Constant, Term, Value, Variable, WallClock

TypesOfPredicates: TypeAlias = Mapping[Predicate, tuple[ColumnType, ...]]
_UNSIZED = ColumnType(TypeName.DECIMAL)
_BOOLEAN = ColumnType(TypeName.BOOLEAN)
_INT = ColumnType(TypeName.INT)
_BIGINT = ColumnType(TypeName.BIGINT)
_DOUBLE = ColumnType(TypeName.DOUBLE)
_STRING = ColumnType(TypeName.STRING)
_DATE = ColumnType(TypeName.DATE)
_TIMESTAMP = ColumnType(TypeName.TIMESTAMP)
_TIMESTAMP_NTZ = ColumnType(TypeName.TIMESTAMP_NTZ)

_INTEGERS = tuple(name for name in TypeName if name.is_integer)
"""From narrow to wide."""
_LONG_AS_DECIMAL = (20, 0)


def column_types(program: Program) -> TypesOfPredicates:
    """The column types of every predicate of a program; where it contradicts itself, `any`.

    Returns:
        By predicate, in the order of first appearance, a type a column. Declared relations have their
        declared types, in every version. A column of a relation that rules define has the narrowest type
        that holds what the rules put there; an undeclared base relation's columns are `any`.

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
    rules_of = program.by_head()
    for predicate in chain(*strong_components(dependency_graph(program))):  # in a cycle in any order
        if predicate in rules_of and declared_columns(predicate, declarations) is None:
            types[predicate] = _inferred(rules_of[predicate], types)
    return types


def variable_types(rule_body: tuple[Literal, ...], types: TypesOfPredicates) -> dict[Variable, ColumnType]:
    """The type of each variable that a body binds: of the first column or equality that tells it.

    Literals inside negations tell nothing.

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


def _inferred(rules: list[Rule], types: TypesOfPredicates) -> tuple[ColumnType, ...]:
    """The types of a relation's columns, from what each of its rules puts there."""
    merged: list[ColumnType | None] = [None] * rules[0].head.arity
    for rule in rules:
        variables = variable_types(rule.body, types)
        for position, term in enumerate(rule.head.terms[: len(merged)]):
            new, old = term_type(term, variables), merged[position]
            merged[position] = old if new is None else new if old is None else common_type(old, new) or ANY
    return tuple(ANY if column_type is None else column_type for column_type in merged)


def constant_type(value: Value) -> ColumnType | None:
    """The narrowest type that a constant has in SQL; null has every type, so none.

    >>> str(constant_type(3)), str(constant_type(2**40)), str(constant_type(Decimal("1.50")))
    ('int', 'bigint', 'decimal(3,2)')
    """
    match value:
        case None:
            return None
        case bool():
            return _BOOLEAN
        case int():
            return _whole_type(value)
        case float():
            return _DOUBLE
        case Decimal():
            return _decimal_type(value)
        case str():
            return _STRING
        case WallClock():
            return _TIMESTAMP_NTZ
        case dt.datetime():
            return _TIMESTAMP
        case dt.date():
            return _DATE
        case _:
            assert_never(value)


def common_type(left: ColumnType, right: ColumnType) -> ColumnType | None:
    """The narrowest type that holds the values of both (`any` holds all), or none if the families differ.

    Semantics:
        Numbers widen as in Spark: whole numbers to the wider one, with decimals to a decimal of at most 38
        digits, with `float` or `double` to `double`. A decimal without a size stays one.

    >>> str(common_type(ColumnType(TypeName.INT), ColumnType(TypeName.DECIMAL, 5, 2)))
    'decimal(12,2)'
    """
    if left == right:
        return left
    if TypeName.ANY in (left.name, right.name):
        return ANY
    if left.family != right.family:
        return None
    if left.family != "number":
        return left
    if left.name.is_integer and right.name.is_integer:
        return max(left, right, key=lambda kind: _INTEGERS.index(kind.name))
    if TypeName.DECIMAL in (left.name, right.name) and _is_exact(left) and _is_exact(right):
        return _common_decimal(left, right)
    return _DOUBLE


def united_type(kinds: Sequence[ColumnType]) -> ColumnType:
    """The type of a column of a union, as Spark widens numbers; of other types that of the first query.

    >>> str(united_type([ColumnType(TypeName.DECIMAL, 10, 0), ColumnType(TypeName.DECIMAL, 9, 2)]))
    'decimal(12,2)'
    >>> str(united_type([ColumnType(TypeName.BIGINT), ColumnType(TypeName.FLOAT)]))
    'double'
    """
    found = kinds[0] if kinds else ANY
    for kind in kinds[1:]:
        found = common_type(found, kind) or found
    return found


def head_types(rule: Rule, types: TypesOfPredicates) -> tuple[ColumnType, ...]:
    """The types of a rule's head, `any` where nothing says more."""
    found = variable_types(rule.body, types)
    return tuple(
        (constant_type(term.value) or ANY) if isinstance(term, Constant) else found.get(term, ANY)
        for term in rule.head.terms
    )


def are_kept_apart(kinds: Iterable[ColumnType]) -> bool:
    """Whether a column that holds the values of several types has those of each apart: not two as one double.

    >>> bigint, int_, double = (ColumnType(name) for name in (TypeName.BIGINT, TypeName.INT, TypeName.DOUBLE))
    >>> are_kept_apart([bigint, int_]), are_kept_apart([int_, double]), are_kept_apart([bigint, double])
    (True, True, False)
    """
    known = [kind for kind in dict.fromkeys(kinds) if kind.family == "number"]
    return all(kind.is_found_by(united_type(known)) for kind in known)


def _is_exact(column_type: ColumnType) -> bool:
    return column_type.name is TypeName.DECIMAL or column_type.name.is_integer


def _common_decimal(left: ColumnType, right: ColumnType) -> ColumnType:
    if _UNSIZED in (left, right):
        return _UNSIZED
    (p1, s1), (p2, s2) = as_decimal(left), as_decimal(right)
    whole, scale = max(p1 - s1, p2 - s2), max(s1, s2)
    # Too many digits: the whole part is kept, as far as there is room.
    precision = min(MAX_PRECISION, whole + scale)
    return ColumnType(TypeName.DECIMAL, precision, max(0, min(scale, precision - whole)))


def as_decimal(column_type: ColumnType) -> tuple[int, int]:
    """Precision and scale of the decimal that Spark takes an exact number for: of a bigint, 20 digits."""
    if column_type.name is TypeName.BIGINT:
        return _LONG_AS_DECIMAL
    digits = column_type.name.digits
    return column_type.decimal_size if digits is None else (digits, 0)


def _whole_type(value: int) -> ColumnType:
    if -(2**31) <= value < 2**31:
        return _INT
    if -(2**63) <= value < 2**63:
        return _BIGINT
    return ColumnType(TypeName.DECIMAL, MAX_PRECISION, 0)


def _decimal_type(value: Decimal) -> ColumnType:
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        return _DOUBLE
    scale = max(0, -exponent)
    precision = max(len(digits) + max(0, exponent), scale, 1)
    if precision > MAX_PRECISION:
        return ColumnType(TypeName.DECIMAL, MAX_PRECISION, min(scale, MAX_PRECISION))
    return ColumnType(TypeName.DECIMAL, precision, scale)
