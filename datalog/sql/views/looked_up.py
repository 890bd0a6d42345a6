"""What is looked up in an expression as a helper that follows changes without reading rows, and a query over it.

    customer IN (SELECT c FROM blocked WHERE day > '2026-01-01')

    SELECT c AS value_1, count(*) AS count_1 FROM blocked WHERE day > '2026-01-01' GROUP BY c
    customer IN (SELECT value_1 FROM helper)

Conditions of soundness:

1. Whether a value is among others, or not, or unknown, depends on which others there are, null being one; not on how
   often each stands. So their groups say the same, and of EXISTS the number of all rows does.
2. A query that is a value has one row, or it is an error: it is kept as it is.
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from datalog.sql.views.as_written import parsed
from datalog.sql.views.inner_queries import Asked
from datalog.sql.views.row_helpers import alias_behind
from datalog.sql.views.splitting import NOT_SPLIT, NoSplitError, Split, Tokens, quoted

_PARTS = frozenset({"with_", "expressions", "from_", "joins", "where"})


def split_look_up(text: str, asked: Asked, helper: str) -> Split | None:
    """A query of an expression as a helper and a query over it; None if it is another than of rows one by one.

    Args:
        text: the query in Spark SQL, which can be read alone.
        asked: whether it is behind IN or EXISTS, or is a value.
        helper: the helper's name.

    >>> print(split_look_up("SELECT c FROM blocked", "in", "h").helper)
    SELECT c AS value_1, count(*) AS count_1 FROM blocked GROUP BY c
    """
    try:
        return _split(text, asked, helper)
    except NOT_SPLIT:
        return None


def _split(text: str, asked: Asked, helper: str) -> Split:
    tree, tokens = parsed(text), Tokens(text)
    select, start = tokens.first(TokenType.SELECT), tokens.first(TokenType.FROM)
    is_plain = isinstance(tree, exp.Select) and not any(
        v for part, v in tree.args.items() if part not in _PARTS
    )
    if not is_plain or select is None or start is None or tree.find(exp.AggFunc, exp.Window) is not None:
        raise NoSplitError
    around, source = text[: tokens.all[select].end + 1], text[tokens.all[start].start :]
    name = quoted(helper)
    if asked == "exists":
        made, rest = (
            f"{around} count(*) AS count_1 {source}",
            f"SELECT 1 AS one FROM {name} WHERE count_1 > 0",  # noqa: S608
        )
        columns = [exp.Count(this=exp.Star(), big_int=True)]
    else:
        (item,) = tree.expressions if len(tree.expressions) == 1 else (None,)
        (value,) = tokens.parts(select + 1, start)
        if item is None or item.is_star or item.find(exp.Column) is None:
            raise NoSplitError
        if isinstance(item, exp.Alias):
            value = value[: -len(alias_behind(value))].rstrip()
        rest, columns = f"SELECT value_1 FROM {name}", [item.unalias()]  # noqa: S608
        made = f"{around} {value} AS value_1 {source}"
        if asked == "in":
            made = f"{around} {value} AS value_1, count(*) AS count_1 {source} GROUP BY {value}"
            columns.append(exp.Count(this=exp.Star(), big_int=True))
    found = parsed(made)
    same = all(found.args.get(part) == tree.args.get(part) for part in ("with_", "from_", "joins", "where"))
    if not same or [one.unalias() for one in found.expressions] != columns:
        raise NoSplitError
    return Split(made, rest)
