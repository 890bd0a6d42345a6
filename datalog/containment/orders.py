"""Containment of conjunctive queries with comparisons and null tests.

A query is contained in a union of others iff every database that its body can be frozen to, one for each way in
which its terms may be ordered, equal, null, or of different families, gives its frozen head (Klug 1988). Only finitely
many ways differ, and most need not be looked at: one of them is frozen, and a containment mapping that answers it
answers all for which the mapping's own comparisons hold. What is left are the ways in which one of these does not.

1. Sound: a way is passed over only because it is inconsistent, or because a mapping answers it.
2. Complete for bodies of atoms, comparisons and null tests over the domains of `datalog.order` (a `double` column
   taken as dense). Negations are matched as written, and those of the contained query assume nothing.
3. With a budget: beyond so many frozen databases the answer is "not contained", which is not known then.

Sources: A. Klug, On Conjunctive Queries Containing Inequalities, 1988; A. Gupta, Y. Sagiv, J. Ullman, J. Widom,
Constraint Checking with Partial Information, 1994 (one implication with all mappings on its right side).

Complexity: exponential at worst (the problem is complete for the second level of the polynomial hierarchy).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import TypeAlias

from msgspec import Struct

from datalog.analysis import variable_types
from datalog.budget import check
from datalog.containment.mapping import carries_over
from datalog.copies import replace
from datalog.model import (
    OPPOSITE,
    Atom,
    ColumnType,
    Comparison,
    Constant,
    Negation,
    NullTest,
    Predicate,
    Rule,
    Term,
    Variable,
    apply_comparison,
    apply_rule,
    apply_term,
    terms_of,
    value_kind,
    variables_of,
)
from datalog.order import Point, Types, point_of, precedes, solve

_Place: TypeAlias = tuple[str, Point | None]
"""A value as its family and its point; null is of a family of its own."""

_Model: TypeAlias = Mapping[Term, _Place]

_NULL: _Place = ("null", None)


class Case(Struct, frozen=True):
    """Assumptions about the terms of one query.

    Attributes:
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

    def model(self, terms: tuple[Term, ...], types: Types) -> _Model | None:
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
        return {term: _place_of(term) if term not in found else found[term] for term in terms}


def _place_of(term: Term) -> _Place:
    """The place of a constant; a variable is null."""
    if isinstance(term, Variable) or term.value is None:
        return _NULL
    return value_kind(term.value), point_of(term.value)


def _premises_of(rule: Rule) -> Case | None:
    """What a rule's comparisons and null tests say, or None if they cannot hold."""
    case: Case | None = Case()
    for literal in rule.body:
        if isinstance(literal, Comparison | NullTest) and case is not None:
            case = case.assuming(literal)
    return case


def _holds_in(literal: Comparison | NullTest, model: _Model) -> bool:
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


_BUDGET = 2_000

_Filter = Comparison | NullTest


def contained_in_union(
    query: Rule,
    others: Sequence[Rule],
    types: Mapping[Predicate, tuple[ColumnType, ...]] | None = None,
    budget: int = _BUDGET,
) -> bool:
    """Whether every answer of a query is one of some other query, on every database.

    At most `budget` databases are looked at. Head predicates' names do not matter.

    Returns:
        True if it is contained; False if it is not, or if the budget did not suffice.

    >>> from datalog.syntax import parse_rule
    >>> both = parse_rule("v(X) :- r(X, Y), r(Y, X), X < 9, Y < 9.")
    >>> ascending, descending = (parse_rule(f"v(X) :- r(A, B), A {op} B, r(X, C).") for op in ("<=", ">"))
    >>> contained_in_union(both, [ascending]), contained_in_union(both, [descending])
    (True, False)
    """
    premises = _premises_of(query)
    if premises is None:
        return True
    literals = [li for other in (query, *others) for li in (other.head, *other.body)]
    constants = [
        t for li in literals if not isinstance(li, Negation) for t in terms_of(li) if isinstance(t, Constant)
    ]
    own = variables_of([query.head, *(li for li in query.body if not isinstance(li, Negation))])
    search = _Search(
        query,
        tuple(found for other in others if (found := _bound_by_atoms(other)) is not None),
        tuple(dict.fromkeys((*own, *constants))),
        variable_types(query.body, types or {}),
        budget,
    )
    return search.covers(premises)


class _Search:
    """The ways in which the terms of one query can be, and how many of them were looked at."""

    def __init__(
        self,
        query: Rule,
        others: tuple[Rule, ...],
        terms: tuple[Term, ...],
        types: Mapping[Variable, ColumnType],
        budget: int,
    ) -> None:
        self._query, self._others, self._terms, self._types = query, others, terms, types
        self._left = budget

    def covers(self, premises: Case) -> bool:
        """Whether the other queries answer in every way that is consistent with the premises."""
        waiting = [premises]
        while waiting:
            check()
            case = waiting.pop()
            if self._left == 0:  # condition 3
                return False
            self._left -= 1
            model = case.model(self._terms, self._types)
            if model is None:  # condition 1
                continue
            conditions = self._answer(model)
            if conditions is None:
                return False
            held: Case | None = case
            for condition in conditions:
                if held is None:
                    break
                waiting.extend(held.denying(condition))
                held = held.assuming(condition)
        return True

    def _answer(self, model: _Model) -> tuple[_Filter, ...] | None:
        """What a mapping that answers the frozen query depends on, or None if there is none."""
        for other in self._others:
            for found, same in _matches(other, self._query, model):
                filters = [li for li in other.body if isinstance(li, Comparison | NullTest)]
                mapped = [_mapped(found, literal) for literal in filters]
                negations = [li for li in other.body if isinstance(li, Negation)]
                if all(_holds_in(literal, model) for literal in mapped) and all(
                    carries_over(negation, found, other, self._query) for negation in negations
                ):
                    conditions = dict.fromkeys((*same, *mapped))
                    return tuple(c for c in conditions if variables_of([c]))
        return None


def _mapped(found: Mapping[Variable, Term], literal: _Filter) -> _Filter:
    if isinstance(literal, Comparison):
        return apply_comparison(found, literal)
    return replace(literal, term=apply_term(found, literal.term))


def _bound_by_atoms(rule: Rule) -> Rule | None:
    """The rule with every variable in an atom: what equalities alone bind is replaced. None if unsafe."""
    while True:
        bound = set(variables_of(rule.atoms))
        binding = next(
            (
                (literal, variable, term)
                for literal in rule.body
                if isinstance(literal, Comparison)
                and literal.operator == "="
                and literal.left != literal.right
                for variable, term in ((literal.left, literal.right), (literal.right, literal.left))
                if isinstance(variable, Variable) and variable not in bound
            ),
            None,
        )
        if binding is None:
            needed = variables_of([rule.head, *(li for li in rule.body if not isinstance(li, Negation))])
            return rule if bound.issuperset(needed) else None
        literal, variable, term = binding
        rest = tuple(other for other in rule.body if other is not literal)
        rule = apply_rule({variable: term}, replace(rule, body=(*rest, NullTest(term))))


def _matches(
    other: Rule, query: Rule, model: _Model
) -> Iterator[tuple[Mapping[Variable, Term], tuple[_Filter, ...]]]:
    """The mappings of the atoms and the head that exist in a model, and the equalities that each relies on."""
    index: dict[Predicate, list[Atom]] = {}
    for atom in query.atoms:
        index.setdefault(atom.predicate, []).append(atom)
    start = _unified(other.head, query.head, {}, (), model)
    if start is not None:
        yield from _extend(list(other.atoms), index, start, model)


_Found = tuple[dict[Variable, Term], tuple[_Filter, ...]]


def _extend(
    atoms: list[Atom], index: Mapping[Predicate, list[Atom]], found: _Found, model: _Model
) -> Iterator[_Found]:
    if not atoms:
        yield found
        return
    options = [
        [
            new
            for image in index.get(atom.predicate, ())
            if (new := _unified(atom, image, *found, model)) is not None
        ]
        for atom in atoms
    ]
    at = min(range(len(atoms)), key=lambda number: len(options[number]))
    for choice in options[at]:
        yield from _extend(atoms[:at] + atoms[at + 1 :], index, choice, model)


def _unified(
    atom: Atom, image: Atom, found: Mapping[Variable, Term], same: tuple[_Filter, ...], model: _Model
) -> _Found | None:
    if len(atom.terms) != len(image.terms):
        return None
    extended, relied = dict(found), list(same)
    for term, goal in zip(atom.terms, image.terms, strict=True):
        have = term if isinstance(term, Constant) else extended.setdefault(term, goal)
        if have == goal:
            continue
        if model[have] != model[goal]:
            return None
        if model[goal] == _place_of(Constant(None)):
            relied += [NullTest(have, negated=False), NullTest(goal, negated=False)]
        else:
            relied.append(Comparison("=", have, goal))
    return extended, tuple(relied)
