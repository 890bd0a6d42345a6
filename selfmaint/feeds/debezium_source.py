"""The `source` of a Debezium event: the table, and the position in the database's log."""

from __future__ import annotations

import re
from typing import Any

from selfmaint.errors import Code
from selfmaint.feeds.events import RecordError
from selfmaint.feeds.positions import Position, Scale, position_of

_BINLOG_FILE = re.compile(r".*\.([0-9]+)")
_SQL_SERVER = re.compile(r"[0-9A-Fa-f]{8}:[0-9A-Fa-f]{8}:[0-9A-Fa-f]{4}")


def table_names(source: object) -> tuple[str, ...]:
    """The names that the source table may go by, the fullest first; none where the event does not say it.

    >>> table_names({"db": "shop", "schema": "public", "table": "orders"})
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
