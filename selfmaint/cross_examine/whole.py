"""What was found near the update, held against all rows.

The database that was found is completed by rows that explain the stored rows far from the update: those that their
rules tell, with new values where they tell none. If the definition accepts the whole, it is a database that explains
everything known; if not, nothing is concluded.
"""

from __future__ import annotations

from dataclasses import replace

from datalog.model import Predicate, Row, Version
from selfmaint.cross_examine.domains import Domains
from selfmaint.cross_examine.matches import Hole, Sketches, Told, holes_of
from selfmaint.cross_examine.question import Question, Rows


def completed(near: Question, whole: Question, database: Rows) -> dict[str, frozenset[Row]]:
    """A database found near the update, with rows for what is far from it.

    Args:
        near: the question about the rows near the update.
        whole: the question about all rows.
        database: what explains the first.
    """
    far = replace(whole, rows={p: _far(near, p, rows) for p, rows in whole.rows.items()})
    domains = Domains(whole)
    sketches = Sketches(far).make()
    own = {
        hole: domains.own(column, number)
        for number, (hole, column) in enumerate(holes_of(sketches).items(), 1)
    }
    found = {name: set(database.get(name, ())) for name in whole.catalog.relations}
    keys = {
        name: {tuple(row[i] for i in key) for row in rows for key in whole.catalog.relations[name].unique[:1]}
        for name, rows in found.items()
    }
    for name, slots in sketches:
        row = tuple(slot.value if isinstance(slot, Told) else own[slot] for slot in slots)
        key = next((tuple(row[i] for i in k) for k in whole.catalog.relations[name].unique[:1]), None)
        invented = any(isinstance(slot, Hole) for slot in slots)
        if not whole.is_excluded(name, row) and not (invented and key in keys[name]):
            found[name].add(row)
    return {name: frozenset(rows) for name, rows in found.items()}


def _far(near: Question, predicate: Predicate, rows: frozenset[Row]) -> frozenset[Row]:
    """The rows that were left out; the update is near, whole."""
    if predicate.version in (Version.INSERTED, Version.DELETED):
        return frozenset()
    return rows - near.rows.get(predicate, frozenset())
