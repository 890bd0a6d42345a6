"""Where base relations live, and what one read of them looks like."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from datalog.diagnostics import Diagnostic
from selfmaint.engine.protocol import D
from selfmaint.errors import Code, InputError, SourceError, first_line
from selfmaint.sources.between import Between

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Read:
    """One read of a base relation, for the report.

    Attributes:
        key_columns: names of the columns whose values were asked for; empty when the whole relation was read.
        keys_asked: number of distinct keys sent.
        rows_read: rows that came back.
        bytes_read: bytes that came back, as well as the source can tell (text length for PostgreSQL's rows,
            in-memory Arrow bytes otherwise).
        source: the source's name, without any secret.
        is_before: whether it turned out to be as it was right before the update, which was then added to the rows.
        is_of_spans: whether spans of the column's values were asked for, and what they have was given alone.
        has_twins: of a table without a key, whether each deleted row that was asked for has an equal one there;
            None if none was asked for.
    """

    relation: str
    key_columns: tuple[str, ...]
    keys_asked: int
    rows_read: int
    bytes_read: int
    source: str
    is_before: bool = False
    is_of_spans: bool = False
    has_twins: bool | None = None


class Source(Protocol[D]):
    """A place that holds base relations, in the state after the update."""

    @property
    def name(self) -> str:
        """A name to show, without any secret."""
        ...

    def row_count(self, relation: str) -> int:
        """An estimate of the relation's size (a statistic, not a scan)."""
        ...

    def read(self, relation: str, key_columns: Sequence[str], keys: D | None) -> tuple[D, Read]:
        """The relation's rows whose `key_columns` equal one of `keys` (nulls equal), or all of them.

        Args:
            relation: a base relation's name.
            key_columns: names of the columns to look up, in the order of the columns of `keys`.
            keys: distinct keys, one column each; None to read the whole relation.

        Returns:
            The rows, with the declared columns in order and their declared types, and the read's report.

        Raises:
            SourceError: SM401 unreachable or refused, SM103 no such table, SM104 other columns.
        """
        ...

    def read_between(self, relation: str, asked: Between) -> tuple[D, Read]:
        """The rows with a value in some spans, and perhaps others; see `read`."""
        ...

    def version(self) -> str | None:
        """An opaque mark of the source's state, where it has one, to notice that it has moved."""
        ...


class Stored(Generic[T]):
    """What a source of several base relations begins with: its name, and where each of them is stored."""

    def __init__(self, name: str, relations: Mapping[str, T]) -> None:
        self._name = name
        self._relations = relations

    @property
    def name(self) -> str:
        """The name that the source was given."""
        return self._name

    def _stored(self, relation: str) -> T:
        if relation not in self._relations:
            message = f"the source `{self._name}` has no base relation `{relation}`"
            raise SourceError([Diagnostic(code=Code.UNKNOWN_RELATION, message=message)])
        return self._relations[relation]

    @contextlib.contextmanager
    def _as_source_error(
        self,
        relation: str,
        failures: tuple[type[Exception], ...],
        said: Callable[[Exception], str] = first_line,
    ) -> Iterator[None]:
        try:
            yield
        except InputError as error:
            raise SourceError(error.diagnostics) from error
        except failures as failure:
            message = f"the source `{self._name}` cannot read `{relation}`: {said(failure)}"
            raise SourceError([Diagnostic(code=Code.SOURCE_UNREACHABLE, message=message)]) from failure


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

    def row_count(self, relation: str) -> int:
        """See `Source`."""
        return self._opened().row_count(relation)

    def read(self, relation: str, key_columns: Sequence[str], keys: D | None) -> tuple[D, Read]:
        """See `Source`."""
        return self._opened().read(relation, key_columns, keys)

    def read_between(self, relation: str, asked: Between) -> tuple[D, Read]:
        """See `Source`."""
        return self._opened().read_between(relation, asked)

    def version(self) -> str | None:
        """See `Source`."""
        return self._opened().version()

    def close(self) -> None:
        """Ends the connection, if there is one; another read opens a new one."""
        source, self._source = self._source, None
        close_sources([source])

    def _opened(self) -> Source[D]:
        if self._source is None:
            self._source = self._connect()
        return self._source


def close_sources(sources: Iterable[object]) -> None:
    """Ends the connections of those of some sources that hold one, each once; another read would open a new one."""
    for source in {id(source): source for source in sources}.values():
        close = getattr(source, "close", None)
        if callable(close):
            close()
