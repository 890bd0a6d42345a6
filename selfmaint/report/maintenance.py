"""What `maintain` read, changed and verified: tables for people, objects for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table

from selfmaint.api.maintain import Maintained
from selfmaint.api.verify import Difference
from selfmaint.api.warehouse import Warehouse
from selfmaint.engine.protocol import D
from selfmaint.report.values import Json, cell, json_rows, shown_rows
from selfmaint.sources.protocol import Read


@dataclass(frozen=True, slots=True)
class Change:
    """How many rows a view gained and lost; of a view that keeps duplicates each as often as it stands."""

    view: str
    gained: int
    lost: int


def changes(warehouse: Warehouse[D], maintained: Maintained[D]) -> tuple[Change, ...]:
    """The size of each view's change; one count on the engine for each delta."""
    engine, counted = warehouse.engine, {v.name for v in warehouse.catalog.views if v.is_counted}

    def size(name: str, rows: D) -> int:
        return engine.bags.copies(rows) if name in counted else engine.count(rows)

    return tuple(Change(n, size(n, d.gained), size(n, d.lost)) for n, d in maintained.deltas.items())


def changes_json(found: Sequence[Change]) -> Json:
    """A list of `{view, gained, lost}`."""
    return [{"view": c.view, "gained": c.gained, "lost": c.lost} for c in found]


def changes_table(found: Sequence[Change]) -> Table:
    """One line for each view."""
    table = Table(title="changes", title_justify="left")
    table.add_column("view", overflow="fold")
    table.add_column("gained", justify="right")
    table.add_column("lost", justify="right")
    for change in found:
        table.add_row(cell(change.view), f"{change.gained:,}", f"{change.lost:,}")
    return table


def reads_json(reads: Sequence[Read]) -> Json:
    """A list of `{relation, key_columns, keys_asked, rows_read, bytes_read, source}`, in order."""
    return [
        {
            "relation": read.relation,
            "key_columns": list(read.key_columns),
            "keys_asked": read.keys_asked,
            "rows_read": read.rows_read,
            "bytes_read": read.bytes_read,
            "source": read.source,
        }
        for read in reads
    ]


def reads_table(reads: Sequence[Read]) -> Table:
    """One line for each read of a base relation."""
    table = Table(title="base relations read", title_justify="left")
    for name in ("relation", "source", "by"):
        table.add_column(name, overflow="fold")
    for name in ("keys asked", "rows read", "bytes read"):
        table.add_column(name, justify="right")
    for read in reads:
        table.add_row(
            cell(read.relation),
            cell(read.source),
            cell(", ".join(read.key_columns) or "the whole relation"),
            f"{read.keys_asked:,}",
            f"{read.rows_read:,}",
            f"{read.bytes_read:,}",
        )
    return table


def differences_json(found: Sequence[Difference]) -> Json:
    """A list of `{view, missing, extra}` with some rows of each."""
    return [{"view": d.view, "missing": json_rows(d.missing), "extra": json_rows(d.extra)} for d in found]


def differences_table(found: Sequence[Difference]) -> Table:
    """One line for each view that recomputing shows to be different."""
    table = Table(title="recomputing from the sources gives something else", title_justify="left")
    for name in ("view", "rows missing", "rows too many"):
        table.add_column(name, overflow="fold")
    for difference in found:
        missing, extra = shown_rows(difference.missing), shown_rows(difference.extra)
        table.add_row(cell(difference.view), cell(missing), cell(extra))
    return table
