"""Unions whose rows tell which rule they come from, as views: see `datalog.rewrite.branches`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce

from datalog.analysis.expression_types import expression_type
from datalog.analysis.lossless import inside, is_lossless
from datalog.analysis.types import common_type
from datalog.copies import replace
from datalog.model import (
    ANY,
    Aggregate,
    Atom,
    Block,
    Cast,
    ColumnType,
    Constant,
    Expression,
    Predicate,
    Program,
    Rule,
    TypeName,
    Variable,
    ViewDefinition,
    block,
    expressed_by,
)
from datalog.rewrite.branches import Branch, branches, branches_of_queries, column
from selfmaint.warehouse.base_relations import BaseRelation, variable_types
from selfmaint.warehouse.cores import output_types, projected
from selfmaint.warehouse.definitions import view_of
from selfmaint.warehouse.doubles import hold_alike
from selfmaint.warehouse.views import GroupedView, View, as_part_of


def told_apart(
    program: Program,
    union: View,
    rules: Sequence[tuple[Rule, Rule]],
    relations: Mapping[str, BaseRelation],
    views: Mapping[str, list[Rule]],
) -> dict[Branch, View]:
    """The branches of a union as views; none if its rows do not tell them apart.

    A constant beside a column of single precision may be another one there; and so may a rule's numbers beside those
    of another type (`are_kept_apart`).
    """
    found = dict[Branch, View]()
    if not hold_alike([plain for _, plain in rules], relations):
        return found
    singles = {
        i
        for _, plain in rules
        for types in [variable_types(plain.atoms, relations)]
        for i, term in enumerate(plain.head.terms)
        if isinstance(term, Variable) and types.get(term, ANY).name is TypeName.FLOAT
    }
    if any(isinstance(plain.head.terms[i], Constant) for _, plain in rules for i in singles):
        return found
    for number, branch in enumerate(branches(union.name, rules), 1):
        name = Predicate(branch.name)
        written, plain = (replace(r, head=replace(r.head, predicate=name)) for r in rules[number - 1])
        view = view_of(program, branch.name, [(written, plain)], relations, views)
        found[branch] = as_part_of(projected(view, relations), union, number, union.columns)
    return found


def query_branches(unions: Iterable[ViewDefinition]) -> dict[str, dict[Branch, ViewDefinition]]:
    """By union, the branches of those of queries of which some group: see `datalog.rewrite.branches`."""
    return {one.name: found for one in unions if (found := branches_of_queries(one))}


def queries_apart(
    queries: Mapping[str, Mapping[Branch, ViewDefinition]],
    views: Mapping[str, View],
    relations: Mapping[str, BaseRelation],
) -> dict[str, dict[Branch, View]]:
    """By union, the branches as views.

    None of a union of which one is not decided or keeps duplicates, or of which a column does not have the numbers of
    each query as they are: they are stored as one type for all.
    """
    found = {}
    for name, its in queries.items():
        parts = [views[branch.name] for branch in its]
        are_decided = all((part.is_decided or part.shown_groups) and not part.is_counted for part in parts)
        definition = views[name].definition
        if not are_decided or not isinstance(definition, ViewDefinition):
            continue
        own = [_types(part, relations) for part in parts]
        shown = [_over_columns(one) for one in definition.blocks]
        kinds = _stored_types(shown, own)
        if kinds is not None and not _of_single_precision(definition, kinds):
            found[name] = {
                _read_as(branch, values, types, kinds): as_part_of(
                    part, views[name], number, views[name].columns
                )
                for number, (branch, part, values, types) in enumerate(
                    zip(its, parts, shown, own, strict=True), 1
                )
            }
    return found


def _of_single_precision(union: ViewDefinition, kinds: Sequence[ColumnType | None]) -> bool:
    """Whether a constant stands in a column of single precision, where it may be another one."""
    singles = [i for i, kind in enumerate(kinds) if kind is not None and kind.name is TypeName.FLOAT]
    return any(isinstance(one.outputs[i], Constant) for one in union.blocks for i in singles)


def _over_columns(one: Block) -> list[Expression]:
    """What a query shows, over columns that show its aggregates without casts and roundings."""
    plain = [inside(output) for output in one.outputs]
    return [
        expressed_by(output, {repr(its): column(i)}) or column(i) if isinstance(its, Aggregate) else column(i)
        for i, (output, its) in enumerate(zip(one.outputs, plain, strict=True))
    ]


def _stored_types(
    shown: Sequence[Sequence[Expression]], own: Sequence[Sequence[ColumnType | None]]
) -> list[ColumnType | None] | None:
    """The types of a union's columns; None if one does not have the numbers of each query as they are.

    Args:
        shown: for each query, what its columns are, over those that it has without casts and roundings.
        own: the types of these; None of what is always null.
    """
    kinds: list[ColumnType | None] = []
    for i, (values, types) in enumerate(zip(zip(*shown, strict=True), zip(*own, strict=True), strict=True)):
        given = [(value, {column(i): kind}) for value, kind in zip(values, types, strict=True) if kind]
        each = [expression_type(value, its) or ANY for value, its in given]
        kind = reduce(lambda one, other: common_type(one, other) or ANY, each) if each else None
        is_one = len({*each}) <= 1
        casts = [value if is_one or kind is None else Cast(value, kind) for value, _ in given]
        if not all(is_lossless(value, its) for value, (_, its) in zip(casts, given, strict=True)):
            return None
        kinds.append(kind)
    return kinds


def _read_as(
    branch: Branch,
    shown: Sequence[Expression],
    own: Sequence[ColumnType | None],
    stored: Sequence[ColumnType | None],
) -> Branch:
    """The branch, with its rows in its own types, and what the union shows of them."""
    (one,) = branch.selection.blocks
    outputs = [
        value
        if kind is None or kind == its or (its is not None and its.name.is_integer and kind.name.is_integer)
        else Cast(value, kind)
        for value, kind, its in zip(one.outputs, own, stored, strict=True)
    ]
    selection = replace(branch.selection, blocks=(replace(one, outputs=tuple(outputs)),))
    is_as_it_is = all(value == column(i) for i, value in enumerate(shown))
    return replace(branch, selection=selection, shown=() if is_as_it_is else tuple(shown))


def as_shown(
    branch: Branch, part: View, rows: Predicate, relations: Mapping[str, BaseRelation]
) -> tuple[ViewDefinition, Mapping[Predicate, tuple[ColumnType, ...]]]:
    """What a union has for rows of a branch that shows them otherwise, with the types of these by their predicate."""
    atom = Atom(rows, tuple(column(i) for i in range(len(branch.shown))))
    made = ViewDefinition(part.name, part.columns, (block(part.name, 0, [atom], branch.shown),))
    return made, {rows: tuple(kind or ANY for kind in _types(part, relations))}


def _types(part: View, relations: Mapping[str, BaseRelation]) -> tuple[ColumnType | None, ...]:
    groups = part.shown_groups or part
    if isinstance(groups, GroupedView):
        return output_types(groups, relations)
    types = variable_types(part.body, relations)
    return tuple(expression_type(term, types) for term in part.head.terms)
