"""A database that grows, and never breaks what more facts cannot mend."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from .column_types import fits
from .fresh_bounds import Counts
from .problem import Fact, Facts, Problem
from .rules import Atom, Binding, Constant, Row, Rule, Value, Variable, derivations
from .value_classes import ValueClasses

Forbidden = tuple[str, Row]
"""A view and a row that it is not to have after the update."""


class Growing:
    """The facts before the update so far, and what holds after it.

    Args:
        problem: what is known.
        classes: which values can matter.
        constants: more values that count as mentioned, by class.
        room: how many new values may come in each class.
        limits: how many new values each class may have, None for any number.
        forbidden: a row that a view must not have after the update.

    """

    def __init__(
        self,
        problem: Problem,
        classes: ValueClasses,
        constants: Collection[tuple[int, Constant]],
        room: Counts,
        limits: Mapping[int, int | None],
        forbidden: Forbidden | None = None,
    ) -> None:
        self.problem, self.room, self.limits, self.forbidden = problem, room, limits, forbidden
        self.before: dict[str, dict[Row, None]] = {name: {} for name in problem.arities}
        self.after: dict[str, dict[Row, None]] = {name: {} for name in problem.arities}
        for name, row in sorted(problem.inserted, key=repr):
            self.after[name][row] = None
        self.trail: list[Fact] = []
        self.columns = {column: classes.of_column(*column) for column in problem.columns()}
        self.kinds = {column: classes.kind(*column) for column in problem.columns()}
        self.mentioned = {one.number: set(one.constants) for one in classes.all()}
        self.new: dict[int, Counter[Constant]] = {one.number: Counter() for one in classes.all()}
        for number, value in constants:
            if value not in self.mentioned[number]:
                self.new[number][value] += 1
        self.uses: dict[str, list[tuple[str, Rule, Atom, tuple[Atom, ...]]]] = {n: [] for n in self.before}
        for view, rules in problem.rules.items():
            for rule in rules:
                for place, atom in enumerate(rule.body):
                    rest = rule.body[:place] + rule.body[place + 1 :]
                    self.uses[atom.name].append((view, rule, atom, rest))

    @property
    def sound(self) -> bool:
        """Whether the inserted rows alone break nothing."""
        return not any(
            self.problem.constraints.twins(name, row, self.after[name]) for name, row in self.problem.inserted
        )

    def add(self, fact: Fact) -> bool:
        """Add a fact, unless that breaks what no further fact can mend; tell whether it is in."""
        name, row = fact
        if row in self.before[name]:
            raise ValueError(f"{fact} is there already")
        if self.problem.excluded(fact) or not self._unique(fact):
            return False
        self._put(fact)
        if self._derives_unknown(fact) or self._derives_forbidden(fact):
            self.remove(fact)
            return False
        return True

    def remove(self, fact: Fact) -> None:
        """Take back the fact that was added last."""
        name, row = fact
        if self.trail.pop() != fact:
            raise ValueError(f"{fact} was not the last")
        del self.before[name][row]
        if self._stays(fact):
            del self.after[name][row]
        self._count(fact, -1)

    @property
    def facts(self) -> Facts:
        """The database before the update."""
        return frozenset(self.trail)

    def rows(self, name: str, *, after: bool) -> dict[Row, None]:
        """A relation's rows so far."""
        return (self.after if after else self.before)[name]

    def assignments(self, atom: Atom, rule: Rule | None, binding: Binding) -> Iterator[Binding]:
        """All values that can matter for the atom's variables."""
        place = next(
            (i for i, t in enumerate(atom.terms) if isinstance(t, Variable) and t not in binding), None
        )
        if place is None:
            yield binding
            return
        variable = atom.terms[place]
        if not isinstance(variable, Variable):
            raise TypeError(variable)
        others = [
            value
            for i, term in enumerate(atom.terms)
            if isinstance(term, Variable)
            and (value := binding.get(term)) is not None
            and self.columns[atom.name, i] is self.columns[atom.name, place]
        ]
        nulls: list[Value] = [None]
        if place not in self.problem.nullable.get(atom.name, ()) or (rule and variable in rule.joined):
            nulls = []
        for value in [*self._values(atom.name, place, others), *nulls]:
            extended = {**binding, variable: value}
            if rule is None or not rule.refuted(extended):
                yield from self.assignments(atom, rule, extended)

    def _values(self, name: str, position: int, others: Sequence[Constant]) -> Iterator[Value]:
        """The values for a column; ``others`` are in the same class, and in no fact yet."""
        domains = self.problem.domains.get(name)
        if domains is not None:
            yield from domains[position]
            return
        its, types = self.columns[name, position], self.problem.types.get(name)
        new = {*self.new[its.number], *others} - self.mentioned[its.number]
        used = {*self.mentioned[its.number], *new}
        yield from (v for v in sorted(used, key=repr) if types is None or fits(v, types[position]))
        limit = self.limits[its.number]
        if limit is None or len(new) < limit:
            room = max(self.room[its.number] - len(new) - 1, 0)
            yield from its.new_values(self.kinds[name, position], used, room)

    def _stays(self, fact: Fact) -> bool:
        """Whether the fact is there after the update just because it was before."""
        return fact not in self.problem.deleted and fact not in self.problem.inserted

    def _unique(self, fact: Fact) -> bool:
        twins, (name, row) = self.problem.constraints.twins, fact
        if twins(name, row, self.before[name]):
            return False
        return not (self._stays(fact) and twins(name, row, self.after[name]))

    def _put(self, fact: Fact) -> None:
        name, row = fact
        self.trail.append(fact)
        self.before[name][row] = None
        if self._stays(fact):
            self.after[name][row] = None
        self._count(fact, 1)

    def _count(self, fact: Fact, change: int) -> None:
        name, row = fact
        for position, value in enumerate(row):
            number = self.columns[name, position].number
            if value is not None and value not in self.mentioned[number]:
                counts = self.new[number]
                counts[value] += change
                if not counts[value]:
                    del counts[value]

    def _derives_unknown(self, fact: Fact) -> bool:
        """Whether a view has, with the new fact, a row that it does not have."""
        name, row = fact
        for view, rule, atom, rest in self.uses[name]:
            binding = rule.match(atom, row, {})
            if binding is not None:
                for complete in derivations(rule, self.before, binding, rest):
                    if rule.head.ground(complete) not in self.problem.views[view]:
                        return True
        return False

    def _derives_forbidden(self, fact: Fact) -> bool:
        """Whether the fact gives the view the forbidden row after the update."""
        if self.forbidden is None or not self._stays(fact):
            return False
        (forbidden, wanted), (name, row) = self.forbidden, fact
        for view, rule, atom, rest in self.uses[name]:
            head = rule.match(rule.head, wanted, {}) if view == forbidden else None
            binding = None if head is None else rule.match(atom, row, head)
            if binding is not None and any(True for _ in derivations(rule, self.after, binding, rest)):
                return True
        return False
