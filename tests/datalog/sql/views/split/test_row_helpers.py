"""Which queries that look at all rows have a helper: one case for each meaning that a name may have."""

from __future__ import annotations

import pytest

from datalog.sql.views.split.row_helpers import split_rows

SUM = "sum(b) AS value_2, count(b) AS value_3, count(*) AS value_4"
SPLIT = {
    "SELECT a, sum(b) AS b, sum(sum(b)) OVER (ORDER BY a) AS n FROM r GROUP BY a": (
        f"SELECT a AS value_1, {SUM} FROM r GROUP BY a",
        "SELECT value_1 AS `a`, value_2 AS b, sum(value_2) OVER (ORDER BY value_1) AS n FROM `h`",
    ),
    "SELECT a, sum(b) AS B, rank() OVER (ORDER BY sum(b) DESC) AS n FROM r GROUP BY a ORDER BY b": (
        f"SELECT a AS value_1, {SUM} FROM r GROUP BY a",
        "SELECT value_1 AS `a`, value_2 AS B, rank() OVER (ORDER BY value_2 DESC) AS n FROM `h` ORDER BY b",
    ),
}


@pytest.mark.parametrize("text", SPLIT)
def test_a_name_in_an_aggregate_is_a_column_of_the_tables(text: str) -> None:
    found = split_rows(text, {})
    assert found is not None
    assert (found.helper, found.over("h")) == SPLIT[text]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a, sum(b) AS b, rank() OVER (ORDER BY b) AS n FROM r GROUP BY a",
        "SELECT a, sum(b) AS b, count(*) OVER () AS n FROM r GROUP BY a HAVING sum(b) > 1",
        "SELECT a, sum(b) AS b FROM r GROUP BY a ORDER BY sum(b) LIMIT 3",
        "SELECT b AS a, sum(c) AS n, count(*) OVER () AS m FROM r GROUP BY a",
        "SELECT a AS b, b AS a, count(*) OVER () AS n FROM r",
    ],
)
def test_a_name_that_may_be_of_the_select_list_is_none(text: str) -> None:
    assert split_rows(text, {}) is None
