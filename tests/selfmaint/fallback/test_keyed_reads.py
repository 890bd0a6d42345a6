"""Views that are not decided, followed by keyed reads: what plain DuckDB gives for random queries, before and after.

That the trials can fail is tried too: with rules of the analysis that are wrong they find something.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest

from datalog.sql.affected import inner
from datalog.sql.affected.demands import Demands
from datalog.sql.affected.plan import Join, Plan, Windows
from selfmaint import SourceError
from selfmaint.decide import evaluation
from tests.effort import effort
from tests.keyed_queries import Outcome, changed, database, is_found_wrong, maintained
from tests.random_queries import Maker

TRIALS = effort(5, 60)
"""Of each seed."""


def trial(seed: str) -> tuple[str, Outcome | None]:
    random = Random(seed)
    maker = Maker(random)
    text = (
        maker.sums(random.choice([1, 2, 2, 3]))
        if random.random() < 0.3
        else maker.query(random.choice([1, 2, 3]))
    )
    before = database(random)
    after = changed(random, before)
    is_after = random.random() < 0.6
    try:
        return text, maintained(text, before, after, source_is_after=is_after)
    except SourceError:
        # What the decision itself reads has to be after the update.
        assert not is_after
        return text, None


@pytest.mark.parametrize("seed", range(effort(6, 30)))
def test_views_followed_by_keys_are_what_recomputing_gives(seed: int) -> None:
    for number in range(TRIALS):
        text, outcome = trial(f"{seed}.{number}")
        if outcome is not None:
            assert outcome.found == outcome.right, text


def grouping_sets(random: Random) -> str:
    """Groups of several sets, which nulls alone do not tell apart."""
    source = random.choice(["r", "r", "r left join s on r.b = s.f"])
    by = random.choice(
        ["rollup(b, c)", "cube(b, c)", "grouping sets ((b, c), (c), ())", "rollup(c)", "c, cube(b)"]
    )
    shown = "c" if by == "rollup(c)" else "b, c"
    told = [f"grouping({one.strip()}) as g_{one.strip()}" for one in shown.split(",")]
    numbers = random.choice(
        [["count(*) as n"], ["count(*) as n", "sum(a) as t"], ["sum(b) as t", "count(b) as m"]]
    )
    return f"select {', '.join([shown, *told, *numbers])} from {source} group by {by}"


@pytest.mark.parametrize("seed", range(4))
def test_groups_of_several_sets_are_what_recomputing_gives(seed: int) -> None:
    ways = Counter[str]()
    for number in range(effort(6, 40)):
        random = Random(f"{seed}.{number}.sets")
        text, before = grouping_sets(random), database(random)
        after = changed(random, before)
        if before["r"] and after["r"]:  # of no rows Spark has no row of all rows
            outcome = maintained(text, before, after, source_is_after=random.random() < 0.6)
            assert outcome.found == outcome.right, text
            ways[outcome.how] += 1
    assert ways["added up"]


def test_most_random_views_are_followed() -> None:
    ways = Counter[str]()
    for number in range(effort(40, 60)):
        text, outcome = trial(f"ways.{number}")
        assert outcome is None or outcome.found == outcome.right, text
        ways[outcome.how if outcome and outcome.how in ("keyed", "added up", "settled") else "other"] += 1
    assert ways["keyed"] + ways["settled"] > len(ways) * 4
    assert ways["keyed"] > len(ways) * 2
    assert ways["added up"]
    assert ways["other"] < sum(ways.values()) / 2


@pytest.mark.parametrize("why", ["many joined", "no time"])
def test_views_that_reads_do_not_settle_soon_are_followed(why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def way(number: int) -> str:
        text, outcome = trial(f"ways.{number}")
        assert outcome is None or outcome.found == outcome.right, text
        return outcome.how if outcome else ""

    settled = [number for number in range(12, effort(20, 72)) if way(number) == "settled"]
    if why == "no time":
        monkeypatch.setattr("datalog.budget.EVERY", 1)
        monkeypatch.setattr("selfmaint.api.following.opened._SHORT", 0)
    else:
        monkeypatch.setattr("selfmaint.api.following.opened.joins_many", lambda *_: True)
    ways = Counter(map(way, settled))
    assert ways["keyed"] + ways["added up"] > 1, ways


def _of_any_window(self: Demands, plan: Plan, number: int, same: frozenset[int]) -> Any:
    if isinstance(plan, Windows) and number in plan.input.columns:
        return self.of(plan.input, number)
    return _DIRECTLY(self, plan, number, same)


def _of_either_side(self: Demands, plan: Plan, number: int, same: frozenset[int]) -> Any:
    if isinstance(plan, Join) and plan.kind in ("left", "full") and number in plan.columns:
        return self.of(plan.left if number in plan.left.columns else plan.right, number)
    return _DIRECTLY(self, plan, number, same)


_DIRECTLY = Demands._directly

WRONG = {
    "a window by anything": (
        (Demands, "_directly", _of_any_window),
        "select a, sum(c) over (partition by b) as n from r",
    ),
    "an outer join by its optional side": (
        (Demands, "_directly", _of_either_side),
        "select s.d, count(distinct r.a) as n from r left join s on r.b = s.f group by s.d",
    ),
    "NOT IN without its null": (
        (inner, "never_null", lambda *_: True),
        "select a, b from r where b not in (select d from s)",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_rule_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    patch, text = WRONG[name]
    monkeypatch.setattr(*patch)
    assert is_found_wrong(text, 60), name


def test_what_is_not_foreseen_in_time_is_read_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = list[str]()
    foresee = evaluation._foreseen
    monkeypatch.setattr(evaluation, "LOOKED_AHEAD_SHARE", 0)
    monkeypatch.setattr(
        evaluation, "_foreseen", lambda *given, **how: begun.append("") or foresee(*given, **how)
    )
    for number in range(TRIALS):
        text, outcome = trial(f"ahead.{number}")
        assert outcome is None or outcome.found == outcome.right, text
    assert begun
