"""Groups whose counts and sums follow from the rows that they gain and lose: stored values, and what is added to them.

Why that is right: `datalog/sql/affected/additive.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from datalog.analysis.expression_types import DIGITS_OF_COUNTS, expression_type
from datalog.model import (
    Aggregate,
    AggregateFunction,
    AllOf,
    AnyOf,
    Arithmetic,
    Atom,
    Case,
    Cast,
    ColumnType,
    Compared,
    Condition,
    Constant,
    Expression,
    IsNull,
    Minus,
    Predicate,
    Program,
    Rule,
    Semantics,
    TypeName,
    Variable,
    Version,
    ViewDefinition,
    block,
)
from datalog.sql.affected import Additive
from selfmaint.engine.protocol import D, Engine, Facts
from selfmaint.fallback.keyed import affected_keys, by_keys, rows_both_times, unchanged
from selfmaint.fallback.keyed_rows import KeyedDelta, KeyedRows, NotKnownError
from selfmaint.fallback.recompute import Recomputing
from selfmaint.maintain import difference
from selfmaint.warehouse.catalog import View

_STORED, _MORE, _LESS, _PARTS, _TOTAL = (
    Predicate(name) for name in ("stored", "more", "less", "parts", "total")
)


def add_up(
    reader: KeyedRows[D], recomputing: Recomputing[D], view: View, how: Additive, types: Sequence[ColumnType]
) -> KeyedDelta[D]:
    """A view's change.

    The update is effective.

    Raises:
        NotKnownError: a group's new values are not known.
        TooManyKeysError: more keys would be read than are allowed.
        SourceError: a source that does not answer, or is in another state (SM402).
        InputError: SM404 a query that the engine refuses.
    """
    engine = reader.known.engine
    stored = reader.known.facts.relations[view.predicate]
    columns = engine.columns(stored) or view.columns
    root = next(step for step in how.rows.steps if step.sources[0][0] is None)
    relation = reader.known.catalog.relations[root.relation]
    names = tuple(relation.columns[i] for i in root.columns)
    keys = affected_keys(reader, how.rows, names)
    if not engine.count(keys):
        return unchanged(reader, view, names, root.relation)
    more, less = (recomputing.evaluated(view, needed) for needed in rows_both_times(reader, how.rows, keys))
    old = _touched(reader, how, stored, more, less, [columns[i] for i in how.groups])
    new = engine.keep(engine.like(_added(reader, how, (old, more, less), types), stored))
    return by_keys(reader, view, how.rows, keys, difference(engine, view, new, old), root.relation)


def _touched(reader: KeyedRows[D], how: Additive, stored: D, more: D, less: D, names: Sequence[str]) -> D:
    """The stored rows of the groups that gain or lose rows."""
    engine = reader.known.engine
    if not how.groups:
        return stored
    width = len(how.groups) + len({*how.counts, *how.sums, *how.averages})
    rows = tuple(Variable(f"X{i}") for i in range(width))
    goal = Atom(Predicate("groups", Version.STEP), tuple(rows[i] for i in how.groups))
    program = Program(tuple(Rule(goal, (Atom(p, rows),)) for p in (_MORE, _LESS)))
    facts = Facts({_MORE: more, _LESS: less}, {}, frozenset({_MORE, _LESS}))
    keys = engine.keep(engine.evaluate(program, goal.predicate, facts, list(names)))
    return engine.keep(engine.bags.matching(stored, how.groups, keys))


def _added(reader: KeyedRows[D], how: Additive, parts: tuple[D, D, D], types: Sequence[ColumnType]) -> D:
    """The touched groups with what they gain and lose."""
    engine = reader.known.engine
    row = tuple(Variable(f"X{i}") for i in range(len(types)))
    measures = {*how.counts, *how.sums}
    blocks = []
    for place, predicate in enumerate((_STORED, _MORE, _LESS)):
        values: list[Expression] = [
            Minus(one) if predicate == _LESS and i in measures else one for i, one in enumerate(row)
        ]
        blocks.append(block("parts", place, [Atom(predicate, row)], [Constant(place), *values]))
    names = ("part", *(f"x{i}" for i in range(len(types))))
    given = dict(zip((_STORED, _MORE, _LESS), parts, strict=True))
    united = ViewDefinition("parts", names, tuple(blocks), Semantics.BAG)
    signed = engine.keep(engine.evaluate_view(united, Facts(given), dict.fromkeys(given, types)))
    part = Variable("Part")
    sums = [
        Aggregate(AggregateFunction.SUM, one)
        if i in measures
        else Aggregate(AggregateFunction.MAX, one)
        if i in how.averages
        else one
        for i, one in enumerate(row)
    ]
    groups = [row[i] for i in how.groups]
    one = block("total", 0, [Atom(_PARTS, (part, *row))], sums, groups=groups)
    adding = ViewDefinition("total", names[1:], (one,), Semantics.BAG)
    whole = (ColumnType(TypeName.INT), *types)
    total = engine.keep(engine.evaluate_view(adding, Facts({_PARTS: signed}), {_PARTS: whole}))
    facts = Facts({_TOTAL: total})
    open_ = ViewDefinition(
        "open",
        names[1:],
        (block("open", 0, [Atom(_TOTAL, tuple(row))], row, filters=[_not_known(how, row)]),),
    )
    if engine.count(engine.keep(engine.evaluate_view(open_, facts, {_TOTAL: types}))):
        raise NotKnownError("what is stored and what changes do not tell whether a group has values left")
    _require_exact_averages(engine, how, types)
    return engine.evaluate_view(_left(how, row, names[1:], types), facts, {_TOTAL: types})


def _require_exact_averages(engine: Engine[D], how: Additive, types: Sequence[ColumnType]) -> None:
    """Refuses averages that a quotient of a sum and a count may not give to the last digit.

    Spark adds whole numbers up as doubles. A quotient of decimals is rounded, and then to the digits of the average:
    that is as good as once where so many digits lie between that a count of that size is needed to tell.
    """
    for position, (total, number) in how.averages.items():
        kind, sum_, count = types[position], Variable("S"), Variable("N")
        known = {sum_: types[total], count: types[number]}
        found = expression_type(Arithmetic("/", sum_, count), known)
        exact = found is not None and (
            (kind.name is TypeName.DOUBLE and found == kind and engine.name == "duckdb")
            or (
                kind.name is found.name is TypeName.DECIMAL
                and found.scale is not None
                and (found.scale == kind.scale or found.scale >= (kind.scale or 0) + DIGITS_OF_COUNTS)
            )
        )
        if not exact:
            raise NotKnownError("its averages are not known to be the quotients of their sums and counts")


def _is_zero(variable: Variable) -> Condition:
    return Compared("=", variable, Constant(0))


def _not_known(how: Additive, row: Sequence[Variable]) -> Condition:
    """Whether a group's new values are not known; conditions 3 and 6."""
    told = how.whole_sums.union(how.counted)
    doubtful: list[Condition] = [_is_zero(row[i]) for i in how.sums if i not in told]
    doubtful += [Compared("<", row[i], Constant(0)) for i in how.counted.values()]
    if how.size is None:
        every = (AnyOf((_is_zero(row[i]), IsNull(row[i]))) for i in (*how.counts, *how.sums))
        return AnyOf((AllOf(tuple(every)), *doubtful))
    negative = Compared("<", row[how.size], Constant(0))
    there = Compared("!=", row[how.size], Constant(0))
    return AnyOf((negative, IsNull(row[how.size]), AllOf((there, AnyOf(tuple(doubtful))))))


def _left(
    how: Additive, row: Sequence[Variable], names: tuple[str, ...], types: Sequence[ColumnType]
) -> ViewDefinition:
    """The groups that are left; the one of all rows is there without rows too, its sums null."""
    filters: list[Condition] = []
    outputs: list[Expression] = [
        Case(((_is_zero(row[how.counted[i]]), Constant(None)),), one) if i in how.counted else one
        for i, one in enumerate(row)
    ]
    for i, (total, number) in how.averages.items():
        quotient = Cast(Arithmetic("/", row[total], row[number]), types[i])
        outputs[i] = Case(((_is_zero(row[number]), Constant(None)),), quotient)
    if how.size is not None and how.groups:
        filters = [Compared("!=", row[how.size], Constant(0))]
    elif how.size is not None:
        empty = _is_zero(row[how.size])
        outputs = [
            Case(((empty, Constant(None)),), one) if i in how.sums else one for i, one in enumerate(outputs)
        ]
    return ViewDefinition(
        "left", names, (block("left", 0, [Atom(_TOTAL, tuple(row))], outputs, filters=filters),)
    )
