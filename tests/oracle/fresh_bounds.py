"""How many new values a search may need in each class, so that crowded gaps are searched exactly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from .problem import Problem
from .rules import Atom, Rule
from .value_classes import ValueClasses

Counts = Counter[int]
"""So many of each class, by its number."""


def fresh_bounds(problem: Problem, classes: ValueClasses) -> Counts:
    """An upper bound of the values that one search introduces, without cyclic foreign keys.

    New values come from the variables of the one derivation that the search is for, from
    the variables of one derivation of each view row that its head does not ground, and from the
    columns of the rows that new, inserted or known rows refer to, and so on. A reference
    may have to be met by two rows: one before, another after the update.
    """
    bounds: Counts = Counter()
    for name, rules in problem.rules.items():
        bounds |= _largest(_of_rule(problem, classes, rule, frozenset()) for rule in rules)
        for _ in problem.views[name]:
            bounds += _largest(
                _of_rule(problem, classes, rule, frozenset(rule.head.variables)) for rule in rules
            )
    facts = problem.inserted | (problem.forced or frozenset())
    for name, _ in facts:
        bounds += _companions(problem, classes, name)
    return bounds


def _largest(several: Iterable[Counts]) -> Counts:
    bound: Counts = Counter()
    for one in several:
        bound |= one
    return bound


def _of_rule(problem: Problem, classes: ValueClasses, rule: Rule, bound: frozenset[object]) -> Counts:
    free = [variable for variable in rule.variables if variable not in bound]
    counts = Counter(classes.of_variable(rule, variable).number for variable in free)
    return counts + _sum(_companions(problem, classes, atom.name) for atom in _open(rule, bound))


def _open(rule: Rule, bound: frozenset[object]) -> Iterator[Atom]:
    """The subgoals that are not forced facts."""
    yield from (atom for atom in rule.body if not set(atom.variables) <= bound)


def _sum(several: Iterable[Counts]) -> Counts:
    return sum(several, start=Counter())


def _companions(problem: Problem, classes: ValueClasses, name: str) -> Counts:
    """The new values in the rows that a row of the relation may make necessary."""
    counts: Counts = Counter()
    for key in problem.constraints.foreign_keys:
        if key.child == name:
            others = [i for i in range(problem.arities[key.parent]) if i not in key.targets]
            one = Counter(classes.of_column(key.parent, i).number for i in others)
            one += _companions(problem, classes, key.parent)
            counts += one + one
    return counts
