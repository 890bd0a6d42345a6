"""`explain`: the proof of a "no", and the reasons of a "yes"."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from datalog.budget import BudgetSpentError, limit
from datalog.copies import replace
from datalog.model import (
    Atom,
    Constant,
    Predicate,
    Program,
    Row,
    Rule,
    Term,
    Variable,
    Version,
    ViewDefinition,
    apply_atom,
    variables_of,
)
from datalog.syntax.anonymous import fresh_names
from selfmaint.api.check import decided
from selfmaint.api.explanation import Explanation, FreeValue, RuledOut, Supply, Tested
from selfmaint.api.following.moved import moved
from selfmaint.api.following.over_views import of_views_below, with_views_below
from selfmaint.api.garbage import seldom_collected
from selfmaint.api.update import Update
from selfmaint.api.validate import require_possible_update
from selfmaint.api.warehouse import Warehouse
from selfmaint.decide.at_hand import tests_at_hand
from selfmaint.decide.counterexample import NotConfirmedError, counterexample, holds
from selfmaint.decide.decision import Decision
from selfmaint.decide.inconsistency import Contradiction
from selfmaint.decide.knowledge import Knowledge
from selfmaint.decide.new_facts import NewFacts
from selfmaint.decide.pairs import Counterexample
from selfmaint.decide.saturation import saturated
from selfmaint.decide.searched import found_databases
from selfmaint.decide.selftest import compact_program
from selfmaint.decide.unions import of_unions
from selfmaint.decide.verdict import NotSelfMaintainable, SelfMaintainable, Undecided, Verdict, Witness
from selfmaint.engine.protocol import D
from selfmaint.fallback.probes import options
from selfmaint.maintain import gained
from selfmaint.possible.queries import queries
from selfmaint.warehouse.catalog import Catalog, GroupedView, View
from selfmaint.warehouse.reads import reads

PATIENCE = 4
"""A search for databases takes another time each time: what `check` found is found again."""

PROOF_WITNESSES = 5
"""How many witnesses are tried for a counterexample."""

SHOWN_ROWS = 10
"""How many gained rows are traced to the view rows that supply their facts."""


_IN_ORDER = (NotSelfMaintainable, Undecided, SelfMaintainable)
"""Of the branches of a union that which says most of it is explained."""


@seldom_collected()
def explain(
    warehouse: Warehouse[D], update: Update[D], view: str, *, budget_s: float | None = None
) -> Explanation:
    """The certificate of a verdict; see `Warehouse.explain`."""
    catalog, asked = warehouse.catalog, warehouse.view(view)
    parts = catalog.parts(asked)
    decision = warehouse.decision_within(budget_s, PATIENCE)
    facts, situation = warehouse.given(update)
    require_possible_update(warehouse, facts, situation, update)
    turned = moved(warehouse)
    if turned is not None and view in turned.names:
        undecided = Undecided(view, (turned.why,))
        return Explanation(asked, situation, undecided, (), (), None, (), {}, ())
    known = saturated(decision.knowledge(warehouse.engine, facts, situation))
    situation = known.situation
    every = [part for below in with_views_below(catalog, [asked]) for part in catalog.parts(below)]
    verdicts = decided(warehouse, update, known, every)
    chosen = min(parts, key=lambda part: _IN_ORDER.index(type(verdicts[part.name])))
    verdict = verdicts[chosen.name]
    over_views = of_views_below(catalog, of_unions(catalog, verdicts))[view]
    if not verdict and isinstance(over_views, SelfMaintainable):
        return Explanation(chosen, situation, over_views, (), (), None, (), {}, ())
    proof = None
    settled: tuple[tuple[str, tuple[str, ...]], ...] = ()
    if not isinstance(verdict, SelfMaintainable) and verdict.witnesses:
        if isinstance(verdict, NotSelfMaintainable):
            proof = _proof(known, verdict.witnesses)
        settled = _settled_by(known, chosen, verdict.witnesses[0].new_facts)
    if isinstance(verdict, NotSelfMaintainable) and verdict.databases is not None:
        proof = found_databases(known, verdict)
        settled = _differing(warehouse.catalog, verdict)
    is_cut = isinstance(verdict, Undecided) and verdict.is_cut
    rules = queries(decision.catalog).get(chosen.name, ())
    found = Explanation(
        view=chosen,
        situation=situation,
        verdict=verdict,
        ruled_out=() if is_cut else _ruled_out(decision, chosen),
        tested=() if is_cut else _tested(known, chosen, verdict),
        counterexample=proof,
        settled_by=settled,
        supplies=_supplies(known, chosen, verdict) if isinstance(verdict, SelfMaintainable) else {},
        rules=tuple(Rule(Atom(chosen.stored_in, q.head), (*q.body, *q.filters)) for q in rules),
        definitions=() if rules or proof is None else _definitions(catalog, chosen),
    )
    return replace(found, ruled_out=(), tested=()) if found.is_searched else found


def _definitions(catalog: Catalog, view: View) -> tuple[ViewDefinition, ...]:
    below = reads(catalog)
    lower = [one for one in catalog.views if one.name in below.get(view.name, ())]
    every = [*sorted(lower, key=lambda one: len(below[one.name])), view]
    found = [getattr(one.definition, "by_rules", one.definition) for one in every]
    return tuple(its for its in found if isinstance(its, ViewDefinition)) if None not in found else ()


def _proof(known: Knowledge[D], witnesses: Sequence[Witness]) -> Counterexample | None:
    """The counterexample of the first witness that has one: where keys or comparisons meet, one may have none."""
    name = witnesses[0].new_facts.view.shown
    with (
        suppress(BudgetSpentError),
        limit(known.decision.budget_s, f"looking for databases that show {name}"),
    ):
        for witness in witnesses[:PROOF_WITNESSES]:
            try:
                return counterexample(known, witness)
            except NotConfirmedError:
                continue
    return None


def _ruled_out(decision: Decision, view: View) -> tuple[RuledOut, ...]:
    if view.limitation is not None or view.unchanging:
        return ()
    instance = decision.plain_instance(view)
    found: dict[int, Contradiction] = {}
    for contradiction in instance.dead:
        if not any(facts & ~contradiction.facts == 0 for facts in found):
            found[contradiction.facts] = contradiction
    full = (1 << len(instance.body)) - 1
    named = frozenset(variables_of(instance.body))

    def atoms(mask: int) -> tuple[Atom, ...]:
        return tuple(_anonymous(a, named) for j, a in enumerate(instance.atoms) if mask >> j & 1)

    companions = instance.chased.companions
    entries = [
        RuledOut(atoms(facts & ~companions), atoms(facts & companions), c.view)
        for facts, c in found.items()
        if facts != full
    ]
    alone = {e.subgoals[0].predicate for e in entries if len(e.subgoals) == 1 and not e.referenced}
    return tuple(e for e in entries if e.subgoals or any(a.predicate not in alone for a in e.referenced))


def _anonymous(atom: Atom, named: frozenset[Variable]) -> Atom:
    """The atom with the variables that are not named as the language writes `_`."""
    names = fresh_names([v.name for v in named])
    return apply_atom({v: Variable(next(names)) for v in variables_of([atom]) if v not in named}, atom)


def _tested(known: Knowledge[D], view: View, verdict: Verdict) -> tuple[Tested, ...]:
    failing = (
        set() if isinstance(verdict, SelfMaintainable) else {w.new_facts.number for w in verdict.witnesses}
    )
    tests = tests_at_hand(known, view).rules
    program = compact_program(known.support, tests)
    found: dict[tuple[Atom, ...], Tested] = {}
    for rules in tests:
        own = Program(program.rules_for(rules.goal))
        if own.rules:
            subgoals = tuple(rules.new_facts.instance.body[j] for j in rules.new_facts.subgoals)
            fresh = _free(known.catalog, subgoals, rules.new_facts.fresh)
            fails = rules.new_facts.number in failing
            same = found.get(subgoals)
            if same is not None:  # with other companions, links or positions
                own, fails = Program((*same.test.rules, *own.rules)), fails or same.fails
            found[subgoals] = Tested(subgoals, fresh, own, fails)
    return tuple(found.values())


def _free(catalog: Catalog, subgoals: Sequence[Atom], fresh: frozenset[Variable]) -> tuple[FreeValue, ...]:
    found: dict[Variable, FreeValue] = {}
    for atom in subgoals:
        name = atom.predicate.name
        for term, column in zip(atom.terms, catalog.relations[name].columns, strict=True):
            if isinstance(term, Variable) and term in fresh and term not in found:
                found[term] = FreeValue(term, name, column)
    return tuple(found.values())


def _settled_by(
    known: Knowledge[D], view: View, new_facts: NewFacts
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    tests = tests_at_hand(known, view)
    rules = next(r for r in tests.rules if r.new_facts.number == new_facts.number)
    return tuple(
        (probe.relation, tuple(known.catalog.relations[probe.relation].columns[i] for i in probe.columns))
        for probe in options(known.catalog, rules)
    )


def _differing(catalog: Catalog, verdict: NotSelfMaintainable) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The relations in which two databases differ, each with its key."""
    names = dict.fromkeys(fact.predicate.name for facts in verdict.unknown for fact in facts)
    relations = (catalog.relations[name] for name in names)
    return tuple((r.name, tuple(r.columns[i] for key in r.keys[:1] for i in key)) for r in relations)


def _supplies(known: Knowledge[D], view: View, verdict: SelfMaintainable) -> dict[Row, tuple[Supply, ...]]:
    if verdict.change is not None:
        return dict.fromkeys(sorted(verdict.change.gained, key=repr)[:SHOWN_ROWS], ())
    if isinstance(view, GroupedView) or view.shown_groups is not None or view.is_more_than_rules:
        return {}  # its rows are groups, or computed
    engine = known.engine
    program = known.decision.maintenance(view, known.situation)
    goal = gained(view)
    if not program.rules_for(goal):
        return {}
    rows = engine.sample(engine.evaluate(program, goal, known.facts, view.columns), SHOWN_ROWS)
    return {row: tuple(_supply(known, fact) for fact in _facts_of(view, row)) for row in rows}


def _facts_of(view: View, row: Row) -> tuple[Atom, ...]:
    values: dict[Variable, Term] = {
        t: Constant(value) for t, value in zip(view.head.terms, row, strict=True) if isinstance(t, Variable)
    }
    return tuple(apply_atom(values, atom) for atom in view.body)


def _supply(known: Knowledge[D], fact: Atom) -> Supply:
    """The rows that prove one fact."""
    found: list[Atom] = []
    name, situation = fact.predicate.name, known.situation
    given = ((Version.INSERTED, situation.inserted), (Version.PRESENT, situation.present))
    for version, names in given:
        if name in names and holds(known, fact.of(version)):
            found.append(fact.of(version))
    for contribution in known.decision.contributions:
        if contribution.rule.head.predicate.name == name and not found:
            found.extend(_view_rows(known, contribution.rule, fact))
    return Supply(fact, tuple(found))


def _view_rows(known: Knowledge[D], rule: Rule, fact: Atom) -> list[Atom]:
    """One row of each view that contributes a fact."""
    pattern: dict[Variable, Term] = {}
    for term, value in zip(rule.head.terms, fact.terms, strict=True):
        if isinstance(term, Variable):
            pattern[term] = value
        elif term != value:
            return []
    stored = [apply_atom(pattern, atom) for atom in rule.atoms]
    free = variables_of(stored)
    goal = Predicate(fact.predicate.name, Version.FOUND)
    program = Program((Rule(Atom(goal, free), tuple(stored)),))
    rows = known.engine.sample(known.engine.evaluate(program, goal, known.facts), 1)
    whole = known.catalog.whole
    shown = [Atom(replace(a.predicate, name=whole(a.predicate.name)), a.terms) for a in stored]
    values = ({v: Constant(x) for v, x in zip(free, row, strict=False)} for row in rows)
    return [apply_atom(row, atom) for row in values for atom in shown]
