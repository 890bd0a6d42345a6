"""Views whose rows follow from a key that they do not show: what their query gives before and after the update.

Why that is right: `datalog/sql/affected/differing.py`.
"""

from __future__ import annotations

from datalog.sql.affected import Keyed
from selfmaint.engine.protocol import D
from selfmaint.fallback.added_up import NotKnownError
from selfmaint.fallback.keyed import KeyedDelta, affected_keys, by_keys, rows_both_times, unchanged
from selfmaint.fallback.keyed_rows import KeyedRows
from selfmaint.fallback.recompute import Recomputing
from selfmaint.maintain import difference
from selfmaint.warehouse.catalog import View


def differ(reader: KeyedRows[D], recomputing: Recomputing[D], view: View, how: Keyed) -> KeyedDelta[D]:
    """A view's change.

    Args:
        reader: reads base rows by keys; the update is effective.
        recomputing: runs the view's query.
        view: the view, which keeps equal rows.
        how: the key of the rows that its rows are made of.

    Raises:
        NotKnownError: a row that goes is not stored as it is computed now.
        TooManyKeysError: more keys would be read than are allowed.
        SourceError: a source that does not answer, or is in another state (SM402).
        InputError: SM404 a query that the engine refuses.
    """
    engine = reader.engine
    root = next((step for step in how.steps if step.sources[0][0] is None), None)
    if root is None:
        return unchanged(reader, view, ())
    relation = reader.decision.catalog.relations[root.relation]
    names = tuple(relation.columns[i] for i in root.columns)
    keys = affected_keys(reader, how, names)
    if not engine.count(keys):
        return unchanged(reader, view, names, root.relation)
    new, old = (
        engine.keep(recomputing.evaluated(view, needed)) for needed in rows_both_times(reader, how, keys)
    )
    change = difference(engine, view, new, old)
    stored = reader.facts.relations[view.predicate]
    if engine.count(engine.keep(engine.minus_all(change.lost, stored))):
        raise NotKnownError(
            "its stored rows are not those that its query gives now for the state before the update"
        )
    return by_keys(reader, view, how, keys, change, root.relation)
