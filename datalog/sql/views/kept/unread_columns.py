"""Columns of tables whose types are not modelled: what uses one is neither analysed nor run.

    create table event (id bigint primary key, payload json, at date)
    select id, at from event            does without it: `payload` is no column of the relation `event`
    select * from event                 uses it

Whatever may be such a column is taken for one: in doubt a query is refused that would do without.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from sqlglot import exp
from sqlglot.errors import SqlglotError

from datalog.model import NotToRun, Unmodelled
from datalog.model.schema import BINARY_COLLATION, BINARY_HINT
from datalog.sql.tables import stored_tables
from datalog.sql.views.catalogue import Catalogue


def used_unread(tree: exp.Expr, catalogue: Catalogue) -> Iterator[tuple[str, Unmodelled]]:
    """The columns that are not read which a query may use itself, not by reading a view, with their types."""
    if not any(base.unread for base in catalogue.declarations.values()):
        return
    for table in _tables(tree):
        for base in catalogue.meant(tuple(part.name for part in reversed(table.parts)))[1]:
            names = {column.name.casefold() for column in base.unread}
            for column in base.unread:
                kind = column.unmodelled
                if kind is not None and _may_use(tree, table, column.name.casefold(), names):
                    yield f"`{column.name}` of `{base.name}`", kind


def not_run_for(tree: exp.Expr, catalogue: Catalogue) -> NotToRun | None:
    """Why the text of a query is not run that uses a column that is not read, or texts of which equal ones differ.

    Of stored views a collation is theirs, too: they have the texts, and not how they are compared.
    """
    reasons = (_because_of(*one) for one in used_unread(tree, catalogue))
    return next(chain(reasons, _collated_below(tree, catalogue, set(), is_below=False)), None)


def _because_of(column: str, kind: Unmodelled) -> NotToRun:
    why = "in which equal texts differ" if kind.is_text else "which is not read"
    return NotToRun(f"it uses the column {column}, of type `{kind.text}`, {why}", kind.hint)


def _collated_below(
    tree: exp.Expr, catalogue: Catalogue, seen: set[str], *, is_below: bool
) -> Iterator[NotToRun]:
    for table in _tables(tree):
        views, _ = catalogue.meant(tuple(part.name for part in reversed(table.parts)))
        for view in views:
            if (not view.stored and not is_below) or view.name in seen:
                continue  # a query that is unfolded is part of the text
            seen.add(view.name)
            if any(_is_collation(one) for one in view.tree.find_all(exp.Collate)):
                why = f"it reads `{view.name}`, with a COLLATE by which equal texts differ"
                yield NotToRun(why, BINARY_HINT)
            used = used_unread(view.tree, catalogue)
            yield from (_because_of(column, kind) for column, kind in used if kind.hint == BINARY_HINT)
            yield from _collated_below(view.tree, catalogue, seen, is_below=True)


def _is_collation(node: exp.Collate) -> bool:
    """Whether a collation is another than that of bytes."""
    return str(node.expression.name).casefold() != BINARY_COLLATION


def _tables(tree: exp.Expr) -> list[exp.Table]:
    try:
        return stored_tables(tree) if isinstance(tree, exp.Query) else []
    except SqlglotError:  # whose names mean several things: it is said elsewhere
        return list(tree.find_all(exp.Table))


def _may_use(tree: exp.Expr, table: exp.Table, name: str, unread: set[str]) -> bool:
    """Whether a query may use a column of one of its tables, given by its name in lower case."""
    alias = table.args.get("alias")
    natural = any(join.args.get("method") for join in tree.find_all(exp.Join))
    if natural or (alias is not None and alias.args.get("columns")) or tree.find(exp.Pivot) is not None:
        return True
    mine = table.alias_or_name.casefold()
    stars = (star for star in tree.find_all(exp.Star) if not _counts(star))
    if any(_is_star_of(star, table, mine, unread) for star in stars):
        return True
    others = {one.alias_or_name.casefold() for one in tree.find_all(exp.Table, exp.Subquery)}
    named = (one for one in tree.find_all(exp.Identifier) if one.name.casefold() == name)
    return any(not _is_another(one, mine, others) for one in named)


def _counts(star: exp.Star) -> bool:
    """Whether it stands for rows: `count(*)`, `exists (select * ..)`."""
    above = star.parent
    return isinstance(above, exp.Count) or (
        isinstance(above, exp.Select) and isinstance(above.parent, exp.Exists)
    )


def _is_star_of(star: exp.Star, table: exp.Table, mine: str, unread: set[str]) -> bool:
    """Whether a star may stand for the columns of a table, of which it does not leave out those that are not read."""
    if unread <= {one.name.casefold() for one in star.args.get("except_") or ()}:
        return False
    column = star.parent
    if isinstance(column, exp.Column) and column.table:
        return column.table.casefold() == mine
    return star.find_ancestor(exp.Select) is table.find_ancestor(exp.Select)


def _is_another(name: exp.Identifier, table: str, tables: set[str]) -> bool:
    """Whether a name is none of a column, or one of another table's column."""
    above = name.parent
    if isinstance(above, exp.Column):
        if name.arg_key != "this":  # `a.b` is a part of the column `a` where no table is called so
            return name.name.casefold() in tables
        is_left_out = isinstance(above.parent, exp.Star)
        return is_left_out or (bool(above.table) and above.table.casefold() != table)
    is_new = isinstance(above, exp.Alias) and name.arg_key == "alias"
    return is_new or isinstance(above, exp.Table | exp.TableAlias | exp.Star)
