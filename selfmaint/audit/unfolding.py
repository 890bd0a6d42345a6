"""Bodies of the self-maintainability test, unfolded down to rows of views and rows of the update.

    r@inserted(X, Y), s@after(Y, Z)      becomes      r@inserted(X, Y), v2(Y, Z), not s@deleted(Y, Z)
                                         and          r@inserted(X, Y), s@inserted(Y, Z)

Every row of the body is a row of one of the unfolded bodies: unfolding is exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

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
from selfmaint.canonical import Contribution
from selfmaint.canonical.rules import after_rules, known_rules
from selfmaint.warehouse.catalog import Catalog
from selfmaint.warehouse.constraints import unifier
from selfmaint.warehouse.situation import Situation

DEFINED = (Version.KNOWN, Version.AFTER, Version.EXISTS)
"""What is unfolded."""

Definitions = Mapping[Predicate, Sequence[Rule]]


def definitions(
    catalog: Catalog, situation: Situation, kept: tuple[Contribution, ...]
) -> dict[Predicate, list[Rule]]:
    """The rules of the canonical database and of its after-image, by what they define."""
    found: dict[Predicate, list[Rule]] = {}
    for rule in (*known_rules(catalog, situation, kept), *after_rules(catalog, situation)):
        found.setdefault(rule.head.predicate, []).append(rule)
    return found


def unfolded(body: Sequence[Literal], rules: Definitions) -> Iterator[tuple[Literal, ...]]:
    """The bodies that a body is, one for each way of choosing a rule for each of its defined atoms.

    Args:
        body: atoms and tests.
        rules: those of the versions in `DEFINED`; not recursive.
    """
    waiting: list[tuple[tuple[Literal, ...], int]] = [(tuple(body), 0)]
    while waiting:
        current, number = waiting.pop()
        at = next((i for i, li in enumerate(current) if _is_defined(li)), None)
        if at is None:
            yield current
            continue
        atom = current[at]
        assert isinstance(atom, Atom)
        for rule in reversed(rules.get(atom.predicate, ())):
            fresh = renamed(rule, f"_u{number}")
            meets = unifier(fresh.head, atom)
            if meets is not None:
                whole = (*current[:at], *fresh.body, *current[at + 1 :])
                moved = tuple(dict.fromkeys(apply_literal(meets, literal) for literal in whole))
                waiting.append((moved, number + 1))


def renamed(rule: Rule, suffix: str) -> Rule:
    """The rule with variables of its own."""
    names: dict[Variable, Term] = {
        v: Variable(v.name + suffix) for v in variables_of([rule.head, *rule.body])
    }
    return apply_rule(names, rule)


def _is_defined(literal: Literal) -> bool:
    return isinstance(literal, Atom) and literal.predicate.version in DEFINED
