"""What is told of a view that could not be read as a definition, by other readings of its query.

LEFT JOINs whose rows tell what they are made of     (`outer_joins.py`)
rows without a match                                 (`anti_joins.py`)
LEFT JOINs along foreign keys, as two queries        (`partners.py`)
groups over a union: those over each of its queries
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct, field
from sqlglot import exp

from datalog.copies import replace
from datalog.model import Semantics, ViewDefinition
from datalog.sql.views.blocks import named_block
from datalog.sql.views.catalogue import Named
from datalog.sql.views.nested.anti_joins import anti_join
from datalog.sql.views.outer.outer_joins import outer_join
from datalog.sql.views.outer.outer_sources import NotToldError
from datalog.sql.views.outside import report_outside
from datalog.sql.views.query import QueryReader
from datalog.sql.views.scope import Query, Variables
from datalog.sql.views.select import GroupedUnionError
from datalog.sql.views.source import UnreadableError

_UNMATCHED = "`{}`: whether a row has a match is told by what comes and goes, not by the definition alone"
_PARTNERS = "`{}` groups rows with partners in its LEFT JOINs, and rows without"
_BY_QUERIES = "the view is kept as text, and decided by the groups of each query of the union"
_BY_PARTNERS = (
    "the view is kept as text, and decided by its groups of rows with partners, and of those without"
)


class Otherwise(Struct, frozen=True):
    """What is told of a view.

    Attributes:
        told: attributes of the view that is kept as text.
        is_read: whether nothing is wrong with it any more.
        query: the query that it is read as, with its variables, if it need not be text.
        hint: what to do for it to be told.
        label: what is said of it in place of what is wrong.
    """

    told: Mapping[str, Any] = field(default_factory=dict)
    is_read: bool = False
    query: tuple[Query, Variables] | None = None
    hint: str | None = None
    label: str | None = None


def otherwise(view: Named, error: UnreadableError, apart: Callable[[], QueryReader]) -> Otherwise:
    """What is told of a view that could not be read; `apart` makes what reads it once more, its problems apart."""
    told, label, why = dict[str, Any](), None, None
    if isinstance(error, GroupedUnionError) and error.select is view.tree and error.drafts:
        told, label = {"parts": _parts(view, error)}, _BY_QUERIES
    for unfolds in (True, None):
        try:
            outer = outer_join(replace(apart(), unfolds=unfolds), view.tree, view.name, view.columns)
        except NotToldError as reason:
            why = why or str(reason)
            continue
        if outer is not None:
            told |= {"columns": outer.names, "outer": outer.outer}
            return Otherwise(told, is_read=True, hint=outer.hint)
    try:
        anti = anti_join(apart(), view.tree, view.name, view.columns)
        if anti is not None:
            told |= {"columns": anti[0], "anti": anti[1], "reasons": (_UNMATCHED.format(view.name),)}
            return Otherwise(told, is_read=True)
    except NotToldError as reason:
        why = str(reason)
    found = None if told else _with_partners_apart(view, replace(apart(), unfolds=True, splits=True))
    return found or Otherwise(told, label=label, hint=why)


def _with_partners_apart(view: Named, reader: QueryReader) -> Otherwise | None:
    """A view whose LEFT JOINs are along foreign keys; None of another one."""
    if not any(join.side == "LEFT" for join in view.tree.find_all(exp.Join)):
        return None
    report_outside(view.tree, reader.problems)
    if reader.problems.found or view.problems.source.outside is not None:
        return None
    try:
        query = reader.query(view.tree)
    except GroupedUnionError as error:
        if error.select is not view.tree or not error.drafts:
            return None
        parts = tuple(replace(one, is_split=True) for one in _parts(view, error))
        told = {"columns": view.columns or error.columns, "parts": parts}
        return (
            Otherwise({**told, "reasons": (_PARTNERS.format(view.name),)}, label=_BY_PARTNERS)
            if parts
            else None
        )
    except UnreadableError:
        return None
    return None if reader.problems.found else Otherwise(query=(query, reader.variables))


def _parts(view: Named, grouped: GroupedUnionError) -> tuple[ViewDefinition, ...]:
    """A view that groups over a union, over each query of it alone."""
    columns = view.columns or grouped.columns
    if len(columns) != len(grouped.columns):
        return ()
    return tuple(
        ViewDefinition(name, columns, (named_block(name, 0, draft),), Semantics.BAG, view.text, view.span)
        for number, draft in enumerate(grouped.drafts, 1)
        if (name := f"{view.name}#{number}")
    )
