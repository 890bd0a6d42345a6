"""The same texts once more, where some views are tables."""

from __future__ import annotations

from collections.abc import Sequence

from datalog.model import Declaration
from datalog.sql.views.catalogue import Catalogue, Named
from datalog.sql.views.read import SqlViews, read_sql
from datalog.sql.views.source import SqlText


def with_tables(catalogue: Catalogue, tables: Sequence[Declaration], copy: str) -> SqlViews | None:
    """What texts define where views are tables of the same names, and each of these tables has a view of all its rows.

    Args:
        catalogue: what the texts speak of.
        tables: the views that are tables, with their columns and keys.
        copy: what the name of a table is followed by in that of the view of its rows.

    Returns:
        None where a view is called otherwise than its text says.
    """
    names = {one.name for one in tables}
    kept = [view for view in catalogue.views if view.name not in names]
    if any(view.columns and view.parts[0] != view.name for view in kept):
        return None
    copies = [SqlText(f"select * from {_quoted(name)}", parts=(name + copy,)) for name in sorted(names)]  # noqa: S608
    unfolded = [view.name for view in kept if not view.stored]
    declared = [*catalogue.declarations.values(), *tables]
    return read_sql([*map(_text, kept), *copies], declared, unfolded=unfolded)


def _text(view: Named) -> SqlText:
    its = view.problems.source
    text = view.text
    if view.columns:
        text = f"create view {_quoted(view.name)} ({', '.join(map(_quoted, view.columns))}) as {text}"
    return SqlText(text, its.name, view.parts, view.name, its.outside, its.kept, view.span)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
