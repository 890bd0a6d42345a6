"""Safety (range restriction): every variable that needs a value gets one from a positive subgoal.

Conditions, for each rule; a body *binds* a variable if the variable occurs in a positive subgoal, or is
equated to a constant or to a variable that is bound:

1. a head variable is bound by the body;
2. a variable of a comparison is bound by the body that the comparison stands in, or by one around it;
3. so is a variable of a null test.

A variable of a negated atom needs no binding: nowhere else bound, it is existential inside the negation. A
variable that several negations share without a binding is a different one in each, which is warned of.

Source: Abiteboul, Hull, Vianu, Foundations of Databases, sections 4.1 and 5.2 (range restriction);
Ullman, Principles of Database and Knowledge-Base Systems, section 3.2 (limited variables).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import assert_never

from datalog.diagnostics import Code, ContextSpan, Diagnostic, Severity
from datalog.model.literals import Atom, Comparison, Literal, Negation, NullTest
from datalog.model.rules import Program, Rule
from datalog.model.substitution import variables_of
from datalog.model.terms import Term, Variable

_SHORTEST_MISSPELT = 3
_BOUND = "`{}` is not bound by any positive subgoal"


def bound_variables(body: Iterable[Literal], outer: Iterable[Variable] = ()) -> frozenset[Variable]:
    """The variables that a body binds, and those bound around it; literals inside negations bind nothing.

    Complexity:
        Quadratic in the number of equalities.

    >>> from datalog.syntax import parse_rule
    >>> rule = parse_rule("v :- r(X), not s(Y), Z = 3, U = Z, W < 2")
    >>> sorted(variable.name for variable in bound_variables(rule.body))
    ['U', 'X', 'Z']
    """
    literals = tuple(body)
    bound = set(outer) | {
        term
        for atom in literals
        if isinstance(atom, Atom)
        for term in atom.terms
        if isinstance(term, Variable)
    }
    equalities = [c for c in literals if isinstance(c, Comparison) and c.operator == "="]
    while True:
        size = len(bound)
        for equality in equalities:
            for side, other in ((equality.left, equality.right), (equality.right, equality.left)):
                if isinstance(side, Variable) and (not isinstance(other, Variable) or other in bound):
                    bound.add(side)
        if len(bound) == size:
            return frozenset(bound)


def check_safety(program: Program) -> list[Diagnostic]:
    """DL201 to DL203 for each variable that needs a binding and has none, DL204 as a warning."""
    return [diagnostic for rule in program.rules for diagnostic in _check_rule(rule)]


def _check_rule(rule: Rule) -> Iterator[Diagnostic]:
    bound = bound_variables(rule.body)
    for term in _distinct(rule.head.terms):
        if isinstance(term, Variable) and term not in bound:  # condition 1
            yield _unsafe_head(term, rule, bound)
    yield from _check_body(rule.body, bound)
    yield from _check_negations(rule, bound)


def _check_body(body: Sequence[Literal], bound: frozenset[Variable]) -> Iterator[Diagnostic]:
    for literal in body:
        match literal:
            case Atom():
                pass
            case Comparison():  # condition 2
                for term in _distinct((literal.left, literal.right)):
                    if isinstance(term, Variable) and term not in bound:
                        yield _unsafe(Code.UNSAFE_COMPARISON, "comparison", term, literal, bound)
            case NullTest():  # condition 3
                if isinstance(literal.term, Variable) and literal.term not in bound:
                    yield _unsafe(Code.UNSAFE_NULL_TEST, "null test", literal.term, literal, bound)
            case Negation():
                yield from _check_body(literal.body, bound_variables(literal.body, bound))
            case _:
                assert_never(literal)


def _check_negations(rule: Rule, bound: frozenset[Variable]) -> Iterator[Diagnostic]:
    """Warn of each unbound variable that two negations share."""
    first: dict[Variable, Variable] = {}
    needs_binding = set(rule.head.terms) | set(
        variables_of(literal for literal in rule.body if isinstance(literal, Comparison | NullTest))
    )
    for negation in (literal for literal in rule.body if isinstance(literal, Negation)):
        for variable in variables_of(negation.body):
            if variable in bound or variable in needs_binding:
                continue
            earlier = first.setdefault(variable, variable)
            if earlier is not variable:
                yield _shared(variable, earlier)


def _unsafe_head(variable: Variable, rule: Rule, bound: frozenset[Variable]) -> Diagnostic:
    hint = _near(variable, bound) if rule.body else "a fact holds constants only"
    return Diagnostic(
        Code.UNSAFE_HEAD,
        f"unsafe variable `{variable}` in rule head",
        variable.span or rule.head.span,
        _BOUND.format(variable),
        _only_negated(variable, rule.body),
        note="every head variable must occur in a positive subgoal (range restriction)",
        hint=hint or f"add a positive subgoal that binds `{variable}`, or drop it from the head",
    )


def _unsafe(
    code: Code, kind: str, variable: Variable, literal: Comparison | NullTest, bound: frozenset[Variable]
) -> Diagnostic:
    return Diagnostic(
        code,
        f"unsafe variable `{variable}` in {kind}",
        variable.span or literal.span,
        _BOUND.format(variable),
        note=f"every variable of a {kind} must be bound by a positive subgoal or an equality",
        hint=_near(variable, bound) or f"add a positive subgoal that binds `{variable}`",
    )


def _shared(variable: Variable, earlier: Variable) -> Diagnostic:
    return Diagnostic(
        Code.SHARED_BY_NEGATIONS,
        f"variable `{variable}` is a different one in each negation",
        variable.span,
        f"nothing outside the negations binds `{variable}`",
        () if earlier.span is None else (ContextSpan(earlier.span, "the other negation"),),
        note="a variable that only negations hold is existential inside each of them",
        hint=f"put them into one negation `not (..., ...)`, or bind `{variable}` by a positive subgoal",
        severity=Severity.WARNING,
    )


def _only_negated(variable: Variable, body: Sequence[Literal]) -> tuple[ContextSpan, ...]:
    """Where the variable stands in a negation: that it does so does not bind it."""
    for negation in (literal for literal in body if isinstance(literal, Negation)):
        if variable in variables_of(negation.body) and negation.span is not None:
            return (ContextSpan(negation.span, "a negation binds nothing"),)
    return ()


def _near(variable: Variable, bound: frozenset[Variable]) -> str | None:
    """A bound variable whose name is nearly the same."""
    names = sorted({other.name for other in bound if not other.name.startswith("_")})
    by_case = [name for name in names if name.lower() == variable.name.lower()]
    near = by_case or (
        get_close_matches(variable.name, names, 1) if len(variable.name) >= _SHORTEST_MISSPELT else []
    )
    return f"did you mean `{near[0]}`?" if near else None


def _distinct(terms: Iterable[Term]) -> tuple[Term, ...]:
    return tuple(dict.fromkeys(terms))
