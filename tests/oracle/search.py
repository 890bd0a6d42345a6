"""The search for a consistent database: from the forced facts, fact by fact.

What is asked of a database is of two kinds. *Prohibitions* (no view row that is not
given, no twins of a key, nothing absent, unreadable, or of the wrong type, before and after the
update): once broken, more facts do not mend them. *Demands* (each view row has a
derivation; each reference is met before, and after, the update): once met, more facts do
not undo them. So the search repeatedly takes an unmet demand, tries all ways to meet it with
facts that break no prohibition, and is done when no demand is unmet. It is complete:
if a consistent database D* exists, then at each choice one of the ways is, up to
isomorphism (see `value_classes`), part of D*. Of two ways, one of which needs more
facts than the other, the larger need not be tried: a database with them has the smaller's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from .constraints import ForeignKey
from .growing import Growing
from .problem import Fact, Facts
from .rules import Atom, Binding, Row, Rule, Term, Variable, derivations


class SearchTooLongError(Exception):
    """The search was given up: it had more steps than allowed."""


@dataclass(frozen=True, slots=True)
class Derived:
    """The demand that a view has a row before the update."""

    rules: tuple[Rule, ...]
    row: Row


@dataclass(frozen=True, slots=True)
class Referenced:
    """The demand that a row referred to is there, before or after the update."""

    foreign_key: ForeignKey
    reference: Row
    after: bool


Demand = Derived | Referenced


class Search:
    """A search over a growing database, which must have the forced facts already."""

    def __init__(self, growing: Growing, steps: int | None = None) -> None:
        self.growing, self.steps = growing, steps

    def first_demands(self) -> list[Demand]:
        """What the view rows, the forced and the inserted facts demand."""
        problem = self.growing.problem
        rows = [(rules, row) for name, rules in problem.rules.items() for row in problem.views[name]]
        demands: list[Demand] = [Derived(rules, row) for rules, row in rows]
        demands += self.demands_of(self.growing.trail)
        for name, row in problem.inserted:
            references = problem.constraints.references(name, row)
            demands += [Referenced(key, reference, after=True) for key, reference in references]
        return demands

    def demands_of(self, facts: Sequence[Fact]) -> list[Demand]:
        """What facts before the update demand."""
        problem = self.growing.problem
        return [
            Referenced(key, reference, after)
            for name, row in facts
            for key, reference in problem.constraints.references(name, row)
            for after in ((False,) if (name, row) in problem.deleted else (False, True))
        ]

    def completions(self, demands: Sequence[Demand]) -> Iterator[Facts]:
        """Consistent databases that contain what there is now; all minimal ones, up to isomorphism."""
        unmet = [demand for demand in dict.fromkeys(demands) if not self.met(demand)]
        if not unmet:
            yield self.growing.facts
            return
        demand, ways = self.most_constrained(unmet)
        others = [other for other in unmet if other != demand]
        for way in ways:
            for fact in way:
                self.put(fact)
            try:
                yield from self.completions([*others, *self.demands_of(way)])
            finally:
                for fact in reversed(way):
                    self.growing.remove(fact)

    def put(self, fact: Fact) -> None:
        """Add a fact that is known to break nothing."""
        if not self.growing.add(fact):
            raise ValueError(f"{fact} cannot be added any more")

    def most_constrained(self, unmet: Sequence[Demand]) -> tuple[Demand, list[tuple[Fact, ...]]]:
        """The demand that can be met in the fewest ways, and those ways."""
        best: tuple[Demand, list[tuple[Fact, ...]]] | None = None
        for demand in unmet:
            most = None if best is None else len(best[1])
            ways = list(islice(self.ways(demand), most))
            if best is None or len(ways) < len(best[1]):
                best = demand, ways
            if len(ways) <= 1:
                break
        if best is None:
            raise ValueError("there is no demand")
        return best[0], _minimal(best[1])

    def met(self, demand: Demand) -> bool:
        """Whether the facts so far meet a demand."""
        match demand:
            case Derived(rules, row):
                return any(
                    True
                    for rule in rules
                    if (binding := rule.match(rule.head, row, {})) is not None
                    for _ in derivations(rule, self.growing.before, binding, rule.body)
                )
            case Referenced(key, reference, after):
                return key.met(reference, self.growing.rows(key.parent, after=after))

    def ways(self, demand: Demand) -> Iterator[tuple[Fact, ...]]:
        """The facts to add, in each way to meet a demand."""
        start = len(self.growing.trail)
        match demand:
            case Derived(rules, row):
                for rule in rules:
                    binding = rule.match(rule.head, row, {})
                    if binding is not None:
                        for _ in self.derive(rule, rule.body, binding, after=False):
                            yield tuple(self.growing.trail[start:])
            case Referenced(key, reference, after):
                values = dict(zip(key.targets, reference, strict=True))
                arity = self.growing.problem.arities[key.parent]
                free: list[Term] = [Variable(f"C{i}") for i in range(arity)]
                bound: Binding = {Variable(f"C{i}"): value for i, value in values.items()}
                for _ in self.grounded(Atom(key.parent, tuple(free)), None, bound, after=after):
                    yield tuple(self.growing.trail[start:])

    def derive(
        self, rule: Rule, subgoals: tuple[Atom, ...], binding: Binding, *, after: bool
    ) -> Iterator[Binding]:
        """Every way to make the subgoals facts, before or after the update, with new facts if need be."""
        if not subgoals:
            yield binding
            return
        unbound = [sum(v not in binding for v in {*atom.variables}) for atom in subgoals]
        place = unbound.index(min(unbound))
        atom, rest = subgoals[place], subgoals[:place] + subgoals[place + 1 :]
        for row in [*self.growing.rows(atom.name, after=after)]:
            extended = rule.match(atom, row, binding)
            if extended is not None:
                yield from self.derive(rule, rest, extended, after=after)
        for extended in self.grounded(atom, rule, binding, after=after):
            yield from self.derive(rule, rest, extended, after=after)

    def grounded(self, atom: Atom, rule: Rule | None, binding: Binding, *, after: bool) -> Iterator[Binding]:
        """Every way to make the atom a new fact; it is there while the caller goes on."""
        growing = self.growing
        for extended in growing.assignments(atom, rule, binding):
            fact = (atom.name, atom.ground(extended))
            if fact[1] in growing.rows(atom.name, after=after) or fact[1] in growing.before[atom.name]:
                continue
            if after and fact in growing.problem.deleted:
                continue
            self.count()
            if growing.add(fact):
                try:
                    yield extended
                finally:
                    growing.remove(fact)

    def count(self) -> None:
        """Count a step; raise SearchTooLongError when there have been too many."""
        if self.steps is not None:
            self.steps -= 1
            if self.steps < 0:
                raise SearchTooLongError


def _minimal(ways: Sequence[tuple[Fact, ...]]) -> list[tuple[Fact, ...]]:
    """The ways of which no other is a part; of equal ones the first."""
    sets = list(dict.fromkeys(frozenset(way) for way in sorted(ways, key=len)))
    first = {frozenset(way): way for way in reversed(ways)}
    return [first[one] for one in sets if not any(other < one for other in sets)]
