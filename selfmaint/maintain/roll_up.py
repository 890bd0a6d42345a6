"""Rolling up: a coarser view's aggregates from a finer view's rows, joined with the other subgoals.

    by_customer(C, count(*), sum(A)) :- sale(I, C, A).
    by_region(R, count(*), sum(A)) :- sale(I, C, A), cust(C, R).
    ==>  by_region(R, sum(N), sum(S)) over by_customer(C, N, S), cust(C, R)

Conditions of soundness:

1. A finer row stands for as many core rows as its `count(*)` says, or for one if keys say so.
2. What is aggregated is the same expression in both views, and the same aggregate (of a count, the sum); or it is
   over columns of the finer view and of the other subgoals, each value standing as often as the row says.
3. What is grouped by, and what filters, is over these columns as well.
4. An average is divided without loss (`exact_numbers.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from msgspec import Struct

from datalog.analysis.expression_types import expression_type
from datalog.model import (
    ANY,
    Aggregate,
    AggregateFunction,
    AllOf,
    AnyOf,
    Arithmetic,
    Atom,
    Call,
    Case,
    ColumnType,
    Compared,
    Condition,
    Constant,
    Expression,
    IsNull,
    Predicate,
    Variable,
    Version,
    ViewDefinition,
    apply_atom,
    block,
    expression_variables,
    map_condition,
    map_expression,
    variables_of,
)
from selfmaint.maintain.conditions import negation
from selfmaint.maintain.exact_numbers import average, counts_exactly, divides, multiplies, settled, summand
from selfmaint.maintain.group_plan import ROWS, GroupPlan
from selfmaint.warehouse.base_relations import variable_types
from selfmaint.warehouse.catalog import Catalog, GroupedView
from selfmaint.warehouse.finer import Finer, finer_views
from selfmaint.warehouse.grouped import Grouped, Measure

UNITED = Predicate("united", Version.STEP)

_SAME = (AggregateFunction.SUM, AggregateFunction.MIN, AggregateFunction.MAX)


class RollUp(Struct, frozen=True, dict=True):
    """A view that groups, from a finer one that groups.

    Attributes:
        plan: the coarser view's definitions.
        finer: the finer view, and for which subgoals it stands.
    """

    plan: GroupPlan
    finer: Finer
    view: GroupedView

    @property
    def name(self) -> str:
        """The finer view's name."""
        return self.view.name

    @property
    def _grouped(self) -> Grouped:
        return self.view.grouped

    @cached_property
    def row(self) -> Atom:
        """A stored row of the finer view, in the coarser core's terms."""
        taken = {v.name for v in variables_of(self.plan.core.body)}
        prefix = "W"
        while any(name.startswith(prefix) for name in taken):
            prefix += "W"
        stored = self._grouped.stored(self.view.predicate, prefix)
        return apply_atom(self.finer.images, stored)

    @property
    def others(self) -> tuple[int, ...]:
        """The indices of the subgoals that the finer view does not stand for."""
        return tuple(i for i in range(len(self.plan.core.body)) if i not in self.finer.subgoals)

    @cached_property
    def columns(self) -> tuple[Variable, ...]:
        """The variables of the rows that are aggregated: those of the finer row and of the other subgoals."""
        return variables_of([self.row, *(self.plan.core.body[i] for i in self.others)])

    @cached_property
    def _plain(self) -> frozenset[Variable]:
        """The variables of the coarser core that the rows have."""
        return frozenset(self.columns).intersection(variables_of(self.plan.core.body))

    @cached_property
    def _copies(self) -> Expression | None:
        """Condition 1."""
        if self._grouped.count_column is not None:
            return self.row.terms[self._grouped.count_column]
        return Constant(1) if self._grouped.is_single else None

    @cached_property
    def column_types(self) -> list[ColumnType]:
        """The types of `columns`."""
        relations, core = self.plan.relations, self.view.core
        assert core is not None
        types = variable_types(self.plan.core.body, relations)
        own = variable_types(core.body, relations)
        types = {
            t: own[v] for v, t in self.finer.images.items() if isinstance(t, Variable) and v in own
        } | types
        given = {v: own.get(t, ANY) for v, t in self._grouped.terms.items() if isinstance(t, Variable)}
        for measure in self._grouped.measures:
            cell = self.row.terms[measure.column]
            if isinstance(cell, Variable):
                types[cell] = expression_type(measure.aggregate, given) or ANY
        return [types.get(v, ANY) for v in self.columns]

    @cached_property
    def part(self) -> ViewDefinition | None:
        """What `GroupPlan.part` computes from core rows, from these rows; None if they do not tell it."""
        if self._copies is None:
            return None
        outputs: list[Expression] = [*self._groups, _sum(self._copies)]
        for measure in self.plan.measures:
            value, count = self._value(measure), self._count(measure)
            if value is None:
                return None
            if count is None:  # of an extremum only whether it is there is asked
                if measure.aggregate.function not in (AggregateFunction.MIN, AggregateFunction.MAX):
                    return None
                assert isinstance(value, Aggregate)
                count = Aggregate(AggregateFunction.COUNT, value.operand)
            outputs += (value, count)
        return self._over_rows("part", tuple(f"c{i}" for i in range(len(outputs))), outputs)

    @cached_property
    def anew(self) -> ViewDefinition | None:
        """The coarser view's rows from all rows of some groups; None if they do not tell them."""
        block, made = self.plan.grouped.block, {repr(m.aggregate): self._new(m) for m in self.plan.measures}
        if None in made.values():
            return None

        def moved(value: Expression) -> Expression | None:
            return made.get(repr(value)) or self._image(value)

        outputs = [map_expression(moved, output) for output in block.outputs]
        having = tuple(map_condition(moved, one) for one in block.having)
        return self._over_rows("anew", self.plan.view.columns, outputs, having)

    @cached_property
    def lossy(self) -> ViewDefinition | None:
        """A row for each group of which `anew` would lose digits; None if it never does (condition 4)."""
        losses: list[Condition] = []
        for measure in self.plan.measures:
            value, count = self._sum_of(measure), self._count(measure)
            if (
                measure.aggregate.function is AggregateFunction.AVG
                and value is not None
                and count is not None
            ):
                exact = counts_exactly(count, self.plan.operands.get(measure.column))
                if measure.column in self.plan.averages:
                    exact = divides(value, count, self.plan.sums[measure.column])
                if exact != AllOf(()):
                    losses.append(AllOf((Compared(">", count, Constant(0)), negation(exact))))
        return self._over_rows("lossy", ("any",), [Constant(1)], (AnyOf(tuple(losses)),)) if losses else None

    def telling(self, measures: Iterable[Measure]) -> ViewDefinition | None:
        """Groups and some aggregates over all rows of each; None if the rows do not tell them."""
        made = [self._new(measure) for measure in measures]
        outputs = [*self._groups, *(one for one in made if one is not None)]
        names = tuple(f"c{i}" for i in range(len(outputs)))
        return None if None in made else self._over_rows("told", names, outputs)

    def _over_rows(
        self,
        name: str,
        columns: tuple[str, ...],
        outputs: Iterable[Expression],
        having: tuple[Condition, ...] = (),
    ) -> ViewDefinition | None:
        """Condition 3."""
        filters = tuple(map_condition(self._image, c) for c in self.plan.grouped.block.filters)
        if not self._plain.issuperset(expression_variables([*self._groups, *filters])):
            return None
        groups = None if self.plan.grouped.block.groups is None else self._groups
        body = [Atom(ROWS, self.columns)]
        made = block(
            name, 0, body, outputs, filters=filters, groups=groups, having=(*self.plan.some_rows, *having)
        )
        return ViewDefinition(name, columns, (made,))

    @property
    def _groups(self) -> tuple[Expression, ...]:
        return tuple(self._moved(group) for group in self.plan.grouped.groups)

    def _image(self, value: Expression) -> Expression | None:
        return self.plan.grouped.terms.get(value) if isinstance(value, Variable) else None

    def _moved(self, value: Expression) -> Expression:
        """An expression of the coarser view's definition in the terms of its core."""
        return map_expression(self._image, value)

    def _own(self, operand: Expression) -> dict[AggregateFunction, Expression]:
        """The finer view's aggregates of the same operand (condition 2)."""

        def image(value: Expression) -> Expression | None:
            if not isinstance(value, Variable):
                return None
            term = self._grouped.terms[value]
            return self.finer.images.get(term, term) if isinstance(term, Variable) else term

        return {
            m.aggregate.function: self.row.terms[m.column]
            for m in self._grouped.measures
            if m.aggregate.operand is not None
            and _text(map_expression(image, m.aggregate.operand)) == _text(operand)
        }

    def _operand(self, measure: Measure) -> Expression | None:
        """What a measure aggregates, in the terms of the core; None of `count(*)`."""
        operand = measure.aggregate.operand
        return None if operand is None else self._moved(operand)

    def _count(self, measure: Measure) -> Expression | None:
        """The number of operands that are not null, if the rows tell it."""
        operand = self._operand(measure)
        if operand is None:
            return None if self._copies is None else _sum(self._copies)
        number: Expression | None = None
        if self._plain.issuperset(expression_variables([operand])):
            if self._copies is not None:
                number = Case(((IsNull(operand, negated=True), self._copies),), Constant(0))
        elif measure.column in self.plan.never_null:
            number = self._copies
        if number is None:
            number = self._own(operand).get(AggregateFunction.COUNT)
        return None if number is None else _sum(number)

    def _value(self, measure: Measure) -> Expression | None:
        """The value of a measure, of an average its sum, if the rows tell it."""
        function, operand = measure.aggregate.function, self._operand(measure)
        if function is AggregateFunction.COUNT or operand is None:
            return self._count(measure)
        wanted = AggregateFunction.SUM if function is AggregateFunction.AVG else function
        if self._plain.issuperset(expression_variables([operand])):
            if wanted is not AggregateFunction.SUM:
                return Aggregate(wanted, operand)
            if self._copies is None or not multiplies(self.plan.operands.get(measure.column)):
                return None
            return _total(Arithmetic("*", summand(operand, self.plan.sums.get(measure.column)), self._copies))
        found = self._own(operand).get(wanted)
        if found is None or wanted is not AggregateFunction.SUM:
            return None if found is None else Aggregate(wanted, found)
        return _total(summand(found, self.plan.sums.get(measure.column)))

    def _sum_of(self, measure: Measure) -> Expression | None:
        """The value of a measure, of an average its sum, in the type of a sum."""
        value, kind = self._value(measure), self.plan.sums.get(measure.column)
        return value if value is None or kind is None else settled(value, kind)

    def _new(self, measure: Measure) -> Expression | None:
        """A measure over all rows of a group."""
        value, kind = self._sum_of(measure), self.plan.sums.get(measure.column)
        if measure.aggregate.function is not AggregateFunction.AVG or value is None:
            return value
        count = self._count(measure)
        if count is None:
            return None
        quotient: Expression = Arithmetic("/", value, count)
        if kind is not None and measure.column in self.plan.averages:
            quotient = average(value, count, kind, self.plan.averages[measure.column])
        some: Condition = Compared(">", count, Constant(0))
        return Case(((some, quotient),), Constant(None))


def roll_ups(catalog: Catalog, view: GroupedView) -> tuple[RollUp, ...]:
    """The ways of rolling up a view that groups from finer ones; found once."""
    return catalog.once("roll-ups", view, lambda: tuple(_roll_ups(catalog, view)))


def _roll_ups(catalog: Catalog, view: GroupedView) -> Iterator[RollUp]:
    plan = GroupPlan(view, catalog.relations)
    for finer in finer_views(catalog, view):
        if isinstance(finer.view, GroupedView):
            made = RollUp(plan, finer, finer.view)
            if made.anew is not None:
                yield made


def united(plan: GroupPlan) -> ViewDefinition:
    """Two parts of each group as one, over the rows of both, told apart by a last column."""
    keys, own = plan.keys, plan.own("p")
    rows, *rest = own
    outputs: list[Expression] = [*keys, _total(rows)]
    for measure, value, count in zip(plan.measures, rest[::2], rest[1::2], strict=True):
        function = measure.aggregate.function
        kept = function if function in _SAME else AggregateFunction.SUM
        outputs += (Aggregate(kept, value), _total(count))
    body = [Atom(UNITED, (*keys, *own, Variable("Side")))]
    columns = tuple(f"c{i}" for i in range(len(outputs)))
    return ViewDefinition("united", columns, (block("united", 0, body, outputs, groups=keys),))


def _total(value: Expression) -> Aggregate:
    return Aggregate(AggregateFunction.SUM, value)


def _sum(value: Expression) -> Expression:
    """A sum of numbers of rows: 0 over no row."""
    return Call("coalesce", (_total(value), Constant(0)))


def _text(value: Expression) -> str:
    """What tells expressions apart: `x / 2` and `x / 2.0` are equal values."""
    return repr(value)
