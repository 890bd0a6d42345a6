"""Random schemas with keys, unique constraints, NOT NULL and acyclic foreign keys, and rows for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from .constraints import Constraints, ForeignKey, Positions
from .rules import Constant, Row, Value

RELATIONS = ("r", "s", "t", "u")
SHAPES: Mapping[str, tuple[tuple[int, int], ...]] = {
    "none": (),
    "one": ((0, 1),),
    "chain": ((0, 1), (1, 2)),
    "long chain": ((0, 1), (1, 2), (2, 3)),
    "star": ((0, 1), (0, 2)),
    "shared": ((0, 2), (1, 2)),
    "diamond": ((0, 1), (0, 2), (1, 3), (2, 3)),
}
"""Which relation refers to which, by number; a child comes before its parents."""


@dataclass(frozen=True, slots=True)
class Domain:
    """The constants of a column."""

    type: str
    """As in a case's ``types``."""
    constants: tuple[Constant, ...]
    """For everywhere."""
    newcomer: Constant
    """For the update alone."""
    cuts: tuple[Constant, ...]
    """For comparisons, besides the constants."""


TEXT = Domain("string", ("a", "b", "c"), "n", ("", "ab", "bb"))
NUMBER = Domain("number", (10, 20, 30), 40, (5, 15, 25, 45))
INTEGER = Domain("int", (1, 2, 4), 7, (0, 3, 5))
DECIMAL = Domain("decimal", (1, 1.5, 2), 3, (0, 1.25, 2.5))
DATE = Domain("date", ("2024-02-28", "2024-02-29", "2024-03-02"), "2024-03-05", ("2024-02-27", "2024-03-01"))


@dataclass(frozen=True, slots=True)
class Column:
    """What a column may hold."""

    domain: Domain
    nullable: bool

    def values(self, *, newcomers: bool) -> list[Value]:
        extra = [self.domain.newcomer] if newcomers else []
        return [*self.domain.constants, *extra, *([None] if self.nullable else [])]


@dataclass(frozen=True, slots=True)
class Schema:
    """Relations and their constraints."""

    columns: Mapping[str, tuple[Column, ...]]
    keys: Mapping[str, Positions]
    unique: Mapping[str, tuple[Positions, ...]]
    foreign_keys: tuple[ForeignKey, ...]

    @property
    def constraints(self) -> Constraints:
        uniques = {name: (key,) for name, key in self.keys.items()}
        for name, several in self.unique.items():
            uniques[name] = (*uniques.get(name, ()), *several)
        return Constraints(uniques, self.foreign_keys)

    def nullable(self, name: str) -> list[int]:
        """The columns of a relation that may hold NULL."""
        return [i for i, column in enumerate(self.columns[name]) if column.nullable]


def draw_schema(
    random: Random,
    domains: tuple[Domain, ...],
    *,
    constraints: bool,
    nulls: bool,
    arity: int = 3,
    several: bool = False,
) -> Schema:
    """Draw a schema; columns that a foreign key connects have one domain.

    With ``several`` each relation has a key and, mostly, unique constraints of other columns.
    """
    shape = random.choice(sorted(SHAPES)) if constraints else "none"
    count = max([random.randint(1, 3), *(1 + parent for _, parent in SHAPES[shape])])
    names = RELATIONS[:count]
    arities = {name: random.randint(1, arity) for name in names}
    keys = {n: _positions(random, arities[n]) for n in names if constraints and random.randint(0, 4)}
    unique: dict[str, tuple[Positions, ...]] = {}
    for name in names:
        if constraints and random.randint(0, 5) == 0:
            unique[name] = (_positions(random, arities[name]),)
    if several:
        arities = {name: random.randint(2, max(arity, 2)) for name in names}
        keys, unique = _several(random, arities)
    foreign_keys = []
    for child, parent in ((names[i], names[j]) for i, j in SHAPES[shape]):
        targets = [*unique.get(parent, ()), *([keys[parent]] if parent in keys else [])]
        fitting = [target for target in targets if len(target) <= arities[child]]
        if fitting:
            target = random.choice(fitting)
            columns = random.sample(range(arities[child]), len(target))
            foreign_keys.append(ForeignKey(child, tuple(columns), parent, target))
    drawn = {(n, i): random.choice(domains) for n in names for i in range(arities[n])}
    for key in reversed(foreign_keys):  # parents first; a column with two parents has the last one's
        drawn |= {(key.child, c): drawn[key.parent, t] for c, t in zip(key.columns, key.targets, strict=True)}
    agreeing = tuple(key for key in foreign_keys if _agrees(key, drawn))
    by_name = {
        n: tuple(
            Column(drawn[n, i], nulls and i not in keys.get(n, ()) and random.randint(0, 3) == 0)
            for i in range(arities[n])
        )
        for n in names
    }
    return Schema(by_name, keys, unique, agreeing)


def _several(
    random: Random, arities: Mapping[str, int]
) -> tuple[dict[str, Positions], dict[str, tuple[Positions, ...]]]:
    """A key and other sets of columns that identify a row; seldom one of them contains another."""
    keys: dict[str, Positions] = {}
    unique: dict[str, tuple[Positions, ...]] = {}
    for name, arity in arities.items():
        drawn: list[Positions] = []
        for _ in range(random.choice((1, 3, 3, 4))):
            one = tuple(sorted(random.sample(range(arity), random.choice((1, 1, 2)))))
            nested = any({*one} <= {*other} or {*other} <= {*one} for other in drawn)
            if one not in drawn and (not nested or random.randint(0, 2) == 0):
                drawn.append(one)
        keys[name] = drawn[0]
        if drawn[1:]:
            unique[name] = tuple(drawn[1:])
    return keys, unique


def _positions(random: Random, arity: int) -> Positions:
    """The first column mostly, else others; in their order."""
    if random.randint(0, 2):
        return (0,)
    return tuple(sorted(random.sample(range(arity), random.randint(1, arity))))


def _agrees(key: ForeignKey, drawn: Mapping[tuple[str, int], Domain]) -> bool:
    pairs = zip(key.columns, key.targets, strict=True)
    return all(drawn[key.child, c] == drawn[key.parent, t] for c, t in pairs)


Rows = dict[str, set[Row]]


def draw_row(random: Random, schema: Schema, name: str, parents: Rows, *, newcomers: bool) -> Row:
    """Draw a row that mostly refers to rows that there are."""
    values: list[Value] = [
        random.choice(column.values(newcomers=newcomers)) for column in schema.columns[name]
    ]
    for key in schema.foreign_keys:
        if key.child == name and parents[key.parent] and random.randint(0, 4):
            parent = random.choice(sorted(parents[key.parent], key=repr))
            for column, target in zip(key.columns, key.targets, strict=True):
                if parent[target] is not None:
                    values[column] = parent[target]
    return tuple(values)


def fits(schema: Schema, name: str, row: Row, relations: Rows) -> bool:
    """Whether a relation may get a row, as far as constraints go."""
    constraints, columns = schema.constraints, schema.columns[name]
    with_row = {**relations, name: relations[name] | {row}}
    return (
        all(value is not None or column.nullable for value, column in zip(row, columns, strict=True))
        and not constraints.twins(name, row, relations[name])
        and all(key.met(to, with_row[key.parent]) for key, to in constraints.references(name, row))
    )


def draw_database(random: Random, schema: Schema, rows: int) -> Rows:
    """Draw a database that satisfies the constraints."""
    relations: Rows = {name: set() for name in schema.columns}
    for name in reversed([*schema.columns]):
        wanted = random.choice([*(2 * list(range(2, rows + 1))), 0, 1])
        for _ in range(3 * wanted):
            row = draw_row(random, schema, name, relations, newcomers=False)
            if len(relations[name]) < wanted and fits(schema, name, row, relations):
                relations[name].add(row)
    return relations
