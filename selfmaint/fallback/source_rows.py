"""Reads of base relations, as sets of rows: equal rows of a table without a key are numbered."""

from __future__ import annotations

from collections.abc import Sequence

from datalog.model import NUMBER, Atom, Predicate, Program, Rule, Variable
from selfmaint.engine.protocol import D, Engine, Facts
from selfmaint.sources.protocol import Read, Source
from selfmaint.warehouse.base_relations import BaseRelation


def rows_of(
    engine: Engine[D], relation: BaseRelation, source: Source[D], key_columns: Sequence[str], keys: D | None
) -> tuple[D, Read]:
    """What a source gives of a base relation: see `Source.read`, and `datalog.rewrite.numbered` for the numbers.

    Rows that are equal but for their numbers are all read, or none: no source knows of the numbers.
    """
    if not relation.is_numbered:
        return source.read(relation.name, key_columns, keys)
    names = [name for name in key_columns if name != NUMBER]
    asked = keys
    if keys is not None and len(names) < len(key_columns):
        asked = _without_number(engine, keys, key_columns) if names else None
    rows, read = source.read(relation.name, names if asked is not None else [], asked)
    found = engine.keep(engine.bags.numbered(rows, 1, NUMBER))
    if keys is not None and asked is not keys:
        places = [relation.columns.index(name) for name in key_columns]
        found = engine.keep(engine.bags.matching(found, places, keys))
    return found, read


def _without_number(engine: Engine[D], keys: D, columns: Sequence[str]) -> D:
    """Keys without the numbers among them, each once."""
    terms = tuple(Variable(f"K{i}") for i in range(len(columns)))
    kept = [term for term, name in zip(terms, columns, strict=True) if name != NUMBER]
    given, goal = Predicate("numbered_keys"), Predicate("keys")
    rule = Rule(Atom(goal, tuple(kept)), (Atom(given, terms),))
    names = [name for name in columns if name != NUMBER]
    return engine.keep(
        engine.evaluate(Program((rule,)), goal, Facts({given: keys}, {}, frozenset({given})), names)
    )
