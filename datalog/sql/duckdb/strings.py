"""Functions of texts as Spark has them: what DuckDB has of the same value for every text, and what is made of that.

DuckDB counts characters as Spark does, by code points, but for `reverse`. Refused: numbers and separators that are not
written out. An error when they come: `lower`, `upper` and `initcap` of texts with letters of which the two differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sqlglot import exp

from datalog.model import ANY, ColumnType, TypeName
from datalog.sql.duckdb.templates import filled
from datalog.sql.duckdb.types import OTHERWISE, Typed, UnlikeSparkError, as_type, call, cast, unless

_STRING, _INT = ColumnType(TypeName.STRING), ColumnType(TypeName.INT)


def texts(arguments: Sequence[Typed]) -> list[exp.Expr]:
    """The trees of arguments that are texts.

    Raises:
        UnlikeSparkError: one is something else.
    """
    if any(kind not in (_STRING, ANY) for _, kind in arguments):
        raise UnlikeSparkError("a function of texts over other values")
    return [as_type(tree, kind, _STRING) for tree, kind in arguments]


_BLOCKS = (
    *(
        (0x0000, 0x024F),
        (0x0300, 0x058F),
        (0x0590, 0x109F),
        (0x1100, 0x11FF),
        (0x1E00, 0x1EFF),
        (0x2000, 0x2BFF),
    ),
    *((0x2E80, 0xA4CF), (0xAC00, 0xD7A3), (0xF900, 0xFAFF), (0xFE00, 0xFE0F), (0xFF00, 0xFFEF)),
    *((0x1F000, 0x1FAFF), (0x20000, 0x3134F)),
)
"""The scripts of living languages but Georgian, signs and pictures: of these every letter was held against Spark's."""
_LOWER, _UPPER = (0x0130, 0x03A3), (0x0149, 0x019B, 0x01F0, 0x0390, 0x03B0, 0x0587, *range(0x1E96, 0x1E9B))
_TITLE = (0x00DF, *range(0x01C4, 0x01CD), *range(0x01F1, 0x01F4), 0x03F4, 0x1E9E, 0x2126, 0x212A, 0x212B)
_BEFORE_WORDS = (*_LOWER, *_UPPER, *_TITLE)
"""Letters among them that become several, or others at the end of a word, or differ from one version to the next; the
last ones where a word begins."""


def _alike(others: Sequence[int]) -> str:
    """The class of the letters but for some."""
    parts: list[tuple[int, int]] = []
    for low, high in sorted([*_BLOCKS, *((other, other) for other in others)]):
        if low == high:
            first, last = parts.pop()
            parts += [(first, low - 1), (high + 1, last)]
        else:
            parts.append((low, high))
    return "[" + "".join(f"\\x{{{low:x}}}-\\x{{{high:x}}}" for low, high in parts if low <= high) + "]"


_FIRST, _REST = (_alike((0x20, *others)) for others in (_BEFORE_WORDS, _LOWER))
ALIKE = {
    "lower": f"{_alike(_LOWER)}*",
    "upper": f"{_alike(_UPPER)}*",
    "initcap": f" *({_FIRST}{_REST}* +)*({_FIRST}{_REST}*)?",
}
"""The patterns of texts of which all letters have the same case in Spark and DuckDB."""


def only_alike(function: str, tree: exp.Expr, value: exp.Expr) -> exp.Expr:
    """A value, or an error where a text has letters of which Spark makes other ones."""
    test = filled(
        "strlen(:x) <> length(:x) AND NOT regexp_full_match(:x, :alike)", x=tree, alike=ALIKE[function]
    )
    message = f"`{function}` of a text with letters such as {_SUCH_AS[function]} {OTHERWISE}"
    return unless(test, exp.Literal.string(message), value)


_SUCH_AS = {"lower": "`Σ` or `İ`", "upper": "`ŉ` or `և`", "initcap": "`ß` or `Σ`"}


def _plain(function: str, arguments: Sequence[Typed]) -> exp.Expr:
    return call(function, *texts(arguments))


def _length(function: str, arguments: Sequence[Typed]) -> exp.Expr:
    return cast(_plain(function, arguments), _INT)


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
    """A part of a text, from 1, or from the end where the number is negative."""
    text, separator, (number, kind) = arguments
    count = number.this if isinstance(number, exp.Neg) else number
    _number(function, (count, kind), 1)
    return call(function, *texts([text]), _written(function, separator), number)


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
    first = int(_number(function, start[0], 1).name)
    rest = filled("instr(substring(:text, :first), :sought)", text=other, first=first, sought=one)
    return cast(filled(_PLACE, sought=one, text=other, rest=rest, before=first - 1), _INT)


_PLACE = """
    CASE WHEN :sought = '' AND :text IS NOT NULL THEN 1 WHEN :rest = 0 THEN 0 ELSE :rest + :before END
"""


def _reversed(_function: str, arguments: Sequence[Typed]) -> exp.Expr:
    (tree,) = texts(arguments)
    return filled("array_to_string(list_reverse(string_split(:x, '')), '')", x=tree)


def _words(function: str, arguments: Sequence[Typed]) -> exp.Expr:
    """The words between blanks with a first letter in upper case, all others in lower case."""
    (tree,) = texts(arguments)
    capital = "lambda word: upper(substring(word, 1, 1)) || substring(word, 2)"
    made = f"array_to_string(list_transform(string_split(lower(:x), ' '), {capital}), ' ')"
    return only_alike(function, tree, filled(made, x=tree))


def _lower(function: str, arguments: Sequence[Typed]) -> exp.Expr:
    (tree,) = texts(arguments)
    return only_alike(function, tree, call(function, tree))


def _upper(function: str, arguments: Sequence[Typed]) -> exp.Expr:
    (tree,) = texts(arguments)
    return only_alike(function, tree, filled("upper(replace(:x, 'ß', 'SS'))", x=tree))


STRINGS_OF: Mapping[str, Callable[[str, Sequence[Typed]], exp.Expr]] = {
    **dict.fromkeys(("ascii", "replace", "sha1"), _plain),
    "length": _length,
    "translate": _translated,
    **dict.fromkeys(("ltrim", "rtrim", "trim"), _trim),
    **dict.fromkeys(("repeat", "right"), _numbered),
    **dict.fromkeys(("lpad", "rpad"), _padded),
    "lower": _lower,
    "upper": _upper,
    "initcap": _words,
    "locate": _place,
    "reverse": _reversed,
    "split_part": _part,
}
"""The functions of texts, by their names."""
