"""Replace atoms by the body of the one rule that defines them.

Before: `d(Z) :- v2(Y, Z), not t@known(Z).   t@known(Z) :- v1(X, Y, Z).`
After:  `d(Z) :- v2(Y, Z), not v1(X, Y', Z).`

Where the rule's head has a constant or a variable twice, the atom's terms are unified with it: by a
substitution where the atom's variable belongs to the same scope, else by a comparison. A comparison is false
on null, so a head that repeats a variable is unfolded that way only if the rule guards the variable.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count

from msgspec import Struct, field

from datalog.copies import replace
from datalog.model import (
    Atom,
    Comparison,
    Constant,
    Literal,
    Negation,
    NullTest,
    Predicate,
    Program,
    Rule,
    Term,
    Variable,
    apply_atom,
    apply_literal,
    apply_term,
    variables_of,
)


class _NeverError(Exception):
    """The atom that is unfolded has no rows."""


class _Scope(Struct):
    """Variables of one body: `frozen` ones belong to an enclosing body and cannot be substituted."""

    frozen: frozenset[Variable]
    substitution: dict[Variable, Term] = field(default_factory=dict)


def unfold_single_rules(program: Program, keep: Iterable[Predicate] = ()) -> Program:
    """The program with every predicate that one rule without negation defines replaced by that rule's body."""
    while True:
        chosen = _unfoldable(program, frozenset(keep))
        if not chosen:
            return program
        program = unfold(program, {p: program.rules_for(p)[0] for p in chosen})


def _unfoldable(program: Program, keep: frozenset[Predicate]) -> list[Predicate]:
    heads = set(program.heads)
    result = []
    for predicate in program.heads:
        rules = program.rules_for(predicate)
        if predicate in keep or len(rules) != 1:
            continue
        if any(isinstance(li, Atom) and li.predicate in heads for li in rules[0].body):
            continue  # innermost first
        if is_plain(rules[0]):
            result.append(predicate)
    return result


def is_plain(rule: Rule) -> bool:
    """Whether the rule can be unfolded, and its head has no null."""
    return is_unfoldable(rule) and Constant(None) not in rule.head.terms


def is_unfoldable(rule: Rule) -> bool:
    """Whether the rule can be put in place of its head anywhere, inside a negation too."""
    seen: set[Term] = set()
    for term in rule.head.terms:
        if term in seen and isinstance(term, Variable) and NullTest(term) not in rule.body:
            return False
        seen.add(term)
    return True


def unfold(program: Program, definitions: Mapping[Predicate, Rule]) -> Program:
    """The program with the atoms of some predicates replaced by bodies, and the rules of these predicates gone.

    Each definition is the one rule of its predicate, in terms of other predicates.
    """
    kept = []
    for rule in program.rules:
        if rule.head.predicate not in definitions:
            try:
                kept.append(_unfold_rule(rule, definitions))
            except _NeverError:
                continue
    return replace(program, rules=tuple(kept))


def _unfold_rule(rule: Rule, definitions: Mapping[Predicate, Rule]) -> Rule:
    names = _fresh_names([rule.head, *rule.body])
    scope = _Scope(frozenset())
    body = _unfold_body(rule.body, definitions, scope, names)
    body = tuple(apply_literal(scope.substitution, literal) for literal in body)
    return replace(rule, head=apply_atom(scope.substitution, rule.head), body=tuple(dict.fromkeys(body)))


def _unfold_body(
    body: Sequence[Literal], definitions: Mapping[Predicate, Rule], scope: _Scope, names: Iterator[str]
) -> tuple[Literal, ...]:
    result: list[Literal] = []
    for literal in body:
        if isinstance(literal, Atom) and literal.predicate in definitions:
            result.extend(
                _expand(apply_atom(scope.substitution, literal), definitions[literal.predicate], scope, names)
            )
        else:
            result.append(literal)
    bound = frozenset(variables_of([li for li in result if not isinstance(li, Negation)])) | scope.frozen
    unfolded: list[Literal] = []
    for literal in result:
        if isinstance(literal, Negation):
            replaced = _unfold_negation(apply_literal(scope.substitution, literal), definitions, bound, names)
            if replaced is not None:
                unfolded.append(replaced)
        else:
            unfolded.append(apply_literal(scope.substitution, literal))
    return tuple(unfolded)


def _unfold_negation(
    literal: Literal, definitions: Mapping[Predicate, Rule], bound: frozenset[Variable], names: Iterator[str]
) -> Negation | None:
    """The negation unfolded; None if its body can never hold."""
    assert isinstance(literal, Negation)
    scope = _Scope(bound)
    try:
        body = _unfold_body(literal.body, definitions, scope, names)
    except _NeverError:
        return None
    return replace(literal, body=tuple(apply_literal(scope.substitution, inner) for inner in body))


def _expand(atom: Atom, rule: Rule, scope: _Scope, names: Iterator[str]) -> tuple[Literal, ...]:
    suffix = next(names)
    renaming: dict[Variable, Term] = {
        v: Variable(f"{v.name}_{suffix}") for v in variables_of([rule.head, *rule.body])
    }
    head = apply_atom(renaming, rule.head)
    body = tuple(apply_literal(renaming, literal) for literal in rule.body)
    local: dict[Variable, Term] = {}
    extra: list[Literal] = []
    for head_term, term in zip(head.terms, atom.terms, strict=True):
        formal = apply_term(scope.substitution, apply_term(local, head_term))
        actual = apply_term(scope.substitution, term)
        if isinstance(formal, Variable) and formal in renaming.values() and formal not in local:
            local[formal] = actual
        elif formal != actual:
            extra.extend(_equate(formal, actual, scope))
    expanded = (*body, *extra)
    return tuple(apply_literal(scope.substitution, apply_literal(local, li)) for li in expanded)


def _equate(left: Term, right: Term, scope: _Scope) -> tuple[Literal, ...]:
    for variable, term in ((right, left), (left, right)):
        if isinstance(variable, Variable) and variable not in scope.frozen:
            change: dict[Variable, Term] = {variable: term}
            scope.substitution = {v: apply_term(change, t) for v, t in scope.substitution.items()} | change
            return ()
    if isinstance(left, Constant) and isinstance(right, Constant):
        raise _NeverError
    term, variable = (left, right) if isinstance(left, Constant) else (right, left)
    if term == Constant(None):
        return (NullTest(variable, negated=False),)
    return (Comparison("=", variable, term),)


def _fresh_names(literals: Iterable[Literal], mark: str = "") -> Iterator[str]:
    """Suffixes that no variable of the literals ends with."""
    taken = {v.name for v in variables_of(literals)}
    for number in count(1):
        suffix = f"{mark}{number}"
        if not any(name.endswith(f"_{suffix}") for name in taken):
            yield suffix


def unfold_negation(
    negation: Negation, definitions: Mapping[Predicate, Rule], bound: frozenset[Variable], mark: str
) -> Negation | None:
    """One negation with the atoms of some predicates replaced by bodies.

    The rule around it binds `bound`; new variables end in `mark` and a number, apart from those of the rule.

    Returns:
        The negation, or None if its body can never hold.
    """
    return _unfold_negation(negation, definitions, bound, _fresh_names([negation], mark))
