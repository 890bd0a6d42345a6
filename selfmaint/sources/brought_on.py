"""A source taken to be right before an update, read as it is right after it: the update is brought into what it gives.

Rows may stand twice there: a deleted row takes away one of its equals.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, final

from datalog.copies import replace
from datalog.diagnostics import Diagnostic
from selfmaint.engine.protocol import D, Engine
from selfmaint.errors import Code, SourceError
from selfmaint.sources.between import Between
from selfmaint.sources.protocol import Read, Source


@final
class BroughtOnSource(Generic[D]):
    """A `Source` of one relation whose rows the update changes."""

    def __init__(
        self, source: Source[D], engine: Engine[D], inserted: D | None, deleted: D | None, *, effective: bool
    ) -> None:
        """Nothing is read yet; the update's rows are not counted here, and not numbered."""
        self._source, self._engine, self._inserted, self._deleted = source, engine, inserted, deleted
        self._effective = effective

    @property
    def name(self) -> str:
        """See `Source`."""
        return self._source.name

    def row_count(self, relation: str) -> int:
        """See `Source`."""
        return self._source.row_count(relation)

    def version(self) -> str | None:
        """See `Source`."""
        return self._source.version()

    def read(self, relation: str, key_columns: Sequence[str], keys: D | None) -> tuple[D, Read]:
        """See `Source`.

        Raises:
            SourceError: the source's own; SM402 it has not all the deleted rows, so it is not before the update.
        """
        engine = self._engine
        rows, read = self._source.read(relation, key_columns, keys)
        places = [engine.columns(rows).index(name) for name in key_columns]

        def mine(side: D) -> D:
            its = engine.like(side, rows)
            return its if keys is None else engine.bags.matching(its, places, keys)

        if self._deleted is not None:
            gone = engine.keep(mine(self._deleted))
            if self._effective and engine.count(engine.minus_all(gone, rows)):
                message = f"`{relation}` is not in the state before the update: it lacks deleted rows"
                raise SourceError([Diagnostic(code=Code.SOURCE_MOVED, message=message)])
            rows = engine.minus_all(rows, gone)
        if self._inserted is not None:
            rows = engine.bags.together([rows, engine.keep(mine(self._inserted))])
        return engine.keep(rows), read

    def read_between(self, relation: str, asked: Between) -> tuple[D, Read]:
        """See `Source`: all that the update inserts is among the rows."""
        engine = self._engine
        rows, read = self._source.read_between(relation, asked)
        if self._deleted is not None:
            rows = engine.minus_all(rows, engine.keep(engine.like(self._deleted, rows)))
        if self._inserted is not None:
            rows = engine.bags.together([rows, engine.keep(engine.like(self._inserted, rows))])
        return engine.keep(rows), replace(read, is_of_spans=False)
