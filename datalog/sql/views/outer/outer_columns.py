"""What the columns of a view with LEFT JOINs are: of which side, and what they tell of a row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from datalog.analysis.expression_types import expression_type
from datalog.analysis.lossless import inside, is_lossless
from datalog.copies import replace
from datalog.model import (
    ANY,
    Aggregate,
    AggregateFunction,
    AnyOf,
    Call,
    Cast,
    Compared,
    Comparison,
    Condition,
    Constant,
    Expression,
    Literal,
    Negation,
    NullTest,
    Variable,
    aggregates_of,
    map_condition,
    map_expression,
)
from datalog.rewrite.branches import column
from datalog.sql.views.conditions import in_one
from datalog.sql.views.outer.outer_sources import NotToldError, Sides, value_without
from datalog.sql.views.scope import Draft, Variables
from datalog.sql.views.select import with_conditions
from datalog.sql.views.written_out.plain_aggregates import plain_aggregate


class Columns(Struct, frozen=True):
    """What columns of a view with LEFT JOINs are."""

    its: Sides

    def side_of(self, what: Expression) -> int | None:
        """The side that a column is of; 0 for the kept one, None where it is computed from several, or aggregates."""
        every = self.its.sources([what])
        sources = every - self.its.kept
        if aggregates_of([what]):
            if not isinstance(what, Aggregate) or what.distinct or every & self.its.kept or len(sources) > 1:
                return None
            return self.only_side()
        if not sources:
            return 0
        if every & self.its.kept or len(sources) > 1:
            return None
        number = sources.pop()
        return number if number not in self.its.grouped or self._is_shown(what, number) else None

    def only_side(self) -> int:
        """The one table that is joined where the query groups."""
        if not self.its.sides:
            raise NotToldError("write JOIN for the LEFT JOIN: here each row that counts has a partner")
        if len(self.its.sides) > 1:
            raise NotToldError("count the rows of each joined table in a view of its own")
        return next(iter(self.its.sides))

    def _is_shown(self, what: Expression, number: int) -> bool:
        """Whether a column is one that a grouped query gives: an aggregate, or what it groups by."""
        groups = self.its.pieces[number].draft.groups or ()
        its = self.its.grouped[number].get(what) if isinstance(what, Variable) else None
        return its is not None and ((isinstance(its, Aggregate) and not its.distinct) or its in groups)

    def default(self, what: Expression) -> Constant | None:
        """What a column of a side holds in a row without a partner; None if no literal can compare with that."""
        return value_without(what, self.its.reader.variables.types)

    def without_coalesce(self, what: Expression, *, is_grouped: bool) -> tuple[Expression, Constant | None]:
        """What is never null in a row that has a partner in place of its `coalesce` with a constant, and that constant.

        So are a count, and the sum, the extrema and the average of what is never null; of a side, not of its columns:
        these may be of the same value. Of what may be null the sum is one of that or 0, if 0 stands for none. An
        aggregate stands without casts and roundings that lose no digit.
        """
        types = self.its.reader.variables.types
        its = inside(what)
        if its != what and is_lossless(what, types) and self._is_of_group(its):
            return self.without_coalesce(its, is_grouped=is_grouped)
        match what:
            case Call("coalesce", (one, Constant() as other)) if other.value is not None:
                its, kind = inside(one), expression_type(what, types)
                keeps = kind is not None and is_lossless(one, types) and is_lossless(Cast(one, kind), types)
                never = its if not keeps or self._is_aggregate(its) else self._filled(its, other)
                if keeps and never is not None:
                    return never, other
        plain = plain_aggregate(what, self.its.reader.variables, lambda _: False) if is_grouped else None
        return what if plain is None else plain, None

    def _is_of_group(self, what: Expression) -> bool:
        """Whether a value is an aggregate of a side, or a `coalesce` of one with a constant."""
        match what:
            case Call("coalesce", (one, Constant())):
                return self._is_of_group(inside(one))
            case Variable():
                return isinstance(self.its.grouped.get(self.its.owners[what], {}).get(what), Aggregate)
            case _:
                return isinstance(what, Aggregate)

    def _is_aggregate(self, what: Expression) -> bool:
        """Whether a value is an aggregate of one side that is never null in a row that has a partner there."""
        if isinstance(what, Variable):
            number = self.its.owners[what]
            its = self.its.grouped.get(number, {}).get(what)
            return (
                number in self.its.sides
                and isinstance(its, Aggregate)
                and self.its.is_never_null(what, number)
            )
        if not isinstance(what, Aggregate) or not isinstance(what.operand, Variable):
            return False
        of = self.its.owners[what.operand]
        is_count = what.function is AggregateFunction.COUNT
        return not is_count and of in self.its.sides and self.its.is_never_null(what.operand, of)

    def _filled(self, what: Expression, other: Constant) -> Variable | None:
        """A sum that a grouped query gives, as a column of it that holds 0 for null, if that is what `other` says."""
        if not isinstance(what, Variable) or (number := self.its.owners[what]) not in self.its.sides:
            return None
        filled = filled_sum(self.its.grouped.get(number, {}), what, other, self.its.reader.variables)
        if filled is not None:
            self.its.owners[filled], self.its.filled[filled] = number, what
        return filled

    def counted(self, what: Expression, number: int) -> Expression:
        """`count(x)` of what is never null as the number of partners that it is."""
        if not isinstance(what, Aggregate) or what.function is not AggregateFunction.COUNT:
            return what
        counts = isinstance(what.operand, Variable) and self.its.is_never_null(what.operand, number)
        return Aggregate(AggregateFunction.COUNT) if counts else what

    def told(self, number: int, own: Iterable[tuple[int, Expression, Constant | None]]) -> Literal | None:
        """What of a row says that it has a partner: condition 3; of columns with what they are, and stand for null."""
        for i, what, given in own:
            if given is not None:
                if self._counts(what) and isinstance(given.value, int) and given.value <= 0:
                    return Comparison(">", column(i), Constant(0))
                continue
            if isinstance(what, Variable) and self.its.is_never_null(what, number):
                return NullTest(column(i))
            if not isinstance(what, Aggregate) or not isinstance(what.operand, Variable):
                continue
            if not self.its.is_never_null(what.operand, number):
                continue
            if what.function is AggregateFunction.COUNT:
                return Comparison(">", column(i), Constant(0))
            return NullTest(column(i))
        return None

    def nonzero(
        self, number: int, own: Sequence[tuple[int, Expression]], defaults: Sequence[Constant | None]
    ) -> tuple[Literal, Condition] | None:
        """That a column of a side is not 0, as a test of rows and of groups: condition 3, of sums with 0 for none."""
        columns = self.its.grouped.get(number, {})
        sums = [columns.get(what, what) if isinstance(what, Variable) else what for _, what in own]
        if not own or self.its.pieces[number].draft.having or self.its.before(number):
            return None
        if not all(self._adds_up(one, number) for one in sums) or {*defaults} != {Constant(0)}:
            return None
        asked = tuple[Condition, ...](Compared("!=", one, Constant(0)) for one in sums)
        none = tuple[Literal, ...](Comparison("=", column(i), Constant(0)) for i, _ in own)
        if len(own) == 1:
            return Comparison("!=", column(own[0][0]), Constant(0)), asked[0]
        return Negation(none), AnyOf(asked)

    def _adds_up(self, what: Expression, number: int) -> bool:
        """Whether a column is an exact sum of what is never null."""
        if not isinstance(what, Aggregate) or what.function is not AggregateFunction.SUM or what.distinct:
            return False
        kind = self.its.reader.variables.type_of(what)
        is_exact = kind is not None and not kind.is_open and not kind.name.is_floating
        return is_exact and what.operand is not None and self.its.has_some(what.operand, number)

    def _counts(self, what: Expression) -> bool:
        """Whether a column of a grouped query counts what there is at least one of."""
        number = self.its.owners[what] if isinstance(what, Variable) else None
        its = self.its.grouped.get(number, {}).get(what) if isinstance(what, Variable) and number else None
        if number is None or not isinstance(its, Aggregate) or its.function is not AggregateFunction.COUNT:
            return False
        operand = its.operand
        return operand is None or (isinstance(operand, Variable) and self.its.is_never_null(operand, number))

    def draft(
        self,
        numbers: set[int],
        outputs: Sequence[Expression],
        groups: tuple[Expression, ...] | None,
        more: Iterable[Condition] = (),
    ) -> Draft:
        """The kept side joined with some sides, of which one may group."""
        numbers = numbers | self.its.kept
        its = [self.its.pieces[n].draft for n in sorted(numbers)]
        columns = {v: w for n in sorted(numbers) for v, w in self.its.grouped.get(n, {}).items()}
        body = tuple(literal for one in its for literal in one.body)
        filters = tuple(test for one in its for test in one.filters)
        having = tuple(test for one in its for test in one.having)
        tests = [
            *self.its.given,
            *(test for n in sorted(numbers - self.its.kept) for test in self.its.sides[n]),
        ]
        tests = [_written_out(columns, test) for test in [*tests, *more]]
        having += tuple(test for test in tests if aggregates_of([test]))
        tests = [in_one(test) for test in tests if not aggregates_of([test])]
        outputs = [_written(columns, what) for what in outputs]
        if columns:
            groups = tuple(dict.fromkeys(_written(columns, what) for what in groups or ()))
        draft = Draft(body, tuple(outputs), filters, groups, having)
        made = with_conditions(draft, tests, self.its.reader.variables)
        return made if made.groups is None else replace(made, groups=tuple(dict.fromkeys(made.groups)))


def filled_sum(
    columns: dict[Variable, Expression], one: Variable, other: Constant, variables: Variables
) -> Variable | None:
    """Of a grouped query's columns that which is a sum with 0 for null; made if there is none. None of no such sum."""
    made = plain_aggregate(Call("coalesce", (columns.get(one, one), other)), variables, lambda _: False)
    if made is None:
        return None
    found = next((variable for variable, its in columns.items() if repr(its) == repr(made)), None)
    if found is None:
        found = variables.fresh("sum", variables.type_of(made) or ANY)
        columns[found] = made
    return found


def _written(columns: Mapping[Variable, Expression], what: Expression) -> Expression:
    """An expression with what columns of grouped queries are."""
    return map_expression(lambda one: columns.get(one) if isinstance(one, Variable) else None, what)


def _written_out(columns: Mapping[Variable, Expression], test: Condition) -> Condition:
    return map_condition(lambda one: columns.get(one) if isinstance(one, Variable) else None, test)
