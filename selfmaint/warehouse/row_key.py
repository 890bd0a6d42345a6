"""By which columns a view's stored rows are told apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from datalog.model import ANY, Atom, ColumnType, Term, Variable
from selfmaint.warehouse.base_relations import BaseRelation, determined_terms, variable_types
from selfmaint.warehouse.views import GroupedView, Outside, View


def row_key(view: View, relations: Mapping[str, BaseRelation]) -> tuple[int, ...]:
    """The positions of columns in which every two rows of a view differ, as few as the keys tell.

        order_lines(O, L, D) :- lineitem(O, L), orders(O, D).       O, L: a key of lineitem, and O is one of orders
        totals(C, N, count(*)) :- orders(O, C), customer(C, N).     C: a key of customer
        SELECT o, upper(s) AS s FROM orders                         o: a key of orders

    A row to delete is found by them. Texts, and columns that stand later, are left out before others.

    Returns:
        The positions in ascending order; all columns if the keys tell nothing, or rows stand more than once.
    """
    every = tuple(range(len(view.stored_columns)))
    if isinstance(view, GroupedView) and not view.is_counted:
        grouped = view.grouped
        terms = grouped.group_terms
        if grouped.measures:
            return _fewest(sorted(grouped.columns), terms, view.core.body, relations) or every
        if grouped.is_single:  # the plain columns determine those that are computed
            return _fewest(sorted(terms), terms, view.core.body, relations) or every
    is_one_rule = view.limitation is None or view.limitation.kind is Outside.PROJECTION
    if not is_one_rule or view.is_counted or view.unchanging:
        return every
    return _fewest(every, dict(enumerate(view.head.terms)), view.body, relations) or every


def _fewest(
    columns: Sequence[int],
    terms: Mapping[int, Term],
    body: Sequence[Atom],
    relations: Mapping[str, BaseRelation],
) -> tuple[int, ...]:
    """Some columns without those that others determine; `terms` are what some of them hold of a body."""
    types, kept = variable_types(body, relations), list(columns)
    known = {i: terms[i] for i in columns if i in terms}
    for place in sorted(known, key=lambda i: (_is_integer(known[i], types), -i)):
        fewer = [known[i] for i in kept if i != place and i in known]
        if set(known.values()) <= determined_terms(fewer, body, relations):
            kept.remove(place)
    return tuple(kept)


def _is_integer(term: Term, types: Mapping[Variable, ColumnType]) -> bool:
    return isinstance(term, Variable) and types.get(term, ANY).name.is_integer
