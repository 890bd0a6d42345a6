"""Rules for a join, whose size is that of its parts: variables that nobody asks for are projected out one by one.

    :- r(X, Y), s(W, U), t(U), not v(X).      as many ground rules as the product of all
    p1(X) :- r(X, Y).   p2(U) :- s(W, U).   p3 :- p2(U), t(U).   :- p1(X), p3, not v(X).

Variable elimination: of the variables that are not asked for, the next is the one whose literals join the fewest others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Joined:
    """A literal of the solver's program, with its variables.

    Attributes:
        text: the literal.
        variables: those that it has.
        binds: whether it binds them, as an atom does and a comparison does not.
    """

    text: str
    variables: frozenset[str]
    binds: bool = True


def eliminated(
    body: Collection[Joined], asked: Collection[str], names: Iterator[str]
) -> tuple[list[str], list[str]]:
    """Literals with the same solutions for the variables that are asked for.

    Args:
        body: a join.
        asked: these variables.
        names: names for new predicates.

    Returns:
        The rules of new predicates, and the literals.
    """
    literals = list(dict.fromkeys(body))
    several = {v for one in literals if not one.binds and len(one.variables) > 1 for v in one.variables}
    waiting = {v for one in literals for v in one.variables} - set(asked) - several
    rules: list[str] = []
    while waiting:
        variable = min(sorted(waiting), key=lambda v: len(_around(literals, v)))
        waiting.discard(variable)
        mine = [one for one in literals if variable in one.variables]
        left = sorted(_around(literals, variable) - {variable})
        name = next(names)
        head = f"{name}({','.join(left)})" if left else name
        rules.append(f"{head} :- {', '.join(one.text for one in mine)}.")
        literals = [one for one in literals if variable not in one.variables]
        literals.append(Joined(head, frozenset(left)))
    return rules, [one.text for one in literals]


def _around(literals: Collection[Joined], variable: str) -> set[str]:
    """The variables of the literals that have a variable."""
    return {v for one in literals if variable in one.variables for v in one.variables}
