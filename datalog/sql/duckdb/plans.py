"""A query of which only the shape is known as one query for DuckDB, with the types that its columns have in Spark.

Operators mean the same in both, expressions are those that view definitions may have, and everything else is refused:
of LIMIT an order that is not by columns of the result, of a window what is not on the list.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import TypeAlias

from msgspec import Struct, field
from sqlglot import exp

from datalog.model import ANY, ColumnType, Term, TypeName, Variable
from datalog.sql.affected.plan import (
    Aggregate,
    Combined,
    Distinct,
    Filter,
    Join,
    Limited,
    Linked,
    OneRow,
    Plan,
    Project,
    Query,
    Scan,
    Series,
    Windows,
    below,
    every,
    number_of,
)
from datalog.sql.block import Frame
from datalog.sql.duckdb.aggregates import aggregated
from datalog.sql.duckdb.expressions import Trees
from datalog.sql.duckdb.relations import numbered_items
from datalog.sql.duckdb.series import listed, value
from datalog.sql.duckdb.templates import filled, selected
from datalog.sql.duckdb.types import SqlType, Typed, UnlikeSparkError, as_type, call, cast, common
from datalog.sql.duckdb.windows import windowed
from datalog.sql.views.conditions import condition
from datalog.sql.views.expressions import Reader
from datalog.sql.views.outside import report_outside
from datalog.sql.views.scope import Scope, Source, Variables
from datalog.sql.views.source import NOT_ANALYSED, Problems, SqlText, UnreadableError
from datalog.sql.views.written_out.shorthand import written_out

_BOOLEAN, _TINYINT, _BIGINT = (ColumnType(n) for n in (TypeName.BOOLEAN, TypeName.TINYINT, TypeName.BIGINT))

Kinds: TypeAlias = "dict[int, SqlType]"


class _Frame(Frame, frozen=True):
    """A frame in which some variables are the values of subqueries."""

    subqueries: Mapping[Variable, exp.Expr] = field(default_factory=dict)

    def tree(self, term: Term) -> exp.Expr:
        if isinstance(term, Variable) and term in self.subqueries:
            return self.subqueries[term].copy()
        return Frame.tree(self, term)


def query_of_plan(
    query: Query, names: Mapping[str, str], types: Mapping[str, Sequence[SqlType]]
) -> tuple[exp.Query, tuple[SqlType, ...]]:
    """The query whose rows are a plan's, columns `c0`, `c1`, ..., and their types.

    Raises:
        UnlikeSparkError: DuckDB would compute another value for some rows, or it is not known what it would.
    """
    making = _Making(names, types)
    made, places = making.over(query.plan, {})
    found = made.select(*numbered_items([making.place(n, places) for _, n in query.outputs]), copy=False)
    return found, tuple(making.kinds[number] for _, number in query.outputs)


def kinds_of_plan(plan: Plan, types: Mapping[str, Sequence[SqlType]]) -> dict[int, SqlType]:
    """The types that columns of a plan have in Spark, by number: of tables, and of others as far as they are known."""
    making = _Making({name: name for name in types}, types)
    with suppress(UnlikeSparkError):
        making.over(plan, {})
    for one in every(plan):
        if isinstance(one, Scan):
            making.kinds |= dict(zip(one.columns, types[one.table.name], strict=False))
    return making.kinds


Places: TypeAlias = Mapping[int, str]
"""The sources, by their aliases, that columns are read from."""


class _Making(Struct):
    names: Mapping[str, str]
    types: Mapping[str, Sequence[SqlType]]
    kinds: Kinds = field(default_factory=dict)
    _aliases: int = 0

    def place(self, number: int, places: Places) -> exp.Column:
        return exp.column(f"c{number}", table=places[number], quoted=True)

    def over(self, plan: Plan, around: Places) -> tuple[exp.Select, Places]:
        """A query that reads a plan's rows, and shows nothing yet."""
        source, places = self._source(plan, around)
        return exp.Select().from_(source, copy=False), places

    def _source(self, plan: Plan, around: Places) -> tuple[exp.Subquery, Places]:
        self._aliases += 1
        alias = f"t{self._aliases}"
        return self._plan(plan, around).subquery(alias, copy=False), dict.fromkeys(plan.columns, alias)

    def _plan(self, plan: Plan, around: Places) -> exp.Query:
        """A query with a column `c7` for each column 7 of a plan."""
        match plan:
            case Scan(table, _, columns):
                # Equal rows have numbers besides.
                self.kinds |= dict(zip(columns, self.types[table.name], strict=False))
                query = selected("SELECT 1 FROM :name AS base", name=self.names[table.name])
                items = [_column(n, filled(f"base.c{i}")) for i, n in enumerate(columns)]
                return query.select(*items, append=False, copy=False)
            case OneRow():
                return self._shown(exp.Select(), {})
            case Filter() | Join("inner"):
                return self._product(plan, around)
            case Project() | Series():
                return self._computed(plan, around)
            case Join():
                return self._join(plan, around)
            case Aggregate():
                return self._aggregate(plan, around)
            case Windows(input, items, inner):
                made, places = self.over(input, around)
                trees = self._reading(places, around, inner)
                query = self._shown(made, places)
                for number, tree in items:
                    query = self._with(query, number, windowed(tree, trees))
                return query
            case Distinct(input):
                made, places = self.over(input, around)
                self._require_alike(input.columns)
                return self._shown(made, places).distinct(copy=False)
            case Combined():
                return self._combined(plan, around)
            case Limited():
                return self._limited(plan, around)

    def _limited(self, plan: Limited, around: Places) -> exp.Query:
        """The first rows by an order; of those that it leaves equal the first by the other columns."""
        if plan.number is None:
            raise UnlikeSparkError("OFFSET, or LIMIT without an order by named columns of the result")
        made, places = self.over(plan.input, around)
        by = {number: (down, first) for number, down, first in reversed(plan.order)}
        rest = {number: (False, True) for number in plan.columns if number not in by}
        order = [
            exp.Ordered(this=self.place(number, places), desc=down, nulls_first=first)
            for number, (down, first) in (*reversed(by.items()), *rest.items())
        ]
        query = self._shown(made, places).limit(plan.number, copy=False)
        query.set("order", exp.Order(expressions=order))
        return query

    def _shown(self, query: exp.Select, places: Places) -> exp.Select:
        """A query with some columns of what it reads, or a constant: it has one column at least."""
        items = [_column(n, self.place(n, places)) for n in places]
        return query.select(*(items or numbered_items([])), copy=False)

    def _with(self, query: exp.Select, number: int, found: Typed) -> exp.Select:
        tree, self.kinds[number] = found
        return query.select(_column(number, tree), copy=False)

    def _computed(self, plan: Project | Series, around: Places) -> exp.Query:
        return self._series(plan, around) if isinstance(plan, Series) else self._project(plan, around)

    def _project(self, plan: Project, around: Places) -> exp.Query:
        made, places = self.over(plan.input, around)
        trees = self._reading(places, around, plan.inner)
        query = self._shown(made, places) if plan.extends else made
        for number, tree in plan.items:
            query = self._with(query, number, trees.value(tree))
        return query

    def _series(self, plan: Series, around: Places) -> exp.Query:
        made, places = self.over(plan.input, around)
        trees = self._reading(places, around, ())
        ends = trees.value(plan.first), trees.value(plan.last)
        given, self.kinds[plan.number] = listed(*ends, plan.step)
        made = self._shown(made, places).select(*(exp.alias_(v, n) for n, v in given.items()), copy=False)
        own, test = value(self.kinds[plan.number], plan.step)
        over = exp.Select().from_(made.subquery("listed", copy=False), copy=False).where(test, copy=False)
        return self._shown(over, dict.fromkeys(places, "listed")).select(
            _column(plan.number, own), copy=False
        )

    def _product(self, plan: Filter | Join, around: Places) -> exp.Query:
        """Filters over inner joins as one SELECT: DuckDB puts no joins in order across a subquery's select list."""
        leaves, tests, inner = _factors(plan)
        made, places = self.over(leaves[0], around)
        for leaf in leaves[1:]:
            other, its = self._source(leaf, around)
            made.append("joins", exp.Join(this=other, kind="CROSS"))
            places = {**places, **its}
        trees = self._reading(places, around, inner)
        made = self._shown(made, places)
        return made.where(*(trees.test(test) for test in tests), copy=False) if tests else made

    def _join(self, plan: Join, around: Places) -> exp.Query:
        made, left = self.over(plan.left, around)
        other, right = self._source(plan.right, around)
        trees = self._reading({**left, **right}, around, plan.inner)
        tests = [trees.test(test) for test in plan.tests]
        on = exp.and_(*tests, copy=False) if tests else exp.true()
        if plan.kind in ("semi", "anti"):
            there: exp.Expr = exp.Exists(this=exp.select("1").from_(other, copy=False).where(on, copy=False))
            if plan.kind == "anti":
                there = exp.Not(this=there)
            return self._shown(made, left).where(there, copy=False)
        made.append("joins", exp.Join(this=other, on=on, side=plan.kind.upper()))
        return self._shown(made, {**left, **right})

    def _aggregate(self, plan: Aggregate, around: Places) -> exp.Query:
        if len(set(plan.sets)) < len(plan.sets):
            raise UnlikeSparkError("a grouping set that stands twice")
        made, places = self.over(plan.input, around)
        self._require_alike(plan.groups)
        trees = self._reading(places, around, plan.inner)
        query = self._shown(made, {n: places[n] for n in plan.groups}) if plan.groups else made
        for number, tree in plan.items:
            is_grouping = isinstance(tree, exp.Grouping | exp.GroupingId)
            found = self._grouping(plan, tree, places) if is_grouping else _aggregated(tree, trees)
            query = self._with(query, number, found)
        if plan.sets and plan.groups:
            # Of no rows Spark makes no group, that of all rows neither, unless it is the only one.
            sets = [exp.Tuple(expressions=[self.place(n, places) for n in sorted(s)]) for s in plan.sets]
            query.set("group", exp.Group(grouping_sets=[exp.GroupingSets(expressions=sets)]))
            query.set("having", exp.Having(this=filled("count(*) > 0")))
        elif plan.groups:
            query.set("group", exp.Group(expressions=[self.place(n, places) for n in plan.groups]))
        elif not plan.items:
            raise UnlikeSparkError("one group of all rows, of which nothing is computed")
        return query

    def _grouping(self, plan: Aggregate, tree: exp.Expr, places: Places) -> Typed:
        """Which columns a grouping set leaves out, as bits, the first column's the highest."""
        numbers, groups = [number_of(one) for one in tree.expressions], list(plan.groups)
        if isinstance(tree, exp.GroupingId):
            kind, is_known = _BIGINT, numbers in ([], groups)  # Spark takes no others
        else:
            kind, is_known = _TINYINT, len(numbers) == 1 and numbers[0] in groups
        if not plan.sets or not is_known:
            raise UnlikeSparkError(f"`{tree.sql('spark').lower()}`")
        columns = [self.place(number, places) for number in numbers or groups if number is not None]
        return cast(call("grouping", *columns), kind), kind

    def _require_alike(self, numbers: Iterable[int]) -> None:
        """Refuses columns that are made one by their values, and of which equal values may look different."""
        for number in numbers:
            kind = self.kinds[number]
            if isinstance(kind, str) or kind.name.is_floating:
                raise UnlikeSparkError(f"DISTINCT or GROUP BY of a column of type `{kind}`")

    def _combined(self, plan: Combined, around: Places) -> exp.Query:
        sides = [self.over(side, around) for side in (plan.left, plan.right)]
        for own, left, right in plan.pairs:
            self.kinds[own] = common([self.kinds[left], self.kinds[right]])
            if plan.kind != "union" and self.kinds[own] == ANY:  # Spark finds no two of them equal
                raise UnlikeSparkError(f"{plan.kind.upper()} of columns of nothing but nulls")
        if plan.distinct or plan.kind != "union":
            self._require_alike(plan.columns)
        queries = []
        for number, (side, places) in enumerate(sides, 1):
            pairs = [(pair[0], pair[number]) for pair in plan.pairs]
            items = [
                _column(own, as_type(self.place(its, places), self.kinds[its], self.kinds[own]))
                for own, its in pairs
            ]
            queries.append(side.select(*items, copy=False))
        kind = {"union": exp.Union, "except": exp.Except, "intersect": exp.Intersect}[plan.kind]
        return kind(this=queries[0], expression=queries[1], distinct=plan.distinct)

    def _reading(self, own: Places, around: Places, inner: Sequence[Linked]) -> Expressions:
        every = {**around, **own}
        plain = Expressions({f"c{n}": (self.place(n, every), self.kinds[n]) for n in every})
        subqueries = {one.name: self._subquery(one, every, plain) for one in inner}
        return Expressions({**plain.given, **subqueries})

    def _subquery(self, one: Linked, around: Places, plain: Expressions) -> Typed:
        made, places = self.over(one.plan, around)
        if one.kind == "exists":
            return exp.Exists(this=made.select("1", copy=False)), _BOOLEAN
        (number,) = one.columns[:1]
        if len(one.columns) > 1:
            raise UnlikeSparkError("IN with several columns, but as a condition that must hold,")
        if one.kind == "scalar":
            made = made.select(self.place(number, places), copy=False)
            return exp.Paren(this=exp.Subquery(this=made)), self.kinds[number]
        assert one.operand is not None
        tree, kind = plain.value(one.operand)
        both = common([kind, self.kinds[number]])
        made = made.select(as_type(self.place(number, places), self.kinds[number], both), copy=False)
        found = exp.In(this=exp.Paren(this=as_type(tree, kind, both)), query=exp.Subquery(this=made))
        if one.unknown is not None:
            return filled(
                "coalesce(:found, :unknown)", found=found, unknown=exp.Boolean(this=one.unknown)
            ), _BOOLEAN
        return exp.Paren(this=found), _BOOLEAN


class Expressions(Struct, frozen=True):
    """Expressions over columns, read as those of a view definition and written for DuckDB.

    Attributes:
        given: for each name that stands in a tree what it is, and its type.
    """

    given: Mapping[str, Typed]

    def value(self, tree: exp.Expr, *, aggregates: bool = False) -> Typed:
        """An expression's value, and its type in Spark.

        Raises:
            UnlikeSparkError: it is not known what DuckDB would compute.
        """
        number = number_of(tree)
        if number is not None:
            found, kind = self.given[f"c{number}"]
            return found.copy(), kind
        reader, trees = self._reader(aggregates=aggregates)
        shown = self._plain(tree, reader.problems)
        try:
            found, kind = trees.typed(reader.value(shown))
        except UnreadableError:
            raise _refused(reader.problems) from None
        return (cast(found, kind) if isinstance(found, exp.Null | exp.Literal) else found), kind

    def test(self, tree: exp.Expr) -> exp.Expr:
        """A condition.

        Raises:
            UnlikeSparkError: it is not known what DuckDB would find.
        """
        reader, trees = self._reader(aggregates=False)
        shown = self._plain(tree, reader.problems)
        try:
            return exp.Paren(this=trees.condition(condition(reader, shown)))
        except UnreadableError:
            raise _refused(reader.problems) from None

    def _plain(self, tree: exp.Expr, problems: Problems) -> exp.Expr:
        shown = written_out(tree.copy(), lambda node: node.sql())
        report_outside(shown, problems)
        if problems.found:
            raise _refused(problems)
        return shown

    def _reader(self, *, aggregates: bool) -> tuple[Reader, Trees]:
        variables = {name: Variable(name.upper()) for name in self.given}
        known = Variables({variables[n]: k for n, (_, k) in self.given.items() if isinstance(k, ColumnType)})
        source = Source((), tuple(variables.items()))
        reader = Reader(Scope((source,)), known, Problems(SqlText("")), aggregates=aggregates)
        subqueries = {variables[n]: tree for n, (tree, _) in self.given.items()}
        kinds = {variables[n]: kind for n, (_, kind) in self.given.items()}
        return reader, Trees(_Frame(subqueries=subqueries), kinds)


def _aggregated(tree: exp.Expr, trees: Expressions) -> Typed:
    shown = written_out(tree, lambda node: node.sql())
    return aggregated(shown, trees) or trees.value(shown, aggregates=True)


def _column(number: int, tree: exp.Expr) -> exp.Expr:
    return exp.alias_(tree, f"c{number}", quoted=True)


def _factors(plan: Plan) -> tuple[list[Plan], list[exp.Expr], list[Linked]]:
    """What filters and inner joins are over, and their tests with the subqueries in them."""
    if not (isinstance(plan, Filter) or (isinstance(plan, Join) and plan.kind == "inner")):
        return [plan], [], []
    parts = [_factors(one) for one in below(plan)]
    leaves, tests, inner = (list(chain.from_iterable(some)) for some in zip(*parts, strict=True))
    return leaves, [*tests, *plan.tests], [*inner, *plan.inner]


def _refused(problems: Problems) -> UnlikeSparkError:
    found = ((one.message.removesuffix(NOT_ANALYSED), one.hint) for one in problems.found)
    what = (f"{message} ({hint})" if hint and "`" in hint else message for message, hint in found)
    return UnlikeSparkError("; ".join(what) or "an expression")
