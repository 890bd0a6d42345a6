"""What is known: facts that an engine holds, of which kinds they are, and the canonical database's rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic

from datalog.model import (
    Atom,
    Comparison,
    Literal,
    Negation,
    NullTest,
    Predicate,
    Rule,
    Variable,
    Version,
)
from selfmaint.canonical.support import Support
from selfmaint.engine.protocol import D, Engine, Facts
from selfmaint.warehouse.situation import Situation

_GOAL = Predicate("bindings", Version.STEP)


@dataclass(frozen=True)
class Bindings(Generic[D]):
    """Values for some variables, held by the engine; never empty."""

    variables: tuple[Variable, ...]
    rows: D


@dataclass(frozen=True, eq=False)
class Knowledge(Generic[D]):
    """Everything known before some views are decided or followed.

    Attributes:
        engine: holds the facts, and evaluates.
        support: the canonical database's rules.
        situation: the kinds of facts known.
        facts: everything known.
        changes: the changes of views that group, by the view's name and by whether its open groups are known whole.
    """

    engine: Engine[D]
    support: Support
    situation: Situation
    facts: Facts[D]
    changes: dict[tuple[str, bool], object] = field(default_factory=dict)

    def is_over(self, engine: Engine[D], facts: Facts[D], situation: Situation) -> bool:
        """Whether this is the knowledge of these facts in this situation: what was found holds in no other."""
        return self.engine is engine and self.facts is facts and self.situation == situation

    def bindings(
        self,
        bodies: Iterable[Sequence[Literal]],
        wanted: Sequence[Variable],
        given: Mapping[Predicate, D] | None = None,
    ) -> Bindings[D] | None:
        """The values of some variables for which one of some bodies holds; None if there are none.

        Args:
            bodies: atoms over what is known, comparisons, null tests and negations.
            wanted: the variables, each bound by every body.
            given: small relations that the bodies read besides.
        """
        rows = self.rows((Rule(Atom(_GOAL, tuple(wanted)), tuple(body)) for body in bodies), given)
        return None if rows is None else Bindings(tuple(wanted), rows)

    def rows(self, rules: Iterable[Rule], given: Mapping[Predicate, D] | None = None) -> D | None:
        """The rows of the one predicate that some rules over what is known define, held; None if there are none."""
        made = [self._prepared(rule) for rule in rules]
        program = [rule for rule in made if rule is not None]
        if not program:
            return None
        goal = program[0].head.predicate
        names = [f"x{i}" for i in range(program[0].head.arity)]
        facts = self.facts.extended(given) if given else self.facts
        found = self.engine.evaluate(self.support.program(program, [goal]), goal, facts, names)
        held = self.engine.keep(found)
        return held if self.engine.count(held) else None

    def _prepared(self, rule: Rule) -> Rule | None:
        positive = tuple(li for li in rule.body if isinstance(li, Atom | Comparison | NullTest))
        return self.support.rule(rule.head, positive, (li for li in rule.body if isinstance(li, Negation)))
