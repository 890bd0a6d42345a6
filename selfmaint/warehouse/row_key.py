"""By which columns a view's stored rows are told apart."""

from __future__ import annotations

from collections.abc import Mapping

from datalog.model import ANY, Variable
from selfmaint.warehouse.base_relations import BaseRelation, determined_terms, variable_types
from selfmaint.warehouse.views import GroupedView, Outside, View


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
