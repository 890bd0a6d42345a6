"""The summands of unions whose rows do not tell which rule they come from: a view for each, nothing of it stored.

Those of a view that groups over a UNION ALL are the same groups over each of its queries.

    SELECT day, amount FROM web UNION ALL SELECT day, amount FROM shop
        sales#1: SELECT day, amount FROM web        sales#2: SELECT day, amount FROM shop

What a summand gains and loses may be determined though nobody knows its rows: see `selfmaint.decide.summands`.

Conditions of soundness:

1. A summand is one rule's rows, each as often as the rule gives it: the core of its groups is the rule's body.
2. Its columns have the types of the other summands' columns: what is equal in one is written alike in all.
3. A query that reads nothing never gains or loses a row, and is none. Of a UNION, whose rows stand once, its rows are
   written plainly, as values of the types that the columns have in the summands (no doubles): they are like no other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from datalog.analysis.expression_types import expression_type
from datalog.copies import replace
from datalog.model import (
    ANY,
    ColumnType,
    Constant,
    Expression,
    OpaqueView,
    Program,
    Rule,
    Semantics,
    TypeName,
    ViewDefinition,
    block,
)
from selfmaint.engine.column_types import fits
from selfmaint.warehouse.alike import types_met
from selfmaint.warehouse.base_relations import BaseRelation
from selfmaint.warehouse.cores import core_rules, output_types, with_core
from selfmaint.warehouse.definitions import (
    NOT_YET,
    grouping,
    limited_view,
    unfolded_rules,
    view_of,
    with_null_filters,
)
from selfmaint.warehouse.views import GroupedView, Limitation, Outside, View

MOST = 32
"""Of a union of more rules there are none."""


def summands(
    program: Program,
    views: Mapping[str, View],
    relations: Mapping[str, BaseRelation],
    by_name: Mapping[str, list[Rule]],
) -> dict[str, tuple[GroupedView, ...]]:
    """The summands of the unions among some views, by union; of a rule that can have no rows there is none."""
    written = {
        name: [with_null_filters(one, program.declarations) for one in _written(view, by_name.get(name, ()))]
        for name, view in views.items()
    }
    beyond = {one.name: _counted(one) for its in written.values() for one in its}
    cores = core_rules(beyond)
    rules = unfolded_rules(replace(program, rules=(*program.rules, *cores.values()))) if cores else {}
    every = (plain.atoms for its in rules.values() for _, plain in its)
    met = types_met(every, relations)
    found = {}
    for name, its in written.items():
        parts = []
        for one in its:
            plain = view_of(program, one.name, rules[one.name], relations, by_name)
            parts.append(with_core(beyond[one.name], cores[one.name], plain, relations, met))
        grouped = [_hidden(part) for part in parts if isinstance(part, GroupedView)]
        others = [part for part in parts if not isinstance(part, GroupedView)]
        is_told = all(part.always_empty for part in others) and _are_alike(grouped, relations)
        if grouped and is_told and _are_written_alike(views[name], grouped[0], relations):
            found[name] = tuple(grouped)
    return found


def decided_by(view: View) -> View:
    """A union that has summands, with what it is as its limitation, and no more."""
    assert view.limitation is not None
    text = view.limitation.text.removesuffix(NOT_YET)
    return replace(view, limitation=replace(view.limitation, text=text))


def _written(view: View, rules: Sequence[Rule]) -> list[ViewDefinition]:
    """The definitions of a union's summands; none if the view is no union of queries of one rule."""
    definition = view.definition
    if isinstance(definition, OpaqueView):
        return [*definition.parts] if len(definition.parts) <= MOST else []
    if view.limitation is None:
        return []
    is_split = definition is not None and definition.is_split
    if view.limitation.kind is Outside.UNION:
        name = f"{view.name}#"
        blocks = [block(name, i, rule.body, rule.head.terms) for i, rule in enumerate(rules)]
    elif definition is not None and not definition.is_grouped:
        blocks = list(definition.blocks)
    else:
        return []
    text = None if definition is None else definition.text
    return [
        ViewDefinition(
            f"{view.name}#{number}",
            view.columns,
            (block(f"{view.name}#{number}", 0, one.core.body, one.outputs, filters=one.filters),),
            text=text,
            span=view.rule.span,
            is_split=is_split,
        )
        for number, one in enumerate(blocks, 1)
        if 1 < len(blocks) <= MOST and not one.is_constant
    ]


def _counted(part: ViewDefinition) -> View:
    """A summand as a view of groups, or of counted rows, still without its core."""
    kind = Outside.AGGREGATE if part.is_grouped else Outside.BAG
    made = limited_view(part, part.columns, Limitation(kind, f"`{part.name}` is a summand of a union"))
    return replace(made, grouping=part if part.is_grouped else grouping(part, counted=True))


def _hidden(part: GroupedView) -> GroupedView:
    return replace(part, grouped=replace(part.grouped, is_hidden=True))


def _are_alike(parts: Iterable[GroupedView], relations: Mapping[str, BaseRelation]) -> bool:
    """Condition 2; a column of nulls alone is like any other."""
    each = zip(*(output_types(part, relations) for part in parts), strict=True)
    return all(len({_as_written(kind) for kind in kinds if kind is not None}) <= 1 for kinds in each)


def _as_written(kind: ColumnType) -> object:
    """What types have in common whose equal values are written alike: whole numbers, decimals of as many digits."""
    if kind.name.is_integer:
        return "whole"
    return ("digits", kind.scale) if kind.name is TypeName.DECIMAL and not kind.is_open else kind


def _are_written_alike(view: View, part: GroupedView, relations: Mapping[str, BaseRelation]) -> bool:
    """Condition 3."""
    definition = view.definition
    if not isinstance(definition, ViewDefinition) or definition.semantics is Semantics.BAG:
        return True
    kinds = output_types(part, relations)
    written = [one for one in definition.blocks if one.is_constant]
    is_plain = not any(
        one.core.body or one.filters or one.having or one.groups is not None for one in written
    )
    return is_plain and all(
        _is_alike(value, kind) for one in written for value, kind in zip(one.outputs, kinds, strict=False)
    )


def _is_alike(value: Expression, kind: ColumnType | None) -> bool:
    if not isinstance(value, Constant) or kind is None or kind == ANY or kind.name.has_signed_zeros:
        return False
    its = expression_type(value, {})
    return value.value is None or (its is not None and fits(its, kind))
