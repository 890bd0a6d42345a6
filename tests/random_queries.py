"""Random queries over the tables of `keyed_queries`: joins, groups, windows, set operations and subqueries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from random import Random

from tests.keyed_queries import COLUMNS


@dataclass(frozen=True)
class Piece:
    """A query in parentheses, and the names of its columns."""

    text: str
    columns: tuple[str, ...]


@dataclass
class Maker:
    """Makes queries over `tables`, some more often than others; every column has a name of its own."""

    random: Random
    tables: Mapping[str, Sequence[str]] = field(default_factory=lambda: COLUMNS)
    often: Sequence[str] = ("r", "r", "s", "t")

    def __post_init__(self) -> None:
        self._names = count()

    def query(self, depth: int) -> str:
        """A query of so many levels at most."""
        return self.piece(depth).text[1:-1]

    def _name(self, stem: str) -> str:
        return f"{stem}{next(self._names)}"

    def piece(self, depth: int) -> Piece:
        """The same, to be read from."""
        if depth == 0:
            return self._base()
        shapes = [self._joined, self._joined, self._grouped, self._grouped, self._windowed, self._set]
        shapes += [self._there, self._there, self._distinct, self._scalar, self._listed]
        return self.random.choice(shapes)(depth)

    def _base(self) -> Piece:
        table = self.random.choice(self.often)
        items = {self._name("k"): column for column in self.tables[table]}
        select = ", ".join(f"{column} as {name}" for name, column in items.items())
        column = self.random.choice(self.tables[table])
        test = self.random.choice(["", "", f" where {column} > 0", f" where {column} is not null"])
        return Piece(f"(select {select} from {table}{test})", tuple(items))

    def _select(self, items: list[str], behind: str) -> Piece:
        names = [self._name("k") for _ in items]
        listed = ", ".join(f"{item} as {name}" for item, name in zip(items, names, strict=True))
        return Piece(f"(select {listed} {behind})", tuple(names))

    def _some(self, columns: tuple[str, ...], least: int = 1) -> list[str]:
        some = [column for column in columns if self.random.random() < 0.7]
        return some if len(some) >= least else [*columns[:least]]

    def _joined(self, depth: int) -> Piece:
        left, right = self.piece(depth - 1), self.piece(self.random.randrange(depth))
        one, other = self._name("x"), self._name("y")
        mine, its = self.random.choice(left.columns), self.random.choice(right.columns)
        kind = self.random.choice(["join", "join", "left join", "left join", "right join", "full join"])
        on = f"{one}.{mine} = {other}.{its}"
        if kind != "full join" and self.random.random() < 0.2:
            on += f" and {one}.{self.random.choice(left.columns)} <= {other}.{self.random.choice(right.columns)}"
        items = [f"{one}.{c}" for c in self._some(left.columns)] + [
            f"{other}.{c}" for c in self._some(right.columns)
        ]
        if self.random.random() < 0.5 or kind == "full join":
            items.append(f"coalesce({one}.{mine}, {other}.{its})")
        where = ""
        if self.random.random() < 0.2:
            where = f" where {one}.{self.random.choice(left.columns)} = {other}.{self.random.choice(right.columns)}"
        return self._select(items, f"from {left.text} as {one} {kind} {right.text} as {other} on {on}{where}")

    def _listed(self, depth: int) -> Piece:
        """A join by commas and WHERE."""
        left, right = self.piece(depth - 1), self._base()
        one, other = self._name("x"), self._name("y")
        tests = [f"{one}.{self.random.choice(left.columns)} = {other}.{self.random.choice(right.columns)}"]
        if self.random.random() < 0.5:
            tests.append(f"{one}.{self.random.choice(left.columns)} > 1")
        items = [f"{one}.{c}" for c in self._some(left.columns)] + [
            f"{other}.{self.random.choice(right.columns)}"
        ]
        return self._select(
            items, f"from {left.text} as {one}, {right.text} as {other} where {' and '.join(tests)}"
        )

    def _grouped(self, depth: int) -> Piece:
        inside = self.piece(depth - 1)
        groups = self._some(inside.columns)
        if self.random.random() < 0.1:
            groups = [f"{groups[0]} + 1"]
        column = self.random.choice(inside.columns)
        call = self.random.choice(
            ["count(*)", "count(distinct {})", "sum({})", "max({})", "min({})", "avg({})"]
        )
        call = call.format(column)
        shown = groups if self.random.random() < 0.8 else groups[:1]
        having = self.random.choice(["", "", " having count(*) > 1", f" having max({column}) > 2"])
        alias = self._name("x")
        items = [*shown, call]
        if call.startswith("avg"):
            items[-1] = f"case when {call} > 2 then 1 else 0 end"
        if self.random.random() < 0.05:
            return self._select(items[-1:], f"from {inside.text} as {alias}{having}")
        return self._select(items, f"from {inside.text} as {alias} group by {', '.join(groups)}{having}")

    def sums(self, depth: int) -> str:
        """Counts and sums of groups."""
        inside = self.piece(depth - 1)
        groups = self.random.choice(
            [inside.columns[-1:], (f"{inside.columns[-1]} + 1",), inside.columns[1:2], ()]
        )
        column = self.random.choice(inside.columns)
        calls = self.random.choice(
            [["count(*)"], ["count(*)", "sum({})"], ["sum({})"], ["count({})", "sum({})"]]
        )
        items = [*groups, *(call.format(column) for call in calls)]
        behind = f" group by {', '.join(groups)}" if groups else ""
        return self._select(items, f"from {inside.text} as {self._name('x')}{behind}").text[1:-1]

    def _windowed(self, depth: int) -> Piece:
        inside = self.piece(depth - 1)
        by = self._some(inside.columns)[:2]
        order = ", ".join(f"{c} nulls first" for c in inside.columns)
        call = self.random.choice(
            [
                f"row_number() over (partition by {', '.join(by)} order by {order})",
                f"rank() over (partition by {by[0]} order by {inside.columns[-1]} desc nulls last)",
                f"sum({inside.columns[-1]}) over (partition by {by[0]})",
                f"lag({inside.columns[-1]}) over (partition by {by[0]} order by {order})",
                f"count(*) over (partition by {', '.join(by)})",
                f"lead({by[0]}, 1, {inside.columns[0]}) over (partition by {by[0]} order by {order})",
            ]
        )
        if self.random.random() < 0.1:
            call = "count(*) over ()"
        window = ""
        if len(call) % 3 == 0:
            call, spec = call.split(" over ")
            call, window = f"{call} over w", f" window w as {spec}"
        if not window and self.random.random() < 0.3:
            behind = f"from {inside.text} as {self._name('x')} qualify {call} = 1"
            return self._select(self._some(inside.columns), behind)
        numbered = self._select([*inside.columns, call], f"from {inside.text} as {self._name('x')}{window}")
        if self.random.random() < 0.5:
            return numbered
        last = numbered.columns[-1]
        return self._select(
            [*numbered.columns[:-1]], f"from {numbered.text} as {self._name('x')} where {last} = 1"
        )

    def _set(self, depth: int) -> Piece:
        left, right = self.piece(depth - 1), self.piece(self.random.randrange(depth))
        width = min(len(left.columns), len(right.columns), self.random.randint(1, 3))
        kind = self.random.choice(
            ["union all", "union", "except", "intersect", "except all", "intersect all"]
        )
        one, other = (
            self._select(list(side.columns[:width]), f"from {side.text} as {self._name('x')}")
            for side in (left, right)
        )
        return self._select(
            list(one.columns), f"from ({one.text[1:-1]} {kind} {other.text[1:-1]}) as {self._name('x')}"
        )

    def _there(self, depth: int) -> Piece:
        outside, inside = self.piece(depth - 1), self.piece(self.random.randrange(depth))
        one, other = self._name("x"), self._name("y")
        mine, its = self.random.choice(outside.columns), self.random.choice(inside.columns)
        more = ""
        if self.random.random() < 0.3:
            more = f" and {other}.{self.random.choice(inside.columns)} > {one}.{self.random.choice(outside.columns)}"
        within = f"(select 1 from {inside.text} as {other} where {other}.{its} = {one}.{mine}{more})"
        among = f"(select {its} from {inside.text} as {other})"
        test = self.random.choice(
            [
                f"exists {within}",
                f"not exists {within}",
                f"{one}.{mine} in {among}",
                f"{one}.{mine} not in {among}",
            ]
        )
        if self.random.random() < 0.15:
            test = f"({test} or {one}.{mine} > 2)"
        return self._select(
            [f"{one}.{c}" for c in self._some(outside.columns)], f"from {outside.text} as {one} where {test}"
        )

    def _scalar(self, depth: int) -> Piece:
        outside, inside = self.piece(depth - 1), self.piece(self.random.randrange(depth))
        one, other = self._name("x"), self._name("y")
        mine, its = self.random.choice(outside.columns), self.random.choice(inside.columns)
        call = self.random.choice(["max", "count", "sum"])
        where = f" where {other}.{its} = {one}.{mine}" if self.random.random() < 0.85 else ""
        value = f"(select {call}({other}.{self.random.choice(inside.columns)}) from {inside.text} as {other}{where})"
        items = [f"{one}.{c}" for c in outside.columns]
        if self.random.random() < 0.5:
            return self._select([*items, value], f"from {outside.text} as {one}")
        return self._select(items, f"from {outside.text} as {one} where {one}.{mine} >= {value}")

    def _distinct(self, depth: int) -> Piece:
        inside = self.piece(depth - 1)
        found = self._select(self._some(inside.columns), f"from {inside.text} as {self._name('x')}")
        return Piece(found.text.replace("(select ", "(select distinct ", 1), found.columns)
