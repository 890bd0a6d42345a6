"""Ground situations in which a rule of the self-maintainability test may have a row, the most general ones.

If the rule has a row in any warehouse that satisfies the constraints, it has one in one of these, provided that
all of them could be made: `Candidates.are_all` says so afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from datalog.model import Atom, Constant, Literal, Predicate, Row, Value, Variable, Version
from selfmaint.audit.changes import Change
from selfmaint.audit.chase import Chase
from selfmaint.audit.choices import Choices
from selfmaint.audit.databases import Evaluation, satisfies, stored_rows, updated
from selfmaint.audit.grounding import grounded
from selfmaint.audit.instance import Instance, frozen
from selfmaint.audit.unfolding import definitions, unfolded
from selfmaint.decide.procedure import Decision
from selfmaint.decide.selftest import DependsRules
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
    """

    database: Relations
    inserted: Relations
    deleted: Relations
    present: Relations = field(default_factory=dict)

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
        self._definitions = definitions(catalog, self.situation, self.decision.contributions)
        self.are_all = self._choices.are_all
        self._steps = STEPS

    def of(self, rules: DependsRules) -> Iterator[Candidate]:
        """The candidates for the rules of one J."""
        seen = set[Candidate]()
        for positive in rules.positive:
            for candidate in self.holding(positive):
                if candidate not in seen:
                    seen.add(candidate)
                    yield candidate

    def holding(self, literals: Sequence[Literal]) -> Iterator[Candidate]:
        """The most general situations in which a conjunction holds; what it negates is not looked at."""
        for body in unfolded(literals, self._definitions):
            self._steps -= 1
            start = frozen(self.decision.catalog, body, effective=self.situation.effective)
            waiting = [] if start is None else [start]
            while waiting:
                self._steps -= 1
                instance = waiting.pop()
                more = self._open(instance)
                if more is None:
                    yield from self._ground(instance)
                else:
                    waiting.extend(reversed(more))
                if self._steps < 0:
                    self.are_all = False
                    return

    def _open(self, instance: Instance) -> tuple[Instance, ...] | None:
        """What the next step makes of an instance; None if it is finished."""
        chased = self._chase.step(instance)
        if chased is not None:
            return chased
        ways = self._choices.ways(instance)
        return None if ways is None else tuple(one for one in ways if one is not None)

    def _ground(self, instance: Instance) -> Iterator[Candidate]:
        catalog = self.decision.catalog
        values = grounded(catalog, instance)
        if values is None:
            return

        def rows(atoms: tuple[Atom, ...]) -> Relations:
            found: dict[str, set[Row]] = {}
            for atom in atoms:
                found.setdefault(atom.predicate.name, set()).add(_row(atom, values))
            return {name: frozenset(its) for name, its in sorted(found.items())}

        made = Candidate(
            rows(instance.before), rows(instance.inserted), rows(instance.deleted), rows(instance.present)
        )
        after = updated(made.database, made.inserted, made.deleted)
        if satisfies(catalog, made.database) and satisfies(catalog, after):
            yield made
        else:
            self.are_all = False  # equal values that the symbolic steps did not foresee


def _row(atom: Atom, values: Mapping[Variable, Value]) -> Row:
    return tuple(t.value if isinstance(t, Constant) else values[t] for t in atom.terms)
