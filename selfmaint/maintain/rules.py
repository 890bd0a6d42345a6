"""The maintenance queries of a self-maintainable view (Huyn 1997, Algorithm 3.1).

The new state is Qk(U(D^)); only its difference from the stored state is computed, anchored on the update:

    v@gained(head) :- g@inserted, others@after, not v(head).
    v@lost(head)   :- v(head), g@deleted.

A row of the view grounds its whole body, so it is lost iff one of its subgoals' facts is deleted.
All deltas are over the old state of all views. The look into the view is left out where the update is effective:
an inserted fact that was not there before supplied no stored row.
"""

from __future__ import annotations

from datalog.model import Atom, Literal, Negation, Predicate, Program, Rule, Version, variables_of
from selfmaint.canonical.support import Support
from selfmaint.warehouse.catalog import View
from selfmaint.warehouse.situation import Situation


def gained(view: View) -> Predicate:
    """The predicate of the rows that the view gains."""
    return view.predicate.of(Version.GAINED)


def lost(view: View) -> Predicate:
    """The predicate of the rows that the view loses."""
    return view.predicate.of(Version.LOST)


def maintenance_program(support: Support, situation: Situation, view: View) -> Program:
    """The rules of `view@gained` and `view@lost`; a predicate without rules is empty in this situation.

    Sound only for a view that is self-maintainable; for another it computes the certain part.
    """
    rules: list[Rule | None] = []
    for index, atom in enumerate(view.body):
        name = atom.predicate.name
        if name in situation.inserted:
            head = Atom(gained(view), view.head.terms)
            stored = [] if situation.effective else [Negation((view.head,))]
            rules.append(support.rule(head, gaining(view, index), stored))
        if name in situation.deleted:
            removed = Atom(atom.predicate.of(Version.DELETED), atom.terms)
            rules.append(Rule(Atom(lost(view), view.head.terms), (removed, view.head)))
    return support.program([rule for rule in rules if rule is not None], [gained(view), lost(view)])


def gaining(view: View, anchor: int) -> tuple[Literal, ...]:
    """The body with one subgoal inserted, then the others, joined ones first."""
    atoms = [Atom(view.body[anchor].predicate.of(Version.INSERTED), view.body[anchor].terms)]
    waiting = [j for j in range(len(view.body)) if j != anchor]
    while waiting:
        bound = set(variables_of(atoms))
        chosen = max(waiting, key=lambda j: (len(bound.intersection(view.body[j].terms)) > 0, -j))
        waiting.remove(chosen)
        atoms.append(Atom(view.body[chosen].predicate.of(Version.AFTER), view.body[chosen].terms))
    return (*atoms, *view.filters)
