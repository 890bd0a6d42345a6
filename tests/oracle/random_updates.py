"""Random updates that keep the constraints: insertions, deletions, changes of rows."""

from __future__ import annotations

from random import Random

from .random_schemas import Rows, Schema, draw_row, fits
from .rules import Row

MOST = 2
"""Rows of one relation that are deleted, changed, and inserted anew, at most."""
TRIES = 5
"""To draw a row that fits."""


def draw_update(random: Random, schema: Schema, before: Rows, *, effective: bool) -> tuple[Rows, Rows]:
    """Draw the inserted and the deleted rows.

    A change of a row is a deletion and an insertion, mostly with the same key. What would
    break a constraint after the update is left out of it.
    """
    insert: Rows = {name: set() for name in before}
    delete: Rows = {name: set() for name in before}
    for name in reversed([*schema.columns]):
        present = sorted(before[name], key=repr)
        kind = random.choice(("insert", "insert", "change", "mixed", "nothing", "delete"))
        if kind in ("delete", "mixed") and present:
            delete[name] |= {random.choice(present) for _ in range(random.randint(1, MOST))}
        if kind in ("insert", "mixed"):
            future = {n: (rows - delete[n]) | insert[n] for n, rows in before.items()}
            for _ in range(random.randint(1, MOST)):
                _draw_newcomer(random, schema, name, future, insert)
        if kind in ("change", "mixed") and present:
            old = random.choice(present)
            delete[name].add(old)
            insert[name].add(_changed(random, schema, name, old))
        insert[name] -= before[name]
    _repair(schema, before, insert, delete)
    if not effective:
        _blur(random, schema, before, insert, delete)
    return insert, delete


def _draw_newcomer(random: Random, schema: Schema, name: str, future: Rows, insert: Rows) -> None:
    """Insert a row that fits in what is there after the update so far, if one comes up."""
    for _ in range(TRIES):
        row = draw_row(random, schema, name, future, newcomers=True)
        if row not in future[name] and fits(schema, name, row, future):
            future[name].add(row)
            insert[name].add(row)
            return


def _changed(random: Random, schema: Schema, name: str, row: Row) -> Row:
    """The row with another value in a column, mostly not one of the key."""
    key = schema.keys.get(name, ())
    others = [i for i in range(len(row)) if i not in key]
    keep_key = bool(others) and random.randint(0, 4) > 0
    place = random.choice(others if keep_key else [*range(len(row))])
    value = random.choice(schema.columns[name][place].values(newcomers=True))
    return (*row[:place], value, *row[place + 1 :])


def _repair(schema: Schema, before: Rows, insert: Rows, delete: Rows) -> None:
    """Leave out insertions that do not fit, and deletions of rows that are referred to, until all is well."""
    while True:
        after = {name: (rows - delete[name]) | insert[name] for name, rows in before.items()}
        for name, rows in insert.items():
            wrong = {row for row in rows if not fits(schema, name, row, after)}
            if wrong:
                insert[name] -= {min(wrong, key=repr)}
                break
        else:
            wrong_rows = [(n, row) for n, rows in after.items() for row in rows]
            if all(fits(schema, n, row, after) for n, row in wrong_rows):
                return
            for rows in delete.values():  # a row that stays has lost its parent: keep all that was deleted
                rows.clear()


def _blur(random: Random, schema: Schema, before: Rows, insert: Rows, delete: Rows) -> None:
    """Insert, sometimes, a row that is there, and delete one that is not."""
    for name, rows in before.items():
        staying = sorted(rows - delete[name], key=repr)
        if staying and random.randint(0, 3) == 0:
            insert[name].add(random.choice(staying))
        if random.randint(0, 3) == 0:
            row = draw_row(random, schema, name, before, newcomers=True)
            if row not in rows and row not in insert[name]:
                delete[name].add(row)
