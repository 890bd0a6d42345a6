"""The standard simplification of a program: a tuple of rewrites, in order.

What comes out is a program for any engine; the shape of one query comes after that (`inline.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from datalog.containment import minimise
from datalog.copies import replace
from datalog.model import Predicate, Program, Rule
from datalog.rewrite.comparisons import propagate_equalities, simplify_comparisons
from datalog.rewrite.negations import drop_implied_negations
from datalog.rewrite.reachable import drop_subsumed, drop_unreachable
from datalog.rewrite.unfold import unfold_single_rules

Rewrite: TypeAlias = Callable[[Program, tuple[Predicate, ...]], Program]


def _each(rewrite: Callable[[Rule], Rule]) -> Rewrite:
    return lambda program, _goals: replace(program, rules=tuple(map(rewrite, program.rules)))


SIMPLIFY: tuple[Rewrite, ...] = (
    drop_unreachable,
    unfold_single_rules,
    _each(propagate_equalities),
    simplify_comparisons,
    _each(drop_implied_negations),
    lambda program, _goals: drop_subsumed(program),
    drop_unreachable,
)


def simplify(program: Program, goals: Iterable[Predicate]) -> Program:
    """An equivalent, smaller program for the goals."""
    wanted = tuple(goals)
    for rewrite in SIMPLIFY:
        program = rewrite(program, wanted)
    return program


def minimised(program: Program) -> Program:
    """An equivalent program without atoms that others of a body imply, and without rules that others contain.

    Before: `p(X) :- r(X, Y), r(X, Z).  p(X) :- r(X, W).`  After: `p(X) :- r(X, Z).`
    """
    return drop_subsumed(replace(program, rules=tuple(minimise(rule) for rule in program.rules)))
