"""The standard simplification: a tuple of rewrites, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeAlias

from datalog.containment import minimise
from datalog.model import Predicate, Program
from datalog.rewrite.comparisons import propagate_equalities, simplify_comparisons
from datalog.rewrite.negations import drop_implied_negations
from datalog.rewrite.reachable import drop_subsumed, drop_unreachable
from datalog.rewrite.unfold import unfold_single_rules

Rewrite: TypeAlias = Callable[[Program, tuple[Predicate, ...]], Program]


def _unfold(program: Program, goals: tuple[Predicate, ...]) -> Program:
    return unfold_single_rules(program, goals)


def _equalities(program: Program, _goals: tuple[Predicate, ...]) -> Program:
    return replace(program, rules=tuple(propagate_equalities(rule) for rule in program.rules))


def _comparisons(program: Program, goals: tuple[Predicate, ...]) -> Program:
    return simplify_comparisons(program, goals)


def _negations(program: Program, _goals: tuple[Predicate, ...]) -> Program:
    return replace(program, rules=tuple(drop_implied_negations(rule) for rule in program.rules))


def _subsumed(program: Program, _goals: tuple[Predicate, ...]) -> Program:
    return drop_subsumed(program)


SIMPLIFY: tuple[Rewrite, ...] = (
    drop_unreachable,
    _unfold,
    _equalities,
    _comparisons,
    _negations,
    _subsumed,
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
