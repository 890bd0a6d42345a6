"""Random histories of a keyed table, written in each format by code that shares nothing with the product.

A history is a list of commits, a commit a list of statements on single rows. The table is simulated; what a batch
amounts to is the difference of its first and its last state.
"""

from __future__ import annotations

import base64
import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from hypothesis import strategies as st

PROGRAM = """\
.decl r(id: bigint, name: string, day: date, price: decimal(10, 2), at: timestamp) key(id).
.decl u(a: int, b: string).
v(I, N, D, P, T) :- r(I, N, D, P, T).
w(A, B) :- u(A, B).
"""
COLUMNS = ("id", "name", "day", "price", "at")
EPOCH = dt.datetime(1970, 1, 1)

Row = tuple[Any, ...]
Table = dict[int, Row]


@dataclass(frozen=True)
class Statement:
    """A change of one row: before is None for an insertion, after for a deletion."""

    before: Row | None
    after: Row | None


@dataclass(frozen=True)
class History:
    """The table's states before and after, and what happened between."""

    start: Table
    commits: list[list[Statement]]
    end: Table

    @property
    def deleted(self) -> set[Row]:
        return set(self.start.values()) - set(self.end.values())

    @property
    def inserted(self) -> set[Row]:
        return set(self.end.values()) - set(self.start.values())


values = st.tuples(
    st.sampled_from([None, "a", "b", 'it\'s "q" \u00e9']),
    st.sampled_from([None, dt.date(1969, 12, 30), dt.date(2026, 1, 31)]),
    st.sampled_from([None, Decimal("0.00"), Decimal("-1.05"), Decimal("12345678.90")]),
    st.sampled_from([None, dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(2026, 1, 31, 12)]),
)
keys = st.integers(0, 4)


@st.composite
def histories(draw: st.DrawFn, commits: int = 4, statements: int = 4) -> History:
    start = {key: (key, *draw(values)) for key in draw(st.sets(keys))}
    table = dict(start)
    done = []
    for _ in range(draw(st.integers(0, commits))):
        commit = []
        for _ in range(draw(st.integers(1, statements))):
            statement = draw(_statement(table))
            if statement.before is not None:
                del table[statement.before[0]]
            if statement.after is not None:
                table[statement.after[0]] = statement.after
            commit.append(statement)
        done.append(commit)
    return History(start, done, table)


@st.composite
def _statement(draw: st.DrawFn, table: Table) -> Statement:
    free = sorted(set(range(5)) - set(table))
    kinds: list[Literal["insert", "delete", "update", "move"]] = []
    kinds += ["insert"] if free else []
    kinds += ["delete", "update"] if table else []
    kinds += ["move"] if table and free else []
    kind = draw(st.sampled_from(kinds))
    if kind == "insert":
        return Statement(None, (draw(st.sampled_from(free)), *draw(values)))
    before = table[draw(st.sampled_from(sorted(table)))]
    match kind:
        case "delete":
            return Statement(before, None)
        case "move":  # the key changes
            return Statement(
                before, (draw(st.sampled_from(free)), *draw(st.one_of(st.just(before[1:]), values)))
            )
        case _:
            return Statement(before, (before[0], *draw(values)))


# ------------------------------------------------------------------------------------------------ Debezium


def image(row: Row | None) -> dict[str, Any] | None:
    """A row as Debezium writes it without a schema: days, digits, microseconds."""
    if row is None:
        return None
    key, name, day, price, at = row
    return {
        "id": key,
        "name": name,
        "day": None if day is None else (day - EPOCH.date()).days,
        "price": None if price is None else str(price),
        "at": None if at is None else round((at - EPOCH) / dt.timedelta(microseconds=1)),
        "not_declared": {"nested": [1]},
    }


def precise(row: Row | None) -> dict[str, Any] | None:
    """A row as with a schema: the decimal as bytes, the timestamp with a zone."""
    found = image(row)
    if found is None or row is None:
        return None
    _, _, _, price, at = row
    number = None if price is None else int(price * 100)
    width = 8
    text = None if number is None else base64.b64encode(number.to_bytes(width, "big", signed=True)).decode()
    return {**found, "price": text, "at": None if at is None else at.isoformat() + "+00:00"}


def _struct(part: str) -> dict[str, Any]:
    fields = [
        {"field": "id", "type": "int64", "optional": False},
        {"field": "name", "type": "string", "optional": True},
        {"field": "day", "type": "int32", "name": "io.debezium.time.Date", "optional": True},
        {
            "field": "price",
            "type": "bytes",
            "name": "org.apache.kafka.connect.data.Decimal",
            "parameters": {"scale": "2"},
        },
        {"field": "at", "type": "string", "name": "io.debezium.time.ZonedTimestamp", "optional": True},
    ]
    return {"field": part, "type": "struct", "optional": True, "fields": fields}


SCHEMA = {
    "type": "struct",
    "fields": [_struct("before"), _struct("after"), {"field": "op", "type": "string"}],
}


def debezium(
    history: History, *, wrapped: bool = False, whole: bool = True, table: str = "r", lsn: int = 100
) -> Iterator[dict[str, Any] | None]:
    """The events, a tombstone after each deletion; a changed key is a deletion and an insertion at one position.

    With `whole` false, before-images hold what PostgreSQL's default replica identity logs.
    """
    write = precise if wrapped else image
    for commit in history.commits:
        for statement in commit:
            lsn += 7
            for op, before, after in _operations(statement):
                old = write(before)
                if not whole and old is not None:
                    old = None if op == "u" else {name: old[name] if name == "id" else None for name in old}
                source = {
                    "connector": "postgresql",
                    "table": table,
                    "schema": "public",
                    "lsn": lsn,
                    "ts_ms": 5,
                }
                payload = {"before": old, "after": write(after), "op": op, "source": source}
                yield {"schema": SCHEMA, "payload": payload} if wrapped else payload
                if op == "d":
                    yield None


def _operations(statement: Statement) -> Iterator[tuple[str, Row | None, Row | None]]:
    before, after = statement.before, statement.after
    if before is not None and after is not None and before[0] == after[0]:
        yield "u", before, after
        return
    if before is not None:
        yield "d", before, None
    if after is not None:
        yield "c", None, after


# ------------------------------------------------------------------------------------- versions of commits


def versions(history: History, names: dict[str, str], first: int = 3) -> Iterator[tuple[str, int, Row]]:
    """What each commit did to the table as a whole: change type, version, row; of a commit in no useful order."""
    table = dict(history.start)
    for number, commit in enumerate(history.commits, first):
        after = dict(table)
        for statement in commit:
            if statement.before is not None:
                del after[statement.before[0]]
            if statement.after is not None:
                after[statement.after[0]] = statement.after
        for key in sorted(after.keys() | table.keys(), reverse=True):
            old, new = table.get(key), after.get(key)
            both = old is not None and new is not None and old != new
            if new is not None and new != old:
                yield names["after" if both else "insert"], number, new
            if old is not None and new != old:
                yield names["before" if both else "delete"], number, old
            if old is not None and old == new and "carry" in names and key % 2:
                yield names["insert"], number, new  # copied by copy-on-write
                yield names["delete"], number, old
        table = after


DELTA = {"insert": "insert", "delete": "delete", "before": "update_preimage", "after": "update_postimage"}
ICEBERG = {
    "insert": "INSERT",
    "delete": "DELETE",
    "before": "UPDATE_BEFORE",
    "after": "UPDATE_AFTER",
    "carry": "",
}
