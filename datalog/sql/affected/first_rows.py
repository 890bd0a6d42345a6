"""Views of the first rows of each group by an order: what they show tells what they will show.

    SELECT id, customer, placed, upper(status) AS status
    FROM (SELECT *, row_number() OVER (PARTITION BY customer ORDER BY placed DESC, id DESC) AS n FROM orders)
    WHERE n <= 3

A row that is not shown comes behind all that its group shows. So of the rows shown and those that come the first ones
are the first ones of all, as long as enough of them come no later than the last one shown did before.

Conditions of soundness:

1. The query keeps the rows of one relation, or of groups of equal values of some of its columns, for which tests on
   them hold, and which few come before (`row_number`, `rank`), or few values of the order (`dense_rank`). It says
   nothing else of other rows.
2. It shows the columns that groups and order are made of, and a key, as they are: it is known which rows are shown,
   and where they stand. What else it shows of a row is there, and of a row that comes it is computed.
3. It shows whole groups where it shows fewer rows, or values of the order, than it might. In others the rows that are
   not shown come behind the last one that is: strictly, for an equal one would be shown, too.
4. So if after the update as many rows as it might show come no later than that one, all others come behind them. Their
   numbers and ranks are those among the rows that are known, for no other row comes before one of them.
"""

# ruff: noqa: S608 - queries are made of trees and of names of their own
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from datalog.model import OpaqueView, TextQuery, TextRead
from datalog.sql.affected.plan import Filter, Limited, Plan, Project, Query, Scan, Table, Windows, number_of
from datalog.sql.text import text

OLD, STORED, COME = "old_rows", "stored_rows", "new_rows"
"""What the queries call the view's rows before the update, those that do not go, and the relation's rows that come."""

_RANKS = {exp.RowNumber: "row_number", exp.Rank: "rank", exp.DenseRank: "dense_rank"}
_SWAPPED: dict[type[exp.Expr], type[exp.Expr]] = {exp.GTE: exp.LTE, exp.GT: exp.LT, exp.EQ: exp.EQ}
_RANK = "rank of a row"
"""What stands for the rank in trees; no column is called so where this is found out."""


@dataclass(frozen=True)
class FirstRows:
    """How a view chooses rows.

    Attributes:
        table: the relation that they are of.
        outputs: by the name of each of the view's columns an expression over the relation's, and the rank.
        shown: by position of a column of the relation the position of an output that is it.
        key: positions of columns of the relation that identify a row.
        groups: positions of the columns that a group has in common.
        order: what rows are ordered by, in expressions over the relation's columns.
        tests: what holds of each row, likewise.
        rank: the function that numbers rows.
        most: up to which number they are shown.
    """

    table: Table
    outputs: tuple[tuple[str, exp.Expr], ...]
    shown: Mapping[int, int]
    key: tuple[int, ...]
    groups: tuple[int, ...]
    order: tuple[exp.Ordered, ...]
    tests: tuple[exp.Expr, ...]
    rank: str
    most: int

    @property
    def stored_columns(self) -> tuple[str, ...]:
        """What the queries call the columns of the view's rows."""
        return tuple(f"v{i}" for i in range(len(self.outputs)))

    def first(self) -> OpaqueView:
        """The query for the first of the rows `STORED` and `COME`."""
        query = _Text()
        shown = [
            f"{_sql(_replaced(tree, {_RANK: exp.column('place')})) if _has_rank(tree) else f'v{i}'} AS {_named(name)}"
            for i, (name, tree) in enumerate(self.outputs)
        ]
        query.add(
            f"SELECT {', '.join(shown)} FROM (SELECT *, {self.rank}() OVER ({self._window}) AS place FROM ("
        )
        query.add(f"SELECT {self._of_stored()} FROM ").read(STORED)
        # A row that is said to come, and was there, is one.
        query.add(f" UNION SELECT {self._of_new()} FROM ").read(COME)
        query.add(f" WHERE {self._where}) AS both) AS placed WHERE place <= {self.most}")
        return query.view(tuple(name for name, _ in self.outputs))

    def behind(self) -> OpaqueView:
        """The query for groups of which a row may come to be shown that is neither stored nor comes; see `OLD`."""
        groups = [f"g{i}" for i in range(len(self.groups))]
        every, by = "".join(f"{one}, " for one in groups), ", ".join(groups)
        within = f"PARTITION BY {by}" if groups else ""
        counted = "count(CASE WHEN {} THEN 1 END)"
        if self.rank == "dense_rank":
            counted = "count(DISTINCT CASE WHEN {} THEN place END)"
        before, after = counted.format("side = 0"), counted.format("side = 1 AND place <= last_place")
        query = _Text()
        query.add(
            f"SELECT count(*) AS n FROM (SELECT {every}side, place, max(CASE WHEN side = 0 THEN place END) "
        )
        query.add(
            f"OVER ({within}) AS last_place FROM (SELECT {every}side, dense_rank() OVER ({self._window}) AS place"
        )
        query.add(f" FROM (SELECT {self._places_of_stored()}, 0 AS side FROM ").read(OLD)
        query.add(f" UNION ALL SELECT {self._places_of_stored()}, 1 AS side FROM ").read(STORED)
        query.add(f" UNION ALL SELECT {self._places_of_new()}, 1 AS side FROM ").read(COME)
        query.add(
            f" WHERE {self._where}) AS sides) AS placed) AS ended {f'GROUP BY {by} ' if groups else ''}"
        )
        query.add(f"HAVING {before} >= {self.most} AND {after} < {self.most}")
        return query.view(("n",))

    @property
    def _window(self) -> str:
        groups = ", ".join(f"g{i}" for i in range(len(self.groups)))
        order = ", ".join(
            _sql(exp.Ordered(**{**one.args, "this": exp.column(f"o{i}")})) for i, one in enumerate(self.order)
        )
        return f"{f'PARTITION BY {groups} ' if groups else ''}ORDER BY {order}"

    @property
    def _where(self) -> str:
        return " AND ".join(f"({_sql(test)})" for test in self.tests) or "TRUE"

    def _of_stored(self) -> str:
        return ", ".join([*(f"v{i}" for i in self._kept), self._places_of_stored()])

    def _of_new(self) -> str:
        return ", ".join(
            [*(f"{_sql(self.outputs[i][1])} AS v{i}" for i in self._kept), self._places_of_new()]
        )

    @property
    def _kept(self) -> Sequence[int]:
        """The outputs that are what they were as other rows come and go."""
        return [i for i, (_, tree) in enumerate(self.outputs) if not _has_rank(tree)]

    def _places_of_stored(self) -> str:
        columns = {
            self.table.columns[column]: exp.column(f"v{output}") for column, output in self.shown.items()
        }
        return self._places(columns)

    def _places_of_new(self) -> str:
        return self._places({})

    def _places(self, columns: Mapping[str, exp.Expr]) -> str:
        """The columns of groups, and what rows are ordered by, over other columns."""
        groups = (exp.column(self.table.columns[i], quoted=True) for i in self.groups)
        items = [(f"g{i}", tree) for i, tree in enumerate(groups)]
        items += [(f"o{i}", one.this) for i, one in enumerate(self.order)]
        return ", ".join(f"{_sql(_replaced(tree, columns))} AS {name}" for name, tree in items)


class _Text:
    """A query that is being written."""

    def __init__(self) -> None:
        self._text = ""
        self._reads: list[TextRead] = []

    def add(self, text: str) -> _Text:
        """More of it."""
        self._text += text
        return self

    def read(self, name: str) -> None:
        """The name of a relation that it reads."""
        self._reads.append(TextRead(len(self._text), len(self._text) + len(name), name))
        self._text += name

    def view(self, columns: tuple[str, ...]) -> OpaqueView:
        """It, as a view."""
        return OpaqueView(
            "first rows", self._text, (), columns, query=TextQuery(self._text, tuple(self._reads))
        )


def _sql(tree: exp.Expr) -> str:
    return text(tree, pretty=False)


def _named(name: str) -> str:
    return _sql(exp.to_identifier(name, quoted=True))


def _has_rank(tree: exp.Expr) -> bool:
    return any(one.name == _RANK for one in tree.find_all(exp.Column))


def _is_of_rank(tree: exp.Expr) -> bool:
    return all(one.name == _RANK for one in tree.find_all(exp.Column))


def _replaced(tree: exp.Expr, columns: Mapping[str, exp.Expr]) -> exp.Expr:
    """An expression with others in place of some columns."""

    def other(node: exp.Expr) -> exp.Expr:
        return columns[node.name].copy() if isinstance(node, exp.Column) and node.name in columns else node

    return tree.transform(other)


def first_rows(query: Query) -> FirstRows | None:
    """How a query chooses the first rows of one relation; None if it does something else, or shows too little."""
    chain: list[Plan] = []
    plan = query.plan
    while isinstance(plan, Filter | Project | Windows | Limited):
        if not isinstance(plan, Limited) and plan.inner:
            return None
        chain.append(plan)
        plan = plan.input
    if not isinstance(plan, Scan) or _RANK in plan.table.columns:
        return None
    reading = _Reading(plan)
    if not all(map(reading.is_read, reversed(chain))):
        return None
    return reading.found(query)


class _Reading:
    """Reads a chain of operators over one relation, from it on."""

    def __init__(self, scan: Scan) -> None:
        self._table = scan.table
        names = zip(scan.columns, scan.table.columns, strict=False)
        self._trees: dict[int, exp.Expr] = {number: exp.column(name, quoted=True) for number, name in names}
        self._groups: tuple[exp.Expr, ...] = ()
        self._order: tuple[exp.Ordered, ...] = ()
        self._tests: list[exp.Expr] = []
        self._rank: str | None = None
        self._most: int | None = None

    def is_read(self, plan: Plan) -> bool:
        """Takes the next operator; whether it can be."""
        match plan:
            case Filter(_, tests):
                return all(self._is_test(one) for test in tests for one in _conjuncts(test))
            case Project(_, items, extends=extends):
                made = {number: self._over_table(tree) for number, tree in items}
                self._trees = {**self._trees, **made} if extends else made
                return True
            case Windows(_, items) if self._rank is None and len(items) == 1:
                return self._is_window(*items[0])
            case Limited(_, order, number) if self._rank is None and order and number:
                by = [(self._trees[n].copy(), desc, first) for n, desc, first in order]
                self._order = tuple(
                    exp.Ordered(this=t, desc=desc, nulls_first=first) for t, desc, first in by
                )
                self._rank, self._most = "row_number", number
                return True
            case _:
                return False

    def found(self, query: Query) -> FirstRows | None:
        """What was read, if the query shows enough."""
        places = {name: i for i, name in enumerate(self._table.columns)}
        outputs = tuple((name, self._trees[number]) for name, number in query.outputs)
        shown: dict[int, int] = {}
        for output, (_, tree) in enumerate(outputs):
            if isinstance(tree, exp.Column) and tree.name in places:
                shown.setdefault(places[tree.name], output)
        groups = [places[one.name] for one in self._groups if isinstance(one, exp.Column)]
        ordered = {places[one.name] for tree in self._order for one in tree.find_all(exp.Column)}
        key = next((key for key in self._table.keys if shown.keys() >= set(key)), None)
        names = {name for name, _ in outputs}
        if self._rank is None or self._most is None or key is None or len(groups) < len(self._groups):
            return None
        mixed = any(_has_rank(tree) and not _is_of_rank(tree) for _, tree in outputs)
        if not shown.keys() >= {*groups, *ordered} or mixed or len(names) < len(outputs):
            return None
        return FirstRows(
            self._table,
            outputs,
            shown,
            key,
            tuple(groups),
            self._order,
            tuple(self._tests),
            self._rank,
            self._most,
        )

    def _over_table(self, tree: exp.Expr) -> exp.Expr:
        """An expression over the relation's columns, and the rank."""

        def replaced(node: exp.Expr) -> exp.Expr:
            number = number_of(node) if isinstance(node, exp.Column) else None
            return node if number is None else self._trees[number].copy()

        return tree.transform(replaced)

    def _is_window(self, number: int, tree: exp.Window) -> bool:
        call, order = tree.this, tree.args.get("order")
        if type(call) not in _RANKS or call.expressions or tree.args.get("spec") or order is None:
            return False
        self._groups = tuple(self._over_table(one) for one in tree.args.get("partition_by") or ())
        by = [self._over_table(one) for one in order.expressions]
        self._order = tuple(one for one in by if isinstance(one, exp.Ordered))
        self._rank = _RANKS[type(call)]
        self._trees[number] = exp.column(_RANK, quoted=True)
        return bool(by) and len(by) == len(self._order)

    def _is_test(self, test: exp.Expr) -> bool:
        """Takes a test: of rows before they are ordered, how many come before, or of whole groups."""
        tree = self._over_table(test)
        if not _has_rank(tree):
            self._tests.append(tree)
            columns = {one.name for one in tree.find_all(exp.Column)}
            return self._rank is None or columns <= {one.name for one in self._groups}
        most = _most(tree) if self._most is None else None
        self._most = most
        return most is not None


def _conjuncts(test: exp.Expr) -> Iterable[exp.Expr]:
    inner = test.unnest()
    return inner.flatten() if isinstance(inner, exp.And) else [inner]


def _most(test: exp.Expr) -> int | None:
    """Up to which rank a test lets rows through, from the first on; None if it says something else."""
    test = test.unnest()
    if not isinstance(test, exp.EQ | exp.LT | exp.LTE | exp.GT | exp.GTE):
        return None
    kind: type[exp.Expr] = type(test)
    left, right = test.this.unnest(), test.expression.unnest()
    if isinstance(left, exp.Literal):
        kind, left, right = _SWAPPED.get(kind, exp.NEQ), right, left
    is_rank = isinstance(left, exp.Column) and left.name == _RANK
    if not is_rank or not isinstance(right, exp.Literal) or not right.is_int:
        return None
    most = int(right.name) - (kind is exp.LT)
    is_most = kind in (exp.LT, exp.LTE) or (kind is exp.EQ and most == 1)
    return most if is_most and most >= 1 else None
