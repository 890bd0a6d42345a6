"""Scalar functions as Spark has them; where DuckDB's differ for some arguments, these are refused or an error.

Refused: `substring` from a position that is not a positive constant, parts of dates that are texts, texts of
floating-point numbers. An error when they come: `lower` and `upper` of texts that are not ASCII.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sqlglot import exp

from datalog.model import ANY, ColumnType, TypeName
from datalog.sql.duckdb.casts import as_type
from datalog.sql.duckdb.types import TIMES, SqlType, UnlikeSparkError, cast

Typed = tuple[exp.Expr, SqlType]

_STRING, _INT = ColumnType(TypeName.STRING), ColumnType(TypeName.INT)


def called(function: str, arguments: Sequence[Typed], found: SqlType) -> exp.Expr:
    """The value of a function of `FUNCTIONS` whose result has a type in Spark.

    Raises:
        UnlikeSparkError: DuckDB has another value for some arguments.
    """
    if function in ("coalesce", "greatest", "least"):
        trees = [as_type(tree, kind, found) for tree, kind in arguments]
        return exp.Anonymous(this=function, expressions=trees)
    return _OF[function](function, arguments)


def _texts(arguments: Sequence[Typed]) -> list[exp.Expr]:
    if any(kind not in (_STRING, ANY) for _, kind in arguments):
        raise UnlikeSparkError("a function of texts over other values")
    return [as_type(tree, kind, _STRING) for tree, kind in arguments]


def _abs(function: str, arguments: Sequence[Typed]) -> exp.Expr:
    ((tree, kind),) = arguments
    if isinstance(kind, str) or kind.family not in ("number", "any"):
        raise UnlikeSparkError(f"`{function}` of `{kind}`")
    return exp.Anonymous(this=function, expressions=[tree])


def _concat(_function: str, arguments: Sequence[Typed]) -> exp.Expr:
    first, *others = (exp.Paren(this=as_type(tree, kind, _STRING)) for tree, kind in arguments)
    result: exp.Expr = first
    for other in others:
        result = exp.DPipe(this=result, expression=other)
    return exp.Paren(this=result)


def _part(function: str, arguments: Sequence[Typed]) -> exp.Expr:
    ((tree, kind),) = arguments
    if isinstance(kind, str) or kind.name not in (TypeName.DATE, *TIMES):
        raise UnlikeSparkError(f"`{function}` of `{kind}`")
    return cast(exp.Anonymous(this=function, expressions=[tree]), _INT)


def _length(function: str, arguments: Sequence[Typed]) -> exp.Expr:
    return cast(exp.Anonymous(this=function, expressions=_texts(arguments)), _INT)


def _cased(function: str, arguments: Sequence[Typed]) -> exp.Expr:
    (tree,) = _texts(arguments)
    letters = exp.Anonymous(this="length", expressions=[tree.copy()])
    is_wide = exp.NEQ(this=exp.Anonymous(this="strlen", expressions=[tree.copy()]), expression=letters)
    message = f"`{function}` of a text that is not ASCII differs from Spark's"
    failing = exp.Anonymous(this="error", expressions=[exp.Literal.string(message)])
    plain = exp.Anonymous(this=function, expressions=[tree])
    return exp.Case(ifs=[exp.If(this=is_wide, true=failing)], default=plain)


def _like(_function: str, arguments: Sequence[Typed]) -> exp.Expr:
    text, pattern = (exp.Paren(this=tree) for tree in _texts(arguments))
    return exp.Escape(this=exp.Like(this=text, expression=pattern), expression=exp.Literal.string("\\"))


def _substring(function: str, arguments: Sequence[Typed]) -> exp.Expr:
    text, *places = arguments
    for position, (tree, _) in enumerate(places):
        if not (isinstance(tree, exp.Literal) and tree.is_int and int(tree.this) >= 1 - position):
            raise UnlikeSparkError(f"`{function}` with a place that is not a positive constant")
    return exp.Anonymous(this=function, expressions=[*_texts([text]), *(tree for tree, _ in places)])


def _trim(function: str, arguments: Sequence[Typed]) -> exp.Expr:
    return exp.Anonymous(this=function, expressions=[*_texts(arguments), exp.Literal.string(" ")])


_OF: Mapping[str, Callable[[str, Sequence[Typed]], exp.Expr]] = {
    "abs": _abs,
    "concat": _concat,
    "like": _like,
    "length": _length,
    "substring": _substring,
    "trim": _trim,
    **dict.fromkeys(("lower", "upper"), _cased),
    **dict.fromkeys(("day", "month", "quarter", "year"), _part),
}
