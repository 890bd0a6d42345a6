"""Symbolic instances: a database and an update with variables for values, to be made consistent and ground."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TypeGuard

from msgspec import Struct, field

from datalog.copies import replace
from datalog.model import (
    Atom,
    Comparison,
    Constant,
    Literal,
    Negation,
    NullTest,
    Predicate,
    Program,
    Rule,
    Term,
    Variable,
    Version,
    apply_atom,
    apply_comparison,
    apply_literal,
    apply_rule,
    apply_term,
    variables_of,
)
from selfmaint.canonical.rules import after_rules
from selfmaint.decide.companions import unused_prefix
from selfmaint.warehouse.catalog import Catalog, GroupedView, View, certain_variables
from selfmaint.warehouse.constraints import unifier
from selfmaint.warehouse.situation import Situation

_BEFORE = (Version.BEFORE, Version.PRESENT, Version.KNOWN, Version.EXISTS)
"""Rows of these were there before the update."""
_DEFINED = (Version.AFTER, Version.KNOWN, Version.EXISTS)
"""What is unfolded, in this order."""

Definitions = Mapping[Predicate, Sequence[Rule]]


class Instance(Struct, frozen=True, dict=True):
    """A database before an update, and the update; atoms are over base relations.

    Attributes:
        before: rows of the database.
        kept: rows that must be there after the update.
        present: rows of the partial copies.
        comparisons: what holds for the variables.
        settled: variables that are not null, or for which that does not matter.
        placed: variables whose place among the constants that they are compared with is chosen.
        alone: of these those that no other variable there may equal.
        apart: variables, of no declared type, whose values are of another family than the constants they meet.
        number: how many new variables were made.
        is_crowded: whether these have too few values, or rows are too many: the instance does not stand for all that it
            should.
        asked: terms to keep track of.
    """

    before: tuple[Atom, ...] = ()
    inserted: tuple[Atom, ...] = ()
    deleted: tuple[Atom, ...] = ()
    kept: tuple[Atom, ...] = ()
    present: tuple[Atom, ...] = ()
    comparisons: tuple[Comparison, ...] = ()
    settled: frozenset[Variable] = field(default_factory=frozenset)
    placed: frozenset[Variable] = field(default_factory=frozenset)
    alone: frozenset[Variable] = field(default_factory=frozenset)
    apart: frozenset[Variable] = field(default_factory=frozenset)
    number: int = 0
    is_crowded: bool = False
    asked: tuple[Term, ...] = ()

    @cached_property
    def after(self) -> tuple[Atom, ...]:
        """The rows after the update."""
        return tuple(dict.fromkeys((*(a for a in self.before if a not in self.deleted), *self.inserted)))

    @cached_property
    def atoms(self) -> tuple[Atom, ...]:
        """Every row."""
        return tuple(dict.fromkeys((*self.before, *self.inserted, *self.deleted, *self.present)))

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """The variables, in order of appearance."""
        return variables_of([*self.atoms, *self.comparisons])

    def added(
        self,
        *,
        before: Iterable[Atom] = (),
        inserted: Iterable[Atom] = (),
        deleted: Iterable[Atom] = (),
        kept: Iterable[Atom] = (),
    ) -> Instance:
        """With more rows."""
        return replace(
            self,
            before=_distinct((*self.before, *before)),
            inserted=_distinct((*self.inserted, *inserted)),
            deleted=_distinct((*self.deleted, *deleted)),
            kept=_distinct((*self.kept, *kept)),
        )

    def under(self, substitution: Mapping[Variable, Term]) -> Instance | None:
        """With some variables replaced; None if one that is not null becomes null."""
        settled = {apply_term(substitution, variable) for variable in self.settled}
        if Constant(None) in settled:
            return None

        def moved(atoms: Sequence[Atom]) -> tuple[Atom, ...]:
            return _distinct(apply_atom(substitution, atom) for atom in atoms)

        return replace(
            self,
            before=moved(self.before),
            inserted=moved(self.inserted),
            deleted=moved(self.deleted),
            kept=moved(self.kept),
            present=moved(self.present),
            comparisons=tuple(apply_comparison(substitution, one) for one in self.comparisons),
            settled=_variables(settled),
            placed=_variables(apply_term(substitution, variable) for variable in self.placed),
            alone=_variables(apply_term(substitution, variable) for variable in self.alone),
            apart=_variables(apply_term(substitution, variable) for variable in self.apart),
            asked=tuple(apply_term(substitution, term) for term in self.asked),
        )


def _variables(terms: Iterable[Term]) -> frozenset[Variable]:
    return frozenset(term for term in terms if isinstance(term, Variable))


def _distinct(atoms: Iterable[Atom]) -> tuple[Atom, ...]:
    return tuple(dict.fromkeys(atoms))


def frozen(
    catalog: Catalog, body: Sequence[Literal], *, effective: bool, asked: Sequence[Term] = ()
) -> Instance | None:
    """The least instance in which an unfolded body has a row: view rows stand for their whole bodies.

    Args:
        catalog: the warehouse's schema.
        body: a body, unfolded as far as it is known which rows are there after the update. An atom that is not
            unfolded further stands for a row: what proves it is left open.
        effective: whether deleted rows were there.
        asked: terms of the body to keep track of.

    Returns:
        The instance, not yet consistent; None if the body contradicts itself.
    """
    parts: dict[Version, list[Atom]] = {v: [] for v in Version}
    kept: list[Atom] = []
    tests: list[Literal] = []
    equal: list[tuple[Atom, Atom]] = []
    for number, literal in enumerate(body):
        match literal:
            case Atom(predicate=Predicate(version=Version.STORED)):
                row = _renamed(_stored(catalog.view(literal.predicate.name)), f"_f{number}")
                equal.append((row.head, literal))
                parts[Version.BEFORE] += [li for li in row.body if isinstance(li, Atom)]
                tests += [li for li in row.body if not isinstance(li, Atom)]
            case Atom(predicate=Predicate(version=Version.EXISTS)):
                parts[Version.EXISTS].append(_some_row(catalog, literal, f"_e{number}_"))
            case Atom():
                parts[literal.predicate.version].append(_base(literal))
            case Negation(body=(Atom(predicate=Predicate(version=Version.DELETED)) as gone,)):
                kept.append(_base(gone))
            case Negation():
                pass  # asked of the ground instance
            case _:
                tests.append(literal)
    before = [row for version in _BEFORE for row in parts[version]]
    before += parts[Version.DELETED] if effective else []
    made = Instance(
        before=_distinct(before),
        inserted=_distinct(parts[Version.INSERTED]),
        deleted=_distinct(parts[Version.DELETED]),
        kept=_distinct(kept),
        present=_distinct(parts[Version.PRESENT]),
        asked=tuple(asked),
    )
    return _tested(made, equal, tests)


def _stored(view: View) -> Rule:
    """A stored row with the body that it stands for: of a group, one row of the core."""
    if not isinstance(view, GroupedView):
        return Rule(view.head, (*view.body, *view.filters))
    head = view.grouped.stored(view.predicate, unused_prefix("A", view.core.body))
    return Rule(head, (*view.core.body, *view.core.filters))


def _tested(made: Instance, equal: Sequence[tuple[Atom, Atom]], tests: Sequence[Literal]) -> Instance | None:
    """With equalities and null tests carried out, and the comparisons noted."""
    left: list[Term] = [t for one, _ in equal for t in one.terms]
    right: list[Term] = [t for _, other in equal for t in other.terms]
    for test in tests:
        match test:
            case Comparison(operator="="):
                left.append(test.left)
                right.append(test.right)
            case NullTest(negated=False):
                left.append(test.term)
                right.append(Constant(None))
            case _:
                pass
    pair = Predicate("equal")
    substitution = unifier(Atom(pair, tuple(left)), Atom(pair, tuple(right)))
    if substitution is None:
        return None
    compared = [test for test in tests if isinstance(test, Comparison)]
    not_null = {t for test in compared for t in (test.left, test.right)}
    not_null |= {test.term for test in tests if isinstance(test, NullTest) and test.negated}
    if Constant(None) in not_null:
        return None
    ordered = tuple(test for test in compared if test.operator != "=")
    return replace(made, comparisons=ordered, settled=_variables(not_null)).under(substitution)


def _some_row(catalog: Catalog, atom: Atom, prefix: str) -> Atom:
    """A row of which some columns are given; the others are null where they may be: that meets nothing."""
    relation, given = (
        catalog.relations[atom.predicate.name],
        dict(zip(atom.predicate.columns, atom.terms, strict=True)),
    )
    new = (
        Constant(None) if i in relation.nullable else Variable(f"{prefix}{i}") for i in range(relation.arity)
    )
    return Atom(Predicate(relation.name), tuple(given.get(i, term) for i, term in enumerate(new)))


def _base(atom: Atom) -> Atom:
    return Atom(Predicate(atom.predicate.name), atom.terms)


def not_null_here(catalog: Catalog, instance: Instance) -> frozenset[Variable]:
    """The variables that are not null: those settled, and those in a column that never is."""
    return instance.settled | certain_variables(instance.atoms, catalog.relations)


def definitions(catalog: Catalog, situation: Situation, known: Sequence[Rule]) -> dict[Predicate, list[Rule]]:
    """The rules of the canonical database and of its after-image, by what they define."""
    return Program((*known, *after_rules(catalog, situation))).by_head()


Body = tuple[Literal, ...]


class Unfolding(Struct, frozen=True):
    """A body on its way down.

        r@inserted(X, Y), s@after(Y, Z)      becomes      r@inserted(X, Y), v2(Y, Z), not s@deleted(Y, Z)
                                             and          r@inserted(X, Y), s@inserted(Y, Z)

    Every row of the body is a row of one of the unfolded bodies: unfolding is exact.

    Attributes:
        body: some of its atoms unfolded.
    """

    body: Body
    number: int = 0

    def next(self, rules: Definitions) -> tuple[Unfolding, ...] | None:
        """The bodies that it is, one for each rule of one of its defined atoms; None if it has none.

        What is after the update comes first: then every atom that is left is a row from before it.
        """
        places = {li.predicate.version: i for i, li in reversed([*enumerate(self.body)]) if _is_defined(li)}
        at = next((places[version] for version in _DEFINED if version in places), None)
        if at is None:
            return None
        atom = self.body[at]
        assert isinstance(atom, Atom)
        found = []
        for rule in rules.get(atom.predicate, ()):
            fresh = _renamed(rule, f"_u{self.number}")
            meets = unifier(fresh.head, atom)
            if meets is not None:
                whole = (*self.body[:at], *fresh.body, *self.body[at + 1 :])
                moved = tuple(dict.fromkeys(apply_literal(meets, literal) for literal in whole))
                found.append(Unfolding(moved, self.number + 1))
        return tuple(found)

    @property
    def is_before(self) -> bool:
        """Whether every atom that is left is a row from before the update, or of the update."""
        return not any(isinstance(li, Atom) and li.predicate.version is Version.AFTER for li in self.body)


def unfolded(body: Sequence[Literal], rules: Definitions) -> Iterator[Body]:
    """The bodies that a body is, one for each way of choosing a rule for each of its defined atoms."""
    waiting = [Unfolding(tuple(body))]
    while waiting:
        current = waiting.pop()
        more = current.next(rules)
        if more is None:
            yield current.body
        else:
            waiting.extend(reversed(more))


def _renamed(rule: Rule, suffix: str) -> Rule:
    """The rule with variables of its own."""
    names: dict[Variable, Term] = {
        v: Variable(v.name + suffix) for v in variables_of([rule.head, *rule.body])
    }
    return apply_rule(names, rule)


def _is_defined(literal: Literal) -> TypeGuard[Atom]:
    return isinstance(literal, Atom) and literal.predicate.version in _DEFINED
