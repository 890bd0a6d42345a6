"""Expressions and conditions as text; each is closed, so reading it back gives the same value."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from datalog.model.expressions import (
    Aggregate,
    AllOf,
    AnyOf,
    Arithmetic,
    Call,
    Case,
    Cast,
    Compared,
    Condition,
    Expression,
    Holds,
    IsNull,
    Minus,
)
from datalog.model.terms import Constant, Term, Variable


def show_expression(expression: Expression, term: Callable[[Term], str]) -> str:
    """An expression.

    Args:
        expression: the expression.
        term: shows a term.

    Example:
        >>> show_expression(Minus(Arithmetic("*", Variable("X"), Constant(-1))), lambda t: str(t))
        '-(X * -1)'
    """
    match expression:
        case Variable() | Constant():
            return term(expression)
        case Arithmetic(operator, left, right):
            return f"{_operand(left, term)} {operator} {_operand(right, term)}"
        case Minus(operand):
            return f"-({show_expression(operand, term)})"
        case Cast(operand, column_type):
            return f"cast({show_expression(operand, term)} as {column_type})"
        case Call(function, arguments):
            return f"{function}({', '.join(show_expression(argument, term) for argument in arguments)})"
        case Case(branches, otherwise):
            shown = " ".join(
                f"when {show_condition(test, term)} then {show_expression(result, term)}"
                for test, result in branches
            )
            return f"case {shown} else {show_expression(otherwise, term)} end"
        case Aggregate(function, operand, distinct):
            inner = "*" if operand is None else show_expression(operand, term)
            return f"{function.value}({'distinct ' if distinct else ''}{inner})"
        case _:
            assert_never(expression)


def show_condition(condition: Condition, term: Callable[[Term], str]) -> str:
    """A condition; see `show_expression`."""
    match condition:
        case Compared(operator, left, right):
            return f"{show_expression(left, term)} {operator} {show_expression(right, term)}"
        case IsNull(operand, negated):
            return f"{show_expression(operand, term)} is {'not ' if negated else ''}null"
        case Holds(operand, negated):
            return f"{'not ' if negated else ''}holds({show_expression(operand, term)})"
        case AllOf(conditions):
            return f"all({', '.join(show_condition(one, term) for one in conditions)})"
        case AnyOf(conditions):
            return f"any({', '.join(show_condition(one, term) for one in conditions)})"
        case _:
            assert_never(condition)


def _operand(expression: Expression, term: Callable[[Term], str]) -> str:
    shown = show_expression(expression, term)
    return f"({shown})" if isinstance(expression, Arithmetic) else shown
