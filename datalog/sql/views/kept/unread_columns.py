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


def used_unread(
    tree: exp.Expr, catalogue: Catalogue, *, leaves_out: bool = True
) -> Iterator[tuple[str, Unmodelled]]:
    """The columns that are not read which a query may use itself, not by reading a view, with their types.

    `leaves_out`: whether a star may name them to leave them out.
    """
    if not any(base.unread for base in catalogue.declarations.values()):
        return
    for table in _tables(tree):
        for base in catalogue.meant(tuple(part.name for part in reversed(table.parts)))[1]:
            names = {column.name.casefold() for column in base.unread}
            for column in base.unread:
                kind = column.unmodelled
                if kind is not None and _may_use(
                    tree, table, column.name.casefold(), names, leaves_out=leaves_out
                ):
                    yield f"`{column.name}` of `{base.name}`", kind


def not_run_for(tree: exp.Expr, catalogue: Catalogue) -> NotToRun | None:
    """Why the text of a query is not run that uses a column that is not read, or texts of which equal ones differ.

    Of stored views a collation is theirs, too: they have the texts, and not how they are compared.
    """
    reasons = (_because_of(*one) for one in used_unread(tree, catalogue, leaves_out=False))
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


def _may_use(tree: exp.Expr, table: exp.Table, name: str, unread: set[str], *, leaves_out: bool) -> bool:
    """Whether a query may use a column of one of its tables, given by its name in lower case."""
    natural = any(join.args.get("method") for join in tree.find_all(exp.Join))
    aliases = list(_aliases(table))
    if natural or any(one.args.get("columns") for one in aliases) or tree.find(exp.Pivot) is not None:
        return True
    mine = {table.name.casefold(), *(one.name.casefold() for one in aliases)}
    out = unread if leaves_out else {""}
    if any(_is_star_of(star, table, mine, out) for star in tree.find_all(exp.Star)):
        return True
    beside = _beside(tree, table)
    named = (one for one in tree.find_all(exp.Identifier) if one.name.casefold() == name)
    return any(not _is_another(one, mine, beside, tree) for one in named)


def _aliases(table: exp.Table) -> Iterator[exp.TableAlias]:
    """The names that a table has in its FROM, and those of what stands around it there: `(t) x`."""
    node: exp.Expr | None = table
    while node is not None and not isinstance(node, exp.Select):
        alias = node.args.get("alias")
        if isinstance(alias, exp.TableAlias):
            yield alias
        node = node.parent


def _beside(tree: exp.Expr, node: exp.Expr) -> set[str]:
    """The names of tables and subqueries in the FROM of the query that a node belongs to."""
    mine = node.find_ancestor(exp.Select)
    every = tree.find_all(exp.Table, exp.Subquery, exp.Lateral)
    return {one.alias_or_name.casefold() for one in every if one.find_ancestor(exp.Select) is mine}


def _is_star_of(star: exp.Star, table: exp.Table, mine: set[str], out: set[str]) -> bool:
    """Whether a star may stand for the columns of a table, without leaving out those that are not read."""
    if _stands_for_rows(star) or out <= {one.name.casefold() for one in star.args.get("except_") or ()}:
        return False
    column = star.parent
    if isinstance(column, exp.Column) and column.table:
        return column.table.casefold() in mine
    return star.find_ancestor(exp.Select) is table.find_ancestor(exp.Select)


def _stands_for_rows(star: exp.Star) -> bool:
    """`count(*)`, and `exists (select * ..)` where the columns do not tell which rows there are."""
    above = star.parent
    if isinstance(above, exp.Count):
        return above.this is star and not above.expressions
    if not isinstance(above, exp.Select) or not isinstance(above.parent, exp.Exists):
        return False
    return not any(
        above.args.get(part) for part in ("distinct", "group", "having", "qualify", "limit", "offset")
    )


def _is_another(name: exp.Identifier, mine: set[str], beside: set[str], tree: exp.Expr) -> bool:
    """Whether a name is none of a column, or one of another table's column."""
    above = name.parent
    if isinstance(above, exp.Column):
        if name.arg_key != "this":  # `a.b` is a part of the column `a`, unless a table beside it is called so
            return name.name.casefold() in beside | _beside(tree, above)
        is_left_out = isinstance(above.parent, exp.Star)
        return is_left_out or (bool(above.table) and above.table.casefold() not in mine)
    is_new = isinstance(above, exp.Alias) and name.arg_key == "alias"
    return is_new or isinstance(above, exp.Table | exp.TableAlias | exp.Star)
