"""What a query that no definition can hold reads: the places of all names of relations in its text.

The text itself stays as it was written, for nobody but Spark knows what it means. Whatever might be a read and is not
understood as one makes the answer a reason, never a shorter list.
"""

from __future__ import annotations

from sqlglot import exp

from datalog.diagnostics import Diagnostic
from datalog.model import TextQuery, TextRead
from datalog.sql.reads import stored_tables
from datalog.sql.views.catalogue import Catalogue, Named
from datalog.sql.views.source import SqlText, offsets, statements

_PARTS = frozenset({"this", "db", "catalog", "alias", "joins", "laterals", "pivots"})
"""What may belong to a table in FROM."""


class _CannotTellError(Exception):
    """Why it cannot be told what a query reads."""


def text_query(text: str, catalogue: Catalogue, columns: tuple[str, ...] = ()) -> TextQuery | str:
    """A query's text with all that it reads, or why that cannot be told.

    Args:
        text: one query in Spark SQL.
        catalogue: the base relations and views of its warehouse.
        columns: names for its columns that are given apart from it.
    """
    try:
        return _query(text, catalogue, columns, ())
    except _CannotTellError as error:
        return str(error)


def _query(text: str, catalogue: Catalogue, columns: tuple[str, ...], within: tuple[Named, ...]) -> TextQuery:
    problems: list[Diagnostic] = []
    found = list(statements(SqlText(text), problems))
    if problems or len(found) != 1 or not isinstance(found[0].tree, exp.Query):
        raise _CannotTellError("its text cannot be taken apart")
    tree = found[0].tree
    for name in tree.find_all(exp.Identifier):
        # Spark ignores case in names; scope analysis does not.
        name.set("this", name.name.casefold())
    reads = [_read(table, text, catalogue, within) for table in stored_tables(tree)]
    return TextQuery(text, tuple(sorted(reads, key=lambda read: read.start)), columns)


def _read(table: exp.Table, text: str, catalogue: Catalogue, within: tuple[Named, ...]) -> TextRead:
    parts = table.parts
    places = [offsets(part) for part in parts]
    if not all(isinstance(part, exp.Identifier) for part in parts) or None in places:
        raise _CannotTellError(f"it reads `{table.sql('spark')}`, which is no name of a relation")
    beyond = [part for part, value in table.args.items() if value and part not in _PARTS]
    if beyond:
        raise _CannotTellError(f"it reads `{table.name}` with {beyond[0].upper().strip('_')}")
    known = [place for place in places if place is not None]
    start, end = known[0][0], known[-1][1]
    asked = tuple(part.name for part in reversed(parts))
    views, bases = catalogue.meant(asked)
    if len(views) + len(bases) != 1:
        what = "nothing that is known" if not views and not bases else "several relations"
        raise _CannotTellError(f"it reads `{text[start:end]}`, the name of {what}".replace("``", "`"))
    alias = None if table.args.get("alias") else _spelt(text[known[-1][0] : end])
    if bases:
        return TextRead(start, end, bases[0].name, alias)
    (view,) = views
    if view.stored:
        return TextRead(start, end, view.name, alias)
    if view in within:
        raise _CannotTellError(f"it reads `{view.name}`, which depends on itself")
    below = _query(view.text, catalogue, view.columns, (*within, view))
    return TextRead(start, end, below, alias)


def _spelt(name: str) -> str:
    return name.strip("`").replace("``", "`")
