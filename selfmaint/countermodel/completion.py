"""Databases that explain everything known, from the canonical database and perhaps some new facts.

Foreign keys may ask for rows of which only the key is known. Their other columns are chosen: null or a fresh value
first, values at hand in later attempts. Whether a database explains what is known is asked afterwards, by the
definition; so a bad choice costs an attempt and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random

from datalog.budget import check
from datalog.model import Row, Value, Version
from selfmaint.countermodel.databases import Rows, missing
from selfmaint.countermodel.filling import fill
from selfmaint.countermodel.model_check import Given, why_not
from selfmaint.countermodel.values import NUMBER, fresh_value
from selfmaint.warehouse.catalog import BaseRelation
from selfmaint.warehouse.constraints import Reference

AT_HAND = 0.7
"""How often a later attempt takes a value at hand."""

ATTEMPTS = 24
"""How many ways of completing a database are tried."""

MOST_ADDED = 500
"""How many rows are added in each of them."""


def explaining(known: Given, added: Mapping[str, frozenset[Row]]) -> Iterator[Rows]:
    """Databases with the canonical database and some more facts that explain everything known.

    Args:
        known: everything known.
        added: new facts.
    """
    seen = []
    for attempt in range(ATTEMPTS):
        rows = {
            name: set(known.known[name] | added.get(name, frozenset())) for name in known.catalog.relations
        }
        random = Random(attempt)  # noqa: S311 - choices, no secret
        fill(known, rows, random, attempt)
        _complete(known, rows, random, attempt)
        database = {name: frozenset(found) for name, found in rows.items()}
        if database not in seen:
            seen.append(database)
            if not why_not(known, database):
                yield database


def _complete(known: Given, rows: dict[str, set[Row]], random: Random, attempt: int) -> None:
    """Adds the rows that are referenced and not there; ends after a few rounds where references go in circles.

    Several circles would double them in each round: it ends after `MOST_ADDED` rows, too.
    """
    added = 0
    for _ in range(2 * len(rows) + 2):
        changed = False
        for relation in known.catalog.relations.values():
            for reference in relation.references:
                for value in _wanted(known, relation, reference, rows):
                    added += 1
                    if added > MOST_ADDED:
                        return
                    check()
                    target = known.catalog.relations[reference.target]
                    rows[target.name].add(_row(known, rows, target, reference, value, random, attempt))
                    changed = True
        if not changed:
            return


def _wanted(
    known: Given, relation: BaseRelation, reference: Reference, rows: Mapping[str, set[Row]]
) -> list[Row]:
    """The keys that rows reference, before the update, and inserted rows after it."""
    there = frozenset(rows[reference.target])
    before = missing(reference, frozenset(rows[relation.name]), there)
    arriving = known.of(reference.target, Version.INSERTED)
    after = missing(reference, known.of(relation.name, Version.INSERTED), there | arriving)
    return sorted(before | after, key=repr)


def _row(
    known: Given,
    rows: Mapping[str, set[Row]],
    target: BaseRelation,
    reference: Reference,
    value: Row,
    random: Random,
    attempt: int,
) -> Row:
    """A row of the target with a certain key."""
    at = dict(zip(reference.target_columns, value, strict=True))

    def chosen(column: int) -> Value:
        if column in at:
            return at[column]
        here = sorted({row[column] for row in rows[target.name]} - {None}, key=repr)
        pointed = [
            {row[r.target_columns[r.columns.index(column)]] for row in rows[r.target]}
            for r in target.references
            if column in r.columns
        ]
        at_hand = [*here, *sorted(set().union(*pointed), key=repr)] if pointed else here
        if attempt > 1 and at_hand and random.random() < AT_HAND:
            return random.choice(at_hand)
        if column in target.nullable and attempt % 2 == 0:
            return None
        number = 1000 * (attempt + 1) + 101 * column + sum(len(found) for found in rows.values())
        its = NUMBER if (target.name, column) in known.catalog.number_columns else target.types[column]
        return fresh_value(its, number, high=attempt % 3 == 1)

    return tuple(chosen(column) for column in range(target.arity))
