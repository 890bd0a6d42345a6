"""Random rules over a schema: joins along foreign keys, self-joins, constants, comparisons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random

from .constraints import ForeignKey
from .random_schemas import Column, Domain, Schema
from .rules import OPERATORS, Atom, Comparison, Constant, Rule, Term, Variable
from .strategies import Day

VARIABLES = tuple(map(Variable, ("X", "Y", "Z", "W", "U", "V")))


@dataclass(frozen=True, slots=True)
class RuleLimits:
    """How large and how varied the rules are."""

    views: int = 3
    subgoals: int = 3
    variables: int = 5
    """Of one rule; at most six."""
    comparisons: int = 0
    projection: bool = False
    unions: bool = False


@dataclass(slots=True)
class _Scope:
    """The variables that a rule has so far, with their domains."""

    limit: int
    domains: dict[Variable, Domain] = field(default_factory=dict)

    def known(self, domain: Domain) -> list[Term]:
        return [variable for variable, its in self.domains.items() if its == domain]

    def unused(self) -> list[Term]:
        return [*[v for v in VARIABLES[: self.limit] if v not in self.domains][:1]]


def draw_views(random: Random, schema: Schema, limits: RuleLimits) -> dict[str, list[Rule]]:
    """Draw the rules of some views."""
    views: dict[str, list[Rule]] = {}
    for number in range(random.choice([1, 1, *range(1, limits.views + 1)])):
        name = f"v{number}"
        rule, scope = _rule(random, name, schema, limits)
        views[name] = [rule]
        if limits.unions and random.choice((False, True)):
            views[name] += _alternative(random, rule, scope, schema, limits)
    return views


def _rule(random: Random, name: str, schema: Schema, limits: RuleLimits) -> tuple[Rule, _Scope]:
    body, scope = _body(random, schema, limits)
    head: list[Term] = [*scope.domains]
    if limits.projection and random.choice((False, True)):
        head = random.sample(head, random.randint(1, len(head)))
    comparisons = draw_comparisons(random, scope.domains, limits.comparisons)
    return Rule.of(Atom(name, tuple(head)), body, comparisons), scope


def _alternative(random: Random, rule: Rule, scope: _Scope, schema: Schema, limits: RuleLimits) -> list[Rule]:
    """Another rule with a head of the same domains, if that comes out."""
    body, other = _body(random, schema, limits)
    head: list[Term] = []
    for variable in rule.head.variables:
        choices = other.known(scope.domains[variable])
        if not choices:
            return []
        head.append(random.choice(choices))
    if not limits.projection and {*head} != {*other.domains}:
        return []
    return [
        Rule.of(
            Atom(rule.head.name, tuple(head)),
            body,
            draw_comparisons(random, other.domains, limits.comparisons),
        )
    ]


def _body(random: Random, schema: Schema, limits: RuleLimits) -> tuple[tuple[Atom, ...], _Scope]:
    scope = _Scope(limits.variables)
    body = [_atom(random, schema, random.choice(sorted(schema.columns)), scope, {})]
    for _ in range(_size(random, limits.subgoals) - 1):
        links = [(atom, key) for atom in body for key in schema.foreign_keys if key.child == atom.name]
        follow = bool(links) and random.randint(0, 2) > 0
        if follow:
            atom, key = random.choice(links)
            body.append(_atom(random, schema, key.parent, scope, _followed(atom, key)))
        else:
            body.append(_atom(random, schema, random.choice(sorted(schema.columns)), scope, {}))
    return tuple(body), scope


def _size(random: Random, most: int) -> int:
    """One up to ``most``, but seldom one: the interesting sizes come first."""
    return random.choice([*(3 * list(range(2, most + 1))), 1])


def _followed(atom: Atom, key: ForeignKey) -> dict[int, Term]:
    """The parent's terms that the child's foreign key gives."""
    return {t: atom.terms[c] for c, t in zip(key.columns, key.targets, strict=True)}


def _atom(random: Random, schema: Schema, name: str, scope: _Scope, given: dict[int, Term]) -> Atom:
    """Draw a subgoal: known variables, a new one, and constants, all likely enough."""
    terms: list[Term] = []
    for place, column in enumerate(schema.columns[name]):
        term = given[place] if place in given else _term(random, column, scope)
        if isinstance(term, Variable):
            scope.domains[term] = column.domain
        terms.append(term)
    return Atom(name, tuple(terms))


def _term(random: Random, column: Column, scope: _Scope) -> Term:
    unused, known = scope.unused(), scope.known(column.domain)
    constants: list[Term] = [constant(column.domain, value) for value in column.domain.constants]
    sources = [source for source in (unused, unused, unused, known, known, constants) if source]
    return random.choice(random.choice(sources) if scope.domains else unused)


def draw_comparisons(random: Random, domains: Mapping[Variable, Domain], most: int) -> tuple[Comparison, ...]:
    """Draw comparisons with constants in several gaps, and between variables."""
    found = []
    for _ in range(random.randint(0, most)):
        left = random.choice([*domains])
        domain = domains[left]
        others = [variable for variable, its in domains.items() if its == domain and variable != left]
        constants: list[Term] = [constant(domain, value) for value in (*domain.constants, *domain.cuts)]
        between_columns = bool(others) and random.choice((False, True))
        right = random.choice(others if between_columns else constants)
        found.append(Comparison(left, random.choice(sorted(OPERATORS)), right))
    return tuple(found)


def constant(domain: Domain, value: Constant) -> Constant:
    """A value as a rule spells it."""
    return Day(value) if domain.type == "date" else value
