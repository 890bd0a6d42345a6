"""Bodies of the self-maintainability test, unfolded down to rows of views and rows of the update.

    r@inserted(X, Y), s@after(Y, Z)      becomes      r@inserted(X, Y), v2(Y, Z), not s@deleted(Y, Z)
                                         and          r@inserted(X, Y), s@inserted(Y, Z)

Every row of the body is a row of one of the unfolded bodies: unfolding is exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeGuard

from datalog.model import (
    Atom,
    Literal,
    Predicate,
    Rule,
    Term,
    Variable,
    Version,
    apply_literal,
    apply_rule,
    variables_of,
)
from selfmaint.canonical.rules import after_rules
from selfmaint.warehouse.catalog import Catalog
from selfmaint.warehouse.constraints import unifier
from selfmaint.warehouse.situation import Situation

DEFINED = (Version.AFTER, Version.KNOWN, Version.EXISTS)
"""What is unfolded, in this order."""

Definitions = Mapping[Predicate, Sequence[Rule]]


def definitions(catalog: Catalog, situation: Situation, known: Sequence[Rule]) -> dict[Predicate, list[Rule]]:
    """The rules of the canonical database and of its after-image, by what they define."""
    found: dict[Predicate, list[Rule]] = {}
    for rule in (*known, *after_rules(catalog, situation)):
        found.setdefault(rule.head.predicate, []).append(rule)
    return found


Body = tuple[Literal, ...]


@dataclass(frozen=True, slots=True)
class Unfolding:
    """A body on its way down.

    Attributes:
        body: some of its atoms unfolded.
        number: how many were.
    """

    body: Body
    number: int = 0

    def next(self, rules: Definitions) -> tuple[Unfolding, ...] | None:
        """The bodies that it is, one for each rule of one of its defined atoms; None if it has none.

        What is after the update comes first: then every atom that is left is a row from before it.

        Args:
            rules: those of the versions in `DEFINED`; not recursive.
        """
        places = {li.predicate.version: i for i, li in reversed([*enumerate(self.body)]) if _is_defined(li)}
        at = next((places[version] for version in DEFINED if version in places), None)
        if at is None:
            return None
        atom = self.body[at]
        assert isinstance(atom, Atom)
        found = []
        for rule in rules.get(atom.predicate, ()):
            fresh = renamed(rule, f"_u{self.number}")
            meets = unifier(fresh.head, atom)
            if meets is not None:
                whole = (*self.body[:at], *fresh.body, *self.body[at + 1 :])
                moved = tuple(dict.fromkeys(apply_literal(meets, literal) for literal in whole))
                found.append(Unfolding(moved, self.number + 1))
        return tuple(found)

    @property
    def is_before(self) -> bool:
        """Whether every atom that is left is a row from before the update, or of the update."""
        return not any(isinstance(li, Atom) and li.predicate.version is Version.AFTER for li in self.body)


def unfolded(body: Sequence[Literal], rules: Definitions) -> Iterator[Body]:
    """The bodies that a body is, one for each way of choosing a rule for each of its defined atoms.

    Args:
        body: atoms and tests.
        rules: those of the versions in `DEFINED`; not recursive.
    """
    waiting = [Unfolding(tuple(body))]
    while waiting:
        current = waiting.pop()
        more = current.next(rules)
        if more is None:
            yield current.body
        else:
            waiting.extend(reversed(more))


def renamed(rule: Rule, suffix: str) -> Rule:
    """The rule with variables of its own."""
    names: dict[Variable, Term] = {
        v: Variable(v.name + suffix) for v in variables_of([rule.head, *rule.body])
    }
    return apply_rule(names, rule)


def _is_defined(literal: Literal) -> TypeGuard[Atom]:
    return isinstance(literal, Atom) and literal.predicate.version in DEFINED
