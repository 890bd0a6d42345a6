"""Reading the base rows of the groups whose new values stay open: those groups', and no others.

A lost extremum, or a group that may be empty, leaves a group open. Its core rows are read subgoal by subgoal: first
where the group's values or constants are columns, then by what the rows found bind.

Condition of soundness: after the last subgoal every core row of the groups is known, so their values can be computed
anew from known rows.
"""

from __future__ import annotations

from collections.abc import Iterable

from datalog.model import Atom, Constant, Predicate, Program, Rule, Term, Variable, Version, variables_of
from selfmaint.canonical.support import Bindings
from selfmaint.engine.protocol import D, Engine, Facts
from selfmaint.fallback.probes import Probe
from selfmaint.fallback.settle import Reader
from selfmaint.fallback.states import moved
from selfmaint.maintain.groups import group_change
from selfmaint.maintain.stored_groups import contradicts
from selfmaint.warehouse.catalog import GroupedView

_GROUPS = Predicate("groups", Version.STEP)
_COUNTED = "rows that came or went since are counted with those of the update"


def settle_groups(reader: Reader[D], views: Iterable[GroupedView]) -> tuple[str, ...]:
    """Reads the base rows of the open groups of some views whose core rows are settled.

    Returns:
        The views with groups that stay open, because a base relation cannot be read.

    Raises:
        SourceError: SM401 or SM103 from a source; SM402 a source that is not in the state after the update.
    """
    left: list[str] = []
    for view in views:
        change = group_change(reader.known, view)
        if change is None or change.open is None:
            continue
        if any(a.predicate.name not in reader.readable for a in view.core.body):
            left.append(view.name)
        else:
            _read(reader, view, change.open)
            _require_stored(reader, view, change.open)
    return tuple(left)


def reads_whole(view: GroupedView) -> bool:
    """Whether a group's values lead to no rows, so that some subgoal is read whole: they are all computed."""
    terms = [view.grouped.terms.get(g) if isinstance(g, Variable) else None for g in view.grouped.groups]
    bound = {term for term in terms if isinstance(term, Variable)}
    return not any(isinstance(t, Constant) or t in bound for atom in view.core.body for t in atom.terms)


def _require_stored(reader: Reader[D], view: GroupedView, groups: D) -> None:
    """Refuses rows that, without the update, are not those of the groups that are stored."""
    if contradicts(reader.known, view, groups):
        read = {one.relation for one in reader.reads}
        names = [atom.predicate.name for atom in view.core.body if atom.predicate.name in read]
        why = f"what it has, without the update, does not give the stored rows of {view.shown}"
        raise moved(reader.known.catalog.relations[names[0]], why, _COUNTED)


def _read(reader: Reader[D], view: GroupedView, groups: D) -> None:
    """The subgoals of a view's core, one after the other."""
    current: Bindings[D] | None = _first(reader.known.engine, view, groups)
    waiting = list(view.core.body)
    while waiting and current is not None:
        bound = set(current.variables)
        atom = max(waiting, key=lambda a: sum(isinstance(t, Constant) or t in bound for t in a.terms))
        waiting.remove(atom)
        columns = tuple(i for i, t in enumerate(atom.terms) if isinstance(t, Constant) or t in bound)
        keys = Atom(
            Predicate(atom.predicate.name, Version.PROBE, columns), tuple(atom.terms[i] for i in columns)
        )
        start = Atom(_GROUPS, current.variables)
        program = Program((Rule(keys, (start,)),)) if columns else Program()
        probe = Probe(atom.predicate.name, columns, program, (_GROUPS,))
        reader.read(probe, {_GROUPS: current.rows})
        body = (start, atom.of(Version.AFTER))
        current = reader.known.bindings([body], variables_of(body), {_GROUPS: current.rows})


def _first(engine: Engine[D], view: GroupedView, groups: D) -> Bindings[D]:
    """The open groups' values for the core's variables that hold them, and a variable that nothing else has."""
    number = len(view.grouped.groups)
    terms = [view.grouped.terms.get(g) if isinstance(g, Variable) else None for g in view.grouped.groups]
    given: tuple[Term, ...] = tuple(Variable(f"Group_{i}") for i in range(number + 1))
    names = dict.fromkeys(t for t in terms if isinstance(t, Variable))
    atoms = tuple(t if isinstance(t, Variable) else given[i] for i, t in enumerate(terms))
    marked = (*names, given[number])
    goal = Predicate("first", Version.STEP)
    rule = Rule(Atom(goal, marked), (Atom(_GROUPS, (*atoms, given[number])),))
    rows = engine.keep(
        engine.evaluate(
            Program((rule,)),
            goal,
            Facts({_GROUPS: groups}, {}, frozenset({_GROUPS})),
            [f"x{i}" for i in range(len(marked))],
        )
    )
    return Bindings(tuple(v for v in marked if isinstance(v, Variable)), rows)
