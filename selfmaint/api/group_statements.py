"""What brings a stored view that groups up to date, as Spark SQL: a MERGE, and what it has no values for; or a bag."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from datalog.model import Predicate, Program, Version, ViewDefinition
from datalog.rewrite import minimised
from datalog.sql import (
    Table,
    changes_table,
    counted_view,
    delete_changed,
    insert_copies,
    merge,
    read_set,
    select_in_steps,
    text,
)
from selfmaint.api.toml_tables import dotted
from selfmaint.decide.decision import Decision
from selfmaint.maintain.core_rows import core_gained, core_lost, core_program
from selfmaint.maintain.dropped_groups import dropping
from selfmaint.maintain.group_plan import PARTS, GroupPlan
from selfmaint.warehouse.catalog import GroupedView, View
from selfmaint.warehouse.situation import Situation


@dataclass(frozen=True, slots=True)
class GroupStatements:
    """What applies the change of a view that groups.

    Attributes:
        open: the query of the groups whose new rows are not determined; None if there can be none.
        merge: the statement, right if that query has no row.
        program: the rules of the core rows that both are made of.
        reads: the tables that both read, dotted names quoted where need be.
    """

    open: str | None
    merge: str
    program: Program
    reads: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BagStatements:
    """What applies the change of a view that keeps duplicates, in order.

    Attributes:
        changes: holds the rows that change in a table, with their new numbers of copies.
        delete: deletes every copy of these rows.
        insert: inserts them as often as they stand now.
        program: the rules of the core rows that the first is made of.
        reads: the tables that the first reads, dotted names quoted where need be.
    """

    changes: str
    delete: str
    insert: str
    program: Program
    reads: tuple[str, ...]


def bag_statements(
    decision: Decision, view: GroupedView, situation: Situation, tables: Mapping[Predicate, Table]
) -> BagStatements | None:
    """The statements that apply the change of a view that keeps duplicates; None if nothing changes the view.

    Args:
        decision: the symbolic side.
        view: a view that is counted.
        situation: which relations change.
        tables: where the rows are, and where the changes are to be held (`STEP`).

    Semantics:
        Right where the view's tests have no rows.

    Raises:
        EmissionError: a name that Spark cannot take.
    """
    made = _Made.of(decision, view, situation, tables)
    if made is None:
        return None
    bag, held = tables[view.predicate.of(Version.BAG)], tables[view.predicate.of(Version.STEP)]
    return BagStatements(
        text(changes_table(held, select_in_steps(made.steps, made.plan.changes, tables))),
        text(delete_changed(bag, held)),
        text(insert_copies(bag, held)),
        made.program,
        made.reads,
    )


def counted_sql(view: View, tables: Mapping[Predicate, Table]) -> str:
    """The statement that makes the counted rows of a view that keeps duplicates readable, as a temporary view."""
    return text(counted_view(tables[view.predicate.of(Version.BAG)], tables[view.predicate]))


def group_statements(
    decision: Decision, view: GroupedView, situation: Situation, tables: Mapping[Predicate, Table]
) -> GroupStatements | None:
    """The statements that apply the change of a view that groups.

    Args:
        decision: the symbolic side.
        view: a view with a core.
        situation: which relations change.
        tables: where the rows are.

    Returns:
        The statements; None if nothing changes the view.

    Semantics:
        Right where the view's tests have no rows. A group that is open may be determined all the same, by
        rows that are known to be there.

    Raises:
        EmissionError: a name that Spark cannot take.
    """
    made = _Made.of(decision, view, situation, tables)
    if made is None:
        return None
    grouped, changes = made.plan.grouped, select_in_steps(made.steps, made.plan.changes, tables)
    measures = [m.column for m in grouped.measures]
    return GroupStatements(
        text(select_in_steps(made.steps, made.plan.open, tables)) if made.plan.may_be_open else None,
        text(merge(tables[view.predicate], grouped.columns, measures, changes)),
        made.program,
        made.reads,
    )


@dataclass(frozen=True, slots=True)
class _Made:
    """What the statements for a view are made of: the plan, over the core rows that are gained and lost."""

    plan: GroupPlan
    program: Program
    tables: Mapping[Predicate, Table]

    @classmethod
    def of(
        cls, decision: Decision, view: GroupedView, situation: Situation, tables: Mapping[Predicate, Table]
    ) -> _Made | None:
        """What they are made of in a situation; None if nothing changes the view."""
        dropped = dropping(decision.catalog, situation, view)
        program = minimised(core_program(decision.support(situation), situation, view, dropped))
        goals = {"gained": core_gained(view), "lost": core_lost(view)}
        parts = tuple(name for name, goal in goals.items() if program.rules_for(goal))
        plan = GroupPlan(view, decision.catalog.relations, parts, tuple(dropped.values()))
        return cls(plan, program, tables) if parts or dropped else None

    @property
    def steps(self) -> Iterator[tuple[Predicate, Program | ViewDefinition, tuple[str, ...]]]:
        """Core rows, the parts that they are, and these side by side with the old rows."""
        view = self.plan.view
        columns = tuple(f"c{i}" for i in range(self.plan.core.head.arity))
        for name in self.plan.parts:
            rows = (core_gained if name == "gained" else core_lost)(view)
            yield rows, self.program, columns
            part = self.plan.part(rows)
            yield PARTS[name], part, part.columns
        dropped = (self.plan.old_dropped, self.plan.gone) if self.plan.dropped else ()
        for step in (*(self.plan.steps if self.plan.parts else ()), *dropped):
            yield step.predicate, step.made, step.columns

    @property
    def reads(self) -> tuple[str, ...]:
        """The tables that the statements read."""
        return tuple(
            sorted(
                dotted(name) for name in read_set(select_in_steps(self.steps, self.plan.changes, self.tables))
            )
        )
