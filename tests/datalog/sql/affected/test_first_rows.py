"""By which columns of the result the first rows are taken, or that it is not plain."""

from __future__ import annotations

import pytest

from datalog.sql.affected.plan import Limited
from tests.datalog.sql.affected.test_affected import query


@pytest.mark.parametrize(
    ("text", "by"),
    [
        ("select a, b from r order by b desc, a limit 3", ["b", "a"]),
        ("select x.a as n, b from r x order by x.a limit 3", ["n"]),
        ("select b, sum(c) as n from r group by b order by sum(c) desc, b limit 3", ["n", "b"]),
        ("select b, sum(c) as n from r group by b order by 2 desc, 1 limit 3", ["n", "b"]),
        ("select a, b + 1 as n from r order by b + 1 limit 3", ["n"]),
        ("select a from r union all select d from s order by 1 limit 3", ["a"]),
        (
            "select a as b, b + 1 as n from r order by b + 1 limit 3",
            None,
        ),  # of the result's `b`, which is `a`
        (
            "select id, nullif(code, 'A') as n from o order by nullif(code, 'a') limit 3",
            None,
        ),
        ("select b, sum(c) as n from r group by b order by 3 limit 3", None),
        ("select b, sum(c) as n from r group by b order by max(c) limit 3", None),
        ("select a, b from r order by c limit 3", None),
    ],
)
def test_the_order_of_first_rows(text: str, by: list[str] | None) -> None:
    found = query(text)
    names = {number: name for name, number in found.outputs}
    assert isinstance(found.plan, Limited)
    assert (found.plan.number is None) == (by is None)
    assert [names[number] for number, _, _ in found.plan.order] == (by or [])
