"""Finer views: views whose rows stand for matches of some subgoals of another view's core.

    by_customer(C, count(*), sum(A)) :- sale(I, C, A).                  finer, for `sale` of
    by_region(R, count(*), sum(A)) :- sale(I, C, A), cust(C, R).

Conditions of soundness:

1. The finer view's core is those subgoals, up to names: a one-to-one mapping of its variables to variables. Subgoals
   do not count of which foreign keys say that each match has one row: what it groups by of these its other groups
   determine.
2. Its rows are all matches, or all groups of matches: what it tests besides, the other view tests too.
3. What the other subgoals join with, and what is tested of the matches besides, are columns of the finer view.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from datalog.model import Atom, Constant, Term, Variable, apply_literal, variables_of
from selfmaint.warehouse.base_relations import BaseRelation, determined_terms
from selfmaint.warehouse.catalog import Catalog
from selfmaint.warehouse.definitions import without_references
from selfmaint.warehouse.views import GroupedView, View

EMBEDDINGS = 64
"""At most so many ways of finding one view's body in another one's are looked at."""


@dataclass(frozen=True)
class Finer:
    """A view whose rows stand for matches of some subgoals of a coarser one's core.

    Attributes:
        view: the finer view: one that groups, or a plain one.
        subgoals: the indices of the subgoals in the coarser core's body.
        images: what the variables of the finer core are in the coarser core.
    """

    view: View
    subgoals: frozenset[int]
    images: Mapping[Variable, Term] = field(hash=False)


def finer_views(catalog: Catalog, coarse: GroupedView) -> tuple[Finer, ...]:
    """The views that are finer than some subgoals of a view that groups; found once."""
    return catalog.once("finer views", coarse, lambda: tuple(_finer_views(catalog, coarse)))


def _finer_views(catalog: Catalog, coarse: GroupedView) -> Iterator[Finer]:
    for view in catalog.views:
        body = view.decided
        if view is coarse or body.limitation is not None or not body.body:
            continue
        if isinstance(view, GroupedView):
            grouped = view.grouped
            if not grouped.tells_absence or len(grouped.group_terms) < len(grouped.columns):
                continue
        body, shown = _needed(view, coarse, catalog.relations)
        for subgoals, images in islice(_embeddings(body.body, coarse.core.body), EMBEDDINGS):
            found = Finer(view, subgoals, images | _named_apart(view, body, coarse))
            if _stands_for(found, body, coarse.core, {images[t] for t in shown if isinstance(t, Variable)}):
                yield found


def _needed(
    view: View, coarse: GroupedView, relations: Mapping[str, BaseRelation]
) -> tuple[View, frozenset[Term]]:
    """The body of a view without subgoals that do not count beside a coarser one's, and what of it its rows show."""
    every = view.decided
    names = {atom.predicate.name for atom in coarse.core.body}
    used = variables_of(atom for atom in every.body if atom.predicate.name in names)
    body = without_references(every, used, relations)
    terms = frozenset[Term](variables_of(body.body))
    if not isinstance(view, GroupedView):
        return body, terms
    groups = frozenset(view.grouped.group_terms.values())
    others = [atom for atom in every.body if atom not in body.body]
    is_told = determined_terms(groups & terms, others, relations).issuperset(groups)
    return (body, groups & terms) if is_told else (every, groups)


def _named_apart(view: View, body: View, coarse: GroupedView) -> dict[Variable, Term]:
    """Names for the variables of subgoals that do not count, which are none of the coarser view's."""
    left = [v for v in variables_of(view.decided.body) if v not in variables_of(body.body)]
    taken, prefix = {v.name for v in variables_of(coarse.core.body)}, "Beside_"
    while any(name.startswith(prefix) for name in taken):
        prefix = f"Beside_{prefix}"
    return {v: Variable(f"{prefix}{v.name}") for v in left}


def _stands_for(found: Finer, body: View, coarse: View, shown: set[Term]) -> bool:
    """Conditions 2 and 3, but for what the coarser view groups by and aggregates."""
    tested = {apply_literal(found.images, li) for li in body.filters}
    if not tested <= set(coarse.filters):
        return False
    mine = set(variables_of(coarse.body[i] for i in found.subgoals))
    others = [a for i, a in enumerate(coarse.body) if i not in found.subgoals]
    rest = variables_of([*others, *(li for li in coarse.filters if li not in tested)])
    return mine.intersection(rest) <= shown


def _embeddings(
    inner: Sequence[Atom], outer: Sequence[Atom]
) -> Iterator[tuple[frozenset[int], dict[Variable, Term]]]:
    """Condition 1: the ways of finding a body in another one, each set of subgoals once."""
    seen: set[frozenset[int]] = set()

    def extend(
        at: int, used: tuple[int, ...], images: dict[Variable, Term]
    ) -> Iterator[tuple[frozenset[int], dict[Variable, Term]]]:
        if at == len(inner):
            if frozenset(used) not in seen:
                seen.add(frozenset(used))
                yield frozenset(used), images
            return
        for index, atom in enumerate(outer):
            more = None if index in used else _extended(images, inner[at], atom)
            if more is not None:
                yield from extend(at + 1, (*used, index), more)

    return extend(0, (), {})


def _extended(images: dict[Variable, Term], inner: Atom, outer: Atom) -> dict[Variable, Term] | None:
    if inner.predicate != outer.predicate:
        return None
    more = dict(images)
    for term, value in zip(inner.terms, outer.terms, strict=True):
        if isinstance(term, Constant) or isinstance(value, Constant):
            if repr(term) != repr(value):
                return None
        elif more.setdefault(term, value) != value:
            return None
    return more if len(set(more.values())) == len(more) else None
