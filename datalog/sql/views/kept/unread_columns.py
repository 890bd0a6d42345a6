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
) -> Iterator[tuple[str, Unmodelled, str]]:
    """The columns that are not read which a query may use itself, not by reading a view: their types, and what to do.

    `leaves_out`: whether a star may name them to leave them out.
    """
    if not any(base.unread for base in catalogue.declarations.values()):
        return
    for table in _tables(tree):
        for base in catalogue.meant(tuple(part.name for part in reversed(table.parts)))[1]:
            out = {column.name.casefold() for column in base.unread} if leaves_out else {""}
            for column in base.unread:
                kind = column.unmodelled
                if kind is not None and _may_use(tree, table, column.name.casefold(), out):
                    stars = any(not _stands_for_rows(star) for star in tree.find_all(exp.Star))
                    others = ", ".join(f"`{one}`" for one in base.column_names)
                    hint = f"instead of a `*` list the columns of `{base.name}` that are read: {others}"
                    yield f"`{column.name}` of `{base.name}`", kind, hint if stars else kind.hint


def not_run_for(tree: exp.Expr, catalogue: Catalogue) -> NotToRun | None:
    """Why the text of a query is not run that uses a column that is not read, or texts of which equal ones differ.

    Of stored views a collation is theirs, too: they have the texts, and not how they are compared.
    """
    reasons = (_because_of(*one) for one in used_unread(tree, catalogue, leaves_out=False))
    return next(chain(reasons, _collated_below(tree, catalogue, set(), is_below=False)), None)


def _because_of(column: str, kind: Unmodelled, hint: str) -> NotToRun:
    why = "in which equal texts differ" if kind.is_text else "which is not read"
    return NotToRun(f"it uses the column {column}, of type `{kind.text}`, {why}", hint)


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
            yield from (_because_of(*one) for one in used if one[1].hint == BINARY_HINT)
            yield from _collated_below(view.tree, catalogue, seen, is_below=True)


def _is_collation(node: exp.Collate) -> bool:
    """Whether a collation is another than that of bytes."""
    return str(node.expression.name).casefold() != BINARY_COLLATION


def _tables(tree: exp.Expr) -> list[exp.Table]:
    try:
        return stored_tables(tree) if isinstance(tree, exp.Query) else []
    except SqlglotError:  # whose names mean several things: it is said elsewhere
        return list(tree.find_all(exp.Table))


def _may_use(
    tree: exp.Expr,
    source: exp.Expr,
    name: str,
    out: set[str],
    seen: frozenset[int] = frozenset(),
) -> bool:
    """Whether a query may use a column of a table, or of a query of it in its FROM, beyond showing it to another query.

    Args:
        tree: the query.
        source: the table, or the query of it in parentheses.
        name: the column's, in lower case.
        out: what a star leaves out that does not stand for it.
        seen: the sources that were looked at.
    """
    natural = any(join.args.get("method") for join in tree.find_all(exp.Join))
    aliases = list(_aliases(source))
    if natural or any(one.args.get("columns") for one in aliases) or tree.find(exp.Pivot) is not None:
        return True
    mine = {source.name.casefold(), *(one.name.casefold() for one in aliases)} - {""}
    beside = _beside(tree, source)
    named = (one for one in tree.find_all(exp.Identifier) if one.name.casefold() == name)
    if any(not _is_another(one, mine, beside, tree) for one in named):
        return True
    for star in tree.find_all(exp.Star):
        if "" in out and name in {one.name.casefold() for one in star.args.get("except_") or ()}:
            return True
        if _is_star_of(star, source, mine, out):
            shown = _shown_by(star, tree)
            if shown is None:
                return True
            left = [one for one in shown if id(one) not in seen]
            if any(_may_use(tree, one, name, out, seen | {id(source)}) for one in left):
                return True
    return False


def _shown_by(star: exp.Star, tree: exp.Expr) -> list[exp.Expr] | None:
    """What stands in a FROM for the query whose select list a star is in; None where its columns are used at once."""
    query = star.find_ancestor(exp.Select)
    item = star.parent if isinstance(star.parent, exp.Column) else star
    if query is None or item.parent is not query or any(map(query.args.get, ("distinct", "group", "having"))):
        return None
    if any(map(_is_by_place, map(query.args.get, ("order", "sort", "cluster", "distribute")))):
        return None
    above = query.parent
    if isinstance(above, exp.CTE) and not above.args["alias"].args.get("columns"):
        mine = above.alias.casefold()
        return [one for one in tree.find_all(exp.Table) if not one.db and one.name.casefold() == mine]
    if isinstance(above, exp.Subquery) and isinstance(above.parent, exp.From | exp.Join):
        return [above]
    return None


def _is_by_place(order: exp.Expr | None) -> bool:
    """Whether an order counts the columns of a select list: `ORDER BY 2`, `ORDER BY ALL`."""
    by = (
        ()
        if order is None
        else (one.this if isinstance(one, exp.Ordered) else one for one in order.expressions)
    )
    return any(isinstance(one, exp.Literal) or one.name.casefold() == "all" for one in by)


def _aliases(source: exp.Expr) -> Iterator[exp.TableAlias]:
    """The names that a source has in its FROM, and those of what stands around it there: `(t) x`."""
    node: exp.Expr | None = source
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


def _is_star_of(star: exp.Star, source: exp.Expr, mine: set[str], out: set[str]) -> bool:
    """Whether a star may stand for the columns of a source, without leaving out those that are not read."""
    if _stands_for_rows(star) or out <= {one.name.casefold() for one in star.args.get("except_") or ()}:
        return False
    column = star.parent
    if isinstance(column, exp.Column) and column.table:
        return column.table.casefold() in mine
    return star.find_ancestor(exp.Select) is source.find_ancestor(exp.Select)


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
