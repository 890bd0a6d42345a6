"""From the parse tree of what a head computes to expressions and conditions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import cast

from lark import Token, Tree

from datalog.diagnostics import Code
from datalog.model.expressions import (
    FUNCTIONS,
    Aggregate,
    AggregateFunction,
    AllOf,
    AnyOf,
    Arithmetic,
    ArithmeticOperator,
    Call,
    Case,
    Cast,
    Compared,
    Condition,
    Expression,
    Holds,
    IsNull,
    Minus,
    takes,
)
from datalog.model.literals import Operator
from datalog.model.terms import Term
from datalog.syntax.build_declaration import build_type
from datalog.syntax.places import Node, Places


@dataclass(frozen=True, slots=True)
class ExpressionBuilder:
    """Builds expressions, from left to right: anonymous variables are named in the order of the text.

    Attributes:
        term: builds a term from its token.
        places: where problems are reported.
    """

    term: Callable[[Token], Term]
    places: Places

    def expression(self, node: Node | Token) -> Expression:
        """An expression."""
        if not isinstance(node, Tree):
            return self.term(node)
        span = self.places.span(node)
        children = node.children
        match node.data:
            case "arithmetic":
                left = self.expression(children[0])
                operator = cast(ArithmeticOperator, str(children[1]))
                return Arithmetic(operator, left, self.expression(children[2]), span)
            case "minus":
                return Minus(self.expression(children[1]), span)
            case "call":
                return self._call(node)
            case "aggregate":
                function = AggregateFunction(str(children[0]))
                if isinstance(children[1], Token) and children[1].type == "TIMES":
                    return Aggregate(function, None, False, span)
                distinct = len(children) > 2  # noqa: PLR2004 - the function, `distinct`, the operand
                return Aggregate(function, self.expression(children[-1]), distinct, span)
            case "cast":
                operand = self.expression(children[0])
                return Cast(operand, build_type(cast(Node, children[1]), self.places), span)
            case "case":
                *branches, otherwise = children
                return Case(tuple(self._branch(b) for b in branches), self.expression(otherwise), span)
            case _:
                raise AssertionError(f"no expression: {node.data}")

    def condition(self, node: Node) -> Condition:
        """A condition."""
        span = self.places.span(node)
        children = node.children
        match node.data:
            case "compared":
                left = self.expression(children[0])
                sign = "!=" if str(children[1]) == "<>" else cast(Operator, str(children[1]))
                return Compared(sign, left, self.expression(children[2]), span)
            case "no_value" | "a_value":
                return IsNull(self.expression(children[0]), node.data == "a_value", span)
            case "holds" | "holds_not":
                return Holds(self.expression(children[0]), node.data == "holds_not", span)
            case "all_of" | "any_of":
                inner = tuple(self.condition(cast(Node, child)) for child in children)
                return AllOf(inner, span) if node.data == "all_of" else AnyOf(inner, span)
            case _:
                raise AssertionError(f"no condition: {node.data}")

    def _branch(self, node: Node | Token) -> tuple[Condition, Expression]:
        test, result = cast(Node, node).children
        return self.condition(cast(Node, test)), self.expression(result)

    def _call(self, node: Node) -> Call:
        name = cast(Token, node.children[0])
        if name not in FUNCTIONS:
            near = get_close_matches(name, FUNCTIONS, 1)
            self.places.report(
                Code.LOWER_CASE_TERM,
                f"unknown function `{name}`",
                self.places.span(name),
                "no such function",
                note="functions are " + ", ".join(f"`{one}`" for one in sorted(FUNCTIONS)),
                hint=f"did you mean `{near[0]}`?" if near else "terms cannot be nested",
            )
        arguments = tuple(self.expression(child) for child in node.children[1:])
        if name in FUNCTIONS and not takes(name, len(arguments)):
            message = f"`{name}` does not take {len(arguments)} argument{'' if len(arguments) == 1 else 's'}"
            self.places.report(Code.ARITY_DIFFERS, message, self.places.span(node))
        return Call(str(name), arguments, self.places.span(node))
