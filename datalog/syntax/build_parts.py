"""From the parse trees of declarations and of what a head computes to the model's values."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from typing import cast

from lark import Token, Tree
from msgspec import Struct

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
from datalog.model.schema import ANY, Column, ColumnType, Declaration, ForeignKey, TypeName
from datalog.model.terms import Term
from datalog.syntax.places import Node, Places
from datalog.syntax.quoting import read_name

_TYPES = {
    **{type_name.value: type_name for type_name in TypeName},
    "bool": TypeName.BOOLEAN,
    "byte": TypeName.TINYINT,
    "short": TypeName.SMALLINT,
    "integer": TypeName.INT,
    "long": TypeName.BIGINT,
    "real": TypeName.FLOAT,
    "dec": TypeName.DECIMAL,
    "numeric": TypeName.DECIMAL,
    "str": TypeName.STRING,
    "text": TypeName.STRING,
    "varchar": TypeName.STRING,
    "datetime": TypeName.TIMESTAMP,
}
_PADDED = ("its values are padded with blanks, and compared without them", "store the column as `string`")
_NO_ORDER = (
    "types are " + ", ".join(f"`{t.value}`" for t in TypeName),
    "store what views need of it in columns of these types",
)
_UNMODELLED = {
    **dict.fromkeys(("char", "character", "nchar", "bpchar"), _PADDED),
    **dict.fromkeys(
        ("binary", "varbinary", "bytea", "interval", "time", "variant", "json", "array"), _NO_ORDER
    ),
}
_MOST_DIGITS = 38
_ENOUGH_DIGITS = 5


def build_declaration(node: Node, places: Places) -> Declaration:
    """The declaration that a parse tree stands for; problems are reported to `places`."""
    name = read_name(cast(Token, node.children[0]), places)
    columns: list[Column] = []
    key: tuple[str, ...] | None = None
    unique: list[tuple[str, ...]] = []
    foreign_keys: list[ForeignKey] = []
    for child in node.children[1:]:
        part = cast(Node, child)
        match part.data:
            case "columns":
                columns += [_column(cast(Node, column), places) for column in part.children]
            case "key" if key is None:
                key = _words(part.children[0], places)
            case "key":
                _report_second_key(part, name, places)
            case "unique":
                unique.append(_words(part.children[0], places))
            case "foreign":
                foreign_keys.append(_foreign_key(part, places))
            case _:
                raise AssertionError(f"no part of a declaration: {part.data}")
    return Declaration(name, tuple(columns), key, tuple(unique), tuple(foreign_keys), places.span(node))


def _column(node: Node, places: Places) -> Column:
    name = read_name(cast(Token, node.children[0]), places)
    column_type = ANY
    not_null = False
    for child in node.children[1:]:
        part = cast(Node, child)
        if part.data == "not_null":
            not_null = True
        else:
            column_type = _build_type(part, places)
    return Column(name, column_type, not_null, places.span(node))


def _build_type(node: Node, places: Places) -> ColumnType:
    """The type; a length of a string type is read and dropped, since strings have none here."""
    word = cast(Token, node.children[0])
    sizes = [_size(cast(Token, size)) for part in node.children[1:] for size in cast(Node, part).children]
    type_name = _TYPES.get(word.lower())
    if word.lower() in _UNMODELLED:
        note, hint = _UNMODELLED[word.lower()]
        what = f"column type `{word}` cannot be analysed"
        places.report(Code.UNKNOWN_TYPE, what, places.span(word), "no such type here", note=note, hint=hint)
        return ANY
    if type_name is None:
        near = get_close_matches(word.lower(), _TYPES, 1)
        places.report(
            Code.UNKNOWN_TYPE,
            f"unknown column type `{word}`",
            places.span(word),
            "no such type",
            note="types are " + ", ".join(f"`{t.value}`" for t in TypeName),
            hint=f"did you mean `{near[0]}`?" if near else None,
        )
        return ANY
    if type_name is TypeName.STRING and len(sizes) <= 1:
        return ColumnType(type_name)
    if type_name is TypeName.DECIMAL and len(sizes) <= len(("precision", "scale")):
        precision, scale = (*sizes, None, None)[:2]
        if precision is None or (0 < precision <= _MOST_DIGITS and 0 <= (scale or 0) <= precision):
            return ColumnType(type_name, precision, scale)
    if sizes:
        places.report(
            Code.UNKNOWN_TYPE,
            f"column type `{word}` does not take the size {', '.join(map(str, sizes))}",
            places.span(node),
            "no such size",
            note=f"`decimal(p,s)` has 1 to {_MOST_DIGITS} digits, 0 to p of them after the point",
        )
    return ColumnType(type_name)


def _size(token: Token) -> int:
    """A size; one of very many digits is just too large."""
    return int(token[:_ENOUGH_DIGITS])


def _words(node: Node | Token, places: Places) -> tuple[str, ...]:
    return tuple(read_name(cast(Token, word), places) for word in cast(Node, node).children)


def _foreign_key(node: Node, places: Places) -> ForeignKey:
    columns, target, target_columns = node.children
    return ForeignKey(
        _words(columns, places),
        read_name(cast(Token, target), places),
        _words(target_columns, places),
        places.span(node),
    )


def _report_second_key(node: Node, name: str, places: Places) -> None:
    places.report(
        Code.SECOND_KEY,
        f"relation `{name}` is declared with two keys",
        places.span(node),
        "the second key",
        hint="write `unique(...)` for the further ones",
    )


class ExpressionBuilder(Struct, frozen=True):
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
            case "cast" | "try_cast":
                operand, kind = (
                    self.expression(children[0]),
                    _build_type(cast(Node, children[1]), self.places),
                )
                return Cast(operand, kind, span, safe=node.data == "try_cast")
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
