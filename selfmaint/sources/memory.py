"""Base relations held in this process: for the in-memory engine, tests and examples."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from decimal import Decimal

from datalog.diagnostics import Diagnostic
from datalog.model import Row, Value, value_kind
from selfmaint.errors import Code, SourceError
from selfmaint.sources.between import Between
from selfmaint.sources.protocol import Read, Stored

Relation = tuple[tuple[str, ...], frozenset[Row]]
"""A relation's column names and rows."""


class RowsSource(Stored[Relation]):
    """Base relations given as sets of rows; a `Source` for the in-memory engine.

    >>> source = RowsSource("here", {"item": (("id", "price"), frozenset({(1, 10), (2, 20), (None, 30)}))})
    >>> rows, read = source.read("item", ["id"], frozenset({(1,), (None,), (7,)}))
    >>> sorted(rows, key=str), read.keys_asked, read.rows_read, source.row_count("item")
    ([(1, 10), (None, 30)], 3, 2, 3)
    """

    def row_count(self, relation: str) -> int:
        """The number of rows.

        Raises:
            SourceError: SM103 no such relation.
        """
        return len(self._relation(relation)[1])

    def read(
        self, relation: str, key_columns: Sequence[str], keys: frozenset[Row] | None
    ) -> tuple[frozenset[Row], Read]:
        """The rows whose `key_columns` equal one of `keys`, nulls equal, or all of them.

        Raises:
            SourceError: SM103 no such relation, SM104 no such column.
        """
        columns, rows = self._relation(relation)
        if keys is None:
            return rows, Read(relation, (), 0, len(rows), _size(rows), self._name)
        missing = [column for column in key_columns if column not in columns]
        if missing:
            raise _error(Code.COLUMNS_DIFFER, f"`{relation}` has no column `{missing[0]}`")
        positions = [columns.index(column) for column in key_columns]
        wanted = {_key(key) for key in keys}
        found = frozenset(row for row in rows if _key(row[i] for i in positions) in wanted)
        return found, Read(relation, tuple(key_columns), len(wanted), len(found), _size(found), self._name)

    def read_between(self, relation: str, asked: Between) -> tuple[frozenset[Row], Read]:
        """The rows with a value in some spans.

        Raises:
            SourceError: SM103 no such relation, SM104 no such column.
        """
        columns, rows = self._relation(relation)
        at = columns.index(asked.column)
        found = frozenset(row for row in rows if asked.has(row[at]))  # type: ignore[arg-type]
        return found, Read(
            relation, (asked.column,), asked.number, len(found), _size(found), self._name, is_of_spans=True
        )

    def version(self) -> str | None:
        """None: rows at hand do not move."""
        return None

    def close(self) -> None:
        """Nothing is held."""

    def _relation(self, relation: str) -> Relation:
        if relation not in self._relations:
            raise _error(
                Code.MISSING_CONTENTS, f"the source `{self._name}` has no base relation `{relation}`"
            )
        return self._relations[relation]


def _error(code: Code, message: str) -> SourceError:
    return SourceError([Diagnostic(code=code, message=message)])


def _key(values: Iterable[Value]) -> tuple[tuple[str, Value], ...]:
    """A hash key that tells the families of values apart."""
    return tuple((value_kind(value), value) for value in values)


def _size(rows: Iterable[Row]) -> int:
    """About what the rows would take in Arrow's layout, in bytes."""
    return sum(_width(value) for row in rows for value in row)


def _width(value: Value) -> int:
    match value:
        case bool():
            return 1
        case str():
            return 4 + len(value.encode())
        case Decimal():
            return 16
        case dt.datetime():
            return 8
        case dt.date():
            return 4
        case _:
            return 8
