"""The change of a view whose own rows tell its new ones, as one query over its table and the update's.

    WITH old_rows AS (the view's rows of the groups that the update touches),
         stored_rows AS (those of them that do not go), new_rows AS (the relation's rows that come),
         made AS (the view's rows in these groups, computed anew)
    SELECT ..., 1 AS is_there FROM (made EXCEPT old_rows)
    UNION ALL SELECT ..., 0 AS is_there FROM (old_rows EXCEPT made)

What makes that right is said in `shown_rows.py`.
"""

# ruff: noqa: S608 - queries are made of trees and of quoted names
from __future__ import annotations

from collections.abc import Sequence

import sqlglot
from msgspec import Struct
from sqlglot import exp

from datalog.model import ANY, OpaqueView, TextQuery, with_flag
from datalog.sql import tables
from datalog.sql.affected.shown_rows import COME, OLD, STORED, ShownRows
from datalog.sql.dialect import SPARK
from datalog.sql.names import casefolded, unique
from datalog.sql.text import bound_text, quoted, text


class ShownChanges(Struct, frozen=True):
    """What changes a view, given the tables of its rows and of those of the relation that come, and that go.

    Attributes:
        shown: what the view shows.
        view: its table; of the columns each is called like an output.
        inserted: the relation's rows that come, if any may.
        deleted: the rows that go, if any may.
    """

    shown: ShownRows
    view: tables.Table
    inserted: tables.Table | None
    deleted: tables.Table | None

    def changes(self) -> exp.Query:
        """The rows that the view gains, with 1 at the end, and those that it loses, with 0."""
        outputs = [name for name, _ in self.shown.outputs]
        places = [outputs.index(name.casefold()) for name in self.view.columns]
        taken = self._taken
        old, made = (unique(name, taken) for name in (OLD, "made"))
        now = ", ".join(f"{quoted(outputs[i])} AS {quoted(name)}" for i, name in self._columns(places))
        before = ", ".join(f"v{i} AS {quoted(name)}" for i, name in self._columns(places))
        sides = [(f"SELECT {now} FROM {made}", 1), (f"SELECT {before} FROM {old}", 0)]
        *every, flag = map(quoted, with_flag(self.view.columns))
        rows = " UNION ALL ".join(
            f"SELECT {', '.join(every)}, {there} AS {flag} FROM ({one} EXCEPT {other}) AS side_{there}"
            for (one, there), (other, _) in (sides, sides[::-1])
        )
        return self._query([(made, self._bound(self.shown.new()))], rows)

    def unsettled(self) -> exp.Query | None:
        """Groups of which rows that are not shown may come to be: see `ShownRows.behind`."""
        if self.shown.first is None or self.deleted is None:
            return None
        return self._query([], self._bound(self.shown.behind(self.shown.first)))

    def _columns(self, places: Sequence[int]) -> list[tuple[int, str]]:
        return list(zip(places, self.view.columns, strict=True))

    def _query(self, more: Sequence[tuple[str, str]], result: str) -> exp.Query:
        made = ", ".join(f"{name} AS ({rows})" for name, rows in [*self._given(), *more])
        query = sqlglot.parse_one(f"WITH {made} {result}", dialect=SPARK)
        assert isinstance(query, exp.Query)
        return query

    @property
    def _taken(self) -> frozenset[str]:
        every = [self.view, *(one for one in (self.inserted, self.deleted) if one is not None)]
        return casefolded([table.name[-1] for table in every])

    def _bound(self, view: OpaqueView) -> str:
        assert isinstance(view.query, TextQuery)
        return bound_text(view.query, {name: (unique(name, self._taken),) for name in (OLD, STORED, COME)})

    def _given(self) -> list[tuple[str, str]]:
        old, stored, come = (unique(name, self._taken) for name in (OLD, STORED, COME))
        return [(old, self._old()), (stored, self._stored(old)), (come, self._come())]

    def _old(self) -> str:
        """The view's rows in the groups that are touched."""
        names = {name.casefold(): name for name in self.view.columns}
        its = [names[name] for name, _ in self.shown.outputs]
        shown = ", ".join(f"it.{quoted(name)} AS v{i}" for i, name in enumerate(its))
        query, groups = f"SELECT {shown} FROM {_table(self.view, 'it')}", self.shown.groups
        if not groups:
            return query
        sides = [one for one in (self.inserted, self.deleted) if one is not None]
        keys = ", ".join(f"{quoted(self.shown.table.columns[i])} AS g{i}" for i in groups)
        touched = " UNION ".join(f"SELECT {keys} FROM {_table(one, 'side')}" for one in sides)
        same = [f"touched.g{i} {self._equal(i)} it.{quoted(its[self.shown.shown[i]])}" for i in groups]
        return f"{query} WHERE EXISTS (SELECT 1 FROM ({touched}) AS touched WHERE {' AND '.join(same)})"

    def _stored(self, old: str) -> str:
        """Those of them that do not go: a row that goes is the one of its key."""
        query = f"SELECT * FROM {old} AS it"
        if self.deleted is None:
            return query
        key, columns = self.shown.key, self.shown.table.columns
        same = [f"gone.{quoted(columns[i])} {self._equal(i)} it.v{self.shown.shown[i]}" for i in key]
        gone = f"SELECT 1 FROM {_table(self.deleted, 'gone')} WHERE {' AND '.join(same)}"
        return f"{query} WHERE NOT EXISTS ({gone})"

    def _come(self) -> str:
        table = self.shown.table
        if self.inserted is not None:
            return f"SELECT {', '.join(map(quoted, table.columns))} FROM {_table(self.inserted, 'side')}"
        nulls = (
            f"{'NULL' if kind == ANY else f'CAST(NULL AS {kind})'} AS {quoted(name)}"
            for name, kind in zip(table.columns, table.types, strict=True)
        )
        return f"SELECT {', '.join(nulls)} WHERE FALSE"

    def _equal(self, column: int) -> str:
        return "<=>" if column in self.shown.table.nullable else "="


def _table(table: tables.Table, alias: str) -> str:
    return text(table.tree(alias), pretty=False)
