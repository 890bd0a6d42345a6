"""What is known, with what stored groups tell about the facts that failing tests assume.

Repeated until nothing more is learnt: the new rows of finer views (`followed.py`), witnesses that no group has room for
(`room.py`), and facts that are certain since one of a few must be there (`certain.py`).

Condition of soundness: knowing less only leaves more databases. So what a spent budget leaves out makes no "yes"; and
where views group, a "no" has two databases to show for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace

from datalog.budget import BudgetSpentError, limit
from datalog.model import ANY, Predicate, Row, Version
from selfmaint.decide.certain import Assumption, certain_facts
from selfmaint.decide.decision import Decision
from selfmaint.decide.followed import followed
from selfmaint.decide.procedure import failing_rules
from selfmaint.decide.room import Room, World, expanded
from selfmaint.decide.selftest import DependsRules
from selfmaint.decide.verdict import Witness
from selfmaint.engine.protocol import D, Engine, Facts
from selfmaint.warehouse.base_relations import variable_types
from selfmaint.warehouse.situation import Situation

WITNESSES = 200
"""A test with more witnesses is not looked into."""

ROUNDS = 4
"""How often what was learnt is used to learn more."""


def informed(
    decision: Decision, engine: Engine[D], facts: Facts[D], situation: Situation
) -> tuple[Facts[D], Situation]:
    """What is known, with what the stored groups tell where tests fail.

    Args:
        decision: the symbolic side.
        engine: evaluates, and holds what is learnt.
        facts: what is known.
        situation: the kinds of it.
    """
    if not (decision.catalog.grouped_views and situation.effective):
        return facts, situation
    number = sum(decision.has_rules(view, situation) for view in decision.catalog.views)
    with (
        suppress(BudgetSpentError),
        limit(decision.budget_s * max(number, 1), "finding what stored groups tell"),
    ):
        for _ in range(ROUNDS):
            facts, situation = followed(decision, engine, facts, situation)
            before = situation
            facts, situation, learnt = _learnt(decision, engine, facts, situation)
            if not learnt and before == situation:
                break
    return facts, situation


def _learnt(
    decision: Decision, engine: Engine[D], facts: Facts[D], situation: Situation
) -> tuple[Facts[D], Situation, bool]:
    """What is known with what failing tests tell, and whether that is more."""
    views = [view for view in decision.catalog.views if decision.has_rules(view, situation)]
    failing = failing_rules(decision, engine, facts, situation, views)
    fetched = [(rules, engine.fetch(rows, WITNESSES)) for rules, rows in failing]
    if not any(rows for _, rows in fetched):
        return facts, situation, False
    room = Room(decision.knowledge(engine, facts, situation), decision.catalog)
    assumed = [a for rules, rows in fetched if rows for a in _assumptions(room, rules, rows)]
    impossible = room.impossible(world for a in assumed for world in a.worlds)
    left = [replace(a, worlds=a.worlds - impossible) for a in assumed]
    more = dict(_ruled_out(decision, engine, facts, [a for a in left if not a.worlds]))
    result = facts.extended(more)
    situation = replace(situation, ruled_out=situation.ruled_out.union(more))
    complete = {v.name for v in views} - {r.new_facts.view.name for r, rows in fetched if rows is None}
    found = [
        f for name in sorted(complete) for f in certain_facts(decision, engine, facts, situation, name, left)
    ]
    present = dict(_present(decision, engine, facts, situation, found))
    result = result.extended(present)
    situation = replace(situation, present=situation.present.union(p.name for p in present))
    return result, situation, bool(more or present)


def _assumptions(room: Room[D], rules: DependsRules, rows: Iterable[Row]) -> Iterator[Assumption]:
    for row in rows:
        witness = Witness(rules.new_facts, dict(zip(rules.new_facts.bound, row, strict=True)))
        facts = witness.unknown[: len(rules.new_facts.subgoals)]  # of companions little is known
        yield Assumption(rules, row, expanded(room, facts))


def _ruled_out(
    decision: Decision, engine: Engine[D], facts: Facts[D], assumed: Iterable[Assumption]
) -> Iterator[tuple[Predicate, D]]:
    """The witnesses that are impossible, by test, with those that were so before."""
    by_rules: dict[Predicate, list[Assumption]] = {}
    for one in assumed:
        by_rules.setdefault(one.rules.goal, []).append(one)
    for goal, found in by_rules.items():
        predicate = goal.of(Version.IMPOSSIBLE, goal.columns)
        new_facts = found[0].rules.new_facts
        atoms = [*new_facts.instance.atoms, *new_facts.links, *new_facts.patterns]
        types = variable_types(atoms, decision.catalog.relations)
        names = [f"x{i}" for i in range(len(new_facts.bound))]
        rows = engine.load([a.row for a in found], names, [types.get(v, ANY) for v in new_facts.bound])
        old = facts.relations.get(predicate)
        yield predicate, engine.keep(rows if old is None else engine.union([old, rows]))


def _present(
    decision: Decision,
    engine: Engine[D],
    facts: Facts[D],
    situation: Situation,
    found: Iterable[tuple[str, Row]],
) -> Iterator[tuple[Predicate, D]]:
    """Certain facts as rows of partial copies, with those known before."""
    by_name: dict[str, list[Row]] = {}
    for name, row in dict.fromkeys(found):
        by_name.setdefault(name, []).append(row)
    for name, rows in by_name.items():
        relation = decision.catalog.relations[name]
        predicate = Predicate(name, Version.PRESENT)
        data = engine.load(rows, relation.columns, relation.types)
        old = [facts.relations[predicate]] if name in situation.present else []
        yield predicate, engine.keep(engine.union([*old, data]))


__all__ = ["World", "informed"]
