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
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from datalog.model import ANY, OpaqueView, Predicate, Row, TextQuery
from selfmaint.engine.protocol import Facts
from selfmaint.errors import InputError
from selfmaint.warehouse.base_relations import BaseRelation
from selfmaint.warehouse.views import View

if TYPE_CHECKING:
    from selfmaint.duckdb.engine import DuckEngine

_MOST_ROWS = 10_000
"""A view that has more on a few rows is not looked at."""


@dataclass(frozen=True)
class SmallDatabases:
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
        from selfmaint.duckdb.text_views import text_rows  # noqa: PLC0415 - few catalogs are asked

        engine = _engine(os.getpid(), threading.get_ident())
        try:
            facts = Facts(
                {
                    Predicate(one.name): engine.load(database.get(one.name, ()), one.columns, one.types)
                    for one in read
                    if one is not None
                }
            )
            rows = engine.sample(text_rows(engine.database, definition, facts), _MOST_ROWS)
        except InputError:
            return None
        return Counter(rows) if len(rows) < _MOST_ROWS else None


@lru_cache(maxsize=4)
def _engine(process: int, thread: int) -> DuckEngine:  # noqa: ARG001 - a DuckDB is of one thread
    from selfmaint.duckdb.engine import DuckEngine  # noqa: PLC0415 - few catalogs are asked

    return DuckEngine()
