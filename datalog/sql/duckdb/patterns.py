r"""Functions of regular expressions as Spark has them, which are Java's, in the dialect of DuckDB, which is RE2's.

A pattern is written anew from its sets of characters, so that `.`, `\s` and `(?i)` are those of Java. Refused:
patterns that are not written out or not known. An error when they come: texts that end in a line terminator where a
pattern asks for the end of a text, which Java finds before it, too; and texts with U+017F or U+212A where it asks for
an s or a k of either case, which RE2 may take these for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sqlglot import exp

from datalog.model.pattern_trees import Characters, Pattern, nodes, written
from datalog.model.patterns import known_pattern, pattern_of_group, replaced
from datalog.sql.duckdb.strings import texts
from datalog.sql.duckdb.templates import filled
from datalog.sql.duckdb.types import OTHERWISE, Typed, UnlikeSparkError, unless

_LINE_END = r"[\n\r\x{85}\x{2028}\x{2029}]\z"
_OF_EITHER_CASE = {Characters(tuple((code, code) for code in map(ord, pair))) for pair in ("Kk", "Ss")}
_TAKEN_FOR_THEM = r"[\x{17f}\x{212a}]"


def _constant(function: str, argument: Typed) -> str:
    """A text that is written out."""
    (tree,) = texts([argument])
    inside = tree.this if isinstance(tree, exp.Cast) else tree
    if not isinstance(inside, exp.Literal) or not inside.is_string:
        raise UnlikeSparkError(f"`{function}` with a text that is not written out")
    return str(inside.this)


def _guarded(
    function: str, pattern: Pattern | None, tree: exp.Expr, template: str, **more: str | int
) -> exp.Expr:
    """A value, or an error where a text is one of which it may be another one."""
    if pattern is None:
        raise UnlikeSparkError(f"`{function}` with this pattern")
    sought = written(pattern.tree, lambda code: f"\\x{{{code:x}}}", r"\z")
    value = filled(template, x=tree, sought=sought, **more)
    wrong = [_LINE_END] if pattern.has_end else []
    if not _OF_EITHER_CASE.isdisjoint(nodes(pattern.tree)):
        wrong.append(_TAKEN_FOR_THEM)
    if not wrong:
        return value
    message = f"`{function}` of a text that ends in a line terminator, or has U+017F, {OTHERWISE}"
    test = filled("regexp_matches(:x, :wrong)", x=tree, wrong="|".join(wrong))
    return unless(test, exp.Literal.string(message), value)


def _matches(function: str, arguments: Sequence[Typed]) -> exp.Expr:
    (tree,), pattern = texts(arguments[:1]), known_pattern(_constant(function, arguments[1]))
    return _guarded(function, pattern, tree, "regexp_matches(:x, :sought)")


def _replaced(function: str, arguments: Sequence[Typed]) -> exp.Expr:
    (tree,), (sought, instead) = texts(arguments[:1]), (_constant(function, one) for one in arguments[1:])
    pattern, parts = replaced(sought, instead) or (None, ())
    its = "".join(part if isinstance(part, str) else f"\\{part}" for part in parts)
    return _guarded(function, pattern, tree, "regexp_replace(:x, :sought, :its, 'g')", its=its)


def _extracted(function: str, arguments: Sequence[Typed]) -> exp.Expr:
    (tree,), sought, (group, _) = texts(arguments[:1]), _constant(function, arguments[1]), arguments[2]
    number = int(group.name) if isinstance(group, exp.Literal) and group.is_int else -1
    pattern = pattern_of_group(sought, number)
    return _guarded(function, pattern, tree, "regexp_extract(:x, :sought, :number)", number=number)


PATTERNS_OF: Mapping[str, Callable[[str, Sequence[Typed]], exp.Expr]] = {
    "regexp_extract": _extracted,
    "regexp_replace": _replaced,
    "rlike": _matches,
}
"""The functions of patterns, by their names."""
