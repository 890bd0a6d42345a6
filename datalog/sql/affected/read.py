"""The shape of a query of Spark SQL: its operators, by a list of what is known; anything else is no shape.

A view definition has the shape of the query that recomputes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from types import MappingProxyType
from typing import Literal as OneOf

import sqlglot
from msgspec import Struct
from sqlglot import exp

from datalog.copies import replace
from datalog.model import Negation, Predicate, TextQuery, ViewDefinition
from datalog.sql.affected.first_rows import limited
from datalog.sql.affected.inner import Closed, Ctes, Inner
from datalog.sql.affected.names import Scope, UnknownShapeError, without_left_out
from datalog.sql.affected.plain_casts import without_plain_casts
from datalog.sql.affected.plan import (
    Combined,
    Distinct,
    Join,
    OneRow,
    Plan,
    Query,
    Scan,
    Table,
    column,
    number_of,
)
from datalog.sql.affected.selecting import Selecting, sets_of
from datalog.sql.affected.series import series_in
from datalog.sql.definitions import select_view
from datalog.sql.tables import Table as StoredTable
from datalog.sql.text import bound_text, text
from datalog.sql.views.written_out.as_written import parsed
from datalog.sql.views.written_out.named_windows import windows_written_out
from datalog.sql.views.written_out.written_rows import with_queries

_MARK = "selfmaint_relation_"
_QUERY_PARTS = frozenset({"with_", "order", "sort", "limit", "offset"})
_SELECT_PARTS = frozenset(
    {"expressions", "from_", "joins", "laterals", "where", "group", "having", "qualify", "distinct", "hint"}
)
_KINDS = {"": "inner", "INNER": "inner", "CROSS": "inner", "OUTER": "inner", "SEMI": "semi", "ANTI": "anti"}
_COMBINED: Mapping[type[exp.Expr], OneOf["union", "except", "intersect"]] = {
    exp.Union: "union",
    exp.Except: "except",
    exp.Intersect: "intersect",
}
_GROUPINGS = (exp.GroupingSets, exp.Rollup, exp.Cube)


def plan_of_text(query: TextQuery, tables: Mapping[str, Table]) -> Query:
    """The operators of a query's text.

    Raises:
        UnknownShapeError: it has a part that is not known, or reads something else.
    """
    if query.refused is not None:
        raise UnknownShapeError(query.refused.why)
    _require_known(query.relations, tables)
    marks = {name: f"{_MARK}{i}" for i, name in enumerate(query.relations)}
    text = windows_written_out(bound_text(query, {name: (mark,) for name, mark in marks.items()}))
    known = {mark: tables[name].as_written for name, mark in marks.items()}
    try:
        found = _Reading(text, known).query(without_plain_casts(with_queries(parsed(text)), known))
    except RecursionError:
        raise UnknownShapeError("it is too deep") from None
    except sqlglot.errors.SqlglotError:
        raise UnknownShapeError("its text cannot be taken apart") from None
    names = [name.casefold() for name in query.columns] or [name for name, _ in found.outputs]
    if len(names) != len(found.outputs) or len(set(names)) < len(names):
        raise UnknownShapeError("its columns have no names of their own")
    return Query(found.plan, tuple((n, number) for n, (_, number) in zip(names, found.outputs, strict=True)))


def plan_of_definition(definition: ViewDefinition, tables: Mapping[str, Table]) -> Query:
    """The operators of a definition.

    Raises:
        UnknownShapeError: it reads something else, or has a negation.
    """
    _require_known([predicate.name for predicate in definition.reads], tables)
    if any(isinstance(literal, Negation) for one in definition.blocks for literal in one.core.body):
        raise UnknownShapeError("it has a negation")
    stored = {
        Predicate(name): StoredTable((name,), one.columns, frozenset(range(len(one.columns))) - one.nullable)
        for name, one in tables.items()
    }
    tree = select_view(definition, stored)
    # Calls have kinds of their own where they are read.
    read: exp.Expr = parsed(text(tree)) if tree.find(exp.Anonymous) else tree
    return _Reading("", tables).query(without_plain_casts(read, tables))


def _require_known(names: Iterable[str], tables: Mapping[str, Table]) -> None:
    missing = [name for name in names if name not in tables]
    if missing:
        raise UnknownShapeError(f"it reads `{missing[0]}`, which is no base relation")


class _Reading(Struct, dict=True):
    text: str
    tables: Mapping[str, Table]
    _columns: int = 0
    _scans: int = 0

    def __post_init__(self) -> None:
        self._inner = Inner(self.query)

    def _number(self) -> int:
        self._columns += 1
        return self._columns

    @property
    def _selecting(self) -> Selecting:
        return Selecting(self.text, self._number, self._inner.linked)

    # ------------------------------------------------------------------------------------------- queries

    def query(self, tree: exp.Expr, ctes: Ctes = MappingProxyType({}), around: Scope | None = None) -> Query:
        given = tree.args.get("with_")
        if given is not None:
            if given.args.get("recursive"):
                raise UnknownShapeError("a common table expression is recursive")
            for cte in given.expressions:
                names = tuple(one.name.casefold() for one in cte.args["alias"].args.get("columns") or ())
                ctes = {**ctes, cte.alias.casefold(): Closed(cte.this, ctes, names)}
        match tree:
            case exp.Subquery():
                _require(tree, _QUERY_PARTS | {"this", "alias"})
                found = self.query(tree.this, ctes, around)
            case exp.Union() | exp.Except() | exp.Intersect():
                found = self._combined(tree, ctes, around)
            case exp.Select():
                found = self._select(tree, ctes, around)
            case _:
                raise UnknownShapeError(f"it has a part that is not known: {type(tree).__name__.lower()}")
        if tree.args.get("limit") is not None or tree.args.get("offset") is not None:
            return replace(found, plan=limited(tree, found))
        return found

    def _combined(self, tree: exp.SetOperation, ctes: Ctes, around: Scope | None) -> Query:
        _require(tree, _QUERY_PARTS | {"this", "expression", "distinct"})
        left, right = (self.query(side, ctes, around) for side in (tree.this, tree.expression))
        if len(left.outputs) != len(right.outputs):
            raise UnknownShapeError("two queries are put together that differ in their number of columns")
        sides = zip(left.outputs, right.outputs, strict=True)
        pairs = [(name, self._number(), one, other) for (name, one), (_, other) in sides]
        made = Combined(
            _COMBINED[type(tree)],
            bool(tree.args.get("distinct")),
            left.plan,
            right.plan,
            tuple((own, one, other) for _, own, one, other in pairs),
        )
        return Query(made, tuple((name, own) for name, own, _, _ in pairs))

    def _select(self, tree: exp.Select, ctes: Ctes, around: Scope | None) -> Query:
        _require(tree, _QUERY_PARTS | _SELECT_PARTS)
        plan, scope = self._from(tree, ctes, around)
        making = self._selecting
        plan = making.filtered(plan, self._tests(tree, "where", scope, ctes, plan))
        names, items, aliases = self._items(tree, scope, ctes)
        above = replace(scope, aliases=aliases, aliases_first=True)  # a name that may mean both is not taken
        chosen = self._tests(tree, "qualify", above, ctes, plan)
        is_grouped = tree.args.get("group") is not None or tree.args.get("having") is not None
        if is_grouped or making.has_aggregates([*items, *chosen]):
            groups, sets = self._groups(tree, scope, items, aliases, ctes)
            # What HAVING adds up are rows; beside windows Spark takes it for columns of the select list.
            is_plain = not any(one.find(exp.Window) for one in items)
            having = self._tests(
                tree, "having", replace(above, added_up=scope if is_plain else None), ctes, plan
            )
            plan, over = making.grouped(plan, groups, sets, [*items, *chosen, *having])
            items, chosen = over[: len(items)], over[len(items) : len(items) + len(chosen)]
            plan = making.filtered(plan, over[len(items) + len(chosen) :])
        plan, over = making.with_windows(plan, [*items, *chosen])
        items, plan = over[: len(items)], making.filtered(plan, over[len(items) :])
        made: Plan = making.projected(plan, items)
        outputs = tuple(zip(names, made.columns, strict=True))
        if tree.args.get("distinct") is not None:
            if tree.args["distinct"].args.get("on") is not None:
                raise UnknownShapeError("it has DISTINCT ON")
            made = Distinct(made)
        return Query(made, outputs)

    def _tests(self, tree: exp.Select, part: str, scope: Scope, ctes: Ctes, plan: Plan) -> list[exp.Expr]:
        """The conditions of a clause."""
        its = tree.args.get(part)
        return [] if its is None else self._inner.tests(its.this, scope, ctes, plan)

    def _items(
        self, tree: exp.Select, scope: Scope, ctes: Ctes
    ) -> tuple[list[str], list[exp.Expr], dict[str, exp.Expr]]:
        """The select list: names, trees, and by name those that may be used by name."""
        names: list[str] = []
        items: list[exp.Expr] = []
        aliases: dict[str, exp.Expr] = {}
        for item in tree.expressions:
            if isinstance(item, exp.Star) or (
                isinstance(item, exp.Column) and isinstance(item.this, exp.Star)
            ):
                every = scope.star if isinstance(item, exp.Star) else scope.columns_of(item.table.casefold())
                every = without_left_out(item, every)
                names += [name for name, _ in every]
                items += [column(number) for _, number in every]
                continue
            inside = item.this if isinstance(item, exp.Alias) else item
            found = self._inner.resolved(inside, replace(scope, aliases=dict(aliases)), ctes)
            name = item.unnest().alias_or_name.casefold()  # `SELECT DISTINCT (a)` has a column `a`
            name = name or ("col" if series_in(item) is not None else "")
            if isinstance(item, exp.Alias):
                aliases[name] = found
            names.append(name or f"_{len(names)}")
            items.append(found)
        return names, items, aliases

    def _groups(
        self,
        tree: exp.Select,
        scope: Scope,
        items: Sequence[exp.Expr],
        aliases: Mapping[str, exp.Expr],
        ctes: Ctes,
    ) -> tuple[list[exp.Expr], list[list[exp.Expr]]]:
        """All that is grouped by, and the grouping sets, if there are others than that."""
        group = tree.args.get("group")
        if group is None:
            return [], []
        if group.args.get("all") or group.args.get("totals"):
            raise UnknownShapeError("it has GROUP BY ALL")
        above = replace(scope, aliases=aliases)

        def one(node: exp.Expr) -> exp.Expr:
            if isinstance(node, exp.Literal) and not node.is_string:
                place = int(node.this) - 1
                if not 0 <= place < len(items):
                    raise UnknownShapeError("it groups by a number that is no column's")
                return items[place].copy()
            return self._inner.resolved(node, above, ctes)

        nodes = [node for part in ("rollup", "cube", "grouping_sets") for node in group.args.get(part) or ()]
        plain = [one(node) for node in group.expressions if not isinstance(node, _GROUPINGS)]
        nodes += [node for node in group.expressions if isinstance(node, _GROUPINGS)]
        if not nodes:
            return plain, []
        if any(not node.expressions for node in nodes):  # `GROUP BY a, b WITH ROLLUP`
            if len(nodes) > 1:
                raise UnknownShapeError("it has several of ROLLUP, CUBE and GROUPING SETS")
            return plain, sets_of(type(nodes[0])(expressions=plain))
        choices = [[[one(leaf) for leaf in some] for some in sets_of(node)] for node in nodes]
        sets = [[*plain, *(leaf for some in way for leaf in some)] for way in product(*choices)]
        return [leaf for some in sets for leaf in some], sets

    # ---------------------------------------------------------------------------------------------- FROM

    def _from(self, tree: exp.Select, ctes: Ctes, around: Scope | None) -> tuple[Plan, Scope]:
        start = tree.args.get("from_")
        if start is None:
            return OneRow(), Scope(around=around)
        plan, scope = self._source(start.this, ctes)
        scope = replace(scope, around=around)
        crossed = False
        for join in tree.args.get("joins") or ():
            crossed = crossed or join.kind == "CROSS"
            if crossed and join.side in ("RIGHT", "FULL"):
                # A comma binds less than JOIN, and is not told from CROSS JOIN here.
                raise UnknownShapeError("it has an outer join of the right side behind a comma or CROSS JOIN")
            plan, scope = self._joined(plan, scope, join, ctes)
        for lateral in tree.args.get("laterals") or ():
            plan, scope = self._with_series(plan, scope, lateral, ctes)
        return plan, scope

    def _with_series(self, plan: Plan, scope: Scope, lateral: exp.Lateral, ctes: Ctes) -> tuple[Plan, Scope]:
        """LATERAL VIEW of a sequence."""
        call, alias = series_in(lateral.this), lateral.args.get("alias")
        names = [one.name.casefold() for one in alias.args.get("columns") or ()] if alias else []
        if call is None or lateral.args.get("outer") or not lateral.args.get("view") or len(names) > 1:
            raise UnknownShapeError("it has a LATERAL that is not known")
        found = self._selecting.series(plan, self._inner.resolved(call, scope, ctes))
        its = ((names[0] if names else "col", found.number),)
        sources = (*scope.sources, (alias.name.casefold() if alias else "", its))
        return found, replace(scope, sources=sources, star=(*scope.star, *its))

    def _source(self, tree: exp.Expr, ctes: Ctes) -> tuple[Plan, Scope]:
        renamed = tuple(one.casefold() for one in tree.alias_column_names)
        if isinstance(tree, exp.Subquery) and isinstance(tree.this, exp.Table):
            _require(tree, {"this", "alias"})
            plan, inside = self._source(tree.this, ctes)
            found = Query(plan, inside.star)
            name = tree.alias.casefold() or inside.sources[0][0]
        elif isinstance(tree, exp.Subquery):
            found, name = self.query(tree, ctes, None), tree.alias.casefold()
        elif isinstance(tree, exp.Table):
            _require(tree, {"this", "alias"})
            found, name = self._table(tree.name, ctes), (tree.alias or tree.name).casefold()
        else:
            raise UnknownShapeError(f"it reads from neither table nor query: `{text(tree)[:40]}`")
        names = renamed or tuple(one for one, _ in found.outputs)
        if len(names) != len(found.outputs):
            raise UnknownShapeError(f"`{name}` has another number of columns than names")
        its = tuple(zip(names, (number for _, number in found.outputs), strict=True))
        return found.plan, Scope(((name, its),), its)

    def _table(self, name: str, ctes: Ctes) -> Query:
        if name in self.tables:
            table = self.tables[name]
            self._scans += 1
            numbers = tuple(self._number() for _ in table.columns)
            scan = Scan(table, self._scans, numbers)
            names = tuple(one.casefold() for one in table.columns)
            return Query(scan, tuple(zip(names, numbers, strict=True)))
        if name.casefold() not in ctes:
            raise UnknownShapeError(f"it reads `{name}`, of which nothing is known")
        known = ctes[name.casefold()]
        found = self.query(known.tree, known.ctes, None)
        given = known.names or tuple(one for one, _ in found.outputs)
        if len(given) != len(found.outputs):
            raise UnknownShapeError(f"`{name}` has another number of columns than names")
        outputs = zip(given, (number for _, number in found.outputs), strict=True)
        return replace(found, outputs=tuple(outputs))

    def _joined(self, left: Plan, scope: Scope, join: exp.Join, ctes: Ctes) -> tuple[Plan, Scope]:
        _require(join, {"this", "on", "using", "kind", "side", "method"})
        side, kind, method = join.side, join.kind, join.method
        if kind not in _KINDS or method not in ("", "NATURAL") or side not in ("", "LEFT", "RIGHT", "FULL"):
            raise UnknownShapeError(f"it has a {method} {side} {kind} JOIN".replace("  ", " "))
        right, its = self._source(join.this, ctes)
        names = [one.name.casefold() for one in join.args.get("using") or ()]
        if method:
            mine = [name for name, _ in its.star]
            names = [name for name, _ in scope.star if name in mine]
        sources = (*scope.sources, *its.sources)
        both = replace(scope, sources=sources, star=(*scope.star, *its.star))
        if names:
            return self._using(left, right, scope, its, names, (side, kind))
        on = join.args.get("on")
        joined = Join("inner", left, right)
        tests = [] if on is None else self._inner.tests(on, both, ctes, joined)
        made = self._join(left, right, tests, (side, kind))
        return made, scope if _KINDS[kind] in ("semi", "anti") else both

    def _using(
        self, left: Plan, right: Plan, scope: Scope, its: Scope, names: Sequence[str], kind: tuple[str, str]
    ) -> tuple[Plan, Scope]:
        tests: list[exp.Expr] = []
        pairs: dict[str, tuple[int, int]] = {}
        for name in names:
            one = number_of(replace(scope, around=None).resolved(exp.column(name)))
            other = number_of(its.resolved(exp.column(name)))
            assert one is not None
            assert other is not None
            pairs[name] = one, other
            tests.append(exp.EQ(this=column(one), expression=column(other)))
        plan: Plan = self._join(left, right, tests, kind)
        if _KINDS[kind[1]] in ("semi", "anti"):
            return plan, scope
        merged = {name: other if kind[0] == "RIGHT" else one for name, (one, other) in pairs.items()}
        if kind[0] == "FULL":
            made = self._selecting.projected(
                plan, [exp.Coalesce(this=column(a), expressions=[column(b)]) for a, b in pairs.values()]
            )
            merged = dict(zip(pairs, made.columns, strict=True))
            plan = replace(made, extends=True)
        rest = [(name, number) for name, number in (*scope.star, *its.star) if name not in pairs]
        star = (*merged.items(), *rest)
        every = {**scope.merged, **merged}
        return plan, replace(scope, sources=(*scope.sources, *its.sources), star=star, merged=every)

    def _join(self, left: Plan, right: Plan, tests: Sequence[exp.Expr], kind: tuple[str, str]) -> Join:
        inner = self._selecting.inner(tests)
        found = _KINDS[kind[1]]
        if found in ("semi", "anti"):
            return Join(found, left, right, tuple(tests), inner)  # type: ignore[arg-type]
        match kind[0]:
            case "LEFT":
                return Join("left", left, right, tuple(tests), inner)
            case "RIGHT":
                return Join("left", right, left, tuple(tests), inner)
            case "FULL":
                return Join("full", left, right, tuple(tests), inner)
            case _:
                return Join("inner", left, right, tuple(tests), inner)


def _require(tree: exp.Expr, known: frozenset[str] | set[str]) -> None:
    """Refuses a node with other parts."""
    other = [part for part, value in tree.args.items() if value and part not in known]
    if other:
        raise UnknownShapeError(f"it has a part that is not known: {other[0].strip('_')}")
