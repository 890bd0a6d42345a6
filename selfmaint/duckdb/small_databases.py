"""Views of which only the text is known, over a few rows at hand: what holds examples against their definition asks.

    view w: SELECT id, rank() OVER (ORDER BY total) AS place FROM o        database: o(1, 5), o(2, 5)
    its rows: (1, 1), (2, 1)

A text that leaves its result open gives one of its results. Two databases that have one in common are not told apart
by it.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct

from datalog.model import ANY, OpaqueView, Predicate, Row, TextQuery
from selfmaint.engine.protocol import Facts
from selfmaint.errors import InputError
from selfmaint.warehouse.base_relations import BaseRelation
from selfmaint.warehouse.views import View

if TYPE_CHECKING:
    from datalog.sql.duckdb import SqlType
    from selfmaint.duckdb.engine import DuckEngine
    from selfmaint.duckdb.relation import Relation

_MOST_ROWS = 10_000
"""A view that has more on a few rows is not looked at."""


class SmallDatabases(Struct, frozen=True):
    """Runs the texts of views over rows at hand, by a DuckDB of its own."""

    def __call__(
        self, view: View, relations: Mapping[str, BaseRelation], database: Mapping[str, frozenset[Row]]
    ) -> Counter[Row] | None:
        """A view's rows, each with its number of copies.

        Returns:
            None where they cannot be told: it reads other views, or columns of no declared type, it is not run by
            DuckDB, or has no value.
        """
        definition = view.definition
        if not isinstance(definition, OpaqueView) or not isinstance(definition.query, TextQuery):
            return None
        read = [relations.get(name) for name in definition.query.relations]
        if any(one is None or ANY in one.types for one in read):
            return None
        engine = _engine(os.getpid(), threading.get_ident())
        try:
            given = {
                one.name: engine.load(database.get(one.name, ()), one.columns, one.types)
                for one in read
                if one is not None
            }
            rows = _at_once(engine, definition, given)
            if rows is None:
                from selfmaint.duckdb.text_views import text_rows  # noqa: PLC0415 - few catalogs are asked

                facts = Facts({Predicate(name): relation for name, relation in given.items()})
                rows = engine.sample(text_rows(engine.database, definition, facts), _MOST_ROWS)
        except InputError:
            return None
        return Counter(rows) if len(rows) < _MOST_ROWS else None


def _at_once(engine: DuckEngine, view: OpaqueView, given: Mapping[str, Relation]) -> list[Row] | None:
    """The rows of a view by one statement, which is made once; None where values do not go in or out as they are."""
    from selfmaint.duckdb.exact_rows import has_odd_value, listed, with_times  # noqa: PLC0415 - see above

    values = []
    for one in given.values():
        columns = None if one.stored.here is None else listed(one.stored.here, one.types)
        if columns is None:
            return None
        values += columns
    shapes = tuple((name, one.columns, one.types) for name, one in given.items())
    statement, types = _statement(view, view.query, shapes)
    if statement is None:
        return None
    rows = with_times(engine.database.answers(statement, values), types)
    return None if rows is None or has_odd_value(rows, types) else rows


@lru_cache(maxsize=256)
def _statement(
    view: OpaqueView,
    query: object,  # noqa: ARG001 - views are equal where their texts are, whatever these read
    shapes: tuple[tuple[str, tuple[str, ...], tuple[SqlType, ...]], ...],
) -> tuple[str | None, tuple[SqlType, ...]]:
    """A view's query over rows that are its parameters, and its types; None if Python does not have their values."""
    from datalog.sql.duckdb import relations as sql  # noqa: PLC0415 - see above
    from selfmaint.duckdb.database import prepared  # noqa: PLC0415 - see above
    from selfmaint.duckdb.exact_rows import are_in_python, with_times_as_texts  # noqa: PLC0415 - see above
    from selfmaint.duckdb.text_views import text_query  # noqa: PLC0415 - see above

    places = {name: f"selfmaint_given_{i}" for i, (name, _, _) in enumerate(shapes)}
    tables = {name: (places[name], columns, kinds) for name, columns, kinds in shapes}
    made, types, _ = text_query(view, tables)
    if not types or not are_in_python(types):
        return None, types
    its = sql.over_listed(made, len(types), {places[name]: kinds for name, _, kinds in shapes})
    return prepared(with_times_as_texts(its, types)), types


@lru_cache(maxsize=4)
def _engine(process: int, thread: int) -> DuckEngine:  # noqa: ARG001 - a DuckDB is of one thread
    from selfmaint.duckdb.engine import DuckEngine  # noqa: PLC0415 - few catalogs are asked

    return DuckEngine()
