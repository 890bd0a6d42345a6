"""The stored rows that must be looked at because rows that are looked at tell base rows, and these give them.

    order_lines(1, 'Ann', 7, ...) tells customer(1, 'Ann'); so the row of `customers` is looked at, too

Else a database of what is near would hold rows that no view near has, and there would be none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from datalog.model import ANY, Atom, Predicate, Program, Row, Rule, Variable, Version
from selfmaint.countermodel.databases import CannotEvaluateError, stored_rows
from selfmaint.cross_examine.definition import definition
from selfmaint.cross_examine.matches import Sketches, Told
from selfmaint.cross_examine.question import Question
from selfmaint.engine.protocol import D, Engine, Facts
from selfmaint.warehouse.catalog import View

_ROUNDS = 2
"""How often the rows found are asked what they give."""


def with_consequences(
    engine: Engine[D],
    relations: Mapping[Predicate, D],
    question: Question,
    most: int,
) -> dict[Predicate, frozenset[Row]]:
    """The rows of a question, and the stored rows that the base rows they tell give.

    Args:
        engine: holds all rows.
        relations: all stored views and copies.
        question: the rows that are looked at.
        most: how many rows are added at most for one view.
    """
    for _ in range(_ROUNDS):
        more = {
            p: question.rows.get(p, frozenset()) | found
            for p, found in _given(engine, relations, question, most)
        }
        if all(rows == question.rows.get(p) for p, rows in more.items()):
            break
        question = replace(question, rows={**question.rows, **more})
    return dict(question.rows)


def _given(
    engine: Engine[D], relations: Mapping[Predicate, D], question: Question, most: int
) -> Iterator[tuple[Predicate, frozenset[Row]]]:
    told: dict[str, set[Row]] = {name: set() for name in question.catalog.relations}
    for name, slots in Sketches(question).make():
        row = tuple(slot.value for slot in slots if isinstance(slot, Told))
        if len(row) == len(slots):
            told[name].add(row)
    known = definition(question)
    database = {name: frozenset(rows) - question.of(name, Version.INSERTED) for name, rows in told.items()}
    for view in question.catalog.views:
        data = relations.get(view.predicate)
        if data is None:
            continue
        derived: set[Row] = set()
        for its in (database, known.after(database)):
            try:
                contents = {view.name: known.evaluation.state(view.name, its)}
            except (CannotEvaluateError, TypeError):
                continue
            derived |= stored_rows(question.catalog, contents)[view.name]
        if derived:
            yield view.predicate, _stored(engine, data, view, question, derived, most)


def _stored(
    engine: Engine[D], data: D, view: View, question: Question, derived: set[Row], most: int
) -> frozenset[Row]:
    """The stored rows that some derived ones are, or of groups the rows that show what these are grouped by."""
    columns = engine.columns(data)
    wanted = engine.like(engine.load(sorted(derived, key=repr), columns, [ANY] * len(columns)), data)
    goal, given = Predicate("near", Version.STEP), Predicate("wanted", Version.STEP)
    key = _key(view, question, len(columns))
    its = tuple(Variable(f"X{i}") for i in range(len(columns)))
    others = tuple(v if i in key else Variable(f"Y{i}") for i, v in enumerate(its))
    rule = Rule(Atom(goal, its), (Atom(view.predicate, its), Atom(given, others)))
    facts = Facts({view.predicate: data, given: wanted}, {}, frozenset({given}))
    return frozenset(engine.fetch(engine.evaluate(Program((rule,)), goal, facts, columns), most) or ())


def _key(view: View, question: Question, width: int) -> frozenset[int]:
    """The positions that tell a view's rows apart: of groups what they group by, of counted rows all but the count."""
    for part in question.parts(view):
        if part.block is not None and part.block.groups is not None:
            groups = {repr(group) for group in part.block.groups}
            return frozenset(i for i, output in enumerate(part.outputs) if repr(output) in groups)
    return frozenset(range(width - 1 if view.is_counted else width))
