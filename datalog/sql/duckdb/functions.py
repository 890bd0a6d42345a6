"""Scalar functions as Spark has them; where DuckDB's differ for some arguments, these are refused or an error.

Refused: `substring` from a position that is not a positive constant, texts of
floating-point numbers. An error when they come: `lower` and `upper` of texts that are not ASCII.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal

from sqlglot import exp

from datalog.model import ANY, MAX_PRECISION, ColumnType, TypeName
from datalog.sql.duckdb.strings import STRINGS_OF, texts
from datalog.sql.duckdb.times import TIMES_OF
from datalog.sql.duckdb.types import (
    DOUBLE,
    PLACES,
    WHOLE,
    SqlType,
    Typed,
    UnlikeSparkError,
    as_double,
    as_type,
    call,
    cast,
    decimal,
    digits,
    rounded_double,
    unless,
)

_OPERATORS: Mapping[str, type[exp.Binary]] = {"+": exp.Add, "-": exp.Sub, "*": exp.Mul}
_NARROW = 18
"""DuckDB computes with decimals of at most so many digits in 64 bits, and fails where the result needs more."""


def computed(
    operator: str, left: tuple[exp.Expr, ColumnType], right: tuple[exp.Expr, ColumnType], found: ColumnType
) -> exp.Expr:
    """The value of `left operator right`, which has type `found` in Spark.

    A sum, difference or product of decimals is computed with all digits behind the point, and is an error where it
    has more than 38 digits; where the types have so many, Spark gives some up, rounding. DuckDB divides decimals as
    doubles, and anything by zero to null or infinity: a quotient of decimals is computed here from whole numbers of
    128 bits, and a division by zero is an error.

    Raises:
        UnlikeSparkError: more than 38 digits are behind the point, or it is no arithmetic on numbers.
    """
    if found.name is TypeName.DECIMAL:
        if operator == "/":
            return quotient(left, right, found, guarded=True)
        return _exact(operator, left, right, found)
    if found.name is TypeName.DOUBLE:
        return _of_doubles(operator, left, right)
    if found.name.is_integer:
        one, other = (_paren(tree if kind == found else cast(tree, found)) for tree, kind in (left, right))
        return _OPERATORS[operator](this=one, expression=other)
    raise UnlikeSparkError(f"arithmetic on `{left[1]}` and `{right[1]}`")


def _of_doubles(
    operator: str, left: tuple[exp.Expr, ColumnType], right: tuple[exp.Expr, ColumnType]
) -> exp.Expr:
    one, other = as_double(*left), as_double(*right)
    if one is None or other is None:
        raise UnlikeSparkError(f"arithmetic on `{left[1]}` and `{right[1]}`")
    if operator == "/":
        divided = exp.Div(this=_paren(one), expression=_paren(other), typed=False, safe=True)
        return _unless_zero(one, other, divided)
    return _OPERATORS[operator](this=_paren(one), expression=_paren(other))


def _exact(
    operator: str, left: tuple[exp.Expr, ColumnType], right: tuple[exp.Expr, ColumnType], found: ColumnType
) -> exp.Expr:
    (whole1, scale1), (whole2, scale2) = _digits(left[1]), _digits(right[1])
    scale = scale1 + scale2 if operator == "*" else max(scale1, scale2)
    if scale > MAX_PRECISION:
        raise UnlikeSparkError(
            f"`{left[1]} {operator} {right[1]}`, which has more than {MAX_PRECISION} digits"
        )
    width = (whole1 + whole2 if operator == "*" else max(whole1, whole2)) + scale + 1
    least = _NARROW + 1 if width > _NARROW else 0
    one = cast(left[0], decimal(max(whole1 + scale1, least), scale1))
    other = cast(right[0], decimal(whole2 + scale2, scale2))
    return cast(_OPERATORS[operator](this=one, expression=other), found)


def quotient(
    left: tuple[exp.Expr, ColumnType], right: tuple[exp.Expr, ColumnType], found: ColumnType, *, guarded: bool
) -> exp.Expr:
    """A quotient of exact numbers, halves rounded away from zero.

    A division by zero is null, or an error if it is `guarded`.

    What does not fit in 128 bits on the way is an error of DuckDB's.
    """
    (_, scale1), (_, scale2) = _digits(left[1]), _digits(right[1])
    _, scale = _digits(found)
    shift = scale2 + scale - scale1
    above, below = _unscaled(*left), _unscaled(*right)
    if shift >= 0:
        above = _times_ten(above, shift)
    else:
        below = _times_ten(below, -shift)
    whole = exp.IntDiv(this=_paren(above), expression=_paren(below))
    rest = exp.Abs(this=exp.Mod(this=_paren(above.copy()), expression=_paren(below.copy())))
    rounds = exp.GTE(
        this=exp.Mul(this=exp.Literal.number(2), expression=rest), expression=exp.Abs(this=below.copy())
    )
    sign = exp.Mul(this=exp.Sign(this=above.copy()), expression=exp.Sign(this=below.copy()))
    more = exp.Case(ifs=[exp.If(this=rounds, true=sign)], default=exp.Literal.number(0))
    total = cast(exp.Add(this=whole, expression=more), decimal(MAX_PRECISION, 0))
    unit = cast(exp.Literal.string(f"{Decimal(1).scaleb(-scale):f}"), decimal(max(scale, 1), scale))
    made = cast(exp.Mul(this=total, expression=unit), found)
    return _unless_zero(left[0], right[0], made) if guarded else made


def _unscaled(tree: exp.Expr, kind: ColumnType) -> exp.Expr:
    """All digits of a number as a whole number of 128 bits."""
    whole, scale = _digits(kind)
    if scale == 0:
        return _hugeint(tree)
    if whole + 2 * scale <= MAX_PRECISION:
        return _hugeint(_shifted(tree, kind))
    before = call("trunc", tree)
    behind = cast(
        exp.Sub(this=_paren(tree.copy()), expression=before.copy()),
        decimal(min(scale + 1, MAX_PRECISION), scale),
    )
    return exp.Add(
        this=_times_ten(_hugeint(before), scale), expression=_hugeint(_shifted(behind, decimal(scale, scale)))
    )


def _shifted(tree: exp.Expr, kind: ColumnType) -> exp.Expr:
    """A decimal times ten to the power of its scale."""
    _, scale = _digits(kind)
    wide = cast(tree, decimal(MAX_PRECISION - scale, scale) if 2 * scale <= MAX_PRECISION else kind)
    return exp.Mul(this=wide, expression=cast(exp.Literal.number(10**scale), decimal(scale + 1, 0)))


def _times_ten(tree: exp.Expr, power: int) -> exp.Expr:
    return exp.Paren(this=exp.Mul(this=_paren(tree), expression=_hugeint(exp.Literal.number(10**power))))


def _hugeint(tree: exp.Expr) -> exp.Expr:
    return cast(tree, "HUGEINT")


def _unless_zero(divided: exp.Expr, divisor: exp.Expr, result: exp.Expr) -> exp.Expr:
    """The result, or an error where something is divided by zero; null divided by it is null."""
    known = exp.Is(this=_paren(divided.copy()), expression=exp.Not(this=exp.Null()))
    is_zero = exp.and_(
        exp.EQ(this=_paren(divisor.copy()), expression=exp.Literal.number(0)), known, copy=False
    )
    return unless(is_zero, exp.Literal.string("division by zero"), result)


def _digits(kind: ColumnType) -> tuple[int, int]:
    found = digits(kind)
    if found is None:
        raise UnlikeSparkError(f"arithmetic on `{kind}` as an exact number")
    return found


def _paren(tree: exp.Expr) -> exp.Expr:
    closed = isinstance(tree, exp.Column | exp.Cast | exp.Paren | exp.Anonymous)
    return tree if closed else exp.Paren(this=tree)


_STRING, _INT, _BIGINT = (ColumnType(name) for name in (TypeName.STRING, TypeName.INT, TypeName.BIGINT))


def called(function: str, arguments: Sequence[Typed], found: SqlType) -> exp.Expr:
    """The value of a function of `FUNCTIONS` whose result has a type in Spark.

    Raises:
        UnlikeSparkError: DuckDB has another value for some arguments.
    """
    if function in ("coalesce", "greatest", "least"):
        return call(function, *(as_type(tree, kind, found) for tree, kind in arguments))
    tree = _OF[function](function, arguments)
    return cast(tree, found) if function in _RETYPED and not isinstance(found, str) else tree


def _abs(function: str, arguments: Sequence[Typed]) -> exp.Expr:
    ((tree, kind),) = arguments
    if isinstance(kind, str) or kind.family not in ("number", "any"):
        raise UnlikeSparkError(f"`{function}` of `{kind}`")
    return call(function, tree)


def _concat(_function: str, arguments: Sequence[Typed]) -> exp.Expr:
    first, *others = (exp.Paren(this=as_type(tree, kind, _STRING)) for tree, kind in arguments)
    result: exp.Expr = first
    for other in others:
        result = exp.DPipe(this=result, expression=other)
    return exp.Paren(this=result)


def _length(function: str, arguments: Sequence[Typed]) -> exp.Expr:
    return cast(call(function, *texts(arguments)), _INT)


def _like(_function: str, arguments: Sequence[Typed]) -> exp.Expr:
    text, pattern = (exp.Paren(this=tree) for tree in texts(arguments))
    return exp.Escape(this=exp.Like(this=text, expression=pattern), expression=exp.Literal.string("\\"))


def _substring(function: str, arguments: Sequence[Typed]) -> exp.Expr:
    text, *places = arguments
    for position, (tree, _) in enumerate(places):
        if not (isinstance(tree, exp.Literal) and tree.is_int and int(tree.this) >= 1 - position):
            raise UnlikeSparkError(f"`{function}` with a place that is not a positive constant")
    return call(function, *texts([text]), *(tree for tree, _ in places))


def _rounded(function: str, arguments: Sequence[Typed]) -> exp.Expr:
    """Halves away from zero, those of a double as its shortest text has them: DuckDB multiplies it first."""
    (tree, kind), *places = arguments
    number = places[0][0] if places else exp.Literal.number(0)
    if isinstance(kind, str) or not (isinstance(number, exp.Literal) and number.is_int):
        raise UnlikeSparkError(f"`{function}` of `{kind}`")
    if kind.name.is_integer:
        return tree
    count = int(number.this)
    if kind.name is TypeName.DECIMAL:
        whole, scale = _digits(kind)
        kept = min(scale, count)
        return cast(tree, decimal(min(whole + 1 + kept, MAX_PRECISION), kept))
    if kind.name is not TypeName.DOUBLE or count > PLACES:
        raise UnlikeSparkError(f"`{function}` of `{kind}`")
    short = as_double(rounded_double(tree, count), decimal(MAX_PRECISION, count))
    is_whole = exp.GTE(this=exp.Abs(this=tree.copy()), expression=exp.Literal.number(10**WHOLE))
    return exp.Case(ifs=[exp.If(this=is_whole, true=tree.copy())], default=short)


def _hashed(function: str, arguments: Sequence[Typed]) -> exp.Expr:
    """The hash of a text's bytes, in digits of base 16."""
    text, *bits = arguments
    if bits and not (isinstance(bits[0][0], exp.Literal) and bits[0][0].this in ("0", "256")):
        raise UnlikeSparkError(f"`{function}` of other than 256 bits")
    return call("sha256" if bits else function, *texts([text]))


def _remainder(_function: str, arguments: Sequence[Typed]) -> exp.Expr:
    """The remainder of whole numbers: of DuckDB by zero it is null."""
    if any(isinstance(kind, str) or not (kind.name.is_integer or kind == ANY) for _, kind in arguments):
        raise UnlikeSparkError("a remainder of other than whole numbers")
    one, other = (cast(tree, _BIGINT) for tree, _ in arguments)
    # The least number by -1 is too large for a quotient of 64 bits.
    by_one = exp.EQ(this=_paren(other.copy()), expression=exp.Literal.number(-1))
    rest = exp.Mod(this=_paren(one), expression=_paren(other))
    zero = exp.Mul(this=exp.Literal.number(0), expression=exp.Sign(this=one.copy()))
    return _unless_zero(one, other, exp.Case(ifs=[exp.If(this=by_one, true=zero)], default=rest))


def _modulus(_function: str, arguments: Sequence[Typed]) -> exp.Expr:
    """The remainder of whole numbers, or where that is negative the one behind it."""
    rest = _remainder("mod", arguments)
    other = cast(arguments[1][0].copy(), _BIGINT)
    more = _remainder("mod", [(exp.Add(this=exp.Paren(this=rest), expression=other), _BIGINT), arguments[1]])
    negative = exp.LT(this=exp.Paren(this=rest.copy()), expression=exp.Literal.number(0))
    return exp.Case(ifs=[exp.If(this=negative, true=more)], default=rest.copy())


def _divided(_function: str, arguments: Sequence[Typed]) -> exp.Expr:
    """A quotient of whole numbers without its rest."""
    if any(isinstance(kind, str) or not (kind.name.is_integer or kind == ANY) for _, kind in arguments):
        raise UnlikeSparkError("`div` of other than whole numbers")
    one, other = (cast(tree, _BIGINT) for tree, _ in arguments)
    return _unless_zero(one, other, exp.IntDiv(this=_paren(one), expression=_paren(other)))


def _double(function: str, argument: Typed) -> exp.Expr:
    tree, kind = argument
    found = None if isinstance(kind, str) else as_double(tree, kind)
    if found is None or kind == ANY or isinstance(kind, str) or kind.family != "number":
        raise UnlikeSparkError(f"`{function}` of `{kind}`")
    return exp.Paren(this=found)


def _sign(function: str, arguments: Sequence[Typed]) -> exp.Expr:
    """1, -1, or the value itself where it is a zero or no number."""
    tree, zero, one = _double(function, arguments[0]), exp.Literal.number(0), exp.Literal.number(1)
    no_number = exp.If(this=call("isnan", tree), true=tree.copy())
    up = exp.If(this=exp.GT(this=tree.copy(), expression=zero), true=cast(one, DOUBLE))
    down = exp.If(
        this=exp.LT(this=tree.copy(), expression=zero.copy()), true=cast(exp.Neg(this=one.copy()), DOUBLE)
    )
    return exp.Case(ifs=[no_number, up, down], default=tree.copy())


def _root(function: str, arguments: Sequence[Typed]) -> exp.Expr:
    """The square root, which is rounded once everywhere; of a negative number none."""
    tree = _double(function, arguments[0])
    negative = exp.LT(this=tree, expression=exp.Literal.number(0))
    nan = cast(exp.Literal.string("NaN"), DOUBLE)
    return exp.Case(ifs=[exp.If(this=negative, true=nan)], default=call("sqrt", tree.copy()))


def _no_number(function: str, arguments: Sequence[Typed]) -> exp.Expr:
    return exp.Coalesce(this=call("isnan", _double(function, arguments[0])), expressions=[exp.false()])


def _whole(function: str, arguments: Sequence[Typed]) -> exp.Expr:
    """A number rounded up or down; a double that is no number is 0, one beyond 64 bits an error."""
    ((tree, kind),) = arguments
    if not isinstance(kind, str) and kind.name.is_floating:
        double = _double(function, arguments[0])
        no_number = exp.If(this=call("isnan", double), true=exp.Literal.number(0))
        return exp.Case(ifs=[no_number], default=cast(call(function, double.copy()), _BIGINT))
    if isinstance(kind, str) or digits(kind) is None:
        raise UnlikeSparkError(f"`{function}` of `{kind}`")
    return tree if kind.name.is_integer else call(function, tree)


_OF: Mapping[str, Callable[[str, Sequence[Typed]], exp.Expr]] = {
    "abs": _abs,
    "div": _divided,
    "isnan": _no_number,
    "pmod": _modulus,
    "sign": _sign,
    "sqrt": _root,
    "concat": _concat,
    "like": _like,
    "length": _length,
    "mod": _remainder,
    "round": _rounded,
    "substring": _substring,
    **STRINGS_OF,
    **TIMES_OF,
    **dict.fromkeys(("ceil", "floor"), _whole),
    **dict.fromkeys(("md5", "sha2"), _hashed),
}
_RETYPED = frozenset({"ceil", "floor", "mod", "pmod"})
"""Whose result has another type in DuckDB."""
