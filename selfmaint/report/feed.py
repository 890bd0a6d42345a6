"""What a change feed came to: a table for people, an object for JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

from selfmaint.report.values import Json, cell

if TYPE_CHECKING:
    from selfmaint.feeds.report import FeedReport


def feed_json(report: FeedReport | None) -> Json:
    """`{relations: [{relation, events, repeated, deleted, inserted, upto, key}], ignored, outside}`; null for none."""
    if report is None:
        return None
    return {
        "relations": [
            {
                "relation": entry.relation,
                "events": entry.events,
                "repeated": entry.repeated,
                "deleted": entry.deleted,
                "inserted": entry.inserted,
                "upto": entry.upto,
                "key": entry.has_key,
            }
            for entry in report.relations
        ],
        "ignored": {kind.value: times for kind, times in report.ignored.items()},
        "outside": report.outside,
    }


def feed_table(report: FeedReport) -> Table:
    """One line for each relation; what was left out is named below."""
    table = Table(title="change feed", title_justify="left", caption=_caption(report), caption_justify="left")
    table.add_column("relation", overflow="fold")
    for name in ("events", "rows deleted", "rows inserted"):
        table.add_column(name, justify="right")
    table.add_column("up to", overflow="fold")
    for entry in report.relations:
        numbers = (f"{n:,}" for n in (entry.events, entry.deleted, entry.inserted))
        table.add_row(cell(entry.relation), *numbers, cell(entry.upto or ""))
    return table


def _caption(report: FeedReport) -> str | None:
    repeated = sum(entry.repeated for entry in report.relations)
    said = [f"{times:,} {kind.value} left out" for kind, times in report.ignored.items()]
    if report.outside:
        said.append(f"{report.outside:,} events outside the range left out")
    if repeated:
        said.append(f"{repeated:,} of the events are repetitions")
    said += [
        f"no key of {entry.relation} is declared: its rows are taken to be unique"
        for entry in report.relations
        if not entry.has_key
    ]
    return "; ".join(said) or None
