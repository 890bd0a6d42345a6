"""Verdicts and changes of views whose own rows tell their new ones (`datalog/sql/affected/shown_rows.py`).

Of the groups that the update touches the stored rows, without those deleted, and the rows inserted are all that is
needed: a query over these gives the new rows.

Condition of soundness, besides those there: a row that is said to be deleted was there. So the update is effective, or
deletes no row of the relation. A row inserted that was there already is known, or comes behind all that is shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Generic

from msgspec import Struct

from datalog.copies import replace
from datalog.model import (
    ANY,
    Atom,
    ColumnType,
    OpaqueView,
    Predicate,
    Program,
    Rule,
    TextQuery,
    TypeName,
    Variable,
    Version,
)
from datalog.sql.affected import ShownRows, Table, plan_of_text, shown_rows
from datalog.sql.affected.shown_rows import COME, OLD, STORED
from selfmaint.api.following.how_followed import is_run, query_of, sums_of_doubles
from selfmaint.api.following.over_views import gives_one_result, tables_known
from selfmaint.api.platforms.platform import platform_of
from selfmaint.api.stored_types import unlike
from selfmaint.decide.knowledge import Knowledge
from selfmaint.decide.verdict import SelfMaintainable, Undecided, Verdict
from selfmaint.engine.protocol import D, Facts
from selfmaint.errors import Code, InputError
from selfmaint.maintain import Delta, difference
from selfmaint.warehouse.catalog import BaseRelation, Catalog, View

ALL = "it shows all rows that it is computed from"
FIRST = "rows that it does not show come behind those that it will"
"""Why there is one new state."""
UNSURE = "rows that are said to be deleted may not have been there: the update is not effective"
LOST = "it may lose a row, and the one that takes its place is one that it does not show"
"""Why there may be several."""

_GIVEN, _FOUND = Predicate("given", Version.STEP), Predicate("found", Version.STEP)


def with_shown_rows(known: Knowledge[D], verdicts: Mapping[str, Verdict]) -> dict[str, Verdict]:
    """The verdicts, where views have those that their own rows give them.

    Raises:
        InputError: SM104 stored contents that turn out to be unreadable.
    """
    found = dict(verdicts)
    for view in known.catalog.views:
        verdict = found.get(view.name)
        shown = shown_rows_of(known.catalog, view) if isinstance(verdict, Undecided) else None
        if isinstance(verdict, Undecided) and shown is not None:
            rows = _Rows(known, view, shown)
            remark = ALL if shown.first is None else FIRST
            reason = rows.obstacle
            found[view.name] = (
                SelfMaintainable(view.name, (remark,), view.semantics, delta=rows.delta)
                if reason is None
                else verdict.because_of(reason)
            )
    return found


def shown_rows_of(catalog: Catalog, view: View) -> ShownRows | None:
    """What a view of which only the text is known shows of a relation's rows, if that is enough, and can be run."""
    return catalog.once("shown rows", view, lambda: _shown_rows(catalog, view))


def _shown_rows(catalog: Catalog, view: View) -> ShownRows | None:
    text = view.definition.query if isinstance(view.definition, OpaqueView) else None
    if not isinstance(text, TextQuery) or len(text.relations) != 1 or view.is_decided:
        return None
    query = query_of(catalog, view)
    shown = None if query is None else shown_rows(query)
    if query is None or shown is None or not gives_one_result(catalog, text):
        return None
    is_exact = not sums_of_doubles(query, tables_known(catalog))
    return shown if is_exact and _is_run(catalog, view, shown) else None


def _is_run(catalog: Catalog, view: View, shown: ShownRows) -> bool:
    """Whether DuckDB is known to run its queries as Spark does."""
    kinds = tables_known(catalog)[view.name].types
    if ANY in kinds:
        return False
    stored = {name: Table(name, shown.stored_columns, kinds) for name in (OLD, STORED)}
    tables = {**stored, COME: replace(shown.table, name=COME)}
    made = [shown.new(), *([shown.behind(shown.first)] if shown.first else [])]
    return all(
        isinstance(q := one.query, TextQuery) and is_run(plan_of_text(q, tables), tables) for one in made
    )


class _Rows(Struct, Generic[D], dict=True):
    """The rows of a view that are known, in the groups that the update touches."""

    known: Knowledge[D]
    view: View
    shown: ShownRows

    @property
    def obstacle(self) -> str | None:
        """Why they may not tell the view's new rows."""
        situation, name = self.known.situation, self.shown.table.name
        if (unlike := self._unlike()) is not None:
            return unlike
        if name not in situation.deleted:
            return None
        if not situation.effective:
            return UNSURE
        return LOST if self._may_be_followed() else None

    def _unlike(self) -> str | None:
        """Why its stored rows are not those of its query: other columns, or types, as in files that have none."""
        stored = self.known.facts.relations[self.view.predicate]
        names = [name.casefold() for name in self.known.engine.columns(stored)]
        if sorted(names) != sorted(name for name, _ in self.shown.outputs):
            return "other columns are stored than its query has"
        types = dict(zip(names, platform_of(self.known.engine).types(stored), strict=True))
        return unlike(tables_known(self.known.catalog)[self.view.name], types, all_known=True)

    def _may_be_followed(self) -> bool:
        """Whether rows that are not shown may follow those that go."""
        if self.shown.first is None:
            return False
        engine = self.known.engine
        like = engine.load((), ("n",), (ColumnType(TypeName.BIGINT),))
        try:
            return engine.count(self._computed(self.shown.behind(self.shown.first), like)) > 0
        except InputError as error:
            if error.diagnostics[0].code not in (Code.NOT_MAINTAINED, Code.ENGINE_DIFFERS):
                raise
            return True  # of values that this engine does not compare as others do

    def delta(self) -> Delta[D]:
        """The view's change, held by the engine."""
        stored = self.known.facts.relations[self.view.predicate]
        return difference(
            self.known.engine, self.view, self._computed(self.shown.new(), stored), self._stored
        )

    def _computed(self, query: OpaqueView, like: D) -> D:
        columns, places = self.shown.stored_columns, self._places
        facts = {
            Predicate(OLD): self._made(self._stored, columns, places),
            Predicate(STORED): self._made(self._left, columns, places),
            Predicate(COME): self._side(Version.INSERTED),
        }
        assert isinstance(query.query, TextQuery)
        read = {p: rows for p, rows in facts.items() if p.name in query.query.relations}
        return self.known.engine.recompute(query, Facts(read), {}, like)

    @cached_property
    def _places(self) -> Sequence[int]:
        """Where each output is stored: the columns may be in another order."""
        stored = self.known.facts.relations[self.view.predicate]
        names = [name.casefold() for name in self.known.engine.columns(stored)]
        return [names.index(name) for name, _ in self.shown.outputs]

    @property
    def _relation(self) -> BaseRelation:
        return self.known.catalog.relations[self.shown.table.name]

    @cached_property
    def _stored(self) -> D:
        """The view's rows in these groups, before the update."""
        stored, groups = self.known.facts.relations[self.view.predicate], self.shown.groups
        if not groups:
            return stored
        engine, names = self.known.engine, self.shown.table.columns
        sides = (self._side(version) for version in (Version.INSERTED, Version.DELETED))
        touched = [self._made(rows, [names[i] for i in groups], groups) for rows in sides]
        return self._matching(stored, groups, engine.keep(engine.union(touched)))

    @cached_property
    def _left(self) -> D:
        """Those of them that do not go: a row that goes is the one of its key."""
        engine, key, names = self.known.engine, self.shown.key, self.shown.table.columns
        keys = engine.keep(self._made(self._side(Version.DELETED), [names[i] for i in key], key))
        return engine.minus_all(self._stored, self._matching(self._stored, key, keys))

    def _side(self, version: Version) -> D:
        """The rows of the relation that come, or go."""
        name, situation, relation = self.shown.table.name, self.known.situation, self._relation
        if name in (situation.inserted if version is Version.INSERTED else situation.deleted):
            return self.known.facts.relations[Predicate(name, version)]
        return self.known.engine.load((), relation.columns, relation.types)

    def _matching(self, rows: D, columns: Sequence[int], keys: D) -> D:
        """The view's rows that have one of some values in columns of the relation."""
        engine, places = self.known.engine, [self._places[self.shown.shown[i]] for i in columns]
        like = self._made(rows, [f"k{i}" for i in places], places)  # stored values may be of wider types
        return engine.bags.matching(rows, places, engine.keep(engine.like(keys, like)))

    def _made(self, rows: D, names: Sequence[str], columns: Sequence[int]) -> D:
        """Some columns of rows under other names; each row once."""
        engine = self.known.engine
        terms = tuple(Variable(f"X{i}") for i in range(len(engine.columns(rows))))
        wanted = tuple(terms[i] for i in columns)
        rule = Rule(Atom(_FOUND, wanted), (Atom(_GIVEN, terms),))
        return engine.evaluate(Program((rule,)), _FOUND, Facts({_GIVEN: rows}), list(names))
