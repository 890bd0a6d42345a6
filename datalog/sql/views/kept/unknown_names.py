"""Names that mean nothing, or several things, in a query that no definition can hold.

What reads a query as a definition says so of the names that it comes to. Of the others this does: every column and
table of the query, as Spark finds them, without knowing what the query computes. Where a source has columns that are
not known (a table function, LATERAL VIEW, PIVOT, a view whose columns nobody knows), a name may be one of these: such
a name is passed over, never an error.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct, field
from sqlglot import exp

from datalog.copies import replace
from datalog.diagnostics import Code
from datalog.model import Variable
from datalog.sql.views.catalogue import Catalogue, Named
from datalog.sql.views.joins import merged_columns
from datalog.sql.views.limits import chain
from datalog.sql.views.scope import Meaning, Scope, Source
from datalog.sql.views.source import Problems, UnreadableError

Columns = tuple[str, ...] | None
"""The names of a query's columns; None where they are not known."""

_CLAUSES = ("where", "group", "having", "qualify", "windows")
_UNITS = (
    *("year", "quarter", "month", "week", "day", "dayofyear", "hour", "minute", "second"),
    *("millisecond", "microsecond"),
)
_WORDS = frozenset(
    (*_UNITS, *(f"{unit}s" for unit in _UNITS), "_metadata", "user", "session_user", "current_catalog")
) | {"current_database", "current_schema", "grouping__id", "localtimestamp"}
"""Names that Spark knows without a table, and words for parts of a time."""
_FILES = ("parquet", "csv", "json", "orc", "delta", "text", "avro", "binaryfile")
"""What stands before the path of a file in FROM."""


def _is_made_up(column: exp.Column, aliases: Iterable[str]) -> bool:
    """Whether a name may be Spark's for a column without one, `count(1)`, or all columns, or part of a value."""
    first, *more = column.parts
    if more and first.name.casefold() in aliases:
        return True
    return not column.name.isidentifier() or column.name.casefold() == "all"


def report_unknown(tree: exp.Expr, catalogue: Catalogue, problems: Problems) -> Columns:
    """Notes names of a query that are wrong (DL101, DL403, DL404); the names of its columns."""
    return _Names(catalogue, problems).query(tree)


class _Place(Struct, frozen=True):
    """What names mean at a place.

    Attributes:
        scope: the sources whose columns are known.
        is_open: whether a name that these do not have may still mean something.
    """

    scope: Scope = field(default_factory=Scope)
    is_open: bool = False

    @property
    def sources(self) -> Iterator[Source]:
        """Those of the query and of the queries around."""
        return (source for scope in self.scope.outwards() for source in scope.sources)


class _Names(Struct, frozen=True):
    """One query.

    Attributes:
        problems: where what is wrong is noted.
        expressions: the columns of the common table expressions around, by case-folded name.
        around: what the names of the query around mean.
    """

    catalogue: Catalogue
    problems: Problems
    expressions: Mapping[str, Columns] = field(default_factory=dict)
    around: _Place | None = None

    def query(self, tree: exp.Expr) -> Columns:
        """The columns of a query, everything in it looked at."""
        here = self._within(tree)
        match tree:
            case exp.Subquery() | exp.Paren():
                return here.query(tree.this)
            case exp.SetOperation():
                first, *_ = [here.query(side) for side in chain(tree)]
                return first
            case exp.Select():
                return here._select(tree)
        return None

    def _within(self, tree: exp.Expr) -> _Names:
        with_ = tree.args.get("with_")
        if with_ is None:
            return self
        here = replace(self, expressions=dict(self.expressions))
        for one in with_.expressions:
            given = tuple(column.name for column in one.args["alias"].columns) or None
            known = dict(here.expressions)
            if with_.args.get("recursive"):
                known[one.alias.casefold()] = given
            found = replace(here, expressions=known).query(one.this)
            here = replace(here, expressions={**here.expressions, one.alias.casefold(): given or found})
        return here

    def _select(self, tree: exp.Select) -> Columns:
        place = (
            _Place() if self.around is None else _Place(Scope(around=self.around.scope), self.around.is_open)
        )
        if tree.args.get("from_") is not None:
            place = self._joined(place, tree.args["from_"].this, tree.args.get("joins") or [])
        if tree.args.get("laterals") or tree.args.get("match"):
            place = replace(place, is_open=True)
        names, aliases = self._items(tree, place)
        named = replace(place, scope=replace(place.scope, aliases=aliases))
        for clause in _CLAUSES:
            its = place if clause == "where" else named
            if clause == "having":
                its = replace(named, scope=replace(named.scope, aliases_first=True))
            value = tree.args.get(clause)
            for one in value if isinstance(value, list) else [value]:
                self._expression(one, its)
        first = replace(named, scope=replace(named.scope, aliases_first=True))
        order = tree.args.get("order")
        for one in () if order is None else order.expressions:
            if not any(_is_made_up(column, aliases) for column in one.find_all(exp.Column)):
                self._expression(one, first)
        return names

    def _items(self, tree: exp.Select, place: _Place) -> tuple[Columns, dict[str, Meaning]]:
        names: list[str] | None = []
        aliases: dict[str, Meaning] = {}
        for node in tree.expressions:
            star = node.this if isinstance(node, exp.Column) else node
            if isinstance(star, exp.Star):
                its = self._star(node, place)
                names = None if names is None or its is None or any(star.args.values()) else [*names, *its]
                continue
            self._expression(node, replace(place, scope=replace(place.scope, aliases=dict(aliases))))
            name = node.alias_or_name
            names = None if names is None or not name else [*names, name]
            if isinstance(node, exp.Alias):
                aliases.setdefault(name.casefold(), (Variable(name), None))
        return None if names is None else tuple(names), aliases

    def _star(self, node: exp.Expr, place: _Place) -> Columns:
        qualifier = [part.name for part in reversed(node.parts[:-1])] if isinstance(node, exp.Column) else []
        known = any(source.fits(qualifier) for source in place.scope.sources)
        if place.is_open or not known:
            if qualifier and not place.is_open and not self._is_value(qualifier, place):
                shown = ".".join(reversed(qualifier))
                self.problems.error(Code.UNKNOWN_RELATION, f"`{shown}` has no columns here", node)
            return None
        return tuple(name for name, _ in place.scope.star(qualifier))

    # ---------------------------------------------------------------------------------------------- FROM

    def _joined(self, place: _Place, first: exp.Expr, joins: Iterable[exp.Join]) -> _Place:
        place = self._beside(place, self._source(first))
        for join in joins:
            right, kind = self._source(join.this), join.kind
            both = self._beside(place, right)
            if join.args.get("using") or join.method == "NATURAL":
                left = replace(place.scope, around=None)
                merged = dict(left.merged)
                if both.is_open:
                    merged |= {
                        one.name.casefold(): (one.name, (Variable(one.name), None))
                        for one in join.args.get("using") or ()
                    }
                else:
                    with contextlib.suppress(UnreadableError):
                        merged, _ = merged_columns(left, right.scope, join, self.problems)
                both = replace(both, scope=replace(both.scope, merged=merged))
            self._expression(join.args.get("on"), both)
            place = both if kind not in ("SEMI", "ANTI") else place
        return place

    @staticmethod
    def _beside(place: _Place, right: _Place) -> _Place:
        scope, its = place.scope, right.scope
        made = replace(scope, sources=(*scope.sources, *its.sources), merged={**scope.merged, **its.merged})
        return _Place(made, place.is_open or right.is_open)

    def _source(self, tree: exp.Expr) -> _Place:
        """The columns of one table or subquery of FROM, under its alias."""
        alias = tree.args.get("alias")
        given = () if alias is None else tuple(column.name for column in alias.columns)
        if any(tree.args.get(part) for part in ("pivots", "laterals", "match")):
            return _Place(is_open=True)
        qualifier: tuple[str, ...] = (alias.name,) if alias is not None and alias.name else ()
        columns: Columns
        if isinstance(tree, exp.Subquery) and isinstance(tree.this, exp.Table):
            inside = replace(self, around=None)._joined(
                _Place(), tree.this, tree.this.args.get("joins") or []
            )
            if alias is None:
                return inside
            columns = None if inside.is_open else tuple(name for name, _ in inside.scope.star())
        elif isinstance(tree, exp.Subquery):
            columns = replace(self, around=None).query(tree)
        elif isinstance(tree, exp.Table) and isinstance(tree.this, exp.Identifier):
            columns = self._table(tree)
            qualifier = qualifier or tuple(part.name for part in reversed(tree.parts))
        else:
            columns = None
        if columns is None or (given and len(given) != len(columns)):
            return _Place(is_open=True)
        return _Place(Scope((Source(qualifier, tuple((n, Variable(n)) for n in given or columns)),)))

    def _table(self, tree: exp.Table) -> Columns:
        if not tree.db and tree.name.casefold() in self.expressions:
            return self.expressions[tree.name.casefold()]
        views, bases = self.catalogue.meant(tuple(part.name for part in reversed(tree.parts)))
        if not views and not bases and tree.db.casefold() not in _FILES:
            self.catalogue.unknown(tree, self.problems)
        if len(views) + len(bases) != 1:
            return None
        if views:
            return self._view(views[0])
        return (*bases[0].column_names, *(one.name for one in bases[0].unread)) or None

    def _view(self, view: Named) -> Columns:
        if view in self.catalogue.reading:
            return None
        self.catalogue.read(view)
        return tuple(column.name for column in view.columns_found) or view.columns or view.names

    # --------------------------------------------------------------------------------------- expressions

    def _expression(self, tree: exp.Expr | None, place: _Place) -> None:
        if tree is None:
            return
        waiting = [tree]
        while waiting:
            node = waiting.pop()
            if isinstance(node, exp.Query):
                replace(self, around=place).query(node)
            elif isinstance(node, exp.Column):
                self._column(node, place)
            elif not isinstance(node, exp.Lambda):
                waiting += reversed(list(node.iter_expressions()))

    def _column(self, node: exp.Column, place: _Place) -> None:
        qualifier = [part.name for part in reversed(node.parts[:-1])]
        if not isinstance(node.this, exp.Identifier) or (not qualifier and node.name.casefold() in _WORDS):
            return
        fitting = [source for source in place.scope.sources if source.fits(qualifier)]
        others = [source for source in place.sources if source not in fitting and source.fits(qualifier)]
        if qualifier and not fitting and not others:
            if place.is_open or len(qualifier) > 1 or self._is_value(qualifier, place):
                return
        elif not fitting and any(one.named(part) for one in place.scope.sources for part in qualifier):
            return  # a part of a column here goes before a table around
        elif not qualifier and place.is_open:
            return
        elif qualifier and (len(fitting) > 1 or (fitting and any(one.named(node.name) for one in others))):
            return  # Spark looks for a column in each table of that name, also around the query
        with contextlib.suppress(UnreadableError):
            place.scope.resolve(node, self.problems)

    @staticmethod
    def _is_value(qualifier: list[str], place: _Place) -> bool:
        """Whether what stands before a name may be a column whose values have parts."""
        return any(source.named(part) for source in place.sources for part in qualifier)
