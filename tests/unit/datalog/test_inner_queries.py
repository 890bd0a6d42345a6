"""Queries inside a query, finer groups, alternatives that share a condition: what they become."""

from __future__ import annotations

import pytest
import sqlglot

from datalog.model import ColumnType, TypeName
from datalog.sql.views.inner_queries import Kept, replaced, whole
from datalog.sql.views.levels import split_levels
from datalog.sql.views.outside import unknown
from datalog.sql.views.shorthand import written_out

BIGINT, DECIMAL = ColumnType(TypeName.BIGINT), ColumnType(TypeName.DECIMAL, 17, 2)
WIDEST = ColumnType(TypeName.DECIMAL, 38, 2)


def kept(text: str) -> tuple[str, list[str]]:
    """The query over helpers, and what these are, where all that may be kept is kept."""
    rest, helpers = replaced(text, whole, "h{}".format)
    return rest, list(helpers.values())


def offered(text: str) -> list[str]:
    """The queries that are offered to be kept."""
    found: list[str] = []

    def no(inner: str) -> Kept | None:
        found.append(inner)
        return None

    replaced(text, no, str)
    return found


def test_a_common_table_expression_that_groups_is_kept() -> None:
    rest, helpers = kept("WITH t AS (SELECT a, sum(b) AS n FROM r GROUP BY a) SELECT max(n) AS m FROM t")
    assert rest == "WITH t AS (SELECT `a`, `n` FROM `h1`) SELECT max(n) AS m FROM t"
    assert helpers == ["SELECT a, sum(b) AS n FROM r GROUP BY a"]


def test_a_value_without_a_name_gets_one_and_equal_queries_are_kept_once() -> None:
    rest, helpers = kept("SELECT (SELECT max(b) FROM r) AS x, 1 + (SELECT max(b) FROM r) AS y")
    assert rest == "SELECT (SELECT `value_1` FROM `h1`) AS x, 1 + (SELECT `value_1` FROM `h1`) AS y"
    assert helpers == ["SELECT max(b) AS value_1 FROM r"]


def test_order_and_limit_behind_a_union_are_those_of_both_sides() -> None:
    text = "SELECT * FROM (SELECT max(a) AS x FROM r UNION ALL SELECT min(a) AS x FROM r ORDER BY x LIMIT 1) AS u"
    assert offered(text)[1:] == ["SELECT max(a) AS x FROM r", "SELECT min(a) AS x FROM r"]


@pytest.mark.parametrize(
    "text",
    [
        "WITH r AS (SELECT b FROM s) SELECT 1 AS x FROM (WITH t AS (SELECT 1 AS b) SELECT max(b) AS m FROM t) AS u",
        "SELECT x FROM (WITH r AS (SELECT b FROM s) SELECT (SELECT max(b) AS m FROM r) AS x) AS u",
    ],
)
def test_what_names_a_common_table_expression_around_is_not_offered_without_it(text: str) -> None:
    assert not any(one.startswith("SELECT max(b)") for one in offered(text))


def test_common_table_expressions_stand_before_what_reads_them_and_go_where_nobody_does() -> None:
    text = "WITH t AS (SELECT a, b FROM r) SELECT x FROM (SELECT a, max(b) AS x FROM t GROUP BY a) AS u"
    rest, helpers = kept(text)
    assert helpers == ["WITH t AS (SELECT a, b FROM r)  SELECT a, max(b) AS x FROM t GROUP BY a"]
    assert rest == "WITH t AS (SELECT 1 AS nothing) SELECT x FROM (SELECT `a`, `x` FROM `h1`) AS u"


@pytest.mark.parametrize(
    "text", ["SELECT a FROM (SELECT a FROM r) AS t", "SELECT * FROM (SELECT * FROM r) AS t"]
)
def test_what_does_not_group_is_not_kept(text: str) -> None:
    assert kept(text) == (text, [])


def test_rollup_is_computed_from_finer_groups() -> None:
    found = split_levels(
        "SELECT a, avg(b) AS m FROM r GROUP BY ROLLUP (a)", "h", lambda _: (BIGINT, DECIMAL, BIGINT, BIGINT)
    )
    assert found is not None
    assert (
        found.helper
        == "SELECT a AS group_1, sum(b) AS sum_1, count(b) AS count_2, count(*) AS count_3 FROM r GROUP BY a"
    )
    mean = "CAST(CAST(SUM(`sum_1`) AS DECIMAL(17, 2)) / SUM(`count_2`) AS DECIMAL(11, 6))"
    assert f"CASE WHEN SUM(`count_2`) > 0 THEN {mean} END AS `m`" in found.rest


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a, rank() OVER (ORDER BY sum(b)) AS m FROM r GROUP BY ROLLUP (a)",
        "SELECT a, sum(DISTINCT b) AS m FROM r GROUP BY ROLLUP (a)",
        "SELECT a, stddev_samp(b) AS m FROM r GROUP BY ROLLUP (a)",
        "SELECT a, avg(DISTINCT b) AS m FROM r GROUP BY a",
        "SELECT c, avg(b) AS m FROM r GROUP BY ROLLUP (a)",
    ],
)
def test_what_finer_groups_do_not_tell_is_left(text: str) -> None:
    assert split_levels(text, "h", lambda _: (BIGINT, DECIMAL, BIGINT, BIGINT)) is None


def test_an_average_whose_sum_may_have_all_digits_is_left() -> None:
    text = "SELECT a, avg(b) AS m FROM r GROUP BY ROLLUP (a)"
    assert split_levels(text, "h", lambda _: (BIGINT, WIDEST, BIGINT, BIGINT)) is None


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("a = b AND c = 1 OR a = b AND c = 2", "(a = b AND (c = 1 OR c = 2))"),
        ("(a = b AND c = 1 AND d) OR (d AND a = b)", "(a = b AND d)"),
        ("a = b OR (a = b AND c = 1)", "(a = b)"),
        ("a = 1 OR b = 2", "a = 1 OR b = 2"),
    ],
)
def test_what_all_alternatives_ask_for_is_asked_once(text: str, meant: str) -> None:
    assert written_out(sqlglot.parse_one(text, read="spark"), str).sql() == meant


def test_functions_are_called_as_they_are_written() -> None:
    what, _ = unknown(sqlglot.parse_one("date_trunc('MONTH', a)", read="spark"))
    assert what == "the function `date_trunc`"
