"""The core rows that a view which groups gains and loses, where they are determined, and those known to be there.

    v@gained_0(all variables) :- g@inserted, others@after.
    v@lost_0(all variables)   :- g@deleted, others@known.

Conditions of soundness:

1. The update is effective: a gained row uses an inserted fact that was not there before, so it is new; a lost row
   uses a deleted fact that was there, and is gone.
2. Base relations are sets, so a core row stands once.
"""

from __future__ import annotations

from collections.abc import Sequence

from datalog.model import Atom, Literal, Predicate, Program, Rule, Version, variables_of
from selfmaint.canonical.stages import Bindings, Stages
from selfmaint.canonical.support import Support
from selfmaint.engine.protocol import D, Facts
from selfmaint.warehouse.catalog import Catalog, View
from selfmaint.warehouse.situation import Situation


def core_gained(view: View) -> Predicate:
    """The predicate of the core rows that a view gains, columns as in its core's head."""
    return Predicate(view.name, Version.GAINED, (0,))


def core_lost(view: View) -> Predicate:
    """The predicate of the core rows that a view loses, columns as in its core's head."""
    return Predicate(view.name, Version.LOST, (0,))


def core_program(support: Support, situation: Situation, view: View) -> Program:
    """The rules of the core rows that a view gains and loses, as one program."""
    assert view.core is not None
    core, rules = view.core, []
    for index, atom in enumerate(core.body):
        name = atom.predicate.name
        if name in situation.inserted:
            head = Atom(core_gained(view), core.head.terms)
            rules.append(support.rule(head, anchored(core, index, Version.INSERTED, Version.AFTER), ()))
        if name in situation.deleted:
            head = Atom(core_lost(view), core.head.terms)
            rules.append(support.rule(head, anchored(core, index, Version.DELETED, Version.KNOWN), ()))
    made = [rule for rule in rules if rule is not None]
    return support.program(made, [core_gained(view), core_lost(view)])


def anchored(core: View, anchor: int, version: Version, others: Version) -> tuple[Literal, ...]:
    """The core's body with one subgoal in the update, then the others, joined ones first."""
    atoms = [Atom(core.body[anchor].predicate.of(version), core.body[anchor].terms)]
    waiting = [j for j in range(len(core.body)) if j != anchor]
    while waiting:
        bound = set(variables_of(atoms))
        chosen = max(waiting, key=lambda j: (len(bound.intersection(core.body[j].terms)) > 0, -j))
        waiting.remove(chosen)
        atoms.append(Atom(core.body[chosen].predicate.of(others), core.body[chosen].terms))
    return (*atoms, *core.filters)


def gained_rows(stages: Stages[D], catalog: Catalog, core: View) -> D | None:
    """The core rows gained, columns as in the core's head, held by the engine; None if there are none."""
    bodies = []
    for index, atom in enumerate(core.body):
        if atom.predicate.name in stages.situation.inserted:
            arrived = stages.arrived(catalog.relations[atom.predicate.name])
            if arrived is not None:
                _, *others = anchored(core, index, Version.INSERTED, Version.AFTER)
                bodies.append((Atom(arrived, atom.terms), *others))
    return rows_of(stages, core, bodies)


def lost_rows(stages: Stages[D], core: View) -> D | None:
    """The core rows lost, columns as in the core's head, held by the engine; None if there are none."""
    bodies = [
        anchored(core, index, Version.DELETED, Version.KNOWN)
        for index, atom in enumerate(core.body)
        if atom.predicate.name in stages.situation.deleted
    ]
    return rows_of(stages, core, bodies)


def rows_of(stages: Stages[D], core: View, bodies: Sequence[Sequence[Literal]]) -> D | None:
    """The core rows that some bodies give, columns as in the core's head; None if there are none."""
    variables = variables_of(core.body)
    parts = []
    for body in bodies:
        found = stages.joined(body, variables)
        if found is not None:
            parts.append(found)
    together = stages.united(parts)
    if together is None:
        return None
    return headed(stages, core, together)


def headed(stages: Stages[D], core: View, found: Bindings[D]) -> D:
    """Bindings of the core's variables as rows of its head, constants put in."""
    goal, source = Predicate("rows", Version.STEP), Predicate("bindings")
    rule = Rule(Atom(goal, core.head.terms), (Atom(source, found.variables),))
    names = [f"x{i}" for i in range(core.head.arity)]
    engine = stages.engine
    return engine.keep(engine.evaluate(Program((rule,)), goal, _facts(source, found.rows), names))


def _facts(source: Predicate, rows: D) -> Facts[D]:
    return Facts({source: rows}, {}, frozenset({source}))
