"""Errors of the product: bad input and broken invariants. A verdict is a value, never an error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum, unique
from typing import Any

from datalog.copies import replace
from datalog.diagnostics import Diagnostic


@unique
class Code(Enum):
    """What can be wrong with a warehouse, an update or a source. Each code has a page in `docs/codes`."""

    WAREHOUSE_FILE = "SM101"
    """The warehouse file cannot be read or has an unknown or missing entry."""
    UNKNOWN_RELATION = "SM102"
    """A name that is no base relation, or no view."""
    MISSING_CONTENTS = "SM103"
    """A view, table or file that is not there."""
    COLUMNS_DIFFER = "SM104"
    """Arity, names or types of some data do not fit the rules or declarations."""
    VIEW_OVER_VIEW = "SM105"
    """A view's rule reads another view recursively or in a way that cannot be unfolded."""
    ALWAYS_EMPTY = "SM106"
    """A view that can have no rows, whatever the database: a warning."""
    MANIFEST = "SM107"
    """A dbt manifest that cannot be read, or has no compiled SQL."""
    QUERY = "SM108"
    """A query over the views that is no SELECT, or that the engine cannot answer."""
    HEAD_MISMATCH = "SM201"
    """A view row that the view's own rule can never produce."""
    NULL_IN_JOIN = "SM202"
    """A view row with null in a column that its rule joins on."""
    NOT_EXPLAINED = "SM203"
    """Views that no database explains."""
    BOTH_CHANGED = "SM301"
    """The same row inserted into and deleted from one relation."""
    CONTRADICTS = "SM302"
    """An effective update that cannot be: it contradicts what is known."""
    BREAKS_CONSTRAINT = "SM303"
    """An update after which a declared key or foreign key would not hold."""
    SOURCE_UNREACHABLE = "SM401"
    """A source that does not answer, or refuses the login."""
    SOURCE_MOVED = "SM402"
    """A base table that has moved past the update."""
    READ_REFUSED = "SM403"
    """A statement that would read what it must not: the read guard."""
    NOT_MAINTAINED = "SM404"
    """A view that is not self-maintainable where reading is forbidden, or not possible."""
    WRITE_FAILED = "SM405"
    """New contents that could not be written or switched to; the old ones are in place."""
    LEFT_BEHIND = "SM406"
    """Files of a write that is over and cannot be removed: a warning."""
    FOREIGN_JOURNAL = "SM407"
    """A journal of unfinished writes that was not written for these views."""
    LAKE = "SM408"
    """A store that is not there, cannot be read, or lacks a snapshot; or the extensions for it are missing."""
    COMMITTED = "SM409"
    """An update that was committed to the store already."""
    CONFLICT = "SM410"
    """A stored table that somebody else has changed."""
    EDITED = "SM411"
    """Stored rows that are of another definition than the one that is read now."""
    NO_ENGINE = "SM501"
    """Spark or Java is missing or too old."""
    ENGINE_DIFFERS = "SM502"
    """What the chosen engine cannot do, or would do otherwise than Spark."""
    FEED_FORMAT = "SM601"
    """A change feed, or a record of one, of no known format, or of several."""
    FEED_UNREADABLE = "SM602"
    """A line or a value of a change feed that cannot be read."""
    FEED_UNORDERED = "SM603"
    """Changes of one row that nothing orders, or a position that is none."""
    FEED_CONTRADICTS = "SM604"
    """Changes of one row that cannot follow each other."""
    FEED_BEFORE_IMAGE = "SM605"
    """A row that goes, of which the feed does not say enough."""
    FEED_REFUSED = "SM606"
    """A truncation, or a snapshot read outside an initial load."""
    FEED_PACKAGE = "SM607"
    """A package that Delta tables need is not installed."""
    LOG = "SM608"
    """A database's log that cannot be followed from where the views are."""
    BASELINE = "SM701"
    """A baseline of an audit that cannot be read, or is of another version."""
    CONTRADICTED = "SM801"
    """A verdict that a cross-examination contradicts: a defect of this package, and a warning."""


LONGEST_LINE = 300
"""Of what others say, as it is shown."""


class SelfmaintError(Exception):
    """The root of this package's errors. `diagnostics` say what, where, and what to do."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("; ".join(f"[{d.code.value}] {d.message}" for d in self.diagnostics))

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), self.args, self.__dict__)


def _again(kind: type[SelfmaintError], arguments: tuple[Any, ...], state: dict[str, Any]) -> SelfmaintError:
    """An error as it was, in another process."""
    found = kind.__new__(kind, *arguments)
    found.__dict__.update(state)
    return found


class InputError(SelfmaintError):
    """Bad input: nothing was done."""


class QueryError(InputError):
    """A query that cannot be answered. `sources` has its text, by the name that the place of the error gives it."""

    def __init__(self, diagnostic: Diagnostic, sources: Mapping[str, str]) -> None:
        super().__init__([diagnostic])
        self.sources = sources


class SourceError(SelfmaintError):
    """A base relation's source failed; nothing was done."""


class PassingError(SourceError):
    """A fault of a source that may be gone in a moment: a lost connection, a server that starts."""


class BusyError(InputError):
    """Somebody else writes just now, or has written since: what was computed may be computed anew."""


class ReadRefusedError(SelfmaintError):
    """The read guard stopped a statement before it ran. A broken invariant of this package."""


def input_error(code: Code, message: str, hint: str | None = None, note: str | None = None) -> InputError:
    """An `InputError` with one diagnostic."""
    return InputError([Diagnostic(code=code, message=message, hint=hint, note=note)])


def first_line(failure: Exception) -> str:
    """What an exception says, on one line of bounded length."""
    text = str(failure).strip() or type(failure).__name__
    return text.splitlines()[0][:LONGEST_LINE].rstrip(".")


@contextmanager
def in_view(shown: str) -> Iterator[None]:
    """Has an error of a value (SM104, SM502) that is at no place say in which view it was computed."""
    try:
        yield
    except InputError as error:
        if type(error) is not InputError:
            raise
        found = [
            replace(one, note=f"it is computed in the view {shown}")
            if one.code in (Code.COLUMNS_DIFFER, Code.ENGINE_DIFFERS)
            and one.note is None
            and one.span is None
            and shown not in one.message
            else one
            for one in error.diagnostics
        ]
        raise InputError(found) from error
