"""Columns that are computed and told: from aggregates, and casts that lose nothing of what they show.

    v:    SELECT c, cast(count(*) AS int) AS n, round(sum(t), 2) AS s, round(avg(t), 2) AS a, sum(t) / count(*) AS m
          FROM o GROUP BY c
    v#0:  SELECT c, count(*) AS n, sum(t) AS s, avg(t) AS a FROM o GROUP BY c                     m = s / n

    w:    SELECT cast(id AS bigint) AS id, upper(name) AS name FROM c          w#0: SELECT id, upper(name) FROM c

Each row of `v` is one of `v#0`, and the other way round: so `v` is determined if and only if `v#0` is.

Conditions of soundness:

1. A computed column has, of the groups' columns and aggregates, only what others show, or one aggregate that it tells:
   casts and roundings around it lose no digit; or it is an average, of which others show the sum and the number. What
   is stored of such an average is never used: it is divided anew. No double is cast to what is none, which not
   every engine does as Spark.
2. What it has is written in one way: no doubles but averages, of which 0.0 and -0.0 may both be stored.
3. The types of the columns that it is computed from are known: the digits of decimals depend on them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from datalog.analysis.expression_types import expression_type
from datalog.analysis.lossless import inside, is_lossless
from datalog.copies import replace
from datalog.model import (
    ANY,
    Aggregate,
    AggregateFunction,
    Arithmetic,
    Atom,
    Block,
    Call,
    Cast,
    ColumnType,
    ComputedColumn,
    Constant,
    Expression,
    OuterJoin,
    Predicate,
    Rule,
    Variable,
    ViewDefinition,
    aggregates_of,
    block,
    expressed_by,
    expression_variables,
    walk,
)
from datalog.rewrite.branches import column
from selfmaint.warehouse.alike import Met, unlike
from selfmaint.warehouse.base_relations import BaseRelation, variable_types
from selfmaint.warehouse.views import GroupedView, View

_EXACT = (AggregateFunction.AVG, AggregateFunction.COUNT)


def without_computed(
    definition: ViewDefinition, types: Mapping[str, Sequence[ColumnType]]
) -> OuterJoin | None:
    """A view without columns that are computed; None if none is, or can be left out.

    Of a view that groups whether they are told is not asked; of another one those are left out that are a cast of a
    column, which loses nothing given the declared types of its tables.
    """
    if len(definition.blocks) != 1:
        return None
    (one,) = definition.blocks
    groups = one.groups or ()
    outputs = {i: o for i, o in enumerate(one.outputs) if not _computes(o, groups)}
    if not definition.is_grouped:
        outputs = dict(enumerate(one.outputs))
        for place in _lossless_casts(one, types):
            del outputs[place]
    shown: dict[str, Expression] = {
        repr(o): column(i) for i, o in reversed(outputs.items()) if not isinstance(o, Constant)
    }
    left = {i: output for i, output in enumerate(one.outputs) if i not in outputs}
    if not left:
        return None
    for i, output in left.items():  # those that tell one aggregate, or column, show it
        told = _told(output, shown) if definition.is_grouped else inside(output)
        if told is not None and repr(told) not in shown:
            outputs[i] = told
            shown[repr(told)] = column(i)
    computed = {i: expressed_by(output, shown) for i, output in left.items()}
    name, kept = f"{definition.name}#0", sorted(outputs)
    made = block(
        name,
        0,
        one.core.body,
        [outputs[i] for i in kept],
        filters=one.filters,
        groups=one.groups,
        having=one.having,
    )
    names = tuple(definition.columns[i] for i in kept)
    part = ViewDefinition(name, names, (made,), definition.semantics, definition.text, definition.span)
    values = tuple(
        ComputedColumn(i, definition.columns[i], value) for i, value in computed.items() if value is not None
    )
    key = tuple(i for i in kept if outputs[i] in groups or not definition.is_grouped)
    return OuterJoin(part, tuple(kept), computed=values, key=key) if len(values) == len(left) else None


def _lossless_casts(one: Block, types: Mapping[str, Sequence[ColumnType]]) -> Iterator[int]:
    """The outputs of a query that show a column cast to another type that has all its values."""
    known: dict[Variable, ColumnType] = {}
    for atom in one.core.atoms:
        its = zip(atom.terms, types.get(atom.predicate.name, ()), strict=False)
        known |= {term: kind for term, kind in its if isinstance(term, Variable)}
    for place, output in enumerate(one.outputs):
        its_column = inside(output)
        if output != its_column and its_column in known and is_lossless(output, known):
            yield place


def _computes(output: Expression, groups: Sequence[Expression]) -> bool:
    if isinstance(output, Aggregate) or output in groups:
        return False
    return bool(expression_variables([output]) or aggregates_of([output]))


def _told(output: Expression, shown: Mapping[str, Expression]) -> Aggregate | None:
    """The only aggregate in a column that no other shows, if the column may tell it, or need not."""
    hidden = [one for one in aggregates_of([output]) if repr(one) not in shown]
    if len(hidden) != 1:
        return None
    (one,) = hidden
    return one if one.function is AggregateFunction.AVG or inside(output) == one else None


def told_columns(
    outer: OuterJoin, kept: View, relations: Mapping[str, BaseRelation]
) -> dict[int, Expression] | None:
    """The columns of its parts that a view shows otherwise, over its stored columns (condition 1).

    Returns:
        By column; None if one of them is not told.
    """
    groups = kept.shown_groups or kept
    types, values = column_types(outer, relations), {one.place: one.value for one in outer.computed}
    known = {variable: kind for variable, kind in types.items() if kind is not None}
    found: dict[int, Expression] = {}
    averages = []
    for place in sorted(values.keys() & {*outer.plain}):
        its = column(place)
        is_of_side = place not in outer.columns  # of these the reader knows
        if its in known and (
            is_of_side or (inside(values[place]) == its and is_lossless(values[place], known))
        ):
            found[place] = Cast(its, known[its])
        else:
            averages.append(place)
    if not averages:
        return found
    if not isinstance(groups, GroupedView) or not {*averages} <= {*outer.columns}:
        return None
    for average in averages:
        at, kind = outer.columns.index(average), types[column(average)]
        parts = _parts(groups, at)
        if (
            kind is None
            or parts is None
            or at in groups.grouped.alone
            or _casts_doubles(values[average], known)
        ):
            return None
        total, number = (found.get(i, column(i)) for i in (outer.columns[part] for part in parts))
        found[average] = Cast(Arithmetic("/", total, Call("nullif", (number, Constant(0)))), kind)
    return found


def _casts_doubles(value: Expression, types: Mapping[Variable, ColumnType]) -> bool:
    for part in walk(value):
        if isinstance(part, Cast) and not part.type.name.is_floating:
            kind = expression_type(part.operand, types)
            if kind is None or kind.name.is_floating:
                return True
    return False


def _parts(view: GroupedView, average: int) -> tuple[int, int] | None:
    """The columns of the sum and of the number of what is averaged; None of what is no average."""
    its = {m.column: m.aggregate for m in view.grouped.measures}
    if its[average].function is not AggregateFunction.AVG:
        return None
    same = {one.function: i for i, one in its.items() if one.operand == its[average].operand}
    number = same.get(AggregateFunction.COUNT, view.grouped.count_column)
    total = same.get(AggregateFunction.SUM)
    return None if total is None or number is None else (total, number)


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
    plain = outer.plain
    outputs = [computed.get(i, column(i)) for i in range(len(outer.names))]
    made = block(name, 0, [Atom(rows, tuple(map(column, plain)))], outputs)
    return ViewDefinition(name, outer.names, (made,)), {rows: tuple(types[column(i)] or ANY for i in plain)}
