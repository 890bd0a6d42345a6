"""Whether a database explains everything known: the definition, applied to rows at hand.

Shares nothing with the test: it evaluates the views on the database and compares.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from msgspec import Struct

from datalog.evaluate import EvaluationError
from datalog.model import OpaqueView, Predicate, Row, Semantics, Version, ViewDefinition
from selfmaint.countermodel.databases import (
    CannotEvaluateError,
    Evaluation,
    Rows,
    broken,
    stored_rows,
    updated,
)
from selfmaint.warehouse.catalog import BaseRelation, Catalog, GroupedView, Outside, View
from selfmaint.warehouse.situation import Situation


class Given(Struct, frozen=True, dict=True):
    """Everything known, as rows at hand.

    Attributes:
        situation: the kinds of facts known.
        known: the canonical database.
        repeated: views of which equal rows are stored, and at hand once: these cannot be held against a database.
    """

    catalog: Catalog
    situation: Situation
    rows: Mapping[Predicate, frozenset[Row]]
    known: Rows
    repeated: frozenset[str] = frozenset()

    def of(self, name: str, version: Version) -> frozenset[Row]:
        """What is given of one version of a relation."""
        return self.rows.get(Predicate(name, version), frozenset())

    @property
    def every_row(self) -> tuple[Row, ...]:
        """All rows at hand."""
        return tuple(row for found in (*self.rows.values(), *self.known.values()) for row in found)

    def after(self, database: Rows) -> dict[str, frozenset[Row]]:
        """A database with the update applied."""
        inserted, deleted = (
            {name: self.of(name, version) for name in self.catalog.relations}
            for version in (Version.INSERTED, Version.DELETED)
        )
        return updated(database, inserted, deleted)

    def state(self, view: View, database: Rows) -> frozenset[Row] | None:
        """A view's rows on a database, counted ones of a bag; None where they cannot be told.

        So it is of views of which only the text is known and that cannot be run (`Catalog.texts`), and of a sum of
        names, say, in undeclared columns; and of those whose rows may stand twice, and are not counted.
        """
        if may_repeat(view) or view.name in self.repeated:
            return None
        try:
            rows = self.evaluation.state(view.name, database)
        except (CannotEvaluateError, EvaluationError, TypeError):
            return None
        if isinstance(view.definition, OpaqueView) and any(copies > 1 for copies in rows.values()):
            return frozenset(
                (*row, copies) for row, copies in rows.items()
            )  # equal to nothing that is stored
        return stored_rows(self.catalog, {view.name: rows})[view.name]

    def are_alike(self, view: View, one: frozenset[Row], other: frozenset[Row]) -> bool:
        """Whether two contents of a view are the same."""
        return one == other

    @cached_property
    def evaluation(self) -> Evaluation:
        """The views as functions of a database."""
        return Evaluation(self.catalog)


def may_repeat(view: View) -> bool:
    """Whether a row of a view may stand twice and is at hand once."""
    its = view.definition
    if view.limitation is None or isinstance(view, GroupedView) or not isinstance(its, ViewDefinition):
        return False
    one, *more = its.blocks
    return its.semantics is Semantics.BAG and (
        bool(more) or one.groups is None or not {*one.groups} <= {*one.outputs}
    )


def is_evaluated(catalog: Catalog, view: View) -> bool:
    """Whether two databases are looked for beside a view: `state` would tell the rows of a union as well."""
    if isinstance(view.definition, OpaqueView) and not isinstance(view, GroupedView):
        return view.definition.anti is not None or catalog.texts is not None
    if view.limitation is None or view.limitation.kind is Outside.PROJECTION or view.always_empty:
        return True
    return isinstance(view, GroupedView) and isinstance(view.grouping or view.definition, ViewDefinition)


def why_not(known: Given, database: Rows) -> str:
    """What a database before the update leaves unexplained; empty if nothing."""
    for view in known.catalog.views:
        found = known.state(view, database)
        if found is None:
            return f"{view.shown} cannot be evaluated here"
        if not known.are_alike(view, found, known.of(view.name, Version.STORED)):
            return f"{view.shown} would have other rows"
    for relation in known.catalog.relations.values():
        for problem in _objections(known, relation, database.get(relation.name, frozenset())):
            return problem
    for each in (database, known.after(database)):
        for problem in broken(known.catalog, each):
            return problem
    return ""


def _objections(known: Given, relation: BaseRelation, rows: frozenset[Row]) -> Iterator[str]:
    name, situation = relation.name, known.situation
    inserted, deleted = known.of(name, Version.INSERTED), known.of(name, Version.DELETED)
    if situation.effective and (rows & inserted or deleted - rows):
        yield f"the update of `{name}` would not be effective"
    if known.of(name, Version.PRESENT) - rows:
        yield f"rows of `{name}` that are known would be missing"
    if known.of(name, Version.ABSENT) & rows:
        yield f"`{name}` would have a row that is known to be absent"
    if name in situation.readable and rows != known.of(name, Version.BEFORE):
        yield f"`{name}` would differ from what was read"
    for region in (r for r in situation.regions if r.name == name):
        keys = known.rows.get(region, frozenset())
        new = rows - known.known[name]
        if any(not region.columns or tuple(row[i] for i in region.columns) in keys for row in new):
            yield f"`{name}` would have a row that a read would have found"
