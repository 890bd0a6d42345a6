"""LEFT JOINs that are inner ones: by the conditions behind them, and by no others."""

from __future__ import annotations

import pytest
from sqlglot import exp, parse_one

from datalog.sql.views.outer.null_rejecting import with_inner_joins
from tests.effort import effort
from tests.keyed_queries import require_right

ONE = "select s.f, s.d, r.a, r.c from s left join r on r.b = s.f"
TWO = "select s.f, r.a, t.x, t.y from s left join r on r.b = s.f left join t on t.x = r.a"
INNER = [
    f"{ONE} where r.c > 1",
    f"{ONE} where r.a is not null",
    f"{ONE} where 2 >= r.c and s.d = 1",
    f"{ONE} where R.c in (1, 2)",
    f"{ONE} where r.c between 0 and 2",
    f"{ONE} where r.c + 1 <> s.d",
    f"{ONE} where cast(r.c as bigint) = 2",
    f"{ONE} where r.c in (select e from s)",
    f"{TWO} where t.y > 1",
    "select s.f, s.d, r.a, r.c from s left outer join r on r.b = s.f where r.c > 1",
    "select s.f, r.a, t.x, t.y from s left join r on r.b = s.f join t on t.x = r.a",
    "select s.d, sum(r.c) as n, count(*) as m from s left join r on r.b = s.f where r.c > 1 group by s.d",
    "select k.f, k.d, r.a, r.c from (select * from s where d > 0) k left join r on r.b = k.f where r.c = 2",
]
LEFT = [
    ONE,
    f"{ONE} and r.c > 1",
    f"{ONE} where r.c is null",
    f"{ONE} where r.c > 1 or s.d = 1",
    f"{ONE} where coalesce(r.c, 2) = 2",
    f"{ONE} where r.c is not distinct from s.d",
    f"{ONE} where not (r.c > 1 and s.d > 1)",
    f"{ONE} where s.d > 1",
    f"{ONE} where r.c not in (select e from s where f > 100)",
    f"{ONE} where case when r.c > 1 then false else true end",
    f"{TWO} where r.c is null or t.y > 1",
]


def left_joins(query: str) -> int:
    tree = parse_one(query, read="spark")
    assert isinstance(tree, exp.Select)
    before = tree.sql()
    found = with_inner_joins(tree)
    assert "OUTER" not in found.sql() or "LEFT" in found.sql()
    assert tree.sql() == before, "the tree that is given stays as it is"
    return sum(join.side == "LEFT" for join in found.args["joins"])


@pytest.mark.parametrize("query", INNER)
def test_rows_without_a_partner_are_left_out(query: str) -> None:
    assert left_joins(query) == 0


@pytest.mark.parametrize("query", LEFT)
def test_others_stay(query: str) -> None:
    assert left_joins(query) > 0


def test_one_of_two_may_stay() -> None:
    assert left_joins(f"{TWO} where r.c > 1") == 1
    assert left_joins(f"{TWO} and r.c > 1 where s.d > 1") == 2


@pytest.mark.parametrize("query", INNER + LEFT)
def test_rows_are_what_recomputing_gives(query: str) -> None:
    require_right(query, effort(2, 40))
