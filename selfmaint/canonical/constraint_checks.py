"""Checks that declared keys and foreign keys hold, before the update and after it.

Those of an update start at its rows; those of the views alone are part of the full check. A row is named by the
relation that it breaks a constraint of.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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
from selfmaint.errors import Code
from selfmaint.warehouse.base_relations import row_atom
from selfmaint.warehouse.catalog import BaseRelation, Catalog, Reference
from selfmaint.warehouse.situation import Situation

_HINT = "correct the rows, complete the update, or take back the declaration"


@dataclass(frozen=True, slots=True)
class Check:
    """A rule whose rows contradict something.

    Attributes:
        subject: the view or base relation that the rows belong to.
        message: what is wrong, without the rows.
        columns: the names of the rows' columns.
        rules: the rules, all with one head.
    """

    code: Code
    subject: str
    message: str
    hint: str
    columns: tuple[str, ...]
    rules: tuple[Rule, ...]

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
        for key in relation.unique:
            yield from _key_checks(relation, key, situation, full=full)
        for reference in relation.references:
            yield from _reference_checks(catalog, relation, reference, situation, whole, full=full)


def _key_checks(
    relation: BaseRelation, key: Sequence[int], situation: Situation, *, full: bool
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


def _twin(row: Atom, key: Sequence[int], version: Version) -> Atom:
    """Another row with the same key."""
    terms = tuple(t if i in key else Variable(f"Y{i}") for i, t in enumerate(row.terms))
    return Atom(row.predicate.of(version), terms)


def _differences(row: Atom, key: Sequence[int], relation: BaseRelation) -> Iterator[tuple[Literal, ...]]:
    """The ways in which a row differs from its twin; a key with a null is none."""
    present = tuple(NullTest(row.terms[i]) for i in key if i in relation.nullable)
    for i, term in enumerate(row.terms):
        if i not in key:
            other = Variable(f"Y{i}")
            both_null = Negation((NullTest(term, negated=False), NullTest(other, negated=False)))
            yield (*present, Negation((Comparison("=", term, other),)), both_null)


def _stays(row: Atom, relation: BaseRelation, situation: Situation) -> tuple[Literal, ...]:
    """Whether a known row is still there after the update."""
    if relation.name not in situation.deleted:
        return ()
    return (Negation((row.of(Version.DELETED),)),)


@dataclass(frozen=True)
class _Reference:
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
        terms = zip(self.reference.columns, self.reference.key_of(by), strict=True)
        return tuple(NullTest(t) for i, t in terms if i in self.relation.nullable)

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
    *,
    full: bool,
) -> Iterator[Check]:
    key = _Reference(relation, catalog.relations[reference.target], reference, situation)
    if reference.target in situation.deleted:
        yield from _deleted_targets(key)
    is_key = any(set(columns) <= set(reference.target_columns) for columns in key.target.keys)
    if situation.effective and reference.target in situation.inserted and is_key:
        known = key.row(Version.KNOWN)
        body = (
            key.referenced(known, Version.INSERTED),
            known,
            *key.present(known),
            *key.unless(known, Version.DELETED, situation.deleted),
        )
        message = f"rows of `{relation.name}` referenced ({key.names}) rows of `{reference.target}`"
        yield from _check(Code.CONTRADICTS, relation, f"{message} that are only inserted now", [body])
    if reference.target in whole:
        yield from _missing_targets(key, full=full)


def _deleted_targets(key: _Reference) -> Iterator[Check]:
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
    known = key.row(Version.KNOWN)
    still = (
        *key.gone(known),
        known,
        *key.present(known),
        *_stays(known, relation, situation),
        *key.unless(known, Version.INSERTED, situation.inserted),
    )
    message = f"rows of `{key.target.name}` are deleted that rows of `{relation.name}` still reference"
    yield from _check(Code.BREAKS_CONSTRAINT, relation, f"{message} ({key.names})", [still])


def _missing_targets(key: _Reference, *, full: bool) -> Iterator[Check]:
    """What references no row of a relation that is wholly known."""
    relation, situation = key.relation, key.situation
    nothing = f"reference ({key.names}) no row of `{key.target.name}`"
    if relation.name in situation.inserted:
        row = key.row(Version.INSERTED)
        missing = Negation((key.referenced(row, Version.KNOWN),))
        arrives = key.unless(row, Version.INSERTED, situation.inserted)
        body = (row, *key.present(row), missing, *arrives)
        message = f"rows inserted into `{relation.name}` {nothing}"
        yield from _check(Code.BREAKS_CONSTRAINT, relation, message, [body])
    if full:
        row = key.row(Version.KNOWN)
        missing = Negation((key.referenced(row, Version.KNOWN),))
        message = f"the views prove rows of `{relation.name}` that {nothing}"
        yield from _check(Code.NOT_EXPLAINED, relation, message, [(row, *key.present(row), missing)])


def _check(
    code: Code, relation: BaseRelation, message: str, bodies: Sequence[tuple[Literal, ...]]
) -> Iterator[Check]:
    goal = row_atom(relation, Version.PROBLEM)
    if bodies:
        rules = tuple(Rule(goal, body) for body in bodies)
        yield Check(code, relation.name, message, _HINT, relation.columns, rules)
