"""The net effect of a relation's changes by statements over windows, on any engine, and what is wrong with them.

Per key, in the order of the changes, the first and the last are all that matters: insert ... insert leaves the last
row, insert ... delete nothing, delete ... delete the first row's deletion, delete ... insert both (partial condense),
and nothing if both are the same row (a row that is carried over, or changed back).

Conditions of soundness:

1. The order of each key's changes is that in which the source made them.
2. What no complete, ordered feed holds is refused (`Problem`): the first change of a key, if it deletes, deletes
   the row of before the batch, and if it inserts, there was none.
3. A key is in one row at a time. Without a declared key, the whole row is the key: each row occurs at most once.

Source: Zhou, Larson and Elmongui, Lazy Maintenance of Materialized Views (VLDB 2007), section 4, Table 1 and "partial
condense".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum, unique
from functools import partial
from typing import Generic

from msgspec import Struct

from datalog.diagnostics import Diagnostic
from datalog.model import ColumnType, Constant, Row, TypeName
from datalog.sql import changes as sql
from datalog.syntax import show
from selfmaint.engine.protocol import D, Engine
from selfmaint.errors import Code, InputError, input_error
from selfmaint.feeds.ranges import Position, Scale, shown
from selfmaint.feeds.table import FeedTable
from selfmaint.store.exchange import Exchange

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


class Finding(Struct, frozen=True):
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
        twins = f"no key of `{name}` is declared, so its rows are taken to be unique; declare the key, "
        twins += "or give files of inserted and deleted rows as an update: `--update`"
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


_INT, _BIGINT, _STRING = (ColumnType(TypeName(name)) for name in ("int", "bigint", "string"))
_BOOLEAN = ColumnType(TypeName.BOOLEAN)
_JUDGED = (_INT, _INT, _STRING, _STRING, _STRING, _BIGINT, _BOOLEAN, _BIGINT, _BOOLEAN, _STRING)
_FOUND = (_STRING, _STRING, _BIGINT, _INT)
_DIGITS = 19
"""Of a line or a kind, so that its text is in its order."""


class Changes(Struct, Generic[D], frozen=True):
    """The changes of a relation.

    Attributes:
        query: what gives them, as `datalog.sql.changes` has them.
        parts: the relations that it reads.
        repeated: the scales in which a change may be delivered again.
    """

    query: sql.Changes
    parts: Sequence[D]
    repeated: Sequence[Scale] = ()


class Condensed(Struct, Generic[D], frozen=True):
    """The net effect of a relation's changes.

    Attributes:
        deleted: rows of before the batch that are gone after it, held.
        inserted: rows of after the batch that were not there before, held.
        events: how many events there were.
        repeated: how many of them repeat another.
        upto: the last position; None where there are none.
    """

    deleted: D
    inserted: D
    events: int
    repeated: int
    upto: Position | None


def condensed(
    engine: Engine[D], exchange: Exchange[D], changes: Changes[D], table: FeedTable
) -> Condensed[D]:
    """The net effect of a relation's changes, computed now.

    Raises:
        InputError: SM602 null where it must not be; SM603 changes of a key that nothing orders, or positions of
            several kinds; SM604 changes that cannot follow each other; SM605 a row that goes, of which only the
            key is known; every kind with some of the changes.
    """
    width, row = len(table.columns), list(zip(table.columns, table.types, strict=True))
    judged = engine.keep(judged_changes(exchange, changes, table))

    def of_judged(query: Callable[[str], sql.Query], columns: Sequence[tuple[str, ColumnType]]) -> D:
        return exchange.computed(lambda names: query(names[0]), [judged], columns)

    problems = [problem.name for problem in Problem]
    types = [_BIGINT, _BIGINT, _STRING, _STRING, _STRING, *[_BIGINT] * len(problems)]
    seen = of_judged(lambda name: sql.measures(name, width, problems), _columns(types))
    ((events, again, upto, lowest, highest, *numbers),) = engine.sample(seen, 1)
    scale = _scale({Scale[str(name)] for name in (lowest, highest) if name is not None}, table)
    wrong = []
    for problem, number in zip(Problem, numbers, strict=True):
        if number:
            first = partial(sql.wrong, width=width, problem=problem.name, most=SHOWN)
            found = of_judged(first, _columns([*table.types * 2, *_FOUND]))
            assert scale is not None
            shown = _findings(engine.sample(found, SHOWN), width)
            wrong.append(diagnostic(problem, table, scale, shown, int(str(number))))
    if wrong:
        raise InputError(wrong)
    deleted = engine.keep(of_judged(lambda name: sql.deleted(name, width), row))
    inserted = engine.keep(of_judged(lambda name: sql.inserted(name, width), row))
    last = _position(upto) if scale is not None and scale.has_range else None
    return Condensed(deleted, inserted, int(str(events)), int(str(again)), last)


def judged_changes(exchange: Exchange[D], changes: Changes[D], table: FeedTable) -> D:
    """The changes without repetitions, and what is wrong with each: see `sql.judged`."""
    follows = [scale.name for scale in Scale if scale.follows_lines]
    repeated = [scale.name for scale in changes.repeated]
    shape = sql.Shape(len(table.columns), table.identity, table.not_null, repeated, follows)
    types = _columns([*table.types * 3, *_JUDGED])
    return exchange.computed(lambda names: sql.judged(changes.query(names), shape), changes.parts, types)


def _columns(types: Iterable[ColumnType]) -> list[tuple[str, ColumnType]]:
    return [(f"c{i}", kind) for i, kind in enumerate(types)]


def _scale(found: set[Scale], table: FeedTable) -> Scale | None:
    if len(found) > 1:
        raise input_error(
            Code.FEED_UNORDERED,
            f"the feed of `{table.name}` has positions of several kinds: "
            f"{' and '.join(sorted(scale.value for scale in found))}",
            hint="give the events of one source as one feed",
        )
    return next(iter(found), None)


def _findings(rows: Iterable[Row], width: int) -> list[Finding]:
    """The changes with a problem, in order; see `sql.wrong`."""
    found = []
    for row in sorted(rows, key=lambda row: [str(v or "").zfill(_DIGITS) for v in (*row[2 * width :], *row)]):
        position, file, line, _ = row[2 * width :]
        place = None if file is None else str(file), int(str(line))
        found.append(Finding(row[:width], _position(position), *place, row[width : 2 * width]))
    return found


def _position(text: object) -> Position:
    return tuple(int(number) for number in str(text).split(":")) if text else ()
