"""A query's own text with other names for what it reads."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from datalog.model import TextQuery, TextRead


def bound_text(query: TextQuery, names: Mapping[str, tuple[str, ...]]) -> str:
    """The text, in which each name of a relation is the name that it is bound under; nothing else is changed.

    Args:
        query: the text and all that it reads.
        names: for each relation that it reads, the parts of the name to read it by.

    Example:
        >>> from datalog.model import TextRead
        >>> text = "select orders.id from db.orders left join item i on i.id = orders.id"
        >>> query = TextQuery(text, (TextRead(22, 31, "orders", "orders"), TextRead(42, 46, "item")))
        >>> bound_text(query, {"orders": ("t0",), "item": ("t1",)})
        'select orders.id from `t0` as `orders` left join `t1` i on i.id = orders.id'
    """
    found = query.text
    for read in sorted(query.reads, key=lambda r: r.start, reverse=True):
        alias = "" if read.alias is None else f" as {_quoted(read.alias)}"
        found = found[: read.start] + _place(read, names) + alias + found[read.end :]
    return found


def _place(read: TextRead, names: Mapping[str, tuple[str, ...]]) -> str:
    if isinstance(read.of, str):
        return ".".join(map(_quoted, names[read.of]))
    below = bound_text(read.of, names)
    columns = f"({', '.join(map(_quoted, read.of.columns))})" if read.of.columns else ""
    # The text may end in a comment: its line ends before the parenthesis.
    return f"(select * from (\n{below}\n) as below{columns})"  # noqa: S608 - a query of the user's own


def _quoted(name: str) -> str:
    return exp.to_identifier(name, quoted=True).sql("spark")
