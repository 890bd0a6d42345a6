"""What `maintain` read, changed and verified: tables for people, objects for JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from rich.table import Table

from selfmaint.api.maintained import Maintained
from selfmaint.api.verify import Difference
from selfmaint.api.warehouse import Warehouse
from selfmaint.engine.protocol import D
from selfmaint.fallback.keyed_rows import KeyedDelta
from selfmaint.report.values import Json, json_rows, shown_rows, table
from selfmaint.sources.protocol import Read


class Change(Struct, frozen=True):
    """How many rows a view gained and lost, and how that was found.

    Attributes:
        gained: how many rows; of a view that keeps duplicates each as often as it stands.
        how: see `Maintained.how`.
    """

    view: str
    gained: int
    lost: int
    how: str


def changes(warehouse: Warehouse[D], maintained: Maintained[D]) -> tuple[Change, ...]:
    """The size of each view's change; one count on the engine for each delta."""
    engine, counted = warehouse.engine, {v.name for v in warehouse.catalog.views if v.is_counted}

    def size(name: str, rows: D) -> int:
        return engine.bags.copies(rows) if name in counted else engine.count(rows)

    return tuple(
        Change(n, size(n, d.gained), size(n, d.lost), maintained.how(n)) for n, d in maintained.deltas.items()
    )


def changes_json(found: Sequence[Change]) -> Json:
    """A list of `{view, how, gained, lost}`."""
    return [{"view": c.view, "how": c.how, "gained": c.gained, "lost": c.lost} for c in found]


def changes_table(found: Sequence[Change]) -> Table:
    """One line for each view."""
    rows = ((c.view, c.how, c.gained, c.lost) for c in found)
    return table("changes", ["view", "how"], ["gained", "lost"], rows)


def reads_json(found: Sequence[Read]) -> Json:
    """A list of `{relation, key_columns, keys_asked, rows_read, bytes_read, source, is_of_spans}`, in order."""
    return [
        {
            "relation": read.relation,
            "key_columns": list(read.key_columns),
            "keys_asked": read.keys_asked,
            "rows_read": read.rows_read,
            "bytes_read": read.bytes_read,
            "source": read.source,
            "is_of_spans": read.is_of_spans,
        }
        for read in found
    ]


def reads_table(found: Sequence[Read]) -> Table:
    """One line for each read of a base relation."""
    rows: Iterator[tuple[str | int, ...]] = (
        (r.relation, r.source, by or "the whole relation", r.keys_asked, r.rows_read, r.bytes_read)
        for r in found
        for by in [", ".join(r.key_columns) + (" (spans)" if r.is_of_spans else "")]
    )
    numbers = ["keys asked", "rows read", "bytes read"]
    return table("base relations read", ["relation", "source", "by"], numbers, rows)


def keyed_json(followed: Iterable[KeyedDelta[D]]) -> Json:
    """A list of `{view, key, key_of, keys, relations, whole}`: the views followed by keyed reads, in order.

    `key` names columns of `key_of`: of the view, whose rows of these keys were computed anew, of the base relation
    whose changed rows were added to the view's groups, or of the stored view from whose changed rows it was computed.
    `keys` is the number of its values that the change affects, `relations` were read by keys, and `whole` were read
    whole.
    """
    return [
        {
            "view": one.view,
            "key": list(one.key),
            "key_of": one.of or one.view,
            "keys": one.keys,
            "relations": list(one.relations),
            "whole": list(one.whole),
        }
        for one in followed
    ]


def keyed_table(followed: Iterable[KeyedDelta[D]]) -> Table:
    """One line for each view that was followed by keyed reads."""
    rows: Iterator[tuple[str | int, ...]] = (
        (one.view, key, ", ".join(one.relations), ", ".join(one.whole), one.keys)
        for one in followed
        for of in [one.of or one.view]
        for key in [", ".join(f"{of}.{column}" for column in one.key) or of]
    )
    return table(
        "followed by keyed reads", ["view", "key", "read by keys", "read whole"], ["keys affected"], rows
    )


def differences_json(found: Sequence[Difference]) -> Json:
    """A list of `{view, missing, extra}` with some rows of each."""
    return [{"view": d.view, "missing": json_rows(d.missing), "extra": json_rows(d.extra)} for d in found]


def differences_table(found: Sequence[Difference]) -> Table:
    """One line for each view that recomputing shows to be different."""
    rows = ((d.view, shown_rows(d.missing), shown_rows(d.extra)) for d in found)
    title = "recomputing from the sources gives something else"
    return table(title, ["view", "rows missing", "rows too many"], [], rows)
