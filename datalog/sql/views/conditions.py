"""Conditions of SQL as the model's, `NOT` pushed inwards, and conjunctions as literals where they fit.

In three-valued logic `NOT` distributes over `AND` and `OR` as in two-valued logic, and `not a < b` is `a >= b`:
both are unknown when a side is null.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation

from sqlglot import exp

from datalog.analysis.lossless import inside, is_lossless
from datalog.copies import replace
from datalog.diagnostics import Code
from datalog.evaluate.casts import rounded_to
from datalog.model import (
    OPPOSITE,
    AllOf,
    AnyOf,
    Case,
    Cast,
    ColumnType,
    Compared,
    Condition,
    Constant,
    Expression,
    Holds,
    IsNull,
    Operator,
    Span,
    TypeName,
    Value,
    Variable,
    WallClock,
    value_kind,
)
from datalog.sql.views.expressions import Reader
from datalog.sql.views.limits import chain
from datalog.sql.views.scope import family
from datalog.sql.views.typed_constants import typed_constant

_OPERATORS: Mapping[type[exp.Expr], Operator] = {
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}


_DOUBLE = ColumnType(TypeName.DOUBLE)
_TIMESTAMPS = (TypeName.TIMESTAMP, TypeName.TIMESTAMP_NTZ)


def condition(reader: Reader, node: exp.Expr, *, negated: bool = False) -> Condition:
    """A condition, or its negation.

    Raises:
        UnreadableError: what is wrong is among the problems.
    """
    span = reader.problems.source.span_of(node)
    match node:
        case exp.Paren():
            return condition(reader, node.this, negated=negated)
        case exp.Not():
            return condition(reader, node.this, negated=not negated)
        case exp.And() | exp.Or():
            every = tuple(condition(reader, one, negated=negated) for one in chain(node))
            return AllOf(every, span) if isinstance(node, exp.And) is not negated else AnyOf(every, span)
        case exp.Between():
            low = _compare(reader, node, node.this, node.args["low"], ">=", negated=negated)
            high = _compare(reader, node, node.this, node.args["high"], "<=", negated=negated)
            return AnyOf((low, high), span) if negated else AllOf((low, high), span)
        case exp.Exists() | exp.In(args={"query": exp.Query()}):
            hint = "as a condition of WHERE beside others, not negated, it is; else join the tables"
            raise reader.problems.outside("a subquery in this condition", node, hint)
        case exp.In():
            one_of = tuple(
                _compare(reader, node, node.this, item, "=", negated=negated) for item in node.expressions
            )
            return AllOf(one_of, span) if negated else AnyOf(one_of, span)
        case exp.Is():
            return _is(reader, node, negated=negated)
        case exp.Boolean():
            return AllOf(()) if bool(node.this) is not negated else AnyOf(())
        case _ if type(node) in _OPERATORS:
            operator = _OPERATORS[type(node)]
            return _compare(reader, node, node.this, node.expression, operator, negated=negated)
        case _:
            return _holds(reader, node, negated=negated)


def conjuncts(given: Iterable[Condition]) -> Iterator[Condition]:
    """The conditions with conjunctions taken apart; a disjunction of one is that one."""
    for one in given:
        if isinstance(one, AllOf) or (isinstance(one, AnyOf) and len(one.conditions) == 1):
            yield from conjuncts(one.conditions)
        else:
            yield one


def _is(reader: Reader, node: exp.Is, *, negated: bool) -> Condition:
    """`is null`, and `is true` or `is false`, which are never unknown."""
    operand = reader.expression(node.this)
    if isinstance(node.expression, exp.Null):
        return IsNull(operand, negated)
    if isinstance(node.expression, exp.Not):  # as trees are that were not parsed
        return IsNull(operand, not negated)
    is_true = bool(node.expression.this)
    if not negated:
        return AllOf((_is_true(reader, operand, negated=not is_true), IsNull(operand, negated=True)))
    return AnyOf((_is_true(reader, operand, negated=is_true), IsNull(operand)))


def _holds(reader: Reader, node: exp.Expr, *, negated: bool) -> Condition:
    operand = reader.expression(node)
    found = family(reader.variables.type_of(operand))
    if found not in ("boolean", "any"):
        raise reader.problems.error(
            Code.COMPARISON_TYPE, f"a {found} is no condition", node, "neither true nor false"
        )
    return _is_true(reader, operand, negated=negated, span=reader.problems.source.span_of(node))


def _is_true(reader: Reader, operand: Expression, *, negated: bool, span: Span | None = None) -> Condition:
    """That a value is true, or false: of a column a comparison, which is decided exactly."""
    kind = reader.variables.type_of(operand) if isinstance(operand, Variable) else None
    if kind is not None and kind.name is TypeName.BOOLEAN:
        return Compared("=", operand, Constant(not negated), span)
    return Holds(operand, negated, span)


def _compare(
    reader: Reader, node: exp.Expr, left: exp.Expr, right: exp.Expr, operator: Operator, *, negated: bool
) -> Condition:
    one, other = reader.expression(left), reader.expression(right)
    return compared(reader, node, one, other, operator, negated=negated)


def compared(
    reader: Reader,
    node: exp.Expr,
    one: Expression,
    other: Expression,
    operator: Operator,
    *,
    negated: bool = False,
) -> Condition:
    """A comparison of two expressions that were read.

    Raises:
        UnreadableError: values of these types do not compare.
    """
    one, other = _adapted(reader, one, other), _adapted(reader, other, one)
    one, other = _without_casts(reader, one, other)
    operator = OPPOSITE[operator] if negated else operator
    if operator == "=":
        one, other = _of_one_type(reader, one, other)
        other, one = _of_one_type(reader, other, one)
    families = [family(reader.variables.type_of(side)) for side in (one, other)]
    if "any" not in families and families[0] != families[1]:
        sign = "!=" if operator == "!=" else operator
        raise reader.problems.error(
            Code.COMPARISON_TYPE,
            f"comparison of a {families[0]} with a {families[1]}",
            node,
            f"a {families[0]} `{sign}` a {families[1]}",
            hint=_comparison_hint(one, other, families),
        )
    return Compared(operator, one, other, reader.problems.source.span_of(node))


def _adapted(reader: Reader, side: Expression, other: Expression) -> Expression:
    """A side as Spark casts it to compare with the other one: text to a date, a date to a timestamp."""
    wanted = reader.variables.type_of(other)
    if wanted is None or wanted.name not in (TypeName.DATE, *_TIMESTAMPS):
        return side
    if isinstance(side, Constant):
        if isinstance(side.value, str):
            value = typed_constant(side.value, wanted)
            return side if value is None else Constant(value, side.span)
        if type(side.value) is dt.date and wanted.name in _TIMESTAMPS:
            kind = WallClock if wanted.name is TypeName.TIMESTAMP_NTZ else dt.datetime
            return Constant(kind.combine(side.value, dt.time()), side.span)
        return side
    mine = reader.variables.type_of(side)
    if mine is not None and mine.name is TypeName.DATE and wanted.name in _TIMESTAMPS:
        return Cast(side, wanted)
    return side


def _without_casts(reader: Reader, one: Expression, other: Expression) -> tuple[Expression, Expression]:
    """Two sides without casts that lose nothing, where what is cast compares as it does with them."""
    types = reader.variables.types
    inner = [
        inside(side) if isinstance(side, Cast) and is_lossless(side, types) else side for side in (one, other)
    ]
    kinds = [reader.variables.type_of(side) for side in inner]
    if any(kind is None or kind.is_open for kind in kinds):
        return one, other
    is_alike = kinds[0] == kinds[1] or all(kind is not None and kind.name.is_integer for kind in kinds)
    return (inner[0], inner[1]) if is_alike else (one, other)


def _of_one_type(reader: Reader, side: Expression, other: Expression) -> tuple[Expression, Expression]:
    """A column that equals a number, with the number as the column holds it: it will stand for the column's value.

    Zero is two doubles, a float is compared as a double, and so is a number with one, which may be equal to several:
    there the number cannot stand for the column.
    """
    kind = reader.variables.type_of(side) if isinstance(side, Variable) else None
    if kind is None or not isinstance(other, Constant) or value_kind(other.value) != "number":
        return side, other
    if isinstance(other.value, float) and not kind.has_one_near(other.value):
        return Cast(side, _DOUBLE), other
    value = as_held(other.value, kind)
    if value is None:
        return (Cast(side, _DOUBLE) if kind.name.is_floating else side), other
    return side, replace(other, value=value)


def as_held(number: Value, kind: ColumnType) -> Value:
    """The one value of a type that equals a number; None if there is none or more, or the type is no number's.

    >>> as_held(Decimal("1.00"), ColumnType(TypeName.DECIMAL, 5, 1)), as_held(Decimal("2.0"), ColumnType(TypeName.INT))
    (Decimal('1.0'), 2)
    >>> as_held(Decimal("0.0"), ColumnType(TypeName.DOUBLE)), as_held(Decimal("0.25"), ColumnType(TypeName.INT))
    (None, None)
    """
    exact = Decimal(str(number))
    if not exact.is_finite():
        return None
    if kind.name is TypeName.DOUBLE:
        try:
            found = float(exact)
        except OverflowError:
            return None
        return found if found != 0 and math.isfinite(found) else None
    if kind.name is TypeName.DECIMAL and kind.scale is not None:
        try:
            same = rounded_to(exact, kind.scale)
        except InvalidOperation:
            return None
        return same if same == exact else None
    return int(exact) if kind.name.is_integer and exact == exact.to_integral_value() else None


def _comparison_hint(one: Expression, other: Expression, families: list[str]) -> str | None:
    if "string" in families and "number" in families:
        if any(isinstance(side, Constant) for side in (one, other)):
            return "write the number without quotes, or the text with them"
        return "cast one of them, so that it is clear which is meant"
    if "string" in families and ("date" in families or "timestamp" in families):
        return "a date is written `date '2026-01-31'`"
    if "timestamp_ntz" in families:
        return "cast one of them, or write `timestamp_ntz '2026-01-31 23:59:00'`"
    return None


def some_value(values: Sequence[Expression]) -> Condition:
    """That some value is not null."""
    tests = tuple(IsNull(one, negated=True) for one in values)
    return tests[0] if len(tests) == 1 else AnyOf(tests)


def in_one(test: Condition) -> Condition:
    """A condition that is not taken apart into rules: a part is one view."""
    return Holds(Case(((test, Constant(True)),), Constant(False))) if isinstance(test, AnyOf) else test
