"""Views over relations of their own (`own_relations.py`), and what other views then say of these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING

from datalog.copies import replace
from datalog.model import Atom, Constant, Variable, variables_of
from selfmaint.warehouse.base_relations import BaseRelation, certain_variables
from selfmaint.warehouse.cores import projected
from selfmaint.warehouse.views import GroupedView, Limitation, Outside, View

if TYPE_CHECKING:
    from selfmaint.warehouse.own_relations import OwnRelation


def over(view: GroupedView, body: tuple[Atom, ...], relations: Mapping[str, BaseRelation]) -> View:
    """The view with a core of another body."""
    left = frozenset(variables_of(body))
    certain = certain_variables(body, relations)
    if view.limitation is not None and view.limitation.kind is Outside.PROJECTION:
        own = {f.name: getattr(view, f.name) for f in fields(View)}
        plain = replace(View(**own), body=body, not_null=view.not_null & left, certain=certain)
        if left.issubset(view.head.terms):
            return replace(plain, limitation=None)
        return projected(plain, relations)
    core = view.core
    rule = _as_rule(view, body, not_null=core.not_null & left, certain=certain)
    if rule is not None:
        return rule if rule.limitation is None else projected(rule, relations)
    places = [i for i, term in enumerate(core.head.terms) if isinstance(term, Constant) or term in left]
    written, head = (replace(h, terms=tuple(h.terms[i] for i in places)) for h in (core.rule.head, core.head))
    less = replace(core, head=head, body=body, not_null=core.not_null & left, certain=certain)
    less = replace(less, rule=replace(core.rule, head=written))
    terms = {v: t for v, t in view.grouped.terms.items() if isinstance(t, Constant) or t in left}
    return replace(view, core=less, grouped=replace(view.grouped, terms=terms))


def _as_rule(
    view: GroupedView, body: tuple[Atom, ...], *, not_null: frozenset[Variable], certain: frozenset[Variable]
) -> View | None:
    """A view that removes duplicates, of which nothing is computed or asked any more, as one of a rule."""
    grouped, limitation = view.grouped, view.limitation
    block = grouped.block
    is_plain = all(isinstance(output, Variable) for output in block.outputs) and not block.filters
    if limitation is None or limitation.kind is not Outside.COMPUTED or view.is_counted:
        return None
    if not is_plain or grouped.measures or block.having:
        return None
    head = Atom(view.predicate, tuple(grouped.terms[o] for o in block.outputs if isinstance(o, Variable)))
    own = {f.name: getattr(view, f.name) for f in fields(View)}
    shows_all = {*variables_of(body)}.issubset(head.terms)
    found = replace(
        View(**own),
        head=head,
        rule=replace(view.rule, head=head),
        body=body,
        comparisons=view.core.comparisons,
        not_null=not_null,
        certain=certain,
        grouping=None,
    )
    return replace(found, limitation=None if shows_all else Limitation(Outside.PROJECTION, limitation.text))


def with_implied(view: View, made: Sequence[OwnRelation]) -> View:
    """Another view, with what its body implies of the relations."""

    def extended(one: View) -> View:
        never_null = one.not_null | one.certain
        more = (atom for own in made for atom in own.implied(one.body, never_null))
        return replace(one, body=tuple(dict.fromkeys([*one.body, *more])))

    if isinstance(view, GroupedView):
        view = replace(view, core=extended(view.core))
    is_one_rule = view.limitation is None or view.limitation.kind is Outside.PROJECTION
    return extended(view) if is_one_rule and view.body else view
