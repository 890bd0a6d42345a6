"""What stored rows show of the base rows that they come from, where they show them in part.

    visits(Id, Fee) :- visit(Id, Patient, Fee), patient(Patient).      some row of `visit` has this Id and this Fee

The canonical database has the rows that views show whole. Of the others a constraint may need no more than is shown:
the columns of a key, or of a foreign key.

Conditions of soundness:

1. A row that is stored of a view that projects or groups comes from a match of its core: a group without core rows is
   not stored. Nothing is taken of a view with one row even over none, nor of a union whose rows do not tell their rule.
2. The match's row of a subgoal has the subgoal's constants, what the stored row shows of its variables, and satisfies
   the core's comparisons and guards on these. It goes only if it is deleted. So where no deleted row has all that, a
   row that has it stays.
3. Several stored rows may come from one base row: that one deleted row has what they show is enough for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from datalog.model import (
    Atom,
    Constant,
    Literal,
    Negation,
    Term,
    Variable,
    Version,
    apply_atom,
    apply_literal,
    variables_of,
)
from selfmaint.warehouse.base_relations import BaseRelation
from selfmaint.warehouse.catalog import Catalog, GroupedView, View
from selfmaint.warehouse.situation import Situation


@dataclass(frozen=True)
class Evidence:
    """A subgoal of a view, and a stored row that shows it in part.

    Attributes:
        view: the view.
        stored: the stored row.
        subgoal: the base row, with the terms of the stored row where that shows them.
        filters: what holds of the two besides.
    """

    view: View
    stored: Atom
    subgoal: Atom
    filters: tuple[Literal, ...]

    def shows(self, columns: Iterable[int]) -> bool:
        """Whether the stored row tells the values of some columns of the base row."""
        terms = (self.subgoal.terms[i] for i in columns)
        return all(isinstance(term, Constant) or term in self.stored.terms for term in terms)

    def stays(self, situation: Situation) -> tuple[Negation, ...]:
        """Condition 2: no deleted row is like the base row."""
        if self.subgoal.predicate.name not in situation.deleted:
            return ()
        return (Negation((self.subgoal.of(Version.DELETED), *self.filters)),)


def evidence(catalog: Catalog, relation: BaseRelation) -> Iterator[Evidence]:
    """What stored rows show of rows of a relation in part: condition 1."""
    for view in catalog.views:
        if not isinstance(view, GroupedView) or view.grouped.is_total or view.grouped.is_hidden:
            continue
        stored = view.grouped.stored(view.core.rule.head.predicate.of(Version.STORED), "Q")
        names = variables_of([stored, *view.core.body])
        apart: dict[Variable, Term] = {v: Variable(f"V{i}") for i, v in enumerate(names)}
        stored = apply_atom(apart, stored)
        filters = [apply_literal(apart, li) for li in view.core.filters]
        for atom in view.core.body:
            subgoal = apply_atom(apart, atom)
            bound = {*stored.terms, *subgoal.terms}
            if atom.predicate.name == relation.name and not set(variables_of([subgoal])) <= set(stored.terms):
                its = tuple(li for li in filters if bound.issuperset(variables_of([li])))
                yield Evidence(view, stored, subgoal, its)
