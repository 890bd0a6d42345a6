"""Ground situations in which a rule of the self-maintainability test may have a row, the most general ones.

If the rule has a row in any warehouse that satisfies the constraints, it has one in one of these, provided that
all of them could be made: `Candidates.are_all` says so afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeGuard

from datalog.budget import check
from datalog.model import (
    Atom,
    Constant,
    Literal,
    Predicate,
    Program,
    Row,
    Rule,
    Term,
    Value,
    Variable,
    Version,
)
from selfmaint.audit.changes import Change
from selfmaint.audit.chase import Chase
from selfmaint.audit.choices import Choices
from selfmaint.audit.databases import Evaluation, satisfies, stored_rows, updated
from selfmaint.audit.grounding import constants_of, grounded
from selfmaint.audit.instance import Instance, frozen
from selfmaint.audit.unfolding import Body, Unfolding, definitions, unfolded
from selfmaint.decide.procedure import Decision
from selfmaint.decide.selftest import DependsRules
from selfmaint.engine.memory import MemoryEngine
from selfmaint.engine.protocol import Facts
from selfmaint.warehouse.situation import Situation

STEPS = 1_000
"""How many instances are looked at for one view and kind of change; above that not all candidates are made."""

Relations = Mapping[str, frozenset[Row]]


@dataclass(frozen=True, unsafe_hash=False)
class Candidate:
    """A database that satisfies the constraints before and after an update of it.

    Attributes:
        database: the rows before the update, by base relation.
        inserted: inserted rows.
        deleted: deleted rows.
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

    def facts(self, evaluation: Evaluation, situation: Situation) -> Facts[frozenset[Row]]:
        """What the decision gets to see: the views' contents, the update, and what is readable.

        Raises:
            CannotEvaluateError: some view is known only as text.
        """
        found: dict[Predicate, frozenset[Row]] = {
            Predicate(name): rows
            for name, rows in stored_rows(evaluation.catalog, evaluation.contents(self.database)).items()
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


@dataclass
class Candidates:
    """The candidates of one rule set in one situation.

    Attributes:
        decision: the symbolic side of deciding.
        change: the kind of change.
        situation: its situation.
        are_all: whether none was left out, as far as the iteration got.
    """

    decision: Decision
    change: Change
    situation: Situation
    are_all: bool = True

    def __post_init__(self) -> None:
        catalog = self.decision.catalog
        self._choices = Choices(catalog)
        self._chase = Chase(catalog, self.situation, self.change)
        self._definitions = definitions(catalog, self.situation, self.decision.known(self.situation))
        self._constants = constants_of(catalog)
        self.are_all = self._choices.are_all
        self._steps = STEPS

    def of(self, rules: DependsRules, evaluation: Evaluation) -> Iterator[Candidate]:
        """The candidates for the rules of one J: those left out of `holding` give them no row.

        A body is unfolded only as far as nothing rules a row out. What does for the rows of a body that is not unfolded
        to its end, does so with all that proves these rows: they are the least instance of each way on.

        Args:
            rules: the rules.
            evaluation: the views that are known.
        """
        ruled_out = RuledOut.of(self.decision, self.situation, rules, evaluation)
        if ruled_out is None:
            return
        seen = set[Candidate]()
        for positive in rules.positive:
            waiting = [Unfolding((*positive, rules.head))]
            while waiting and self._goes_on():
                current = waiting.pop()
                more = current.next(self._definitions)
                if more is not None and (not current.is_before or self._may_fire(current, ruled_out)):
                    waiting.extend(reversed(more))
                for candidate in self._made(current.body) if more is None else ():
                    if candidate not in seen:
                        seen.add(candidate)
                        yield candidate

    def _goes_on(self) -> bool:
        """Whether there are steps left; takes one."""
        check()
        self._steps -= 1
        self.are_all &= self._steps >= 0
        return self._steps >= 0

    def _may_fire(self, current: Unfolding, ruled_out: RuledOut) -> bool:
        return any(not ruled_out.holds(candidate) for candidate in self._made(current.body))

    def holding(self, literals: Sequence[Literal]) -> Iterator[Candidate]:
        """The most general situations in which a conjunction holds; what it negates is not looked at."""
        for body in unfolded(literals, self._definitions):
            if not self._goes_on():
                return
            yield from self._made(body)

    def _made(self, body: Body) -> Iterator[Candidate]:
        """The situations that the instance of an unfolded body becomes."""
        asked = tuple(t for li in body if is_asked(li) for t in li.terms)
        plain = tuple(li for li in body if not is_asked(li))
        effective = self.situation.effective
        start = frozen(self.decision.catalog, plain, effective=effective, asked=asked)
        waiting = [] if start is None else [start]
        while waiting and self._goes_on():
            instance = waiting.pop()
            self.are_all &= not instance.is_crowded
            more = self._open(instance)
            if more is None:
                yield from self._ground(instance)
            else:
                waiting.extend(reversed(more))

    def _open(self, instance: Instance) -> tuple[Instance, ...] | None:
        """What the next step makes of an instance; None if it is finished."""
        chased = self._chase.step(instance)
        if chased is not None:
            return chased
        ways = self._choices.ways(instance)
        return None if ways is None else tuple(one for one in ways if one is not None)

    def _ground(self, instance: Instance) -> Iterator[Candidate]:
        catalog = self.decision.catalog
        values = grounded(catalog, instance, self._constants)
        if values is None:
            self.are_all &= not instance.alone
            return

        def rows(atoms: tuple[Atom, ...]) -> Relations:
            found: dict[str, set[Row]] = {}
            for atom in atoms:
                found.setdefault(atom.predicate.name, set()).add(_row(atom, values))
            return {name: frozenset(its) for name, its in sorted(found.items())}

        made = Candidate(
            rows(instance.before),
            rows(instance.inserted),
            rows(instance.deleted),
            rows(instance.present),
            _terms(instance.asked, values),
        )
        after = updated(made.database, made.inserted, made.deleted)
        if satisfies(catalog, made.database) and satisfies(catalog, after):
            yield made
        else:
            self.are_all = False  # equal values that the symbolic steps did not foresee


def _row(atom: Atom, values: Mapping[Variable, Value]) -> Row:
    return _terms(atom.terms, values)


def _terms(terms: Sequence[Term], values: Mapping[Variable, Value]) -> Row:
    return tuple(t.value if isinstance(t, Constant) else values[t] for t in terms)


def is_asked(literal: Literal) -> TypeGuard[Atom]:
    """Whether a literal is the head of a rule of the test: its terms are kept track of."""
    return isinstance(literal, Atom) and literal.predicate.version is Version.DEPENDS


@dataclass(frozen=True)
class RuledOut:
    """Whether what the rules of one J negate holds of their row in a situation.

    Attributes:
        goal: has a row where it does not.
        given: the rules' row.
        program: the negations.
        evaluation: the views that are known.
        situation: what is known besides.
    """

    goal: Predicate
    given: Predicate
    program: Program
    evaluation: Evaluation
    situation: Situation

    @classmethod
    def of(
        cls, decision: Decision, situation: Situation, rules: DependsRules, evaluation: Evaluation
    ) -> RuledOut | None:
        """The negations of some rules; None if one of them always holds."""
        support, bound = decision.support(situation), rules.new_facts.bound
        negations = support.prepared(rules.negative, frozenset(bound))
        if negations is None:
            return None
        given = rules.goal.of(Version.STEP)
        rule = Rule(rules.head, (Atom(given, bound), *negations))
        return cls(rules.goal, given, support.program([rule], [rules.goal]), evaluation, situation)

    def holds(self, candidate: Candidate) -> bool:
        """Whether the row is ruled out in a candidate."""
        facts = candidate.facts(self.evaluation, self.situation)
        facts = replace(facts, relations={**facts.relations, self.given: frozenset([candidate.asked])})
        return not MemoryEngine().nonempty(self.program, [self.goal], facts)
