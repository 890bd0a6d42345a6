"""Views with LEFT JOINs as the views of inner joins that their rows tell: see `datalog.sql.views.outer.outer_joins`.

As the branches of a union, these are views whose stored rows are a selection of the view's: its columns from the kept
side, and for each join its rows that have a partner there. Of a FULL JOIN they are both sides (`full_joins.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from datalog.model import (
    Aggregate,
    AggregateFunction,
    Atom,
    Comparison,
    Constant,
    Declaration,
    Expression,
    FullJoin,
    Literal,
    Negation,
    NullTest,
    OpaqueView,
    OuterJoin,
    OuterSide,
    Predicate,
    Program,
    Rule,
    Semantics,
    Term,
    Variable,
    Version,
    ViewDefinition,
    block,
)
from datalog.model.expressions import expression_variables
from datalog.rewrite.branches import Branch, column
from selfmaint.warehouse.base_relations import BaseRelation, determined_terms
from selfmaint.warehouse.computed_columns import told_columns, without_computed
from selfmaint.warehouse.full_joins import of_no_side, recombined_full
from selfmaint.warehouse.views import View, as_part_of


def joins_of(
    views: Iterable[ViewDefinition | OpaqueView], taken: Collection[str], declared: Iterable[Declaration]
) -> dict[str, OuterJoin]:
    """What views are made of that have LEFT JOINs, or columns computed from others, where such names are not taken."""
    types = {one.name: [column.type for column in one.columns] for one in declared}
    made = (
        (one.name, one.outer if isinstance(one, OpaqueView) else without_computed(one, types))
        for one in views
        if one.name.casefold() not in taken
    )
    return {name: outer for name, outer in made if outer is not None}


def parts_of(joins: Iterable[OuterJoin]) -> Iterator[ViewDefinition]:
    """The definitions of all that some views are made of."""
    return (part for outer in joins for part, _ in outer.parts)


def outer_parts(
    view: View, outer: OuterJoin, made: Mapping[str, View], relations: Mapping[str, BaseRelation]
) -> dict[Branch, View]:
    """What a view with LEFT JOINs is made of, with what of its rows are theirs; none if that is not decided.

    Rows of each part stand once: a part that keeps duplicates says nothing of the view's rows.
    """
    shown = {outer.kept.name: "the kept side" if outer.sides else "what is stored"}
    shown |= {side.definition.name: f"the join with `{side.shown}`" for side in outer.sides}
    if outer.full is not None:
        (side,) = outer.sides
        shown = {
            outer.kept.name: f"those of `{outer.full.shown}`",
            side.definition.name: f"those of `{side.shown}`",
        }
    parts = [made[name] for name in shown]
    if (
        any(part.is_counted or not (part.is_decided or part.shown_groups) for part in parts)
        or view.unchanging
    ):
        return {}
    otherwise = told_columns(outer, made[outer.kept.name], relations)
    if otherwise is None:
        return {}
    is_full, told = outer.full is not None, () if outer.full is None else (outer.full.told,)
    several = [side for side in outer.sides if is_full or not _is_one(outer, side, relations)]
    rows = [otherwise.get(i, column(i)) for i in outer.columns]
    selection = _selection(view, outer.kept, rows, told, is_set=bool(several))
    found = {Branch(outer.kept.name, selection, told): made[outer.kept.name]}
    for side in outer.sides:
        others = [one for one in several if is_full or one is not side]
        rows = [otherwise.get(i, column(i)) for i in side.columns]
        selection = _selection(view, side.definition, rows, (side.told,), is_set=bool(others))
        found[Branch(side.definition.name, selection, (side.told,))] = made[side.definition.name]
    return {
        branch: as_part_of(part, view, shown[branch.name], branch.selection.columns)
        for branch, part in found.items()
    }


def _is_one(outer: OuterJoin, side: OuterSide, relations: Mapping[str, BaseRelation]) -> bool:
    """Whether a row of the kept side has at most one partner."""
    (one,) = side.definition.blocks
    if one.groups is not None:
        return True
    kept = [output for i, output in zip(side.columns, one.outputs, strict=True) if i in outer.columns]
    terms = [output for output in kept if isinstance(output, Variable)]
    return set(expression_variables(one.outputs)) <= determined_terms(terms, one.core.atoms, relations)


def _selection(
    view: View,
    part: ViewDefinition,
    outputs: Iterable[Expression],
    told: tuple[Literal, ...],
    *,
    is_set: bool,
) -> ViewDefinition:
    stored = Atom(view.predicate, tuple(column(i) for i in range(len(view.stored_columns))))
    made = block(view.name, 0, [stored, *told], outputs)
    return ViewDefinition(view.name, part.columns, (made,), Semantics.SET if is_set else Semantics.BAG)


def unlike_any(name: str, outer: OuterJoin) -> Iterator[Rule]:
    """Rules of the rows of a view that it can never have: no partner, and yet other values than then."""
    row = Atom(Predicate(name), tuple(column(i) for i in range(len(outer.names))))
    joined: list[OuterSide | FullJoin] = [*outer.sides]
    if outer.full is not None:
        yield from of_no_side(row, outer.full, outer.sides[0])
        joined.append(outer.full)
    for side in joined:
        if isinstance(side.told, Negation):  # that some value is not null: else all are, as they are to be
            continue
        for i, default in zip(side.own, side.defaults, strict=True):
            unlike = _is_not(column(i), default)
            yield Rule(row.of(Version.PROBLEM), (row, Negation((side.told,)), unlike))


def with_other_digits(name: str, outer: OuterJoin) -> Iterator[Rule]:
    """Rules of the rows of a view whose numbers have digits that those that they are cast or rounded from have not."""
    row = Atom(Predicate(name), tuple(column(i) for i in range(len(outer.names))))
    (one,) = outer.kept.blocks
    whats = dict(zip(outer.columns, one.outputs, strict=True))
    averages = {
        i
        for i, what in whats.items()
        if isinstance(what, Aggregate) and what.function is AggregateFunction.AVG
    }
    told = {one.place for one in outer.computed} & {*outer.plain} - averages
    tests = {outer.kept.name: (), **{side.definition.name: (side.told,) for side in outer.sides}}
    for part, places in outer.parts:
        if not told.isdisjoint(places):
            its = Atom(
                Predicate(part.name),
                tuple(Variable(f"Any{i}") if i in averages else row.terms[i] for i in places),
            )
            yield Rule(row.of(Version.PROBLEM), (row, *tests[part.name], Negation((its,))))


def _is_not(term: Variable, value: Constant) -> Literal:
    return NullTest(term) if value.value is None else Negation((Comparison("=", term, value),))


def recombined(name: str, outer: OuterJoin) -> tuple[Program, Predicate, Predicate]:
    """The rows of a view that a change may touch as they were, and as they are: a program over the parts' changes.

    Those that are lack the columns that are computed (`computed_columns.completed`).

    Touched are the rows of which the key of the kept side is that of a row that a part gains or loses. Read are the
    view's stored rows, and of each part, by its name, the rows gained and lost.
    """
    if outer.full is not None:
        return recombined_full(name, outer, outer.full)
    if not outer.sides:
        return _of_groups(name, outer)
    row = tuple(column(i) for i in range(len(outer.names)))
    kept = tuple(row[i] for i in outer.key or outer.columns)
    stored, touched = Atom(Predicate(name), row), Atom(Predicate(name, Version.STEP), kept)
    old, rules = Atom(Predicate(name, Version.BEFORE), row), list[Rule]()
    for part, columns in outer.parts:
        for version in (Version.GAINED, Version.LOST):
            rules.append(
                Rule(touched, (Atom(Predicate(part.name, version), tuple(row[i] for i in columns)),))
            )
    rules.append(Rule(old, (stored, touched)))

    def after(part: str, columns: tuple[int, ...], told: tuple[Literal, ...]) -> Atom:
        """The rows of a part with a touched row of the kept side, as they are."""
        terms = tuple(row[i] for i in columns)
        head = Atom(Predicate(part, Version.AFTER), terms)
        lost = Negation((Atom(Predicate(part, Version.LOST), terms),))
        rules.append(Rule(head, (old, *told, lost)))
        rules.append(Rule(head, (Atom(Predicate(part, Version.GAINED), terms),)))
        return head

    so_far, places = after(outer.kept.name, outer.columns, ()), outer.columns
    for number, side in enumerate(outer.sides):
        its = after(side.definition.name, side.columns, (side.told,))
        shared = tuple(row[i] for i in side.columns if i in places)
        has_one = Atom(Predicate(name, Version.STEP, (number, 0)), shared)
        rules.append(Rule(has_one, (its,)))
        values: dict[int, Term] = dict(zip(side.own, side.defaults, strict=True))
        places = tuple(sorted({*places, *side.own}))
        made = Predicate(name, Version.STEP, (number, 1))
        rules.append(Rule(Atom(made, tuple(row[i] for i in places)), (so_far, its)))
        alone = Atom(made, tuple(values.get(i, row[i]) for i in places))
        rules.append(Rule(alone, (so_far, Negation((has_one,)))))
        so_far = Atom(made, tuple(row[i] for i in places))
    new = Atom(Predicate(name, Version.FOUND), so_far.terms)
    rules.append(Rule(new, (so_far,)))
    return Program(tuple(rules)), old.predicate, new.predicate


def _of_groups(name: str, outer: OuterJoin) -> tuple[Program, Predicate, Predicate]:
    """The same of a view whose rows are groups, which it has as its own columns show them: all the groups' new rows."""
    row = tuple(column(i) for i in range(len(outer.names)))
    gained = Atom(Predicate(outer.kept.name, Version.GAINED), tuple(row[i] for i in outer.columns))
    unlike = tuple(row[i] if i in outer.key else Variable(f"Was{i}") for i in outer.columns)
    lost = Atom(Predicate(outer.kept.name, Version.LOST), unlike)
    old, new = Atom(Predicate(name, Version.BEFORE), row), Atom(Predicate(name, Version.FOUND), gained.terms)
    return (
        Program((Rule(old, (Atom(Predicate(name), row), lost)), Rule(new, (gained,)))),
        old.predicate,
        new.predicate,
    )
