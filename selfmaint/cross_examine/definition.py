"""What is believed of databases: the views as they are written, evaluated on them.

The reference evaluation (`datalog.evaluate`) of the rules and blocks of the text, not of what the warehouse's schema
makes of them: equalities applied, subgoals dropped, unions told apart.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from decimal import Decimal
from functools import cached_property

from datalog.evaluate import EvaluationError
from datalog.evaluate.order import nan_last
from datalog.model import Program, Row, Value
from datalog.rewrite import guard_joins
from selfmaint.countermodel.databases import CannotEvaluateError, Evaluation, Rows
from selfmaint.countermodel.model_check import Given, may_repeat, why_not
from selfmaint.cross_examine.groups import inexact_columns
from selfmaint.cross_examine.question import Question, identity
from selfmaint.warehouse.catalog import View

TOLERANCE = 1e-9
"""Sums of doubles that differ by less, in relation or at all, are the same."""


class _AsWritten(Evaluation):
    """The views as functions of a database, from the rules as written."""

    @cached_property
    def rules(self) -> Program:
        """All rules, with SQL's join semantics; where branches are views, theirs as well."""
        catalog = self.catalog
        branches = (v.rule for v in catalog.views if v.definition is None and catalog.whole(v.name) != v.name)
        return Program(tuple(guard_joins(rule) for rule in (*catalog.program.rules, *branches)))

    @cached_property
    def _needed(self) -> Mapping[str, frozenset[str]]:
        """Nothing is concluded from relations without rows."""
        return {view.name: frozenset() for view in self.catalog.views}


class Definition(Given, frozen=True, dict=True):
    """Everything known, for asking by the definition whether a database explains it."""

    @cached_property
    def evaluation(self) -> Evaluation:
        """The views as functions of a database."""
        return _AsWritten(self.catalog)

    def state(self, view: View, database: Rows) -> frozenset[Row] | None:
        """A view's rows on a database, counted ones where they may stand twice; None where they cannot be told."""
        try:
            rows = self.evaluation.state(view.name, database)
        except (CannotEvaluateError, EvaluationError, TypeError):
            return None
        if view.is_counted or may_repeat(view):
            return frozenset((*row, copies) for row, copies in rows.items())
        return frozenset(rows)

    def tells(self, database: Rows) -> bool:
        """Whether it can be told what all views hold on a database, before the update and after it."""
        each = (database, self.after(database))
        return all(self.state(view, its) is not None for view in self.catalog.views for its in each)

    def are_alike(self, view: View, one: frozenset[Row], other: frozenset[Row]) -> bool:
        """Whether two contents of a view are the same, but for the last digits of what doubles are added up to."""
        return one == other or alike(
            one, other, inexact_columns(Question(self.catalog, self.situation, self.rows), view)
        )

    def why_not(self, database: Rows) -> str:
        """What a database before the update leaves unexplained; empty if nothing."""
        return why_not(self, database)


def alike(one: frozenset[Row], other: frozenset[Row], inexact: Collection[int]) -> bool:
    """Whether some rows are others, but for the last digits in some columns.

    >>> alike(frozenset({(1, 0.3)}), frozenset({(1, 0.1 + 0.2)}), {1})
    True
    """
    if len(one) != len(other):
        return False
    first, second = (sorted(rows, key=lambda row: _near(row, inexact)) for rows in (one, other))
    return all(
        identity(x) == identity(y) or (i in inexact and _is_close(x, y))
        for row, its in zip(first, second, strict=True)
        for i, (x, y) in enumerate(zip(row, its, strict=True))
    )


def _near(row: Row, inexact: Collection[int]) -> tuple[list[str], list[tuple[bool, float]]]:
    """By what rows are sorted: the exact columns first."""
    exact = [repr(identity(v)) for i, v in enumerate(row) if i not in inexact]
    return exact, [nan_last(v if isinstance(v, float) else 0.0) for i, v in enumerate(row) if i in inexact]


def _is_close(one: Value, other: Value) -> bool:
    numbers = isinstance(one, int | float | Decimal) and isinstance(other, int | float | Decimal)
    return numbers and math.isclose(float(one), float(other), rel_tol=TOLERANCE, abs_tol=TOLERANCE)  # type: ignore[arg-type]


def definition(question: Question) -> Definition:
    """What databases are held against. There are no regions: before any read nothing is known by its key."""
    return Definition(question.catalog, question.situation, question.rows, {})
