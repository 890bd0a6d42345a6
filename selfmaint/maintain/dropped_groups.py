"""Groups that lose all their core rows, whatever these are: those that show the key of a deleted row.

    rent(Id, Price * Seats) :- subscription(Id, Plan, Seats), plan(Plan, Price).
    subscription@deleted(7, 'basic', 3)         the row of 7 goes, and what the plan costs need not be known

Conditions of soundness:

1. The update is effective: the deleted row was there, and no other has its key. So all core rows of a group that shows
   the key use it, and are gone.
2. The key's columns are constants or columns of the group as they are, never null, and no doubles.
3. What such a group holds after the update are core rows with inserted facts: those gained.
4. The view is stored. No finer view stands for the core rows that change (`core_rows.py`), and the view has no row
   without core rows.
"""

from __future__ import annotations

from collections.abc import Mapping

from datalog.model import Atom, Constant, Term, Variable, Version
from selfmaint.maintain.core_rows import for_changes
from selfmaint.warehouse.catalog import Catalog, GroupedView
from selfmaint.warehouse.situation import Situation


def dropping(catalog: Catalog, situation: Situation, view: GroupedView) -> Mapping[int, Atom]:
    """For each subgoal whose key the groups show and that loses facts: the deleted fact, told by its key alone.

    There is none if the update may not be effective.
    """
    if not situation.effective or view.grouped.is_total or view.grouped.is_hidden:
        return {}
    if for_changes(catalog, situation, view) is not None:
        return {}
    shown = frozenset(view.grouped.group_terms.values())
    found: dict[int, Atom] = {}
    for index, atom in enumerate(view.core.body):
        relation = catalog.relations[atom.predicate.name]
        if relation.name not in situation.deleted:
            continue
        for key in relation.keys:
            terms = [atom.terms[i] for i in key]
            plain = not any(relation.types[i].name.is_floating for i in key)
            if plain and all(isinstance(t, Constant) or t in shown for t in terms):
                found[index] = _told_by(atom, frozenset(key), index)
                break
    return found


def _told_by(atom: Atom, key: frozenset[int], index: int) -> Atom:
    terms: list[Term] = [
        term if i in key else Variable(f"Dropped{index}_{i}") for i, term in enumerate(atom.terms)
    ]
    return Atom(atom.predicate.of(Version.DELETED), tuple(terms))
