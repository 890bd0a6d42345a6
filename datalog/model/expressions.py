"""Scalar expressions, aggregates and conditions over a rule's variables: what a view computes from its core.

An expression is a value; what it means on a row is SQL's meaning (null in, null out, unless a function says
otherwise). A condition is true, false or unknown, as in SQL; a row passes a filter where it is true. There is
no negation of compound conditions: whoever builds a condition pushes `NOT` inwards, which is exact in
three-valued logic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum, unique
from typing import Literal as OneOf
from typing import TypeAlias, assert_never

from msgspec import field

from datalog.copies import replace
from datalog.model.literals import Operator
from datalog.model.schema import ColumnType
from datalog.model.spans import Placed, Span
from datalog.model.terms import Constant, Variable

ArithmeticOperator: TypeAlias = OneOf["+", "-", "*", "/"]

_ANY_NUMBER = 10_000
FUNCTIONS: Mapping[str, tuple[int, int]] = {
    **dict.fromkeys(("abs", "length", "lower", "trim", "upper"), (1, 1)),
    **dict.fromkeys(("year", "quarter", "month", "day", "hour", "minute", "second"), (1, 1)),
    **dict.fromkeys(("dayofweek", "dayofyear", "last_day", "weekday", "weekofyear"), (1, 1)),
    **dict.fromkeys(("add_months", "date_format", "date_trunc", "datediff", "trunc"), (2, 2)),
    **dict.fromkeys(("ceil", "floor", "md5"), (1, 1)),
    **dict.fromkeys(("mod", "sha2"), (2, 2)),
    **dict.fromkeys(("greatest", "least"), (2, _ANY_NUMBER)),
    **dict.fromkeys(("coalesce", "concat"), (1, _ANY_NUMBER)),
    **dict.fromkeys(("date_add", "like", "nullif"), (2, 2)),
    **dict.fromkeys(("ascii", "initcap", "ltrim", "reverse", "rtrim", "sha1"), (1, 1)),
    **dict.fromkeys(("isnan", "sign", "sqrt", "unix_seconds", "unix_timestamp"), (1, 1)),
    **dict.fromkeys(("div", "pmod", "repeat", "right"), (2, 2)),
    **dict.fromkeys(("lpad", "make_date", "replace", "rpad", "split_part", "translate"), (3, 3)),
    **dict.fromkeys(("timestampadd", "timestampdiff"), (3, 3)),
    **dict.fromkeys(("regexp_extract", "regexp_replace"), (3, 3)),
    "rlike": (2, 2),
    "locate": (2, 3),
    "round": (1, 2),
    "substring": (2, 3),
}
"""The scalar functions that a `Call` may name, with the least and most arguments that each takes.

They are deterministic, with Spark's names and meaning.
"""


def takes(function: str, arguments: int) -> bool:
    """Whether a function of `FUNCTIONS` takes so many arguments."""
    least, most = FUNCTIONS[function]
    return least <= arguments <= most


class Arithmetic(Placed, frozen=True):
    """`left operator right`, with the types of Spark's ANSI mode: `/` of whole numbers is a double."""

    operator: ArithmeticOperator
    left: Expression
    right: Expression
    span: Span | None = None


class Minus(Placed, frozen=True):
    """`-operand`."""

    operand: Expression
    span: Span | None = None


class Cast(Placed, frozen=True):
    """`cast(operand as type)`; an error where the value does not fit. If it is `safe`, `try_cast`: null there."""

    operand: Expression
    type: ColumnType
    span: Span | None = None
    safe: bool = False


class Call(Placed, frozen=True):
    """A deterministic scalar function of `FUNCTIONS`, applied."""

    function: str
    arguments: tuple[Expression, ...]
    span: Span | None = None


class Case(Placed, frozen=True):
    """`case when c1 then e1 ... else otherwise end`: of the first condition that is true."""

    branches: tuple[tuple[Condition, Expression], ...]
    otherwise: Expression = field(default_factory=lambda: Constant(None))
    span: Span | None = None


@unique
class AggregateFunction(Enum):
    """The aggregate functions."""

    COUNT = "count"
    SUM = "sum"
    AVG = "avg"
    MIN = "min"
    MAX = "max"


class Aggregate(Placed, frozen=True):
    """An aggregate over the core rows of a group.

    Nulls of the operand are passed over; over no value `count` is 0 and all others are null. The type of a sum
    is a bigint, a decimal of 10 more digits, or a double; that of an average a double, or a decimal of 4 more
    digits before and after the point.

    Attributes:
        operand: an expression over core variables, without aggregates; None for `count(*)`.
        distinct: whether equal values count once.
    """

    function: AggregateFunction
    operand: Expression | None = None
    distinct: bool = False
    span: Span | None = None


Expression: TypeAlias = Variable | Constant | Arithmetic | Minus | Cast | Call | Case | Aggregate


class Compared(Placed, frozen=True):
    """`left operator right`; unknown when a side is null."""

    operator: Operator
    left: Expression
    right: Expression
    span: Span | None = None


class IsNull(Placed, frozen=True):
    """`operand is null`, or with `negated` `operand is not null`; never unknown."""

    operand: Expression
    negated: bool = False
    span: Span | None = None


class Holds(Placed, frozen=True):
    """A boolean expression is true, or with `negated` false; unknown when it is null."""

    operand: Expression
    negated: bool = False
    span: Span | None = None


class AllOf(Placed, frozen=True):
    """The conjunction; true if empty."""

    conditions: tuple[Condition, ...]
    span: Span | None = None


class AnyOf(Placed, frozen=True):
    """The disjunction; false if empty."""

    conditions: tuple[Condition, ...]
    span: Span | None = None


Condition: TypeAlias = Compared | IsNull | Holds | AllOf | AnyOf


def parts(value: Expression | Condition) -> tuple[Expression | Condition, ...]:
    """What an expression or condition is directly made of, in order."""
    match value:
        case Variable() | Constant():
            return ()
        case Arithmetic(_, left, right) | Compared(_, left, right):
            return (left, right)
        case Minus(operand) | Cast(operand) | IsNull(operand) | Holds(operand):
            return (operand,)
        case Call(_, arguments):
            return arguments
        case Case(branches, otherwise):
            return (*(part for branch in branches for part in branch), otherwise)
        case Aggregate(_, operand):
            return () if operand is None else (operand,)
        case AllOf(conditions) | AnyOf(conditions):
            return conditions
        case _:
            assert_never(value)


def expression_variables(values: Iterable[Expression | Condition]) -> tuple[Variable, ...]:
    """The distinct variables of some expressions and conditions, in order of first appearance."""
    return tuple(dict.fromkeys(v for value in values for v in walk(value) if isinstance(v, Variable)))


def aggregates_of(values: Iterable[Expression | Condition]) -> tuple[Aggregate, ...]:
    """The distinct aggregates in some expressions and conditions, in order of first appearance."""
    found = (a for value in values for a in walk(value) if isinstance(a, Aggregate))
    # By text: `sum(x / 2)` and `sum(x / 2.0)` are equal values, and different sums.
    return tuple({repr(one): one for one in found}.values())


def has_one_value(value: Expression | Condition, groups: Iterable[Expression]) -> bool:
    """Whether something has one value in each group: it is made of aggregates, grouping expressions and constants."""
    known = {repr(group) for group in groups}

    def settled(part: Expression | Condition) -> bool:
        if isinstance(part, Aggregate) or repr(part) in known:
            return True
        return not isinstance(part, Variable) and all(map(settled, parts(part)))

    return settled(value)


def walk(value: Expression | Condition) -> Iterator[Expression | Condition]:
    """A value and everything inside it, outermost first."""
    yield value
    for part in parts(value):
        yield from walk(part)


def map_expression(change: Callable[[Expression], Expression | None], value: Expression) -> Expression:
    """The expression with some subexpressions replaced.

    `change` gives what to put in a subexpression's place, or None to look inside it.
    """
    changed = change(value)
    if changed is not None:
        return changed
    match value:
        case Variable() | Constant():
            return value
        case Arithmetic(_, left, right):
            return replace(value, left=map_expression(change, left), right=map_expression(change, right))
        case Minus(operand) | Cast(operand):
            return replace(value, operand=map_expression(change, operand))
        case Call(_, arguments):
            return replace(value, arguments=tuple(map_expression(change, a) for a in arguments))
        case Case(branches, otherwise):
            mapped = tuple((map_condition(change, c), map_expression(change, e)) for c, e in branches)
            return replace(value, branches=mapped, otherwise=map_expression(change, otherwise))
        case Aggregate(_, operand):
            return value if operand is None else replace(value, operand=map_expression(change, operand))
        case _:
            assert_never(value)


def expressed_by(value: Expression, values: Mapping[str, Expression]) -> Expression | None:
    """An expression with others in place of its parts, by their text; None if it has variables or aggregates left.

    By text: a 1 and a 1.0 are equal, and not the same.
    """
    left = map_expression(lambda part: Constant(None) if repr(part) in values else None, value)
    is_told = not expression_variables([left]) and not aggregates_of([left])
    return map_expression(lambda part: values.get(repr(part)), value) if is_told else None


def is_some(value: Expression, known: Callable[[Variable], bool]) -> bool:
    """Whether an expression is never null, given which variables are not: what does not fit its type is an error.

    >>> x, y = Variable("X"), Variable("Y")
    >>> is_some(Arithmetic("*", x, Call("coalesce", (y, Constant(0)))), {x}.__contains__)
    True
    """
    match value:
        case Variable():
            return known(value)
        case Constant():
            return value.value is not None
        case Call("coalesce", arguments):
            return any(is_some(one, known) for one in arguments)
        case Arithmetic("+" | "-" | "*", left, right):
            return is_some(left, known) and is_some(right, known)
        case Minus(operand):
            return is_some(operand, known)
        case Cast(operand, kind, safe=False) if kind.name.is_integer:
            return is_some(operand, known)
        case Case(branches, otherwise):
            return all(is_some(one, known) for one in (*(its for _, its in branches), otherwise))
        case _:
            return False


def map_condition(change: Callable[[Expression], Expression | None], value: Condition) -> Condition:
    """The condition with some subexpressions replaced; see `map_expression`."""
    match value:
        case Compared(_, left, right):
            return replace(value, left=map_expression(change, left), right=map_expression(change, right))
        case IsNull(operand) | Holds(operand):
            return replace(value, operand=map_expression(change, operand))
        case AllOf(conditions) | AnyOf(conditions):
            return replace(value, conditions=tuple(map_condition(change, c) for c in conditions))
        case _:
            assert_never(value)
