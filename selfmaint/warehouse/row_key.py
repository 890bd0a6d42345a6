"""By which columns a view's stored rows are told apart, and the rows of a base relation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from datalog.model import ANY, Atom, Term, Variable
from selfmaint.warehouse.base_relations import BaseRelation, determined_terms, variable_types
from selfmaint.warehouse.catalog import Catalog
from selfmaint.warehouse.views import GroupedView, Outside, View


def row_keys(catalog: Catalog) -> Mapping[str, Sequence[tuple[str, ...]]]:
    """For each base relation and view, sets of columns in each of which its rows differ, as far as that is told."""
    relations = catalog.relations
    found = {
        name: [tuple(its.columns[i] for i in key) for key in its.keys] for name, its in relations.items()
    }
    for view in catalog.views:
        key = row_key(view, relations)
        terms = view.grouped.group_terms if isinstance(view, GroupedView) and not view.is_counted else {}
        if isinstance(view, GroupedView) and set(key) <= set(terms):
            key = _fewer(key, terms, view.core.body, relations)
        elif len(key) == len(view.stored_columns):  # perhaps keys tell nothing
            continue
        found[view.name] = [tuple(view.stored_columns[i] for i in key)]
    return found


def _fewer(
    key: Sequence[int],
    terms: Mapping[int, Term],
    body: Sequence[Atom],
    relations: Mapping[str, BaseRelation],
) -> tuple[int, ...]:
    """Some columns without those that the others determine, the last first."""
    kept = list(key)
    for place in reversed(key):
        fewer = [terms[i] for i in kept if i != place]
        if {terms[i] for i in key} <= determined_terms(fewer, body, relations):
            kept.remove(place)
    return tuple(kept)


def row_key(view: View, relations: Mapping[str, BaseRelation]) -> tuple[int, ...]:
    """The positions of columns in which every two rows of a view differ, as few as the keys tell.

        order_lines(O, L, D) :- lineitem(O, L), orders(O, D).       O, L: a key of lineitem, and O is one of orders

    A row to delete is found by them. Texts, and columns that stand later, are left out before others.

    Returns:
        The positions in ascending order; all columns if the keys tell nothing, or rows stand more than once.
    """
    every = tuple(range(len(view.stored_columns)))
    if isinstance(view, GroupedView) and view.grouped.measures and not view.is_counted:
        return tuple(sorted(view.grouped.columns)) or every
    terms = view.head.terms
    is_one_rule = view.limitation is None or view.limitation.kind is Outside.PROJECTION
    if not is_one_rule or view.is_counted or view.unchanging:
        return every
    types = variable_types(view.body, relations)
    kept = list(every)
    numbers = [isinstance(term, Variable) and types.get(term, ANY).name.is_integer for term in terms]
    for place in sorted(every, key=lambda i: (numbers[i], -i)):
        fewer = [terms[i] for i in kept if i != place]
        if set(terms) <= determined_terms(fewer, view.body, relations):
            kept.remove(place)
    return tuple(kept) or every
