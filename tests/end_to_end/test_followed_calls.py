"""Views that compute with functions of texts and numbers, followed: what plain DuckDB gives for the same text.

Only calls that plain DuckDB computes as Spark does for the values here: of all values the tests against Spark tell.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from tests.effort import effort
from tests.end_to_end.test_helper_views import followed

TEXTS = [
    "cast(b as string)",
    "cast(c as string)",
    "cast(a * 37 as string)",
    "concat_ws('|', cast(b as string), 'x')",
]


def value(random: Random) -> str:
    """A value of a row."""
    text, other = random.sample(TEXTS, 2)
    number = random.choice(["a", "b", "c"])
    options = [
        f"concat_ws('-', {text}, {other}, cast(a as string))",
        f"lpad({text}, {random.randint(0, 6)}, '0x')",
        f"rpad({text}, {random.randint(0, 6)}, ' ')",
        f"split_part({text}, '{random.choice('.1-')}', {random.randint(1, 3)})",
        f"translate({text}, '.-1', 'm{random.choice(['', 'n'])}')",
        f"reverse({text})",
        f"repeat({text}, {random.randint(0, 2)})",
        f"right({text}, {random.randint(0, 3)})",
        f"instr({text}, {random.choice([other, repr('1'), repr('')])})",
        f"ascii({text})",
        f"sqrt(abs({number}) + 2)",
        f"sign({number})",
        f"case when contains({text}, '1') then 'one' else ltrim({other}) end",
        "make_date(2024, 1 + coalesce(b, 3), 28)",
        f"coalesce(nullif({text}, '1'), 'none')",
    ]
    return random.choice(options)


def computing(random: Random) -> str:
    one, other = value(random), value(random)
    where = random.choice(
        ["", "", f" where {value(random)} is not null", " where contains(cast(c as string), '5')"]
    )
    options = [
        f"select a, {one} as m, {other} as n from r{where}",
        f"select {one} as m, count(*) as n, sum(a) as t from r{where} group by {one}",
        f"select {one} as m, max({other}) as n from r{where} group by {one}",
        f"select r.a, {one} as m, s.d from r left join s on f = b{where}",
        f"select distinct {one} as m from r{where}",
    ]
    return random.choice(options)


@pytest.mark.parametrize("seed", range(effort(3, 24)))
def test_views_that_compute_are_what_recomputing_gives(seed: int) -> None:
    ways = Counter(followed(f"computing.{seed}.{trial}", computing) for trial in range(8))
    assert ways["alone"] + ways["from the helper"] + ways["by rows"] >= 6, ways
