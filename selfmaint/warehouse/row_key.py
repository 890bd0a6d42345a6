"""The columns that tell a view's rows apart: what a row to delete is found by.

order_lines(O, L, D) :- lineitem(O, L), orders(O, D).       O, L: a key of lineitem, and O is one of orders
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from datalog.model import Atom, ColumnType, Constant, Term, TypeName, Variable
from selfmaint.warehouse.base_relations import BaseRelation, variable_types
from selfmaint.warehouse.views import GroupedView, Outside, View

NUMBERS = {ColumnType(name) for name in (TypeName.TINYINT, TypeName.SMALLINT, TypeName.INT, TypeName.BIGINT)}
"""What is compared fastest."""


def row_key(view: View, relations: Mapping[str, BaseRelation]) -> tuple[int, ...]:
    """The positions of columns in which every two rows of a view differ, as few as the keys tell.

    Texts, and columns that stand later, are left out before others.

    Args:
        view: the view.
        relations: the base relations, by name.

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
    numbers = [isinstance(term, Variable) and types.get(term) in NUMBERS for term in terms]
    for place in sorted(every, key=lambda i: (numbers[i], -i)):
        fewer = [terms[i] for i in kept if i != place]
        if set(terms) <= _determined(fewer, view.body, relations):
            kept.remove(place)
    return tuple(kept) or every


def _determined(
    given: Iterable[Term], body: Iterable[Atom], relations: Mapping[str, BaseRelation]
) -> set[Term]:
    """The terms that have one value each where some have, by the keys: two matches agree on the row of such an atom."""
    found, waiting = set(given), list(body)
    found |= {term for atom in waiting for term in atom.terms if isinstance(term, Constant)}
    while True:
        its = [
            atom
            for atom in waiting
            if atom.predicate.name in relations
            and any(all(atom.terms[i] in found for i in key) for key in relations[atom.predicate.name].keys)
        ]
        if not its:
            return found
        found.update(term for atom in its for term in atom.terms)
        waiting = [atom for atom in waiting if atom not in its]
