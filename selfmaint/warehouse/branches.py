"""Unions whose rows tell which rule they come from, as views: see `datalog.rewrite.branches`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from datalog.analysis.expression_types import expression_type
from datalog.model import ColumnType, Predicate, Program, Rule, ViewDefinition
from datalog.rewrite.branches import Branch, branches, branches_of_queries
from selfmaint.warehouse.base_relations import BaseRelation, variable_types
from selfmaint.warehouse.cores import output_types, projected
from selfmaint.warehouse.definitions import view_of
from selfmaint.warehouse.views import GroupedView, View, as_part_of


def told_apart(
    program: Program,
    union: View,
    rules: Sequence[tuple[Rule, Rule]],
    relations: Mapping[str, BaseRelation],
    views: Mapping[str, list[Rule]],
) -> dict[Branch, View]:
    """The branches of a union as views; none if its rows do not tell them apart."""
    found = {}
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
    queries: Mapping[str, Iterable[Branch]], views: Mapping[str, View], relations: Mapping[str, BaseRelation]
) -> dict[str, dict[Branch, View]]:
    """By union, the branches as views.

    None of a union of which one is not decided or keeps duplicates, or whose columns have other types in one than in
    another: they are stored as one type for all.
    """
    found = {}
    for name, its in queries.items():
        parts = {branch: views[branch.name] for branch in its}
        are_decided = all(
            (part.is_decided or part.shown_groups) and not part.is_counted for part in parts.values()
        )
        if are_decided and _are_of_like_types([_types(part, relations) for part in parts.values()]):
            found[name] = {
                branch: as_part_of(part, views[name], number, views[name].columns)
                for number, (branch, part) in enumerate(parts.items(), 1)
            }
    return found


def _types(part: View, relations: Mapping[str, BaseRelation]) -> tuple[ColumnType | None, ...]:
    groups = part.shown_groups or part
    if isinstance(groups, GroupedView):
        return output_types(groups, relations)
    types = variable_types(part.body, relations)
    return tuple(expression_type(term, types) for term in part.head.terms)


def _are_of_like_types(rows: Sequence[tuple[ColumnType | None, ...]]) -> bool:
    """Whether each column has one type in all queries, or whole numbers in all."""
    return all(
        None not in column
        and (len({*column}) == 1 or all(one is not None and one.name.is_integer for one in column))
        for column in zip(*rows, strict=True)
    )
