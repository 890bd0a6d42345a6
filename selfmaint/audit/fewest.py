"""The fewest rules of the canonical database that prove all its rows: what the audit unfolds.

A rule is left out where another one proves each of its rows in every warehouse that satisfies the constraints. It is
put as a query over the base relations, views as their bodies, and completed with the rows that foreign keys ask for;
of what it is then contained in (`datalog.containment`) it proves no more.

    store@known(S, C) :- sold(T, S, C).      with    sold(T, S, C) :- sale(T, S), store(S, C).
    store@known(S, C) :- stores(S, C).       with    stores(S, C) :- store(S, C).             proves all of the first's

Conditions of exactness:

1. The rules that are left have the same rows as all of them, in each warehouse that satisfies the constraints. So
   the same rows of the update give a rule of the test a row, by fewer bodies. What a rule negates is asked of the
   ground warehouse, with all rules: nothing is left out there.
2. A stored row of the rule that is left out stands for a match of its view's body; one of a group, for a match of the
   core's. A row of a partial copy, or that an effective update deletes, was in the database; and so was each row that
   a rule proves, and what an inserted row references if no row that is referenced so is inserted.
3. A match of the body of the rule that is kept must be a row that is stored: the view has no projection, or stores
   every group that has a core row. Rows of partial copies and of the update prove no others.
4. A row that a foreign key references is there where no referencing value is null. Of its other columns nothing is
   known but that some are never null. Rows that agree on a key are one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from msgspec import Struct, field

from datalog.containment import mappings
from datalog.containment.mapping import match_atom
from datalog.model import (
    Atom,
    Comparison,
    Literal,
    Negation,
    NullTest,
    Predicate,
    Program,
    Rule,
    Term,
    Variable,
    Version,
    apply_comparison,
    variables_of,
)
from datalog.order import implies
from selfmaint.audit.instance import Definitions, Instance, definitions, frozen, not_null_here
from selfmaint.decide.decision import Decision
from selfmaint.warehouse.base_relations import variable_types
from selfmaint.warehouse.catalog import Catalog, GroupedView, certain_variables
from selfmaint.warehouse.constraints import Reference, merged_by_keys, never_null
from selfmaint.warehouse.situation import Situation

MAPPINGS = 20
"""So many mappings of one query to another are tried."""

LEVELS = 8
"""So far references are followed."""

_THERE = (Version.STORED, Version.PRESENT, Version.DELETED, Version.BEFORE)


class _Query(Struct, frozen=True):
    """A query over the base relations.

    Attributes:
        asked: the terms of its rows.
        not_null: variables that are not null.
    """

    asked: tuple[Term, ...]
    body: tuple[Atom, ...]
    comparisons: tuple[Comparison, ...]
    not_null: frozenset[Variable]


class _Meaning(Struct, frozen=True):
    """A rule as a query over the base relations.

    Attributes:
        weak: with what the columns promise left out, to contain others; None if the rule never has a row.
        strong: with what the constraints imply, to be contained; None if the rule never has a row.
        size: the number of its literals.
        is_exact: whether the rule has a row for each match of its body.
    """

    weak: _Query | None
    strong: _Query | None
    size: int
    is_exact: bool


class Fewest(Struct, frozen=True):
    """Which rules of the canonical database are needed; each pair of them is compared once."""

    decision: Decision
    _definitions: dict[Situation, Definitions] = field(default_factory=dict)
    _meanings: dict[Rule, _Meaning] = field(default_factory=dict)
    _compared: dict[tuple[Rule, Rule], bool] = field(default_factory=dict)

    @property
    def catalog(self) -> Catalog:
        """The views and constraints."""
        return self.decision.catalog

    def definitions(self, situation: Situation) -> Definitions:
        """The rules that are unfolded in a situation, by what they define."""
        if situation not in self._definitions:
            known = self.of(self.decision.known(situation))
            self._definitions[situation] = definitions(self.catalog, situation, known)
        return self._definitions[situation]

    def of(self, rules: Sequence[Rule]) -> tuple[Rule, ...]:
        """The rules that are needed of those of one situation, small ones first."""
        heads = Program(tuple(rules)).by_head().values()
        return tuple(rule for its in heads for rule in self._needed(its))

    def _needed(self, rules: list[Rule]) -> list[Rule]:
        """Those of one predicate."""
        kept: list[Rule] = []
        for rule in sorted(rules, key=lambda rule: self._meaning(rule).size) if len(rules) > 1 else rules:
            if not any(self._proves(other, rule) for other in kept):
                kept = [other for other in kept if not self._proves(rule, other)]
                kept.append(rule)
        return kept

    def _proves(self, rule: Rule, other: Rule) -> bool:
        """Whether a rule proves each row of another one."""
        if (rule, other) not in self._compared:
            kept, left_out = self._meaning(rule), self._meaning(other)
            self._compared[rule, other] = left_out.strong is None or (
                kept.weak is not None and kept.is_exact and self._is_contained(left_out.strong, kept.weak)
            )
        return self._compared[rule, other]

    def _is_contained(self, query: _Query, other: _Query) -> bool:
        """Whether a query is contained in another one, by one mapping whatever the values."""
        rows = Predicate("rows")
        start = match_atom(Atom(rows, other.asked), Atom(rows, query.asked), {})
        types = variable_types(query.body, self.catalog.relations)
        return start is not None and any(
            all(never_null(found[variable], query.not_null) for variable in other.not_null)
            and all(implies(query.comparisons, apply_comparison(found, c), types) for c in other.comparisons)
            for found in islice(mappings(other.body, query.body, start), MAPPINGS)
        )

    def _meaning(self, rule: Rule) -> _Meaning:
        if rule not in self._meanings:
            plain = tuple(li for li in rule.body if _is_there(li))
            weak = frozen(self.catalog, plain, effective=True, asked=rule.head.terms)
            proved = (*plain, *self._proved(rule))
            strong = frozen(self.catalog, proved, effective=True, asked=rule.head.terms)
            self._meanings[rule] = _Meaning(
                None if weak is None else self._query(weak),
                None if strong is None else self._completed(strong),
                len(rule.body),
                len(plain) == len(rule.body) and all(map(self._is_stored, rule.atoms)),
            )
        return self._meanings[rule]

    def _query(self, instance: Instance) -> _Query:
        promised = certain_variables(instance.before, self.catalog.relations)
        return _Query(instance.asked, instance.before, instance.comparisons, instance.settled - promised)

    def _proved(self, rule: Rule) -> Iterator[Atom]:
        """Condition 2: the row that a rule proves, and what its inserted rows reference."""
        columns = rule.head.predicate.columns or tuple(range(rule.head.arity))
        yield self._row(rule.head.predicate.name, columns, rule.head.terms, "_h")
        tested = {li.term for li in rule.body if isinstance(li, NullTest) and li.negated}
        for new in rule.atoms:
            if new.predicate.version is Version.INSERTED:
                relation = self.catalog.relations[new.predicate.name]
                for at, reference in enumerate(relation.references):
                    key = reference.key_of(new)
                    never = (
                        t in tested or i not in relation.nullable
                        for i, t in zip(reference.columns, key, strict=True)
                    )
                    if all(never) and any(_says_none(rule, li, reference, key) for li in rule.body):
                        yield self._row(reference.target, reference.target_columns, key, f"_i{at}_")

    def _row(self, name: str, columns: Sequence[int], given: Sequence[Term], prefix: str) -> Atom:
        """A row from before the update of which some columns are given."""
        terms: list[Term] = [Variable(f"{prefix}{i}") for i in range(self.catalog.relations[name].arity)]
        for column, term in zip(columns, given, strict=True):
            terms[column] = term
        return Atom(Predicate(name, Version.BEFORE), tuple(terms))

    def _is_stored(self, atom: Atom) -> bool:
        """Condition 3, of one row of a rule's body."""
        if atom.predicate.version is not Version.STORED:
            return atom.predicate.version is Version.BEFORE
        view = self.catalog.view(atom.predicate.name)
        return view.limitation is None if not isinstance(view, GroupedView) else view.grouped.tells_absence

    def _completed(self, instance: Instance) -> _Query | None:
        """Condition 4."""
        relations = self.catalog.relations
        image = merged_by_keys(instance.before, relations, not_null_here(self.catalog, instance))
        moved = None if image is None else instance.under(image)
        if moved is None:
            return None
        body, certain = moved.before, not_null_here(self.catalog, moved)
        for level in range(LEVELS):
            more = self._referenced(body, certain, level)
            if not more:
                break
            body = (*body, *more)
            certain |= certain_variables(more, relations)
        return _Query(moved.asked, body, moved.comparisons, certain)

    def _referenced(self, body: Sequence[Atom], certain: frozenset[Variable], level: int) -> tuple[Atom, ...]:
        """The rows that are referenced and not in a body."""
        found: dict[tuple[object, ...], Atom] = {}
        for atom in body:
            for reference in self.catalog.relations[atom.predicate.name].references:
                key, target = reference.key_of(atom), reference.target
                there = (other for other in body if other.predicate.name == target)
                is_missing = not any(reference.key_in(other) == key for other in there)
                if is_missing and all(never_null(term, certain) for term in key):
                    row = self._row(target, reference.target_columns, key, f"_t{level}_{len(found)}_")
                    found.setdefault(
                        (target, reference.target_columns, key), Atom(Predicate(target), row.terms)
                    )
        return tuple(found.values())


def _is_there(literal: Literal) -> bool:
    """Whether a literal speaks of the database before the update alone."""
    return isinstance(literal, Comparison | NullTest) or (
        isinstance(literal, Atom) and literal.predicate.version in _THERE
    )


def _says_none(rule: Rule, literal: Literal, reference: Reference, key: tuple[Term, ...]) -> bool:
    """Whether a literal of a rule says that no inserted row is referenced by a key."""
    match literal:
        case Negation(body=(Atom(predicate=Predicate(version=Version.INSERTED)) as none,)):
            others = [t for i, t in enumerate(none.terms) if i not in reference.target_columns]
            bound = variables_of([rule.head, *(li for li in rule.body if li is not literal)])
            return (
                none.predicate.name == reference.target
                and reference.key_in(none) == key
                and len({*others}) == len(others)
                and all(isinstance(t, Variable) and t not in bound for t in others)
            )
        case _:
            return False
