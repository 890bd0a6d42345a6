"""Functions that sqlglot keeps in parts of their own, as calls of the model's functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sqlglot import exp

Call = tuple[str, Sequence[exp.Expr]]
"""A function's name, and its arguments in Spark's order."""

_SECONDS = "%Y-%mstrict-%dstrict %Hstrict:%Mstrict:%Sstrict"
"""The pattern of `unix_timestamp` where none is written."""


def _parts(name: str, *parts: str) -> Callable[[exp.Expr], Call | None]:
    """A call whose arguments are in some parts; an argument that is not written is left out."""

    def read(node: exp.Expr) -> Call | None:
        return name, [one for part in parts if isinstance(one := node.args.get(part), exp.Expr)]

    return read


def _trim(node: exp.Expr) -> Call | None:
    if node.args.get("expression") is not None or node.args.get("collation") is not None:
        return None
    names = {"": "trim", "BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}
    name = names.get(str(node.args.get("position") or "").upper())
    return None if name is None else (name, [node.this])


def _pad(node: exp.Expr) -> Call | None:
    padding = node.args.get("fill_pattern") or exp.Literal.string(" ")
    return "lpad" if node.args.get("is_left") else "rpad", [node.this, node.expression, padding]


def _initcap(node: exp.Expr) -> Call | None:
    between = node.args.get("expression")
    return ("initcap", [node.this]) if between is None or between == exp.Literal.string(" ") else None


def _unix_timestamp(node: exp.Expr) -> Call | None:
    if node.text("format") != _SECONDS or isinstance(node.this, exp.CurrentTimestamp):
        return None
    return "unix_timestamp", [node.this]


SHAPED: Mapping[type[exp.Expr], Callable[[exp.Expr], Call | None]] = {
    exp.Initcap: _initcap,
    exp.Pad: _pad,
    exp.Repeat: _parts("repeat", "this", "times"),
    exp.SplitPart: _parts("split_part", "this", "delimiter", "part_index"),
    exp.StrPosition: _parts("locate", "substr", "this", "position"),
    exp.StrToUnix: _unix_timestamp,
    exp.Translate: _parts("translate", "this", "from_", "to"),
    exp.Trim: _trim,
}
"""What a call of each kind is; None of one that is more than its function."""
NAMED: Mapping[str, str] = {"btrim": "trim", "make_date": "make_date", "pmod": "pmod"}
"""Functions that are read by the name that they are called by, with their arguments as they stand."""
