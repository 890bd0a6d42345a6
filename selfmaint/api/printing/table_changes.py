"""What changes a view's table by rows that it gains and loses: they are held first, for their query reads the table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from datalog.model import Predicate, Program, Version
from datalog.sql import Query, Table, changes_table, delete_changed, insert_changed, read_set, text
from selfmaint.api.file.toml_tables import dotted
from selfmaint.api.printing.printed import Statement, StatementKind
from selfmaint.warehouse.catalog import View


def applied(
    view: View, changes: Query, tables: Mapping[Predicate, Table], condition: str
) -> Iterator[Statement]:
    """The statements that hold a view's changes, and that delete and insert its rows.

    Args:
        view: the view; its table, and the one of its changes, are among the tables.
        changes: the query for its changes: a row, and 1 if it comes, or 0.
        tables: where the rows are.
        condition: what has to be for them to be right, in words, or nothing.
    """
    held = tables[view.predicate.of(Version.STEP)]
    whole = Table(tables[view.predicate].name, held.columns[:-1])
    about = (
        f"the rows that `{view.name}` gains, and with 0 those that it loses{condition}; drop it at the end"
    )
    reads = tuple(sorted(dotted(name) for name in read_set(changes)))
    made = text(changes_table(held, changes))
    yield Statement(StatementKind.CHANGES, f"{view.name}@changes", about, Program(), made, reads)
    for kind, tree, about, read in (
        (StatementKind.DELETE, delete_changed(whole, held), "loses", (whole.name, held.name)),
        (StatementKind.INSERT, insert_changed(whole, held), "gains", (held.name,)),
    ):
        said, names = f"the rows that `{view.name}` {about}", tuple(sorted(map(dotted, read)))
        yield Statement(kind, f"{view.name}@{kind.value}", said, Program(), text(tree), names)
