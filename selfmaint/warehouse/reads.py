"""What views read: the relations and views that their definitions name, and those that these name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from datalog.model import Atom, Literal, Negation, OpaqueView, TextQuery, ViewDefinition

if TYPE_CHECKING:
    from selfmaint.warehouse.catalog import Catalog
    from selfmaint.warehouse.views import View


def reads(catalog: Catalog) -> Mapping[str, frozenset[str]]:
    """For each view the relations and views that its definition names, and those that these name."""
    rules: dict[str, set[str]] = {}
    for rule in catalog.program.rules:
        rules.setdefault(rule.head.predicate.name, set()).update(_names(rule.body))
    direct = {view.name: _direct(view) | rules.get(view.name, set()) for view in catalog.views}
    for name, parts in catalog.unions.items():
        direct[name] = direct.get(name, set()).union(*map(_direct, parts.values()))
    found: dict[str, frozenset[str]] = {}
    for name in direct:
        below, waiting = set[str](), [name]
        while waiting:
            more = direct.get(waiting.pop(), set()) - below
            below |= more
            waiting.extend(more)
        found[name] = frozenset(below)
    return found


def is_unknown(view: View) -> bool:
    """Whether it is not known what a view reads."""
    return isinstance(view.definition, OpaqueView) and not isinstance(view.definition.query, TextQuery)


def _direct(view: View) -> set[str]:
    definition, names = view.definition, {atom.predicate.name for atom in view.body} | _names(view.rule.body)
    if isinstance(definition, ViewDefinition):
        names |= {predicate.name for predicate in definition.reads}
    if isinstance(definition, OpaqueView) and isinstance(definition.query, TextQuery):
        names |= set(definition.query.relations)
    return names


def _names(body: tuple[Literal, ...]) -> set[str]:
    found = {li.predicate.name for li in body if isinstance(li, Atom)}
    return found.union(*(_names(li.body) for li in body if isinstance(li, Negation)))
