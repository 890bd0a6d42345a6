"""By which of its keys a view is followed: whichever it is, the rows are right, and few are read."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from datalog.sql.affected import Keyed
from tests.effort import effort
from tests.keyed_queries import Database, maintained
from tests.selfmaint.fallback.test_keyed_reads import trial

PLACE = "row_number() over (partition by d, c order by a)"
QUERIES = [
    "select s.d, r.c, count(distinct r.a % 7) as n from r join s on r.b = s.f group by s.d, r.c",
    "select r.c, s.d, count(distinct r.a % 7) as n from s join r on r.b = s.f group by r.c, s.d",
    f"select d, c, a from (select d, c, a, {PLACE} as k from r join s on b = f) as q where k = 2",
]
ROWS = 400


def database(few: str) -> Database:
    """Rows of r, each of one of s; of the column `few` there are two values, of the other one a hundred."""
    r = frozenset((a, a % 200, a % 2 if few == "c" else a % 100) for a in range(ROWS))
    s = frozenset((f, f % 2 if few == "d" else f % 100, 0) for f in range(200))
    return {"r": r, "s": s, "t": frozenset()}


@pytest.mark.parametrize("text", QUERIES)
@pytest.mark.parametrize("few", ["c", "d"])
@pytest.mark.parametrize("of", ["r", "s"])
def test_the_key_with_the_fewest_rows_is_taken(text: str, few: str, of: str) -> None:
    before = database(few)
    more = {"r": (ROWS, 5, 1), "s": (7, 0, 1)}[of]
    gone = {(7, 1 if few == "d" else 7, 0)} if of == "s" else set()
    after = {**before, of: before[of] - gone | {more}}
    outcome = maintained(text, before, after)
    assert outcome.how == "keyed"
    assert outcome.found == outcome.right
    assert outcome.rows < ROWS / 10


@pytest.mark.parametrize("few", ["c", "d"])
def test_views_without_rows_are_followed(few: str) -> None:
    after = database(few)
    before = {**after, "r": frozenset()}
    outcome = maintained(QUERIES[0], before, after)
    assert (outcome.how, outcome.found) == ("keyed", outcome.right)


@pytest.mark.parametrize("seed", range(effort(3, 20)))
def test_every_key_gives_what_recomputing_gives(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    ways = Counter[bool]()
    random = Random(seed)

    def any_of(_reader: object, _view: object, keys: tuple[Keyed, ...]) -> Keyed:
        ways[len(keys) > 1] += 1
        return random.choice(keys[1:] or keys)

    monkeypatch.setattr("selfmaint.api.following.keyed.fewest_rows", any_of)
    for number in range(effort(25, 60)):
        text, outcome = trial(f"{seed}.{number}.any key")
        assert outcome is None or outcome.found == outcome.right, text
    assert ways[True]
