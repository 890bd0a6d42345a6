"""Laws of SQL: two texts that mean the same, over random queries, are maintained to the same rows, which are right.

Oracle: plain DuckDB, which runs the text over all rows after the update; and the other side of the law.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from tests.effort import effort
from tests.keyed_queries import changed, database, maintained
from tests.random_queries import Maker, Piece

Law = Callable[[Random, Piece, Piece], tuple[str, str]]


def _union_commutes(random: Random, left: Piece, right: Piece) -> tuple[str, str]:
    """A UNION ALL B = B UNION ALL A."""
    sides = []
    for piece in (left, right):
        columns = [random.choice(piece.columns) for _ in range(2)]
        sides.append(f"select {columns[0]} as p, {columns[1]} as q from {piece.text} as x")
    kind = random.choice(["union all", "union all", "union", "intersect all"])
    return f"{sides[0]} {kind} {sides[1]}", f"{sides[1]} {kind} {sides[0]}"


def _left_join(random: Random, left: Piece, right: Piece) -> tuple[str, str]:
    """A LEFT JOIN is the join, and the rows without a partner beside nulls."""
    mine, its, shown = random.choice(left.columns), random.choice(right.columns), random.choice(right.columns)
    listed, on = ", ".join(f"x.{c}" for c in left.columns), f"x.{mine} = y.{its}"
    outer = f"select {listed}, y.{shown} as z from {left.text} as x left join {right.text} as y on {on}"
    inner = f"select {listed}, y.{shown} as z from {left.text} as x join {right.text} as y on {on}"
    alone = f"select {listed}, cast(null as int) as z from {left.text} as x"
    return outer, f"{inner} union all {alone} where not exists (select 1 from {right.text} as y where {on})"


def _partition(random: Random, left: Piece, right: Piece) -> tuple[str, str]:
    """Rows for which a condition is true, those for which it is false, and those for which it is neither, are all."""
    listed = ", ".join(left.columns)
    one, other = random.choice(left.columns), random.choice(left.columns)
    test = random.choice([f"{one} > 1", f"{one} <= {other}", f"{one} in (1, 2, null)"])
    if random.random() < 0.3:
        test = f"{one} not in (select {right.columns[0]} from {right.text} as y)"
    every = f"select {listed} from {left.text} as x"
    parts = [f"{every} where {kind}" for kind in (test, f"not ({test})", f"({test}) is null")]
    return every, " union all ".join(parts)


def _cte(random: Random, left: Piece, right: Piece) -> tuple[str, str]:
    """A common table expression is its query wherever it is read."""
    mine, its = random.choice(left.columns), random.choice(left.columns)
    body = f"select x.{mine} as p, y.{its} as q from {{0}} as x join {{0}} as y on x.{mine} = y.{its}"
    body += f" where x.{mine} in (select {right.columns[0]} from {right.text} as z)"
    named = f"with w as {left.text} select * from ({body.format('w')}) as v"
    return named, body.format(left.text)


@pytest.mark.parametrize("law", [_union_commutes, _left_join, _partition, _cte])
@pytest.mark.parametrize("seed", range(effort(4, 40)))
def test_two_texts_that_mean_the_same_are_followed_to_the_same_rows(law: Law, seed: int) -> None:
    random = Random(f"{law.__name__}.{seed}")
    maker = Maker(random)
    texts = law(random, maker.piece(seed % 2), maker.piece(random.randrange(2)))
    before = database(random)
    after = changed(random, before)
    one, other = (maintained(text, before, after) for text in texts)
    assert one.found == one.right == other.right == other.found, texts


GROUPINGS = {
    "rollup (x, y)": ["x, y", "x", ""],
    "x, cube (y)": ["x, y", "x"],
    "grouping sets ((x), (y), ())": ["x", "y", ""],
}


@pytest.mark.parametrize("grouping", GROUPINGS)
@pytest.mark.parametrize("seed", range(effort(2, 20)))
def test_grouping_sets_are_all_their_groupings(grouping: str, seed: int) -> None:
    """Of no rows DuckDB makes a group of all rows, and Spark none: there are some."""
    random = Random(f"{grouping}.{seed}")
    states = [database(random)]
    while not all(one["t"] for one in states) or len(states) < 2:
        states = [random_one := database(random), changed(random, random_one)]
    calls = "count(*) as n, sum(x + y) as s"
    parts = [
        f"select {', '.join(c if c in by else f'cast(null as int) as {c}' for c in 'xy')}, {calls} from t"
        + (f" group by {by}" if by else "")
        for by in GROUPINGS[grouping]
    ]
    one = maintained(f"select x, y, {calls} from t group by {grouping}", *states)
    other = maintained(" union all ".join(parts), *states)
    assert one.found == one.right == other.right
    assert states[0] == states[1] or one.how in ("added up", "keyed", "settled")
