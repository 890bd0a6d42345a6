"""Rows compared with values that all rows make together: what plain DuckDB gives for the view's own text.

That the trials can fail is tried too: with a rule of the split that is wrong they find something.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from datalog.sql.views.split import outer_rows
from tests.effort import effort
from tests.end_to_end.test_helper_views import followed

TRIALS = 8
"""Of each seed."""


def value(random: Random) -> str:
    """A query of one value."""
    number = random.choice(
        ["avg(b)", "sum(b)", "max(a)", "min(b)", "count(*)", "count(b)", "avg(b + a)", "sum(b) - 1"]
    )
    source = random.choice(["r", "r", "r as r2", "r join s on f = b", "s"])
    if source == "s":
        return f"(select {random.choice(['max(d)', 'count(*)', 'sum(d)'])} from s)"
    return f"(select {number} from {source}{random.choice(['', ' where a > 2', ' where b is not null'])})"


def listed(random: Random) -> str:
    """A query of values that are looked up."""
    return random.choice(
        [
            "(select d from s)",
            "(select d from s where f > 2)",
            "(select b + 1 from r where a < 5)",
            "(select t.d from s as t)",
        ]
    )


def condition(random: Random) -> str:
    sign = random.choice([">", "<=", "=", "<>"])
    options = [
        f"b {sign} {value(random)}",
        f"{value(random)} {sign} b + a",
        f"b {random.choice(['in', 'not in'])} {listed(random)}",
        f"(b > {value(random)} or b in {listed(random)})",
        f"(exists (select 1 from s where d > 1) or b > {value(random)})",
        "b >= (select d from s where f = 3)",
        f"b between {value(random)} and 3",
        f"case when c > 0 and a > 1 then b > {value(random)} else true end",
    ]
    return random.choice(options)


def outer(random: Random) -> str:
    """A query whose rows depend on what all rows make together."""
    tests = [condition(random)]
    tests += random.choice([[], ["a > 1"], ["c is not null", "a between 0 and 7"], ["(b = 1 or b = 2)"]])
    random.shuffle(tests)
    where = f" where {' and '.join(tests)}"
    source = random.choice(["r", "r", "r as x", "r join s on f = b", "r left join s on f = b"])
    grouped = random.choice(["b", "c", "coalesce(b, 0)"])
    one = value(random)
    joined = f"({one[1:].replace(' from', ' as m from', 1)}"
    options = [
        f"select a, b as k, c from {source}{where}",
        f"select a, b, b - {one} as n from {source}{where}",
        f"select a, b - {one} as n from {source}",
        f"select distinct b, c from {source}{where}",
        f"select {grouped} as g, count(*) as n, sum(a) as t from {source}{where} group by {grouped}",
        f"select {grouped} as g, sum(b) as n from {source}{where} group by 1 having count(*) > 1",
        f"select a, b from {source}{where} order by b nulls first, a limit 3",
        f"select a, rank() over (order by b nulls last) as n from {source}{where}",
        f"select * from r{where}",
        f"select r.*, t.m from r cross join {joined} as t where {tests[0]} and b > t.m",
        f"select * from r, {joined} as t where b > m",
        f"select t.m, a, b from {joined} as t join r on r.b >= t.m and r.a > 1 where c > 0",
        f"select t.m, r.a from {joined} as t left join r on r.b = t.m where c > 0 or c is null",
        f"with t as {joined} select a, b, m from r cross join t{where}",
        f"with r as (select a, b, c from r where a > 1), t as {joined} select a, m from r, t where b >= m",
        "with x as (select * from r where c > 0) select a, b from x where b >= (select avg(b) from x) and a > 1",
        f"with x as (select d from s) select a, b from r where b not in (select d from x) and {tests[0]}",
    ]
    return random.choice(options)


@pytest.mark.parametrize("seed", range(effort(2, 40)))
def test_rows_around_values_are_what_recomputing_gives(seed: int) -> None:
    ways = Counter(followed(f"outer.{seed}.{trial}", outer) for trial in range(TRIALS))
    assert ways["by rows"] + ways["from the helper"] >= 3, ways


def is_wrong(text: str, number: int) -> bool:
    """Whether a random update makes a view's rows wrong."""
    try:
        followed(f"spoilt.{number}", lambda _: text)
    except AssertionError:
        return True
    return False


def test_a_wrong_rule_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A condition on what an outer join may leave out is no condition of the rows before it."""
    text = "select t.m, r.a from (select max(b) as m from r) as t left join r on r.b = t.m where c is null"
    always = property(lambda _: True, lambda *_: None)
    with monkeypatch.context() as spoilt:
        spoilt.setattr(outer_rows._Splitting, "takes_conditions", always, raising=False)
        found = next(number for number in range(60) if is_wrong(text, number))
    assert not is_wrong(text, found)
