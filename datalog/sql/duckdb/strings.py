"""Functions of texts as Spark has them: what DuckDB has of the same value for every text, and what is made of that.

DuckDB counts characters as Spark does, by code points, but for `reverse`. Refused: numbers and separators that are not
written out. An error when they come: `initcap`, `lower` and `upper` of texts that are not ASCII.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sqlglot import exp

from datalog.model import ANY, ColumnType, TypeName
from datalog.sql.duckdb.types import Typed, UnlikeSparkError, as_type, call, cast, unless

_STRING, _INT = ColumnType(TypeName.STRING), ColumnType(TypeName.INT)


def texts(arguments: Sequence[Typed]) -> list[exp.Expr]:
    """The trees of arguments that are texts.

    Raises:
        UnlikeSparkError: one is something else.
    """
    if any(kind not in (_STRING, ANY) for _, kind in arguments):
        raise UnlikeSparkError("a function of texts over other values")
    return [as_type(tree, kind, _STRING) for tree, kind in arguments]


def only_ascii(function: str, tree: exp.Expr, value: exp.Expr) -> exp.Expr:
    """A value, or an error where a text is not ASCII."""
    letters = call("length", tree.copy())
    is_wide = exp.NEQ(this=call("strlen", tree.copy()), expression=letters)
    message = f"`{function}` of a text that is not ASCII differs from Spark's"
    return unless(is_wide, exp.Literal.string(message), value)


def _plain(function: str, arguments: Sequence[Typed]) -> exp.Expr:
    return call(function, *texts(arguments))


def _number(function: str, argument: Typed, least: int = 0) -> exp.Expr:
    """A whole number that is written out."""
    tree, _ = argument
    if not isinstance(tree, exp.Literal) or not tree.is_int or int(tree.this) < least:
        raise UnlikeSparkError(f"`{function}` with a number that is not written out, or is less than {least}")
    return tree


def _trim(function: str, arguments: Sequence[Typed]) -> exp.Expr:
    return call(function, *texts(arguments), exp.Literal.string(" "))


def _numbered(function: str, arguments: Sequence[Typed]) -> exp.Expr:
    text, number = arguments
    return call(function, *texts([text]), _number(function, number))


def _padded(function: str, arguments: Sequence[Typed]) -> exp.Expr:
    text, number, padding = arguments
    return call(function, *texts([text]), _number(function, number), _written(function, padding))


def _part(function: str, arguments: Sequence[Typed]) -> exp.Expr:
    text, separator, number = arguments
    return call(function, *texts([text]), _written(function, separator), _number(function, number, 1))


def _written(function: str, argument: Typed) -> exp.Expr:
    """A text that is written out and not empty."""
    (tree,) = texts([argument])
    inside = tree.this if isinstance(tree, exp.Cast) else tree
    if not isinstance(inside, exp.Literal) or not inside.name:
        raise UnlikeSparkError(f"`{function}` with a text that is not written out, or is empty")
    return tree


def _translated(function: str, arguments: Sequence[Typed]) -> exp.Expr:
    """Characters in place of others; that of code 0 means another thing in Spark."""
    trees = texts(arguments)
    for tree in trees[1:]:
        inside = tree.this if isinstance(tree, exp.Cast) else tree
        if not isinstance(inside, exp.Literal) or "\0" in inside.name:
            raise UnlikeSparkError(f"`{function}` of characters that are not written out")
    return call(function, *trees)


def _place(function: str, arguments: Sequence[Typed]) -> exp.Expr:
    """Where a text stands in another, from 1, or 0."""
    sought, text, *start = arguments
    one, other = texts([sought, text])
    if not start:
        return cast(call("instr", other, one), _INT)
    first = _number(function, start[0], 1)
    rest = call("instr", call("substring", other, first), one)
    found = exp.Add(this=exp.Paren(this=rest), expression=exp.Literal.number(int(first.name) - 1))
    empty = exp.EQ(this=exp.Paren(this=one.copy()), expression=exp.Literal.string(""))
    nowhere = exp.EQ(this=exp.Paren(this=rest.copy()), expression=exp.Literal.number(0))
    ifs = [
        exp.If(
            this=exp.and_(empty, exp.Is(this=other.copy(), expression=exp.Not(this=exp.Null()))),
            true=exp.Literal.number(1),
        ),
        exp.If(this=nowhere, true=exp.Literal.number(0)),
    ]
    return cast(exp.Case(ifs=ifs, default=found), _INT)


def _reversed(_function: str, arguments: Sequence[Typed]) -> exp.Expr:
    (tree,) = texts(arguments)
    letters = call("string_split", tree, exp.Literal.string(""))
    return call("array_to_string", call("list_reverse", letters), exp.Literal.string(""))


def _words(function: str, arguments: Sequence[Typed]) -> exp.Expr:
    """The words between blanks with a first letter in upper case, all others in lower case."""
    (tree,) = texts(arguments)
    word = exp.column("word")
    first = call("upper", call("substring", word, exp.Literal.number(1), exp.Literal.number(1)))
    capital = exp.DPipe(this=first, expression=call("substring", word.copy(), exp.Literal.number(2)))
    words = call("string_split", call("lower", tree), exp.Literal.string(" "))
    made = call("list_transform", words, exp.Lambda(this=capital, expressions=[exp.to_identifier("word")]))
    return only_ascii(function, tree, call("array_to_string", made, exp.Literal.string(" ")))


def _cased(function: str, arguments: Sequence[Typed]) -> exp.Expr:
    (tree,) = texts(arguments)
    return only_ascii(function, tree, call(function, tree))


STRINGS_OF: Mapping[str, Callable[[str, Sequence[Typed]], exp.Expr]] = {
    **dict.fromkeys(("ascii", "replace", "sha1"), _plain),
    "translate": _translated,
    **dict.fromkeys(("ltrim", "rtrim", "trim"), _trim),
    **dict.fromkeys(("repeat", "right"), _numbered),
    **dict.fromkeys(("lpad", "rpad"), _padded),
    **dict.fromkeys(("lower", "upper"), _cased),
    "initcap": _words,
    "locate": _place,
    "reverse": _reversed,
    "split_part": _part,
}
"""The functions of texts, by their names."""
