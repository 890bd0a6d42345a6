"""Variances and standard deviations that are followed: what plain DuckDB gives for the view's own text, nearly.

The first contents are plain DuckDB's, too, which have other last digits: as of views that are brought in.
"""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal, localcontext
from fractions import Fraction
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import selfmaint
from datalog.model import ColumnType, Predicate, TypeName
from datalog.sql.views import SqlText, read_sql
from selfmaint.api.columns import columns_of
from selfmaint.api.maintain import new_contents
from selfmaint.duckdb import DuckEngine
from selfmaint.engine.protocol import Facts
from tests.effort import effort
from tests.end_to_end.test_helper_views import TYPES, changed, changes, given, opened, rows

NAMES = ("stddev_samp", "stddev_pop", "var_samp", "var_pop", "stddev", "variance")


def moments(random: Random) -> str:
    """A query with variances or standard deviations."""
    source = random.choice(["r", "r", "r join s on f = b"])
    one, other = (
        f"{random.choice(NAMES)}({random.choice(['b', 'c', 'b + a', 'c * b', 'a', 'case when a > 3 then b end'])})"
        for _ in range(2)
    )
    where = random.choice(["", "", " where a > 2"])
    group = random.choice(["b", "c", "coalesce(b, 0)"])
    having = random.choice(["", "", " having count(*) > 1"])
    options = [
        f"select {group} as g, {one} as m, {other} as n from {source}{where} group by {group}{having}",
        f"select {group} as g, {one} as m, sum(b) as t, count(*) as k from {source}{where} group by {group}{having}",
        f"select {one} as m, {other} as n, count(c) as k from {source}{where}",
        f"select b as g, max(a) as k, {one} * 2 + 1 as m from {source}{where} group by b",
    ]
    return random.choice(options)


def near(one: Any, other: Any) -> bool:
    if not isinstance(one, float) or not isinstance(other, float):
        return bool(one == other)
    return abs(one - other) <= 1e-9 * max(abs(one), abs(other), 1)


def require_near(found: pa.Table, right: pa.Table, text: str) -> None:
    order = [name for name in right.column_names if name in ("g", "k")]
    mine, its = (
        sorted(table.to_pylist(), key=lambda row: [str(row[name]) for name in order])
        for table in (found, right)
    )
    assert len(mine) == len(its), text
    for row, other in zip(mine, its, strict=True):
        assert all(near(row[name], other[name]) for name in other), (text, row, other)


def followed(seed: str, *, helpers: bool) -> str:
    random = Random(seed)
    before = {name: rows(random, name) for name in TYPES}
    after = {name: changed(random, name, its) for name, its in before.items()}
    text = moments(random)
    warehouse = opened(text, before, after, helpers=helpers)
    update = selfmaint.Update.from_frames(warehouse, *changes(before, after), effective=True)
    try:
        found = warehouse.maintain(update, verify=True)
    except selfmaint.NotMaintainedError as error:
        return f"refused: {error.diagnostics[0].note}"
    assert not found.differences, (text, before, after, found.differences)
    stored = new_contents(warehouse, warehouse.catalog.view("v"), found.deltas["v"])
    require_near(pa.table(stored), given(after, text, columns_of(warehouse.catalog)["v"].types), text)
    if "v" in found.keyed:
        return "keyed"
    return "helper" if warehouse.catalog.helpers else "alone"


@pytest.mark.parametrize("seed", range(effort(2, 12)))
@pytest.mark.parametrize("helpers", [True, False])
def test_variances_are_nearly_what_recomputing_gives(seed: int, *, helpers: bool) -> None:
    ways = Counter(followed(f"{seed}.{trial}", helpers=helpers) for trial in range(8))
    assert ways["helper" if helpers else "keyed"] >= (4 if helpers else 1), ways


def exactly(name: str, values: list[Decimal]) -> Decimal | None:
    """The value with 50 digits."""
    number, samples = len(values), not name.endswith("_pop")
    if number <= samples:
        return None
    mean = Fraction(sum(map(Fraction, values)), number)
    found = sum((Fraction(value) - mean) ** 2 for value in values) / (number - samples)
    with localcontext() as context:
        context.prec = 50
        exact = Decimal(found.numerator) / found.denominator
        return exact.sqrt() if name.startswith("st") else exact


@pytest.mark.parametrize("kind", ["int", "bigint", "decimal(9,2)", "decimal(18,6)", "tinyint"])
def test_the_formula_is_near_to_the_true_value(kind: str) -> None:
    random, name = Random(kind), kind.split("(", maxsplit=1)[0]
    places = int(kind.rstrip(")").split(",")[1]) if "(" in kind else 0
    most = {"tinyint": 127, "int": 2**31 - 1, "bigint": 10**12, "decimal": 10**9}[name]
    type_ = ColumnType(TypeName(name), *map(int, kind[8:-1].split(",")) if "(" in kind else ())
    duck = DuckEngine(most_few=0)
    items = ", ".join(f"{one}(x) as {one}_" for one in NAMES)
    found = read_sql(
        [
            SqlText(f"create table t (k int primary key, x {kind});", "t"),
            SqlText(f"select {items} from t", "v"),
        ]
    )
    for number in [0, 1, 2, 3, 50, 400]:
        width = random.choice([3, most])
        values = [Decimal(most - random.randrange(width + 1)).scaleb(-places) for _ in range(number)]
        given_ = [(i, value if places else int(value)) for i, value in enumerate(values)]
        facts = Facts(
            {Predicate("t"): duck.load([*given_, (-1, None)], ["k", "x"], [ColumnType(TypeName.INT), type_])}
        )
        (row,) = duck.sample(
            duck.evaluate_view(found.views[0], facts, {Predicate("t"): (ColumnType(TypeName.INT), type_)}), 9
        )
        for one, value in zip(NAMES, row, strict=True):
            right = exactly(one, values)
            if right is None:
                assert value is None
            else:
                assert isinstance(value, float)
                assert math.isclose(value, float(right), rel_tol=1e-15, abs_tol=0), (one, value, right)
