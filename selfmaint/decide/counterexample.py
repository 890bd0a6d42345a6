"""Certificates of a "no": two databases that agree with everything known and disagree after the update.

The first is the canonical database D^, the second D^ and the new facts of one witness, both completed by rows that
foreign keys ask for. They are held against the definition, which shares nothing with the test: whole where the data is
at hand (`countermodel.model_check`), in what the new facts change where it is not (`countermodel.added_facts`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from datalog.evaluate.order import with_one_nan
from datalog.model import (
    Atom,
    Comparison,
    Constant,
    Predicate,
    Program,
    Row,
    Rule,
    Value,
    Variable,
    Version,
    apply_atom,
    apply_comparison,
    ground,
)
from selfmaint.canonical import after_rules
from selfmaint.countermodel.added_facts import Extension
from selfmaint.countermodel.databases import satisfies
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
)
from selfmaint.decide.positions import substitution
from selfmaint.decide.saturation import saturated
from selfmaint.decide.verdict import Witness
from selfmaint.engine.protocol import D


class NotConfirmedError(AssertionError):
    """A counterexample that its own evaluation does not confirm: a broken invariant of this package."""


def counterexample(known: Knowledge[D], witness: Witness) -> Counterexample:
    """The counterexample of a witness, evaluated again.

    Raises:
        NotConfirmedError: the two databases do not do what they should.
    """
    known = saturated(known)
    at_hand, catalog = given(known), known.catalog
    if at_hand is not None:
        found = two_databases(at_hand, witness)
        if found is not None:
            return found
    first = [*known.decision.known(known.situation), *after_rules(catalog, known.situation)]
    extension = Extension(known.engine, catalog, known.situation, known.facts, first)
    problem = "no two databases were found" if at_hand is not None else ""
    for attempt in range(ATTEMPTS if at_hand is None else 0):
        values = {**chosen_values(witness), **fresh_values(catalog, witness.new_facts, attempt)}
        values |= next(placed_values(catalog, (), witness.new_facts, values), {})
        added = ground_facts(witness, values)
        problem = extension.why_not(added, _derivation(witness.new_facts, values))
        if not problem:
            return _certificate(known, witness, values, added)
    raise NotConfirmedError(f"the counterexample for `{witness.new_facts.view.name}` is not one: {problem}")


def _derivation(new_facts: NewFacts, values: Mapping[Variable, Value]) -> Sequence[Atom | Comparison]:
    """The facts of the row's one derivation on the second database, and what they must satisfy."""
    ground = {v: Constant(x) for v, x in values.items()}
    chosen, instance = substitution(dict(new_facts.positions)), new_facts.instance
    atoms = [apply_atom(ground, apply_atom(chosen, atom)) for atom in instance.body]
    moved = (apply_comparison(ground, apply_comparison(chosen, one)) for one in instance.comparisons)
    return [*atoms, *moved]


def _certificate(
    known: Knowledge[D],
    witness: Witness,
    values: Mapping[Variable, Value],
    added: Mapping[str, frozenset[Row]],
) -> Counterexample:
    """The two databases if they are small and lack no row, else the facts that the row's derivation uses."""
    row, engine = row_of(witness, values), known.engine
    program = Program(known.decision.known(known.situation))
    versions = (Version.KNOWN, Version.INSERTED, Version.DELETED)
    whole: dict[Version, dict[str, frozenset[Row]]] = {version: {} for version in versions}
    for version, found in whole.items():
        for name, relation in known.catalog.relations.items():
            predicate = Predicate(name, version)
            if program.rules_for(predicate) or predicate in known.facts.relations:
                rows = engine.evaluate(program, predicate, known.facts, relation.columns)
                found[name] = with_one_nan(engine.sample(rows, COMPLETE_ROWS + 1))
    if all(len(rows) <= COMPLETE_ROWS for found in whole.values() for rows in found.values()):
        first, inserted, deleted = whole.values()
        pair = Counterexample(witness, row, first, added, inserted, deleted, complete=True)
        databases = (pair.database(second, after) for second in (False, True) for after in (False, True))
        if all(satisfies(known.catalog, database) for database in databases):
            return pair
    used: dict[str, set[Row]] = {}
    arriving: dict[str, set[Row]] = {}
    for j in witness.new_facts.outside:
        atom = witness.new_facts.instance.body[j]
        fact = ground(atom.terms, values)
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
