"""Checks that what is given can be: each is a rule whose rows are the culprits.

The cheap ones are anchored on the update or look at one view alone. The full check also asks whether the views
explain each other: every view, evaluated on the canonical database, must give no row that it does not store. It
takes the canonical database whole, from every contribution and partial copy: what a copy among the views makes
redundant for a decision is just what may contradict the copy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from datalog.budget import BudgetSpentError, limit
from datalog.copies import replace
from datalog.model import (
    Atom,
    Comparison,
    Constant,
    Literal,
    Negation,
    NullTest,
    OuterJoin,
    Predicate,
    Program,
    Rule,
    Term,
    Variable,
    Version,
    apply_comparison,
    variables_of,
)
from datalog.rewrite import drop_empty, drop_unreachable, simplify
from datalog.rewrite.branches import Branch, in_none
from selfmaint.canonical.constraint_checks import NOT_EFFECTIVE, Check, constraint_checks, never_there
from selfmaint.canonical.contributions import Contribution
from selfmaint.canonical.evidence import (
    derived,
    derived_by,
    of_subgoals_alone,
    summands,
    without_given,
)
from selfmaint.canonical.group_checks import group_checks
from selfmaint.canonical.rules import given_rules, known_rules, wholly_known
from selfmaint.errors import Code
from selfmaint.warehouse.base_relations import certain_variables, row_atom
from selfmaint.warehouse.catalog import BaseRelation, Catalog, GroupedView, View
from selfmaint.warehouse.outer_joins import unlike_any, with_other_digits
from selfmaint.warehouse.situation import Situation

_NET_EFFECT = (
    "an update has no order, and the net effect of the two is nothing: take these rows out of both sides, "
    "or give the files as a feed, `--feed DIR` for `--update DIR`, which does that"
)
_NO_ORDER = (
    "an update has no order: leave each of these rows on the side of what came last, "
    "or on none if it was there before and is there after it"
)


def checks(
    catalog: Catalog, situation: Situation, kept: tuple[Contribution, ...], *, full: bool = False
) -> tuple[Check, ...]:
    """The checks for a situation; `full` adds those that cost as much as recomputing the views."""
    found: list[Check] = []
    for view in catalog.views:
        if view.always_empty:
            found.append(_filled(view))
            continue
        if view.always_one:
            found.append(_lacking(view))
        if view.limitation is None:
            found.extend(_view_checks(view, catalog))
        if isinstance(view, GroupedView):
            found.extend(group_checks(view, catalog, full=full))
        if situation.effective:
            found.extend(_missing_rows(view, derived(view), catalog, situation))
    for union, part in summands(catalog) if situation.effective else ():
        found.extend(_missing_rows(part, derived_by(union, part), catalog, situation))
    apart = ((name, its) for name, its in catalog.unions.items() if name not in catalog.outer)
    found.extend(_of_no_branch(name, parts, full=full) for name, parts in apart)
    wrong = {name: list(unlike_any(name, outer)) for name, outer in catalog.outer.items()}
    if full:
        for name, outer in catalog.outer.items():
            wrong[name] += with_other_digits(name, outer)
    found.extend(_half_alone(name, catalog.outer[name], rules) for name, rules in wrong.items() if rules)
    for relation in catalog.relations.values():
        found.extend(_update_checks(relation, situation))
    found.extend(constraint_checks(catalog, situation, wholly_known(catalog, situation, kept), full=full))
    if full:
        found.extend(_explained(view) for view in catalog.views if of_subgoals_alone(view))
        found.extend(_readable(r) for n, r in catalog.relations.items() if n in situation.readable)
    return tuple(replace(check, rules=_numbered(check.rules, i)) for i, check in enumerate(found))


def check_program(
    catalog: Catalog,
    situation: Situation,
    kept: tuple[Contribution, ...],
    wanted: tuple[Check, ...],
    *,
    full: bool = False,
    budget_s: float = math.inf,
) -> Program:
    """The rules of some checks with those of the canonical database, simplified if that does not take too long.

    `full`: the canonical database is taken with what a copy or a readable relation makes redundant, and `kept` are all
    of the views' contributions.
    """
    known = known_rules(catalog, situation, kept, redundant=full)
    contributed = [Rule(_contributed(c.rule.head), c.rule.body) for c in kept]
    for relation in catalog.relations.values():
        contributed.extend(given_rules(relation, situation, Version.POSSIBLE))
    defined = {rule.head.predicate for rule in known}
    empty = [p for name in catalog.relations if (p := Predicate(name, Version.KNOWN)) not in defined]
    rules = [rule for check in wanted for rule in check.rules]
    program = drop_empty(Program((*rules, *known, *contributed)), empty)
    goals = [check.goal for check in wanted]
    with suppress(BudgetSpentError), limit(budget_s, "simplifying the checks of what is given"):
        return simplify(program, goals)
    return drop_unreachable(program, goals)


def _numbered(rules: tuple[Rule, ...], number: int) -> tuple[Rule, ...]:
    return tuple(Rule(r.head.of(Version.PROBLEM, (number,)), r.body) for r in rules)


def _contributed(head: Atom) -> Atom:
    """What views and partial copies tell of a relation, apart from a readable relation's own rows."""
    return head.of(Version.POSSIBLE)


def _stores(view: View) -> str:
    return f"the view `{view.name}` stores" if view.rule_of is None else f"{view.shown} stores"


def _view_checks(view: View, catalog: Catalog) -> Iterator[Check]:
    row = tuple(Variable(f"X{i}") for i in range(view.head.arity))
    stored = Atom(view.predicate, row)
    goal = Atom(view.predicate.of(Version.PROBLEM), row)
    wrong = tuple(Rule(goal, (stored, *tests)) for tests in _mismatches(view, row))
    if wrong:
        yield Check(
            Code.HEAD_MISMATCH,
            view.name,
            f"{_stores(view)} rows that its rule can never produce",
            "check that the contents belong to this view, and its columns' order",
            view.columns,
            wrong,
        )
    positions = sorted(catalog.not_null(view))
    if positions:
        some_null = Negation(tuple(NullTest(row[i]) for i in positions))  # one test: the view is read once
        yield Check(
            Code.NULL_IN_JOIN,
            view.name,
            f"{_stores(view)} null in a column that its rule joins on, or whose base column is not null",
            "a join never matches null: recompute the view, or correct its rule or the declaration",
            view.columns,
            (Rule(goal, (stored, some_null)),),
        )


def _of_no_branch(name: str, parts: Mapping[Branch, View], *, full: bool) -> Check:
    """Rows of a union that no rule of it gives; if it is `full`, and numbers with digits that a query has not."""
    first, view = next(iter(parts.items()))
    stored = first.selection.blocks[0].core.atoms[0]
    goal = Atom(stored.predicate.of(Version.PROBLEM), stored.terms)
    rules = [Rule(goal, (stored, *in_none(tuple(parts))))]
    for branch, part in parts.items() if full else ():
        if branch.selection.blocks[0].outputs != stored.terms:
            row = Atom(part.predicate, stored.terms)
            rules.append(Rule(goal, (stored, *branch.fits, Negation((row,)))))
    return Check(
        Code.HEAD_MISMATCH,
        name,
        f"the view `{name}` stores rows that its rules can never produce",
        "check that the contents belong to this view, and its columns' order",
        view.columns,
        tuple(rules),
    )


def _half_alone(name: str, outer: OuterJoin, wrong: Sequence[Rule]) -> Check:
    """Rows of a view with LEFT JOINs that have no partner, and yet values of one; and numbers with too many digits."""
    return Check(
        Code.HEAD_MISMATCH,
        name,
        f"the view `{name}` stores rows that its query can never produce",
        "check that the contents belong to this view, and its columns' order",
        outer.names,
        tuple(wrong),
    )


def _filled(view: View) -> Check:
    """Any row of a view that is always empty."""
    row = tuple(Variable(f"X{i}") for i in range(view.head.arity))
    return Check(
        Code.HEAD_MISMATCH,
        view.name,
        f"the view {view.always_empty}, and yet it stores some",
        "check that the contents belong to this view, and correct its rule if it does not say what was meant",
        view.columns,
        (Rule(Atom(view.predicate.of(Version.PROBLEM), row), (Atom(view.predicate, row),)),),
    )


def _lacking(view: View) -> Check:
    """The one row of a view that always has one, where it is not stored."""
    return Check(
        Code.HEAD_MISMATCH,
        view.name,
        f"the view {view.always_one}, and yet it does not store it",
        "recompute the view, and correct its rule if it does not say what was meant",
        view.columns,
        (Rule(Atom(view.predicate.of(Version.PROBLEM), view.head.terms), (Negation((view.head,)),)),),
    )


def _mismatches(view: View, row: tuple[Variable, ...]) -> Iterator[tuple[Literal, ...]]:
    """For each constant and each repeated variable of the head, what a row that does not fit it satisfies."""
    first: dict[Term, int] = {}
    for i, term in enumerate(view.head.terms):
        if isinstance(term, Constant):
            if term.value is None:
                yield (NullTest(row[i]),)
            else:
                yield (Negation((Comparison("=", row[i], term),)),)
        elif term in first:
            earlier = row[first[term]]
            both_null = Negation((NullTest(earlier, negated=False), NullTest(row[i], negated=False)))
            yield Negation((Comparison("=", earlier, row[i]),)), both_null
        else:
            first[term] = i
    place: dict[Variable, Term] = {t: row[i] for t, i in first.items() if isinstance(t, Variable)}
    for comparison in view.comparisons:
        yield (Negation((apply_comparison(place, comparison),)),)


def _update_checks(relation: BaseRelation, situation: Situation) -> Iterator[Check]:
    name = relation.name
    goal = row_atom(relation, Version.PROBLEM)

    def check(code: Code, message: str, hint: str, *body: Literal) -> Check:
        return Check(code, name, message, hint, relation.columns, (Rule(goal, body),))

    yield from _null_checks(relation, situation)
    if name in situation.inserted & situation.deleted:
        yield check(
            Code.BOTH_CHANGED,
            f"the same rows are inserted into and deleted from `{name}`",
            _NET_EFFECT if situation.effective else _NO_ORDER,
            goal.of(Version.INSERTED),
            goal.of(Version.DELETED),
        )
    if situation.effective and name in situation.inserted:
        yield check(
            Code.CONTRADICTS,
            f"rows inserted into `{name}` were there before: the views or partial copies prove it",
            NOT_EFFECTIVE,
            goal.of(Version.INSERTED),
            goal.of(Version.KNOWN),
        )
    if situation.effective and name in situation.deleted & situation.absent:
        yield check(
            Code.CONTRADICTS,
            f"rows deleted from `{name}` are known not to have been there",
            NOT_EFFECTIVE,
            goal.of(Version.DELETED),
            goal.of(Version.ABSENT),
        )
    if name in situation.absent:
        yield check(
            Code.NOT_EXPLAINED,
            f"rows known to be absent from `{name}` are proved present by the views or partial copies",
            "one of the two is out of date",
            goal.of(Version.ABSENT),
            goal.of(Version.KNOWN),
        )
    if situation.effective and name in situation.deleted & situation.readable:
        yield check(
            Code.CONTRADICTS,
            never_there(relation),
            NOT_EFFECTIVE,
            goal.of(Version.DELETED),
            Negation((goal.of(Version.BEFORE),)),
        )


def _null_checks(relation: BaseRelation, situation: Situation) -> Iterator[Check]:
    given = {
        Version.INSERTED: situation.inserted,
        Version.DELETED: situation.deleted,
        Version.PRESENT: situation.present,
        Version.BEFORE: situation.readable,
    }
    goal = row_atom(relation, Version.PROBLEM)
    for version, names in given.items():
        if relation.name in names and len(relation.nullable) < relation.arity:
            rows = row_atom(relation, version)
            columns = [i for i in range(relation.arity) if i not in relation.nullable]
            yield Check(
                Code.COLUMNS_DIFFER,
                relation.name,
                f"`{relation.name}` ({version.value} rows) has null in a column declared not null",
                "correct the rows, or the declaration",
                relation.columns,
                tuple(Rule(goal, (rows, NullTest(rows.terms[i], negated=False))) for i in columns),
            )


def _missing_rows(
    view: View,
    its: tuple[tuple[Atom, ...], tuple[Literal, ...], Atom] | None,
    catalog: Catalog,
    situation: Situation,
) -> Iterator[Check]:
    """A view, such as a copy, proves a deleted row absent if it lacks what that row and known facts would give.

    A row that the view itself proves present is left out: what lacks then contradicts the other views, not the update.
    What a foreign key says to be there is not asked for, nor is what the view would show of it.
    """
    if its is None:
        return
    body, filters, head = its
    not_null = view.decided.not_null | view.decided.certain
    for atom in body:
        name, relation = atom.predicate.name, catalog.relations[atom.predicate.name]
        if name not in situation.deleted:
            continue
        left = without_given(body, atom, filters, catalog.relations, not_null)
        others = (a.of(Version.KNOWN) for a in left if a != atom)
        lost = not_null - certain_variables(left, catalog.relations) - set(variables_of(filters))
        tests = (*filters, *(NullTest(v) for v in variables_of(left) if v in lost))
        gone = atom.of(Version.DELETED)
        goal = atom.of(Version.PROBLEM)
        yield Check(
            Code.CONTRADICTS,
            name,
            f"{never_there(relation)}: {view.shown} lacks what they would give",
            NOT_EFFECTIVE,
            relation.columns,
            (Rule(goal, (gone, *_unproved(atom, left, head), *others, *tests, Negation((head,)))),),
            never_there(relation),
        )


def _unproved(atom: Atom, body: Sequence[Atom], head: Atom) -> tuple[Negation, ...]:
    """That no row of a view comes from a row of one of several subgoals, as far as the view shows it."""
    if len(body) == 1:
        return ()  # then the lacking row is the only one that there could be
    its = set(variables_of([atom]))
    free = (
        t if t in its or isinstance(t, Constant) else Variable(f"other_{i}") for i, t in enumerate(head.terms)
    )
    return (Negation((Atom(head.predicate, tuple(free)),)),)


def _explained(view: View) -> Check:
    body = tuple(a.of(Version.KNOWN) for a in view.body)
    head = Atom(view.predicate.of(Version.PROBLEM), view.head.terms)
    return Check(
        Code.NOT_EXPLAINED,
        view.name,
        f"the other views or partial copies prove rows of {view.shown} that it lacks: no database explains them",
        "a view is stale or damaged: recompute the views that disagree from one state of the sources",
        view.columns,
        (Rule(head, (*body, *view.filters, Negation((view.head,)))),),
    )


def _readable(relation: BaseRelation) -> Check:
    body = (row_atom(relation, Version.POSSIBLE), Negation((row_atom(relation, Version.BEFORE),)))
    return Check(
        Code.NOT_EXPLAINED,
        relation.name,
        f"the views or partial copies prove rows of `{relation.name}` that its before-image does not have",
        "the views and the relation are from different states",
        relation.columns,
        (Rule(row_atom(relation, Version.PROBLEM), body),),
    )
