"""What brings a stored view that groups up to date, as Spark SQL: a MERGE, and what it has no values for; or a bag."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from datalog.model import Predicate, Program, Version, ViewDefinition
from datalog.rewrite import minimised
from datalog.sql import (
    Steps,
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
from selfmaint.api.file.toml_tables import dotted
from selfmaint.api.printing.printed import Statement, StatementKind
from selfmaint.decide.decision import Decision
from selfmaint.engine.plans import in_one_query
from selfmaint.maintain.core_rows import core_gained, core_lost, core_program
from selfmaint.maintain.dropped_groups import dropping
from selfmaint.maintain.group_plan import PARTS, GroupPlan
from selfmaint.warehouse.catalog import GroupedView, View
from selfmaint.warehouse.situation import Situation


def counted_rows(view: View, tables: Mapping[Predicate, Table]) -> Statement:
    """What makes the rows of a view that keeps duplicates readable."""
    about = f"the rows of `{view.name}`, each once with its number of copies, for the statements that follow"
    bag = tables[view.predicate.of(Version.BAG)]
    query = text(counted_view(bag, tables[view.predicate]))
    return Statement(
        StatementKind.COUNTED, f"{view.name}@counted", about, Program(), query, (dotted(bag.name),)
    )


def bag_statements(
    decision: Decision, view: GroupedView, situation: Situation, tables: Mapping[Predicate, Table]
) -> Iterator[Statement]:
    """The statements that apply the change of a view that keeps duplicates; none if nothing changes the view.

    No MERGE: it can neither add nor remove some of several equal rows. One statement holds the rows that change in a
    table, with their new numbers of copies; one deletes every copy of these, one inserts them as often as they stand.

    Semantics:
        Right where the view's tests have no rows.

    Raises:
        EmissionError: a name that Spark cannot take.
    """
    made, name = _Made.of(decision, view, situation, tables), view.name
    if made is None:
        return
    bag, held = tables[view.predicate.of(Version.BAG)], tables[view.predicate.of(Version.STEP)]
    query = changes_table(held, select_in_steps(made.steps, made.plan.changes, tables))
    about = f"the rows of `{name}` that change and their new numbers of copies, if no test has rows; drop it at the end"
    yield Statement(StatementKind.CHANGES, f"{name}@changes", about, made.program, text(query), made.reads)
    reads = dotted(bag.name), dotted(held.name)
    about = f"every copy of these rows of `{name}`: a MERGE can not tell equal rows apart"
    gone = text(delete_changed(bag, held))
    yield Statement(StatementKind.DELETE, f"{name}@delete", about, Program(), gone, tuple(sorted(reads)))
    about = f"these rows, as often as they stand in `{name}` now"
    come = text(insert_copies(bag, held))
    yield Statement(StatementKind.INSERT, f"{name}@insert", about, Program(), come, reads[1:])


def group_statements(
    decision: Decision, view: GroupedView, situation: Situation, tables: Mapping[Predicate, Table]
) -> Iterator[Statement]:
    """The statements that apply the change of a view that groups; none if nothing changes the view.

    First the query of the groups whose new rows are not determined, where there may be some; then the MERGE, which is
    right if that query has no row.

    Semantics:
        Right where the view's tests have no rows. A group that is open may be determined all the same, by
        rows that are known to be there.

    Raises:
        EmissionError: a name that Spark cannot take.
    """
    made, name = _Made.of(decision, view, situation, tables), view.name
    if made is None:
        return
    grouped, changes = made.plan.grouped, select_in_steps(made.steps, made.plan.changes, tables)
    is_open = list(open_groups(decision, view, situation, tables))
    yield from is_open
    only_if = "neither the tests nor the query of open groups have rows" if is_open else "no test has rows"
    about = f"brings `{name}` up to date, if {only_if}"
    query = text(
        merge(tables[view.predicate], grouped.columns, [m.column for m in grouped.measures], changes)
    )
    yield Statement(StatementKind.MERGE, f"{name}@merge", about, made.program, query, made.reads)


def change_in_steps(
    decision: Decision, view: GroupedView, situation: Situation, tables: Mapping[Predicate, Table]
) -> tuple[Steps, ViewDefinition | None]:
    """What makes the changed groups of a view, with a last column `is_there`; None if nothing changes the view."""
    made = _Made.of(decision, view, situation, tables)
    return ((), None) if made is None else (made.steps, made.plan.changes)


def open_groups(
    decision: Decision, view: GroupedView, situation: Situation, tables: Mapping[Predicate, Table]
) -> Iterator[Statement]:
    """The query of the groups whose new rows are not determined, where there may be some."""
    made = _Made.of(decision, view, situation, tables)
    if made is None or not made.plan.parts or not made.plan.may_be_open:  # groups go as wholes: none is open
        return
    about = (
        f"groups of {view.shown} for which there are no right values; known rows or a finer view may have "
        "them, which `selfmaint check` asks, or else base rows"
    )
    query = text(select_in_steps(made.steps, made.plan.open, tables))
    yield Statement(
        StatementKind.OPEN, f"{view.name}@open", about, made.program, query, made.reads, exact=False
    )


class _Made(Struct, frozen=True):
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
            yield rows, in_one_query(self.program, rows), columns
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
