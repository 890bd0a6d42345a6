"""GROUP BY ALL, written out as the places of what the select list does not aggregate.

    SELECT a, b + 1, sum(c) FROM r GROUP BY ALL
    SELECT a, b + 1, sum(c) FROM r GROUP BY 1, 2

Without such columns all rows are one group. It stays where `*`, a window, a subquery or an unknown call is selected,
and where some column may be called `all`: Spark groups by that, as it does beside ROLLUP and other columns.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from datalog.model import Declaration
from datalog.sql.views.kept.text_allowed import AGGREGATES, TEXT_FUNCTIONS
from datalog.sql.views.split.written_parts import Tokens
from datalog.sql.views.written_out.as_written import parsed

_FIRST = 10**9
"""Places that no select list has: they stand for ALL while it is looked for which SELECT it is of."""


def places_written_out(
    tree: exp.Expr, text: str, others: Iterable[exp.Expr], tables: Iterable[Declaration]
) -> tuple[exp.Expr, str]:
    """A query, as a tree and as it is written, with places for ALL; both as they are where none is written out.

    Args:
        tree: the query.
        text: how it is written.
        others: all queries that it may read.
        tables: all tables that it may read.
    """
    if not any(map(_is_by_all, tree.find_all(exp.Select))):
        return tree, text
    names = [one.name for other in others for one in other.find_all(exp.Identifier)]
    names += [name for table in tables for name in table.column_names]
    if any(name.casefold() == "all" for name in names):
        return tree, text
    return _tree(tree.copy()), _text(text)


def _tree(tree: exp.Expr) -> exp.Expr:
    for select in filter(_is_by_all, tree.find_all(exp.Select)):
        places = _places(select)
        if places is not None:
            select.set("group", exp.Group(expressions=[*map(exp.Literal.number, places)]) if places else None)
    return tree


def _text(text: str) -> str:
    tokens = Tokens(text)
    by = [i for i, one in enumerate(tokens.all[:-1]) if one.token_type is TokenType.GROUP_BY]
    by = [i for i in by if tokens.all[i + 1].token_type is TokenType.ALL]
    marked = _with(tokens, {i: f"GROUP BY {_FIRST + i}" for i in by})
    found = {}
    for select in parsed(marked).find_all(exp.Select):
        group = select.args.get("group")
        mark = group.expressions[0] if group is not None and len(group.expressions) == 1 else None
        if isinstance(mark, exp.Literal) and mark.is_int and int(mark.name) >= _FIRST:
            places = _places(select)
            if places is not None:
                found[int(mark.name) - _FIRST] = f"GROUP BY {', '.join(map(str, places))}" if places else ""
    return _with(tokens, found)


def _with(tokens: Tokens, new: dict[int, str]) -> str:
    """The text with something in place of each GROUP BY ALL."""
    text, at = "", 0
    for i, said in sorted(new.items()):
        text = f"{text}{tokens.text[at : tokens.all[i].start]}{said}"
        at = tokens.all[i + 1].end + 1
    return f"{text}{tokens.text[at:]}"


def _is_by_all(select: exp.Select) -> bool:
    group = select.args.get("group")
    return group is not None and [name for name, said in group.args.items() if said] == ["all"]


def _places(select: exp.Select) -> list[int] | None:
    """The places of what aggregates nothing; None if that is not known of each."""
    items = [item.unalias() for item in select.expressions]
    if any(item.is_star or item.find(exp.Window, exp.Query) or not _is_known(item) for item in items):
        return None
    return [place for place, item in enumerate(items, 1) if not item.find(exp.AggFunc)]


def _is_known(item: exp.Expr) -> bool:
    names = {call.name.lower() for call in item.find_all(exp.Anonymous)}
    return names.isdisjoint(AGGREGATES) and names <= TEXT_FUNCTIONS
