"""Random safe programs with typed columns, small databases, and their meaning by definition.

The meaning is computed row by row from the definition of a satisfied body, with no order of evaluation, no
index and no rewriting; it shares no code with the package beyond the syntax tree.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import product
from random import Random
from typing import Any

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
    value_kind,
    variables_of,
)
from datalog.sql import Table

Facts = Mapping[Predicate, frozenset[Row]]
Binding = dict[Variable, Value]

POOLS: Mapping[str, Sequence[Value]] = {
    "int": (1, 2, 3),
    "string": ("a", "it's \\ \"`\n\t%_", "${spark.app.name} \\u0041 ü😀\0\x01"),
    "name": ("a", "b", "it's"),
    "boolean": (True, False),
    "date": (dt.date(2024, 2, 29), dt.date(1969, 12, 31)),
    "decimal(9,2)": (Decimal("1.50"), Decimal("-2.00")),
    "double": (1.5, -2.0, 1e300),
    "timestamp": (dt.datetime(2024, 2, 29, 23, 59, 59, 999999), dt.datetime(2024, 3, 1)),
}
PLAIN = ("int", "name")
OPERATORS = ("=", "!=", "<", "<=", ">", ">=")


@dataclass(frozen=True)
class Relation:
    """A stored predicate: its table and the types of its columns."""

    predicate: Predicate
    types: tuple[str, ...]
    table: Table


def relation(name: str, types: Sequence[str], not_null: Iterable[int] = ()) -> Relation:
    columns = tuple(f"{name}.{position}`" for position in range(len(types)))
    return Relation(Predicate(name), tuple(types), Table((f"t `{name}",), columns, frozenset(not_null)))


def relations(kinds: Sequence[str]) -> tuple[Relation, ...]:
    """A few relations whose columns have these types, all of them at least once."""
    first, second = kinds[0], kinds[1]
    joins = (
        relation("r", (first, first)),
        relation("s", (first, second), (0,)),
        relation("u", (first,), (0,)),
    )
    return (*joins, *(relation(f"w{n}", (first, kind)) for n, kind in enumerate(kinds[2:])))


def tables_of(stored: Iterable[Relation]) -> dict[Predicate, Table]:
    return {one.predicate: one.table for one in stored}


def random_facts(
    random: Random, stored: Iterable[Relation], most: int = 5
) -> dict[Predicate, frozenset[Row]]:
    def cell(kind: str, nullable: bool) -> Value:
        return None if nullable and random.random() < 0.3 else random.choice(POOLS[kind])

    return {
        one.predicate: frozenset(
            tuple(cell(kind, n not in one.table.not_null) for n, kind in enumerate(one.types))
            for _ in range(random.randint(0, most))
        )
        for one in stored
    }


# ---------------------------------------------------------------------------------------------- programs


class Generator:
    """Random programs over some relations; the goal is the last predicate defined."""

    def __init__(self, random: Random, stored: Sequence[Relation], *, many_facts: bool = True) -> None:
        self.random = random
        self.kinds = sorted({kind for one in stored for kind in one.types})
        self.known: list[tuple[Predicate, tuple[str, ...]]] = [(one.predicate, one.types) for one in stored]
        self.many_facts = many_facts
        self.names = 0

    def program(self) -> tuple[Program, Predicate, tuple[str, ...]]:
        """A program, its goal, and the types of the goal's columns."""
        rules: list[Rule] = []
        for number in range(self.random.randint(1, 4)):
            types = tuple(
                self.random.choice(self.kinds) for _ in range(self.random.choice((0, 1, 1, 2, 2, 3)))
            )
            head = Predicate(f"p{number}")
            if self.many_facts and types and self.random.random() < 0.15:
                rules += [self.fact(head, types) for _ in range(self.random.randint(1, 3))]
            rules += [self.rule(head, types) for _ in range(self.random.choice((1, 1, 1, 2, 3)))]
            self.known.append((head, types))
        return Program(tuple(rules)), *self.known[-1]

    def fact(self, head: Predicate, types: Sequence[str]) -> Rule:
        return Rule(Atom(head, tuple(self.constant(kind, 0.1) for kind in types)))

    def rule(self, head: Predicate, types: Sequence[str]) -> Rule:
        scope: dict[Variable, str] = {}
        body = self.body(scope, {}, self.random.choice((0, 1, 2, 2, 2, 3)), 0)
        terms: list[Term] = []
        for kind in types:
            fitting = [variable for variable, other in scope.items() if other == kind]
            terms.append(self.random.choice(fitting) if fitting else self.constant(kind, 0.1))
        return Rule(Atom(head, tuple(terms)), tuple(body))

    def body(
        self, scope: dict[Variable, str], outer: Mapping[Variable, str], atoms: int, depth: int
    ) -> list[Literal]:
        """A safe body; adds the variables that it binds to `scope`."""
        result: list[Literal] = [self.atom(scope, outer) for _ in range(atoms)]
        if self.random.random() < 0.2:
            result.append(self.binding(scope, outer))
        visible = {**outer, **scope}
        tests = self.random.choice((0, 0, 1, 2) if depth else (0, 0, 1))
        result += [self.test(visible) for _ in range(tests)]
        negations = self.random.choice(((0, 1, 1, 2), (0, 0, 1, 1), (0, 0, 1), (0,))[depth])
        result += [self.negation(visible, depth + 1) for _ in range(negations)]
        self.random.shuffle(result)
        return result or [self.test(visible)]

    def negation(self, outer: Mapping[Variable, str], depth: int) -> Negation:
        return Negation(tuple(self.body({}, outer, self.random.choice((0, 0, 1, 1, 2)), depth)))

    def atom(self, scope: dict[Variable, str], outer: Mapping[Variable, str]) -> Atom:
        predicate, types = self.random.choice(self.known)
        return Atom(predicate, tuple(self.term(kind, scope, outer) for kind in types))

    def term(self, kind: str, scope: dict[Variable, str], outer: Mapping[Variable, str]) -> Term:
        chance = self.random.random()
        if chance < 0.1:
            return self.constant(kind, 0.3)
        fitting = [variable for variable, other in {**outer, **scope}.items() if other == kind]
        if fitting and chance < 0.7:
            return self.random.choice(fitting)
        return self.fresh(kind, scope)

    def fresh(self, kind: str, scope: dict[Variable, str]) -> Variable:
        self.names += 1
        # Few names, so that scopes that have nothing to do with each other share some.
        variable = Variable(f"{kind[:2].upper()}{self.names % 7}")
        if variable in scope and scope[variable] != kind:
            variable = Variable(f"{kind.upper()}{self.names}")
        scope[variable] = kind
        return variable

    def binding(self, scope: dict[Variable, str], outer: Mapping[Variable, str]) -> Comparison:
        kind = self.random.choice(self.kinds)
        fitting = [variable for variable, other in {**outer, **scope}.items() if other == kind]
        bound = (
            self.random.choice(fitting) if fitting and self.random.random() < 0.5 else self.constant(kind, 0)
        )
        sides = [self.fresh(kind, scope), bound]
        self.random.shuffle(sides)
        return Comparison("=", *sides)

    def test(self, visible: Mapping[Variable, str]) -> Literal:
        if not visible:
            kind = self.random.choice(self.kinds)
            return Comparison(self.random.choice(OPERATORS), self.constant(kind, 0.1), self.constant(kind, 0))
        variable, kind = self.random.choice(list(visible.items()))
        if self.random.random() < 0.3:
            return NullTest(variable, self.random.random() < 0.5)
        fitting = [other for other, its in visible.items() if its == kind]
        right = self.random.choice(fitting) if self.random.random() < 0.5 else self.constant(kind, 0.1)
        return Comparison(self.random.choice(OPERATORS), variable, right)

    def constant(self, kind: str, null: float) -> Constant:
        return Constant(None if self.random.random() < null else self.random.choice(POOLS[kind]))


# ----------------------------------------------------------------------------------------------- meaning


def meaning(program: Program, goal: Predicate, facts: Facts) -> frozenset[Row]:
    """The goal's rows, by definition."""
    values = [value for rows in facts.values() for row in rows for value in row]
    values += [term.value for rule in program.rules for term in _constants([rule.head, *rule.body])]
    domain = tuple({(value_kind(value), value): value for value in (*values, None)}.values())
    extensions = dict(facts)
    for predicate in program.heads:  # each uses only those before it
        extensions[predicate] = frozenset(
            tuple(_value(term, binding) for term in rule.head.terms)
            for rule in program.rules_for(predicate)
            for binding in _answers(rule.body, {}, extensions, domain)
        )
    return extensions[goal]


def _constants(literals: Iterable[Literal]) -> Iterator[Constant]:
    for literal in literals:
        match literal:
            case Atom():
                yield from (term for term in literal.terms if isinstance(term, Constant))
            case Comparison():
                yield from (term for term in (literal.left, literal.right) if isinstance(term, Constant))
            case Negation():
                yield from _constants(literal.body)


def _answers(
    body: Sequence[Literal], outer: Binding, extensions: Facts, domain: Sequence[Value]
) -> Iterator[Binding]:
    """The bindings that satisfy a body: rows for its atoms, any value for what else it mentions."""
    atoms = [literal for literal in body if isinstance(literal, Atom)]
    for rows in product(*(extensions[atom.predicate] for atom in atoms)):
        bound = _matched(atoms, rows, outer)
        if bound is None:
            continue
        free = [
            variable
            for variable in variables_of(literal for literal in body if not isinstance(literal, Negation))
            if variable not in bound
        ]
        for values in product(domain, repeat=len(free)):
            binding = {**bound, **dict(zip(free, values, strict=True))}
            if all(_holds(literal, binding, extensions, domain) for literal in body):
                yield binding


def _matched(atoms: Sequence[Atom], rows: Sequence[Row], outer: Binding) -> Binding | None:
    binding = dict(outer)
    for atom, row in zip(atoms, rows, strict=True):
        for term, value in zip(atom.terms, row, strict=True):
            expected = binding.setdefault(term, value) if isinstance(term, Variable) else term.value
            if not _same(expected, value):
                return None
    return binding


def _holds(literal: Literal, binding: Binding, extensions: Facts, domain: Sequence[Value]) -> bool:
    match literal:
        case Atom():
            return True
        case Comparison(operator, left, right):
            return _compares(operator, _value(left, binding), _value(right, binding))
        case NullTest(term, negated):
            return (_value(term, binding) is None) != negated
        case Negation(body):
            return next(_answers(body, binding, extensions, domain), None) is None


def _compares(operator: str, left: Any, right: Any) -> bool:
    if left is None or right is None:
        return False
    if value_kind(left) != value_kind(right):
        return operator == "!="
    return {
        "=": left == right,
        "!=": left != right,
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
    }[operator]


def _same(left: Value, right: Value) -> bool:
    return value_kind(left) == value_kind(right) and left == right


def _value(term: Term, binding: Binding) -> Value:
    return term.value if isinstance(term, Constant) else binding[term]
