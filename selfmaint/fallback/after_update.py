"""A base relation as a whole, in the state right after the update, from a source that is right before or after it.

Conditions of soundness:

1. Deleted and inserted rows are disjoint, so deleting and inserting them makes the state before the update the state
   after it, and leaves that one as it is.
2. A relation without a key may hold a row twice, which this would not keep: its source must be right after the update.
3. An effective update is either in the source or not. One that is there in part, or whose rows clash with others by
   key, shows that the source is in a third state; so do rows that the views prove and that are not there.
"""

from __future__ import annotations

from datalog.diagnostics import Diagnostic
from datalog.model import Atom, Negation, Predicate, Program, Rule, Variable, Version
from selfmaint.canonical import row_atom
from selfmaint.decide.procedure import Decision
from selfmaint.engine.protocol import D, Engine, Facts
from selfmaint.errors import Code, SourceError
from selfmaint.fallback.settle import require_not_moved
from selfmaint.sources.protocol import Read, Source
from selfmaint.warehouse.catalog import BaseRelation
from selfmaint.warehouse.situation import Situation


def read_after(
    decision: Decision,
    engine: Engine[D],
    facts: Facts[D],
    situation: Situation,
    relation: BaseRelation,
    source: Source[D],
) -> tuple[D, Read]:
    """All rows of a base relation after the update.

    Args:
        decision: the symbolic side.
        engine: where the data is.
        facts: the views, the update and what else is known.
        situation: the kinds of facts.
        relation: the base relation.
        source: where it is, right before or right after the update.

    Raises:
        SourceError: the source's own; SM402 a source in another state.
    """
    rows, read = source.read(relation.name, [], None)
    name, found = relation.name, Predicate(relation.name, Version.FOUND)
    if name in situation.inserted | situation.deleted:
        signs = _signs(engine, facts.extended({found: rows}, small=False), situation, relation)
        if signs & {"new rows missing", "old rows there"}:
            _require_before(relation, situation, signs)
            if name in situation.deleted:
                rows = engine.minus(rows, facts.relations[Predicate(name, Version.DELETED)])
            if name in situation.inserted:
                rows = engine.union([rows, facts.relations[Predicate(name, Version.INSERTED)]])
    held = facts.extended({found: rows}, small=False)
    require_not_moved(decision, engine, held, situation, relation)
    return rows, read


def _signs(
    engine: Engine[D], facts: Facts[D], situation: Situation, relation: BaseRelation
) -> frozenset[str]:
    """What the source's rows say of its state, in words."""
    row = row_atom(relation, Version.FOUND)
    rules: list[Rule] = []
    words: dict[Predicate, str] = {}

    def add(what: str, *body: Atom | Negation) -> None:
        goal = Predicate(relation.name, Version.PROBLEM, (len(rules),))
        words[goal] = what
        rules.append(Rule(Atom(goal, ()), body))

    old: tuple[Negation, ...] = ()
    if relation.name in situation.deleted:
        gone = row_atom(relation, Version.DELETED)
        add("old rows there", gone, row)
        add("old rows missing", gone, Negation((row,)))
        old = (Negation((gone,)),)
    if relation.name in situation.inserted:
        new = row_atom(relation, Version.INSERTED)
        add("new rows missing", new, Negation((row,)))
        add("new rows there", new, row)
        for key in relation.keys:
            terms = tuple(t if i in key else Variable(f"Other{i}") for i, t in enumerate(row.terms))
            other = Atom(row.predicate, terms)
            there = Atom(Predicate(relation.name, Version.DELETED), other.terms)
            kept = (Negation((there,)),) if old else ()
            add("a clash", new, Negation((row,)), other, *kept)
    found = engine.nonempty(Program(tuple(rules)), list(words), facts)
    return frozenset(words[goal] for goal in found)


def _require_before(relation: BaseRelation, situation: Situation, signs: frozenset[str]) -> None:
    """Refuses a source that is not after the update, unless it is right before it.

    Raises:
        SourceError: SM402.
    """
    both = situation.effective and signs & {"new rows there", "old rows missing"}
    if not both and "a clash" not in signs and relation.keys:
        return
    why = "some rows of the update are in it, and some are not"
    if "a clash" in signs:
        why = "it has other rows with the keys of inserted ones"
    elif not both:
        why = "the update is not in it, and without a key its rows may have twins"
    raise SourceError(
        [
            Diagnostic(
                code=Code.SOURCE_MOVED,
                message=f"`{relation.name}` is not in the state after the update: {why}",
                note="a view is recomputed from its sources in the state right after the update, or right before it",
                hint="read from a snapshot at the update's position, or include the later changes in the update",
            )
        ]
    )
