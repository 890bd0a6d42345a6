"""Expressions and conditions of a view definition as SQL trees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from sqlglot import exp

from datalog.model import (
    Aggregate,
    AggregateFunction,
    AllOf,
    AnyOf,
    Arithmetic,
    Call,
    Case,
    Cast,
    Compared,
    Condition,
    Constant,
    Expression,
    Holds,
    IsNull,
    Minus,
    Variable,
)
from datalog.sql.block import Frame
from datalog.sql.conditions import OPERATORS

_ARITHMETIC: Mapping[str, type[exp.Binary]] = {"+": exp.Add, "-": exp.Sub, "*": exp.Mul}
_AGGREGATES: Mapping[AggregateFunction, type[exp.AggFunc]] = {
    AggregateFunction.COUNT: exp.Count,
    AggregateFunction.SUM: exp.Sum,
    AggregateFunction.AVG: exp.Avg,
    AggregateFunction.MIN: exp.Min,
    AggregateFunction.MAX: exp.Max,
}


def expression_tree(expression: Expression, frame: Frame) -> exp.Expr:
    """The tree of an expression over a body's variables."""
    match expression:
        case Variable() | Constant():
            return frame.tree(expression)
        case Arithmetic(operator, left, right):
            one, other = _operand(left, frame), _operand(right, frame)
            if operator == "/":
                return exp.Div(this=one, expression=other, typed=False, safe=True)
            return _ARITHMETIC[operator](this=one, expression=other)
        case Minus(operand):
            return exp.Neg(this=exp.Paren(this=expression_tree(operand, frame)))
        case Cast(operand, column_type):
            to = exp.DataType.build(str(column_type), dialect="spark")
            return exp.Cast(this=expression_tree(operand, frame), to=to)
        case Call("like", (text, pattern)):
            return exp.Like(this=_operand(text, frame), expression=_operand(pattern, frame))
        case Call(function, arguments):
            trees = [expression_tree(argument, frame) for argument in arguments]
            return exp.Anonymous(this=function.upper(), expressions=trees)
        case Case(branches, otherwise):
            ifs = [
                exp.If(this=condition_tree(test, frame), true=expression_tree(result, frame))
                for test, result in branches
            ]
            return exp.Case(ifs=ifs, default=expression_tree(otherwise, frame))
        case Aggregate(function, operand, distinct):
            inner = exp.Star() if operand is None else expression_tree(operand, frame)
            return _AGGREGATES[function](this=exp.Distinct(expressions=[inner]) if distinct else inner)
        case _:
            assert_never(expression)


def condition_tree(condition: Condition, frame: Frame) -> exp.Expr:
    """The tree of a condition over a body's variables."""
    match condition:
        case Compared(operator, left, right):
            return OPERATORS[operator](this=_operand(left, frame), expression=_operand(right, frame))
        case IsNull(operand, negated):
            test = exp.Not(this=exp.Null()) if negated else exp.Null()
            return exp.Is(this=_operand(operand, frame), expression=test)
        case Holds(operand, negated):
            held = _operand(operand, frame)
            return exp.Not(this=held) if negated else held
        case AllOf(()):
            return exp.true()
        case AnyOf(()):
            return exp.false()
        case AllOf(conditions):
            return exp.and_(*(exp.Paren(this=condition_tree(one, frame)) for one in conditions), copy=False)
        case AnyOf(conditions):
            return exp.or_(*(exp.Paren(this=condition_tree(one, frame)) for one in conditions), copy=False)
        case _:
            assert_never(condition)


def _operand(expression: Expression, frame: Frame) -> exp.Expr:
    """An operand, in parentheses unless it is a name, a function or a constant without a sign."""
    tree = expression_tree(expression, frame)
    closed = isinstance(tree, exp.Column | exp.Func | exp.Literal | exp.Null | exp.Boolean)
    closed = closed and not isinstance(tree, exp.Case | exp.Predicate)
    return tree if closed else exp.Paren(this=tree)
