"""Views that do not show the key by which they are followed: plain DuckDB gives the same, before and after.

That the trials can fail is tried too: with rules of the analysis that are wrong they find something.
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from datalog.sql.affected.demands import Demands
from datalog.sql.affected.plan import Plan, Windows
from selfmaint.fallback.keyed_rows import KeyedRows
from tests.effort import effort
from tests.keyed_queries import Outcome, changed, database, is_found_wrong, maintained

TRIALS = effort(4, 60)
"""Of each seed."""
SOURCES = {
    "r": "r",
    "left": "(select r.a, r.b, r.c, s.d from r left join s on r.b = s.f) as q",
    "inner": "(select r.a, s.d as b, r.c, s.e from r join s on r.b = s.f where r.c > 0) as q",
    "two": "(select r.a, r.c as b, t.y as c, t.x from r join t on r.b = t.x) as q",
}
ORDER = dict.fromkeys(SOURCES, "a") | {"two": "x, c, a"}


def windows(random: Random) -> str:
    """Windows by columns that are not shown."""
    source = random.choice(list(SOURCES))
    by = random.choice(["b", "b", "c", "b, c"])
    order = random.choice(["", "c desc nulls last, "] if by == "b" else [""]) + ORDER[source]
    frame = random.choice(
        ["", " rows between unbounded preceding and current row", " rows between 1 preceding and 1 following"]
    )
    calls = [
        f"lag(a) over (partition by {by} order by {order})",
        f"row_number() over (partition by {by} order by {order})",
    ]
    calls += [
        f"first_value(a) over (partition by {by} order by {order})",
        f"lead(a, 2) over (partition by {by} order by {order})",
    ]
    calls += [
        f"sum(a) over (partition by {by} order by {order}{frame})",
        f"count(*) over (partition by {by})",
    ]
    calls += [f"rank() over (partition by {by} order by c nulls first)", f"max(a) over (partition by {by})"]
    one, other = random.sample(calls, 2)
    where = random.choice(["", "", " where a > 1", " where c is not null"])
    items = random.choice([f"a, {one} as n", f"{one} as n", f"a + 1 as m, coalesce({one}, 0) - {other} as n"])
    query = f"select {items} from {SOURCES[source]}{where}"
    return query if random.random() < 0.7 else f"select n from ({query}) as w where n > 1"


def full_joins(random: Random) -> str:
    """FULL JOIN by columns that may be null, or are not shown."""
    sides = [("r", "b", ["a", "c"]), ("s", "d", ["f", "e"]), ("t", "y", ["x"])]
    sides += [("(select b, sum(c) as n, count(*) as m from r group by b)", "b", ["n", "m"])]
    sides += [("(select d, max(e) as k from s where d > 0 group by d)", "d", ["k"])]
    (one, left, mine), (other, right, its) = random.sample(sides, 2)
    items = [f"x.{c}" for c in mine if random.random() < 0.8] + [f"y.{c} as y_{c}" for c in its]
    items += random.choice(
        [[], [], [f"x.{left} as kx, y.{right} as ky"], [f"coalesce(x.{left}, y.{right}) + 1 as kk"]]
    )
    where = random.choice(["", "", f" where x.{mine[0]} is null or y.{its[0]} > 1", f" where x.{left} > 0"])
    return f"select {', '.join(items)} from {one} as x full join {other} as y on x.{left} = y.{right}{where}"


def trial(seed: str) -> tuple[str, Outcome]:
    random = Random(seed)
    text = random.choice([windows, full_joins])(random)
    before = database(random)
    after = changed(random, before)
    return text, maintained(text, before, after, source_is_after=random.random() < 0.6)


@pytest.mark.parametrize("seed", range(effort(6, 20)))
def test_views_without_their_key_are_what_recomputing_gives(seed: int) -> None:
    for number in range(TRIALS):
        text, outcome = trial(f"{seed}.{number}")
        assert outcome.found == outcome.right, text
        assert outcome.how in ("keyed", "added up", "settled"), (text, outcome.how)


def _of_any_window(self: Demands, plan: Plan, number: int, same: frozenset[int]) -> Any:
    if isinstance(plan, Windows) and number in plan.input.columns:
        return self.of(plan.input, number)
    return _DIRECTLY(self, plan, number, same)


def _values_but_null(self: KeyedRows[Any], *given: Any, **_: bool) -> Any:
    return _VALUES(self, *given, known=True)


_VALUES = KeyedRows.values
_DIRECTLY = Demands._directly
WRONG = {
    "a window by anything": (
        Demands,
        "_directly",
        _of_any_window,
        "select sum(a) over (partition by b) as n from r",
    ),
    "null is no key": (
        KeyedRows,
        "values",
        _values_but_null,
        "select r.a, s.e from r full join s on r.b = s.d",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_rule_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    *patch, text = WRONG[name]
    monkeypatch.setattr(*patch)
    assert is_found_wrong(text, 80), name


@pytest.mark.parametrize(
    "text",
    [
        "select a - lag(a) over (partition by b order by c) as n from r",  # equal rows may come in any order
        "select distinct lag(a) over (partition by b order by a) as n from r",  # several rows may be one
        "select sum(a) over (order by a) as n from r",
    ],
)
def test_what_is_not_determined_is_not_followed(text: str) -> None:
    followed = []
    for number in range(20):
        random = Random(number)
        before = database(random)
        outcome = maintained(text, before, changed(random, before))
        assert outcome.found == outcome.right
        followed.append(outcome.how)
    assert not {"keyed", "added up"}.intersection(followed)
