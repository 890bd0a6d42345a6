"""What of a warehouse one search looks at: the part that hangs together, without what stored aggregates say.

Conditions of exactness:

1. A part has every view over its relations, and every relation that these reference or that references them. So a
   database satisfies the constraints iff each part of it does, and the contents of a part's views say nothing of
   the others: the databases that explain everything known are all combinations of those that explain each part.
2. Of a view of which it is not even known what it reads, nothing is known in any part: it is in all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from datalog.graphs import components
from datalog.model import Declaration, OpaqueView, Program, Rule, TextQuery
from selfmaint.warehouse.catalog import BaseRelation, Catalog, GroupedView, View, reads


def parts(catalog: Catalog) -> tuple[Catalog, ...]:
    """The parts of a warehouse, each a warehouse of its own, in the order of their first views."""
    known = reads(catalog)
    unknown = [view for view in catalog.views if _is_unknown(view)]
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
            summands={view.name: its for view in views if (its := catalog.summands.get(view.name))},
        )
        for number, views in found.items()
    )


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


def _is_unknown(view: View) -> bool:
    """Condition 2."""
    return isinstance(view.definition, OpaqueView) and not isinstance(view.definition.query, TextQuery)


def without_aggregates(catalog: Catalog) -> Catalog:
    """The warehouse as the audit's tests see it. Views have the same names and columns.

    The audit looks at the least warehouses in which a rule of the test has a row. They stand for all others because
    no fact is certain there that is not certain in those. Stored aggregates are not like that: a group of one row
    that is known has no other, and a larger warehouse's group has. So they are left out; with less known, "always"
    still is.
    """
    return replace(catalog, views=tuple(_without_aggregates(view) for view in catalog.views))


def _without_aggregates(view: View) -> View:
    if not isinstance(view, GroupedView):
        return view
    block, columns, is_total = view.grouped.block, view.grouped.columns, view.grouped.is_total
    if block.filters:  # a stored group has a row that passes them, which a least warehouse need not have
        block, columns, is_total = replace(block, groups=None), (), True
    silent = replace(view.grouped, block=block, columns=columns, measures=(), is_total=is_total)
    return replace(view, grouped=silent)
