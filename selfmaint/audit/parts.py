"""The parts of a warehouse that share nothing, each a warehouse of its own.

Conditions of exactness:

1. A part has every view over its relations, and every relation that these reference or that references them. So a
   database satisfies the constraints iff each part of it does, and the contents of a part's views say nothing of
   the others: the databases that explain everything known are all combinations of those that explain each part.
2. Of a view of which it is not even known what it reads, nothing is known in any part: it is in all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from datalog.copies import replace
from datalog.graphs import components
from datalog.model import Declaration, Program, Rule
from selfmaint.warehouse.catalog import BaseRelation, Catalog, GroupedView, View
from selfmaint.warehouse.reads import is_unknown, reads


def parts(catalog: Catalog) -> tuple[Catalog, ...]:
    """The parts of a warehouse, each a warehouse of its own, in the order of their first views."""
    known = reads(catalog)
    unknown = [view for view in catalog.views if is_unknown(view)]  # condition 2
    views = [view.name for view in catalog.views if view not in unknown]
    edges = [(view, name) for view in views for name in known[view]]
    edges += [(r.name, reference.target) for r in catalog.relations.values() for reference in r.references]
    edges += [(part.name, name) for name, its in catalog.unions.items() for part in its.values()]
    together = components([*views, *catalog.relations], edges)
    part_of = {name: i for i, names in enumerate(together) for name in names}
    found: dict[int, list[View]] = {}
    for view in catalog.views:
        if view not in unknown:
            found.setdefault(part_of[view.name], []).append(view)
    if len(found) < 2:  # noqa: PLR2004 - nothing to take apart
        return (catalog,)
    relations: dict[int, dict[str, BaseRelation]] = {number: {} for number in found}
    for name, relation in catalog.relations.items():
        relations.get(part_of[name], {})[name] = relation
    programs = _programs(catalog, {name: part_of[name] for name in part_of if part_of[name] in found})
    return tuple(
        replace(
            catalog,
            program=programs[number],
            views=tuple(sorted((*views, *unknown), key=catalog.views.index)) if unknown else tuple(views),
            relations=relations[number],
            summands=_of(views, catalog.summands),
            grouped_summands=_of(views, catalog.grouped_summands),
        )
        for number, views in found.items()
    )


def _of(
    views: Iterable[View], sums: Mapping[str, tuple[GroupedView, ...]]
) -> dict[str, tuple[GroupedView, ...]]:
    """The summands of some views."""
    return {view.name: sums[view.name] for view in views if view.name in sums}


def _programs(catalog: Catalog, part_of: Mapping[str, int]) -> Mapping[int, Program]:
    """The rules and declarations of each part."""
    rules: dict[int, list[Rule]] = {number: [] for number in part_of.values()}
    declarations: dict[int, list[Declaration]] = {number: [] for number in rules}
    for rule in catalog.program.rules:
        if rule.head.predicate.name in part_of:  # else of a view that was left out
            rules[part_of[rule.head.predicate.name]].append(rule)
    for declaration in catalog.program.declarations:
        if declaration.name in part_of:
            declarations[part_of[declaration.name]].append(declaration)
    return {number: Program(tuple(rules[number]), tuple(declarations[number])) for number in rules}
