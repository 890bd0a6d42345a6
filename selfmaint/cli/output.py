"""Printing: results to standard output, everything else to standard error; and the exit status of errors."""

from __future__ import annotations

import contextlib
import json
import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from threading import Timer
from typing import TYPE_CHECKING

from rich.console import Console, RenderableType
from rich.table import Table

from datalog.budget import observed
from datalog.copies import replace
from datalog.diagnostics import Code, Diagnostic
from datalog.errors import DatalogError
from selfmaint.cli.app import BAD_USAGE, EndedError
from selfmaint.errors import SelfmaintError
from selfmaint.report.errors import diagnostics_text, errors_json, errors_text, kept_as_text, warnings_json
from selfmaint.report.values import Json, cell

if TYPE_CHECKING:
    from selfmaint.feeds.changes import FeedReport

_PATIENCE_S = 1.0
"""How long nothing is said of what is being done."""

_PLAIN_WIDTH = 140
"""How wide tables are where no terminal says it."""


class Format(StrEnum):
    """How results are printed."""

    TABLE = "table"
    JSON = "json"


def print_text(*parts: RenderableType) -> None:
    """Prints tables for people; and strings as they are, for they may be statements."""
    console = Console(highlight=False, emoji=False)
    if not console.is_terminal and "COLUMNS" not in console._environ:
        console.width = _PLAIN_WIDTH
    for part in parts:
        if isinstance(part, str):
            sys.stdout.write(part + "\n")
        else:
            console.print(part, markup=False)


def print_json(value: Json) -> None:
    """Prints one JSON value on a line of its own."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")


def print_feed(report: FeedReport | None) -> None:
    """Prints what a change feed came to, if the update is from one."""
    if report is not None:
        print_text(_feed_table(report))


def feed_entry(report: FeedReport | None) -> dict[str, Json]:
    """The same for JSON: nothing, if the update is not from a feed."""
    return {} if report is None else {"feed": _feed_json(report)}


def print_error(error: SelfmaintError | DatalogError, format_: Format) -> None:
    """Prints an error to standard error."""
    if format_ is Format.JSON:
        sys.stderr.write(json.dumps(errors_json(error), ensure_ascii=False) + "\n")
    else:
        sys.stderr.write(errors_text(error) + "\n")


def print_warnings(warnings: Sequence[Diagnostic], format_: Format) -> None:
    """Prints what is odd, but accepted, to standard error."""
    if not warnings:
        return
    text = json.dumps(warnings_json(warnings), ensure_ascii=False)
    sys.stderr.write((text if format_ is Format.JSON else diagnostics_text(_each_once(warnings))) + "\n")


def _each_once(warnings: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Of warnings that say the same of one text the first, and in how many more places it is so."""
    alike: dict[tuple[object, ...], list[Diagnostic]] = {}
    for one in warnings:
        text = one.span and one.span.source
        alike.setdefault((one.code, one.message, text, one.note, one.hint), []).append(one)
    return [_with_others(first, len(more)) for first, *more in alike.values()]


def _with_others(one: Diagnostic, number: int) -> Diagnostic:
    places = f"{number} more place{'s' if number > 1 else ''} of this text"
    said = [] if one.note is None else [one.note]
    return replace(one, note="; ".join([*said, f"the same in {places}"])) if number else one


def print_note(format_: Format, text: str) -> None:
    """Prints what is good to know to standard error, which JSON's readers need not."""
    if format_ is not Format.JSON:
        sys.stderr.write(f"note: {text}\n")


_MOST_PASSED = 3


def print_briefly(warnings: Sequence[Diagnostic], format_: Format, *, kept_too: bool = True) -> None:
    """Prints the same, but of SQL that is kept as text only in how many places; `audit` and `sql` print where.

    So it does of many statements that are passed over. `kept_too`: whether of the former anything is said.
    """
    passed = [one for one in warnings if one.code is Code.SQL_SKIPPED]
    if format_ is not Format.JSON and len(passed) > _MOST_PASSED:
        warnings = [one for one in warnings if one not in passed]
        sys.stderr.write(f"note: {len(passed)} statements that define no view and no table (DL407)\n")
    kept = [one for one in warnings if one.code is Code.SQL_UNSUPPORTED]
    is_said = format_ is Format.JSON and kept_too
    print_warnings([one for one in warnings if is_said or one not in kept], format_)
    if kept and kept_too and not is_said:
        sys.stderr.write(f"note: {kept_as_text(len(kept))}; `selfmaint audit` says where and why (DL402)\n")


@contextlib.contextmanager
def reporting(format_: Format) -> Iterator[None]:
    """Turns bad input into a message and exit status 2, and what is warned of meanwhile into messages."""
    warnings = _Warnings(format_)
    logger = logging.getLogger("selfmaint")
    logger.addHandler(warnings)
    # What the parser of SQL says of other dialects is no use to anybody: diagnostics say what matters.
    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)
    try:
        yield
    except (SelfmaintError, DatalogError) as error:
        print_error(error, format_)
        raise EndedError(BAD_USAGE) from None
    finally:
        logger.removeHandler(warnings)


class _Warnings(logging.Handler):
    """Prints the diagnostics that the library logs; they have no other way out of what goes on."""

    def __init__(self, format_: Format) -> None:
        super().__init__(logging.WARNING)
        self._format = format_

    def emit(self, record: logging.LogRecord) -> None:
        """Prints one to standard error."""
        found = getattr(record, "diagnostic", None)
        if isinstance(found, Diagnostic):
            print_warnings([found], self._format)
        else:
            sys.stderr.write(f"{record.getMessage()}\n")


@contextlib.contextmanager
def progressing() -> Iterator[Callable[[str], None]]:
    """A line on the terminal that says what is being done, once it takes a while; nothing without a terminal."""
    console = Console(stderr=True, emoji=False)
    if not console.is_terminal:
        yield lambda _: None
        return
    status = console.status("starting")
    shown = Timer(_PATIENCE_S, status.start)
    shown.daemon = True

    def tell(message: str) -> None:
        status.update(console.render_str(message, markup=False, highlight=False))

    shown.start()
    try:
        with observed(tell):
            yield tell
    finally:
        shown.cancel()
        shown.join()  # it may be starting the status just now
        status.stop()


def _feed_json(report: FeedReport | None) -> Json:
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


def _feed_table(report: FeedReport) -> Table:
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


def print_committed(version: int, format_: Format, nothing: str) -> None:
    """Says that the store has an update already; in JSON a list has `nothing`."""
    if format_ is Format.JSON:
        print_json({"committed_before": version, nothing: []})
    else:
        print_text(f"this update was committed before, in snapshot {version}: nothing was done")
