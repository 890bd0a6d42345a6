"""Many goals in one statement: each is asked only whether it has a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame

from datalog.model import Atom, Constant, Literal, Predicate, Program, Rule, Variable
from datalog.rewrite import drop_unreachable
from datalog.rewrite.reachable import predicates_of


def union_all(parts: Sequence[DataFrame]) -> DataFrame:
    """All rows of one or more relations, duplicates kept; by halves, as each union is analysed as a whole."""
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return union_all(parts[:middle]).union(union_all(parts[middle:]))


def marked(program: Program, goal: Predicate, number: int, given: Mapping[Predicate, DataFrame]) -> Program:
    """A program for a predicate that holds the goal's number if the goal has a row, and for nothing else.

    Before: `a(X, Y) :- r(X, Y), not b(X).  b(X) :- s(X).`  (goal `a`, number 3)
    After:  `goal(3) :- r(X, Y), not b(X).  b(X) :- s(X).`
    """
    taken = {p.name for rule in program.rules for p in (rule.head.predicate, *predicates_of(rule.body))}
    name = "goal"
    while name in taken:
        name += "_"
    head = Atom(Predicate(name), (Constant(number),))
    bodies: list[tuple[Literal, ...]] = [rule.body for rule in program.rules_for(goal)]
    if not bodies and goal in given:
        bodies.append((Atom(goal, tuple(Variable(f"X{i}") for i in range(len(given[goal].columns)))),))
    marks = tuple(Rule(head, body) for body in bodies)
    return drop_unreachable(replace(program, rules=(*marks, *program.rules)), [head.predicate])
