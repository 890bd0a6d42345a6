"""Certificates of a "no": two databases that agree with everything known and disagree after the update.

The first is the canonical database D^, the second D^ and the new facts of one witness. Both are evaluated again,
by programs that share nothing with the test: the definition, applied to these two databases.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from datalog.model import (
    ANY,
    Atom,
    Constant,
    Literal,
    Negation,
    Predicate,
    Program,
    Row,
    Rule,
    Value,
    Variable,
    Version,
    apply_atom,
)
from datalog.rewrite import drop_empty
from selfmaint.canonical import after_rules, row_atom
from selfmaint.decide.knowledge import Knowledge
from selfmaint.decide.new_facts import NewFacts
from selfmaint.decide.pairs import (
    ATTEMPTS,
    COMPLETE_ROWS,
    Counterexample,
    chosen_values,
    fresh_values,
    given,
    ground_facts,
    placed_values,
    row_of,
    two_databases,
    value_of,
)
from selfmaint.decide.positions import substitution
from selfmaint.decide.saturation import saturated
from selfmaint.decide.verdict import Witness
from selfmaint.engine.protocol import D, Engine
from selfmaint.warehouse.catalog import Catalog, View
from selfmaint.warehouse.situation import Situation


class NotConfirmedError(AssertionError):
    """A counterexample that its own evaluation does not confirm: a broken invariant of this package."""


def counterexample(known: Knowledge[D], witness: Witness) -> Counterexample:
    """The counterexample of a witness, evaluated again.

    Args:
        known: everything known.
        witness: one witness of a failing test.

    Raises:
        NotConfirmedError: the two databases do not do what they should.
    """
    known = saturated(known)
    at_hand, catalog = given(known), known.catalog
    if at_hand is not None:
        found = two_databases(at_hand, witness)
        if found is not None:
            return found
    problem = "no two databases were found" if at_hand is not None else ""
    for attempt in range(ATTEMPTS if at_hand is None else 0):
        values = {**chosen_values(witness), **fresh_values(catalog, witness.new_facts, attempt)}
        values |= next(placed_values(catalog, (), witness.new_facts, values), {})
        added = ground_facts(witness, values)
        held = known.learning(known.facts.extended(_loaded(catalog, known.engine, added)))
        problem = _problem(held, witness.new_facts, values)
        if not problem:
            return _certificate(known, witness, values, added)
    raise NotConfirmedError(f"the counterexample for `{witness.new_facts.view.name}` is not one: {problem}")


def _loaded(catalog: Catalog, engine: Engine[D], added: Mapping[str, frozenset[Row]]) -> dict[Predicate, D]:
    loaded = {}
    for name, rows in added.items():
        relation = catalog.relations[name]
        loaded[Predicate(name, Version.NEW)] = engine.load(rows, relation.columns, relation.types or [ANY])
    return loaded


def _problem(known: Knowledge[D], new_facts: NewFacts, values: Mapping[Variable, Value]) -> str:
    """What is wrong with the second database, or nothing: it must explain what is known, and differ after U."""
    catalog, situation = known.catalog, known.situation
    added = {p.name for p in known.facts.relations if p.version is Version.NEW}
    base = [*known.decision.known(situation), *after_rules(catalog, situation)]
    base += _second_database(catalog, situation, added)
    contradictions = list(_contradictions(catalog, situation, added))
    differs = _difference(new_facts, values)
    goals = {rule.head.predicate: message for rule, message in contradictions}
    program = Program((*(rule for rule, _ in contradictions), *differs, *base))
    defined = {rule.head.predicate for rule in program.rules}
    missing = [Predicate(n, v) for n in catalog.relations for v in (Version.KNOWN, Version.AFTER)]
    program = drop_empty(program, [p for p in missing if p not in defined])
    asked = [goal for goal in (*goals, *_OUTCOMES) if program.rules_for(goal)]
    found = known.engine.nonempty(program, asked, known.facts)
    for goal, message in goals.items():
        if goal in found:
            return message
    if _ON_SECOND not in found:
        return "the row is not derived on the second database"
    if _ON_FIRST in found:
        return "the row is derived on the first database too"
    return ""


_ON_FIRST = Predicate("row on the first database", Version.PROBLEM)
_ON_SECOND = Predicate("row on the second database", Version.PROBLEM)
_OUTCOMES = (_ON_FIRST, _ON_SECOND)


def _second_database(catalog: Catalog, situation: Situation, added: set[str]) -> Iterator[Rule]:
    """The second database and its after-image, written out from the definition."""
    for name, relation in catalog.relations.items():
        possible, after = row_atom(relation, Version.POSSIBLE), row_atom(relation, Version.POSSIBLE_AFTER)
        yield Rule(possible, (row_atom(relation, Version.KNOWN),))
        if name in added:
            yield Rule(possible, (row_atom(relation, Version.NEW),))
        gone = (Negation((row_atom(relation, Version.DELETED),)),) if name in situation.deleted else ()
        yield Rule(after, (possible, *gone))
        if name in situation.inserted:
            yield Rule(after, (row_atom(relation, Version.INSERTED),))


def _contradictions(catalog: Catalog, situation: Situation, added: set[str]) -> Iterator[tuple[Rule, str]]:
    """Ways for the second database not to explain what is known; the first explains it by its making."""
    for number, (row, body, message) in enumerate(_contradicting(catalog, situation, added)):
        yield Rule(row.of(Version.PROBLEM, (number,)), body), message


def _contradicting(
    catalog: Catalog, situation: Situation, added: set[str]
) -> Iterator[tuple[Atom, tuple[Literal, ...], str]]:
    for view in catalog.views:
        for index, atom in enumerate(view.body):
            if view.limitation is None and atom.predicate.name in added:
                yield view.head, _using(view, index), f"{view.shown} would have more rows"
    for name in sorted(added):
        relation = catalog.relations[name]
        new = row_atom(relation, Version.NEW)
        for version, message in _forbidden(situation, name):
            yield new, (new, row_atom(relation, version)), message
        if name in situation.readable:
            outside = Negation((row_atom(relation, Version.BEFORE),))
            yield new, (new, outside), "a readable relation does not have it"
        for region in sorted((r for r in situation.regions if r.name == name), key=lambda r: r.columns):
            key = Atom(region, tuple(new.terms[i] for i in region.columns))
            unknown = Negation((row_atom(relation, Version.KNOWN),))
            body: tuple[Literal, ...] = (new, key, unknown) if region.columns else (new, unknown)
            yield new, body, "the relation was read for its key"


def _using(view: View, index: int) -> tuple[Literal, ...]:
    """The view's body with one subgoal a new fact, for a row that is not stored."""
    others = (a.of(Version.POSSIBLE) for i, a in enumerate(view.body) if i != index)
    return (view.body[index].of(Version.NEW), *others, *view.filters, Negation((view.head,)))


def _forbidden(situation: Situation, name: str) -> Iterator[tuple[Version, str]]:
    if name in situation.absent:
        yield Version.ABSENT, "a fact known to be absent"
    if situation.effective and name in situation.inserted:
        yield Version.INSERTED, "an inserted fact that was there before"


def _difference(new_facts: NewFacts, values: Mapping[Variable, Value]) -> list[Rule]:
    """The one derivation of the row, on the second and on the first database, after the update."""
    ground = {v: Constant(x) for v, x in values.items()}
    chosen = substitution(dict(new_facts.positions))
    atoms = [apply_atom(ground, apply_atom(chosen, atom)) for atom in new_facts.instance.body]
    return [
        Rule(Atom(goal, ()), tuple(a.of(version) for a in atoms))
        for goal, version in ((_ON_SECOND, Version.POSSIBLE_AFTER), (_ON_FIRST, Version.AFTER))
    ]


def _certificate(
    known: Knowledge[D],
    witness: Witness,
    values: Mapping[Variable, Value],
    added: Mapping[str, frozenset[Row]],
) -> Counterexample:
    """The two databases whole if they are small, else the facts that the row's derivation uses."""
    row, engine = row_of(witness, values), known.engine
    program = Program(known.decision.known(known.situation))
    versions = (Version.KNOWN, Version.INSERTED, Version.DELETED)
    whole: dict[Version, dict[str, frozenset[Row]]] = {version: {} for version in versions}
    for version, found in whole.items():
        for name, relation in known.catalog.relations.items():
            predicate = Predicate(name, version)
            if program.rules_for(predicate) or predicate in known.facts.relations:
                rows = engine.evaluate(program, predicate, known.facts, relation.columns)
                found[name] = frozenset(engine.sample(rows, COMPLETE_ROWS + 1))
    if all(len(rows) <= COMPLETE_ROWS for found in whole.values() for rows in found.values()):
        first, inserted, deleted = whole.values()
        return Counterexample(witness, row, first, added, inserted, deleted, complete=True)
    used: dict[str, set[Row]] = {}
    arriving: dict[str, set[Row]] = {}
    for j in witness.new_facts.outside:
        atom = witness.new_facts.instance.body[j]
        fact = tuple(value_of(t, values) for t in atom.terms)
        arrived = Atom(atom.predicate.of(Version.INSERTED), tuple(map(Constant, fact)))
        is_inserted = holds(known, arrived)
        (arriving if is_inserted else used).setdefault(atom.predicate.name, set()).add(fact)
    return Counterexample(witness, row, _frozen(used), added, _frozen(arriving), {}, complete=False)


def _frozen(rows: Mapping[str, set[Row]]) -> dict[str, frozenset[Row]]:
    return {name: frozenset(found) for name, found in rows.items()}


def holds(known: Knowledge[D], fact: Atom) -> bool:
    """Whether a ground fact is among the facts."""
    goal = Predicate("holds", Version.PROBLEM)
    if fact.predicate not in known.facts.relations:
        return False
    return bool(known.engine.nonempty(Program((Rule(Atom(goal, ()), (fact,)),)), [goal], known.facts))
