"""What stored aggregates rule out: core rows that their group has no room for.

Conditions of soundness:

1. The group is told wholly, so that the stored row is the one of the new core row.
2. A new core row uses a fact that is not known, so it differs from every known core row.
3. A group of one row that is known has no other; and the only row of a group has the group's aggregates.
4. No row of a group has less than its minimum, nor more than its maximum.
"""

from __future__ import annotations

from collections.abc import Iterator

from datalog.model import (
    AggregateFunction,
    Atom,
    Comparison,
    Constant,
    Literal,
    Term,
    Variable,
    Version,
    apply_atom,
    apply_literal,
    variables_of,
)
from selfmaint.decide.demand import Demand

_OWN_VALUE = (AggregateFunction.SUM, AggregateFunction.MIN, AggregateFunction.MAX)


def full_groups(demand: Demand) -> tuple[tuple[Literal, ...], ...]:
    """Conjunctions over known facts and stored groups, none of which holds where the demand's core row is there.

    Args:
        demand: with the operands that are told.
    """
    return tuple(_ruled_out(demand)) if _is_told(demand) else ()


def _is_told(demand: Demand) -> bool:
    """Condition 1."""
    grouped = demand.view.grouped
    assert grouped is not None
    bound = variables_of([li for li in demand.body if isinstance(li, Atom)])
    terms = [demand.group.terms[c] for c in grouped.columns]
    plain = all(column in grouped.group_terms for column in grouped.columns)
    return plain and all(t not in demand.own or t in bound for t in terms)


def _ruled_out(demand: Demand) -> Iterator[tuple[Literal, ...]]:
    grouped = demand.view.grouped
    assert grouped is not None
    values = demand.group.terms
    functions = {m.column: m.aggregate.function for m in grouped.measures}
    bound = variables_of([li for li in demand.body if isinstance(li, Atom)])
    operands = [(c, t) for c, t in demand.operands if t not in demand.own or t in bound]
    for column, operand in operands:
        if functions[column] is AggregateFunction.MIN:  # condition 4
            yield (*demand.body, demand.group, Comparison("<", operand, values[column]))
        if functions[column] is AggregateFunction.MAX:
            yield (*demand.body, demand.group, Comparison(">", operand, values[column]))
    if grouped.count_column is None:
        return
    single = _with(demand.group, grouped.count_column, Constant(1))
    for column, operand in operands:  # condition 3
        if functions[column] in _OWN_VALUE and column not in grouped.inexact:
            yield (*demand.body, single, Comparison("!=", operand, values[column]))
    yield (*demand.body, single, *_known_row(demand))


def _with(atom: Atom, column: int, term: Term) -> Atom:
    return Atom(atom.predicate, (*atom.terms[:column], term, *atom.terms[column + 1 :]))


def _known_row(demand: Demand) -> Iterator[Literal]:
    """Condition 2: a known core row of the demand's group."""
    core, grouped = demand.view.core, demand.view.grouped
    assert core is not None
    assert grouped is not None
    taken = {v.name for v in variables_of([demand.group, *demand.body])}
    suffix = "_known"
    while any(v.name + suffix in taken for v in variables_of(core.body)):
        suffix += "_"
    images: dict[Variable, Term] = {v: Variable(v.name + suffix) for v in variables_of(core.body)}
    for column, term in grouped.group_terms.items():
        if isinstance(term, Variable):
            images[term] = demand.group.terms[column]
    for atom in core.body:
        moved = apply_atom(images, atom)
        yield Atom(moved.predicate.of(Version.KNOWN), moved.terms)
    yield from (apply_literal(images, li) for li in core.filters)
