"""Queries inside a query, finer groups, alternatives that share a condition: what they become."""

from __future__ import annotations

import pytest
import sqlglot

from datalog.model import ColumnType, TypeName
from datalog.sql.views.nested.inner_queries import replaced, split_look_up, whole
from datalog.sql.views.outside import unknown
from datalog.sql.views.split.outer_rows import split_outer
from datalog.sql.views.split.written_parts import Split
from datalog.sql.views.written_out.levels import split_levels
from datalog.sql.views.written_out.named_windows import windows_written_out
from datalog.sql.views.written_out.shorthand import written_out

BIGINT, DECIMAL = ColumnType(TypeName.BIGINT), ColumnType(TypeName.DECIMAL, 17, 2)
WIDEST = ColumnType(TypeName.DECIMAL, 38, 2)


def kept(text: str) -> tuple[str, list[str]]:
    """The query over helpers, and what these are, where all that may be kept is kept."""
    found = replaced(text, whole, "h{}".format)
    return found.rest, list(found.queries.values())


def offered(text: str) -> list[str]:
    """The queries that are offered to be kept."""
    found: list[str] = []

    def no(inner: str) -> Split | None:
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


def test_columns_of_later_sides_of_a_union_need_no_names() -> None:
    rest, helpers = kept(
        "SELECT a, count(*) AS n FROM r GROUP BY a UNION ALL SELECT 'all', count( * ), b FROM s GROUP BY b"
    )
    assert rest == "SELECT `a`, `n` FROM `h1` UNION ALL SELECT `value_1`, `value_2`, `b` FROM `h2`"
    assert helpers[1] == "SELECT 'all' AS value_1, count( * ) AS value_2, b FROM s GROUP BY b"
    rest, helpers = kept("SELECT a, count(*) FROM r GROUP BY a UNION ALL SELECT 1, count(*) AS n FROM s")
    assert len(helpers) == 1


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
        "SELECT a, avg(b) AS m FROM r GROUP BY ROLLUP (a)", lambda _: (BIGINT, DECIMAL, BIGINT, BIGINT)
    )
    assert found is not None
    assert (
        found.helper
        == "SELECT a AS group_1, sum(b) AS sum_1, count(b) AS count_2, count(*) AS count_3 FROM r GROUP BY a"
    )
    mean = "CAST(CAST(SUM(`sum_1`) AS DECIMAL(17, 2)) / SUM(`count_2`) AS DECIMAL(11, 6))"
    assert f"CASE WHEN SUM(`count_2`) > 0 THEN {mean} END AS `m`" in found.over("h")


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
    assert split_levels(text, lambda _: (BIGINT, DECIMAL, BIGINT, BIGINT)) is None


def test_an_average_whose_sum_may_have_all_digits_is_left() -> None:
    text = "SELECT a, avg(b) AS m FROM r GROUP BY ROLLUP (a)"
    assert split_levels(text, lambda _: (BIGINT, WIDEST, BIGINT, BIGINT)) is None


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
    what, _ = unknown(sqlglot.parse_one("percentile_cont(0.5) WITHIN GROUP (ORDER BY a)", read="spark"))
    assert what == "the aggregate `percentile_cont`"


TABLES = {"r": ("a", "b", "c"), "s": ("d", "e"), "t": ("a", "b", "c")}
MEAN = {"h": ["SELECT m FROM h"]}


def around(text: str) -> tuple[str, str] | None:
    """A query's rows around the helper `h` as the helper `o`, and the query over both."""
    found = split_outer(text, MEAN, lambda query: TABLES[query.split(" FROM ")[-1].split()[0].casefold()])
    return None if found is None else (found.helper, found.over("o"))


@pytest.mark.parametrize(
    ("text", "below", "above"),
    [
        (
            "SELECT a FROM r WHERE b > (SELECT m FROM h) AND c BETWEEN 1 AND 2",
            "SELECT a AS value_1, b AS value_2 FROM r WHERE c BETWEEN 1 AND 2",
            "SELECT value_1 AS `a` FROM `o` WHERE value_2 > (SELECT m FROM h)",
        ),
        (
            "SELECT x.* FROM r x, (SELECT m FROM h) u WHERE m < b",
            "SELECT `x`.`a` AS value_1, `x`.`b` AS value_2, `x`.`c` AS value_3, b AS value_4 FROM r x",
            "SELECT value_1 AS `a`, value_2 AS `b`, value_3 AS `c` FROM `o`, (SELECT m FROM h) u WHERE m < value_4",
        ),
        (
            "SELECT b AS a FROM r JOIN s ON a = d WHERE e = 1 AND a > (SELECT m FROM h) ORDER BY r.c LIMIT 2",
            "SELECT b AS value_1, a AS value_2, r.c AS value_3 FROM r JOIN s ON a = d WHERE e = 1",
            "SELECT value_1 AS a FROM `o` WHERE value_2 > (SELECT m FROM h) ORDER BY value_3 LIMIT 2",
        ),
        (
            "SELECT a FROM r, s WHERE r.a = d AND (b > (SELECT m FROM h) OR c IN (1, 2)) AND (e = 1)",
            "SELECT a AS value_1, b AS value_2, c AS value_3 FROM r, s WHERE r.a = d AND (e = 1)",
            "SELECT value_1 AS `a` FROM `o` WHERE (value_2 > (SELECT m FROM h) OR value_3 IN (1, 2))",
        ),
        (
            "WITH t AS (SELECT * FROM r), u AS (SELECT m FROM h) SELECT a FROM u LEFT JOIN t ON b = m WHERE c = 1",
            "WITH t AS (SELECT * FROM r) SELECT a AS value_1, c AS value_2, b AS value_3 FROM t",
            "WITH u AS (SELECT m FROM h) SELECT value_1 AS `a` FROM u LEFT JOIN `o` ON value_3 = m WHERE value_2 = 1",
        ),
    ],
)
def test_rows_around_helpers_are_kept(text: str, below: str, above: str) -> None:
    assert around(text) == (below, above)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a FROM r WHERE b > (SELECT m FROM h) AND EXISTS (SELECT 1 FROM h WHERE m = r.a)",
        "SELECT a + 1 AS c, count(*) AS n FROM r WHERE b > (SELECT m FROM h) GROUP BY 1 HAVING c > 1",
        "SELECT u.m, r.a, s.e FROM (SELECT m FROM h) u JOIN r ON r.a = m JOIN s ON s.d = r.a",
        "SELECT count(*) AS n FROM r WHERE (SELECT m FROM h) > 1",
        "SELECT r.a FROM r JOIN (SELECT m AS a FROM h) u USING (a)",
        "SELECT a FROM r JOIN s ON d > (SELECT m FROM h)",
        "SELECT a FROM r, s WHERE b > (SELECT m FROM h) AND (a = d OR e = 1)",
    ],
)
def test_rows_that_are_not_told_apart_are_left(text: str) -> None:
    assert around(text) is None


def test_what_is_looked_up_is_kept_as_groups() -> None:
    found = split_look_up("SELECT x.d + 1 AS k FROM s AS x WHERE e > 1", "in")
    assert found is not None
    assert (
        found.helper
        == "SELECT x.d + 1 AS value_1, count(*) AS count_1 FROM s AS x WHERE e > 1 GROUP BY x.d + 1"
    )
    there = split_look_up("SELECT 1 FROM s WHERE e > 1", "exists")
    assert there is not None
    assert there.over("h") == "SELECT 1 AS one FROM `h` WHERE count_1 > 0"
    assert split_look_up("SELECT d FROM s ORDER BY d LIMIT 1", "in") is None
    assert split_look_up("SELECT 1 FROM s", "in") is None


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (
            "SELECT sum(b) OVER v, max(b) OVER (w) FROM r WINDOW w AS (ORDER BY a), v AS w LIMIT 1",
            "SELECT sum(b) OVER (ORDER BY a), max(b) OVER (ORDER BY a) FROM r  LIMIT 1",
        ),
        (
            "SELECT n FROM (SELECT sum(b) OVER w AS n FROM r WINDOW w AS (ORDER BY a)) WINDOW w AS (PARTITION BY n)",
            "SELECT n FROM (SELECT sum(b) OVER (ORDER BY a) AS n FROM r )",
        ),
        (
            "SELECT (sum(b) OVER w) AS n FROM r -- all\nWINDOW w AS (ORDER BY a) UNION SELECT max(b) FROM r",
            "SELECT (sum(b) OVER (ORDER BY a)) AS n FROM r -- all\n UNION SELECT max(b) FROM r",
        ),
        (
            "(SELECT a FROM r WINDOW w AS (ORDER BY a) QUALIFY rank() OVER w = 1) UNION SELECT sum(b) OVER w FROM r",
            "(SELECT a FROM r  QUALIFY rank() OVER (ORDER BY a) = 1) UNION SELECT sum(b) OVER w FROM r",
        ),
        (
            "SELECT a FROM r WINDOW w AS (ORDER BY a) QUALIFY rank() OVER w = 1 ORDER BY a",
            "SELECT a FROM r  QUALIFY rank() OVER (ORDER BY a) = 1 ORDER BY a",
        ),
    ],
)
def test_windows_are_written_out(text: str, meant: str) -> None:
    assert windows_written_out(text) == meant


@pytest.mark.parametrize(
    "text",
    [
        "SELECT sum(b) OVER W AS n FROM r WINDOW w AS (ORDER BY a)",
        "SELECT sum(b) OVER (w ORDER BY b) AS n FROM r WINDOW w AS (PARTITION BY a)",
        "SELECT sum(b) OVER w AS n FROM r WINDOW w AS (ORDER BY a), w AS (ORDER BY b)",
        "SELECT sum(b) OVER u AS n FROM r WINDOW u AS v, v AS w, w AS (ORDER BY b)",
        "SELECT window(a, '1 day') AS w FROM r",
    ],
)
def test_windows_that_are_none_of_sparks_stay(text: str) -> None:
    assert windows_written_out(text) == text


def test_a_look_up_of_several_columns_has_no_helper() -> None:
    assert split_look_up("SELECT a, b FROM s", "in") is None
