"""Texts cast to other types, as Spark does it in ANSI mode: those spelt as usual, and those that are surely no value.

A text that is spelt otherwise, and may be a value in Spark, is an error when it comes: `2026-1-5` as a date.
"""

from __future__ import annotations

from sqlglot import exp

from datalog.model import ColumnType, TypeName
from datalog.sql.duckdb.templates import filled
from datalog.sql.duckdb.texts import CAST_TO_TIME, DAY, matches, pattern_of
from datalog.sql.duckdb.types import OTHERWISE, call, cast


def cast_text(text: exp.Expr, kind: ColumnType, *, safe: bool = False) -> exp.Expr | None:
    """What `cast` makes of a text, or `try_cast`; an error where it is spelt so that Spark may have another value.

    None of a type that texts are not cast to.
    """
    pattern = _SPELT.get(kind.name) or pattern_of(kind)
    if pattern is None or kind.name is TypeName.FLOAT:
        return None
    is_fraction = kind.name in (TypeName.DECIMAL, TypeName.DOUBLE)
    bare = filled("trim(:text, :blank)", text=text, blank=_BLANK if is_fraction else f"{_BLANK}\x7f")
    value = filled("left(:bare, 10)", bare=bare) if kind.name is TypeName.DATE else bare
    made: exp.Expr = cast(value, kind)
    if kind.name is TypeName.BOOLEAN:
        made = filled("lower(:bare) IN ('t', 'true', 'y', 'yes', '1')", bare=bare)
    elif safe:
        made = exp.TryCast(this=value, to=made.args["to"])
    message = f"the value as `{kind}` of a text that is spelt otherwise than usual {OTHERWISE}: "
    wrong = call("error", exp.DPipe(this=exp.Literal.string(message), expression=text.copy()))
    ifs = [exp.If(this=matches(bare, pattern), true=made)]
    if not safe:
        return exp.Case(
            ifs=[exp.If(this=filled(":text IS NULL", text=text), true=exp.Null()), *ifs], default=wrong
        )
    may_be = "contains(:text, chr(0))"
    if not (kind.name.is_integer or kind.name is TypeName.BOOLEAN):
        may_be += " OR strlen(:text) <> length(:text) OR regexp_matches(:bare, :begin)"
    begin = {"number": r"^[+-]?(\.?\d|[nNiI])", "date": r"^[+-]?\d"}.get(kind.family, r"\d")
    doubt = filled(may_be, text=text, bare=bare, begin=begin)
    return exp.Case(ifs=[*ifs, exp.If(this=doubt, true=cast(wrong, kind))])


_SPELT = {
    TypeName.BOOLEAN: r"(?i)t|true|y|yes|1|f|false|n|no|0",
    TypeName.DATE: f"{DAY}([T ].*)?",
    TypeName.TIMESTAMP: CAST_TO_TIME,
    TypeName.DOUBLE: r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,2})?",
}
_BLANK = "".join(map(chr, range(1, 0x21)))
"""What Spark cuts off both ends of a text, but for the characters of code 0 and, of some types, 127."""
