"""Base rows whose dates or times a view shows the days, months or years of: which spans of them a value asks for.

Why that is right: `datalog/sql/affected/periods.py`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence

from datalog.model import (
    Atom,
    Comparison,
    NullTest,
    Predicate,
    Program,
    Row,
    Rule,
    Semantics,
    Variable,
    Version,
    ViewDefinition,
    block,
)
from datalog.model.expressions import map_expression
from datalog.sql.affected import VALUE, ZONES, Period, merged
from selfmaint.canonical import row_atom
from selfmaint.engine.protocol import D, Engine, Facts
from selfmaint.sources.between import Between, between
from selfmaint.warehouse.base_relations import BaseRelation

MOST_PERIODS = 100_000
"""How many days, months or years of a view are asked for, at most."""
MOST_SPANS = 500
"""How many spans of base rows these become: the nearest are put together."""


def spans_of(
    relation: BaseRelation, column: int, period: Period, shown: Iterable[Row], *, on_utc: bool
) -> Between:
    """The rows of which some of a period's values are shown; `on_utc`: whether the engine's clock is that of UTC."""
    values = list(shown)
    pad = dt.timedelta() if on_utc else ZONES
    with_null = any(None in one for one in values)
    asked = [period.span(one, pad) for one in values if None not in one]
    if with_null:  # DuckDB has null for the year of infinity, too
        asked += [(None, dt.datetime.min), (dt.datetime.max, None)]  # noqa: DTZ901 - on the clock of UTC
    spans = merged(asked, MOST_SPANS)
    return between(relation.columns[column], relation.types[column], spans, with_null=with_null)


def rows_within(engine: Engine[D], relation: BaseRelation, column: int, asked: Between, rows: D) -> D:
    """Those of some rows of a relation that are asked for."""
    if asked.is_whole:
        return rows
    row, goal = row_atom(relation, Version.FOUND), row_atom(relation, Version.KNOWN)
    spans, value = Predicate("spans", Version.STEP), row.terms[column]
    start, end = Variable("Start"), Variable("End")
    above, below = Comparison(">=", value, start), Comparison("<", value, end)
    rules = []
    for kind in sorted({(a is not None, b is not None) for a, b in asked.spans} or {(True, True)}):
        ends = [NullTest(end, negated=is_end) for end, is_end in zip((start, end), kind, strict=True)]
        tests = [test for test, is_end in zip((above, below), kind, strict=True) if is_end]
        any_value = () if tests else (NullTest(value, negated=True),)
        rules.append(Rule(goal, (Atom(spans, (start, end)), row, *ends, *tests, *any_value)))
    if asked.with_null:
        rules.append(Rule(goal, (row, NullTest(value, negated=False))))
    given = engine.load(asked.spans, ("start", "end"), (asked.type, asked.type))
    facts = Facts({row.predicate: rows, spans: given}, {}, frozenset({spans}))
    found = engine.evaluate(Program(tuple(rules)), goal.predicate, facts, relation.columns)
    return engine.keep(engine.like(found, rows))


def shown_of(
    engine: Engine[D], relation: BaseRelation, column: int, period: Period, rows: D, names: Sequence[str]
) -> D:
    """What a period shows of some rows of a relation."""
    row = row_atom(relation, Version.FOUND)
    value = row.terms[column]
    shown = [map_expression(lambda one: value if one == VALUE else None, its) for its in period.expressions]
    made = ViewDefinition("periods", tuple(names), (block("periods", 0, [row], shown),), Semantics.SET)
    types = {row.predicate: relation.types}
    return engine.keep(engine.evaluate_view(made, Facts({row.predicate: rows}), types))
