"""What may be assumed of a query's terms: comparisons, nulls, families; and values that satisfy it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TypeAlias

from datalog.model import OPPOSITE, Comparison, Constant, NullTest, Rule, Term, Variable, value_kind
from datalog.order import Point, Types, point_of, precedes, solve

Place: TypeAlias = tuple[str, Point | None]
"""A value as its family and its point; null is of a family of its own."""

Model: TypeAlias = Mapping[Term, Place]

_NULL: Place = ("null", None)


@dataclass(frozen=True, slots=True)
class Case:
    """Assumptions about the terms of one query.

    Attributes:
        comparisons: that hold.
        null: variables that are null.
        not_null: variables that are not.
        apart: pairs of terms whose values are of different families.
    """

    comparisons: tuple[Comparison, ...] = ()
    null: frozenset[Variable] = frozenset()
    not_null: frozenset[Variable] = frozenset()
    apart: tuple[tuple[Term, Term], ...] = ()

    def assuming(self, literal: Comparison | NullTest) -> Case | None:
        """This case with a literal that holds; None if it cannot, being of a constant."""
        if isinstance(literal, Comparison):
            return replace(self, comparisons=(*self.comparisons, literal))
        if isinstance(literal.term, Constant):
            return self if (literal.term.value is None) != literal.negated else None
        if literal.negated:
            return replace(self, not_null=self.not_null | {literal.term})
        return replace(self, null=self.null | {literal.term})

    def denying(self, literal: Comparison | NullTest) -> Iterator[Case]:
        """The cases, not necessarily consistent, that this one splits into where a literal does not hold."""
        match literal:
            case NullTest(term, negated):
                denied = self.assuming(NullTest(term, not negated))
                if denied is not None:
                    yield denied
            case Comparison(operator, left, right):
                for term in dict.fromkeys((left, right)):
                    denied = self.assuming(NullTest(term, negated=False))
                    if denied is not None:
                        yield denied
                yield replace(
                    self, comparisons=(*self.comparisons, Comparison(OPPOSITE[operator], left, right))
                )
                if operator not in {"=", "!="}:
                    yield replace(self, apart=(*self.apart, (left, right)))

    def model(self, terms: tuple[Term, ...], types: Types) -> Model | None:
        """Values for all terms, as different from each other as easily found, or None if there are none."""
        compared = {t for c in self.comparisons for t in (c.left, c.right)}
        compared.update(t for pair in self.apart for t in pair)
        if self.null & self.not_null or self.null & compared:
            return None
        there = [t for t in terms if isinstance(t, Variable) and t not in self.null]
        premises = [*self.comparisons, *(Comparison("=", variable, variable) for variable in there)]
        found = solve(premises, types, self.apart)
        if found is None:
            return None
        same = [Comparison("!=", a, b) for a, b in combinations(there, 2) if found[a] == found[b]]
        if same:
            found = solve([*premises, *same], types, self.apart) or found
        return {term: place_of(term) if term not in found else found[term] for term in terms}


def place_of(term: Term) -> Place:
    """The place of a constant; a variable is null."""
    if isinstance(term, Variable) or term.value is None:
        return _NULL
    return value_kind(term.value), point_of(term.value)


def premises_of(rule: Rule) -> Case | None:
    """What a rule's comparisons and null tests say, or None if they cannot hold."""
    case: Case | None = Case()
    for literal in rule.body:
        if isinstance(literal, Comparison | NullTest) and case is not None:
            case = case.assuming(literal)
    return case


def holds_in(literal: Comparison | NullTest, model: Model) -> bool:
    """Whether a literal over the terms of a model is true in it."""
    if isinstance(literal, NullTest):
        return (model[literal.term] == _NULL) != literal.negated
    (family, left), (other, right) = model[literal.left], model[literal.right]
    if left is None or right is None:
        return False
    if family != other:
        return literal.operator == "!="
    match literal.operator:
        case "=" | "!=":
            return (left == right) == (literal.operator == "=")
        case "<" | ">=":
            return precedes(left, right) == (literal.operator == "<")
        case ">" | "<=":
            return precedes(right, left) == (literal.operator == ">")
