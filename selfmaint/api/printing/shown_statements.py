"""What maintains a view whose own rows tell its new ones, as Spark SQL: see `datalog/sql/affected/shown_changes.py`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from datalog.copies import replace
from datalog.model import Predicate, Program, Version, with_flag
from datalog.sql import Query, Table, read_set, text
from datalog.sql.affected import ShownRows
from datalog.sql.affected.shown_changes import ShownChanges
from selfmaint.api.file.toml_tables import dotted
from selfmaint.api.printing.printed import Statement, StatementKind
from selfmaint.api.printing.table_changes import applied
from selfmaint.warehouse.catalog import View
from selfmaint.warehouse.situation import Situation

UNLIKE = "its table has other columns than its query: that is not printed"
"""Why there are none."""


def shown_statements(
    view: View, shown: ShownRows, situation: Situation, tables: Mapping[Predicate, Table]
) -> Iterator[Statement]:
    """The test, if rows that are not shown may come to be, and what changes the view's table; none if nothing does.

    Raises:
        EmissionError: a name that Spark cannot take.
    """
    name = shown.table.name
    sides = [
        tables[Predicate(name, version)] if name in some else None
        for version, some in ((Version.INSERTED, situation.inserted), (Version.DELETED, situation.deleted))
    ]
    if sides == [None, None]:
        return
    at, held = view.predicate, view.predicate.of(Version.STEP)
    if not view.columns:  # of `SELECT *`
        names = tuple(name for name, _ in shown.outputs)
        whole = replace(tables[at], columns=names)
        tables = {**tables, at: whole, held: replace(tables[held], columns=with_flag(names))}
    changes = ShownChanges(shown, tables[at], *sides)
    unsettled = changes.unsettled()
    if unsettled is not None:
        about = (
            f"groups of which a row goes, and one that {view.shown} does not show may take its place; "
            f"{view.shown} is self-maintainable if there are none"
        )
        kind, reads = StatementKind.TEST, _reads(unsettled)
        yield Statement(kind, f"{view.name}@test", about, Program(), text(unsettled), reads, exact=False)
    if_settled = "" if unsettled is None else ", if the test has no rows"
    yield from applied(view, changes.changes(), tables, if_settled)


def has_like_columns(view: View, shown: ShownRows) -> bool:
    """Whether a view's table has the columns of its query, as far as the warehouse file says which it has."""
    names = sorted(name.casefold() for name in view.columns)
    return not names or names == sorted(name for name, _ in shown.outputs)


def _reads(query: Query) -> tuple[str, ...]:
    return tuple(sorted(dotted(name) for name in read_set(query)))
