"""Where a demand for some values of a column may be put to: in which base relations' columns.

    SELECT c.region, o.id FROM orders o LEFT JOIN customer c ON c.id = o.customer WHERE o.customer > 5
    a demand for o.id        asks for orders with these ids, and for customers of which these orders are
    a demand for c.region    asks for nothing less: orders without a customer have the region null

Conditions of soundness. Let D be a database and V some values.

1. `Demands.of(plan, column)` are occurrences of base relations with one column each. If all of them are cut to rows
   with a value of V there (null being a value), and nothing else is, then the plan's rows with a value of V in that
   column are the same as over D, each as often.
2. A link says the same of one occurrence and another: of the target only those rows matter that have a value in its
   column which a row that matters has in the source's column. Null matters to no link: links are made by `=` alone.
3. So cutting occurrences one after the other, each by values of the result or by rows of one that was cut before,
   leaves the wanted rows as they are. Rows that are left in beyond these change nothing about them either.
4. Values that are equal look the same: columns of floating-point numbers, and of different types, are never linked,
   but for whole numbers of several sizes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from msgspec import Struct, field
from sqlglot import exp

from datalog.model import ColumnType
from datalog.sql.affected.plan import (
    Aggregate,
    Combined,
    Distinct,
    Filter,
    Join,
    Limited,
    Linked,
    Plan,
    Project,
    Scan,
    Series,
    Windows,
    below,
    closed,
    equalities,
    every,
    linked,
    number_of,
)
from datalog.sql.affected.series import written_type

Place = tuple[int, int]
"""An occurrence of a base relation, and the 0-based position of a column."""


class Link(Struct, frozen=True):
    """Rows of one occurrence that matter only if others have an equal value.

    Attributes:
        node: tells the operator that says so.
        sources: where equal values come from, one of these.
        target: the column whose rows matter.
    """

    node: int
    sources: frozenset[Place]
    target: Place


class Demands(Struct):
    """The demands and links of a plan."""

    plan: Plan
    scans: dict[int, Scan] = field(default_factory=dict)
    _origins: dict[int, frozenset[Place]] = field(default_factory=dict)
    _found: dict[tuple[int, int], frozenset[Place]] = field(default_factory=dict)
    _listed: dict[int, ColumnType] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.scans = {one.number: one for one in every(self.plan) if isinstance(one, Scan)}
        self._trace(self.plan)

    # ---------------------------------------------------------------------------------- where values come from

    def _trace(self, plan: Plan) -> None:
        """Notes for each column the places of which it has nothing but values of, and null, where that is known."""
        for one in below(plan):
            self._trace(one)
        for sub in linked(plan):
            self._trace(sub.plan)
        match plan:
            case Scan(_, number, columns):
                self._origins |= {c: frozenset({(number, i)}) for i, c in enumerate(columns)}
            case Project(_, items):
                self._origins |= {n: its for n, tree in items if (its := self._values(tree))}
                listed = ((n, self._listed.get(number_of(tree) or 0)) for n, tree in items)
                self._listed |= {n: kind for n, kind in listed if kind is not None}
            case Series(_, number, first) if (kind := written_type(first)) is not None:
                self._listed[number] = kind
            case Combined(kind, _, _, _, pairs):
                for own, left, right in pairs:
                    sides = [self._origins.get(left)]
                    sides += [self._origins.get(right)] if kind == "union" else []
                    if all(sides):
                        self._origins[own] = frozenset(place for side in sides if side for place in side)
            case _:
                pass

    def _values(self, tree: exp.Expr) -> frozenset[Place]:
        numbers = _coalesced(tree)
        found = [self._origins.get(number, frozenset()) for number in numbers]
        return frozenset(place for its in found for place in its) if found and all(found) else frozenset()

    def origins(self, number: int) -> frozenset[Place]:
        """The places that a column's values are from, null apart; none if that is not known."""
        return self._origins.get(number, frozenset())

    def type_of(self, place: Place) -> ColumnType:
        """The type of a base column."""
        return self.scans[place[0]].table.types[place[1]]

    def alike(self, places: Iterable[Place]) -> bool:
        """Condition 4, of some base columns."""
        return self._are_one({self.type_of(place) for place in places})

    @staticmethod
    def _are_one(types: Collection[ColumnType]) -> bool:
        is_one = len(types) == 1 or all(one.name.is_integer for one in types)
        return is_one and not any(one.name.has_signed_zeros for one in types)

    def _are_alike(self, one: int, other: int) -> bool:
        both = [self._types_of(number) for number in (one, other)]
        return all(both) and self._are_one(both[0] | both[1])

    def _types_of(self, number: int) -> frozenset[ColumnType]:
        """The types of what a column has nothing but values of, as far as that is known."""
        if number in self._listed:
            return frozenset({self._listed[number]})
        return frozenset(map(self.type_of, self.origins(number)))

    # -------------------------------------------------------------------------------------------- demands

    def of(self, plan: Plan, number: int) -> frozenset[Place]:
        """Condition 1; nothing if the demand leads nowhere."""
        key = (id(plan), number)
        if key not in self._found:
            self._found[key] = self._of(plan, number)
        return self._found[key]

    def _of(self, plan: Plan, number: int) -> frozenset[Place]:
        same = self._same(plan, number)
        found = [self._directly(plan, one, same) for one in same]
        for sub in plan.inner if isinstance(plan, Filter) else ():  # elsewhere rows may depend on other rows
            found += [
                self.of(node, its)
                for around, node, its in correlated(sub)
                if around in same and self._are_alike(around, its)
            ]
        return frozenset(place for its in found for place in its)

    def _directly(self, plan: Plan, number: int, same: frozenset[int]) -> frozenset[Place]:
        if number not in plan.columns:
            return frozenset()
        match plan:
            case Scan(_, scan, columns):
                return frozenset({(scan, columns.index(number))})
            case Filter(input) | Distinct(input) | Series(input):
                return self.of(input, number)
            case Project(input, items):
                tree = next((tree for n, tree in items if n == number), None)
                if tree is None:
                    return self.of(input, number)
                numbers = _coalesced(tree)
                if len(numbers) == 1:
                    return self.of(input, numbers[0])
                return self._of_either(input, numbers[0], numbers[1]) if len(numbers) == 2 else frozenset()  # noqa: PLR2004
            case Join():
                return self._of_join(plan, number, same)
            case Aggregate(input, _, common):
                return self.of(input, number) if number in common else frozenset()
            case Windows(input, items):
                parts = [{number_of(one) for one in tree.args.get("partition_by") or ()} for _, tree in items]
                return self.of(input, number) if all(number in part for part in parts) else frozenset()
            case Combined(_, _, left, right, pairs):
                one, other = next((a, b) for own, a, b in pairs if own == number)
                sides = self.of(left, one), self.of(right, other)
                return sides[0] | sides[1]
            case _:
                return frozenset()

    def _of_join(self, plan: Join, number: int, same: frozenset[int]) -> frozenset[Place]:
        if plan.kind == "inner":
            return self.of(plan.left if number in plan.left.columns else plan.right, number)
        if plan.kind == "full" or number not in plan.left.columns:
            return frozenset()
        found = set(self.of(plan.left, number))
        for one, other in _across(plan):
            if one in same and self._are_alike(one, other):
                found |= self.of(plan.right, other)
        return frozenset(found)

    def _of_either(self, plan: Plan, one: int, other: int) -> frozenset[Place]:
        """Of the first value that is not null of two columns that are joined with each other."""
        match plan:
            case Filter(input) | Distinct(input) | Project(input, extends=True):
                return self._of_either(input, one, other)
            case Join(kind, left, right):
                pairs = dict(_across(plan))
                first, second = (one, other) if one in left.columns else (other, one)
                if pairs.get(first) == second and self._are_alike(first, second):
                    if kind == "full":
                        return self.of(left, first) | self.of(right, second)
                    return self.of(plan, first)
                for side in (left, *((right,) if kind == "inner" else ())):
                    if {one, other} <= set(side.columns):
                        return self._of_either(side, one, other)
        return frozenset()

    def _same(self, plan: Plan, number: int) -> frozenset[int]:
        """The columns that are equal to one in every row, and so not null where they are several."""
        return closed({number}, (pair for pair in _equal_in(plan) if self._are_alike(*pair)))

    # ---------------------------------------------------------------------------------------------- links

    def links(self) -> Iterator[Link]:
        """Condition 2: everything that leads from one occurrence to another."""
        for node, plan in enumerate(every(self.plan)):
            for sub in linked(plan):
                for around, inside, its in correlated(sub):
                    yield from self._link(node, around, its, inside)
            if isinstance(plan, Filter) or (isinstance(plan, Join) and plan.kind == "inner"):
                for one, other in equalities(plan.tests):
                    yield from self._link(node, one, other, plan)
                    yield from self._link(node, other, one, plan)
            elif isinstance(plan, Join) and plan.kind != "full":
                for one, other in _across(plan):
                    yield from self._link(node, one, other, plan.right)

    def _link(self, node: int, source: int, target: int, plan: Plan) -> Iterator[Link]:
        if source not in self._origins or not self._are_alike(source, target):
            return
        for place in self.of(plan, target):
            if self.alike([place, *self._origins[source]]):
                yield Link(node, self._origins[source], place)


def _coalesced(tree: exp.Expr) -> tuple[int, ...]:
    """The columns of which a value is the first that is not null; none if it is something else."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    parts = [tree.this, *tree.expressions] if isinstance(tree, exp.Coalesce) else [tree]
    numbers = [number_of(part) for part in parts]
    return tuple(n for n in numbers if n is not None) if None not in numbers else ()


def _across(plan: Join) -> Iterator[tuple[int, int]]:
    """The equalities of a join that have a column of each side, that of the left side first."""
    left, right = set(plan.left.columns), set(plan.right.columns)
    for one, other in equalities(plan.tests):
        if one in left and other in right:
            yield one, other
        elif other in left and one in right:
            yield other, one


def _equal_in(plan: Plan) -> Iterator[tuple[int, int]]:
    """Pairs of a plan's columns that are equal, and not null, in every row."""
    match plan:
        case Filter(input, tests):
            yield from equalities(tests)
            yield from _equal_in(input)
        case Join("inner", left, right, tests):
            yield from equalities(tests)
            yield from _equal_in(left)
            yield from _equal_in(right)
        case Join("left" | "semi" | "anti", left):
            yield from _equal_in(left)
        case Distinct(input) | Project(input, extends=True) | Windows(input) | Series(input) | Limited(input):
            yield from _equal_in(input)
        case _:
            return


def correlated(sub: Linked) -> Iterator[tuple[int, Plan, int]]:
    """What of a subquery's rows matters: columns around, and the equal column of a plan inside."""
    for around, its in sub.matched:
        yield around, sub.plan, its
    for plan in every(sub.plan):
        if isinstance(plan, Filter) or (isinstance(plan, Join) and plan.kind == "inner"):
            mine = set(plan.columns)
            for one, other in equalities(plan.tests):
                if (one in mine) != (other in mine):
                    yield (other, plan, one) if one in mine else (one, plan, other)
