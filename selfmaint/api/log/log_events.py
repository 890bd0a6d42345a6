"""What a server's log says of the base relations: rows that come and go, in the order of commits."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from enum import Enum, auto

from msgspec import Struct, field

from datalog.copies import replace
from datalog.diagnostics import Diagnostic
from datalog.model import ColumnType, Row, TypeName
from selfmaint.errors import Code, InputError
from selfmaint.feeds.changes import RecordError, RowEvent
from selfmaint.feeds.lines import PlacedEvent
from selfmaint.feeds.ranges import Scale
from selfmaint.feeds.record import RowReader
from selfmaint.feeds.settings import FeedSettings
from selfmaint.feeds.table import FeedTable
from selfmaint.feeds.values import Encoding
from selfmaint.postgres.pgoutput import (
    UNCHANGED,
    Begin,
    Commit,
    Image,
    Message,
    RowChange,
    Table,
    Truncation,
    Unchanged,
)
from selfmaint.postgres.published import LoggedTable, mark
from selfmaint.store.log_position import lsn_text

_NO_ENCODINGS: Mapping[str, Encoding] = {}
_REAL = 700
_IMPORT = "bring all views in anew, from the sources as they are now: `selfmaint import WAREHOUSE.toml`"


class Choice(Enum):
    """What is done with a transaction."""

    TAKE = auto()
    SKIP = auto()
    STOP = auto()
    """It and all after it are left to the next time."""


class Tally(Struct):
    """What was read.

    Attributes:
        transactions: how many transactions were taken.
        changes: how many changed rows they have.
        end: the place after the commit of the last one that was taken or skipped; None where there was none.
        xids: the ids of those taken, as the log has them.
        messages: how many messages there were.
        is_stopped: whether some were left.
        time_s: when the last one taken committed by the server's clock, in seconds since 1970.
    """

    transactions: int = 0
    changes: int = 0
    end: int | None = None
    xids: list[int] = field(default_factory=list)
    messages: int = 0
    is_stopped: bool = False
    time_s: float | None = None


class _Layout(Struct):
    """What a table looks like at a place of the log."""

    relation: str
    full_name: str
    reader: RowReader
    names: tuple[str, ...]
    values: tuple[Callable[[str], object] | None, ...]
    problem: Diagnostic | None = None


class LogEvents:
    """Turns messages into events of base relations."""

    def __init__(
        self, tables: Sequence[LoggedTable], relations: Mapping[str, FeedTable], settings: FeedSettings
    ) -> None:
        """Nothing is read yet."""
        self._tables = {table.oid: table for table in tables}
        self._named = {(table.schema, table.name): table for table in tables}
        self._relations, self._settings = relations, settings

    def events(
        self, messages: Iterable[Message], choose: Callable[[Begin], Choice], tally: Tally
    ) -> Iterator[PlacedEvent]:
        """The events of the transactions that are chosen.

        Choices are asked in the order of commits; one that stops ends it.

        Raises:
            InputError: SM104, SM602, SM605, SM606 a change that cannot be followed, with its place in the log; SM608
                a table that is another than before.
        """
        layouts: dict[int, _Layout | None] = {}
        begin, is_taken, number = Begin(0, 0), False, 0
        for one in messages:
            tally.messages += 1
            match one:
                case Begin():
                    begin, number = one, 0
                    choice = choose(one)
                    if choice is Choice.STOP:
                        tally.is_stopped = True
                        return
                    is_taken = choice is Choice.TAKE
                case Commit():
                    tally.end = one.end
                    if is_taken:
                        tally.transactions += 1
                        tally.time_s = begin.time_s
                        tally.xids.append(begin.xid)
                case Table():
                    layouts[one.oid] = self._layout(one)
                case RowChange() | Truncation() if is_taken:
                    number += 1
                    event = self._placed(one, layouts, begin, number)
                    if event is not None:
                        tally.changes += 1
                        yield event

    def _placed(
        self, one: RowChange | Truncation, layouts: Mapping[int, _Layout | None], begin: Begin, number: int
    ) -> PlacedEvent | None:
        """The event of a change; None for one of a table that is no base relation."""
        known = [layouts.get(oid) for oid in ([one.table] if isinstance(one, RowChange) else one.tables)]
        found = next((layout for layout in known if layout is not None), None)
        if found is None:
            return None
        if found.problem is not None:
            wrong: Sequence[Diagnostic] = [found.problem]
        else:
            try:
                return PlacedEvent(_event(one, found, (begin.commit, number)), None, number)
            except RecordError as error:
                wrong = error.diagnostics
            except InputError as error:
                wrong = error.diagnostics
        place = f"at log sequence number {lsn_text(begin.commit)}, transaction {begin.xid}, table `{found.full_name}`"
        raise InputError([replace(one, message=f"{one.message}, {place}") for one in wrong])

    def _layout(self, table: Table) -> _Layout | None:
        """How the rows of a table are read from here on; None for one that is no base relation."""
        known = self._tables.get(table.oid) or self._named.get((table.schema, table.name))
        if known is None:
            return None
        relation = self._relations[known.relation]
        types = dict(zip(relation.columns, relation.types, strict=True))
        values = tuple(
            _reading(types[column.name], column.type) if column.name in types else None
            for column in table.columns
        )
        names = tuple(column.name for column in table.columns)
        reader = RowReader(relation, self._settings)
        found = _Layout(known.relation, table.full_name, reader, names, values)
        if mark(table.oid, table.columns, relation.columns) != known.mark:
            found.problem = self._changed(known, table, relation)
        return found

    def _changed(self, known: LoggedTable, table: Table, relation: FeedTable) -> Diagnostic:
        """That a table is not what it was when the views' contents were made."""
        missing = [name for name in relation.columns if name not in {column.name for column in table.columns}]
        if missing and table.oid == known.oid:
            names = ", ".join(f"`{name}`" for name in missing)
            message = f"`{known.relation}` has no column {names} any more"
            hint = f"rename it in the views, or name it back; then {_IMPORT}"
            return Diagnostic(Code.COLUMNS_DIFFER, message, hint=hint)
        return changed_table(known.relation, OTHER_TYPES if table.oid == known.oid else OTHER_TABLE)


def changed_table(relation: str, what: str) -> Diagnostic:
    """That a table is not what it was when the views were made."""
    message = f"the table of `{relation}` {what} than when the views were made"
    note = "what became of its rows then is not in the log"
    return Diagnostic(Code.LOG, message, hint=_IMPORT, note=note)


OTHER_TABLE = "is another one of the same name"
OTHER_TYPES = "has columns of other types"
REWRITTEN = "has other values, or columns made anew,"
"""What has become of a table."""


def _event(change: RowChange | Truncation, layout: _Layout, position: tuple[int, int]) -> RowEvent:
    """The event of a row that comes, goes, or changes."""
    old = new = None
    if isinstance(change, Truncation):
        what = f"`{layout.relation}` was truncated, and which rows that deleted the log does not say"
        raise _refused(Code.FEED_REFUSED, what, _IMPORT)
    if change.old is not None and change.is_whole:
        old = _row(layout, change.old, "the old row")
    elif change.new is None or change.is_update:
        raise _refused(
            Code.FEED_BEFORE_IMAGE,
            f"of a row of `{layout.relation}` that goes the log says {'only the key' if change.old else 'nothing'}",
            f"ALTER TABLE {layout.full_name} REPLICA IDENTITY FULL; then {_IMPORT}",
        )
    if change.new is not None:
        new = _row(layout, _completed(change), "the new row")
    return RowEvent(layout.relation, position, Scale.LSN, old, new, table=layout.full_name)


def _completed(change: RowChange) -> Image:
    """The new row; large values that did not change are those of the old one."""
    assert change.new is not None
    if UNCHANGED not in change.new:
        return change.new
    old = change.old if change.is_whole and change.old is not None else (UNCHANGED,) * len(change.new)
    return tuple(
        before if isinstance(value, Unchanged) else value
        for before, value in zip(old, change.new, strict=True)
    )


def _row(layout: _Layout, image: Image, where: str) -> Row:
    if len(image) != len(layout.names):
        raise RecordError(
            Code.FEED_UNREADABLE, f"{where} has {len(image)} values for {len(layout.names)} columns"
        )
    return layout.reader.row(dict(_values(layout, image, where)), where, _NO_ENCODINGS)


def _values(layout: _Layout, image: Image, where: str) -> Iterator[tuple[str, object]]:
    """The values of a row by column; those of columns that no view needs as they are."""
    for name, value, read in zip(layout.names, image, layout.values, strict=True):
        if read is None or value is None:
            yield name, None if isinstance(value, Unchanged) else value
        elif isinstance(value, Unchanged):
            raise _refused(
                Code.FEED_BEFORE_IMAGE,
                f"column `{name}` of `{layout.relation}` is left out in {where}: it is large and did not change",
                f"ALTER TABLE {layout.full_name} REPLICA IDENTITY FULL; then {_IMPORT}",
            )
        else:
            try:
                yield name, read(value)
            except (ValueError, InvalidOperation, KeyError):
                text = f"column `{name}` of `{layout.relation}` in {where}: {value[:60]!r} cannot be read"
                raise RecordError(Code.FEED_UNREADABLE, text) from None


def _reading(declared: ColumnType, stored: int) -> Callable[[str], object]:
    """What makes a text of PostgreSQL's a value as `feeds.values` takes it."""
    match declared.name:
        case TypeName.BOOLEAN:
            return {"t": True, "f": False}.__getitem__
        case name if name.is_integer:
            return int
        case TypeName.FLOAT | TypeName.DOUBLE:
            return _single if stored == _REAL else float
        case TypeName.DECIMAL:
            return Decimal
        case _:
            return str


def _single(text: str) -> float:
    """The double that a number of single precision is."""
    (found,) = struct.unpack("f", struct.pack("f", float(text)))
    return float(found)


def _refused(code: Code, message: str, hint: str) -> RecordError:
    return RecordError(code, message, hint)
