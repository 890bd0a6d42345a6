"""What is believed of databases: the views as they are written, evaluated on them.

The reference evaluation (`datalog.evaluate`) of the rules and blocks of the text, not of what the warehouse's schema
makes of them: equalities applied, subgoals dropped, unions told apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from datalog.model import Program
from datalog.rewrite import guard_joins
from selfmaint.countermodel.databases import Evaluation, Rows
from selfmaint.countermodel.model_check import Given, why_not
from selfmaint.cross_examine.question import Question


class _AsWritten(Evaluation):
    """The views as functions of a database, from the rules as written."""

    @cached_property
    def rules(self) -> Program:
        """All rules, with SQL's join semantics."""
        return Program(tuple(guard_joins(rule) for rule in self.catalog.program.rules))

    @cached_property
    def _needed(self) -> Mapping[str, frozenset[str]]:
        """Nothing is concluded from relations without rows."""
        return {view.name: frozenset() for view in self.catalog.views}


@dataclass(frozen=True)
class Definition(Given):
    """Everything known, for asking by the definition whether a database explains it."""

    @cached_property
    def evaluation(self) -> Evaluation:
        """The views as functions of a database."""
        return _AsWritten(self.catalog)

    def why_not(self, database: Rows) -> str:
        """What a database before the update leaves unexplained; empty if nothing."""
        return why_not(self, database)


def definition(question: Question) -> Definition:
    """What databases are held against. There are no regions: before any read nothing is known by its key."""
    return Definition(question.catalog, question.situation, question.rows, {})
