"""Scalar functions as Spark has them; where DuckDB's differ for some arguments, these are refused or an error.

Refused: `substring` from a position that is not a positive constant, texts of
floating-point numbers. An error when they come: `lower` and `upper` of texts with letters of which Spark makes others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import partial

from sqlglot import exp

from datalog.model import ANY, MAX_PRECISION, ColumnType, TypeName
from datalog.sql.duckdb.patterns import PATTERNS_OF
from datalog.sql.duckdb.strings import STRINGS_OF, texts
from datalog.sql.duckdb.templates import filled
from datalog.sql.duckdb.times import TIMES_OF
from datalog.sql.duckdb.types import (
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
    whole_numbers,
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
        return _unless_zero(one, other, filled(":one / :other", one=one, other=other))
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
    unit = cast(exp.Literal.string(f"{Decimal(1).scaleb(-scale):f}"), decimal(max(scale, 1), scale))
    made = cast(filled(_QUOTIENT, above=above, below=below, unit=unit), found)
    return _unless_zero(left[0], right[0], made) if guarded else made


_QUOTIENT = f"""
    CAST(:above // :below + CASE WHEN 2 * abs(:above % :below) >= abs(:below) THEN sign(:above) * sign(:below)
    ELSE 0 END AS DECIMAL({MAX_PRECISION}, 0)) * :unit
"""


def _unscaled(tree: exp.Expr, kind: ColumnType) -> exp.Expr:
    """All digits of a number as a whole number of 128 bits."""
    whole, scale = _digits(kind)
    if scale == 0:
        return _hugeint(tree)
    if whole + 2 * scale <= MAX_PRECISION:
        return _hugeint(_shifted(tree, kind))
    before = _times_ten(_hugeint(call("trunc", tree)), scale)
    behind = cast(filled(":x - trunc(:x)", x=tree), decimal(min(scale + 1, MAX_PRECISION), scale))
    return exp.Add(this=before, expression=_hugeint(_shifted(behind, decimal(scale, scale))))


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
    is_zero = filled(":divisor = 0 AND :divided IS NOT NULL", divisor=divisor, divided=divided)
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
    trees = {f"x{i}": as_type(tree, kind, _STRING) for i, (tree, kind) in enumerate(arguments)}
    return filled(f"({' || '.join(f':{name}' for name in trees)})", **trees)


def _like(_function: str, arguments: Sequence[Typed]) -> exp.Expr:
    text, pattern = texts(arguments)
    return filled(r":text LIKE :pattern ESCAPE '\'", text=text, pattern=pattern)


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
    assert short is not None
    return filled(f"CASE WHEN abs(:x) >= {10**WHOLE} THEN :x ELSE :short END", x=tree, short=short)


def _hashed(function: str, arguments: Sequence[Typed]) -> exp.Expr:
    """The hash of a text's bytes, in digits of base 16."""
    text, *bits = arguments
    if bits and not (isinstance(bits[0][0], exp.Literal) and bits[0][0].this in ("0", "256")):
        raise UnlikeSparkError(f"`{function}` of other than 256 bits")
    return call("sha256" if bits else function, *texts([text]))


def _remainder(_function: str, arguments: Sequence[Typed]) -> exp.Expr:
    """The remainder of whole numbers: of DuckDB by zero it is null."""
    one, other = whole_numbers(arguments, _BIGINT, "a remainder")
    # The least number by -1 is too large for a quotient of 64 bits.
    rest = "CASE WHEN :other = -1 THEN 0 * sign(:one) ELSE :one % :other END"
    return _unless_zero(one, other, filled(rest, one=one, other=other))


def _modulus(_function: str, arguments: Sequence[Typed]) -> exp.Expr:
    """The remainder of whole numbers, or where that is negative the one behind it."""
    rest = _remainder("mod", arguments)
    behind = filled(":rest + :other", rest=rest, other=cast(arguments[1][0].copy(), _BIGINT))
    more = _remainder("mod", [(behind, _BIGINT), arguments[1]])
    return filled("CASE WHEN :rest < 0 THEN :more ELSE :rest END", rest=rest, more=more)


def _divided(_function: str, arguments: Sequence[Typed]) -> exp.Expr:
    """A quotient of whole numbers without its rest."""
    one, other = whole_numbers(arguments, _BIGINT, "`div`")
    return _unless_zero(one, other, filled(":one // :other", one=one, other=other))


def _of_double(template: str, function: str, arguments: Sequence[Typed]) -> exp.Expr:
    ((tree, kind),) = arguments
    found = None if isinstance(kind, str) else as_double(tree, kind)
    if found is None or kind == ANY or isinstance(kind, str) or kind.family != "number":
        raise UnlikeSparkError(f"`{function}` of `{kind}`")
    return filled(template, x=found)


_SIGN = """
    CASE WHEN isnan(:x) THEN :x WHEN :x > 0 THEN CAST(1 AS DOUBLE) WHEN :x < 0 THEN CAST(-1 AS DOUBLE) ELSE :x END
"""
"""1, -1, or the value itself where it is a zero or no number."""
_ROOT = "CASE WHEN :x < 0 THEN CAST('NaN' AS DOUBLE) ELSE sqrt(:x) END"
"""The square root, which is rounded once everywhere; of a negative number none."""


def _whole(function: str, arguments: Sequence[Typed]) -> exp.Expr:
    """A number rounded up or down; a double that is no number is 0, one beyond 64 bits an error."""
    ((tree, kind),) = arguments
    if not isinstance(kind, str) and kind.name.is_floating:
        rounded = f"CASE WHEN isnan(:x) THEN 0 ELSE CAST({function}(:x) AS BIGINT) END"
        return _of_double(rounded, function, arguments)
    if isinstance(kind, str) or digits(kind) is None:
        raise UnlikeSparkError(f"`{function}` of `{kind}`")
    return tree if kind.name.is_integer else call(function, tree)


_OF: Mapping[str, Callable[[str, Sequence[Typed]], exp.Expr]] = {
    "abs": _abs,
    "div": _divided,
    "isnan": partial(_of_double, "coalesce(isnan(:x), FALSE)"),
    "pmod": _modulus,
    "sign": partial(_of_double, _SIGN),
    "sqrt": partial(_of_double, _ROOT),
    "concat": _concat,
    "like": _like,
    "mod": _remainder,
    "round": _rounded,
    "substring": _substring,
    **PATTERNS_OF,
    **STRINGS_OF,
    **TIMES_OF,
    **dict.fromkeys(("ceil", "floor"), _whole),
    **dict.fromkeys(("md5", "sha2"), _hashed),
}
_RETYPED = frozenset({"ceil", "floor", "mod", "pmod"})
"""Whose result has another type in DuckDB."""
