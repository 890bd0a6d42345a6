"""Views whose rows tell their new ones: a row of each row of one relation, or of the first ones of each group.

    SELECT id, customer, placed, n, sum(n) OVER (PARTITION BY customer ORDER BY placed, id) AS so_far FROM orders

    SELECT id, customer, placed, upper(status) AS status
    FROM (SELECT *, row_number() OVER (PARTITION BY customer ORDER BY placed DESC, id DESC) AS n FROM orders)
    WHERE n <= 3

What windows look at is shown of all rows, so they are computed anew from the rows that are stored and stay, and those
that come. Of first rows one that is not shown comes behind all that its group shows. So of the rows shown and those
that come the first ones are the first of all, as long as enough of them come no later than the last one shown did.

Conditions of soundness:

1. The query has a row for each row of one relation for which tests hold, and in which few rows of its group come before
   (`row_number`, `rank`), or few values of the order (`dense_rank`); or for each of them all.
2. It shows the columns that windows use, and a key, as they are: it is known which rows are shown, and what windows
   make of them. What else it shows of a row is there, and of a row that comes it is computed.
3. Of first rows it shows whole groups where it shows fewer rows, or values of the order, than it might. In others the
   rows that are not shown come behind the last one that is: strictly, for an equal one would be shown, too.
4. So if after the update as many rows as it might show come no later than that one, all others come behind them. Their
   numbers and ranks are those among the rows that are known, for no other row comes before one of them. It shows no
   window but this one.
"""

# ruff: noqa: S608 - queries are made of trees and of names of their own
from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct
from sqlglot import exp

from datalog.model import OpaqueView, TextQuery, TextRead
from datalog.sql.affected.plan import Filter, Limited, Plan, Project, Query, Scan, Table, Windows, number_of
from datalog.sql.text import quoted, text

OLD, STORED, COME = "old_rows", "stored_rows", "new_rows"
"""What the queries call the view's rows before the update, those that do not go, and the relation's rows that come."""

_RANKS = (exp.RowNumber, exp.Rank, exp.DenseRank)
_SWAPPED: dict[type[exp.Expr], type[exp.Expr]] = {exp.GTE: exp.LTE, exp.GT: exp.LT, exp.EQ: exp.EQ}
_WINDOW = "value of window "
"""What columns that stand for windows in trees begin with; no relation has such a column where this is found out."""


class FirstRows(Struct, frozen=True):
    """Which rows a view shows, if not all.

    Attributes:
        window: the column that stands for the window by which they are the first ones.
        most: up to which number they are shown.
    """

    window: str
    most: int


class ShownRows(Struct, frozen=True):
    """What a view shows of the rows of a relation.

    Attributes:
        table: the relation.
        outputs: by the name of each of the view's columns an expression over the relation's, and windows.
        windows: the windows, over the relation's columns.
        shown: by position of a column of the relation the position of an output that is it.
        key: positions of columns of the relation that identify a row.
        groups: positions of columns by which all windows part rows.
        tests: what holds of each row, over the relation's columns.
        first: which rows are shown, if not all.
    """

    table: Table
    outputs: tuple[tuple[str, exp.Expr], ...]
    windows: Mapping[str, exp.Window]
    shown: Mapping[int, int]
    key: tuple[int, ...]
    groups: tuple[int, ...]
    tests: tuple[exp.Expr, ...]
    first: FirstRows | None

    @property
    def stored_columns(self) -> tuple[str, ...]:
        """What the queries call the columns of the view's rows."""
        return tuple(f"v{i}" for i in range(len(self.outputs)))

    def new(self) -> OpaqueView:
        """The query for the view's rows after the update, given those in `STORED`, and `COME`."""
        query, names = _Text(), {name: f"w{i}" for i, name in enumerate(self.windows)}
        kept = [i for i, (_, tree) in enumerate(self.outputs) if not _windows_in(tree)]
        over = {name: exp.column(own) for name, own in names.items()}
        shown = [
            f"{f'v{i}' if i in kept else _sql(_replaced(tree, over))} AS {quoted(name)}"
            for i, (name, tree) in enumerate(self.outputs)
        ]
        made = [
            f"{_sql(self._over_columns(window))} AS {names[name]}" for name, window in self.windows.items()
        ]
        query.add(f"SELECT {', '.join(shown)} FROM (SELECT {', '.join(['*', *made])} FROM (")
        query.add(f"SELECT {', '.join([*(f'v{i}' for i in kept), *self._of_stored()])} FROM ").read(STORED)
        # A row that is said to come, and was there, is one.
        new = (f"{_sql(self.outputs[i][1])} AS v{i}" for i in kept)
        query.add(f" UNION SELECT {', '.join([*new, *self._of_new()])} FROM ").read(COME)
        query.add(f"{self._where}) AS both) AS made")
        if self.first is not None:
            query.add(f" WHERE {names[self.first.window]} <= {self.first.most}")
        return query.view(tuple(name for name, _ in self.outputs))

    def behind(self, first: FirstRows) -> OpaqueView:
        """The query for groups of which a row may come to be shown that is neither stored nor comes; see `OLD`."""
        groups, window = [f"b{i}" for i in self.groups], self.windows[first.window]
        every, by = "".join(f"{one}, " for one in groups), ", ".join(groups)
        place = window.copy()
        place.set("this", exp.DenseRank())
        counted = "count(CASE WHEN {} THEN 1 END)"
        if isinstance(window.this, exp.DenseRank):
            counted = "count(DISTINCT CASE WHEN {} THEN place END)"
        before, after = counted.format("side = 0"), counted.format("side = 1 AND place <= last_place")
        query = _Text()
        query.add(
            f"SELECT count(*) AS n FROM (SELECT {every}side, place, max(CASE WHEN side = 0 THEN place END) "
        )
        query.add(f"OVER ({f'PARTITION BY {by}' if by else ''}) AS last_place FROM (SELECT {every}side, ")
        query.add(f"{_sql(self._over_columns(place))} AS place ")
        query.add(f"FROM (SELECT {', '.join(self._of_stored())}, 0 AS side FROM ").read(OLD)
        query.add(f" UNION ALL SELECT {', '.join(self._of_stored())}, 1 AS side FROM ").read(STORED)
        query.add(f" UNION ALL SELECT {', '.join(self._of_new())}, 1 AS side FROM ").read(COME)
        query.add(f"{self._where}) AS sides) AS placed) AS ended {f'GROUP BY {by} ' if by else ''}")
        query.add(f"HAVING {before} >= {first.most} AND {after} < {first.most}")
        return query.view(("n",))

    @property
    def _where(self) -> str:
        tests = " AND ".join(f"({_sql(test)})" for test in self.tests)
        return f" WHERE {tests}" if tests else ""

    @property
    def _used(self) -> list[int]:
        """The columns of the relation that windows use."""
        names = set[str]().union(*map(_names_in, self.windows.values()))
        return [i for i, name in enumerate(self.table.columns) if name in names]

    def _of_stored(self) -> list[str]:
        return [f"v{self.shown[i]} AS b{i}" for i in self._used]

    def _of_new(self) -> list[str]:
        return [f"{quoted(self.table.columns[i])} AS b{i}" for i in self._used]

    def _over_columns(self, tree: exp.Expr) -> exp.Expr:
        return _replaced(tree, {self.table.columns[i]: exp.column(f"b{i}") for i in self._used})


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
            "shown rows", self._text, (), columns, query=TextQuery(self._text, tuple(self._reads))
        )


def _sql(tree: exp.Expr) -> str:
    return text(tree, pretty=False)


def _names_in(tree: exp.Expr) -> set[str]:
    """The columns, and windows, that an expression uses."""
    return {one.name for one in tree.find_all(exp.Column)}


def _windows_in(tree: exp.Expr) -> set[str]:
    """The windows that an expression uses."""
    return {name for name in _names_in(tree) if name.startswith(_WINDOW)}


def _replaced(tree: exp.Expr, columns: Mapping[str, exp.Expr]) -> exp.Expr:
    """An expression with others in place of some columns."""

    def other(node: exp.Expr) -> exp.Expr:
        return columns[node.name].copy() if isinstance(node, exp.Column) and node.name in columns else node

    return tree.transform(other)


def shown_rows(query: Query) -> ShownRows | None:
    """What a query shows of the rows of one relation; None if it does something else, or shows too little."""
    chain: list[Plan] = []
    plan = query.plan
    while isinstance(plan, Filter | Project | Windows | Limited):
        if not isinstance(plan, Limited) and plan.inner:
            return None
        chain.append(plan)
        plan = plan.input
    if not isinstance(plan, Scan) or any(name.startswith(_WINDOW) for name in plan.table.columns):
        return None
    reading = _Reading(plan)
    return reading.found(query) if all(map(reading.is_read, reversed(chain))) else None


class _Reading:
    """Reads a chain of operators over one relation, from it on."""

    def __init__(self, scan: Scan) -> None:
        self._table = scan.table
        names = zip(scan.columns, scan.table.columns, strict=False)
        self._trees: dict[int, exp.Expr] = {number: exp.column(name, quoted=True) for number, name in names}
        self._windows: dict[str, exp.Window] = {}
        self._tests: list[exp.Expr] = []
        self._tests_of_groups: list[exp.Expr] = []
        self._first: FirstRows | None = None

    def is_read(self, plan: Plan) -> bool:
        """Takes the next operator; whether it can be."""
        match plan:
            case Filter(_, tests):
                return all(self._is_test(one) for test in tests for one in _conjuncts(test))
            case Project(_, items, extends=extends):
                made = {number: self._over_table(tree) for number, tree in items}
                self._trees = {**self._trees, **made} if extends else made
                return True
            case Windows(_, items) if not self._windows:
                for number, tree in items:
                    window, name = self._over_table(tree), f"{_WINDOW}{number}"
                    assert isinstance(window, exp.Window)
                    self._windows[name], self._trees[number] = window, exp.column(name, quoted=True)
                return True
            case Limited(_, order, number) if not self._windows and order and number:
                by = [exp.Ordered(this=self._trees[n].copy(), desc=d, nulls_first=f) for n, d, f in order]
                window = exp.Window(this=exp.RowNumber(), order=exp.Order(expressions=by))
                self._windows[_WINDOW], self._first = window, FirstRows(_WINDOW, number)
                return True
            case _:
                return False

    def found(self, query: Query) -> ShownRows | None:
        """What was read, if the query shows enough."""
        places = {name: i for i, name in enumerate(self._table.columns)}
        outputs = tuple((name, self._trees[number]) for name, number in query.outputs)
        shown: dict[int, int] = {}
        for output, (_, tree) in enumerate(outputs):
            if isinstance(tree, exp.Column) and tree.name in places:
                shown.setdefault(places[tree.name], output)
        names = set[str]().union(*(_windows_in(tree) for _, tree in outputs))
        names |= {self._first.window} if self._first else set()
        windows = {name: window for name, window in self._windows.items() if name in names}
        used = {places[name] for window in windows.values() for name in _names_in(window)}
        key = next((key for key in self._table.keys if shown.keys() >= set(key)), None)
        mixed = any(_windows_in(tree) not in (set(), _names_in(tree)) for _, tree in outputs)
        if (
            key is None
            or mixed
            or not shown.keys() >= used
            or len({name for name, _ in outputs}) < len(outputs)
        ):
            return None
        parts = [window.args.get("partition_by") or () for window in windows.values()]
        groups = [{places[one.name] for one in part if isinstance(one, exp.Column)} for part in parts]
        of_all = set.intersection(*groups) if groups else set()
        if any(not {places[name] for name in _names_in(test)} <= of_all for test in self._tests_of_groups):
            return None
        if self._first is not None and (len(windows) > 1 or len(of_all) < len(parts[0])):
            return None
        every = (*self._tests, *self._tests_of_groups)
        return ShownRows(self._table, outputs, windows, shown, key, tuple(sorted(of_all)), every, self._first)

    def _over_table(self, tree: exp.Expr) -> exp.Expr:
        """An expression over the relation's columns, and windows."""

        def replaced(node: exp.Expr) -> exp.Expr:
            number = number_of(node) if isinstance(node, exp.Column) else None
            return node if number is None else self._trees[number].copy()

        return tree.transform(replaced)

    def _is_test(self, test: exp.Expr) -> bool:
        """Takes a test: of rows before windows look at them, of whole groups, or of how many come before."""
        tree = self._over_table(test)
        windows = _windows_in(tree)
        if not windows:
            (self._tests_of_groups if self._windows else self._tests).append(tree)
            return True
        (name, *more) = windows
        most = None if more or self._first is not None else _most(tree, name)
        if most is None or not _is_rank(self._windows[name]):
            return False
        self._first = FirstRows(name, most)
        return True


def _is_rank(window: exp.Window) -> bool:
    call = window.this
    plain = isinstance(call, _RANKS) and not call.expressions and not window.args.get("spec")
    return plain and window.args.get("order") is not None


def _conjuncts(test: exp.Expr) -> Iterable[exp.Expr]:
    inner = test.unnest()
    return inner.flatten() if isinstance(inner, exp.And) else [inner]


def _most(test: exp.Expr, rank: str) -> int | None:
    """Up to which rank a test lets rows through, from the first on; None if it says something else."""
    test = test.unnest()
    if not isinstance(test, exp.EQ | exp.LT | exp.LTE | exp.GT | exp.GTE):
        return None
    kind: type[exp.Expr] = type(test)
    left, right = test.this.unnest(), test.expression.unnest()
    if isinstance(left, exp.Literal):
        kind, left, right = _SWAPPED.get(kind, exp.NEQ), right, left
    is_rank = isinstance(left, exp.Column) and left.name == rank
    if not is_rank or not isinstance(right, exp.Literal) or not right.is_int:
        return None
    most = int(right.name) - (kind is exp.LT)
    is_most = kind in (exp.LT, exp.LTE) or (kind is exp.EQ and most == 1)
    return most if is_most and most >= 1 else None
