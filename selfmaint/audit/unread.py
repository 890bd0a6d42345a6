"""Kinds of change that leave a view as it is, whatever the data: they change nothing of what it reads.

    sold(Name, Total) :- customer(Key, Name, Phone), orders(Order, Key, Total).
    updates of `customer` that change Phone alone; inserts into `customer`: no order references a new one

Conditions of soundness, beside those of `decide/rows_read.py`:

1. An update inserts each row that it deletes again, equal in the columns that it does not change. So rows that count,
   and what counts of them, are as before, as bags, where it changes no column that tells rows or is read of them.
2. The other relation does not change. By its foreign key it references no row that comes, which was not there before,
   and none that goes, which is not there after.
3. The update is effective.
"""

from __future__ import annotations

from selfmaint.audit.changes import Change, Kind
from selfmaint.decide.rows_read import rows_read
from selfmaint.warehouse.catalog import Catalog, View


def leaves_unread(catalog: Catalog, view: View, change: Change, *, effective: bool) -> bool:
    """Whether no change of a kind changes anything of what a view reads."""
    if change.relation is None or not effective:
        return False
    parts = rows_read(catalog, view).get(change.relation, ())
    match change.kind:
        case Kind.UPDATE:
            return all(change.columns.isdisjoint(part.every_row.columns) for part in parts)
        case Kind.INSERT | Kind.DELETE:
            return all(any(name != change.relation for name, _ in part.referenced) for part in parts)
        case _:
            return not parts
