"""A source that is ahead of what is being maintained, read as it was before: its later changes are undone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Generic, Protocol, final

from msgspec import Struct

from datalog.copies import replace
from datalog.diagnostics import Diagnostic
from datalog.model import Atom, Negation, Predicate, Program, Rule, Variable, Version
from selfmaint.engine.protocol import D, Engine, Facts
from selfmaint.errors import Code, SourceError
from selfmaint.sources.between import Between
from selfmaint.sources.protocol import Read, Source


class Later(Struct, Generic[D], frozen=True):
    """What became of a relation's rows since: the net effect of the later changes."""

    inserted: D
    deleted: D


class ClosableSource(Source[D], Protocol[D]):
    """A source whose next read after `close` is of a new state."""

    def close(self) -> None:
        """Ends the connection."""
        ...


LaterThan = Callable[[str], "Mapping[str, Later[D]] | None"]
"""What became of each relation's rows until the state that a source calls so; None if the state is too early."""


@final
class RewoundSource(Generic[D]):
    """A source in the state that is wanted, though it has moved on."""

    def __init__(
        self,
        source: ClosableSource[D],
        engine: Engine[D],
        later_than: LaterThan[D],
        twins: Collection[str] = (),
    ) -> None:
        """Nothing is read yet.

        All that the source reads until it is closed is of one state, which `version` names; `later_than` waits a little
        before it gives None. Of `twins`, relations that may hold a row twice, no change is undone.
        """
        self._source, self._engine, self._later_than = source, engine, later_than
        self._twins = frozenset(twins)
        self._state: str | None = None
        self._later: Mapping[str, Later[D]] = {}

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

    def close(self) -> None:
        """Ends the connection; the next read is of a new state."""
        self._state, self._later = None, {}
        self._source.close()

    def read(self, relation: str, key_columns: Sequence[str], keys: D | None) -> tuple[D, Read]:
        """See `Source`.

        Raises:
            SourceError: what the source and the log raise.
        """
        return self._as_before(relation, key_columns, keys, lambda it: it.read(relation, key_columns, keys))

    def read_between(self, relation: str, asked: Between) -> tuple[D, Read]:
        """See `Source`: all that has gone since is among the rows."""
        rows, read = self._as_before(relation, (), None, lambda it: it.read_between(relation, asked))
        return rows, replace(read, is_of_spans=read.is_of_spans and relation not in self._later)

    def _as_before(
        self,
        relation: str,
        key_columns: Sequence[str],
        keys: D | None,
        reading: Callable[[Source[D]], tuple[D, Read]],
    ) -> tuple[D, Read]:
        while True:
            self._begin()
            rows, read = reading(self._source)
            if self._source.version() == self._state:  # else it has lost its connection before it read
                break
            self._state = None
        later = self._later.get(relation)
        if later is None:
            return rows, read
        if relation in self._twins:
            raise _not_undone(relation)
        return self._engine.keep(self._undone(rows, later, key_columns, keys)), read

    def _begin(self) -> None:
        """Finds out what is to be undone of the state that is read."""
        while self._state is None:
            state = self._source.version()
            assert state is not None, "a source that is followed names its states"
            later = self._later_than(state)
            if later is None:
                self._source.close()
            else:
                self._state, self._later = state, later

    def _undone(self, rows: D, later: Later[D], key_columns: Sequence[str], keys: D | None) -> D:
        """The rows that were there before: those that have not come since, and those that have gone."""
        engine, columns = self._engine, self._engine.columns(rows)
        terms = tuple(Variable(f"X{i}") for i in range(len(columns)))
        now, came, gone, asked, before = (
            Predicate("rewound", version)
            for version in (Version.FOUND, Version.INSERTED, Version.DELETED, Version.KNOWN, Version.PRESENT)
        )
        wanted: list[Atom] = []
        facts = {now: rows, came: engine.like(later.inserted, rows), gone: engine.like(later.deleted, rows)}
        if keys is not None:
            wanted = [Atom(asked, tuple(terms[columns.index(name)] for name in key_columns))]
            facts[asked] = keys
        goal = Atom(before, terms)
        program = Program(
            (
                Rule(goal, (Atom(now, terms), Negation((Atom(came, terms),)))),
                Rule(goal, (Atom(gone, terms), *wanted)),
            )
        )
        found = engine.evaluate(program, before, Facts(facts, {}, frozenset(facts)), columns)
        return engine.like(found, rows)


def _not_undone(relation: str) -> SourceError:
    message = f"`{relation}` has changed since, and has no key: what became of its rows is not undone"
    hint = "declare a key of it, or read from a snapshot at the update's position"
    return SourceError([Diagnostic(code=Code.SOURCE_MOVED, message=message, hint=hint)])
