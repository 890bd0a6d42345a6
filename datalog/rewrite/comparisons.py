"""Simplify what a rule compares, with the types of its columns.

Before: `v(X, Y) :- r(X, Y), X > 2, X < 4, Y > 1, Y >= X, Y != 1.`  (with `x: int`)
After:  `v(3, Y) :- r(3, Y), Y >= 3.`

Equalities that follow are substituted, comparisons that follow from the others are dropped, a rule whose comparisons
contradict each other goes, and so does a negation whose do.

1. A comparison is false on null: a variable of which nothing is said any more is guarded.
2. Types must be true of the stored values. Inferred decimals may have been rounded to fit: they count as dense.
3. A goal keeps its last rule, so that it stays a relation that rules define.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from datalog.analysis import column_types, variable_types
from datalog.copies import replace
from datalog.model import (
    ColumnType,
    Comparison,
    Constant,
    Literal,
    Negation,
    NullTest,
    Predicate,
    Program,
    Rule,
    Term,
    TypeName,
    Variable,
    apply_rule,
)
from datalog.order import NormalForm, Types, normalise, satisfiable
from datalog.rewrite.reachable import drop_empty

_ColumnTypes = Mapping[Predicate, tuple[ColumnType, ...]]


def simplify_comparisons(program: Program, goals: Iterable[Predicate] = ()) -> Program:
    """The program with every rule's comparisons simplified, without rules that never have a row.

    Types are those of the declarations; a goal keeps a rule even if it never has a row.
    """
    types = _trusted(program)
    simplified = {id(rule): simplify_rule(rule, types) for rule in program.rules}
    kept = set(goals)
    rules: list[Rule] = []
    for rule in program.rules:
        new = simplified[id(rule)]
        siblings = [r for r in program.rules if r.head.predicate == rule.head.predicate]
        if new is not None:
            rules.append(new)
        elif rule.head.predicate in kept and all(simplified[id(r)] is None for r in siblings):
            kept.remove(rule.head.predicate)  # condition 3
            rules.append(rule)
    gone = {rule.head.predicate for rule in program.rules} - {rule.head.predicate for rule in rules}
    program = replace(program, rules=tuple(rules))
    return drop_empty(program, gone) if gone else program


def simplify_rule(rule: Rule, types: _ColumnTypes | None = None) -> Rule | None:
    """The rule with its comparisons simplified, or None if it never has a row.

    A column of no given type is `any`.

    >>> from datalog.syntax import parse_rule, show
    >>> show(simplify_rule(parse_rule("v(X) :- r(X), X > 2, X >= 2, X != 1.")))
    'v(X) :- r(X), X > 2.'
    >>> simplify_rule(parse_rule("v(X) :- r(X), X < 3, X > 5.")) is None
    True
    """
    body = _without_true_negations(rule.body, types or {}, {})
    rule = replace(rule, body=body)
    compared = [literal for literal in body if isinstance(literal, Comparison)]
    if not compared:
        return rule
    form = normalise(compared, variable_types(body, types or {}))
    if form is None:
        return None
    return _restated(rule, form)


def _restated(rule: Rule, form: NormalForm) -> Rule | None:
    """The rule that says what the normal form says instead of its comparisons."""
    rule = apply_rule(form.equal, rule)
    waiting = list(form.comparisons)
    said = {term for c in form.comparisons for term in (c.left, c.right)}
    not_null = said | set(form.not_null)
    body: list[Literal] = []
    for literal in dict.fromkeys(rule.body):
        match literal:
            case Comparison():
                if literal in waiting:
                    waiting.remove(literal)
                    body.append(literal)
            case NullTest(Constant(value), negated):
                if (value is None) == negated:
                    return None
            case NullTest(term, negated) if term in not_null:
                if not negated:
                    return None
            case _:
                body.append(literal)
    guards = (NullTest(variable) for variable in form.not_null)  # condition 1
    return replace(rule, body=(*body, *guards))


def _without_true_negations(
    body: Iterable[Literal], types: _ColumnTypes, outer: Mapping[Variable, ColumnType]
) -> tuple[Literal, ...]:
    """The body without negations whose comparisons contradict each other."""
    literals = tuple(body)
    known: Types = {**variable_types(literals, types), **outer}
    result: list[Literal] = []
    for literal in literals:
        if not isinstance(literal, Negation):
            result.append(literal)
            continue
        inner = _without_true_negations(literal.body, types, known)
        compared = [li for li in inner if isinstance(li, Comparison)]
        if not compared or satisfiable(compared, {**variable_types(inner, types), **known}):
            # A body of which nothing is left is always satisfied, which an empty negation cannot say.
            result.append(replace(literal, body=inner) if inner else literal)
    return tuple(result)


def _trusted(program: Program) -> _ColumnTypes:
    """The column types that the stored values certainly have."""
    declared = {declaration.name for declaration in program.declarations}
    return {
        predicate: tuple(
            ColumnType(TypeName.DOUBLE)
            if t.name is TypeName.DECIMAL and predicate.name not in declared
            else t
            for t in columns  # condition 2
        )
        for predicate, columns in column_types(program).items()
    }


def propagate_equalities(rule: Rule) -> Rule:
    """The rule without equalities that a substitution expresses. Idempotent.

    Before: `v(X, Y) :- r(X, Y), X = 'a'.`
    After:  `v('a', Y) :- r('a', Y).`

    A comparison is false on null, so the variable that stays is guarded: `X = Y` leaves `Y is not null`.
    Sound for positive literals only; equalities inside a negation stay.
    """
    while (found := _first_equality(rule)) is not None:
        comparison, variable, term = found
        body = tuple(literal for literal in rule.body if literal is not comparison)
        if isinstance(term, Variable):
            body = (*body, NullTest(term))
        rule = apply_rule({variable: term}, replace(rule, body=tuple(dict.fromkeys(body))))
        rule = replace(rule, body=tuple(dict.fromkeys(rule.body)))
    return rule


def _first_equality(rule: Rule) -> tuple[Comparison, Variable, Term] | None:
    for literal in rule.body:
        if isinstance(literal, Comparison) and literal.operator == "=" and literal.left != literal.right:
            for variable, term in ((literal.left, literal.right), (literal.right, literal.left)):
                if isinstance(variable, Variable) and not (isinstance(term, Constant) and term.value is None):
                    return literal, variable, term
    return None
