"""Functions that are short for expressions of others, written out; see `shorthand`.

    nvl2(a, b, c)              CASE WHEN a IS NOT NULL THEN b ELSE c END
    decode(a, 1, 'x', 'y')     CASE WHEN a <=> 1 THEN 'x' ELSE 'y' END
    concat_ws('-', a, b)       substring(concat(coalesce('-' || a, ''), coalesce('-' || b, '')), 2)
    contains(a, 'x')           a LIKE '%x%'
    a LIKE ANY ('x', 'y')      a LIKE 'x' OR a LIKE 'y'

A separator, or a text that is looked for, is written out; other calls stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from sqlglot import exp

_Change = Callable[[exp.Expr], exp.Expr]
_SPECIAL = str.maketrans({"\\": "\\\\", "%": "\\%", "_": "\\_"})
"""What means something else in a pattern of LIKE."""


def _nvl2(node: exp.Expr) -> exp.Expr:
    known = exp.Is(this=node.this, expression=exp.Null()).not_(copy=False)
    return exp.Case(ifs=[exp.If(this=known, true=node.args["true"])], default=node.args.get("false"))


def _equal(node: exp.Expr) -> exp.Expr:
    return exp.NullSafeEQ(this=node.this, expression=node.expression)


def _decode(node: exp.Expr) -> exp.Expr:
    value, *rest = node.expressions
    pairs = zip(rest[::2], rest[1::2], strict=False)
    ifs = [exp.If(this=exp.NullSafeEQ(this=value.copy(), expression=one), true=its) for one, its in pairs]
    return exp.Case(ifs=ifs, default=rest[-1] if len(rest) % 2 else exp.Null()) if ifs else node


def _joined(node: exp.Expr) -> exp.Expr:
    separator, *values = node.expressions
    if not isinstance(separator, exp.Literal) or not separator.is_string or not values:
        return node
    empty = exp.Literal.string("")
    parts: list[exp.Expr] = [
        exp.Coalesce(this=exp.Concat(expressions=[separator.copy(), one]), expressions=[empty.copy()])
        for one in values
    ]
    start = exp.Literal.number(len(separator.name) + 1)
    return exp.Substring(this=exp.Concat(expressions=parts), start=start)


def _like(before: str, behind: str, node: exp.Expr) -> exp.Expr:
    sought = node.expression
    if not isinstance(sought, exp.Literal) or not sought.is_string:
        return node
    pattern = f"{before}{sought.name.translate(_SPECIAL)}{behind}"
    return exp.paren(exp.Like(this=node.this, expression=exp.Literal.string(pattern)), copy=False)


def _ilike(node: exp.Expr) -> exp.Expr:
    one, other = (exp.Lower(this=side) for side in (node.this, node.expression))
    if isinstance(node.expression, exp.Any | exp.All):
        return node
    return exp.Like(this=one, expression=other, negate=node.args.get("negate"))


def _likes(node: exp.Expr) -> exp.Expr:
    """One of several patterns, or all of them."""
    patterns = node.expression.this.unnest()
    listed = patterns.expressions if isinstance(patterns, exp.Tuple) else [patterns]
    if not all(isinstance(one, exp.Literal) for one in listed):
        return node
    tests: list[exp.Expr] = [exp.Like(this=node.this.copy(), expression=one.copy()) for one in listed]
    if node.args.get("negate"):
        tests = [exp.Not(this=one) for one in tests]
    both = exp.or_ if isinstance(node.expression, exp.Any) else exp.and_
    return exp.paren(both(*tests, copy=False), copy=False)


def _spaces(node: exp.Expr) -> exp.Expr:
    return exp.Repeat(this=exp.Literal.string(" "), times=node.this)


def _negative(node: exp.Expr) -> exp.Expr:
    return exp.paren(exp.Neg(this=exp.paren(node.this, copy=False)), copy=False)


def _is_null(node: exp.Expr) -> exp.Expr:
    return exp.paren(exp.Is(this=node.expressions[0], expression=exp.Null()), copy=False)


def _is_known(node: exp.Expr) -> exp.Expr:
    return exp.paren(exp.Not(this=_is_null(node)), copy=False)


def _zero_if_null(node: exp.Expr) -> exp.Expr:
    return exp.Coalesce(this=node.expressions[0], expressions=[exp.Literal.number(0)])


def _null_if_zero(node: exp.Expr) -> exp.Expr:
    return exp.Nullif(this=node.expressions[0], expression=exp.Literal.number(0))


def _cast(kind: str, node: exp.Expr) -> exp.Expr:
    return exp.Cast(this=node.expressions[0], to=exp.DataType.build(kind, dialect="spark"))


_BY_TYPE: Mapping[type[exp.Expr], _Change] = {
    exp.ConcatWs: _joined,
    exp.Contains: partial(_like, "%", "%"),
    exp.DecodeCase: _decode,
    exp.EndsWith: partial(_like, "%", ""),
    exp.EqualNull: _equal,
    exp.ILike: _ilike,
    exp.Negative: _negative,
    exp.Nvl2: _nvl2,
    exp.Space: _spaces,
    exp.StartsWith: partial(_like, "", "%"),
}
_BY_NAME: Mapping[str, _Change] = {
    "isnotnull": _is_known,
    "isnull": _is_null,
    "nullifzero": _null_if_zero,
    "zeroifnull": _zero_if_null,
    **{name: partial(_cast, name) for name in ("bigint", "smallint", "tinyint")},
}


def short_call(node: exp.Expr) -> _Change | None:
    """How a call that is short for an expression is written out; None of any other node."""
    if isinstance(node, exp.Anonymous):
        return _BY_NAME.get(node.name.lower()) if len(node.expressions) == 1 else None
    if isinstance(node, exp.Like) and isinstance(node.expression, exp.Any | exp.All):
        return _likes
    return _BY_TYPE.get(type(node))
