"""Rules, declarations and programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from datalog.model.literals import Atom, Literal
from datalog.model.predicates import Predicate
from datalog.model.schema import Declaration
from datalog.model.spans import Placed, Span

if TYPE_CHECKING:
    from datalog.model.views import ViewDefinition


class Rule(Placed, frozen=True, cache_hash=True):
    """`head :- body.`; an empty body makes it a fact."""

    head: Atom
    body: tuple[Literal, ...] = ()
    span: Span | None = None

    @property
    def atoms(self) -> tuple[Atom, ...]:
        """The positive subgoals, in order."""
        return tuple(literal for literal in self.body if isinstance(literal, Atom))


class Program(Struct, frozen=True):
    """Declarations and rules, each in the order written."""

    rules: tuple[Rule, ...] = ()
    declarations: tuple[Declaration, ...] = ()
    views: tuple[ViewDefinition, ...] = ()
    """Views that are more than rules: bags, computed columns, aggregates."""

    @property
    def heads(self) -> tuple[Predicate, ...]:
        """The predicates that rules define (IDB), in order of first appearance."""
        return tuple(dict.fromkeys(rule.head.predicate for rule in self.rules))

    def rules_for(self, predicate: Predicate) -> tuple[Rule, ...]:
        """The rules whose head is `predicate`."""
        return tuple(rule for rule in self.rules if rule.head.predicate == predicate)

    def by_head(self) -> dict[Predicate, list[Rule]]:
        """The rules by the predicate that they define."""
        found: dict[Predicate, list[Rule]] = {}
        for rule in self.rules:
            found.setdefault(rule.head.predicate, []).append(rule)
        return found

    def declaration(self, name: str) -> Declaration | None:
        """The declaration of a relation, if it has one."""
        return next((d for d in self.declarations if d.name == name), None)
