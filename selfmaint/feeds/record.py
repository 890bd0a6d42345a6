"""The row in a record: the declared columns' values, in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from datalog.diagnostics import Diagnostic
from datalog.model import Row, Value
from selfmaint.errors import Code, InputError
from selfmaint.feeds.changes import RecordError
from selfmaint.feeds.settings import FeedSettings
from selfmaint.feeds.table import FeedTable
from selfmaint.feeds.values import NO_SCHEMA, Encoding, decoded

UNAVAILABLE = "__debezium_unavailable_value"
"""What Debezium writes for a large value of PostgreSQL that an update left as it was."""


class RowReader(Struct):
    """Takes a relation's rows out of records. Names are checked once for each set of columns."""

    table: FeedTable
    settings: FeedSettings
    _checked: tuple[str, ...] | None = None

    def row(self, image: Mapping[str, object], where: str, encodings: Mapping[str, Encoding]) -> Row:
        """The row that an image says.

        Raises:
            RecordError: SM104 other columns; SM602 a value that is none of its column's type, or null where
                there is none; SM605 a value that the feed leaves out.
        """
        names = tuple(image)
        if names != self._checked:
            try:
                self.table.check_columns(names, where)
            except InputError as error:
                first = error.diagnostics[0]
                raise RecordError(Code.COLUMNS_DIFFER, first.message, first.hint, first.note) from None
            self._checked = names
        try:
            row = tuple(
                self._value(image[name], i, where, encodings) for i, name in enumerate(self.table.columns)
            )
        except RecordError as error:
            error.diagnostics = list(self._wrong_values(image, where, encodings))
            raise
        for i in self.table.not_null:
            if row[i] is None:
                raise RecordError(
                    Code.FEED_UNREADABLE,
                    f"column `{self.table.columns[i]}` of `{self.table.name}` is null in {where}",
                    hint="its declaration says `not null`, or that it is part of the key",
                )
        return row

    def key_row(
        self, image: Mapping[str, object], where: str, encodings: Mapping[str, Encoding]
    ) -> Row | None:
        """A row of which only the key is known, the rest null; None without a key."""
        if self.table.key is None:
            return None
        row: list[Value] = [None] * len(self.table.columns)
        for i in self.table.key:
            value = image.get(self.table.columns[i])
            if value is None:
                return None
            row[i] = self._value(value, i, where, encodings)
        return tuple(row)

    def is_key_only(self, image: Mapping[str, object]) -> bool:
        """Whether an image has nothing but its key, and there is more to a row: other columns null or missing."""
        if self.table.key is None:
            return False
        key = [self.table.columns[i] for i in self.table.key]
        is_alone = all(value is None for name, value in image.items() if name not in key)
        return is_alone and bool(self.table.rest)

    def _wrong_values(
        self, image: Mapping[str, object], where: str, encodings: Mapping[str, Encoding]
    ) -> Iterator[Diagnostic]:
        """What is wrong with each value."""
        for i, name in enumerate(self.table.columns):
            try:
                self._value(image[name], i, where, encodings)
            except RecordError as error:
                yield from error.diagnostics

    def _value(self, value: object, i: int, where: str, encodings: Mapping[str, Encoding]) -> Value:
        name, declared = self.table.columns[i], self.table.types[i]
        if value == UNAVAILABLE:
            raise RecordError(
                Code.FEED_BEFORE_IMAGE,
                f"column `{name}` of `{self.table.name}` is left out in {where}: it is large and did not change",
                hint=f"`ALTER TABLE {self.table.name} REPLICA IDENTITY FULL` in PostgreSQL, and read the batch anew",
            )
        try:
            return decoded(value, declared, encodings.get(name, NO_SCHEMA), self.settings)
        except ValueError as problem:
            raise RecordError(
                Code.FEED_UNREADABLE,
                f"column `{name}` of `{self.table.name}` in {where}: {problem}",
                hint=_hint(str(problem)),
            ) from None


def _hint(problem: str) -> str | None:
    if "both as digits and as base64" in problem:
        return 'say `decimals = "text"` or `"base64"` in `[feed]` of the warehouse file'
    if "in a unit that no schema says" in problem:
        return 'say `timestamps = "ms"`, `"us"` or `"ns"` in `[feed]` of the warehouse file'
    return None
