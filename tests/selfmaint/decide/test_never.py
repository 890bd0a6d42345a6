"""Conditions at the limits of their columns' types: many never hold, hold for one value alone, or always hold.

Oracle: the conditions as functions of three-valued logic, the views recomputed from random databases of the values at
those limits, row by row, with multiplicities. It shares nothing with what it judges.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from random import Random
from typing import Any, TypeAlias

import pytest

from selfmaint import Update
from selfmaint.api.warehouse import build
from selfmaint.decide.procedure import check
from selfmaint.decide.saturation import saturated
from selfmaint.decide.unions import deltas_of_unions, of_unions
from selfmaint.decide.verdict import SelfMaintainable
from selfmaint.engine.memory import MemoryEngine
from selfmaint.maintain import applied, delta
from tests.effort import effort
from tests.large_engine import LargeEngine

Row: TypeAlias = tuple[Any, ...]
Joined: TypeAlias = Mapping[str, Any]
"""The columns of a row of `t`, perhaps beside those of its row of `u`."""

EACH = effort(60, 100)
"""Warehouses of one test."""

LEAST_CHANGED = effort(18, 30)
"""Of their views that are followed, at least so many gain or lose rows: else little would be tested."""

D = Decimal
TYPES: dict[str, tuple[list[Any], list[Any]]] = {
    "tinyint": ([-128, -1, 0, 1, 127], [-129, -128, -127, 0, 1, 126, 127, 128, 200]),
    "smallint": ([-32768, 0, 32767], [-32769, -32768, 0, 1, 32767, 40000]),
    "int": ([-(2**31), 3, 4, 2**31 - 1], [-(2**31), 3, 4, 5, 2**31 - 1]),
    "bigint": ([-(2**63), 0, 2**63 - 1], [-(2**63), 0, 1, 2**63 - 2, 2**63 - 1]),
    "decimal(3,1)": (
        [D("-99.9"), D("0.0"), D("0.1"), D("99.9")],
        [D("-100"), D("-99.9"), D("0.05"), D("0.1"), D("99.8"), D("99.9"), D("99.95"), D("100")],
    ),
    "boolean": ([False, True], [False, True]),
    "date": (
        [dt.date(1, 1, 1), dt.date(2024, 2, 29), dt.date(9999, 12, 31)],
        [dt.date(1, 1, 1), dt.date(2024, 2, 28), dt.date(2024, 2, 29), dt.date(9999, 12, 31)],
    ),
    "string": (["", "a", "b"], ["", "a", "ab", "b"]),
}
"""For each type values that columns have, and values that they are compared with."""

COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


@dataclass(frozen=True)
class Condition:
    """A condition as SQL, and what it is of a row: true, false, or None for unknown."""

    sql: str
    holds: Callable[[Joined], bool | None]


@dataclass(frozen=True)
class View:
    """A view: its name, the query, and its rows with their numbers of copies from the joined rows that pass."""

    name: str
    sql: str
    is_joined: bool
    where: Condition
    rows: Callable[[Sequence[Joined]], Counter[Row]]


def literal(value: Any) -> str:
    match value:
        case bool():
            return str(value).lower()
        case dt.date():
            return f"date '{value.isoformat()}'"
        case str():
            return f"'{value}'"
        case _:
            return str(value)


def compared(left: str, operator: str, right: str, known: Mapping[str, Any]) -> Condition:
    """A comparison of columns and of values, whose texts are given with them."""

    def holds(row: Joined) -> bool | None:
        a, b = (known[side] if side in known else row[side] for side in (left, right))
        return None if a is None or b is None else COMPARE[operator](a, b)

    return Condition(f"{left} {operator} {right}", holds)


def simple(random: Random, its: str, columns: Sequence[str]) -> Condition:
    """A comparison, a test for null, or a list, over columns of one type."""
    column = random.choice(columns)
    constants = TYPES[its][1]
    kind = random.random()
    if kind < 0.1:
        negated = random.random() < 0.5
        return Condition(
            f"{column} is {'not ' if negated else ''}null", lambda row: (row[column] is None) != negated
        )
    if kind < 0.2:
        given = random.sample(constants, 2)
        return Condition(
            f"{column} in ({', '.join(map(literal, given))})",
            lambda row: None if row[column] is None else row[column] in given,
        )
    operator, constant = random.choice(list(COMPARE)), random.choice(constants)
    shown = literal(constant)
    if kind < 0.25:
        return special(random, column, shown, operator, constant)
    if kind < 0.4:
        return compared(column, operator, random.choice(columns), {})
    if kind < 0.5:
        return compared(shown, operator, column, {shown: constant})
    return compared(column, operator, shown, {shown: constant})


def special(random: Random, column: str, shown: str, operator: str, constant: Any) -> Condition:
    """An expression, a condition on a key, or one that says the same of every row."""
    match random.choice(["expression", "key", "nothing", "constant"]):
        case "expression":
            value = random.choice([constant, None])
            other = "null" if value is None else shown

            def holds(row: Joined) -> bool | None:
                left = value if row[column] is None else row[column]
                return None if left is None else COMPARE[operator](left, constant)

            return Condition(f"coalesce({column}, {other}) {operator} {shown}", holds)
        case "key":
            number = random.choice([0, 1])
            return compared("k", random.choice(["=", "<>", "<"]), str(number), {str(number): number})
        case "nothing":
            return Condition(f"{column} {operator} null", lambda _row: None)
        case _:
            truth = random.choice([True, False])
            return Condition(str(truth).lower(), lambda _row: truth)


def conjunction(parts: Sequence[Condition]) -> Condition:
    def holds(row: Joined) -> bool | None:
        found = [part.holds(row) for part in parts]
        return False if False in found else None if None in found else True

    return Condition(" and ".join(part.sql for part in parts), holds)


def condition(random: Random, its: str, columns: Sequence[str]) -> Condition:
    """One to three conditions together; sometimes one of two such, or what is not so."""
    both = conjunction([simple(random, its, columns) for _ in range(random.randint(1, 3))])
    kind = random.random()
    if kind < 0.15:
        other = conjunction([simple(random, its, columns) for _ in range(random.randint(1, 2))])

        def either(row: Joined) -> bool | None:
            found = [both.holds(row), other.holds(row)]
            return True if True in found else None if None in found else False

        return Condition(f"({both.sql} or {other.sql})", either)
    if kind < 0.25:

        def negated(row: Joined) -> bool | None:
            found = both.holds(row)
            return None if found is None else not found

        return Condition(f"not ({both.sql})", negated)
    return both


def view(random: Random, name: str, its: str) -> View:
    """A plain view, one that projects, groups or aggregates all rows; of `t`, or of `t` and `u`."""
    is_joined = random.random() < 0.4
    columns = ["a", "b", "c"] if is_joined else ["a", "b"]
    where = (
        condition(random, its, columns) if random.random() < 0.8 else Condition("1 = 1", lambda _row: True)
    )
    source = f"from t{' join u on k = u_id' if is_joined else ''} where {where.sql}"
    every = ["id", "k", "a", "b", *(["u_id", "c"] if is_joined else [])]
    some = random.sample([c for c in every if c != "id"], random.randint(1, 2))
    kind = random.choice(["plain", "bag", "distinct", "group", "total"])
    listed = ", ".join(every if kind == "plain" else some)

    def picked(rows: Sequence[Joined], names: Sequence[str]) -> Counter[Row]:
        return Counter(tuple(row[c] for c in names) for row in rows)

    if kind == "plain":
        return View(name, f"select {listed} {source}", is_joined, where, lambda rows: picked(rows, every))
    if kind == "bag":
        return View(name, f"select {listed} {source}", is_joined, where, lambda rows: picked(rows, some))
    if kind == "distinct":
        return View(
            name,
            f"select distinct {listed} {source}",
            is_joined,
            where,
            lambda rows: Counter(set(picked(rows, some))),
        )

    def least(rows: Sequence[Joined]) -> Any:
        return min((row["a"] for row in rows if row["a"] is not None), default=None)

    if kind == "total":
        sql = f"select count(*) as n, min(a) as least {source}"
        return View(name, sql, is_joined, where, lambda rows: Counter([(len(rows), least(rows))]))

    def groups(rows: Sequence[Joined]) -> Counter[Row]:
        found: dict[Row, list[Joined]] = {}
        for row in rows:
            found.setdefault(tuple(row[c] for c in some), []).append(row)
        return Counter((*key, len(mine), least(mine)) for key, mine in found.items())

    sql = f"select {listed}, count(*) as n, min(a) as least {source} group by {listed}"
    return View(name, sql, is_joined, where, groups)


def contents(one: View, database: Mapping[str, Sequence[Row]]) -> Counter[Row]:
    """The view recomputed."""
    joined = []
    for row in database["t"]:
        left = dict(zip(("id", "k", "a", "b"), row, strict=True))
        rights = [dict(zip(("u_id", "c"), other, strict=True)) for other in database["u"]]
        mine = [right for right in rights if right["u_id"] == left["k"]] if one.is_joined else [{}]
        joined += [{**left, **right} for right in mine]
    return one.rows([row for row in joined if one.where.holds(row) is True])


def database(random: Random, its: str, nullable: Mapping[str, bool]) -> dict[str, list[Row]]:
    """Rows of values at the limits; `t` references `u`."""

    def value(column: str) -> Any:
        return None if nullable[column] and random.random() < 0.3 else random.choice(TYPES[its][0])

    parents = [(i, value("c")) for i in range(random.randint(1, 2))]
    rows = [(i, random.choice(parents)[0], value("a"), value("b")) for i in range(random.randint(0, 3))]
    return {"t": rows, "u": parents}


def sides(before: Sequence[Row], after: Sequence[Row]) -> tuple[frozenset[Row], frozenset[Row]]:
    return frozenset(after) - frozenset(before), frozenset(before) - frozenset(after)


def typed(rows: Counter[Row]) -> Counter[tuple[tuple[bool, Any], ...]]:
    """Such that True is not 1."""
    return Counter({tuple((isinstance(v, bool), v) for v in row): n for row, n in rows.items()})


def changes(seed: int) -> Iterator[tuple[str, bool, str]]:
    """One random warehouse and update: for each view that is followed whether it changed, and what is wrong."""
    random = Random(seed)
    its = random.choice(list(TYPES))
    nullable = {column: random.random() < 0.3 for column in "abc"}
    of = {column: f"{column} {its}{'' if nullable[column] else ' not null'}" for column in "abc"}
    views = [view(random, f"v{i}", its) for i in range(random.randint(1, 3))]
    program = (
        f"create table u (u_id int not null primary key, {of['c']});\n"
        "create table t (id int not null primary key, k int not null references u (u_id), "
        f"{of['a']}, {of['b']});\n" + "".join(f"create view {v.name} as {v.sql};\n" for v in views)
    )
    before, after = database(random, its, nullable), database(random, its, nullable)
    if random.random() < 0.6:  # of one relation alone
        after["u"] = before["u"]
        after["t"] = [row for row in after["t"] if row[1] < len(before["u"])]
    engine = random.choice([MemoryEngine(), MemoryEngine(), LargeEngine()])
    schema = build(program, dict.fromkeys((v.name for v in views), frozenset()), engine).catalog
    stored = {}
    for one in views:
        old = contents(one, before)
        counted = frozenset((*row, n) for row, n in old.items())
        stored[one.name] = counted if schema.view(one.name).is_counted else frozenset(old)
    warehouse = build(program, stored, engine)
    gone = {name: sides(before[name], after[name]) for name in before}
    update = Update({n: new for n, (new, _) in gone.items()}, {n: old for n, (_, old) in gone.items()}, True)
    known = saturated(warehouse.decision.knowledge(engine, *warehouse.given(update)))
    found = check(known, known.catalog.views)
    verdicts = of_unions(warehouse.catalog, found)
    for one in views:
        its_view = warehouse.catalog.view(one.name)
        if its_view.unchanging and contents(one, before) != contents(one, after):
            yield one.name, True, f"{its_view.unchanging}\n{program}{before}\n{after}"
        if not isinstance(verdicts[one.name], SelfMaintainable):
            continue
        parts = {part.name: delta(known, part) for part in warehouse.catalog.parts(its_view)}
        change = deltas_of_unions(warehouse.catalog, engine, known.facts, parts)[one.name]
        new = applied(engine, its_view, stored[one.name], change)
        rows = Counter({r[:-1]: r[-1] for r in new}) if its_view.is_counted else Counter(new)
        right = contents(one, after)
        wrong = "" if typed(rows) == typed(right) else f"{rows}, not {right}\n{program}{before}\n{after}"
        yield one.name, right != contents(one, before), wrong


@pytest.mark.parametrize("start", range(0, 3 * EACH, EACH))
def test_a_followed_view_is_what_recomputing_gives(start: int) -> None:
    changed = 0
    for seed in range(start, start + EACH):
        for name, moves, wrong in changes(seed):
            assert not wrong, f"seed {seed}, {name}: {wrong}"
            changed += moves
    assert changed > LEAST_CHANGED
