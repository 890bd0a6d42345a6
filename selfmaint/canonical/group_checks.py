"""Checks that the stored rows of views that project or group can be: some database gives each of them.

    v(customer, n) groups orders by customer        a row (7, 0), or two rows of 7
    p(id, customer) projects orders, id its key     rows (1, 7) and (1, 8)

A count below one is looked for in every run: files say of most of their parts that there is none. The others are part
of the full check.
"""

from __future__ import annotations

from collections.abc import Iterator

from datalog.model import (
    AggregateFunction,
    Atom,
    Comparison,
    Constant,
    Literal,
    Negation,
    NullTest,
    Rule,
    Term,
    Variable,
    Version,
)
from selfmaint.canonical.constraint_checks import Check
from selfmaint.errors import Code
from selfmaint.warehouse.base_relations import determined_terms
from selfmaint.warehouse.catalog import Catalog, GroupedView

_HINT = "recompute the view, or check that the contents belong to it, and its columns' order"


def group_checks(view: GroupedView, catalog: Catalog, *, full: bool) -> Iterator[Check]:
    """The checks of one view's stored rows."""
    row = tuple(Variable(f"X{i}") for i in range(view.head.arity))
    wrong = list(_counts(view, row))
    if wrong:
        yield _check(view, row, "groups that count less than one row, or nothing", wrong)
    if full:
        twins = list(_twins(view, catalog, row))
        if twins:
            yield _check(view, row, "rows that differ where groups or keys say that they are one", twins)


def _check(
    view: GroupedView, row: tuple[Variable, ...], what: str, bodies: list[tuple[Literal, ...]]
) -> Check:
    goal, stored = Atom(view.predicate.of(Version.PROBLEM), row), Atom(view.predicate, row)
    rules = tuple(Rule(goal, (stored, *body)) for body in bodies)
    message = f"{view.shown} stores {what}: no database explains them"
    return Check(Code.NOT_EXPLAINED, view.name, message, _HINT, view.columns, rules)


def _counts(view: GroupedView, row: tuple[Variable, ...]) -> Iterator[tuple[Literal, ...]]:
    """Numbers of rows that no group has; the copies of a row are counted when they are read."""
    if view.is_counted:
        return
    for measure in view.grouped.measures:
        if measure.aggregate.function is not AggregateFunction.COUNT:
            continue
        is_of_all = measure.aggregate.operand is None and not view.grouped.is_total
        number = row[measure.column]
        yield (NullTest(number, negated=False),)
        yield (Comparison("<", number, Constant(1 if is_of_all else 0)),)


def _twins(view: GroupedView, catalog: Catalog, row: tuple[Variable, ...]) -> Iterator[tuple[Literal, ...]]:
    """Two rows of one group; and of one key, with different values of what it determines."""
    own = {measure.column for measure in view.grouped.measures}
    if own and not view.is_counted:
        yield from _differing(view, row, sorted(set(range(len(row))) - own), sorted(own))
    column: dict[Term, int] = {}
    for place, term in view.grouped.group_terms.items():
        column.setdefault(term, place)
    for atom in view.core.body:
        relation = catalog.relations[atom.predicate.name]
        for key in relation.keys:
            terms = [atom.terms[i] for i in key if not isinstance(atom.terms[i], Constant)]
            if all(term in column for term in terms):
                told = determined_terms(terms, view.core.body, catalog.relations)
                others = [place for term, place in column.items() if term in told and term not in terms]
                yield from _differing(view, row, [column[term] for term in terms], others)


def _differing(
    view: GroupedView, row: tuple[Variable, ...], same: list[int], others: list[int]
) -> Iterator[tuple[Literal, ...]]:
    """Another row that is the same in some columns, and differs in one of others."""
    twin = Atom(view.predicate, tuple(v if i in same else Variable(f"Y{i}") for i, v in enumerate(row)))
    for place in others:
        one, other = row[place], Variable(f"Y{place}")
        both_null = Negation((NullTest(one, negated=False), NullTest(other, negated=False)))
        yield (twin, Negation((Comparison("=", one, other),)), both_null)
