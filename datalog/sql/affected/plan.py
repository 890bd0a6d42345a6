"""A query as operators of the relational algebra over bags, each column with a number of its own.

Expressions are trees in which the column of number 7 is called `c7`, and the value of a subquery `s0`, `s1`, ...
What an expression computes does not matter here: only which columns it uses, and which are equal where it holds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal as OneOf
from typing import TypeAlias

from msgspec import Struct
from sqlglot import exp

from datalog.copies import replace
from datalog.graphs import components
from datalog.model import NUMBER, ColumnType


class Table(Struct, frozen=True):
    """What is known of a base relation.

    Attributes:
        columns: its columns' names, in order.
        nullable: 0-based positions that may hold null.
        keys: sets of positions that identify a row and are never null.
    """

    name: str
    columns: tuple[str, ...]
    types: tuple[ColumnType, ...]
    nullable: frozenset[int] = frozenset()
    keys: tuple[tuple[int, ...], ...] = ()

    @property
    def as_written(self) -> Table:
        """The table without the column that numbers equal rows: no query knows of that."""
        if self.columns[-1:] != (NUMBER,):
            return self
        return replace(self, columns=self.columns[:-1], types=self.types[:-1])


class Linked(Struct, frozen=True, eq=False):
    """A subquery in an expression.

    Attributes:
        name: what stands for its value in trees.
        kind: whether there is a row, whether a value is among its rows, or its only value.
        plan: its rows; its conditions may use columns of the query around.
        operand: the value that is looked for among the rows, for `in`.
        matched: columns around, and outputs of it, that must be equal for a row of it to matter.
        unknown: of `in` that is no condition by itself: what it is where it is unknown. Spark has false there.
    """

    name: str
    kind: OneOf["exists", "in", "scalar"]
    plan: Plan
    columns: tuple[int, ...]
    operand: exp.Expr | None = None
    matched: tuple[tuple[int, int], ...] = ()
    unknown: bool | None = None


class Scan(Struct, frozen=True, eq=False):
    """The rows of a base relation; each occurrence of one in a query has a number."""

    table: Table
    number: int
    columns: tuple[int, ...]


class OneRow(Struct, frozen=True, eq=False):
    """One row without columns."""

    columns: tuple[int, ...] = ()


class _Over(Struct, frozen=True, eq=False):
    """An operator over one plan, whose columns it has."""

    input: Plan

    @property
    def columns(self) -> tuple[int, ...]:
        """The input's, unless it says otherwise."""
        return self.input.columns


class Filter(_Over, frozen=True, eq=False):
    """The rows for which all tests are true."""

    tests: tuple[exp.Expr, ...]
    inner: tuple[Linked, ...] = ()


class Project(_Over, frozen=True, eq=False):
    """One row for each of the input's, with the items as columns; `extends`: besides the input's."""

    items: tuple[tuple[int, exp.Expr], ...]
    inner: tuple[Linked, ...] = ()
    extends: bool = False

    @property
    def columns(self) -> tuple[int, ...]:
        """The items, behind the input's if it extends these."""
        own = tuple(number for number, _ in self.items)
        return (*self.input.columns, *own) if self.extends else own


class Series(_Over, frozen=True, eq=False):
    """The input's rows, each as often as a sequence has values, which are a column of their own.

    Attributes:
        first: the first value, over the input's columns; there is none where either end is null.
        last: where they end.
        step: by how many days, months or numbers they go on; None for one, up or down.
    """

    number: int
    first: exp.Expr
    last: exp.Expr
    step: tuple[int, str] | None = None

    @property
    def columns(self) -> tuple[int, ...]:
        """The input's, then that of the values."""
        return (*self.input.columns, self.number)


class Join(Struct, frozen=True, eq=False):
    """A join; of a semi- or anti-join the columns of the left side."""

    kind: OneOf["inner", "left", "full", "semi", "anti"]
    left: Plan
    right: Plan
    tests: tuple[exp.Expr, ...] = ()
    inner: tuple[Linked, ...] = ()

    @property
    def columns(self) -> tuple[int, ...]:
        """The left side's, then the right side's."""
        return (
            self.left.columns if self.kind in ("semi", "anti") else (*self.left.columns, *self.right.columns)
        )


class Aggregate(_Over, frozen=True, eq=False):
    """Groups of equal values of some of the input's columns, and aggregates over each.

    Attributes:
        groups: the columns grouped by; no group, if there are none, is one of all rows.
        common: those of them that every grouping set has: in all others a value may be null for another reason.
        sets: the grouping sets, if there are others than all of `groups`.
    """

    groups: tuple[int, ...]
    common: frozenset[int]
    items: tuple[tuple[int, exp.Expr], ...]
    inner: tuple[Linked, ...] = ()
    sets: tuple[frozenset[int], ...] = ()

    @property
    def columns(self) -> tuple[int, ...]:
        """The columns grouped by, then the aggregates."""
        return (*self.groups, *(number for number, _ in self.items))


class Windows(_Over, frozen=True, eq=False):
    """The input's rows with the values of window functions."""

    items: tuple[tuple[int, exp.Window], ...]
    inner: tuple[Linked, ...] = ()

    @property
    def columns(self) -> tuple[int, ...]:
        """The input's, then the windows."""
        return (*self.input.columns, *(number for number, _ in self.items))


class Distinct(_Over, frozen=True, eq=False):
    """The input's rows, each once."""


class Combined(Struct, frozen=True, eq=False):
    """UNION, EXCEPT or INTERSECT; each column with the left and the right one that it comes from."""

    kind: OneOf["union", "except", "intersect"]
    distinct: bool
    left: Plan
    right: Plan
    pairs: tuple[tuple[int, int, int], ...] = ()

    @property
    def columns(self) -> tuple[int, ...]:
        """Those of their own."""
        return tuple(number for number, _, _ in self.pairs)


class Limited(_Over, frozen=True, eq=False):
    """Some of the input's rows, chosen by looking at all of them.

    Attributes:
        order: the columns that they are the first by, each with whether it descends and whether nulls are first;
            none if that is not known.
        number: how many they are at most, if that is known.
    """

    order: tuple[tuple[int, bool, bool], ...] = ()
    number: int | None = None


Plan: TypeAlias = (
    Scan | OneRow | Filter | Project | Series | Join | Aggregate | Windows | Distinct | Combined | Limited
)


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """A plan with names for its outputs.

    Attributes:
        outputs: each column of the result: its name in lower case, and its number.
    """

    plan: Plan
    outputs: tuple[tuple[str, int], ...] = field(default=())


def below(plan: Plan) -> tuple[Plan, ...]:
    """The plans that a plan is made of, without subqueries in expressions."""
    match plan:
        case Scan() | OneRow():
            return ()
        case Join() | Combined():
            return plan.left, plan.right
        case _:
            return (plan.input,)


def linked(plan: Plan) -> tuple[Linked, ...]:
    """The subqueries in a plan's own expressions."""
    return () if isinstance(plan, Scan | OneRow | Series | Distinct | Combined | Limited) else plan.inner


def every(plan: Plan) -> Iterator[Plan]:
    """A plan and all within, those of subqueries too."""
    yield plan
    for one in (*below(plan), *(sub.plan for sub in linked(plan))):
        yield from every(one)


def column(number: int) -> exp.Column:
    """The tree of a column."""
    return exp.column(f"c{number}")


def number_of(tree: exp.Expr | None) -> int | None:
    """The number of a column, if a tree is just one."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    if isinstance(tree, exp.Column) and tree.name.startswith("c"):
        return int(tree.name[1:])
    return None


def equalities(tests: Iterable[exp.Expr]) -> tuple[tuple[int, int], ...]:
    """The pairs of columns that are equal and not null where some tests are true.

    >>> from sqlglot import parse_one
    >>> tests = [parse_one("(c1 = c2 and c3 > 5) or (c1 = c2 and c3 = c4)")]
    >>> equalities(tests)
    ((1, 2),)
    """
    found = [_equal(test) for test in tests]
    return tuple(sorted(set[tuple[int, int]]().union(*found)))


def _equal(tree: exp.Expr) -> frozenset[tuple[int, int]]:
    match tree:
        case exp.Paren():
            return _equal(tree.this)
        case exp.And():
            return _equal(tree.this) | _equal(tree.expression)
        case exp.Or():
            return _equal(tree.this) & _equal(tree.expression)
        case exp.EQ():
            left, right = number_of(tree.this), number_of(tree.expression)
            return frozenset() if left is None or right is None else frozenset({(left, right)})
        case _:
            return frozenset()


def closed(columns: Collection[int], pairs: Iterable[tuple[int, int]]) -> frozenset[int]:
    """Some columns with those that are equal to one of them.

    >>> sorted(closed({1}, [(2, 3), (4, 5), (3, 1)]))
    [1, 2, 3]
    """
    return frozenset(n for one in components(columns, pairs) if not set(one).isdisjoint(columns) for n in one)


def never_null(plan: Plan, number: int) -> bool:
    """Whether a column is certainly not null in any row of a plan, given what is declared."""
    if number not in plan.columns:
        return False
    match plan:
        case Scan(table, _, columns):
            return columns.index(number) not in table.nullable
        case Filter(input, tests):
            return never_null(input, number) or any(number in pair for pair in equalities(tests))
        case Project(input, items):
            inside = next((number_of(tree) for n, tree in items if n == number), number)
            return inside is not None and never_null(input, inside)
        case Join(kind, left, right, tests):
            if kind == "full":
                return False
            given = kind == "inner" and any(number in pair for pair in equalities(tests))
            right_too = kind == "inner" and never_null(right, number)
            return given or never_null(left, number) or right_too
        case Aggregate(input, _, common):
            return number in common and never_null(input, number)
        case Distinct(input) | Windows(input):
            return never_null(input, number)
        case Series(input, own):
            return number == own or never_null(input, number)
        case _:
            return False
