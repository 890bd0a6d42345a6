"""Ground situations in which a rule of the self-maintainability test may have a row, the most general ones.

If the rule has a row in any warehouse that satisfies the constraints, it has one in one of these, provided that
all of them could be made: `Candidates.are_all` says so afterwards. A stored row that is unfolded stands for its whole
body, and the views have to hold it on the ground database: those that store less than their bodies say, for filters
that no literal states, tell nothing here (`search.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeAlias, TypeGuard, TypeVar

from msgspec import Struct

from datalog.budget import check
from datalog.model import (
    Atom,
    Literal,
    Predicate,
    Program,
    Row,
    Value,
    Variable,
    Version,
    ground,
    variables_of,
)
from selfmaint.audit.changes import Change
from selfmaint.audit.chase import Chase
from selfmaint.audit.choices import Choices
from selfmaint.audit.fewest import Fewest
from selfmaint.audit.grounding import ROOM, grounded
from selfmaint.audit.instance import Body, Instance, Unfolding, frozen, unfolded
from selfmaint.audit.ruled_out import RuledOut, views_of
from selfmaint.countermodel.databases import Evaluation, satisfies, stored_rows, updated
from selfmaint.decide.decision import Decision
from selfmaint.decide.selftest import DependsRules
from selfmaint.engine.memory import MemoryEngine
from selfmaint.engine.protocol import Facts
from selfmaint.warehouse.situation import Situation

_STEPS = 2_000
"""How many instances are looked at for one view and kind of change; above that not all candidates are made."""

_TRIAL = 60
"""How many are looked at to rule out what comes of one body that is not unfolded to its end."""

_CLOSE = (0,)
"""Values that are only asked what they prove need no others between them."""

Relations = Mapping[str, frozenset[Row]]
T = TypeVar("T")

_FIRST = 8
"""So many steps each search has in the first turn; twice as many in each other than in the one before."""


@dataclass(frozen=True, unsafe_hash=False)
class Candidate:
    """A database that satisfies the constraints before and after an update of it.

    Attributes:
        database: the rows before the update, by base relation.
        present: rows of partial copies.
        asked: the values of the terms that were kept track of.
    """

    database: Relations
    inserted: Relations
    deleted: Relations
    present: Relations = field(default_factory=dict)
    asked: Row = field(default=(), compare=False)

    def __hash__(self) -> int:
        return hash(tuple(tuple(part.items()) for part in (self.database, self.inserted, self.deleted)))

    @property
    def size(self) -> int:
        """The number of rows."""
        return sum(
            len(rows) for part in (self.database, self.inserted, self.deleted) for rows in part.values()
        )

    def facts(
        self, evaluation: Evaluation, situation: Situation, views: AbstractSet[str] | None = None
    ) -> Facts[frozenset[Row]]:
        """What the decision gets to see: the views' contents, the update, and what is readable.

        Raises:
            CannotEvaluateError: one of these views is known only as text.
        """
        contents = evaluation.contents(self.database, views)
        found: dict[Predicate, frozenset[Row]] = {
            Predicate(name): rows for name, rows in stored_rows(evaluation.catalog, contents).items()
        }
        none: frozenset[Row] = frozenset()
        for version, names, rows in (
            (Version.INSERTED, situation.inserted, self.inserted),
            (Version.DELETED, situation.deleted, self.deleted),
            (Version.PRESENT, situation.present, self.present),
            (Version.ABSENT, situation.absent, {}),
            (Version.BEFORE, situation.readable, self.database),
        ):
            found.update({Predicate(name, version): rows.get(name, none) for name in names})
        return Facts(found)


class Steps(Struct):
    """How many more instances may be looked at.

    Attributes:
        are_all: whether they sufficed so far, and stand for all that they should.
    """

    left: int
    are_all: bool = True

    def goes_on(self) -> bool:
        """Whether there are steps left; takes one."""
        check()
        self.left -= 1
        self.are_all &= self.left >= 0
        return self.left >= 0


Firing: TypeAlias = tuple[DependsRules, Candidate, list[Row]]
"""The rules of one J, a candidate, and their rows in it."""


class Candidates(Struct, dict=True):
    """The candidates of one rule set in one situation.

    Steps that can be taken in one way come first, then choices of values, then constraints that can be satisfied in
    several ways. Before these, what the instance proves already is proved on each way: if it rules a row out, so does
    all that comes of it.

    Attributes:
        decision: the symbolic side of deciding.
        change: the kind of change.
        choices: those that the catalog makes necessary, if they are at hand.
        fewest: the rules that are unfolded, if they are at hand.
        most: how many instances are looked at.
    """

    decision: Decision
    change: Change
    situation: Situation
    choices: Choices | None = None
    fewest: Fewest | None = None
    most: int = _STEPS

    def __post_init__(self) -> None:
        catalog = self.decision.catalog
        self._choices = self.choices or Choices(catalog)
        self._chase = Chase(catalog, self.situation, self.change)
        self._definitions = (self.fewest or Fewest(self.decision)).definitions(self.situation)
        self._steps = Steps(self.most, self._choices.are_all)
        self._trials = self.most

    @property
    def are_all(self) -> bool:
        """Whether none was left out, as far as the iteration got."""
        return self._steps.are_all

    def of(self, rules: DependsRules, evaluation: Evaluation) -> Iterator[Candidate | None]:
        """The candidates for the rules of one J, None for each step: those left out of `holding` give them no row.

        A body is unfolded only as far as nothing rules a row out. What does for the rows of a body that is not unfolded
        to its end, does so with all that proves these rows: they are the least instance of each way on.
        """
        ruled_out = RuledOut.of(self.decision, self.situation, rules, evaluation)
        if ruled_out is None:
            return
        seen = set[Candidate]()
        for positive in rules.positive:
            waiting = [Unfolding((*positive, rules.head))]
            while waiting and self._steps.goes_on():
                yield None
                current = waiting.pop()
                more = current.next(self._definitions)
                if more is not None and (len(more) == 1 or self._may_fire(current, ruled_out)):
                    waiting.extend(reversed(more))
                for candidate in self._made(current.body, self._steps, ruled_out) if more is None else ():
                    if candidate is None or candidate not in seen:
                        seen.update([] if candidate is None else [candidate])
                        yield candidate

    def firing(
        self, rules: DependsRules, program: Program, evaluation: Evaluation
    ) -> Iterator[Firing | None]:
        """Those of the candidates in which a program gives the rules of one J rows; None for each other step."""
        views = views_of(program)
        for candidate in self.of(rules, evaluation) if program.rules_for(rules.goal) else ():
            rows = frozenset[Row]()
            if candidate is not None:
                facts = candidate.facts(evaluation, self.situation, views)
                rows = MemoryEngine().evaluate(program, rules.goal, facts)
            yield (rules, candidate, sorted(rows, key=repr)) if candidate is not None and rows else None

    def _may_fire(self, current: Unfolding, ruled_out: RuledOut) -> bool:
        """Whether a body may have a row that is not ruled out. It has steps of its own: it may be left open.

        Rows after the update, of which it is open where they come from, are left out: they prove nothing yet. What is
        bound by these alone has a value that equals no other, which is all that is known of it: it must not be tested.
        """
        if not current.is_before:
            bound = variables_of([li for li in current.body if isinstance(li, Atom) and not is_open(li)])
            asked = next(li.terms for li in current.body if _is_asked(li))
            if any(isinstance(asked[i], Variable) and asked[i] not in bound for i in ruled_out.tested):
                return True
        holds = ruled_out.holds if current.is_before else ruled_out.will_hold
        most = min(_TRIAL, self._trials)
        trial = Steps(most)
        made = self._made(current.body, trial, ruled_out, _CLOSE)
        may_fire = any(c is not None and not holds(c) for c in made) or not trial.are_all
        self._trials -= most - max(trial.left, 0)
        return may_fire

    def holding(self, literals: Sequence[Literal]) -> Iterator[Candidate]:
        """The most general situations in which a conjunction holds; what it negates is not looked at."""
        for body in unfolded(literals, self._definitions):
            if not self._steps.goes_on():
                return
            yield from (c for c in self._made(body, self._steps) if c is not None)

    def _made(
        self, body: Body, steps: Steps, ruled_out: RuledOut | None = None, rooms: Sequence[int] = ROOM
    ) -> Iterator[Candidate | None]:
        """The situations that the instance of an unfolded body becomes, but for some that are ruled out; see `of`."""
        asked = tuple(t for li in body if _is_asked(li) for t in li.terms)
        plain = tuple(li for li in body if not _is_asked(li))
        effective = self.situation.effective
        start = frozen(self.decision.catalog, plain, effective=effective, asked=asked)
        waiting = [] if start is None else [start]
        while waiting and steps.goes_on():
            yield None
            instance = waiting.pop()
            steps.are_all &= not instance.is_crowded
            more = self._open(instance, ruled_out)
            if more is None:
                yield from self._ground(instance, steps, rooms)
            else:
                waiting.extend(reversed(more))

    def _open(self, instance: Instance, ruled_out: RuledOut | None) -> tuple[Instance, ...] | None:
        """What the next step makes of an instance; None if it is finished."""
        found = self._chase.step(instance)
        if found is None:
            found = _all(self._choices.ways(instance))
        if found is None:
            found = self._chase.ways(instance)
            if found is not None and ruled_out is not None and self._is_ruled_out(instance, ruled_out):
                return ()
        if found is None:
            found = _all(self._choices.spread(instance))
        return found

    def _is_ruled_out(self, instance: Instance, ruled_out: RuledOut) -> bool:
        """Whether an instance with each choice made, to which rows may be added, rules the row out on every way."""
        spread: Instance | None = instance
        while spread is not None and not spread.is_crowded:
            ways = _all(self._choices.spread(spread))
            if ways is None:
                values = grounded(self.decision.catalog, spread, self._choices.constants, _CLOSE)
                return values is not None and ruled_out.will_hold(_candidate(spread, values))
            spread = ways[0] if len(ways) == 1 else None
        return False

    def _ground(self, instance: Instance, steps: Steps, rooms: Sequence[int]) -> Iterator[Candidate]:
        catalog = self.decision.catalog
        values = grounded(catalog, instance, self._choices.constants, rooms)
        if values is None:
            steps.are_all &= not instance.alone
            return
        made = _candidate(instance, values)
        after = updated(made.database, made.inserted, made.deleted)
        if satisfies(catalog, made.database) and satisfies(catalog, after):
            yield made
        else:
            steps.are_all = False  # equal values that the symbolic steps did not foresee


def _all(ways: Iterator[Instance | None] | None) -> tuple[Instance, ...] | None:
    return None if ways is None else tuple(one for one in ways if one is not None)


def _candidate(instance: Instance, values: Mapping[Variable, Value]) -> Candidate:
    def rows(atoms: tuple[Atom, ...]) -> Relations:
        found: dict[str, set[Row]] = {}
        for atom in atoms:
            found.setdefault(atom.predicate.name, set()).add(ground(atom.terms, values))
        return {name: frozenset(its) for name, its in sorted(found.items())}

    return Candidate(
        rows(instance.before),
        rows(instance.inserted),
        rows(instance.deleted),
        rows(instance.present),
        ground(instance.asked, values),
    )


def _is_asked(literal: Literal) -> TypeGuard[Atom]:
    """Whether a literal is the head of a rule of the test: its terms are kept track of."""
    return isinstance(literal, Atom) and literal.predicate.version is Version.DEPENDS


def is_open(literal: Atom) -> bool:
    """Whether it is open where a row comes from, or a literal is asked of the others."""
    return literal.predicate.version is Version.AFTER or _is_asked(literal)


def by_turns(searches: Iterable[Iterator[T | None]]) -> Iterator[T]:
    """What some searches find in the first turn in which any does.

    A search gives None for a step without.

    >>> far, near = iter([None] * 20 + ["far"]), iter([None, "near"])
    >>> list(by_turns([far, near]))
    ['near']
    """
    waiting = list(searches)
    steps, is_found = _FIRST, False
    while waiting and not is_found:
        going_on = []
        for search in waiting:
            taken = 0
            for found in islice(search, steps):
                taken += 1
                if found is not None:
                    is_found = True
                    yield found
            if taken == steps:
                going_on.append(search)
        waiting, steps = going_on, 2 * steps
