"""Random views in Spark SQL over small tables with nulls and duplicates."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from random import Random

from datalog.model import ColumnType, Predicate, Row, TypeName, Value

Kind = str
TABLES: Mapping[str, Mapping[str, Kind]] = {
    "r": {"a": "int", "b": "int", "s": "string"},
    "t": {"a": "int", "d": "date", "p": "decimal(9,2)"},
    "u": {"b": "int", "x": "double", "f": "boolean"},
    "w": {"k": "bigint", "m": "timestamp", "p": "decimal(5,3)", "s": "string"},
}
CREATE = "".join(
    f"create table {name} ({', '.join(f'{column} {kind}' for column, kind in columns.items())});\n"
    for name, columns in TABLES.items()
)
POOLS: Mapping[Kind, Sequence[Value]] = {
    "int": (0, 1, 2, 3),
    "bigint": (1, 2, 3, 5_000_000_000),
    "string": ("a", "B c", "it's", ""),
    "date": (dt.date(2024, 2, 29), dt.date(2023, 12, 31), dt.date(2024, 3, 1)),
    "timestamp": (dt.datetime(2024, 2, 29), dt.datetime(2024, 3, 1, 12, 30)),
    "decimal(9,2)": (Decimal("1.50"), Decimal("-2.25"), Decimal("3.00"), Decimal("0.10")),
    "decimal(5,3)": (Decimal("1.500"), Decimal("0.125"), Decimal("-2.250")),
    "double": (1.5, -2.0, 0.25, 3.0),
    "boolean": (True, False),
}
LITERALS: Mapping[Kind, Sequence[str]] = {
    "number": ("1", "2", "1.5", "0.25", "-1", "3"),
    "string": ("'a'", '"B c"', "'it\\'s'", "''"),
    "date": ("date '2024-02-29'", "'2024-03-01'", "cast('2023-12-31' as date)"),
    "timestamp": ("timestamp '2024-02-29 00:00:00'", "'2024-03-01 12:30:00'", "date '2024-03-01'"),
    "boolean": ("true", "false"),
}
LONGEST_TABLE = 4
OPERATORS = ("=", "<>", "<", "<=", ">", ">=", "!=", "==")


def column_types() -> dict[Predicate, list[ColumnType]]:
    def one(kind: Kind) -> ColumnType:
        name, _, sizes = kind.partition("(")
        numbers = [int(n) for n in sizes.rstrip(")").split(",")] if sizes else []
        return ColumnType(TypeName(name), *numbers)

    return {Predicate(n): [one(kind) for kind in columns.values()] for n, columns in TABLES.items()}


def random_bags(random: Random, most: int = 6) -> dict[Predicate, Counter[Row]]:
    """Rows with nulls, some of them twice."""
    found = {}
    for name, columns in TABLES.items():
        rows = [
            tuple(None if random.random() < 0.2 else random.choice(POOLS[kind]) for kind in columns.values())
            for _ in range(random.randint(0, most))
        ]
        found[Predicate(name)] = Counter(
            [*rows, *random.choices(rows, k=random.randint(0, 2))] if rows else []
        )
    return found


def family(kind: Kind) -> Kind:
    return "number" if kind.partition("(")[0] in ("int", "bigint", "decimal", "double") else kind


@dataclass
class Columns:
    """The names in scope, by family."""

    names: list[tuple[str, Kind]]

    def of(self, kind: Kind) -> list[str]:
        return [name for name, other in self.names if family(other) == kind]


class Generator:
    """Makes random queries."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.number = 0

    def view(self) -> str:
        """A query, perhaps a union, perhaps with common table expressions."""
        pick = self.random.random()
        if pick < 0.15:
            kinds = self.random.choices(("number", "string", "date"), k=2)
            word = self.random.choice(("union all", "union", "union distinct"))
            sides = [self.select(kinds) for _ in range(self.random.randint(2, 3))]
            return f" {word} ".join(sides)
        if pick < 0.3:
            kinds = self.random.choices(("number", "string"), k=2)
            inner = self.random.choice(
                (self.select(kinds), self.grouped(), self.select(kinds, distinct=True))
            )
            names = ("q(y0, y1)", "y1, y0") if " as c1" in inner and " as c2" not in inner else ("q", "*")
            return f"with {names[0]} as ({inner}) select {self.random.choice(('*', names[1]))} from q"
        return self.grouped() if pick < 0.65 else self.select()

    # ------------------------------------------------------------------------------------------------ FROM

    def sources(self) -> tuple[str, Columns]:
        names: list[tuple[str, Kind]] = []
        text = ""
        for position in range(self.random.choice((1, 1, 2, 2, 3))):
            piece, alias, columns = self.source()
            mine = [(f"{alias}.{name}", kind) for name, kind in columns.items()]
            if position == 0:
                text = piece
            else:
                text += self.join(piece, alias, Columns(names), Columns(mine))
            names += mine
        return text, Columns(names)

    def source(self) -> tuple[str, str, Mapping[str, Kind]]:
        self.number += 1
        alias = f"q{self.number}"
        name = self.random.choice(list(TABLES))
        columns = TABLES[name]
        if self.random.random() < 0.15:
            chosen = list(columns)[:2]
            where = self.condition(Columns([(c, columns[c]) for c in columns]))
            return (
                f"(select {', '.join(chosen)} from {name} where {where}) {alias}",
                alias,
                {c: columns[c] for c in chosen},
            )
        if self.random.random() < 0.1:
            chosen = list(columns)[:2]
            both = (
                f"(select {', '.join(chosen)} from {name} union all select {', '.join(chosen)} from {name})"
            )
            return f"{both} as {alias}", alias, {c: columns[c] for c in chosen}
        return f"{name} {self.random.choice(('', 'as '))}{alias}", alias, columns

    def join(self, piece: str, alias: str, left: Columns, right: Columns) -> str:
        shared = [
            (one, other)
            for one, kind in left.names
            for other, other_kind in right.names
            if family(kind) == family(other_kind)
        ]
        if not shared or self.random.random() < 0.1:
            return f" cross join {piece}"
        before = [name.partition(".")[2] for name, _ in left.names]
        mine = [name.partition(".")[2] for name, _ in right.names]
        common = [name for name in mine if before.count(name) == 1]
        if common and self.random.random() < 0.25:
            natural = {name for name in mine if name in before} == set(common) and "(" not in piece
            if natural and len(left.names) <= LONGEST_TABLE and self.random.random() < 0.4:
                return f" natural join {piece}"
            return f" join {piece} using ({self.random.choice(common)})"
        one, other = self.random.choice(shared)
        return self.random.choice((" join ", " inner join ")) + f"{piece} on {one} = {other}"

    # ------------------------------------------------------------------------------------------- conditions

    def condition(self, columns: Columns, depth: int = 2) -> str:
        pick = self.random.random()
        if depth and pick < 0.35:
            word = self.random.choice((" and ", " or "))
            both = word.join(self.condition(columns, depth - 1) for _ in range(2))
            if pick < 0.05:  # alternatives that share a condition
                shared, *others = (self.condition(columns, 0) for _ in range(3))
                both = " or ".join(f"({shared} and {one})" for one in others)
            return self.random.choice((f"({both})", f"not ({both})"))
        name, kind = self.random.choice(columns.names)
        kind = family(kind)
        literal = self.random.choice(LITERALS[kind])
        if pick < 0.45:
            return f"{name} is {self.random.choice(('', 'not '))}null"
        if kind == "boolean":
            return self.random.choice((name, f"not {name}", f"{name} = true", f"{name} is false"))
        if pick < 0.55:
            items = ", ".join(self.random.choices(LITERALS[kind], k=2))
            return f"{name} {self.random.choice(('', 'not '))}in ({items})"
        if pick < 0.65:
            low, high = self.random.choices(LITERALS[kind], k=2)
            return f"{name} {self.random.choice(('', 'not '))}between {low} and {high}"
        if pick < 0.7 and kind == "string":
            return f"{name} like '%{self.random.choice('aB c_')}%'"
        other = self.random.choice([literal, *columns.of(kind)])
        left = self.number_expression(columns) if kind == "number" and pick > 0.85 else name
        return f"{left} {self.random.choice(OPERATORS)} {other}"

    # ------------------------------------------------------------------------------------------ expressions

    def number_expression(self, columns: Columns, depth: int = 2) -> str:
        numbers = columns.of("number")
        pick = self.random.random()
        if not depth or pick < 0.4:
            return self.random.choice([*numbers, *LITERALS["number"]])
        inner = self.number_expression(columns, depth - 1)
        if pick < 0.7:
            other = self.number_expression(columns, depth - 1)
            return f"({inner} {self.random.choice('+-*')} {other})"
        options = [f"-{inner}" if not inner.startswith("-") else inner, f"abs({inner})", f"{inner} / 4"]
        options += [
            f"coalesce({inner}, 0)",
            f"case when {self.condition(columns, 0)} then {inner} else 0 end",
        ]
        options += [f"nullif({inner}, 1)", f"if({self.condition(columns, 0)}, {inner}, null)"]
        options += [f"{f}({d})" for d in columns.of("date") for f in ("year", "month", "day", "quarter")]
        options += [f"round({inner}, {self.random.randrange(4)})", f"round({inner})"]
        options += [f"length({s})" for s in columns.of("string")]
        options += [f"cast({n} as decimal(20,1))" for n in numbers]
        return self.random.choice(options)

    def string_expression(self, columns: Columns) -> str:
        strings = columns.of("string") or ["'z'"]
        one = self.random.choice(strings)
        options = [one, f"upper({one})", f"{one} || 'x'", f"concat({one}, {self.random.choice(strings)})"]
        options += [f"substring({one}, 2)", f"coalesce({one}, 'none')", f"trim(lower({one}))"]
        return self.random.choice(options)

    def expression(self, columns: Columns, kind: Kind) -> str:
        if kind == "number":
            return self.number_expression(columns)
        if kind == "string":
            return self.string_expression(columns)
        days = [f"{day} {self.random.choice('+-')} {self.random.randrange(40)}" for day in columns.of("date")]
        return self.random.choice([*columns.of(kind), LITERALS[kind][0], *(days if kind == "date" else ())])

    # ---------------------------------------------------------------------------------------------- selects

    def select(self, kinds: Sequence[Kind] = (), *, distinct: bool = False) -> str:
        text, columns = self.sources()
        where = f" where {self.condition(columns)}" if self.random.random() < 0.6 else ""
        distinct = distinct or self.random.random() < 0.3
        if not kinds and self.random.random() < 0.2:
            aliases = sorted({name.partition(".")[0] for name, _ in columns.names})
            some = self.random.choice(aliases)
            items = self.random.choice((f"{some}.*", "*" if self.names_once(columns) else f"{some}.*"))
        else:
            kinds = kinds or self.random.choices(("number", "string", "date"), k=self.random.randint(1, 3))
            items = ", ".join(f"{self.expression(columns, k)} as c{n}" for n, k in enumerate(kinds))
        return f"select {'distinct ' if distinct else ''}{items} from {text}{where}"

    def names_once(self, columns: Columns) -> bool:
        names = [name.partition(".")[2] for name, _ in columns.names]
        return len(set(names)) == len(names)

    def aggregate(self, columns: Columns) -> str:
        name, kind = self.random.choice(columns.names)
        plain = ["count(*)", f"count({name})", f"count(distinct {name})"]
        if kind != "boolean":
            plain += [f"min({name})", f"max({name})"]
        number = self.number_expression(columns)
        plain += [f"sum({number})", f"avg({number})", f"sum(distinct {number})", f"max({number})"]
        return self.random.choice(plain)

    def grouped(self) -> str:
        text, columns = self.sources()
        where = f" where {self.condition(columns)}" if self.random.random() < 0.5 else ""
        keys = [self.random.choice(columns.names)[0] for _ in range(self.random.choice((0, 1, 1, 2)))]
        if keys and self.random.random() < 0.3:
            keys[0] = self.string_expression(columns)
        keys = list(dict.fromkeys(keys))
        values = [self.aggregate(columns) for _ in range(self.random.randint(1, 2))]
        if self.random.random() < 0.2:
            values.append("count(*) * 2 + coalesce(sum(1), 0)")
        items = [f"{item} as c{n}" for n, item in enumerate([*keys, *values])]
        by = f" group by {self._by(keys)}" if keys else ""
        having = ""
        if self.random.random() < 0.3:
            having = self.random.choice((" having count(*) > 1", f" having c{len(keys)} is not null"))
        return f"select {', '.join(items)} from {text}{where}{by}{having}"

    def _by(self, keys: Sequence[str]) -> str:
        pick = self.random.random()
        if pick < 0.3:
            return ", ".join(str(n + 1) for n in range(len(keys)))
        return ", ".join(f"c{n}" for n in range(len(keys))) if pick < 0.6 else ", ".join(keys)


def views(random: Random, number: int) -> Iterator[str]:
    for _ in range(number):
        yield Generator(random).view()
