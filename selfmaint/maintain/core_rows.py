"""The core rows that a view which groups gains and loses, where they are determined, and those known to be there.

    v@gained_0(all variables) :- g@inserted, others@after.
    v@lost_0(all variables)   :- g@deleted, others@known.

Conditions of soundness:

1. The update is effective: a gained row uses an inserted fact that was not there before, so it is new; a lost row
   uses a deleted fact that was there, and is gone.
2. Base relations are sets, so a core row stands once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from datalog.model import Atom, Literal, Predicate, Program, Rule, Version, variables_of
from selfmaint.canonical.support import Knowledge, Support
from selfmaint.engine.protocol import D
from selfmaint.warehouse.catalog import View
from selfmaint.warehouse.situation import Situation

_ROWS = Predicate("rows", Version.STEP)


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


def gained_rows(known: Knowledge[D], view: View) -> D | None:
    """The core rows that a view gains, columns as in its core's head, held by the engine; None if there are none."""
    return _changed(known, view, core_gained(view))


def lost_rows(known: Knowledge[D], view: View) -> D | None:
    """The core rows that a view loses, columns as in its core's head, held by the engine; None if there are none."""
    return _changed(known, view, core_lost(view))


def _changed(known: Knowledge[D], view: View, goal: Predicate) -> D | None:
    program = core_program(known.support, known.situation, view)
    if not program.rules_for(goal):
        return None
    names = [f"x{i}" for i in range(program.rules_for(goal)[0].head.arity)]
    rows = known.engine.keep(known.engine.evaluate(program, goal, known.facts, names))
    return rows if known.engine.count(rows) else None


def rows_of(
    known: Knowledge[D],
    core: View,
    bodies: Iterable[Sequence[Literal]],
    given: Mapping[Predicate, D] | None = None,
) -> D | None:
    """The core rows that some bodies give, columns as in the core's head; None if there are none."""
    head = Atom(_ROWS, core.head.terms)
    return known.rows((Rule(head, tuple(body)) for body in bodies), given)
