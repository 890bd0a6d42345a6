"""Views of which only the text is known: run where their shape is known, and where DuckDB computes what Spark does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from datalog.model import OpaqueView, Predicate, TextQuery
from datalog.sql.affected import Query, Table, UnknownShapeError, plan_of_text
from datalog.sql.duckdb import Query as SqlQuery
from datalog.sql.duckdb import SqlType, UnlikeSparkError
from datalog.sql.duckdb.plans import query_of_plan
from selfmaint.duckdb.database import Database
from selfmaint.duckdb.failures import refused
from selfmaint.duckdb.relation import Relation
from selfmaint.engine.protocol import Facts
from selfmaint.errors import InputError


def text_rows(
    database: Database, view: OpaqueView, facts: Facts[Relation], columns: Sequence[str] | None = None
) -> Relation:
    """The rows of a view's query, computed now.

    The columns are its own by default, in lower case.

    Raises:
        InputError: SM502 it cannot be run here.
    """
    assert isinstance(view.query, TextQuery)
    given = {name: facts.relations[Predicate(name)] for name in view.query.relations}
    tables = {name: (one.stored.name, one.columns, one.types) for name, one in given.items()}
    query, types, shown = text_query(view, tables, columns)
    for name, kind in zip(shown, types, strict=True):
        if isinstance(kind, str):  # its values may be other ones when they are stored
            raise refused_view(view.name, f"its column `{name}` is of type `{kind.lower()}`")
    return Relation(database.table(query, types, [one.stored.name for one in given.values()]), shown)


def text_query(
    view: OpaqueView,
    tables: Mapping[str, tuple[str, tuple[str, ...], Sequence[SqlType]]],
    columns: Sequence[str] | None = None,
) -> tuple[SqlQuery, tuple[SqlType, ...], tuple[str, ...]]:
    """A view's query as one of DuckDB's: columns `c0`, `c1`, ..., their types, and their names.

    Args:
        view: a view of which the text is known.
        tables: for each relation that it reads a table's name, the names of its columns, and their types.
        columns: the columns wanted; by default its own, in lower case.

    Raises:
        InputError: SM502 it cannot be run here.
    """
    assert isinstance(view.query, TextQuery)
    try:
        query = plan_of_text(view.query, {n: Table(n, its, ()) for n, (_, its, _) in tables.items()})
        numbers = dict(query.outputs)
        wanted = [name.casefold() for name in columns or numbers]
        if sorted(wanted) != sorted(numbers):
            raise refused_view(view.name, "it gives other columns than are stored")
        made, types = query_of_plan(
            Query(query.plan, tuple((name, numbers[name]) for name in wanted)),
            {name: place for name, (place, _, _) in tables.items()},
            {name: kinds for name, (_, _, kinds) in tables.items()},
        )
    except UnknownShapeError as unknown:
        raise refused_view(view.name, str(unknown)) from unknown
    except UnlikeSparkError as unlike:
        raise refused_view(view.name, f"DuckDB is not known to compute the same for {unlike}") from unlike
    return made, types, tuple(columns or wanted)


def refused_view(name: str, why: str) -> InputError:
    """The error for a view that only Spark runs."""
    return refused(f"the view `{name}` is not run by DuckDB: {why}")
