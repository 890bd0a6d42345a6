"""Rules for a join, whose size is that of its parts: variables that nobody asks for are projected out one by one.

    :- r(X, Y), s(W, U), t(U), not v(X).      as many ground rules as the product of all
    p1(X) :- r(X, Y).   p2(U) :- s(W, U).   p3 :- p2(U), t(U).   :- p1(X), p3, not v(X).

Variable elimination: the next variable is the one, of those not asked for, whose literals have the fewest others.
The number of ground rules is estimated beforehand, from the numbers of atoms and of values.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import prod

from msgspec import Struct


def atom_text(name: str, terms: Sequence[object]) -> str:
    """An atom.

    >>> atom_text("b1", [3, "X"]), atom_text("differs", [])
    ('b1(3,X)', 'differs')
    """
    return f"{name}({','.join(map(str, terms))})" if terms else name


def body_text(literals: Iterable[str]) -> str:
    """A body: each literal once, without those that are empty."""
    return ", ".join(dict.fromkeys(literal for literal in literals if literal))


def if_text(literals: Iterable[str]) -> str:
    """What follows a head: nothing where there is no body."""
    body = body_text(literals)
    return f" :- {body}" if body else ""


class Joined(Struct, frozen=True):
    """A literal of the solver's program, with its variables.

    Attributes:
        text: the literal.
        variables: those that it has.
        size: how many ground atoms there are of it; None of what binds no variables, as a comparison.
    """

    text: str
    variables: frozenset[str]
    size: float | None = None


class Elimination(Struct, frozen=True):
    """Literals with the same solutions for the variables that are asked for.

    Attributes:
        rules: the rules of new predicates.
        cost: about how many ground rules there are, one with the body included.
    """

    rules: tuple[str, ...]
    body: tuple[str, ...]
    cost: float


def eliminated(
    body: Collection[Joined], asked: Collection[str], values: Mapping[str, int], names: Iterator[str]
) -> Elimination:
    """A join without the variables that nobody asks for.

    `values` tells of each variable how many values it may have; `names` are for new predicates.
    """
    literals = list(dict.fromkeys(body))
    waiting = {v for one in literals for v in one.variables} - set(asked)
    rules: list[str] = []
    cost = 0.0
    while waiting:
        variable = min(sorted(waiting), key=lambda v: len(_around(literals, v)))
        waiting.discard(variable)
        mine = [one for one in literals if variable in one.variables]
        left = sorted(_around(literals, variable) - {variable})
        joined = [*mine, *_binding(literals, mine)]
        name = next(names)
        head = f"{name}({','.join(left)})" if left else name
        rules.append(f"{head} :- {', '.join(one.text for one in joined)}.")
        instances = _instances(joined, values)
        cost += instances
        size = min(instances, prod(values[v] for v in left))
        literals = [one for one in literals if variable not in one.variables]
        literals.append(Joined(head, frozenset(left), size))
    cost += _instances(literals, values)
    return Elimination(tuple(rules), tuple(one.text for one in literals), cost)


def _binding(literals: Collection[Joined], some: Collection[Joined]) -> Iterator[Joined]:
    """Literals that bind what some literals only compare."""
    bound = frozenset[str]().union(*(one.variables for one in some if one.size is not None))
    for variable in sorted(frozenset[str]().union(*(one.variables for one in some)) - bound):
        if variable not in bound:
            there = (one for one in literals if one.size is not None and variable in one.variables)
            binder = min(there, key=lambda one: (len(one.variables), one.size))
            bound |= binder.variables
            yield binder


def _around(literals: Collection[Joined], variable: str) -> set[str]:
    """The variables of the literals that have a variable."""
    return {v for one in literals if variable in one.variables for v in one.variables}


def _instances(literals: Collection[Joined], values: Mapping[str, int]) -> float:
    """About how many solutions a join has: as if each value stood in as many atoms as any other."""
    found, bound = 1.0, set[str]()
    for one in sorted((li for li in literals if li.size is not None), key=lambda li: li.size or 0):
        among = (one.size or 0) / prod(max(values[v], 1) for v in one.variables & bound)
        found *= min(among, prod(values[v] for v in one.variables - bound))
        bound |= one.variables
    return found
