"""Columns of a view that groups and are computed from its other columns: they say nothing, and follow these.

    v:    SELECT c, count(*) AS n, sum(t) AS s, sum(t) / count(*) AS mean FROM o GROUP BY c
    v#0:  SELECT c, count(*) AS n, sum(t) AS s FROM o GROUP BY c             mean = s / n

Each row of `v` is one of `v#0`, and the other way round: so `v` is determined if and only if `v#0` is.

Conditions of soundness:

1. A computed column has, of the groups' columns and aggregates, only what other columns show.
2. What it has is written in one way: no doubles but averages, of which 0.0 and -0.0 may both be stored.
3. The types of the columns that it is computed from are known: the digits of decimals depend on them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from datalog.analysis.expression_types import expression_type
from datalog.model import (
    ANY,
    Aggregate,
    AggregateFunction,
    Atom,
    Call,
    ColumnType,
    ComputedColumn,
    OuterJoin,
    Predicate,
    Rule,
    Variable,
    ViewDefinition,
    aggregates_of,
    block,
    expressed_by,
    expression_variables,
)
from datalog.rewrite.branches import column
from selfmaint.warehouse.base_relations import BaseRelation, variable_types
from selfmaint.warehouse.cores import Met, unlike
from selfmaint.warehouse.views import View

_EXACT = (AggregateFunction.AVG, AggregateFunction.COUNT)


def without_computed(definition: ViewDefinition) -> OuterJoin | None:
    """A view that groups as one with fewer columns, and what is computed from these; None if nothing is, or can be."""
    if len(definition.blocks) != 1 or not definition.is_grouped:
        return None
    (one,) = definition.blocks
    groups = one.groups or ()
    plain = [i for i, what in enumerate(one.outputs) if isinstance(what, Aggregate) or what in groups]
    shown = {repr(one.outputs[i]): column(i) for i in reversed(plain)}
    computed = []
    for i, what in enumerate(one.outputs):
        if i not in plain and (expression_variables([what]) or aggregates_of([what])):
            value = expressed_by(what, shown)
            if value is None:
                return None
            computed.append(ComputedColumn(i, definition.columns[i], value))
    if not computed:
        return None
    left = {found.place for found in computed}
    kept = [i for i in range(len(one.outputs)) if i not in left]
    outputs, name = [one.outputs[i] for i in kept], f"{definition.name}#0"
    made = block(name, 0, one.core.body, outputs, filters=one.filters, groups=one.groups, having=one.having)
    names = tuple(definition.columns[i] for i in kept)
    part = ViewDefinition(name, names, (made,), definition.semantics, definition.text, definition.span)
    return OuterJoin(part, tuple(kept), computed=tuple(computed))


def are_computed_alike(
    outer: OuterJoin,
    cores: Mapping[str, tuple[Rule, View]],
    relations: Mapping[str, BaseRelation],
    met: Met,
) -> bool:
    """Conditions 2 and 3, given of each part the rule of its core, or its own, as written, and as it is."""
    used = set(expression_variables([one.value for one in outer.computed]))
    types = column_types(outer, relations)
    for part, places in outer.parts:
        (one,) = part.blocks
        whats = [w for i, w in zip(places, one.outputs, strict=True) if column(i) in used]
        kinds = [types[column(i)] for i in places if column(i) in used]
        if any(its is None or its.is_open for its in kinds):
            return False
        exact = [isinstance(what, Aggregate) and what.function in _EXACT for what in whats]
        if any(
            its is not None and its.name.is_floating for its, e in zip(kinds, exact, strict=True) if not e
        ):
            return False
        others = [Call("coalesce", (what,)) for what, e in zip(whats, exact, strict=True) if not e]
        if others and part.name not in cores:
            return False
        if others and unlike(
            replace(part, blocks=(replace(one, outputs=tuple(others)),)), *cores[part.name], relations, met
        ):
            return False
    return True


def column_types(
    outer: OuterJoin, relations: Mapping[str, BaseRelation]
) -> dict[Variable, ColumnType | None]:
    """The types of a view's columns that are of one of its parts."""
    found: dict[Variable, ColumnType | None] = {}
    for part, places in outer.parts:
        (one,) = part.blocks
        types = variable_types(one.core.atoms, relations)
        found |= {
            column(i): expression_type(what, types) for i, what in zip(places, one.outputs, strict=True)
        }
    return found


def completed(
    name: str, outer: OuterJoin, rows: Predicate, relations: Mapping[str, BaseRelation]
) -> tuple[ViewDefinition, Mapping[Predicate, tuple[ColumnType, ...]]]:
    """A view's rows from those that lack what is computed, with the types of these by the rows' predicate."""
    types, computed = column_types(outer, relations), {one.place: one.value for one in outer.computed}
    every = range(len(outer.names))
    plain = [i for i in every if i not in computed]
    outputs = [computed.get(i, column(i)) for i in every]
    made = block(name, 0, [Atom(rows, tuple(map(column, plain)))], outputs)
    return ViewDefinition(name, outer.names, (made,)), {rows: tuple(types[column(i)] or ANY for i in plain)}
