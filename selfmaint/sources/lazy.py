"""A source that is connected to when it is first read: who needs no base relation needs no source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic

from selfmaint.engine.protocol import D
from selfmaint.sources.protocol import Read, Source


class LazySource(Generic[D]):
    """A source made by a function when it is first needed."""

    def __init__(self, name: str, connect: Callable[[], Source[D]]) -> None:
        self._name = name
        self._connect = connect
        self._source: Source[D] | None = None

    @property
    def name(self) -> str:
        """A name to show."""
        return self._name

    @property
    def is_connected(self) -> bool:
        """Whether it was needed."""
        return self._source is not None

    def row_count(self, relation: str) -> int:
        """See `Source`."""
        return self._opened().row_count(relation)

    def read(self, relation: str, key_columns: Sequence[str], keys: D | None) -> tuple[D, Read]:
        """See `Source`."""
        return self._opened().read(relation, key_columns, keys)

    def version(self) -> str | None:
        """See `Source`."""
        return self._opened().version()

    def close(self) -> None:
        """Ends the connection, if there is one; another read opens a new one."""
        source, self._source = self._source, None
        close = getattr(source, "close", None)
        if callable(close):
            close()

    def _opened(self) -> Source[D]:
        if self._source is None:
            self._source = self._connect()
        return self._source
