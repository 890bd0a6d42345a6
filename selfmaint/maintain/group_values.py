"""New values of a group's aggregates from its old ones and from what it gains and loses, as expressions.

Each group has its old row and three *parts*, each the aggregates over some of its core rows: those gained, those
lost, and those known to be there after the update. A part has its number of rows, and for each measure a value and
the number of operands that are not null.

Conditions of soundness (a value that none of them gives is not determined, and its group is told apart):

1. A group is there after the update if its `count(*)` is not 0, or rows were gained or are known to be there, or
   nothing was lost, or a sum over it is not 0. It is gone if its `count(*)` is 0.
2. Sums add and subtract; over no value a sum is null, so where operands were lost their number must be known, or the
   new sum not be 0, or some operand be there for certain.
3. An extremum that was not lost stays, or moves to a gained value that passes it. A lost one is covered by a gained
   or known value as good, or found among the known rows if they are all there are. Or the old values that are left
   have one: no value, if their number is 0; their sum, if it is 1; of two their sum less the other extremum, if that
   was not lost; any old value, if both extrema were equal. (Of doubles, whose sums are near, none of this.)
4. An average is its sum divided by its count. Its old sum is the old average times the old count, where that is not
   stored. An old average of null is one of no value. Where as many operands are gained as are lost, with the same sum,
   it stays. Where numbers pass what can be computed without loss (`exact_numbers.py`), a sum or an average is open.
5. A sum of doubles is only near: whether it is 0 tells nothing. Infinities and what is no number do not subtract.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from msgspec import Struct, field

from datalog.model import (
    ANY,
    AggregateFunction,
    AllOf,
    AnyOf,
    Arithmetic,
    Call,
    Case,
    ColumnType,
    Compared,
    Condition,
    Constant,
    Expression,
    IsNull,
    Operator,
    Variable,
)
from selfmaint.maintain import exact_numbers
from selfmaint.maintain.conditions import negation
from selfmaint.warehouse.grouped import Grouped, Measure

ZERO, NULL = Constant(0), Constant(None)
FALSE: Condition = AnyOf(())
TRUE: Condition = AllOf(())


class Part(Struct, frozen=True):
    """The aggregates over some of a group's core rows.

    Attributes:
        rows: their number.
        values: for each measure (by column) the aggregate over them; of an average the sum.
        counts: for each measure the number of operands that are not null.
    """

    rows: Expression
    values: Mapping[int, Expression]
    counts: Mapping[int, Expression]


class GroupValues(Struct, frozen=True, dict=True):
    """Expressions over a group's old row and its parts.

    Attributes:
        is_there: 1 if the group had a row, else 0.
        old: the old values of the measures, by column; null if the group had no row.
        known: rows known to be there after the update, gained ones too.
        never_null: columns of measures whose operand is never null.
        averages: the types of averages of decimals, by column.
        sums: the types of sums, and of the sums that averages are made of, by column.
        operands: the types of what is aggregated, by column.
    """

    grouped: Grouped
    is_there: Expression
    old: Mapping[int, Expression]
    gained: Part
    lost: Part
    known: Part
    never_null: frozenset[int]
    averages: Mapping[int, ColumnType]
    sums: Mapping[int, ColumnType] = field(default_factory=dict)
    operands: Mapping[int, ColumnType] = field(default_factory=dict)

    @property
    def rows(self) -> Expression | None:
        """The number of core rows after the update, if the view counts them or has at most one."""
        return self._rows(self.gained.rows, self.lost.rows)

    def _rows(self, gained: Expression, lost: Expression) -> Expression | None:
        """The old number of core rows, with some gained and some lost."""
        column = self.grouped.count_column
        if self.grouped.is_single and not self.grouped.is_total:
            return _minus(_plus(self.is_there, gained), lost)
        return None if column is None else self._summed(column, gained, lost)

    @property
    def exists(self) -> Condition:
        """Whether the group is there after the update (condition 1)."""
        if self.grouped.is_total:
            return TRUE
        if self.rows is not None:
            return _compared(">", self.rows, ZERO)
        sums = [m for m in self.grouped.measures if m.aggregate.function is AggregateFunction.SUM]
        return AnyOf(
            (
                _compared("=", self.lost.rows, ZERO),
                _compared(">", self.gained.rows, ZERO),
                _compared(">", self.known.rows, ZERO),
                *(
                    _compared("!=", self.total(m.column), ZERO)
                    for m in sums
                    if m.column not in self.grouped.inexact
                ),
            )
        )

    @property
    def is_open(self) -> Condition:
        """Whether something about the group is not determined."""
        if not self.grouped.is_total and self.rows is None:
            return AnyOf((negation(self.exists), *(self.open(m) for m in self.grouped.measures)))
        return AllOf((self.exists, AnyOf(tuple(self.open(m) for m in self.grouped.measures))))

    @property
    def is_overdrawn(self) -> Condition:
        """Whether more rows are lost than there were, as far as the old row tells: then the update cannot be."""
        fewer: list[Condition] = []
        for measure in self.grouped.measures:
            if measure.aggregate.function is AggregateFunction.COUNT:
                counts = measure.aggregate.operand is not None
                lost = self.lost.counts[measure.column] if counts else self.lost.rows
                fewer.append(_compared("<", _or_zero(self.old[measure.column]), _or_zero(lost)))
        if not self.grouped.is_total:
            missing = _compared("=", self.is_there, ZERO)
            fewer.append(AllOf((missing, _compared(">", self.lost.rows, ZERO))))
        return AnyOf(tuple(fewer))

    def new(self, measure: Measure) -> Expression:
        """A measure after the update, where it is determined."""
        column = measure.column
        match measure.aggregate.function:
            case AggregateFunction.COUNT if measure.aggregate.operand is None:
                return self._summed(column, self.gained.rows, self.lost.rows)
            case AggregateFunction.COUNT:
                return self._summed(column, self.gained.counts[column], self.lost.counts[column])
            case AggregateFunction.SUM:
                return Case(((self._has_operands(measure), self.total(column)),), NULL)
            case AggregateFunction.AVG:
                return self._average(measure)
            case _:
                return self._extremum(measure)

    def open(self, measure: Measure) -> Condition:
        """Whether a measure after the update is not determined."""
        match measure.aggregate.function:
            case AggregateFunction.COUNT:
                return FALSE
            case AggregateFunction.SUM:
                return AnyOf((self._sum_open(measure), negation(self.adds_up(measure.column))))
            case AggregateFunction.AVG:
                return self._average_open(measure)
            case _:
                return self._extremum_open(measure)

    def _summed(self, column: int, gained: Expression, lost: Expression) -> Expression:
        return _minus(_plus(_or_zero(self.old[column]), _or_zero(gained)), _or_zero(lost))

    def total(self, column: int, gained: Expression | None = None) -> Expression:
        """A sum after the update, 0 over no value; null where it is open.

        Args:
            column: the sum's.
            gained: what is added, if that is not what the group gains.
        """
        kind = self.sums.get(column)
        old, more, lost = self.added(column)
        if column in self._averages:
            old = exact_numbers.or_zero(self._from_average(column)[1], kind)
        total = exact_numbers.changed(old, more if gained is None else gained, lost, kind)
        fits = self.adds_up(column)
        return total if fits == TRUE else Case(((fits, total),), NULL)

    def added(self, column: int) -> tuple[Expression, Expression, Expression]:
        """The old sum, and those gained and lost, 0 over no value."""
        kind = self.sums.get(column)
        gained, lost = (exact_numbers.or_zero(part.values[column], kind) for part in (self.gained, self.lost))
        return exact_numbers.or_zero(self.old[column], kind), gained, lost

    def adds_up(self, column: int) -> Condition:
        """Whether a sum after the update can be computed without loss."""
        adds_up = exact_numbers.adds_up(self.added(column), self.sums.get(column))
        if column not in self._averages:
            return adds_up
        return AllOf((AnyOf((IsNull(self.old[column]), self._from_average(column)[0])), adds_up))

    @cached_property
    def _averages(self) -> Mapping[int, Measure]:
        """The averages, by column."""
        return {m.column: m for m in self.grouped.measures if m.aggregate.function is AggregateFunction.AVG}

    def _from_average(self, column: int) -> tuple[Condition, Expression]:
        """When an average tells its old sum, and this."""
        number, kind = self._operands(self._averages[column], gained=False, lost=False), self.sums.get(column)
        if number is None or kind is None or column in self.grouped.inexact:
            return FALSE, NULL
        kinds = self.operands.get(column), kind, self.averages.get(column)
        few, total = exact_numbers.from_average(self.old[column], number, *kinds)
        return few, Case(((few, total),), NULL)

    def _operands(self, measure: Measure, *, gained: bool = True, lost: bool = True) -> Expression | None:
        """The number of old operands that are not null, with those gained, less those lost, if the view tells it."""
        counted = self._same(measure).get(AggregateFunction.COUNT)
        if counted is not None:
            more, less = self.gained.counts[counted.column], self.lost.counts[counted.column]
            return self._summed(counted.column, more if gained else ZERO, less if lost else ZERO)
        if measure.column not in self.never_null:
            return None
        return self._rows(self.gained.rows if gained else ZERO, self.lost.rows if lost else ZERO)

    def _has_operands(self, measure: Measure) -> Condition:
        """Whether a sum is over some value (condition 2)."""
        number = self._operands(measure)
        if number is not None:
            return _compared(">", number, ZERO)
        column = measure.column
        if column in self.never_null and not self.grouped.is_total:
            return TRUE  # each row has one, and a group that is there has a row
        same = AllOf((IsNull(self.old[column], negated=True), _compared("=", self.lost.counts[column], ZERO)))
        return AnyOf((same, *self._certain_operands(column)))

    def _certain_operands(self, column: int) -> tuple[Condition, ...]:
        there = (
            _compared(">", self.gained.counts[column], ZERO),
            _compared(">", self.known.counts[column], ZERO),
        )
        if column in self.grouped.inexact:
            return there
        return (*there, _compared("!=", self.total(column), ZERO))

    def _sum_open(self, measure: Measure) -> Condition:
        """Whether a sum cannot be told: of doubles, also if one that is not finite may be lost (condition 5)."""
        column = measure.column
        if column not in self.grouped.inexact:
            return self._last_open(measure)
        differences = (_minus(v, v) for v in (self.old[column], self.lost.values[column]))
        infinite = AnyOf(tuple(negation(_compared("=", d, ZERO)) for d in differences))
        lost = _compared(">", self.lost.counts[column], ZERO)
        return AnyOf((self._last_open(measure), AllOf((lost, infinite))))

    def _last_open(self, measure: Measure) -> Condition:
        """Whether the last value that was added up may be gone."""
        column = measure.column
        is_each = column in self.never_null and not self.grouped.is_total
        if self._operands(measure) is not None or is_each:
            return FALSE  # the group is there, or that is open itself
        lost = _compared(">", self.lost.counts[column], ZERO)
        return AllOf((lost, *(negation(c) for c in self._certain_operands(column))))

    def _average(self, measure: Measure) -> Expression:
        """Condition 4."""
        total, number = self._parts_of(measure)
        kind, result = self.sums.get(measure.column), self.averages.get(measure.column)
        quotient: Expression = Arithmetic("/", total, number)
        if kind is not None and result is not None:
            quotient = exact_numbers.average(total, number, kind, result)
        some, stays = _compared(">", number, ZERO), self._average_stays(measure)
        kept = [(stays, self.old[measure.column])] if stays != FALSE else ()
        return Case((*kept, (AllOf((some, negation(self._average_open(measure)))), quotient)), NULL)

    def _average_open(self, measure: Measure) -> Condition:
        total, number = self._parts_of(measure)
        kind, operand = self.sums.get(measure.column), self.operands.get(measure.column)
        exact = exact_numbers.counts_exactly(number, operand)
        if kind is not None and measure.column in self.averages:
            exact = exact_numbers.divides(total, number, kind)
        if measure.column not in self.grouped.alone:
            return FALSE if exact == TRUE else AllOf((_compared(">", number, ZERO), negation(exact)))
        told = AllOf((IsNull(total, negated=True), _compared(">", number, ZERO), exact))
        return negation(AnyOf((self._average_stays(measure), _compared("=", number, ZERO), told)))

    def _average_stays(self, measure: Measure) -> Condition:
        column = measure.column
        if column not in self.grouped.alone or column in self.grouped.inexact:
            return FALSE
        _, *sums = self.added(column)
        counts = (_or_zero(part.counts[column]) for part in (self.gained, self.lost))
        return AllOf((_compared("=", *counts), _compared("=", *sums)))

    def _parts_of(self, measure: Measure) -> tuple[Expression, Expression]:
        """The sum and the number of values that an average is made of; null where they are not told."""
        column, number, same = measure.column, self._operands(measure), self._same(measure)
        if number is None:
            number = Case(((IsNull(self.old[column]), _or_zero(self.gained.counts[column])),), NULL)
        return self.total(same.get(AggregateFunction.SUM, measure).column), number

    def _same(self, measure: Measure) -> dict[AggregateFunction, Measure]:
        """The aggregates of what a measure aggregates."""
        operand = measure.aggregate.operand
        return {m.aggregate.function: m for m in self.grouped.measures if m.aggregate.operand == operand}

    def _extremum(self, measure: Measure) -> Expression:
        """Condition 3."""
        column = measure.column
        old, gained, known = self.old[column], self.gained.values[column], self.known.values[column]
        told = [(test, _better(measure, value, gained)) for test, value in self._left(measure)]
        stays = (self._stays(measure), _better(measure, old, gained))
        return Case((stays, *told), _better(measure, gained, known))

    def _left(self, measure: Measure) -> Iterator[tuple[Condition, Expression]]:
        """The extremum of the old values that are left, each with when it is (condition 3)."""
        column, same, number = measure.column, self._same(measure), self._operands(measure, gained=False)
        kind = self.operands.get(column)
        if kind is None or kind == ANY or kind.name.is_floating or number is None:
            return
        is_min = measure.aggregate.function is AggregateFunction.MIN
        other = same.get(AggregateFunction.MAX if is_min else AggregateFunction.MIN)
        yield _compared("=", number, ZERO), NULL
        if other is not None:
            equal = _compared("=", self.old[column], self.old[other.column])
            yield AllOf((_compared(">", number, ZERO), equal)), self.old[column]
        added = same.get(AggregateFunction.SUM, same.get(AggregateFunction.AVG))
        if added is None:
            return
        total = self.total(added.column, exact_numbers.or_zero(NULL, self.sums.get(added.column)))
        fits = self.adds_up(added.column)
        yield AllOf((_compared("=", number, Constant(1)), fits)), total
        if other is not None:
            two = (_compared("=", number, Constant(2)), self._stays(other), fits)
            yield AllOf(two), _minus(total, self.old[other.column])

    def _stays(self, measure: Measure) -> Condition:
        column = measure.column
        lost = self.lost.values[column]
        return AnyOf((IsNull(lost), _compared(_beats(measure), self.old[column], lost)))

    def _extremum_open(self, measure: Measure) -> Condition:
        """Whether the extremum was lost, nothing as good is there for certain, and other rows may be left."""
        column = measure.column
        lost = self.lost.values[column]
        reaches: Operator = "<=" if _beats(measure) == "<" else ">="
        covered = [
            AllOf((IsNull(part.values[column], negated=True), _compared(reaches, part.values[column], lost)))
            for part in (self.gained, self.known)
        ]
        whole = [] if self.rows is None else [_compared("=", self.rows, self.known.rows)]
        number = self._operands(measure)
        if number is not None:
            whole.append(_compared("=", number, self.known.counts[column]))
        left = (test for test, _ in self._left(measure))
        return AllOf((negation(self._stays(measure)), *(negation(c) for c in (*covered, *whole, *left))))


def _compared(operator: Operator, left: Expression, right: Expression) -> Condition:
    return Compared(operator, left, right)


def _or_zero(value: Expression) -> Expression:
    return Call("coalesce", (value, ZERO))


def _plus(left: Expression, right: Expression) -> Expression:
    return Arithmetic("+", left, right)


def _minus(left: Expression, right: Expression) -> Expression:
    return Arithmetic("-", left, right)


def _beats(measure: Measure) -> Operator:
    return "<" if measure.aggregate.function is AggregateFunction.MIN else ">"


def _better(measure: Measure, left: Expression, right: Expression) -> Expression:
    """The better one of two values, one of them if the other is null."""
    left_wins = AnyOf((IsNull(right), _compared(_beats(measure), left, right)))
    return Case(((AllOf((IsNull(left, negated=True), left_wins)), left),), right)


def variables(prefix: str, number: int) -> tuple[Variable, ...]:
    """Numbered variables."""
    return tuple(Variable(f"{prefix}{i}") for i in range(number))


def part(prefix: str, measures: Sequence[Measure]) -> tuple[tuple[Variable, ...], Part]:
    """A part's columns, as variables, and the part."""
    rows = Variable(f"{prefix}N")
    values = {m.column: Variable(f"{prefix}V{m.column}") for m in measures}
    counts = {m.column: Variable(f"{prefix}C{m.column}") for m in measures}
    columns = (rows, *(v for m in measures for v in (values[m.column], counts[m.column])))
    return columns, Part(rows, values, counts)
