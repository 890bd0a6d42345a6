"""What decides and maintains a view with LEFT JOINs, or a union, as Spark SQL: by the parts that its rows tell apart.

Each part is a temporary view over the stored table, and has tests like any other view. Their changes, put together,
are the rows that the view gains and loses: these are held in a table, for the temporary views read the stored one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TypeAlias

from datalog.copies import replace
from datalog.model import (
    Atom,
    Constant,
    Negation,
    Predicate,
    Program,
    Rule,
    Variable,
    Version,
    ViewDefinition,
    block,
    with_flag,
)
from datalog.rewrite import drop_empty
from datalog.sql import (
    Table,
    read_set,
    select_in_steps,
    select_view,
    temporary_view,
    text,
)
from selfmaint.api.file.toml_tables import dotted
from selfmaint.api.printing.group_statements import change_in_steps
from selfmaint.api.printing.printed import Statement, StatementKind
from selfmaint.api.printing.table_changes import applied
from selfmaint.decide.decision import Decision
from selfmaint.engine.plans import in_one_query
from selfmaint.maintain import gained, lost, maintenance_program
from selfmaint.warehouse.branches import as_shown
from selfmaint.warehouse.catalog import Catalog, GroupedView, View
from selfmaint.warehouse.computed_columns import completed
from selfmaint.warehouse.outer_joins import recombined
from selfmaint.warehouse.situation import Situation

Step: TypeAlias = tuple[Predicate, Program | ViewDefinition, tuple[str, ...]]
"""A relation, what makes it, and the names of its columns; see `select_in_steps`."""

_NEW, _GONE, _WHOLE = (Predicate(name, Version.STEP) for name in ("come", "go", "whole"))


def part_statements(catalog: Catalog, tables: Mapping[Predicate, Table]) -> dict[str, Statement]:
    """By table, what makes the rows readable of what views with LEFT JOINs, and unions, are made of."""
    found = {}
    for parts in catalog.unions.values():
        for branch, part in parts.items():
            table = tables[part.predicate]
            rows = select_view(replace(branch.selection, columns=table.columns), tables)
            made, reads = text(temporary_view(table, rows)), tuple(dotted(n) for n in read_set(rows))
            about = f"the rows of {part.shown}, for the statements that follow"
            found[dotted(table.name)] = Statement(
                StatementKind.PART, f"{part.name}@rows", about, Program(), made, reads
            )
    return found


def part_changes(
    decision: Decision, view: View, situation: Situation, tables: Mapping[Predicate, Table]
) -> Iterator[Statement]:
    """The statements that apply the change of a view that is made of parts; none if nothing changes it.

    Semantics:
        Right where the tests of what it is made of have no rows, and no group of that is open.

    Raises:
        EmissionError: a name that Spark cannot take.
    """
    steps = list(_steps(decision, view, situation, tables))
    if not steps:
        return
    made_of = {predicate for predicate, _, _ in steps}
    row = tuple(Variable(f"C{i}") for i in range(len(view.columns)))
    rows = [
        block("changes", number, [Atom(predicate, row)], [*row, Constant(there)])
        for number, (predicate, there) in enumerate(((_NEW, 1), (_GONE, 0)))
        if predicate in made_of
    ]
    columns = with_flag(view.columns)
    query = select_in_steps(steps, ViewDefinition("changes", columns, tuple(rows)), tables)
    condition = ", if neither the tests nor the queries of open groups have rows"
    yield from applied(view, query, tables, condition)


def _steps(
    decision: Decision, view: View, situation: Situation, tables: Mapping[Predicate, Table]
) -> Iterator[Step]:
    """The changes of the parts, and the view's own: with LEFT JOINs by the rows touched, as they were and are."""
    parts = decision.catalog.unions[view.name].values()
    known = set[Predicate]()
    for part in parts:
        for step in _changes(decision, part, situation, tables):
            known.add(step[0])
            yield step
    if view.name not in decision.catalog.outer:
        yield from _united(decision, view, known)
        return
    outer = decision.catalog.outer[view.name]
    program, before, after = recombined(view.name, outer)
    goals = {goal for part in parts for goal in (gained(part), lost(part))}
    if not goals & known:
        return
    program = drop_empty(program, goals - known)
    row = tuple(Variable(f"C{i}") for i in range(len(view.columns)))
    for predicate, columns in ((before, view.columns), (after, outer.plain_names)):
        yield predicate, in_one_query(program, predicate), columns
    if outer.computed:
        whole, _ = completed(view.name, outer, after, decision.catalog.relations)
        after = _WHOLE
        yield after, whole, view.columns
    for predicate, one, other in ((_NEW, after, before), (_GONE, before, after)):
        made = Program((Rule(Atom(predicate, row), (Atom(one, row), Negation((Atom(other, row),)))),))
        yield predicate, made, view.columns


def _united(decision: Decision, view: View, known: Collection[Predicate]) -> Iterator[Step]:
    """The rows that a union gains and loses: those of its branches, with what the union shows of them."""
    relations, row = decision.catalog.relations, tuple(Variable(f"C{i}") for i in range(len(view.columns)))
    for side, of in ((_NEW, gained), (_GONE, lost)):
        rules = []
        for branch, part in decision.catalog.unions[view.name].items():
            rows = of(part)
            if rows not in known:
                continue
            if branch.shown:
                made, _ = as_shown(branch, part, rows, relations)
                rows = Predicate(f"{part.name}_{side.name}", Version.STEP)
                yield rows, made, view.columns
            rules.append(Rule(Atom(side, row), (Atom(rows, row),)))
        if rules:
            yield side, Program(tuple(rules)), view.columns


def _changes(
    decision: Decision, part: View, situation: Situation, tables: Mapping[Predicate, Table]
) -> Iterator[Step]:
    """The rows that a part gains and loses."""
    goals = gained(part), lost(part)
    if not isinstance(part, GroupedView):
        program = maintenance_program(decision.support(situation), situation, part)
        for goal in goals:
            if program.rules_for(goal):
                yield goal, in_one_query(program, goal), part.columns
        return
    steps, result = change_in_steps(decision, part, situation, tables)
    if result is None:
        return
    yield from steps
    changes = Predicate(f"{part.name}_changes", Version.STEP)
    yield changes, result, result.columns
    row = tuple(Variable(f"C{i}") for i in range(len(part.columns)))
    others = tuple(v if i in part.grouped.columns else Variable(f"D{i}") for i, v in enumerate(row))
    stored, now = Atom(part.predicate, row), Atom(changes, (*row, Constant(1)))
    touched = Atom(changes, (*others, Variable("There")))
    for goal, body in zip(
        goals, ((now, Negation((stored,))), (stored, touched, Negation((now,)))), strict=True
    ):
        yield goal, Program((Rule(Atom(goal, row), body),)), part.columns
