"""Evaluation for large data: joins from the update outwards, one step at a time.

Every rule of a test or of maintenance starts at inserted or deleted rows. Each step meets the bindings so far with
one more relation and is held by the engine: it is small, its size and bounds are then known, and the next step
reads the large relation once, restricted to the keys that the bindings hold (the magic-set idea). Equal steps of
different rules are evaluated once; an empty step ends its rule.

Condition of soundness: a row gained by a derivation all of whose facts were known before is in the view already.
So an anchor may be taken from the rows that arrived, inserted and not known before, and a row gained needs no
look into the view.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic

from datalog.model import (
    Atom,
    Literal,
    Negation,
    Predicate,
    Program,
    Row,
    Rule,
    Term,
    Variable,
    Version,
    apply_rule,
    variables_of,
)
from datalog.rewrite.reachable import predicates_of
from selfmaint.canonical.references import row_atom
from selfmaint.canonical.support import Support
from selfmaint.engine.lookups import Near
from selfmaint.engine.protocol import D, Engine, Facts
from selfmaint.warehouse.catalog import BaseRelation
from selfmaint.warehouse.situation import Situation

_KEYS = Predicate("keys", Version.STEP)
_REACH = Predicate("reach", Version.STEP)
_SOURCE = Predicate("source", Version.STEP)
_BINDINGS = Predicate("bindings", Version.STEP)


@dataclass(frozen=True)
class Bindings(Generic[D]):
    """Values for some variables, held by the engine; never empty."""

    variables: tuple[Variable, ...]
    rows: D


@dataclass
class Stages(Generic[D]):
    """Stepwise evaluation over one state of knowledge.

    Attributes:
        engine: evaluates and holds the steps.
        support: the canonical database's rules.
        situation: the kinds of facts known.
        facts: everything known.
        near: the same, to be looked up in: what stays below its limits needs no steps.
        held: the steps so far, by what they read (kept alive, as it is told by identity); may be shared between
            states of knowledge.
        answers: what was found by look-ups, by goal; None for a goal that they do not answer.
        changes: the changes of views that group, by the view's name and by whether its open groups are known whole;
            not shared with another state.
    """

    engine: Engine[D]
    support: Support
    situation: Situation
    facts: Facts[D]
    near: Near[D]
    held: dict[object, tuple[Bindings[D] | None, list[D]]] = field(default_factory=dict)
    answers: dict[Predicate, frozenset[Row] | None] = field(default_factory=dict)
    changes: dict[tuple[str, bool], object] = field(default_factory=dict)
    _arrived: dict[str, bool] = field(default_factory=dict)
    _number: int = 0

    def __post_init__(self) -> None:
        self._given = self.facts  # `facts` grows with the steps

    def is_over(self, engine: Engine[D], facts: Facts[D], situation: Situation) -> bool:
        """Whether this is the state of these facts in this situation: what was found holds in no other."""
        return self.engine is engine and self._given is facts and self.situation == situation

    def arrived(self, relation: BaseRelation) -> Predicate | None:
        """The predicate of the inserted rows that are not known to have been there; None if there are none."""
        predicate = Predicate(relation.name, Version.ARRIVED)
        if relation.name not in self._arrived:
            inserted = row_atom(relation, Version.INSERTED)
            start = self.joined((inserted,), variables_of([inserted]))
            if start is not None and not self.engine.count(start.rows):
                start = None
            if start is not None and not self.situation.effective:
                start = self.without(start, [Negation((row_atom(relation, Version.KNOWN),))])
            self._arrived[relation.name] = start is not None
            if start is not None:
                columns = {predicate: self.facts.not_null.get(inserted.predicate, frozenset())}
                self.facts = self.facts.extended({predicate: start.rows}, not_null=columns)
        return predicate if self._arrived[relation.name] else None

    def joined(self, body: Sequence[Literal], wanted: Sequence[Variable]) -> Bindings[D] | None:
        """The bindings of `wanted` that satisfy a body; None if there are none.

        Args:
            body: an atom over a small relation first, then atoms, each joined to what stands before it where
                possible, and comparisons or null tests, which apply as soon as they are bound.
            wanted: variables to keep.
        """
        atoms = [li for li in body if isinstance(li, Atom)]
        filters = [li for li in body if not isinstance(li, Atom)]
        every = frozenset(variables_of(atoms))  # a negation has variables of its own besides
        current: Bindings[D] | None = None
        for at, atom in enumerate(atoms):
            seen = variables_of(atoms[: at + 1])
            tests = [f for f in filters if every.intersection(variables_of([f])) <= set(seen)]
            filters = [f for f in filters if f not in tests]
            waiting = [*atoms[at + 1 :], *filters]
            later = {*wanted, *variables_of(waiting)}
            keep = tuple(v for v in seen if v in later) if waiting else tuple(wanted)
            current = self._step(current, atom, tests, keep)
            if current is None:
                return None
        if current is None or current.variables == tuple(wanted):
            return current
        return Bindings(tuple(wanted), self._projected(current, tuple(wanted)))

    def without(self, start: Bindings[D], negations: Iterable[Literal]) -> Bindings[D] | None:
        """The bindings that satisfy some negations, each asked only for those that are left; None if none is."""
        bound = frozenset(start.variables)
        prepared = (self.support.negation(n, bound) for n in negations if isinstance(n, Negation))
        every = [part for n in prepared if n is not None for part in self.support.disjuncts(n, bound)]
        current = start
        for negation in sorted(dict.fromkeys(every), key=self._effort):
            left = self._refuted(current, negation)
            if left is None:
                return None
            current = left
        return current

    def _effort(self, negation: Negation) -> tuple[int, int]:
        """Those that read no large relation first, then those that read few."""
        atoms = [li for li in negation.body if isinstance(li, Atom)]
        return sum(atom.predicate not in self.facts.small for atom in atoms), len(atoms)

    def united(self, parts: Sequence[Bindings[D]]) -> Bindings[D] | None:
        """The union of bindings of the same variables."""
        if len(parts) <= 1:
            return next(iter(parts), None)
        return Bindings(
            parts[0].variables, self.engine.keep(self.engine.union([part.rows for part in parts]))
        )

    def _refuted(self, current: Bindings[D], negation: Negation) -> Bindings[D] | None:
        atoms = [li for li in negation.body if isinstance(li, Atom)]
        here = self._predicate()
        if not atoms:
            rule = Rule(Atom(here, current.variables), (self._atom(here, current), negation))
            return self._held(current, rule, {})
        shared = tuple(v for v in variables_of(negation.body) if v in current.variables)
        tests = [li for li in negation.body if not isinstance(li, Atom)]
        ordered = _connected(frozenset(shared), atoms)
        if not shared:
            found = Rule(Atom(here, ()), (*ordered, *tests))
            holds = self.engine.nonempty(self.support.program([found], [here]), [here], self.facts)
            return None if holds else current
        key_atom = Atom(self._predicate(), shared)
        self.facts = self.facts.extended({key_atom.predicate: self._projected(current, shared)})
        hit = self.joined((key_atom, *ordered, *tests), shared)
        if hit is None:
            return current
        hits = self._predicate()
        rule = Rule(
            Atom(here, current.variables), (self._atom(here, current), Negation((Atom(hits, hit.variables),)))
        )
        return self._held(current, rule, {hits: hit.rows})

    def _held(self, current: Bindings[D], rule: Rule, more: dict[Predicate, D]) -> Bindings[D] | None:
        """The rows of a rule over the current bindings and some more relations."""
        source = self._atom(rule.head.predicate, current).predicate
        goal = rule.head.predicate
        facts = Facts({source: current.rows, **more}, {}, frozenset({source, *more}))
        rows = self.engine.keep(
            self.engine.evaluate(Program((rule,)), goal, facts, _names(current.variables))
        )
        return Bindings(current.variables, rows) if self.engine.count(rows) else None

    def _projected(self, current: Bindings[D], variables: tuple[Variable, ...]) -> D:
        goal = self._predicate()
        source = self._atom(goal, current)
        facts = Facts({source.predicate: current.rows}, {}, frozenset({source.predicate}))
        return self.engine.evaluate(
            Program((Rule(Atom(goal, variables), (source,)),)), goal, facts, _names(variables)
        )

    def _step(
        self, current: Bindings[D] | None, atom: Atom, tests: Sequence[Literal], keep: tuple[Variable, ...]
    ) -> Bindings[D] | None:
        if current is None:
            return self._first(atom, tests, keep)
        return self._next(current, atom, tests, keep)

    def _first(self, atom: Atom, tests: Sequence[Literal], keep: tuple[Variable, ...]) -> Bindings[D] | None:
        """The first atom's rows, as they are where nothing restricts them."""
        given = self.facts.relations.get(atom.predicate)
        terms = tuple(t for t in atom.terms if isinstance(t, Variable))
        if given is not None and not tests and len(set(terms)) == atom.arity:
            return Bindings(terms, given)
        goal = self._predicate()
        rule = self.support.rule(Atom(goal, keep), (atom, *tests), ())
        return None if rule is None else self._kept(rule, goal, keep, self.facts)

    def _next(
        self, current: Bindings[D], atom: Atom, tests: Sequence[Literal], keep: tuple[Variable, ...]
    ) -> Bindings[D] | None:
        """Reads the atom's relation for the keys at hand, then joins; once for equal steps."""
        mine = variables_of([atom])
        shared = tuple(v for v in mine if v in current.variables)
        bound = {*mine, *current.variables}
        local = [t for t in tests if bound.intersection(variables_of([t])) <= set(mine)]
        others = [t for t in tests if t not in local]
        reached = tuple(v for v in mine if v in keep or v in shared or v in variables_of(others))
        lookup = (Atom(_KEYS, shared),) if shared else ()
        rule = self.support.rule(Atom(_REACH, reached), (*lookup, atom, *local), ())
        if rule is None:
            return None
        program = self.support.program([rule], [_REACH])
        join = Rule(Atom(_BINDINGS, keep), (Atom(_SOURCE, current.variables), Atom(_REACH, reached), *others))
        key = (id(current.rows), *_canonical([join, rule]), program.rules[1:], self._identities(program))
        if key not in self.held:
            facts = self.facts.extended({_KEYS: self._projected(current, shared)} if shared else {})
            found = self.engine.evaluate(program, _REACH, facts, _names(reached))
            both = {_SOURCE: current.rows, _REACH: found}
            negated = any(isinstance(other, Negation) for other in others)
            facts = self.facts.extended(both) if negated else Facts(both, {}, frozenset(both))
            read = [self.facts.relations[p] for p, _ in self._identities(program)]
            self.held[key] = (self._kept(join, _BINDINGS, keep, facts), [current.rows, *read])
        made = self.held[key][0]
        return None if made is None else Bindings(keep, made.rows)

    def _identities(self, program: Program) -> frozenset[tuple[Predicate, int]]:
        """Which relations a program reads."""
        read = {p for rule in program.rules for p in predicates_of(rule.body)}
        return frozenset((p, id(self.facts.relations[p])) for p in read if p in self.facts.relations)

    def _kept(
        self, rule: Rule, goal: Predicate, keep: tuple[Variable, ...], facts: Facts[D]
    ) -> Bindings[D] | None:
        program = self.support.program([rule], [goal])
        rows = self.engine.keep(self.engine.evaluate(program, goal, facts, _names(keep)))
        return Bindings(keep, rows) if self.engine.count(rows) else None

    def _predicate(self) -> Predicate:
        self._number += 1
        return Predicate("step", Version.STEP, (self._number,))

    def _atom(self, goal: Predicate, current: Bindings[D]) -> Atom:
        """The current bindings as an atom, beside a goal of their own."""
        return Atom(Predicate("bindings", Version.STEP, goal.columns), current.variables)


def _names(variables: Sequence[Variable]) -> list[str]:
    return [f"x{i}" for i in range(len(variables))]


def _connected(bound: frozenset[Variable], atoms: Sequence[Atom]) -> list[Atom]:
    """The atoms reordered so that each joins with what stands before it, where possible."""
    waiting, known, ordered = list(atoms), set(bound), []
    while waiting:
        chosen = max(waiting, key=lambda a: len(known.intersection(a.terms)))
        waiting.remove(chosen)
        known.update(variables_of([chosen]))
        ordered.append(chosen)
    return ordered


def _canonical(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """The rules with their variables named by order of appearance: equal for rules that differ in names only."""
    names: dict[Variable, Term] = {}
    for rule in rules:
        for variable in variables_of([*rule.body, rule.head]):
            names.setdefault(variable, Variable(f"V{len(names)}"))
    return tuple(apply_rule(names, rule) for rule in rules)
