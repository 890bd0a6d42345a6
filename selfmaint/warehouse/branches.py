"""Unions whose rows tell which rule they come from, as views: see `datalog.rewrite.branches`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from datalog.model import Predicate, Program, Rule
from datalog.rewrite.branches import Branch, branches
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
