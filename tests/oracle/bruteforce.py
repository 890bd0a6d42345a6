"""Is each view's new state determined, and what is it? Answered by brute force.

The definition. A database is *consistent* if it explains all that is known: every
view's contents exactly, the readable relations exactly, the present and the absent
rows, types, NOT NULL and domains, for an effective update, inserted rows absent and deleted
rows present; and if it satisfies the keys, unique constraints and foreign keys before the
update (delete, then insert) and after it. View k is self-maintainable if it has the same
contents after the update for every consistent database.

Views are unions of conjunctive rules with comparisons, as sets; a rule may have variables
that its head lacks. Without negation, all views are monotone.

`solve` has two modes.

*Exhaustive*: every database over a finite set of constants is enumerated, tested for
consistency, updated, and its views compared. No reasoning at all; for tiny cases.

*Search*, the default.

1. `search` finds a consistent database D0, or there is none. Let S0 be the view's state
   after the update of D0.
2. The view fails if and only if a consistent database gives it a row that is not in S0, or
   one does not give it a row of S0. From here on the values in S0 count as constants, so
   that what is isomorphic (see `value_classes`) has the same rows of S0, and other rows where
   it has others.
3. A row not in S0 has a derivation from facts after the update. Either the row is one that the
   view had before (there are finitely many), or the derivation has an inserted fact that was not there
   before. So: for each such row, or each place of an inserted fact in a rule, try all ways to
   make the derivation's other subgoals facts, and for each search a consistent database that
   has these facts.
4. A row of S0 that the forced facts do not give must be prohibited: by monotony, that is one
   more prohibition of the kind of `search`.

How large must databases be? No larger than what steps 3 and 4 build: the facts of one
derivation of the view (at most as many as it has subgoals), of one derivation for each given
view row, and for each of these facts, if foreign keys are not cyclic, one fact for
each path of foreign keys from its relation, before and after the update. For views without projection the
derivations of view rows are forced facts; so the new facts are at most (subgoals of the view) x (foreign
key paths), and the paths from forced facts. Nothing of this needs to be
counted: the search adds facts only on demand, and tries, for each new value, all that can matter,
so it is exact for whatever finite size that comes to.

With *cyclic* foreign keys the demands may never end. Then each class of columns may have only
so many new values as the largest rule has variables, and CYCLE_ROOM more. A "no" is exact, it
has a witness; a "yes", or that there is no database, holds for databases within that bound.

Numbers are a dense order, unless `types` says otherwise; see `column_types` for what is assumed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from .exhaustive import column_values, solve_exhaustively, universe
from .fresh_bounds import Counts, fresh_bounds
from .growing import Forbidden, Growing
from .problem import Answer, Answers, Case, Database, Fact, Facts, Problem, Rows, facts_of, grouped, verdict
from .rules import Atom, Binding, Constant, Row, Rule, contents
from .search import Search, SearchTooLongError
from .value_classes import ValueClasses

__all__ = [
    "Answer",
    "Answers",
    "Case",
    "Database",
    "SearchTooLongError",
    "explains",
    "fact_count",
    "solve",
    "state_after",
]

CYCLE_ROOM = 2
"""With cyclic foreign keys, new values of a class beyond the variables of the largest rule."""


def solve(
    case: Case, *, exhaustive: bool = False, fresh: int | None = None, steps: int | None = None
) -> Answers | None:
    """Decide every view of a case.

    Args:
        case: the situation.
        exhaustive: enumerate all databases over the constants, without any reasoning.
        fresh: how many constants there are, in each class of columns, that the case does not mention
            there; none in a class that is compared by size. By default as many as suffice.
        steps: how many facts may be tried for one search; by default any number.

    Returns:
        The answer for each view, or None if no database explains what is known.

    Raises:
        ValueError: the case has no meaning.
        SearchTooLongError: more steps would be needed.

    """
    problem = Problem.of(case)
    if exhaustive:
        return solve_exhaustively(problem, ValueClasses(problem), fresh or 0)
    solver = _Solver(problem, fresh, steps)
    first = solver.first
    if first is None:
        return None
    return {name: solver.answer(name, first) for name in problem.rules}


def explains(case: Case, database: Mapping[str, Rows]) -> bool:
    """Whether the database is consistent with all that is known in the case."""
    return Problem.of(case).explained_by(facts_of(database))


def state_after(case: Case, database: Mapping[str, Rows], view: str) -> frozenset[Row]:
    """The view's contents after the case's update of the database."""
    problem = Problem.of(case)
    return contents(problem.rules[view], grouped(problem.updated(facts_of(database))))


def fact_count(case: Case, fresh: int) -> int:
    """How many facts the exhaustive mode takes the subsets of."""
    return len(possible_facts(case, fresh))


def possible_facts(case: Case, fresh: int) -> list[Fact]:
    """The facts that the exhaustive mode takes the subsets of: each column has the constants that can meet in it."""
    problem = Problem.of(case)
    return universe(problem, column_values(problem, ValueClasses(problem), fresh))


@dataclass
class _Solver:
    """Searches for consistent databases that differ in a view's state."""

    problem: Problem
    fresh: int | None
    steps: int | None

    @cached_property
    def classes(self) -> ValueClasses:
        return ValueClasses(self.problem)

    @cached_property
    def limits(self) -> dict[int, int | None]:
        """How many new values each class may have."""
        limit = self.fresh
        if limit is None and self.problem.constraints.cyclic:
            rules = [rule for rules in self.problem.rules.values() for rule in rules]
            limit = max((len(rule.variables) for rule in rules), default=0) + CYCLE_ROOM
        closed = self.fresh is not None
        return {one.number: 0 if closed and one.ordered else limit for one in self.classes.all()}

    @cached_property
    def room(self) -> Counts:
        """How many new values may come in each class, at most."""
        if self.problem.constraints.cyclic:
            return Counts({number: limit for number, limit in self.limits.items() if limit is not None})
        return fresh_bounds(self.problem, self.classes)

    @cached_property
    def first(self) -> Facts | None:
        """A consistent database."""
        search = self.search(())
        return None if search is None else next(search.completions(search.first_demands()), None)

    def search(
        self, constants: Collection[tuple[int, Constant]], forbidden: Forbidden | None = None
    ) -> Search | None:
        """A search that has the forced facts; None if they are inconsistent."""
        growing = Growing(self.problem, self.classes, constants, self.room, self.limits, forbidden)
        forced = self.problem.forced
        if forced is None or not growing.sound:
            return None
        if not all(growing.add(fact) for fact in sorted(forced, key=repr)):
            return None
        return Search(growing, self.steps)

    def state(self, view: str, database: Facts) -> frozenset[Row]:
        return contents(self.problem.rules[view], grouped(self.problem.updated(database)))

    def answer(self, view: str, first: Facts) -> Answer:
        """Decide one view, given a consistent database."""
        state = self.state(view, first)
        states = {state: first}
        other = next(self.others(view, state), None)
        if other is not None:
            states[self.state(view, other)] = other
            if len(states) == 1 or not all(map(self.problem.explained_by, states.values())):
                raise AssertionError("the search found what is no witness")
        return verdict(self.problem, states)

    def others(self, view: str, state: frozenset[Row]) -> Iterator[Facts]:
        """Consistent databases that give the view another state."""
        columns = [self.classes.of_column(view, i).number for i in range(len(next(iter(state), ())))]
        constants = {(n, v) for row in state for n, v in zip(columns, row, strict=True) if v is not None}
        search = self.search(constants)
        if search is not None:
            yield from self.gaining(search, view, state)
        for row in state - self.state(view, self.problem.forced or frozenset()):
            losing = self.search(constants, (view, row))
            if losing is not None:
                yield from losing.completions(losing.first_demands())

    def gaining(self, search: Search, view: str, state: frozenset[Row]) -> Iterator[Facts]:
        """Consistent databases that give the view a row more."""
        demands, growing = search.first_demands(), search.growing
        start = len(growing.trail)
        hopeless: list[Facts] = []
        for rule, subgoals, binding in self.goals(view, state):
            for complete in search.derive(rule, subgoals, binding, after=True):
                added = growing.trail[start:]
                if rule.head.ground(complete) in state or any(less <= {*added} for less in hopeless):
                    continue
                yield from search.completions([*demands, *search.demands_of(added)])
                hopeless.append(frozenset(added))

    def goals(self, view: str, state: frozenset[Row]) -> Iterator[tuple[Rule, tuple[Atom, ...], Binding]]:
        """What to derive after the update: a rule, its subgoals left, and what is bound."""
        newcomers = self.problem.inserted - (self.problem.forced or frozenset())
        for rule in self.problem.rules[view]:
            for lost in self.problem.views[view] - state:
                binding = rule.match(rule.head, lost, {})
                if binding is not None:
                    yield rule, rule.body, binding
            for name, row in sorted(newcomers, key=repr):
                for place, atom in enumerate(rule.body):
                    bound = rule.match(atom, row, {}) if atom.name == name else None
                    if bound is not None:
                        yield rule, rule.body[:place] + rule.body[place + 1 :], bound
