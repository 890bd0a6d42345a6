"""Evaluation of safe non-recursive programs, top down with memory, from the definition.

Null is a value like another for atoms (shared variables match it); comparisons with null are false.
A boolean is not a number: `true` and `1` never match.

Bindings hold what is used later and nothing else: rows of an atom that agree in all that is used later count once.
Parts of a body that share no variable are solved one by one before they are combined, and only for the head.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, TypeAlias, assert_never

from datalog.budget import check
from datalog.evaluate.order import binding_order, compares, independent_parts, unbound
from datalog.model import (
    Atom,
    Comparison,
    Constant,
    Literal,
    Negation,
    NullTest,
    Predicate,
    Program,
    Row,
    Rule,
    Term,
    Value,
    Variable,
    ground,
    value_of,
    variables_of,
)

Facts: TypeAlias = Mapping[Predicate, frozenset[Row]]
Binding: TypeAlias = dict[Variable, Value]
Plan: TypeAlias = tuple[tuple[Literal, frozenset[Variable]], ...]
"""The literals of a body in the order of their evaluation, each with the variables that are used after it."""


def evaluate(program: Program, goal: Predicate, facts: Facts) -> frozenset[Row]:
    """The extension of one predicate.

    A predicate with rules is not looked up in `facts`; one that has neither is empty.

    Raises:
        ValueError: an unsafe rule: a variable of its head, or of a filter, that nothing binds.

    >>> from datalog.model import Atom, Variable
    >>> x = Variable("X")
    >>> copy = Rule(Atom(Predicate("v"), (x,)), (Atom(Predicate("r"), (x,)),))
    >>> evaluate(Program((copy,)), Predicate("v"), {Predicate("r"): frozenset({("a",)})})
    frozenset({('a',)})
    """
    return Evaluator(program, facts).extension(goal)


class Evaluator:
    """One program over one set of facts; extensions and hash indexes are computed once, when first needed."""

    def __init__(self, program: Program, facts: Facts) -> None:
        self._facts = facts
        self._rules: dict[Predicate, list[Rule]] = {}
        for rule in program.rules:
            self._rules.setdefault(rule.head.predicate, []).append(rule)
        self._extensions: dict[Predicate, frozenset[Row]] = {}
        self._indexes: dict[
            tuple[Predicate, int, tuple[int, ...], tuple[int, ...]], dict[Row, dict[Row, Row]]
        ] = {}
        self._inner: dict[tuple[int, frozenset[Variable]], tuple[Plan, ...]] = {}

    def extension(self, predicate: Predicate) -> frozenset[Row]:
        """All rows of a predicate."""
        if predicate not in self._rules:
            return self._facts.get(predicate, frozenset())
        if predicate not in self._extensions:
            self._extensions[predicate] = frozenset(
                row for rule in self._rules[predicate] for row in self._derive(rule)
            )
        return self._extensions[predicate]

    def first(self, predicate: Predicate) -> Row | None:
        """One row of a predicate if it has any, without computing all of them."""
        if predicate not in self._rules or predicate in self._extensions:
            return next(iter(self.extension(predicate)), None)
        return next((row for rule in self._rules[predicate] for row in self._derive(rule)), None)

    def _derive(self, rule: Rule) -> Iterator[Row]:
        if not _is_safe(rule):
            raise ValueError("unsafe rule: a variable of the head is never bound")
        head = variables_of([rule.head])
        plans = _plans(rule.body, frozenset(), head)
        needed = [plan for plan in plans if not set(head).isdisjoint(variables_of([li for li, _ in plan]))]
        if not len(plans) == len(needed) == 1 and not self._have_rows(plans, {}):
            return
        for binding in self._solve(tuple(chain.from_iterable(needed)), 0, {}):
            yield ground(rule.head.terms, binding)

    def _solve(self, plan: Plan, at: int, binding: Binding) -> Iterator[Binding]:
        check()
        if at == len(plan):
            yield binding
            return
        literal, later = plan[at]
        match literal:
            case Atom():
                for extended in self._matches(literal, binding, later):
                    yield from self._solve(plan, at + 1, extended)
            case Comparison(operator="=") if (variable := unbound(literal, binding)) is not None:
                value = value_of(literal.right if variable == literal.left else literal.left, binding)
                if value is not None:
                    yield from self._solve(plan, at + 1, {**binding, variable: value})
            case Comparison():
                if compares(
                    literal.operator, value_of(literal.left, binding), value_of(literal.right, binding)
                ):
                    yield from self._solve(plan, at + 1, binding)
            case NullTest():
                if (value_of(literal.term, binding) is None) != literal.negated:
                    yield from self._solve(plan, at + 1, binding)
            case Negation():
                if not self._have_rows(self._inner_plans(literal, binding), binding):
                    yield from self._solve(plan, at + 1, binding)
            case _:
                assert_never(literal)

    def _have_rows(self, plans: Iterable[Plan], binding: Binding) -> bool:
        """Whether each of some parts of a body holds for some values: each is asked by itself."""
        return all(next(self._solve(plan, 0, binding), None) is not None for plan in plans)

    def _inner_plans(self, negation: Negation, binding: Binding) -> tuple[Plan, ...]:
        key = (id(negation), frozenset(binding))
        if key not in self._inner:
            self._inner[key] = _plans(negation.body, frozenset(binding), ())
        return self._inner[key]

    def _matches(self, atom: Atom, binding: Binding, later: frozenset[Variable]) -> Iterator[Binding]:
        fixed = tuple(i for i, t in enumerate(atom.terms) if isinstance(t, Constant) or t in binding)
        wanted = tuple(
            i
            for i, t in enumerate(atom.terms)
            if isinstance(t, Variable) and t not in binding and (t in later or atom.terms.count(t) > 1)
        )
        key = tuple(_key(value_of(atom.terms[i], binding)) for i in fixed)
        terms = tuple(atom.terms[i] for i in wanted)
        for row in self._index(atom.predicate, atom.arity, fixed, wanted).get(key, {}).values():
            extended = _extend(terms, row, binding)
            if extended is not None:
                yield extended

    def _index(
        self, predicate: Predicate, arity: int, positions: tuple[int, ...], wanted: tuple[int, ...]
    ) -> dict[Row, dict[Row, Row]]:
        """By the values of some columns, the distinct values of some others."""
        index = self._indexes.get((predicate, arity, positions, wanted))
        if index is None:
            index = {}
            for row in self.extension(predicate):
                if len(row) != arity:
                    raise ValueError(f"a row of {len(row)} values where there are {arity} terms")
                found = index.setdefault(tuple(_key(row[i]) for i in positions), {})
                found.setdefault(tuple(_key(row[i]) for i in wanted), tuple(row[i] for i in wanted))
            self._indexes[predicate, arity, positions, wanted] = index
        return index


@lru_cache(maxsize=10_000)
def _is_safe(rule: Rule) -> bool:
    """Whether the body binds every variable of the head."""
    bound = variables_of([literal for literal in rule.body if not isinstance(literal, Negation)])
    return set(variables_of([rule.head])) <= set(bound)


def _plans(
    body: tuple[Literal, ...], bound: frozenset[Variable], wanted: tuple[Variable, ...]
) -> tuple[Plan, ...]:
    """A plan for each part of a body that shares no variable with others."""
    return tuple(
        tuple(zip(binding_order(part, bound), _later(part, bound, wanted), strict=True))
        for part in independent_parts(body, bound)
    )


@lru_cache(maxsize=10_000)
def _later(
    body: tuple[Literal, ...], bound: frozenset[Variable], wanted: tuple[Variable, ...]
) -> tuple[frozenset[Variable], ...]:
    """The variables used after each literal; kept apart from the literals, of which equal ones may say 1 and 1.0."""
    later = set(wanted)
    found: list[frozenset[Variable]] = []
    for literal in reversed(binding_order(body, bound)):
        found.append(frozenset(later))
        later.update(variables_of([literal]))
    return tuple(reversed(found))


def _key(value: Value) -> Any:
    """A hash key that tells booleans from numbers."""
    return ("boolean", value) if value is True or value is False else value


def _extend(terms: Sequence[Term], row: Row, binding: Binding) -> Binding | None:
    extended = dict(binding)
    for term, value in zip(terms, row, strict=True):
        if isinstance(term, Variable):
            if term not in extended:
                extended[term] = value
            elif _key(extended[term]) != _key(value):
                return None
    return extended
