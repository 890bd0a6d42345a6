"""Views with a FULL JOIN, from the rows of both sides: see `datalog.sql.views.outer.full_joins`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from datalog.model import (
    Atom,
    Comparison,
    FullJoin,
    Negation,
    NullTest,
    OuterJoin,
    OuterSide,
    Predicate,
    Program,
    Rule,
    Term,
    Version,
)
from datalog.rewrite.branches import column


def of_no_side(row: Atom, full: FullJoin, side: OuterSide) -> Iterator[Rule]:
    """Rules of the rows of a view that it can never have: of no side, or of two that the join does not put together."""
    problem = row.of(Version.PROBLEM)
    yield Rule(problem, (row, Negation((full.told,)), Negation((side.told,))))
    for one, other in full.pairs:
        if one != other:
            unlike = Negation((Comparison("=", column(one), column(other)),))
            yield Rule(problem, (row, full.told, side.told, unlike))


def recombined_full(name: str, outer: OuterJoin, full: FullJoin) -> tuple[Program, Predicate, Predicate]:
    """The rows of a view that a change may touch as they were, and as they are; see `outer_joins.recombined`.

    Touched are the rows that have, in the columns that are joined by, what a row has that a side gains or loses.
    """
    (side,) = outer.sides
    row = tuple(column(i) for i in range(len(outer.names)))
    stored, old = Atom(Predicate(name), row), Atom(Predicate(name, Version.BEFORE), row)
    touched, rules = Predicate(name, Version.STEP), list[Rule]()
    sides = [
        (outer.kept.name, outer.columns, full.told, [one for one, _ in full.pairs]),
        (side.definition.name, side.columns, side.told, [other for _, other in full.pairs]),
    ]
    now: list[Atom] = []
    for part, places, told, by in sides:
        its, met = tuple(row[i] for i in places), Atom(touched, tuple(row[i] for i in by))
        gained, lost = (Atom(Predicate(part, version), its) for version in (Version.GAINED, Version.LOST))
        is_now = Atom(Predicate(part, Version.AFTER), its)
        rules += [Rule(met, (gained,)), Rule(met, (lost,)), Rule(old, (stored, told, met))]
        rules += [Rule(is_now, (stored, told, met, Negation((lost,)))), Rule(is_now, (gained,))]
        now.append(is_now)
    plain = sorted({*outer.columns, *side.columns})
    new, found = Predicate(name, Version.FOUND), tuple(row[i] for i in plain)
    known = [NullTest(row[i]) for i, _ in full.pairs], [NullTest(row[i]) for _, i in full.pairs]
    as_kept: dict[Term, Term] = {row[other]: row[one] for one, other in full.pairs}
    as_other: dict[Term, Term] = {row[one]: row[other] for one, other in full.pairs}
    rules.append(Rule(_renamed(Atom(new, found), as_kept), (now[0], _renamed(now[1], as_kept), *known[0])))
    none = dict(zip(side.own, side.defaults, strict=True)), dict(zip(full.own, full.defaults, strict=True))
    met_by = _renamed(now[1], as_kept), _renamed(now[0], as_other)
    for number in (0, 1):
        alone = Atom(new, tuple(none[number].get(i, row[i]) for i in plain))
        rules.append(Rule(alone, (now[number], Negation((met_by[number], *known[number])))))
    return Program(tuple(rules)), old.predicate, new


def _renamed(atom: Atom, names: Mapping[Term, Term]) -> Atom:
    return Atom(atom.predicate, tuple(names.get(term, term) for term in atom.terms))
