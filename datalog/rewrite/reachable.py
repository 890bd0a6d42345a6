"""Drop rules: those that no goal needs, that have no rows, or whose rows another rule has."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from datalog.containment import contained_in
from datalog.copies import replace
from datalog.model import Atom, Literal, Negation, NullTest, Predicate, Program, Rule, Term


def drop_unreachable(program: Program, goals: Iterable[Predicate]) -> Program:
    """The rules of the goals and of everything that they use.

    Before: `v(X) :- r(X).  w(X) :- s(X).`  (goal `v`)
    After:  `v(X) :- r(X).`
    """
    by_head = program.by_head()
    waiting = list(goals)
    reached: set[Predicate] = set()
    looked_at: set[int] = set()  # literals that many rules share
    while waiting:
        predicate = waiting.pop()
        if predicate not in reached:
            reached.add(predicate)
            for rule in by_head.get(predicate, ()):
                new = [literal for literal in rule.body if id(literal) not in looked_at]
                looked_at.update(map(id, new))
                waiting.extend(predicates_of(new))
    return replace(program, rules=tuple(rule for rule in program.rules if rule.head.predicate in reached))


def predicates_of(body: Iterable[Literal]) -> Iterator[Predicate]:
    """The predicates of a body, inside negations too."""
    for literal in body:
        if isinstance(literal, Atom):
            yield literal.predicate
        elif isinstance(literal, Negation):
            yield from predicates_of(literal.body)


def drop_empty(program: Program, empty: Iterable[Predicate]) -> Program:
    """The program on databases in which the predicates of `empty` have no rows.

    Before: `a(X) :- r@known(X), not r@deleted(X).  a(X) :- r@inserted(X).`  (with `r@inserted` and `r@deleted` empty)
    After:  `a(X) :- r@known(X).`
    """
    gone = set(empty)
    rules = list(program.rules)
    while True:
        kept = [new for rule in rules if (new := _without(rule, gone)) is not None]
        newly = {r.head.predicate for r in rules} - {r.head.predicate for r in kept}
        rules = kept
        if not newly - gone:
            return replace(program, rules=tuple(rules))
        gone |= newly


def _without(rule: Rule, empty: set[Predicate]) -> Rule | None:
    body = _body(rule.body, empty)
    return None if body is None else replace(rule, body=body)


def _body(body: Iterable[Literal], empty: set[Predicate]) -> tuple[Literal, ...] | None:
    """The body without what is empty; None if it cannot be satisfied."""
    kept: list[Literal] = []
    for literal in body:
        if isinstance(literal, Atom) and literal.predicate in empty:
            return None
        if isinstance(literal, Negation):
            inner = _body(literal.body, empty)
            if inner is None:
                continue
            if not inner:
                return None
            kept.append(replace(literal, body=inner))
        else:
            kept.append(literal)
    return tuple(kept)


def drop_subsumed(program: Program) -> Program:
    """The program without rules that are contained in a sibling (of two equivalent ones the first stays).

    Before: `p(X) :- r(X, Y), s(Y).  p(X) :- r(X, Y).`
    After:  `p(X) :- r(X, Y).`
    """
    kept: dict[Predicate, dict[int, Rule]] = {}
    for number, rule in enumerate(program.rules):
        siblings = kept.setdefault(rule.head.predicate, {})
        if any(contained_in(rule, sibling) for sibling in siblings.values()):
            continue
        for other in [n for n, sibling in siblings.items() if contained_in(sibling, rule)]:
            del siblings[other]
        siblings[number] = rule
    left = sorted(number for siblings in kept.values() for number in siblings)
    return replace(program, rules=tuple(program.rules[number] for number in left))


def asks_for_null(rule: Rule, never_null: Mapping[Predicate, Collection[int]]) -> bool:
    """Whether no row satisfies a rule, because a test asks for a null where there is none.

    Args:
        rule: the rule, such as `bad(X, Y) :- r(X, Y), not (X is not null, Y is not null).`
        never_null: the columns of each predicate that hold no null (0-based).

    Condition of soundness: a variable that an atom of the body binds in a column without null is not null.
    """
    present: set[Term] = {
        literal.terms[i]
        for literal in rule.body
        if isinstance(literal, Atom)
        for i in never_null.get(literal.predicate, ())
    }
    return any(_fails(literal, present) for literal in rule.body)


def _fails(literal: Literal, present: Collection[Term]) -> bool:
    match literal:
        case NullTest(term=term, negated=False):
            return term in present
        case Negation(body=body):
            return all(isinstance(li, NullTest) and li.negated and li.term in present for li in body)
        case _:
            return False
