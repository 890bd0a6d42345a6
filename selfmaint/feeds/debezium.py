"""Debezium's change events: JSON envelopes with `before`, `after`, `op` and `source`, with or without a schema.

    {"before": null, "after": {"id": 1}, "op": "c", "source": {"table": "orders", "lsn": 23803720}}
    {"schema": {...}, "payload": {"before": ..., "after": ..., "op": ..., "source": ...}}
    null

`c` inserts, `d` deletes, `u` does both; `r` (a snapshot read) says that a row is there, not that it was absent
before, and counts as an insertion only in an initial load; `t` (truncate) is refused, for what it deletes is not in
the feed; `m` (a message) and null (a tombstone) change no row.

A before-image may be left out or hold only the key, as PostgreSQL's default replica identity has it. The row that
goes is then known if an earlier event of the batch says it.

Source: the Debezium documentation, "Data change events" of the PostgreSQL, MySQL and SQL Server connectors.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from datalog.model import Row
from selfmaint.errors import Code
from selfmaint.feeds.changes import Event, Ignored, RecordError, RowEvent
from selfmaint.feeds.ranges import Position, Scale, position_of
from selfmaint.feeds.record import RowReader
from selfmaint.feeds.table import TableNames
from selfmaint.feeds.values import Encoding, encodings

_Images = tuple[Row | None, Row | None, bool]
"""The row that goes, the row that comes, and whether only the key of the first is known."""

_KEY_ONLY_CONNECTORS = (None, "postgresql")
_BINLOG_FILE = re.compile(r".*\.([0-9]+)")
_SQL_SERVER = re.compile(r"[0-9A-Fa-f]{8}:[0-9A-Fa-f]{8}:[0-9A-Fa-f]{4}")


class DebeziumReader(Struct):
    """Reads envelopes.

    Attributes:
        tables: what source tables are which relations.
        initial_load: whether the relations were empty before: then snapshot reads are insertions.
    """

    tables: TableNames
    initial_load: bool = False
    _readers: dict[tuple[str, ...], RowReader | None] = field(default_factory=dict)

    def read(self, record: object) -> Event:
        """What an envelope says; see `changes.EventReader`."""
        if record is None:
            return Ignored.TOMBSTONE
        payload, schema = _unwrapped(record)
        if payload is None:
            return Ignored.TOMBSTONE
        op = payload.get("op")
        if op == "m":
            return Ignored.MESSAGE
        source = payload.get("source")
        names = _table_names(source)
        reader = self._reader(names)
        if reader is None:
            return Ignored.TABLE
        known = {part: _encodings(schema, part) for part in ("before", "after")}
        deleted, inserted, partial = self._images(op, payload, reader, known, _connector(source))
        scale, position = position_in(source)
        table = self.tables.shown(names)
        return RowEvent(reader.table.name, position, scale, deleted, inserted, partial, table)

    def _reader(self, names: tuple[str, ...]) -> RowReader | None:
        if names not in self._readers:
            table = self.tables.table(names)
            self._readers[names] = None if table is None else RowReader(table, self.tables.settings)
        return self._readers[names]

    def _images(
        self,
        op: object,
        payload: Mapping[str, Any],
        reader: RowReader,
        known: Mapping[str, Mapping[str, Encoding]],
        connector: object,
    ) -> _Images:
        before, after = payload.get("before"), payload.get("after")
        match op:
            case "c" | "r":
                if op == "r" and not self.initial_load:
                    raise _snapshot(reader.table.name)
                _require_none(before, "before", op)
                return None, self._after(after, op, reader, known), False
            case "u":
                inserted = self._after(after, op, reader, known)
                deleted, partial = self._before(before, after, reader, known, connector)
                return deleted, inserted, partial
            case "d":
                _require_none(after, "after", op)
                deleted, partial = self._before(before, None, reader, known, connector)
                return deleted, None, partial
            case "t":
                raise _truncated(reader.table.name)
            case _:
                raise RecordError(
                    Code.FEED_FORMAT,
                    f"`{op}` is no operation of Debezium's" if op is not None else "an event without `op`",
                    hint="the operations are `c`, `u`, `d`, `r`, `t` and `m`",
                )

    def _after(
        self, after: object, op: str, reader: RowReader, known: Mapping[str, Mapping[str, Encoding]]
    ) -> Row:
        if not isinstance(after, dict):
            raise RecordError(Code.FEED_UNREADABLE, f"an event with `op` `{op}` has no row in `after`")
        return reader.row(after, "`after`", known["after"])

    def _before(
        self,
        before: object,
        after: object,
        reader: RowReader,
        known: Mapping[str, Mapping[str, Encoding]],
        connector: object,
    ) -> tuple[Row, bool]:
        """The row that goes, or its key; and whether that is all that is known.

        An update that leaves `before` out has not changed the source's key. The declared key may be another one:
        so whatever the row was, it is not known from this event.
        """
        table = reader.table
        if isinstance(before, dict) and not self._is_key_only(before, reader, connector):
            return reader.row(before, "`before`", known["before"]), False
        partial = bool(table.rest)
        if isinstance(before, dict):
            row = reader.key_row(before, "`before`", known["before"])
        else:
            row = reader.key_row(after, "`after`", known["after"]) if isinstance(after, dict) else None
            partial = True
        if row is None:
            raise RecordError(
                Code.FEED_BEFORE_IMAGE,
                f"an event of `{table.name}` does not say which row goes",
                note="it has no before-image, and " + ("no key" if table.key else "no key is declared"),
                hint="let the source log whole rows (PostgreSQL: `REPLICA IDENTITY FULL`), or declare the key",
            )
        return row, partial

    def _is_key_only(self, before: Mapping[str, object], reader: RowReader, connector: object) -> bool:
        if not reader.is_key_only(before):
            return False
        missing = any(name not in before for name in reader.table.columns)
        return missing or (connector in _KEY_ONLY_CONNECTORS and not self.tables.settings.full_before_images)


def _unwrapped(record: object) -> tuple[Mapping[str, Any] | None, object]:
    """The envelope, and its schema if it has one."""
    if isinstance(record, dict):
        if "payload" in record and "op" not in record:
            payload = record["payload"]
            if payload is None or isinstance(payload, dict):
                return payload, record.get("schema")
        elif "op" in record or "after" in record or "before" in record:
            return record, None
        if "_change_type" in record:
            raise RecordError(
                Code.FEED_FORMAT,
                "a record with `_change_type` in a feed of Debezium's",
                hint="give the formats of one relation as feeds of their own",
            )
    raise RecordError(
        Code.FEED_FORMAT,
        "a record that is no change event of Debezium's",
        hint="an event has `op`, `before`, `after` and `source`; unwrap nothing (no `ExtractNewRecordState`)",
    )


def _encodings(schema: object, part: str) -> Mapping[str, Encoding]:
    fields = schema.get("fields") if isinstance(schema, dict) else None
    for entry in fields if isinstance(fields, list) else ():
        if isinstance(entry, dict) and entry.get("field") == part:
            try:
                return encodings(entry)
            except ValueError as problem:
                raise RecordError(Code.FEED_UNREADABLE, str(problem)) from None
    return {}


def _connector(source: object) -> object:
    return source.get("connector") if isinstance(source, dict) else None


def _require_none(image: object, name: str, op: str) -> None:
    if image is not None:
        raise RecordError(Code.FEED_UNREADABLE, f"an event with `op` `{op}` has a row in `{name}`")


def _snapshot(relation: str) -> RecordError:
    return RecordError(
        Code.FEED_REFUSED,
        f"a snapshot read (`r`) of `{relation}`: it says that the row is there, not that it was absent before",
        hint="if the relation was empty before, say that this is its initial load (`--initial-load`); "
        "else begin after the snapshot",
    )


def _truncated(relation: str) -> RecordError:
    return RecordError(
        Code.FEED_REFUSED,
        f"`{relation}` was truncated (`t`), and which rows that deleted is not in the feed",
        hint="give the deleted rows as a file, or compute the views of this relation anew",
    )


def _table_names(source: object) -> tuple[str, ...]:
    """The names that the source table may go by, the fullest first; none where the event does not say it.

    >>> _table_names({"db": "shop", "schema": "public", "table": "orders"})
    ('shop.public.orders', 'public.orders', 'shop.orders', 'orders')
    """
    if not isinstance(source, dict) or not isinstance(source.get("table"), str):
        return ()
    table = source["table"]
    database, schema = source.get("db"), source.get("schema")
    prefixes = [f"{database}.{schema}"] if database and schema else []
    prefixes += [str(part) for part in (schema, database) if part]
    return (*(f"{prefix}.{table}" for prefix in prefixes), table)


def position_in(source: object) -> tuple[Scale, Position]:
    """What the position counts, and the position: of PostgreSQL, MySQL, SQL Server, Oracle, else the commit time.

    Raises:
        RecordError: SM602 a position that is none.
    """
    if not isinstance(source, dict):
        return Scale.LINE, ()
    try:
        return _position(source)
    except (TypeError, ValueError) as problem:
        raise RecordError(Code.FEED_UNREADABLE, f"`source` has no readable position: {problem}") from None


def _position(source: dict[str, Any]) -> tuple[Scale, Position]:
    if source.get("lsn") is not None:
        return Scale.LSN, (_number(source["lsn"]),)
    if source.get("file") and source.get("pos") is not None:
        found = _BINLOG_FILE.fullmatch(str(source["file"]))
        if found is None:
            raise ValueError(f"`{source['file']}` is no binary log's name")
        return Scale.BINLOG, (int(found[1]), _number(source["pos"]), _number(source.get("row") or 0))
    if source.get("commit_lsn"):
        change = source.get("change_lsn") or "00000000:00000000:0000"
        for part in (source["commit_lsn"], change):
            if not _SQL_SERVER.fullmatch(str(part)):
                raise ValueError(f"`{part}` is no sequence number")
        serial = _number(source.get("event_serial_no") or 0)
        return Scale.SQL_SERVER, (*position_of(source["commit_lsn"]), *position_of(change), serial)
    if source.get("scn") is not None:
        return Scale.SCN, (_number(source["scn"]),)
    for name in ("ts_ns", "ts_us", "ts_ms"):
        if source.get(name) is not None:
            return Scale.TIME, (_number(source[name]),)
    return Scale.LINE, ()


def _number(value: object) -> int:
    """A number that fits into 64 bits, as JSON's number or as its digits."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise TypeError(f"`{value}` is no number")
    number = int(value)
    if not 0 <= number < 2**63:
        raise ValueError(f"{number} is out of range")
    return number
