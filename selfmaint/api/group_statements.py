"""What brings a stored view that groups up to date, as Spark SQL: a MERGE, and what it has no values for; or a bag."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from datalog.model import Predicate, Program, Version
from datalog.rewrite import minimised
from datalog.sql import (
    Changes,
    Table,
    changed_groups,
    changes_table,
    counted_view,
    delete_changed,
    insert_copies,
    merge,
    open_groups,
    read_set,
    select,
    text,
)
from selfmaint.api.toml_tables import dotted
from selfmaint.decide.decision import Decision
from selfmaint.maintain.core_rows import core_gained, core_lost, core_program
from selfmaint.maintain.group_plan import BESIDE, ROWS, GroupPlan
from selfmaint.warehouse.catalog import View
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
    decision: Decision, view: View, situation: Situation, tables: Mapping[Predicate, Table]
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
    parts = _parts(decision, view, situation, tables)
    if parts is None:
        return None
    bag, held = tables[view.predicate.of(Version.BAG)], tables[view.predicate.of(Version.STEP)]
    return BagStatements(
        text(changes_table(held, changed_groups(parts.given))),
        text(delete_changed(bag, held)),
        text(insert_copies(bag, held)),
        parts.program,
        parts.reads,
    )


def counted_sql(view: View, tables: Mapping[Predicate, Table]) -> str:
    """The statement that makes the counted rows of a view that keeps duplicates readable, as a temporary view."""
    return text(counted_view(tables[view.predicate.of(Version.BAG)], tables[view.predicate]))


def group_statements(
    decision: Decision, view: View, situation: Situation, tables: Mapping[Predicate, Table]
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
    parts = _parts(decision, view, situation, tables)
    if parts is None:
        return None
    return GroupStatements(
        text(open_groups(parts.given)) if parts.plan.may_be_open else None,
        text(merge(parts.given)),
        parts.program,
        parts.reads,
    )


@dataclass(frozen=True, slots=True)
class _Parts:
    """What the statements for a view are made of."""

    given: Changes
    plan: GroupPlan
    program: Program
    reads: tuple[str, ...]


def _parts(
    decision: Decision, view: View, situation: Situation, tables: Mapping[Predicate, Table]
) -> _Parts | None:
    assert view.core is not None
    assert view.grouped is not None
    program = minimised(core_program(decision.support(situation), situation, view))
    columns = tuple(f"c{i}" for i in range(view.core.head.arity))
    rows = {
        side: select(program, goal, tables, columns=columns)
        for side, goal in (("gained", core_gained(view)), ("lost", core_lost(view)))
        if program.rules_for(goal)
    }
    if not rows:
        return None
    plan = GroupPlan(view, decision.catalog.relations, asks_known=False)
    given = Changes(
        target=tables[view.predicate],
        keys=view.grouped.columns,
        measures=tuple(m.column for m in view.grouped.measures),
        rows=rows,
        part=plan.part,
        rows_of=ROWS,
        rows_columns=columns,
        changes=plan.changes,
        open=replace(plan.open, columns=(*(view.columns[c] for c in view.grouped.columns), "is_open")),
        beside_of=BESIDE,
    )
    read = {name for query in rows.values() for name in read_set(query)} | {given.target.name}
    return _Parts(given, plan, program, tuple(sorted(dotted(name) for name in read)))
