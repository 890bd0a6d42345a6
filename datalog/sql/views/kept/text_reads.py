"""What a query that no definition can hold reads: the places of all names of relations in its text.

The text itself stays as it was written, for nobody but Spark knows what it means. Whatever might be a read and is not
understood as one makes the answer a reason, never a shorter list.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from itertools import chain

from sqlglot import exp
from sqlglot.errors import SqlglotError

from datalog.diagnostics import Diagnostic
from datalog.model import NotToRun, Span, TextQuery, TextRead
from datalog.sql.tables import read_set, stored_tables
from datalog.sql.views.catalogue import Catalogue, Named
from datalog.sql.views.kept.other_dialects import called_in_spark
from datalog.sql.views.kept.text_allowed import refused_in
from datalog.sql.views.kept.unread_columns import not_run_for
from datalog.sql.views.source import SqlText, offsets, statements
from datalog.sql.views.written_out.as_written import parsed

_PARTS = frozenset({"this", "db", "catalog", "alias", "joins", "laterals", "pivots"})
"""What may belong to a table in FROM."""

_VARIABLE = "${"
_REPLACED = (
    "it has `${`, and Spark replaces `${name}` by a setting or an environment variable, in quotes too",
    "write the text without it: `concat('$', '{')` for the two characters",
)


@dataclass(frozen=True, slots=True)
class Queries:
    """By name, the query as it is written of a view that reads views, or one of some tables.

    None if it is not to be run, and of a copy.
    """

    catalogue: Catalogue | None = None

    def __call__(self, name: str, tables: Container[str] = ()) -> TextQuery | None:
        """A view's query with what it reads."""
        views = () if self.catalogue is None else self.catalogue.views
        view = next((one for one in views if one.name == name and one.stored), None)
        if self.catalogue is None or view is None or view.problems.source.outside is not None:
            return None
        asked = (
            tuple(part.name for part in reversed(table.parts)) for table in view.tree.find_all(exp.Table)
        )
        meant = map(self.catalogue.meant, asked)
        if not any(views or any(base.name in tables for base in bases) for views, bases in meant):
            return None
        found = text_query(view.text, self.catalogue, view)
        return found if isinstance(found, TextQuery) else None

    def __reduce__(self) -> tuple[object, ...]:
        """Another process, which gets a copy, asks for none."""
        return Queries, ()


class _CannotTellError(Exception):
    """Why it cannot be told what a query reads, and what to do if that is known."""

    def __init__(self, why: str, hint: str | None = None) -> None:
        super().__init__(why)
        self.hint = hint


class _NotAllowedError(Exception):
    """What a query uses that is not allowed."""

    def __init__(self, found: NotToRun) -> None:
        self.found = found


def text_query(text: str, catalogue: Catalogue, view: Named | None) -> TextQuery | NotToRun:
    """A query's text with all that it reads, or why it is not to be run."""
    try:
        return _query(text, catalogue, view, ())
    except _CannotTellError as error:
        return NotToRun(str(error), error.hint, None if view is None else view.span)
    except _NotAllowedError as error:
        return error.found


def _query(text: str, catalogue: Catalogue, of: Named | None, within: tuple[Named, ...]) -> TextQuery:
    problems: list[Diagnostic] = []
    found = list(statements(SqlText(text), problems))
    if problems or len(found) != 1 or not isinstance(found[0].tree, exp.Query):
        raise _CannotTellError("its text cannot be taken apart")
    tree = found[0].tree
    refused = refused_in(tree, text)
    for name in tree.find_all(exp.Identifier):
        # Spark ignores case in names; scope analysis does not.
        name.set("this", name.name.casefold())
    tables = [table for table in stored_tables(tree) if table.find_ancestor(exp.Hint) is None]
    reads = [_read(table, text, catalogue, within) for table in tables]
    if refused is not None:
        node, what, hint = refused
        why = f"it uses {what}, which is not among what a view that is run as text may use"
        raise _NotAllowedError(NotToRun(why, hint, _place(node, text, of)))
    columns = () if of is None else of.columns
    if any(_VARIABLE in one for one in (text, *columns)):
        raise _NotAllowedError(NotToRun(*_REPLACED, None if of is None else of.span))
    reads.sort(key=lambda read: read.start)
    below = (read.of.refused for read in reads if isinstance(read.of, TextQuery))
    refused_below = next((one for one in below if one is not None), None)
    refused_here = not_run_for(tree, catalogue)
    return TextQuery(text, tuple(reads), columns, refused_below or refused_here, _columns_named(tree))


def _place(node: exp.Expr, text: str, of: Named | None) -> Span | None:
    """The place of a part of a view's text in the file that the view stands in."""
    if of is None:
        return None
    around, first = node.parent, offsets(of.tree)
    within = offsets(node)
    while within is None and around is not None:
        within, around = offsets(around), around.parent
    if within is None or first is None:
        return of.span
    source = of.problems.source
    start = source.text.rfind(text, 0, first[0] + len(text))
    return of.span if start < 0 else source.span(start + within[0], start + within[1])


def _read(table: exp.Table, text: str, catalogue: Catalogue, within: tuple[Named, ...]) -> TextRead:
    parts = table.parts
    places = [offsets(part) for part in parts]
    if not all(isinstance(part, exp.Identifier) for part in parts) or None in places:
        its = table.this
        called = its.sql_name().lower() if isinstance(its, exp.GenerateSeries) else table.sql("spark")
        why = f"it reads `{called}`, which is no name of a relation"
        raise _CannotTellError(why, called_in_spark(called))
    beyond = [part for part, value in table.args.items() if value and part not in _PARTS]
    if beyond:
        raise _CannotTellError(f"it reads `{table.name}` with {beyond[0].upper().strip('_')}")
    known = [place for place in places if place is not None]
    start, end = known[0][0], known[-1][1]
    asked = tuple(part.name for part in reversed(parts))
    views, bases = catalogue.meant(asked)
    if len(views) + len(bases) != 1:
        what = "nothing that is known" if not views and not bases else "several relations"
        raise _CannotTellError(f"it reads `{text[start:end]}`, the name of {what}".replace("``", "`"))
    alias = None if table.args.get("alias") else text[known[-1][0] : end].strip("`").replace("``", "`")
    if bases:
        return TextRead(start, end, bases[0].name, alias)
    (view,) = views
    if view.stored:
        return TextRead(start, end, view.name, alias)
    if view in within:
        raise _CannotTellError(f"it reads `{view.name}`, which depends on itself")
    below = _query(view.text, catalogue, view, (*within, view))
    return TextRead(start, end, below, alias)


def _columns_named(tree: exp.Expr) -> frozenset[str] | None:
    """The names of columns that a query may use, in lower case; None where it uses some without their names."""
    stars = (star for star in tree.find_all(exp.Star) if not isinstance(star.parent, exp.Count))
    natural = (join for join in tree.find_all(exp.Join) if join.args.get("method"))
    aliases = (table.args.get("alias") for table in tree.find_all(exp.Table))
    renamed = (alias for alias in aliases if alias is not None and alias.args.get("columns"))
    if any(True for _ in chain(stars, natural, renamed, tree.find_all(exp.Pivot))):
        return None
    return frozenset(
        one.name.casefold()
        for one in tree.find_all(exp.Identifier)
        if not (isinstance(one.parent, exp.Table | exp.TableAlias) or one.arg_key == "table")
    )


def names_alone(text: str) -> bool:
    """Whether a query may read a table that it names without a database; one that is not understood may.

    >>> names_alone("with a as (select 1 from db.r) select 1 from a"), names_alone("select 1 from r")
    (False, True)
    """
    try:
        tree = parsed(text)
        return not isinstance(tree, exp.Query) or any(len(name) == 1 for name in read_set(tree))
    except SqlglotError:
        return True
