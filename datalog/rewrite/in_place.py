"""Steps of a demand transformation as parts of the queries that use them, where no query grows by that.

Before: `p(X, Z) :- new(X, Y), r@demanded(Y, Z), not step(Y).      r@demanded(Y, Z) :- r@demand(Y), r(Y, Z).
         r@demand(Y) :- new(X, Y).                                 s@demand(Y) :- new(X, Y).
         step(Y) :- new(X, Y), s@demanded(Y).                      s@demanded(Y) :- s@demand(Y), s(Y, Z).`
After:  `p(X, Z) :- new(X, Y), r(Y, Z), not s(Y, Z').`

An engine that evaluates a predicate at a time needs them all. A query that starts at the rows whose values are demanded
asks by them anyway: a demand that the literals around imply is left out. The others ask for no more than binds their
values, so that little is computed twice where an engine (Spark) computes an expression wherever it is read.

Conditions of soundness:

1. A demand only restricts what is met again, so it may have more values, or be left out (`datalog/rewrite/demand.py`,
   condition 1); as a test, `not not`, it multiplies no rows.
2. A test, or an atom of a negation, whose own variables stand nowhere else is implied by literals that hold around it
   if it maps to them, what is bound there staying as it is.
3. Sets do not show how often a row is derived. A step that shows a part of its body, and so makes rows fewer, is put in
   place only where nothing is multiplied: as the only subgoal of a body, as a test, or if what it does not show is
   said around it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from datalog.containment import containment_mapping
from datalog.copies import replace
from datalog.graphs import components
from datalog.model import (
    Atom,
    Literal,
    Negation,
    Predicate,
    Program,
    Rule,
    Term,
    Variable,
    Version,
    terms_of,
    variables_of,
)
from datalog.rewrite.normal_form import normal_rule
from datalog.rewrite.reachable import predicates_of
from datalog.rewrite.unfold import is_unfoldable, unfold

STEPS = (Version.DEMAND, Version.PROJECTED, Version.DEMANDED, Version.STEP)
"""What a demand transformation makes, in the order in which it is put in place."""

Definitions = Mapping[Predicate, Sequence[Rule]]


def in_place(definitions: Definitions, goal: Predicate) -> dict[Predicate, tuple[Rule, ...]]:
    """Equivalent definitions of a goal, with fewer steps.

    Definitions are in normal form, in an order of evaluation.
    """
    found = {
        p: tuple(_with_tests(_widened(rule, definitions)) for rule in rules)
        for p, rules in definitions.items()
    }
    tried: dict[tuple[Rule, Rule], Rule | None] = {}
    while (move := next(_moves(found, goal, tried), None)) is not None:
        user, number, made = move
        rules = [*found[user]]
        rules[number] = made
        found[user] = tuple(dict.fromkeys(rules))
        used = Counter(_uses(found))
        found = {p: rules for p, rules in found.items() if p == goal or used[p] or p.version not in STEPS}
    return found


def widened(program: Program) -> Program:
    """A program whose demands ask for no less, and read as little as binds their values.

    Where rows are demanded of what has rules, these ask by themselves.
    """
    definitions = program.by_head()
    return replace(program, rules=tuple(_freed(_widened(rule, definitions)) for rule in program.rules))


def _freed(rule: Rule) -> Rule:
    """The rule without its demand where it is left out: condition 1."""
    demand = _demand_of(rule)
    if demand is None or rule.head.predicate.name in [str(li.predicate) for li in rule.atoms]:
        return rule
    return replace(rule, body=tuple(li for li in rule.body if li is not demand))


def _demand_of(rule: Rule) -> Atom | None:
    """The demand in a body, if it binds nothing that the body does not bind without it."""
    for literal in rule.atoms:
        if literal.predicate.version is Version.DEMAND:
            bound = variables_of(li for li in rule.atoms if li is not literal)
            if set(bound).issuperset(variables_of([rule.head, literal])):
                return literal
    return None


def _widened(rule: Rule, definitions: Definitions) -> Rule:
    """A demand that asks for no less, and reads as little as binds its values."""
    if rule.head.predicate.version is not Version.DEMAND:
        return rule
    made = rule
    while steps := {a.predicate: definitions[a.predicate][0] for a in made.atoms if _is_step(a, definitions)}:
        unfolded = unfold(Program((made,)), steps).rules
        if not unfolded:
            return rule
        (made,) = unfolded
    wanted = set(variables_of([made.head]))
    if not wanted.issubset(variables_of(made.atoms)):
        return rule
    first = next((atom for atom in made.atoms if wanted.issubset(atom.terms)), None)
    return replace(made, body=made.atoms if first is None else (first,))


def _is_step(atom: Atom, definitions: Definitions) -> bool:
    rules = definitions.get(atom.predicate, ())
    return atom.predicate.version is Version.STEP and len(rules) == 1 and is_unfoldable(rules[0])


def _uses(definitions: Definitions) -> Iterator[Predicate]:
    for rules in definitions.values():
        for rule in rules:
            yield from predicates_of(rule.body)


def _moves(
    found: Definitions, goal: Predicate, tried: dict[tuple[Rule, Rule], Rule | None]
) -> Iterator[tuple[Predicate, int, Rule]]:
    """Which rules of which predicates can have a step in place, and what they are then; demands first."""
    used = Counter(_uses(found))
    steps = [p for p in found if p.version in STEPS and p != goal and len(found[p]) == 1]
    for predicate in sorted(steps, key=lambda p: STEPS.index(p.version)):
        (definition,) = found[predicate]
        renames = len(definition.body) == 1 and isinstance(definition.body[0], Atom)
        if is_unfoldable(definition) and (renames or used[predicate] == 1):
            for user, rules in found.items():
                for number, rule in enumerate(rules):
                    if predicate in predicates_of(rule.body):
                        if (rule, definition) not in tried:
                            tried[rule, definition] = _moved(rule, definition)
                        made = tried[rule, definition]
                        if made is not None:
                            yield user, number, made


def _moved(rule: Rule, definition: Rule) -> Rule | None:
    """A rule with a step in place; None if that could multiply rows, or leaves none."""
    body = _ready(rule.body, definition.head.predicate, _shows_all(definition))
    start = rule if body is None else replace(rule, body=body)
    unfolded = unfold(Program((start,)), {definition.head.predicate: definition}).rules
    normal = normal_rule(unfolded[0]) if unfolded else None
    if normal is None:
        return None
    made = _unsaid(normal)
    is_more = len(_bound(made.body)) > len(_bound(rule.body))
    return None if body is None and is_more else made


def _bound(body: Sequence[Literal]) -> list[Variable]:
    """The variables of the atoms of a body, and those of each negation in it that are met there."""
    inner = [v for li in body if isinstance(li, Negation) for v in _met(li)]
    return [*variables_of(li for li in body if isinstance(li, Atom)), *inner]


def _met(negation: Negation) -> list[Variable]:
    """The variables of a negation's atoms but those that stand once: no row is met twice for their values."""
    number = Counter(terms_of(negation))
    return [v for v in _bound(negation.body) if number[v] > 1]


def _shows_all(rule: Rule) -> bool:
    return set(variables_of([rule.head])).issuperset(variables_of(rule.atoms))


def _ready(body: Sequence[Literal], predicate: Predicate, shows_all: bool) -> tuple[Literal, ...] | None:
    """A body in which a step can be put in place: condition 3; None if it cannot."""
    made: list[Literal] = []
    for literal in body:
        match literal:
            case Negation(inner):
                found = _ready(inner, predicate, shows_all)
                if found is None:
                    return None
                made.append(replace(literal, body=found))
            case Atom() if literal.predicate == predicate and not shows_all:
                atoms = [li for li in body if isinstance(li, Atom)]
                others = [atom for atom in atoms if atom.predicate != predicate]
                if len(atoms) == 1:
                    made.append(literal)
                elif _binds(others, literal):
                    made.append(Negation((Negation((literal,)),)))
                else:
                    return None
            case _:
                made.append(literal)
    return tuple(made)


def _binds(others: Sequence[Atom], atom: Atom) -> bool:
    """Whether an atom can be a test: others bind its variables, and share some with each other where it ties them."""
    if not set(variables_of(others)).issuperset(variables_of([atom])):
        return False
    return _parts(others) <= _parts([*others, atom])


def _parts(atoms: Sequence[Atom]) -> int:
    """How many parts some atoms fall into that share no variable."""
    sets = [frozenset(variables_of([atom])) for atom in atoms]
    edges = [(i, j) for i, one in enumerate(sets) for j in range(i) if one & sets[j]]
    return len(list(components(range(len(atoms)), edges)))


def _with_tests(rule: Rule) -> Rule:
    """The rule with its demand as a test, or without: condition 1."""
    left = _freed(rule)
    demand = _demand_of(left)
    if demand is not None:
        rest = tuple(li for li in left.body if li is not demand)
        left = replace(left, body=(*rest, Negation((Negation((demand,)),))))
    return _unsaid(left)


def _unsaid(rule: Rule) -> Rule:
    """The rule without what the literals around say: condition 2."""
    return replace(rule, body=_without_said(rule.body, (), frozenset()))


def _without_said(
    body: Sequence[Literal], around: Sequence[Literal], bound: frozenset[Variable]
) -> tuple[Literal, ...]:
    here = bound.union(variables_of(li for li in body if not isinstance(li, Negation)))
    left: list[Literal] = list(body)
    for literal in body:
        others = [li for li in left if li is not literal]
        match literal:
            case Negation((Negation(test),)) if _is_said(test, [*around, *others], here):
                left.remove(literal)
            case Negation(inner):
                given = [*around, *others]
                kept = _without_said(_without_atoms(inner, given, here), given, here)
                if kept:  # of a body of which all is said the negation never holds: it stays as it is
                    left[left.index(literal)] = replace(literal, body=kept)
            case _:
                pass
    return tuple(left)


def _without_atoms(
    body: Sequence[Literal], around: Sequence[Literal], bound: frozenset[Variable]
) -> tuple[Literal, ...]:
    """A negated body without atoms that hold around it; never without all of it."""
    left = list(body)
    for literal in body:
        others = [li for li in left if li is not literal]
        own = set(variables_of([literal])) - bound
        if not isinstance(literal, Atom) or not others or not own.isdisjoint(variables_of(others)):
            continue
        if _is_said((literal,), around, bound):
            left = others
    return tuple(left)


def _is_said(test: Sequence[Literal], given: Sequence[Literal], bound: Collection[Variable]) -> bool:
    fixed: dict[Variable, Term] = {v: v for v in variables_of(test) if v in bound}
    return containment_mapping(test, given, fixed) is not None
