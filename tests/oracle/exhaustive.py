"""The answers by enumeration of all databases over a finite set of constants."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from .column_types import fits, unused
from .problem import Answers, Fact, Facts, Problem, grouped, verdict
from .rules import Constant, Relations, Row, Rule, Value, derivations
from .value_classes import ValueClasses

FACT_LIMIT = 20
"""The exhaustive mode refuses to enumerate the subsets of more facts than these."""

ColumnValues = Mapping[tuple[str, int], Sequence[Value]]


@dataclass(frozen=True, slots=True)
class _Instances:
    """A view over a finite set of facts: each derivation's facts (as bits) and row."""

    derivations: Sequence[tuple[int, Row]]

    def contents(self, database: int) -> frozenset[Row]:
        """The view's rows on a database, a set of facts as bits."""
        return frozenset(row for body, row in self.derivations if database & body == body)


def _instances(rules: Sequence[Rule], relations: Relations, bit: Mapping[Fact, int]) -> _Instances:
    found = []
    for rule in rules:
        for binding in derivations(rule, relations, {}, rule.body):
            mask = 0
            for atom in rule.body:
                mask |= bit[atom.name, atom.ground(binding)]
            found.append((mask, rule.head.ground(binding)))
    return _Instances(found)


def column_values(problem: Problem, classes: ValueClasses, fresh: int) -> ColumnValues:
    """What each column may hold: the constants of its class and so many others, NULL, its domain."""
    pools: dict[int, list[Constant]] = {}
    for one in classes.all():
        pool = pools[one.number] = sorted(one.constants, key=repr)
        kind = next(iter(one.kinds)) if len(one.kinds) == 1 else "any"
        for _ in range(0 if one.ordered else fresh):
            pool += unused(kind, pool)
    values: dict[tuple[str, int], Sequence[Value]] = {}
    for name, position in problem.columns():
        types, domains = problem.types.get(name), problem.domains.get(name)
        pool = pools[classes.of_column(name, position).number]
        its: list[Value] = [v for v in pool if types is None or fits(v, types[position])]
        if domains is not None:
            its = [*domains[position]]
        nullable = position in problem.nullable.get(name, ())
        values[name, position] = [*its, None] if nullable else its
    return values


def universe(problem: Problem, values: ColumnValues) -> list[Fact]:
    """All facts over the values, and those of the update."""

    def over() -> Iterator[Fact]:
        for name, arity in problem.arities.items():
            yield from ((name, row) for row in product(*(values[name, i] for i in range(arity))))

    return list(dict.fromkeys([*over(), *sorted(problem.inserted | problem.deleted, key=repr)]))


def solve_exhaustively(problem: Problem, classes: ValueClasses, fresh: int) -> Answers | None:
    """Enumerate all databases over the constants, as sets of bits."""
    facts = universe(problem, column_values(problem, classes, fresh))
    if len(facts) > FACT_LIMIT:
        raise ValueError(f"{len(facts)} facts are too many to enumerate their subsets")
    bit = {fact: 1 << number for number, fact in enumerate(facts)}
    if not all(fact in bit for fact in problem.present):
        return None

    def mask(chosen: Collection[Fact]) -> int:
        return sum(bit[fact] for fact in set(chosen) if fact in bit)

    def spelled(database: int) -> Facts:
        return frozenset(fact for fact in facts if database & bit[fact])

    present = mask(problem.present)
    absent = mask([fact for fact in facts if problem.excluded(fact)])
    deleted, inserted = mask(problem.deleted), mask(problem.inserted)
    relations = grouped(facts)
    views = {name: _instances(rules, relations, bit) for name, rules in problem.rules.items()}
    states: dict[str, dict[frozenset[Row], int]] = {name: {} for name in views}
    consistent = False
    for database in range(1 << len(facts)):
        if database & present != present or database & absent:
            continue
        if any(v.contents(database) != problem.views[n] for n, v in views.items()):
            continue
        if not problem.explained_by(spelled(database)):
            continue
        consistent = True
        after = (database & ~deleted) | inserted
        for name, view in views.items():
            states[name].setdefault(view.contents(after), database)
    if not consistent:
        return None
    return {
        name: verdict(problem, {s: spelled(d) for s, d in found.items()}) for name, found in states.items()
    }
