"""Relations of groups side by side: the full outer join of two of them, as definitions that any engine evaluates.

It is the union of both sides, each with what stands for the other one where it is missing, grouped. Each side is read
once, and null groups are equal.

    gained_or_lost(g, gn, ln)   gained(g, n): g, n, 0    lost(g, n): g, 0, n
    gained_and_lost             g, max(gn), max(ln) of gained_or_lost, by g
"""

from __future__ import annotations

from msgspec import Struct

from datalog.model import (
    Aggregate,
    AggregateFunction,
    Atom,
    Constant,
    Predicate,
    Program,
    Term,
    Variable,
    Version,
    ViewDefinition,
    block,
)
from selfmaint.warehouse.grouped import SOME_ROWS


class Step(Struct, frozen=True):
    """A relation that is made of stored ones and of those of the steps before it.

    Attributes:
        predicate: what it is called.
        columns: the names of its columns.
    """

    predicate: Predicate
    made: Program | ViewDefinition
    columns: tuple[str, ...]


class Side(Struct, frozen=True):
    """One side of an outer join, which holds each group once.

    Attributes:
        atom: where its rows are.
        taken: what is taken of them.
        missing: what stands there without a row.
        named: what is taken, as variables.
    """

    atom: Atom
    taken: tuple[Term, ...]
    missing: tuple[Constant, ...]
    named: tuple[Variable, ...]


def joined(
    named: Predicate, keys: tuple[Variable, ...], left: Side, right: Side
) -> tuple[tuple[Step, ...], Side]:
    """The steps of the outer join of two sides, and what they make as a side."""
    either = Predicate(f"{left.atom.predicate.name}_or_{right.atom.predicate.name}", Version.STEP)
    values = (*left.named, *right.named)
    columns = tuple(v.name.lower() for v in (*keys, *values))
    blocks = (
        block(either.name, 0, [left.atom], [*keys, *left.taken, *right.missing]),
        block(either.name, 1, [right.atom], [*keys, *left.missing, *right.taken]),
    )
    found = (Aggregate(AggregateFunction.MAX, v) for v in values)
    some = () if keys else (SOME_ROWS,)
    made = block(named.name, 0, [Atom(either, (*keys, *values))], [*keys, *found], groups=keys, having=some)
    steps = (
        Step(either, ViewDefinition(either.name, columns, blocks), columns),
        Step(named, ViewDefinition(named.name, columns, (made,)), columns),
    )
    return steps, Side(Atom(named, (*keys, *values)), values, (*left.missing, *right.missing), values)
