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
4. A view has a row for each row of a relation if each match of its body gives it one, and its body is a subgoal of that
   relation with distinct variables, beside subgoals that have their row by foreign keys. So a value that the relation
   has in a column that the view shows is in the view, and what is not there the relation did not have.
5. A row of a union whose rules do not all tell their rows is of the one rule that fits it, where the others have
   another constant in a column, or null where this row has a value, or a value where this rule has null.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from datalog.copies import replace
from datalog.model import (
    Atom,
    Constant,
    Literal,
    Negation,
    NullTest,
    Term,
    Variable,
    Version,
    ViewDefinition,
    apply_atom,
    apply_literal,
    value_kind,
    variables_of,
)
from datalog.rewrite.branches import as_double
from selfmaint.warehouse.base_relations import BaseRelation, certain_variables
from selfmaint.warehouse.catalog import Catalog, GroupedView, Outside, View
from selfmaint.warehouse.constraints import given_subgoal
from selfmaint.warehouse.situation import Situation


class Evidence(Struct, frozen=True):
    """A subgoal of a view, and a stored row that shows it in part.

    Attributes:
        view: the view.
        stored: the stored row.
        subgoal: the base row, with the terms of the stored row where that shows them.
        filters: what holds of the two besides.
        index: of the subgoal in the core's body.
        body: the core's, in these terms.
        tests: what holds of the body.
        fits: what tells that the stored row is of this body, if not all of the view's are.
    """

    view: GroupedView
    stored: Atom
    subgoal: Atom
    filters: tuple[Literal, ...]
    index: int
    body: tuple[Atom, ...]
    tests: tuple[Literal, ...]
    fits: tuple[NullTest, ...] = ()

    @property
    def given(self) -> tuple[Literal, ...]:
        """The stored row, and what tells that it is of this subgoal."""
        return self.stored, *self.fits

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
        for shown in _shown(view, stored, relation):
            if not set(variables_of([shown.subgoal])) <= set(shown.stored.terms):
                yield shown


def evidence_of_summands(catalog: Catalog, relation: BaseRelation) -> Iterator[Evidence]:
    """What stored rows of unions show of rows of a relation, in part or whole: condition 5."""
    for union, part in summands(catalog):
        definition, every = union.definition, catalog.summands[union.name]
        blocks = definition.blocks if isinstance(definition, ViewDefinition) else ()
        if not any(one.is_constant for one in blocks):
            fits = _fits(part, [other for other in every if other.name != part.name])
            if fits is not None:
                yield from _shown(part, Atom(union.predicate, _outputs(part)), relation, fits)


def summands(catalog: Catalog) -> Iterator[tuple[View, GroupedView]]:
    """The unions whose rules do not all tell their rows, each with its rules, said to be these in messages."""
    for name, parts in catalog.summands.items():
        union = catalog.view(name)
        for part in parts:
            yield union, replace(part, rule_of=(name, int(part.name.rpartition("#")[2])))


def derived_by(union: View, part: GroupedView) -> tuple[tuple[Atom, ...], tuple[Literal, ...], Atom] | None:
    """As `derived`, of a union and one of its rules."""
    block = part.grouped.block
    row = Atom(union.predicate, _outputs(part))
    return None if block.filters or block.having else (part.core.body, part.core.filters, row)


def _outputs(part: GroupedView) -> tuple[Term, ...]:
    """A row of a summand, as the union stores it: the core's terms and constants, new variables elsewhere."""
    terms = part.grouped.stored(part.predicate, "Q").terms[: len(part.stored_columns)]
    outputs = part.grouped.block.outputs
    return tuple(its if isinstance(its, Constant) else t for its, t in zip(outputs, terms, strict=False))


def _fits(part: GroupedView, others: Iterable[GroupedView]) -> tuple[NullTest, ...] | None:
    """What tells that a row is of a rule, and of none of some others; None if nothing does."""
    tests = dict[NullTest, None]()
    for other in others:
        pairs = list(zip(_outputs(part), _outputs(other), strict=True))
        known = other.core.not_null | other.core.certain
        valued = [mine for mine, its in pairs if its == Constant(None) and isinstance(mine, Variable)]
        if any(_differ(mine, its) or (mine == Constant(None) and its in known) for mine, its in pairs):
            continue
        if not valued:
            return None
        tests[NullTest(valued[0])] = None
    return tuple(tests)


def _differ(one: Term, other: Term) -> bool:
    """Whether two terms are constants that are never equal."""
    if not (isinstance(one, Constant) and isinstance(other, Constant)):
        return False
    kinds = value_kind(one.value), value_kind(other.value)
    return as_double(one) != as_double(other) and (kinds[0] == kinds[1] or "null" in kinds)


def _shown(
    view: GroupedView, stored: Atom, relation: BaseRelation, fits: Sequence[NullTest] = ()
) -> Iterator[Evidence]:
    """What a stored row of a view shows of rows of a relation."""
    names = variables_of([stored, *view.core.body])
    apart: dict[Variable, Term] = {v: Variable(f"V{i}") for i, v in enumerate(names)}
    stored = apply_atom(apart, stored)
    filters = tuple(apply_literal(apart, li) for li in view.core.filters)
    body = tuple(apply_atom(apart, atom) for atom in view.core.body)
    tests = tuple(li for one in fits if isinstance(li := apply_literal(apart, one), NullTest))
    for index, subgoal in enumerate(body):
        bound = {*stored.terms, *subgoal.terms}
        if subgoal.predicate.name == relation.name:
            its = tuple(li for li in filters if bound.issuperset(variables_of([li])))
            yield Evidence(view, stored, subgoal, its, index, body, filters, tests)


def derived(view: View) -> tuple[tuple[Atom, ...], tuple[Literal, ...], Atom] | None:
    """A body each match of which gives a view a row, the body's tests, and that row; None where it may not."""
    if isinstance(view, GroupedView) and not of_subgoals_alone(view):
        if view.is_counted or not view.grouped.tells_absence:
            return None
        return view.core.body, view.core.filters, view.grouped.stored(view.predicate, "any_")
    return (view.body, view.filters, view.head) if of_subgoals_alone(view) else None


def of_subgoals_alone(view: View) -> bool:
    """Whether the view's rows are those of its subgoals and guards: then more facts never take a row away."""
    if view.unchanging:
        return False
    return view.limitation is None or view.limitation.kind is Outside.PROJECTION


def without_given(
    body: Sequence[Atom],
    atom: Atom,
    filters: Sequence[Literal],
    relations: Mapping[str, BaseRelation],
    not_null: frozenset[Variable],
) -> list[Atom]:
    """A body without the subgoals beside one that foreign keys give a row, and nothing used of it.

    A column that may be null in a table, and not in a match, is used: by that test.
    """
    tested = (
        term
        for one in body
        for i, term in enumerate(one.terms)
        if i in relations[one.predicate.name].nullable and term in not_null
    )
    left, used = list(body), {*variables_of([atom, *filters]), *tested}
    while (given := given_subgoal(left, used, relations, not_null)) not in (None, atom):
        left.remove(given)
    return left


class Listing(Struct, frozen=True):
    """A view that has a row for each row of a relation: condition 4.

    Attributes:
        head: the view's row for one of the relation.
        row: that row.
    """

    head: Atom
    row: Atom

    def lacks(self, columns: Sequence[int], values: Sequence[Term]) -> Negation:
        """That the relation did not have these values in some columns that the view shows."""
        at: dict[Term, Term] = dict(zip((self.row.terms[i] for i in columns), values, strict=True))
        terms = (
            at.get(t, t if isinstance(t, Constant) else Variable(f"its_{i}"))
            for i, t in enumerate(self.head.terms)
        )
        return Negation((Atom(self.head.predicate, tuple(terms)),))


def listing(catalog: Catalog, relation: BaseRelation, columns: Sequence[int]) -> Listing | None:
    """A view that has a row for each row of a relation and shows these columns, or None."""
    for view in catalog.views:
        if view.always_empty or (its := derived(view)) is None:
            continue
        body, filters, head = its
        not_null = view.decided.not_null | view.decided.certain
        for row in body:
            if row.predicate.name != relation.name or len(set(variables_of([row]))) < relation.arity:
                continue
            left = without_given(body, row, filters, catalog.relations, not_null)
            may_be_null = not_null - certain_variables(left, catalog.relations)
            if (
                left == [row]
                and not filters
                and may_be_null.isdisjoint(row.terms)
                and all(row.terms[i] in head.terms for i in columns)
            ):
                return Listing(head, row)
    return None
