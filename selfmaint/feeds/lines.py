"""Events of JSON lines, one line at a time, and of records at hand; every one that cannot be read is named."""

from __future__ import annotations

import contextlib
import gzip
import json
from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import IO, TypeAlias, cast

from msgspec import Struct, field

from datalog.copies import replace
from datalog.diagnostics import Diagnostic
from datalog.model import Span
from selfmaint.errors import Code, InputError, input_error
from selfmaint.feeds.changes import Event, EventReader, Ignored, RecordError, RowEvent
from selfmaint.feeds.formats import ColumnFeedReader
from selfmaint.feeds.ranges import Bounds

MAX_PROBLEMS = 20
"""After so many lines that cannot be read, reading ends."""


class Tally(Struct):
    """What was read besides events that change rows of the relations.

    Attributes:
        ignored: how many events change no row, by what they are.
        outside: how many lie outside the range of positions.
        sources: the source tables that each relation's events are of.
    """

    ignored: dict[Ignored, int] = field(default_factory=dict)
    outside: int = 0
    sources: dict[str, set[str]] = field(default_factory=dict)

    def admits(self, event: Event, within: Bounds) -> bool:
        """Whether an event changes a row and lies in the range; if not, it is counted."""
        if isinstance(event, Ignored):
            self.ignored[event] = self.ignored.get(event, 0) + 1
            return False
        if not within.is_open and event.scale.has_range and not within.holds(event.position):
            self.outside += 1
            return False
        self.sources.setdefault(event.relation, set()).add(event.table)
        return True

    def check_sources(self) -> None:
        """Whether each relation's events are of one table, or of tables that the warehouse file maps to it.

        Raises:
            InputError: SM601 two tables happen to have the relation's name.
        """
        for relation, tables in self.sources.items():
            if len(tables) > 1:
                shown = " and ".join(f"`{table}`" for table in sorted(tables) if table)
                raise input_error(
                    Code.FEED_FORMAT,
                    f"the feed has events of several tables for `{relation}`: {shown}",
                    hint="name each table that is part of it in `[feed.tables]`, the others in `ignored`",
                )


class PlacedEvent(Struct, frozen=True):
    """An event that changes a row, and where it stands; without a file nothing says what comes before it."""

    event: RowEvent
    file: str | None
    line: int


Record: TypeAlias = tuple[str | Path | None, int, object]
"""A parsed record: a JSON value, or a mapping from columns to values; with its file and line."""


def parsed(text: str) -> object:
    """A JSON value, its numbers exact.

    Raises:
        ValueError: it is none, or one that is nested too deeply, or has a number of thousands of digits.
    """
    try:
        return json.loads(text, parse_float=Decimal, parse_constant=str)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def first_record(files: Iterable[Path]) -> object:
    """The first record of some files that is not null; None if there is none that can be read."""
    for path in files:
        with contextlib.suppress(OSError, EOFError), _opened(path) as stream:
            for raw in stream:
                with contextlib.suppress(ValueError):
                    record = parsed(raw.decode("utf-8"))
                    if record is not None:
                        return record
    return None


def placed_events(
    records: Iterable[Record],
    reader: EventReader,
    within: Bounds,
    tally: Tally,
    problems: list[Diagnostic] | None = None,
) -> Iterator[PlacedEvent]:
    """The events that change rows, in the order of the records.

    `tally` counts what is not given back; `problems` are those of whoever gives the records.

    Raises:
        InputError: at the end, if some could not be read: SM601, SM602, ... with file and line; see `check_sources`.
    """
    wrong = [] if problems is None else problems
    has_places = not isinstance(reader, ColumnFeedReader)  # rows of one version are one event
    for file, line, record in records:
        try:
            event = reader.read(record)
            if isinstance(event, RowEvent):
                _require_range(event, within)
        except RecordError as error:
            wrong.extend(_at(one, file, line) for one in error.diagnostics)
        else:
            if tally.admits(event, within) and isinstance(event, RowEvent) and not wrong:
                place = (None if file is None else str(file), line) if has_places else (None, 0)
                yield PlacedEvent(event, *place)
        if len(wrong) >= MAX_PROBLEMS:
            break
    if wrong:
        raise InputError(list(dict.fromkeys(wrong)))
    tally.check_sources()


def line_records(files: Iterable[Path], problems: list[Diagnostic]) -> Iterator[Record]:
    """The records of JSON lines files, `.gz` ones compressed, in the files' order; empty lines are none."""
    for path in files:
        yield from _records(path, problems)
        if len(problems) >= MAX_PROBLEMS:
            return


def frame_records(records: Iterable[object], problems: list[Diagnostic]) -> Iterator[Record]:
    """The records of a frame, texts of JSON parsed; nothing says in what order they were made."""
    for number, record in enumerate(records):
        try:
            found = parsed(record) if isinstance(record, str) else record
        except ValueError as error:
            message = f"an event of the feed is no JSON value: {error}"
            problems.append(Diagnostic(Code.FEED_UNREADABLE, message))
        else:
            yield None, number, found


def _require_range(event: RowEvent, within: Bounds) -> None:
    """Refuses an event without a position, where a range is asked for."""
    if not within.is_open and not event.scale.has_range:
        raise RecordError(
            Code.FEED_UNORDERED,
            "an event without a position, of which nothing says whether it is in the range",
            hint="give the whole feed, without a range",
        )


def _records(path: Path, problems: list[Diagnostic]) -> Iterator[Record]:
    try:
        with _opened(path) as stream:
            for number, raw in enumerate(stream, 1):
                if not raw.strip():
                    continue
                try:
                    record = parsed(raw.decode("utf-8"))
                except ValueError as error:
                    problems.append(_unreadable(error, str(path), number, cut=not raw.endswith(b"\n")))
                else:
                    yield path, number, record
                if len(problems) >= MAX_PROBLEMS:
                    return
    except (OSError, EOFError) as error:
        message = f"the feed `{path}` cannot be read to its end: {str(error).lower()}"
        problems.append(Diagnostic(Code.FEED_UNREADABLE, message))


def _opened(path: Path) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path, "rb")) if path.suffix == ".gz" else path.open("rb")


def _unreadable(error: ValueError, file: str, line: int, *, cut: bool) -> Diagnostic:
    column = error.colno if isinstance(error, json.JSONDecodeError) else 1
    reason = str(error).partition(";")[0].lower()
    if isinstance(error, json.JSONDecodeError):
        reason = error.msg.lower()
    elif isinstance(error, UnicodeDecodeError):
        reason = "it is not UTF-8 text"
    what = "the last line of the feed is cut off" if cut else "a line of the feed is no JSON value"
    return Diagnostic(
        Code.FEED_UNREADABLE,
        f"{what}: {reason}",
        span=Span(line, column, 1, file),
        hint="write the feed anew from the last position that was read; nothing was applied",
    )


def _at(found: Diagnostic, file: str | Path | None, line: int) -> Diagnostic:
    return replace(found, span=Span(line, 1, 1, str(file))) if isinstance(file, Path) else found
