"""Groups that stay although what their rows reference is deleted: no database explains such an update.

    by_customer(C, count(*)) :- sale(I, C, A).      k has 2 sales; one of them is deleted, and so is the customer k

Conditions of soundness:

1. A group that is there after the update has a core row then, and so a row of each subgoal with the values that it
   shows; but for the one group of a view that aggregates all rows.
2. Foreign keys hold after the update, but for references with a null.
3. The update is effective: a deleted row is gone, and only an inserted one can have its key.
"""

from __future__ import annotations

from collections.abc import Iterator

from datalog.model import (
    Atom,
    Constant,
    Literal,
    Negation,
    NullTest,
    Predicate,
    Rule,
    Term,
    Variable,
    Version,
)
from selfmaint.warehouse.catalog import Catalog, GroupedView
from selfmaint.warehouse.situation import Situation


def left_references(
    catalog: Catalog, situation: Situation, view: GroupedView, new: Predicate, goal: Predicate
) -> Iterator[tuple[str, Rule]]:
    """The new rows of a view that reference what is deleted: what is wrong, and a rule.

    Args:
        catalog: the warehouse's schema.
        situation: with an effective update.
        view: a view that groups, stored.
        new: the predicate of its new rows.
        goal: that of the rules' heads, which have the columns of the view.
    """
    row, shown = view.grouped.stored(new, "Q"), view.grouped.group_terms.values()
    for atom in view.core.body if not view.grouped.is_total else ():
        relation = catalog.relations[atom.predicate.name]
        for reference in relation.references:
            target, key = catalog.relations[reference.target], reference.key_of(atom)
            plain = all(isinstance(term, Constant) or term in shown for term in key)
            if not plain or target.name not in situation.deleted:
                continue
            terms: list[Term] = [Variable(f"Q_{i}") for i in range(target.arity)]
            for column, term in zip(reference.target_columns, key, strict=True):
                terms[column] = term
            body: list[Literal] = [row, *(NullTest(t) for t in key if isinstance(t, Variable))]
            body.append(Atom(Predicate(target.name, Version.DELETED), tuple(terms)))
            if target.name in situation.inserted:
                again = (t if t in key else Variable(f"Q_again_{i}") for i, t in enumerate(terms))
                body.append(Negation((Atom(Predicate(target.name, Version.INSERTED), tuple(again)),)))
            message = f"rows of `{target.name}` are deleted that rows of `{relation.name}` still reference"
            yield message, Rule(Atom(goal, row.terms), tuple(body))
