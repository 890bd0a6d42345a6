"""What can be wrong with the changes of a batch, taken together; as diagnostics with rows and positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, unique

from datalog.diagnostics import Diagnostic
from datalog.model import Constant, Row
from datalog.syntax import show
from selfmaint.errors import Code
from selfmaint.feeds.ranges import Position, Scale, shown
from selfmaint.feeds.table import FeedTable

SHOWN = 3
"""How many changes a diagnostic names."""


@unique
class Problem(Enum):
    """What is wrong with a change."""

    NULL = "null"
    """Null in a column that is declared without."""
    UNORDERED = "unordered"
    """Nothing says whether it comes before or behind another of the same key."""
    INSERTED_TWICE = "inserted twice"
    """The change before it, of the same key, inserts as well."""
    DELETED_TWICE = "deleted twice"
    """The change before it, of the same key, deletes as well."""
    OTHER_ROW = "other row"
    """It deletes another row than the change before it, of the same key, inserted."""
    UNKNOWN_BEFORE = "unknown before"
    """It is the first of its key, and of the row that it deletes only the key is known."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A change with something wrong, and the row of the change before it."""

    row: Row
    position: Position
    file: str | None = None
    line: int = 0
    previous: Row | None = None


def diagnostic(
    problem: Problem, table: FeedTable, scale: Scale, found: Sequence[Finding], total: int
) -> Diagnostic:
    """What is wrong, with some of the changes."""
    more = "" if total <= len(found) else f"; and {total - len(found)} more"
    shown_found = "; ".join(_finding(problem, table, scale, entry) for entry in found)
    code, what, note, hint = _said(problem, table)
    return Diagnostic(code, f"{what}: {shown_found}{more}", note=note, hint=hint)


def _said(problem: Problem, table: FeedTable) -> tuple[Code, str, str | None, str | None]:
    name = table.name
    twins = None
    if table.key is None:
        twins = f"no key of `{name}` is declared, so its rows are taken to be unique; declare the key"
    match problem:
        case Problem.NULL:
            hint = "its declaration says `not null`, or that it is part of the key"
            return Code.FEED_UNREADABLE, f"the feed of `{name}` holds null where it must not", None, hint
        case Problem.UNORDERED:
            hint = (
                "give the feed with its log positions or versions, or as one file in the order of its events"
            )
            what = f"nothing orders several changes of one row of `{name}`"
            return Code.FEED_UNORDERED, what, "which of them is the last is not known", twins or hint
        case Problem.INSERTED_TWICE:
            what = f"the feed of `{name}` inserts a row that it has inserted before"
            return Code.FEED_CONTRADICTS, what, _PROMISE, twins or _INCOMPLETE
        case Problem.DELETED_TWICE:
            what = f"the feed of `{name}` deletes a row that it has deleted before"
            return Code.FEED_CONTRADICTS, what, _PROMISE, twins or _INCOMPLETE
        case Problem.OTHER_ROW:
            what = f"the feed of `{name}` deletes another row than it has inserted before"
            return Code.FEED_CONTRADICTS, what, _PROMISE, _INCOMPLETE
        case Problem.UNKNOWN_BEFORE:
            what = f"the feed of `{name}` says of rows that go only their keys"
            hint = (
                "let the source log whole rows (PostgreSQL: `REPLICA IDENTITY FULL`; MySQL: "
                "`binlog_row_image=FULL`), or, if it does, say `full_before_images = true` in `[feed]`"
            )
            return Code.FEED_BEFORE_IMAGE, what, "views lose what the old row gave them", hint


_PROMISE = "a feed is complete and in order: an insertion finds no row of its key, a deletion the last one"
_INCOMPLETE = "read the feed anew from a position that is known; nothing was applied"


def _finding(problem: Problem, table: FeedTable, scale: Scale, found: Finding) -> str:
    row = _row(table, found.row, key_only=problem is Problem.UNKNOWN_BEFORE)
    before = f", not {_row(table, found.previous)}" if problem is Problem.OTHER_ROW and found.previous else ""
    return f"{row}{before}{_place(scale, found)}"


def _place(scale: Scale, found: Finding) -> str:
    places = []
    if found.position and scale.has_range:
        places.append(f"at {scale.value} {shown(found.position)}")
    if found.file is not None:
        places.append(f"in `{found.file}`, line {found.line}")
    return f" {', '.join(places)}" if places else ""


def _row(table: FeedTable, row: Row, *, key_only: bool = False) -> str:
    columns = table.identity if key_only else range(len(table.columns))
    return f"({', '.join(f'{table.columns[i]}={show(Constant(row[i]))}' for i in columns)})"
