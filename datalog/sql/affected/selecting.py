"""A SELECT's list, windows and grouping, by ROLLUP, CUBE and GROUPING SETS too, as operators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import product

from msgspec import Struct, field
from sqlglot import exp

from datalog.sql.affected.inner import is_aggregate, is_generator, windowed
from datalog.sql.affected.names import UnknownShapeError
from datalog.sql.affected.plan import (
    Aggregate,
    Filter,
    Linked,
    Plan,
    Project,
    Series,
    Windows,
    column,
    number_of,
)
from datalog.sql.affected.series import series_in, series_over
from datalog.sql.views.written_out.as_written import with_parts

Number = Callable[[], int]
"""Gives each new column its number."""


class Selecting(Struct):
    """What a SELECT makes of the rows of its FROM and WHERE.

    Attributes:
        text: the text that trees are of.
        number: numbers for new columns.
        linked: the subqueries that stand in trees, by name.
    """

    text: str
    number: Number
    linked: dict[str, Linked]
    _calls: dict[str, tuple[int, exp.Expr]] = field(default_factory=dict)

    def has_aggregates(self, trees: Iterable[exp.Expr]) -> bool:
        """Whether an aggregate that is no window stands in some trees."""
        before = len(self._calls)
        for tree in trees:
            if any(is_aggregate(node, self.text) for node in tree.walk()):
                self._without_aggregates(tree, ())
        found = len(self._calls) > before
        self._calls.clear()
        return found

    def grouped(
        self,
        plan: Plan,
        groups: Sequence[exp.Expr],
        sets: Sequence[Sequence[exp.Expr]],
        trees: Sequence[exp.Expr],
    ) -> tuple[Plan, list[exp.Expr]]:
        """The plan grouped, and trees over the groups."""
        computed = [tree for tree in groups if number_of(tree) is None]
        new = {tree.sql(): self.number() for tree in computed}
        if new:
            items = tuple((n, next(t for t in computed if t.sql() == sql)) for sql, n in new.items())
            plan = Project(plan, items, self.inner(tree for _, tree in items), extends=True)

        def numbered(some: Sequence[exp.Expr]) -> dict[int, None]:
            found = (number_of(one) for one in some)
            pairs = zip(some, found, strict=True)
            return dict.fromkeys(new[one.sql()] if number is None else number for one, number in pairs)

        numbers = numbered(groups)
        grouped = tuple(frozenset(numbered(some)) for some in sets)
        shared = frozenset(numbers).intersection(*grouped)
        self._calls.clear()
        over = [self._without_aggregates(tree, tuple(new.items())) for tree in trees]
        calls = tuple(self._calls.values())
        inner = self.inner(tree for _, tree in calls)
        known = set(plan.columns)
        made = Aggregate(plan, tuple(numbers), shared, calls, inner, grouped)
        hidden = known.difference(made.columns)
        for tree in over:
            if any(number_of(one) in hidden for one in tree.find_all(exp.Column)):
                raise UnknownShapeError("a column that is not grouped by stands beside aggregates")
        return made, over

    def _without_aggregates(self, tree: exp.Expr, groups: Sequence[tuple[str, int]]) -> exp.Expr:
        """A tree in which grouping expressions and aggregates are columns."""

        def change(node: exp.Expr) -> exp.Expr:
            known = next((number for sql, number in groups if node.sql() == sql), None) if groups else None
            if known is not None:
                return column(known)
            if isinstance(node, exp.Window):
                return windowed(node, change)
            if is_aggregate(node, self.text):
                key = node.sql()
                if key not in self._calls:
                    self._calls[key] = (self.number(), node)
                return column(self._calls[key][0])
            return with_parts(node, change)

        return change(tree)

    def with_windows(self, plan: Plan, trees: Sequence[exp.Expr]) -> tuple[Plan, list[exp.Expr]]:
        """The plan with the window functions of some trees, and the trees over that."""
        found: dict[str, tuple[int, exp.Window]] = {}
        if not any(tree.find(exp.Window) for tree in trees):
            return plan, list(trees)

        def change(node: exp.Expr) -> exp.Expr:
            if isinstance(node, exp.Window):
                key = node.sql()
                if key not in found:
                    found[key] = (self.number(), node)
                return column(found[key][0])
            return with_parts(node, change)

        over = [change(tree) for tree in trees]
        if not found:
            return plan, over
        windows = tuple(found.values())
        if any(tree.find(exp.Window) is not tree for _, tree in windows):
            raise UnknownShapeError("a window stands in a window")
        if any(tree.args.get("alias") is not None or tree.args.get("first") for _, tree in windows):
            raise UnknownShapeError("a window is named")
        return Windows(plan, windows, self.inner(tree for _, tree in windows)), over

    def projected(self, plan: Plan, trees: Sequence[exp.Expr]) -> Project:
        """The select list; one of its items may be a sequence whose values are rows."""
        made = list(trees)
        for i, tree in enumerate(trees):
            call = series_in(tree)
            if call is not None and not _is_grouped(plan) and not isinstance(plan, Series):
                plan = self.series(plan, call)
                made[i] = column(plan.number)
        if any(is_generator(node, self.text) for tree in made for node in tree.walk()):
            raise UnknownShapeError("a call makes several rows of one")
        return Project(plan, tuple((self.number(), tree) for tree in made), self.inner(made))

    def series(self, plan: Plan, call: exp.Expr) -> Series:
        """The rows of a plan with the values of a sequence of each."""
        if any(is_generator(node, self.text) for node in call.walk()):
            raise UnknownShapeError("a call makes several rows of one")
        return series_over(plan, self.number(), call, self.inner([call]))

    def filtered(self, plan: Plan, tests: Sequence[exp.Expr]) -> Plan:
        """The rows for which tests are true."""
        return Filter(plan, tuple(tests), self.inner(tests)) if tests else plan

    def inner(self, trees: Iterable[exp.Expr]) -> tuple[Linked, ...]:
        """The subqueries that stand in trees."""
        names = (one.name for tree in trees for one in tree.find_all(exp.Column))
        return tuple(self.linked[name] for name in dict.fromkeys(names) if name in self.linked)


def _is_grouped(plan: Plan) -> bool:
    """Whether windows or groups are computed where a select list stands."""
    while isinstance(plan, Filter):
        plan = plan.input
    return isinstance(plan, Aggregate | Windows)


def sets_of(node: exp.Expr) -> list[list[exp.Expr]]:
    """The grouping sets of ROLLUP, CUBE or GROUPING SETS; of anything else it is one."""
    parts = [leaves_of(one) for one in node.expressions]
    match node:
        case exp.GroupingSets():
            return [some for one in node.expressions for some in sets_of(one)]
        case exp.Rollup():
            chosen = [parts[:number] for number in range(len(parts), -1, -1)]
        case exp.Cube():
            chosen = [
                [part for part, is_in in zip(parts, way, strict=True) if is_in]
                for way in product((True, False), repeat=len(parts))
            ]
        case _:
            return [leaves_of(node)]
    return [[leaf for part in some for leaf in part] for some in chosen]


def leaves_of(node: exp.Expr) -> list[exp.Expr]:
    """What is grouped by inside ROLLUP, CUBE or GROUPING SETS."""
    if isinstance(node, exp.Tuple | exp.GroupingSets | exp.Rollup | exp.Cube):
        return [leaf for one in node.expressions for leaf in leaves_of(one)]
    if isinstance(node, exp.Paren):
        return leaves_of(node.this)
    return [node]
