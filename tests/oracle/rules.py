"""Rules, as the oracle sees them, and a naive evaluator.

A row is a tuple of constants; ``None`` in a row is NULL. Sets, not bags. A view may have
several rules, and a rule variables that its head lacks.

NULL: as a stored value it is one more constant. A variable that occurs two or more
times in a rule's body, or in a comparison, is a condition, and never matches NULL.

Comparisons: numbers by size, texts by code points (so dates in the form 2024-01-31 too);
a text and a number are different, and have no order.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

Constant = str | int | float
Value = Constant | None
Row = tuple[Value, ...]
Relations = Mapping[str, Collection[Row]]
"""A database: the rows of each relation; a relation that is not named is empty."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of a rule."""

    name: str


Term = Variable | Constant
Binding = Mapping[Variable, Value]


@dataclass(frozen=True, slots=True)
class Atom:
    """A predicate's name and its arguments."""

    name: str
    terms: tuple[Term, ...]

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The atom's variables, with repetitions, from left to right."""
        return tuple(term for term in self.terms if isinstance(term, Variable))

    def ground(self, binding: Binding) -> Row:
        """The atom's arguments under a binding of all its variables."""
        return tuple(binding[term] if isinstance(term, Variable) else term for term in self.terms)


OPERATORS: Mapping[str, Callable[[Constant, Constant], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "!=": operator.ne,
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """A condition on two terms."""

    left: Term
    operator: str
    """One of OPERATORS."""
    right: Term

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables compared, from left to right."""
        return tuple(term for term in (self.left, self.right) if isinstance(term, Variable))

    def refuted(self, binding: Binding) -> bool:
        """Whether both sides are bound, and the condition does not hold."""
        left, right = (
            binding.get(term) if isinstance(term, Variable) else term for term in (self.left, self.right)
        )
        if left is None or right is None:
            return any(binding.get(variable, 0) is None for variable in self.variables)
        if isinstance(left, str) != isinstance(right, str) and self.operator not in ("=", "!="):
            raise ValueError(f"{left!r} and {right!r} have no order")
        return not OPERATORS[self.operator](left, right)


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of a view: ``head :- body, comparisons``."""

    head: Atom
    body: tuple[Atom, ...]
    variables: tuple[Variable, ...]
    """The body's variables, each once, in order of occurrence."""
    joined: frozenset[Variable]
    """The variables that occur twice in the body, or in a comparison: never NULL."""
    comparisons: tuple[Comparison, ...] = ()

    @classmethod
    def of(cls, head: Atom, body: tuple[Atom, ...], comparisons: tuple[Comparison, ...] = ()) -> Rule:
        """Make a rule, and refuse one with an unsafe head or comparison."""
        occurrences = [name for atom in body for name in atom.variables]
        variables = tuple(dict.fromkeys(occurrences))
        compared = {name for comparison in comparisons for name in comparison.variables}
        if not compared.union(head.variables) <= set(variables):
            raise ValueError(f"{head.name}: a variable occurs in no subgoal")
        joined = frozenset(v for v in variables if occurrences.count(v) > 1 or v in compared)
        return cls(head, body, variables, joined, comparisons)

    def match(self, atom: Atom, row: Row, binding: Binding) -> Binding | None:
        """Extend ``binding`` so that ``atom`` becomes ``row``, or None if it cannot."""
        if len(row) != len(atom.terms):
            return None
        extended = dict(binding)
        for term, value in zip(atom.terms, row, strict=True):
            if not isinstance(term, Variable):
                if value != term:
                    return None
            elif (value is None and term in self.joined) or extended.setdefault(term, value) != value:
                return None
        return None if self.refuted(extended) else extended

    def refuted(self, binding: Binding) -> bool:
        """Whether a comparison fails whatever else is bound."""
        return any(comparison.refuted(binding) for comparison in self.comparisons)


def derivations(
    rule: Rule, relations: Relations, binding: Binding, subgoals: Sequence[Atom]
) -> Iterator[Binding]:
    """Every way to extend ``binding`` so that all ``subgoals`` are facts."""
    if not subgoals:
        yield binding
        return
    first, rest = subgoals[0], subgoals[1:]
    for row in relations.get(first.name, ()):
        extended = rule.match(first, row, binding)
        if extended is not None:
            yield from derivations(rule, relations, extended, rest)


def evaluate(rule: Rule, relations: Relations) -> frozenset[Row]:
    """The rows that the rule derives."""
    found = derivations(rule, relations, {}, rule.body)
    return frozenset(rule.head.ground(binding) for binding in found)


def contents(rules: Collection[Rule], relations: Relations) -> frozenset[Row]:
    """The rows of the view that the rules define."""
    return frozenset().union(*(evaluate(rule, relations) for rule in rules))


def ordered(rows: Collection[Row]) -> list[list[Value]]:
    """The rows as lists, sorted: NULL before numbers before strings."""
    return [list(row) for row in sorted(rows, key=lambda row: [*map(_rank, row)])]


def _rank(value: Value) -> tuple[int, float, str]:
    if value is None:
        return (0, 0, "")
    return (2, 0, value) if isinstance(value, str) else (1, value, "")
