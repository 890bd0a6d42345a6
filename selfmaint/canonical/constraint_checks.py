"""Checks that declared keys and foreign keys hold, before the update and after it.

Those of an update start at its rows; those of the views alone are part of the full check. A row is named by the
relation that it breaks a constraint of, or by the view that shows it in part.

Conditions of soundness, beside those of `evidence.py`:

1. A row that stays and has an inserted row's key is that row, or breaks the key. It is not that row where the update is
   effective, for then the inserted row was not there, nor where the two differ in what is known of the one that stays.
2. A row that stays, and whose reference is deleted and not inserted again, references nothing.
3. A row that an effective update deletes was there, so no other row was that has its key.
4. Of a relation that is wholly known its rows tell all this; what views show of it in part is not asked.
5. What references a row that was not there, and is not inserted, references nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from datalog.copies import replace
from datalog.model import (
    Atom,
    Comparison,
    Literal,
    Negation,
    NullTest,
    Predicate,
    Rule,
    Term,
    Variable,
    Version,
)
from selfmaint.canonical.evidence import Evidence, evidence, evidence_of_summands, listing
from selfmaint.errors import Code
from selfmaint.warehouse.base_relations import row_atom
from selfmaint.warehouse.catalog import BaseRelation, Catalog, Reference, View
from selfmaint.warehouse.situation import Situation

_HINT = "correct the rows, complete the update, or take back the declaration"
NOT_EFFECTIVE = (
    "the update was applied already, or an earlier one is missing: follow each once, in their order; where its rows "
    "may be there before, say that it is not effective (`--not-effective`, `effective = false` in `[update]`)"
)
"""What to do about an effective update that cannot be."""
_APPLIED = (
    "the update was applied already, lacks the deletion of rows that were there, or an earlier one is missing"
)


class Check(Struct, frozen=True):
    """A rule whose rows contradict something.

    Attributes:
        subject: the view or base relation that the rows belong to.
        message: what is wrong, without the rows.
        columns: the names of the rows' columns.
        rules: the rules, all with one head.
        once: what is broken, if several checks look for that: the first one with rows tells enough.
    """

    code: Code
    subject: str
    message: str
    hint: str
    columns: tuple[str, ...]
    rules: tuple[Rule, ...]
    once: str | None = None

    @property
    def goal(self) -> Predicate:
        """The predicate of the culprits."""
        return self.rules[0].head.predicate


def constraint_checks(
    catalog: Catalog, situation: Situation, whole: frozenset[str], *, full: bool
) -> Iterator[Check]:
    """The checks of all declared keys and foreign keys.

    `whole` relations are wholly known; `full` checks do not all start at the update.
    """
    for relation in catalog.relations.values():
        shown = (*evidence(catalog, relation), *evidence_of_summands(catalog, relation))
        in_part = () if relation.name in whole else shown
        for key in relation.unique:
            yield from _key_checks(relation, key, situation, whole, in_part, full=full)
        for reference in relation.references:
            yield from _reference_checks(catalog, relation, reference, situation, whole, in_part, full=full)


def _key_checks(
    relation: BaseRelation,
    key: Sequence[int],
    situation: Situation,
    whole: frozenset[str],
    in_part: Sequence[Evidence],
    *,
    full: bool,
) -> Iterator[Check]:
    names = ", ".join(relation.columns[i] for i in key)
    row = row_atom(relation, Version.INSERTED)
    if relation.name in situation.inserted:
        known = _twin(row, key, Version.KNOWN)
        stays = _stays(known, relation, situation)
        yield from _check(
            Code.BREAKS_CONSTRAINT,
            relation,
            f"rows inserted into `{relation.name}` have one key ({names})",
            [
                (row, _twin(row, key, Version.INSERTED), *differ)
                for differ in _differences(row, key, relation)
            ],
        )
        yield from _check(
            Code.BREAKS_CONSTRAINT,
            relation,
            f"rows inserted into `{relation.name}` have the key ({names}) of rows that are there and stay",
            [(row, known, *stays, *differ) for differ in _differences(row, key, relation)],
        )
    for shown in in_part:
        if shown.shows(key):
            yield from _key_shown(relation, key, situation, shown)
    if situation.effective and relation.name in situation.deleted and relation.name not in whole:
        gone = row_atom(relation, Version.DELETED)
        yield from _check(
            Code.CONTRADICTS,
            relation,
            f"{never_there(relation)}: others have their key ({names})",
            [
                (gone, _twin(gone, key, Version.KNOWN), *differ)
                for differ in _differences(gone, key, relation)
            ],
            hint=NOT_EFFECTIVE,
            once=never_there(relation),
        )
    if full:
        here = row_atom(relation, Version.KNOWN)
        yield from _check(
            Code.NOT_EXPLAINED,
            relation,
            f"the views or partial copies prove different rows of `{relation.name}` with one key ({names})",
            [
                (here, _twin(here, key, Version.KNOWN), *differ)
                for differ in _differences(here, key, relation)
            ],
        )


def _key_shown(
    relation: BaseRelation, key: Sequence[int], situation: Situation, shown: Evidence
) -> Iterator[Check]:
    """Conditions 1 and 3, of a row that a view shows in part."""
    names = ", ".join(relation.columns[i] for i in key)
    every = range(relation.arity)
    terms = tuple(shown.subgoal.terms[i] if i in key else Variable(f"X{i}") for i in every)
    row = Atom(Predicate(relation.name), terms)
    here: tuple[Literal, ...] = (*shown.given, *_present(row, key, relation))
    differing = [
        _unlike(terms[i], shown.subgoal.terms[i]) for i in every if i not in key and shown.shows([i])
    ]
    if relation.name in situation.inserted:
        stays = (row.of(Version.INSERTED), *here, *shown.stays(situation))
        bodies = [stays] if situation.effective else [(*stays, *differ) for differ in differing]
        message = f"rows inserted into `{relation.name}` have the key ({names}) of rows that"
        its = f"{message} {shown.view.shown} shows and that stay"
        yield from _check(Code.BREAKS_CONSTRAINT, relation, its, bodies, row, _APPLIED, message)
    if situation.effective and relation.name in situation.deleted:
        bodies = [(row.of(Version.DELETED), *here, *differ) for differ in differing]
        once = never_there(relation)
        its = f"{once}: {shown.view.shown} shows others with their key ({names})"
        yield from _check(Code.CONTRADICTS, relation, its, bodies, row, NOT_EFFECTIVE, once)


def never_there(relation: BaseRelation) -> str:
    """What is wrong with rows that an effective update deletes."""
    return f"rows deleted from `{relation.name}` were not there before"


def _twin(row: Atom, key: Sequence[int], version: Version) -> Atom:
    """Another row with the same key."""
    terms = tuple(t if i in key else Variable(f"Y{i}") for i, t in enumerate(row.terms))
    return Atom(row.predicate.of(version), terms)


def _differences(row: Atom, key: Sequence[int], relation: BaseRelation) -> Iterator[tuple[Literal, ...]]:
    """The ways in which a row differs from its twin; a key with a null is none."""
    for i, term in enumerate(row.terms):
        if i not in key:
            yield (*_present(row, key, relation), *_unlike(term, Variable(f"Y{i}")))


def _unlike(one: Term, other: Term) -> tuple[Literal, ...]:
    """That two values differ; null is one."""
    both_null = Negation((NullTest(one, negated=False), NullTest(other, negated=False)))
    return Negation((Comparison("=", one, other),)), both_null


def _present(row: Atom, columns: Sequence[int], relation: BaseRelation) -> tuple[NullTest, ...]:
    """A key or a reference with a null is none."""
    return tuple(NullTest(row.terms[i]) for i in columns if i in relation.nullable)


def _stays(row: Atom, relation: BaseRelation, situation: Situation) -> tuple[Literal, ...]:
    """Whether a known row is still there after the update."""
    if relation.name not in situation.deleted:
        return ()
    return (Negation((row.of(Version.DELETED),)),)


class _Reference(Struct, frozen=True):
    """A foreign key in a situation, and the literals that checks of it are made of."""

    relation: BaseRelation
    target: BaseRelation
    reference: Reference
    situation: Situation

    @property
    def names(self) -> str:
        """The referencing columns."""
        return ", ".join(self.relation.columns[i] for i in self.reference.columns)

    def row(self, version: Version) -> Atom:
        """A referencing row."""
        return row_atom(self.relation, version)

    def referenced(self, by: Atom, version: Version) -> Atom:
        """The row that a row references."""
        keys = zip(self.reference.target_columns, self.reference.key_of(by), strict=True)
        at: dict[int, Term] = dict(keys)
        terms = tuple(at.get(j, Variable(f"{version.value}_{j}")) for j in range(self.target.arity))
        return Atom(Predicate(self.target.name, version), terms)

    def present(self, by: Atom) -> tuple[NullTest, ...]:
        """A reference with a null is none."""
        return _present(by, self.reference.columns, self.relation)

    def gone(self, by: Atom) -> tuple[Atom, ...]:
        """The referenced row is deleted; it was there for sure if the update is effective, or if it is known."""
        deleted = self.referenced(by, Version.DELETED)
        there = deleted.of(Version.KNOWN)
        return (deleted,) if self.situation.effective else (deleted, there)

    def unless(self, by: Atom, version: Version, names: frozenset[str]) -> tuple[Literal, ...]:
        """That no row of a version is referenced, if there are any."""
        return (Negation((self.referenced(by, version),)),) if self.target.name in names else ()


def _reference_checks(
    catalog: Catalog,
    relation: BaseRelation,
    reference: Reference,
    situation: Situation,
    whole: frozenset[str],
    in_part: Sequence[Evidence],
    *,
    full: bool,
) -> Iterator[Check]:
    key = _Reference(relation, catalog.relations[reference.target], reference, situation)
    if reference.target in situation.deleted:
        yield from _deleted_targets(key, in_part)
    is_key = any(set(columns) <= set(reference.target_columns) for columns in key.target.keys)
    if situation.effective and reference.target in situation.inserted and is_key:
        yield from _of_referencing(
            key,
            Code.CONTRADICTS,
            f"rows of `{relation.name}` referenced ({key.names}) rows of `{reference.target}` that are only inserted "
            "now",
            lambda by: (
                key.referenced(by, Version.INSERTED),
                *key.unless(by, Version.DELETED, situation.deleted),
                Negation((key.referenced(by, Version.KNOWN),)),  # else its key is said to be there twice
            ),
            in_part,
            staying=False,
        )
    if reference.target in whole:
        yield from _missing_targets(key, lambda by: Negation((key.referenced(by, Version.KNOWN),)), full=full)
    elif (listed := listing(catalog, key.target, reference.target_columns)) is not None:
        yield from _missing_targets(
            key, lambda by: listed.lacks(reference.target_columns, reference.key_of(by)), full=full
        )


def _deleted_targets(key: _Reference, in_part: Sequence[Evidence]) -> Iterator[Check]:
    relation, situation = key.relation, key.situation
    if relation.name in situation.inserted:
        inserted = key.row(Version.INSERTED)
        body = (
            inserted,
            *key.gone(inserted),
            *key.present(inserted),
            *key.unless(inserted, Version.INSERTED, situation.inserted),
        )
        message = f"rows inserted into `{relation.name}` reference ({key.names}) rows of `{key.target.name}`"
        yield from _check(Code.BREAKS_CONSTRAINT, relation, f"{message} that are deleted", [body])
    message = f"rows of `{key.target.name}` are deleted that rows of `{relation.name}` still reference"
    yield from _of_referencing(
        key,
        Code.BREAKS_CONSTRAINT,
        f"{message} ({key.names})",
        lambda by: (*key.gone(by), *key.unless(by, Version.INSERTED, situation.inserted)),
        in_part,
        staying=True,
    )


def _of_referencing(
    key: _Reference,
    code: Code,
    message: str,
    tests: Callable[[Atom], tuple[Literal, ...]],
    in_part: Sequence[Evidence],
    *,
    staying: bool,
) -> Iterator[Check]:
    """Checks of what referencing rows satisfy, known whole or in part; `staying`: of those that are not deleted."""
    known = key.row(Version.KNOWN)
    stays = _stays(known, key.relation, key.situation) if staying else ()
    body = (*tests(known), known, *key.present(known), *stays)
    yield from _check(code, key.relation, message, [body], once=message)
    for shown in in_part:
        if shown.shows(key.reference.columns):
            by, its = shown.subgoal, [i for i in range(key.relation.arity) if shown.shows([i])]
            stays = shown.stays(key.situation) if staying else ()
            body = (*tests(by), *shown.given, *key.present(by), *stays)
            row = Atom(by.predicate, tuple(by.terms[i] for i in its))
            for check in _check(
                code, shown.view, f"{message}, as {shown.view.shown} shows", [body], row, once=message
            ):
                yield replace(check, columns=tuple(key.relation.columns[i] for i in its))


def _missing_targets(key: _Reference, lacks: Callable[[Atom], Literal], *, full: bool) -> Iterator[Check]:
    """What references no row of a relation that is wholly known, or of which a view lists the keys."""
    relation, situation = key.relation, key.situation
    nothing = f"reference ({key.names}) no row of `{key.target.name}`"
    if relation.name in situation.inserted:
        row = key.row(Version.INSERTED)
        arrives = key.unless(row, Version.INSERTED, situation.inserted)
        body = (row, *key.present(row), lacks(row), *arrives)
        message = f"rows inserted into `{relation.name}` {nothing}"
        yield from _check(Code.BREAKS_CONSTRAINT, relation, message, [body])
    if full:
        row = key.row(Version.KNOWN)
        message = f"the views prove rows of `{relation.name}` that {nothing}"
        yield from _check(Code.NOT_EXPLAINED, relation, message, [(row, *key.present(row), lacks(row))])


def _check(
    code: Code,
    of: BaseRelation | View,
    message: str,
    bodies: Sequence[tuple[Literal, ...]],
    row: Atom | None = None,
    hint: str = _HINT,
    once: str | None = None,
) -> Iterator[Check]:
    """A check of rows of a relation, or of those stored for a view."""
    terms = tuple(Variable(f"X{i}") for i in range(len(of.columns))) if row is None else row.terms
    goal = Atom(Predicate(of.name, Version.PROBLEM), terms)
    if bodies:
        rules = tuple(Rule(goal, body) for body in bodies)
        yield Check(code, of.name, message, hint, of.columns, rules, once)
