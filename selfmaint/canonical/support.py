"""The canonical database and its after-image, prepared for being put into other rules.

What one rule defines is unfolded into the rules that use it; what several rules define stays a predicate of its
own; what no rule defines is empty. Negations are prepared once and used in many rules.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Generic

from msgspec import Struct, field

from datalog.containment import minimise
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
    apply_atom,
    apply_literal,
    variables_of,
)
from datalog.rewrite import (
    drop_empty,
    drop_implied_negations,
    drop_unreachable,
    is_plain,
    propagate_equalities,
    unfold,
    unfold_negation,
    without_given,
)
from selfmaint.canonical.contributions import Contribution
from selfmaint.canonical.references import referenced_columns
from selfmaint.canonical.rules import after_rules, known_rules, wholly_known
from selfmaint.engine.protocol import D, Engine, Facts
from selfmaint.warehouse.catalog import Catalog
from selfmaint.warehouse.situation import Situation

IMPLICATION_LIMIT = 12
"""Negations of one rule are compared pairwise only up to so many."""


DISJUNCT_LIMIT = 8
"""A negation is split into at most so many."""

_GOAL = Predicate("bindings", Version.STEP)
_ASKED = Predicate("bindings", Version.STEP)


class _Negation(Struct, frozen=True):
    """What a negation has become, by those of its variables that the rule around it binds; each made once."""

    variables: frozenset[Variable]
    unfolded: list[tuple[frozenset[Variable], Negation | None]] = field(default_factory=list)
    split: dict[frozenset[Variable], tuple[Negation, ...]] = field(default_factory=dict)


class Support(Struct):
    """The rules of `relation@known` and `relation@after` in one situation.

    Attributes:
        definitions: predicates that one rule defines, unfolded.
        shared: the rules of the predicates that several rules define.
        empty: the predicates that have no rows.
        mark: how the suffixes of new variables inside negations start: as no variable of a view does.
        whole: the relations all of whose rows before the update are known.
    """

    definitions: Mapping[Predicate, Rule]
    shared: tuple[Rule, ...]
    empty: frozenset[Predicate]
    mark: str
    whole: frozenset[str] = frozenset()
    _negations: dict[Negation, _Negation] = field(default_factory=dict)
    _seen: dict[int, tuple[Negation, _Negation]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        catalog: Catalog,
        situation: Situation,
        kept: tuple[Contribution, ...],
        known: tuple[Rule, ...] | None = None,
    ) -> Support:
        """The support of a situation; from the rules of the canonical database, if they are at hand."""
        if known is None:
            known = known_rules(catalog, situation, kept)
        known_once = _defined_once(known)
        after = drop_empty(
            Program(after_rules(catalog, situation)), _undefined(catalog, Version.KNOWN, known)
        )
        unfolded = (without_given(rule) for rule in unfold(after, known_once).rules)
        after_flat = [rule for rule in unfolded if rule is not None]
        definitions = {**known_once, **_defined_once(after_flat)}
        shared = tuple(rule for rule in (*known, *after_flat) if rule.head.predicate not in definitions)
        empty = _undefined(catalog, Version.KNOWN, known) | _undefined(catalog, Version.AFTER, after_flat)
        empty |= frozenset(
            Predicate(name, Version.EXISTS, columns)
            for name, relation in catalog.relations.items()
            for columns in referenced_columns(catalog, relation)
        ) - {rule.head.predicate for rule in known}
        names = {v.name for view in catalog.views for v in variables_of(view.body)}
        mark = "n"
        while any(f"_{mark}" in name for name in names):
            mark += "n"
        whole = wholly_known(catalog, situation, kept) | situation.wholly_known
        return cls(definitions, shared, empty, mark, whole)

    def rule(self, head: Atom, positive: tuple[Literal, ...], negative: Iterable[Literal]) -> Rule | None:
        """A rule with the definitions unfolded; None if it can have no rows."""
        if any(isinstance(li, Atom) and li.predicate in self.empty for li in positive):
            return None
        names = variables_of([head, *positive])
        unfolded = unfold(Program((Rule(Atom(_GOAL, names), positive),)), self.definitions).rules
        if not unfolded:
            return None
        body = unfolded[0].body
        image: dict[Variable, Term] = dict(zip(names, unfolded[0].head.terms, strict=True))
        head = apply_atom(image, head)
        bound = frozenset(variables_of([head, *(li for li in body if not isinstance(li, Negation))]))
        moved = (apply_literal(image, li) for li in negative)
        return self.with_negations(Rule(head, body), self.prepared(moved, bound))

    def unfolded(self, rule: Rule) -> Rule | None:
        """A rule with the definitions unfolded; None if it can have no rows."""
        positive = tuple(literal for literal in rule.body if not isinstance(literal, Negation))
        return self.rule(rule.head, positive, [li for li in rule.body if isinstance(li, Negation)])

    def prepared(self, negative: Iterable[Literal], bound: frozenset[Variable]) -> tuple[Literal, ...] | None:
        """The negations of a rule with the definitions unfolded; None if one of them never holds.

        `bound` are the variables that the rule's positive literals bind.
        """
        made = [self.negation(li, bound) if isinstance(li, Negation) else li for li in negative]
        kept = tuple(dict.fromkeys(li for li in made if li is not None))
        if any(isinstance(li, Negation) and not li.body for li in kept):
            return None
        if len(kept) > IMPLICATION_LIMIT:
            return kept
        split = [self.disjuncts(li, bound) if isinstance(li, Negation) else (li,) for li in kept]
        rule = Rule(Atom(_GOAL, tuple(bound)), tuple(dict.fromkeys(li for part in split for li in part)))
        return drop_implied_negations(rule).body if len(rule.body) <= IMPLICATION_LIMIT else rule.body

    def with_negations(self, rule: Rule, negations: tuple[Literal, ...] | None) -> Rule | None:
        """A rule of positive literals with prepared negations; None if it can have no rows."""
        if negations is None:
            return None
        whole = propagate_equalities(Rule(rule.head, tuple(dict.fromkeys((*rule.body, *negations)))))
        return without_given(whole)

    def negation(self, negation: Negation, bound: frozenset[Variable]) -> Negation | None:
        """A negation with the definitions unfolded; None if its body can never hold. Prepared once."""
        its = self._its(negation)
        own = its.variables & bound
        for bindings, found in its.unfolded:
            if bindings == own:
                return found
        impossible = any(isinstance(li, Atom) and li.predicate in self.empty for li in negation.body)
        made = None if impossible else unfold_negation(negation, self.definitions, own, self.mark)
        its.unfolded.append((own, made))
        return made

    def disjuncts(self, negation: Negation, bound: frozenset[Variable]) -> tuple[Negation, ...]:
        """A prepared negation as several, none of which reads a shared predicate; those that others imply left out.

        `not (p, q)` where two rules define p is `not (p1, q)` and `not (p2, q)`. Bodies are minimised: a view row
        that supplies one fact often supplies the next. Above a limit the negation stays as it is.
        """
        its = self._its(negation)
        own = its.variables & bound
        if own not in its.split:
            its.split[own] = self._split(negation, own)
        return its.split[own]

    def _its(self, negation: Negation) -> _Negation:
        """What is kept of a negation; one that is asked for again is not compared with equal ones."""
        seen = self._seen.get(id(negation))
        if seen is not None:
            return seen[1]
        found = self._negations.get(negation)
        if found is None:
            found = self._negations[negation] = _Negation(frozenset(variables_of(negation.body)))
        self._seen[id(negation)] = negation, found
        return found

    def _split(self, negation: Negation, bound: frozenset[Variable]) -> tuple[Negation, ...]:
        if self._combinations(negation) > DISJUNCT_LIMIT:
            return (negation,)
        waiting, done = [negation], []
        while waiting:
            current = waiting.pop()
            rules = self._shared_rules(current)
            if not rules:
                done.append(_minimised(current, bound))
            for rule in rules:
                unfolded = unfold_negation(current, {rule.head.predicate: rule}, bound, self.mark)
                if unfolded is not None:
                    waiting.append(unfolded)
        kept = drop_implied_negations(Rule(Atom(_GOAL, tuple(bound)), tuple(done))).body
        return tuple(li for li in kept if isinstance(li, Negation))

    def _combinations(self, negation: Negation) -> int:
        """How many ways there are to choose a rule for each shared predicate of a body."""
        counts = [
            sum(rule.head.predicate == li.predicate for rule in self.shared)
            for li in negation.body
            if isinstance(li, Atom)
        ]
        return prod(count for count in counts if count)

    def _shared_rules(self, negation: Negation) -> list[Rule]:
        """The rules of the first shared predicate of a body; unfolding replaces all its atoms by one rule's body.

        An atom that is not alone in its predicate would need every combination of rules: then there are none.
        """
        atoms = [li for li in negation.body if isinstance(li, Atom)]
        for atom in atoms:
            rules = [rule for rule in self.shared if rule.head.predicate == atom.predicate]
            alone = sum(other.predicate == atom.predicate for other in atoms) == 1
            if rules and alone and all(is_plain(rule) for rule in rules):
                return rules
        return []

    def program(self, rules: Iterable[Rule], goals: Iterable[Predicate]) -> Program:
        """The rules with those of the shared predicates that they use."""
        return drop_unreachable(Program((*rules, *self.shared)), goals)


def _minimised(negation: Negation, bound: frozenset[Variable]) -> Negation:
    """The negation without atoms that the others imply."""
    return Negation(minimise(Rule(Atom(_GOAL, tuple(bound)), negation.body)).body)


def _defined_once(rules: Iterable[Rule]) -> dict[Predicate, Rule]:
    """The predicates that one rule defines, where the rule can be put in place of its head anywhere."""
    by_head = Program(tuple(rules)).by_head()
    return {p: found[0] for p, found in by_head.items() if len(found) == 1 and is_plain(found[0])}


def _undefined(catalog: Catalog, version: Version, rules: Iterable[Rule]) -> frozenset[Predicate]:
    return frozenset(Predicate(name, version) for name in catalog.relations) - {
        r.head.predicate for r in rules
    }


class Bindings(Struct, Generic[D], frozen=True):
    """Values for some variables, held by the engine; never empty."""

    variables: tuple[Variable, ...]
    rows: D


@dataclass(frozen=True, eq=False)
class CanonicalDatabase(ABC, Generic[D]):
    """The canonical database and the facts that prove it: what rules over it are evaluated on.

    Attributes:
        engine: holds the facts, and evaluates.
        situation: the kinds of it.
        kept: what was found with it, each thing once.
    """

    engine: Engine[D]
    facts: Facts[D]
    situation: Situation
    kept: dict[object, Any] = dataclasses.field(default_factory=dict, init=False, repr=False)

    @property
    @abstractmethod
    def catalog(self) -> Catalog:
        """The warehouse's schema."""

    @property
    @abstractmethod
    def support(self) -> Support:
        """Its rules, prepared for use in others."""

    def bindings(
        self,
        bodies: Iterable[Sequence[Literal]],
        wanted: Sequence[Variable],
        given: Mapping[Predicate, D] | None = None,
    ) -> Bindings[D] | None:
        """The values of some variables for which one of some bodies holds; None if there are none.

        The bodies are of atoms over what is known, comparisons, null tests and negations, and bind every wanted
        variable.
        """
        rows = self.rows((Rule(Atom(_ASKED, tuple(wanted)), tuple(body)) for body in bodies), given)
        return None if rows is None else Bindings(tuple(wanted), rows)

    def rows(self, rules: Iterable[Rule], given: Mapping[Predicate, D] | None = None) -> D | None:
        """The rows of the one predicate that some rules over what is known define, held; None if there are none."""
        made = [self._prepared(rule) for rule in rules]
        program = [rule for rule in made if rule is not None]
        if not program:
            return None
        goal = program[0].head.predicate
        names = [f"x{i}" for i in range(program[0].head.arity)]
        facts = self.facts.extended(given) if given else self.facts
        found = self.engine.evaluate(self.support.program(program, [goal]), goal, facts, names)
        held = self.engine.keep(found)
        return held if self.engine.count(held) else None

    def _prepared(self, rule: Rule) -> Rule | None:
        positive = tuple(li for li in rule.body if isinstance(li, Atom | Comparison | NullTest))
        return self.support.rule(rule.head, positive, (li for li in rule.body if isinstance(li, Negation)))
