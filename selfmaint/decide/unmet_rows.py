"""Rows of an update that a view does not read: they leave it as it is, whatever its class.

    berlin(Key, Name) :- customer(Key, Name, 'B').
    customer@inserted(8, 'Bob', 'C')                    no subgoal has such a row

Conditions of soundness:

1. A view is a query over the rows that it reads (`rows_read.py`).
2. The relations before and after an update differ in rows of the update only, whether it is effective or not.
"""

from __future__ import annotations

from collections.abc import Iterable

from datalog.copies import replace
from datalog.model import Atom, Predicate, Program, Rule, Version
from selfmaint.decide.knowledge import Knowledge
from selfmaint.decide.own_columns import SIDES
from selfmaint.decide.rows_read import rows_read
from selfmaint.engine.protocol import D
from selfmaint.warehouse.catalog import View


def with_unmet(known: Knowledge[D]) -> Knowledge[D]:
    """The same, with the views that read no row of the update; found once."""
    if with_unmet not in known.kept:
        found, situation = unmet(known, known.catalog.views), known.situation
        is_known = found == situation.unmet
        more = known if is_known else known.learning(known.facts, replace(situation, unmet=found))
        known.kept[with_unmet] = more.kept[with_unmet] = more
    kept: Knowledge[D] = known.kept[with_unmet]
    return kept


def unmet(known: Knowledge[D], views: Iterable[View]) -> frozenset[str]:
    """The names of the views that read no row of the update, but some relation that changes."""
    situation = known.situation
    changed = {Version.DELETED: situation.deleted, Version.INSERTED: situation.inserted}
    asked = {}
    for view in views:
        its = rows_read(known.catalog, view)
        names = [name for name in its if name in situation.deleted | situation.inserted]
        if names:
            asked[view.name] = [frozenset((part.atom, part.tests) for part in its[name]) for name in names]
    goals = {
        kinds: Predicate("met", Version.STEP, (number,))
        for number, kinds in enumerate(dict.fromkeys(kinds for its in asked.values() for kinds in its))
    }
    rules = [
        Rule(Atom(goal, ()), (atom.of(side), *tests))
        for kinds, goal in goals.items()
        for atom, tests in sorted(kinds, key=str)
        for side in SIDES
        if atom.predicate.name in changed[side]
    ]
    met = known.engine.nonempty(Program(tuple(rules)), list(goals.values()), known.facts) if rules else ()
    return frozenset(name for name, its in asked.items() if not any(goals[kinds] in met for kinds in its))
