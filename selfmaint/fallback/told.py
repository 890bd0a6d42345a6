"""Base relations that views tell whole, as sources: what a view of any class reads of them is read from the views.

    lines(Id, Product, Name) :- line(Id, Product), product(Product, Name).      with a foreign key: a copy of `line`
    v: SELECT product, count(DISTINCT pieces) FROM line GROUP BY product        is computed, and no base row is read

Condition of soundness: all rows of the relation before the update are known (`canonical/contributions.py`), and
the update says what comes and goes; so its rows after the update are these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic

from datalog.model import Atom, Predicate, Program, Rule, Version
from datalog.rewrite import drop_unreachable
from selfmaint.canonical import after_rules, copied, row_atom
from selfmaint.decide.knowledge import Knowledge
from selfmaint.engine.protocol import D
from selfmaint.fallback.settle import Readable
from selfmaint.sources.between import Between
from selfmaint.sources.protocol import Read

NAME = "stored views"
"""What such a source is called."""

_KEYS, _FOUND = Predicate("told_keys"), Predicate("told_rows")


def told_sources(known: Knowledge[D]) -> dict[str, Readable[D]]:
    """For each base relation that views copy, what reads it from there, in the state after the update."""
    source = _Told(known)
    return {name: Readable(source, is_after=True) for name in copied(known.catalog)}


class _Told(Generic[D]):
    """A `Source` of the relations that views copy."""

    def __init__(self, known: Knowledge[D]) -> None:
        self._known = known

    @property
    def name(self) -> str:
        """See `Source`."""
        return NAME

    def row_count(self, relation: str) -> int:
        """See `Source`: the number of rows of the view, of several of the largest."""
        stored = copied(self._known.catalog)[relation].stored
        return max(self._known.engine.count(self._known.facts.relations[its]) for its in stored)

    def read(self, relation: str, key_columns: Sequence[str], keys: D | None) -> tuple[D, Read]:
        """See `Source`."""
        known, its = self._known, self._known.catalog.relations[relation]
        engine, after = known.engine, row_atom(its, Version.AFTER)
        places = [its.columns.index(name) for name in key_columns]
        goal = Atom(_FOUND, after.terms)
        asked = keys is not None and its.nullable.isdisjoint(places)  # null joins nothing
        found_by = (Atom(_KEYS, tuple(after.terms[i] for i in places)),) if asked else ()
        rules = (*known.decision.known(known.situation), *after_rules(known.catalog, known.situation))
        program = drop_unreachable(Program((Rule(goal, (*found_by, after)), *rules)), [_FOUND])
        facts = known.facts.extended({_KEYS: keys}) if asked and keys is not None else known.facts
        declared = engine.load((), its.columns, its.types)  # a view may show the equal value of a wider type
        rows = engine.keep(engine.like(engine.evaluate(program, _FOUND, facts, its.columns), declared))
        if keys is not None and not asked:
            rows = engine.keep(engine.bags.matching(rows, places, keys))
        number = 0 if keys is None else engine.count(keys)
        return rows, Read(relation, tuple(key_columns), number, engine.count(rows), 0, NAME)

    def read_between(self, relation: str, asked: Between) -> tuple[D, Read]:
        """See `Source`: all rows, of which no base row is."""
        return self.read(relation, (), None)

    def version(self) -> str | None:
        """None: what is known does not move."""
        return None
