"""Unions whose rows tell which rule they come from, as views: see `datalog.rewrite.branches`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from datalog.model import Predicate, Program, Rule, ViewDefinition
from datalog.rewrite.branches import Branch, branches, branches_of_queries
from selfmaint.warehouse.base_relations import BaseRelation
from selfmaint.warehouse.cores import projected
from selfmaint.warehouse.definitions import view_of
from selfmaint.warehouse.views import View, as_part_of


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
    queries: Mapping[str, Iterable[Branch]], views: Mapping[str, View]
) -> dict[str, dict[Branch, View]]:
    """By union, the branches as views; without those of which one is not decided, or keeps duplicates."""
    found = {}
    for name, its in queries.items():
        parts = {branch: views[branch.name] for branch in its}
        if all((part.is_decided or part.shown_groups) and not part.is_counted for part in parts.values()):
            found[name] = {
                branch: as_part_of(part, views[name], number, views[name].columns)
                for number, (branch, part) in enumerate(parts.items(), 1)
            }
    return found
