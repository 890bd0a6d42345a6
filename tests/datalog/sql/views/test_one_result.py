"""Which queries have one result: they choose nothing among rows that their orders leave equal."""

from __future__ import annotations

import re

import pytest

from datalog.model import TextQuery, TextRead
from datalog.sql.views.one_result import has_one_result

KEYS = {"t": [("id",)], "s": [("a", "b")], "bag": []}

ONE = [
    "SELECT id, row_number() OVER (PARTITION BY x ORDER BY id DESC) AS n FROM t",
    "SELECT id, lag(x) OVER (ORDER BY y, ID) AS n FROM t",
    "SELECT id, first_value(x) IGNORE NULLS OVER (PARTITION BY id ORDER BY x) AS n FROM t",
    "SELECT sum(x) OVER (ORDER BY a.id ROWS 1 PRECEDING) AS n FROM t a",
    "SELECT row_number() OVER (PARTITION BY b ORDER BY a) AS n FROM s",
    "SELECT row_number() OVER (ORDER BY a.id, c.a, c.b) AS n FROM t a LEFT JOIN s c ON a.x = c.a",
    "SELECT x, row_number() OVER (ORDER BY x) AS n FROM bag GROUP BY x",
    "SELECT id, x FROM t ORDER BY y, id LIMIT 3",
    "SELECT x, count(*) AS n FROM t GROUP BY x ORDER BY n DESC, x LIMIT 3",
    "SELECT id FROM (SELECT w.*, row_number() OVER (PARTITION BY x ORDER BY y, id) AS n FROM t w) d WHERE n = 1",
    "WITH r AS (SELECT *, row_number() OVER (ORDER BY id) AS n FROM t) SELECT x FROM r WHERE n = 1",
    "SELECT -id AS key, row_number() OVER (ORDER BY id) AS n FROM t",
]
SEVERAL = [
    "SELECT id, row_number() OVER (PARTITION BY x ORDER BY y) AS n FROM t",
    "SELECT id, row_number() OVER (PARTITION BY x) AS n FROM t",
    "SELECT id, lag(x) OVER (ORDER BY -id) AS n FROM t",  # an expression may be the same for several
    "SELECT row_number() OVER (ORDER BY a) AS n FROM s",
    "SELECT row_number() OVER (ORDER BY a.id) AS n FROM t a LEFT JOIN s c ON a.x = c.a",
    "SELECT row_number() OVER (ORDER BY id) AS n FROM t a JOIN t c ON a.x = c.x",
    "SELECT row_number() OVER (ORDER BY x) AS n FROM bag",
    "SELECT x, y, row_number() OVER (ORDER BY x) AS n FROM bag GROUP BY x, y",
    "SELECT x, y, row_number() OVER (ORDER BY x) AS n FROM t GROUP BY ROLLUP (x)",
    "SELECT x % 2 AS id, y FROM t ORDER BY id LIMIT 3",  # the column of the result
    "SELECT DISTINCT x FROM t ORDER BY id LIMIT 3",
    "SELECT x AS m FROM t GROUP BY x, y ORDER BY x LIMIT 3",
    "SELECT row_number() OVER (ORDER BY id) AS n FROM t AS w(x, id, y)",  # another column is called so
    "WITH t AS (SELECT x AS id FROM bag) SELECT row_number() OVER (ORDER BY id) AS n FROM t",
    "SELECT row_number() OVER (ORDER BY id) AS n FROM (SELECT x AS id FROM t) w",
    "SELECT collect_list(x) OVER (ORDER BY id) AS n FROM t",
    "SELECT id, first_value(x) AS n FROM t GROUP BY id",
    "SELECT row_number() OVER (ORDER BY id) AS n FROM t LATERAL VIEW explode(xs) e AS one",
]


def query_of(text: str) -> TextQuery:
    found = re.finditer(r"(?:FROM|JOIN) (t|s|bag)\b", text)
    within = {match[1] for match in re.finditer(r"WITH (\w+)", text)}
    reads = [TextRead(m.start(1), m.end(1), m[1]) for m in found if m[1] not in within]
    return TextQuery(text, tuple(reads))


@pytest.mark.parametrize("text", ONE)
def test_keys_tell_rows_apart(text: str) -> None:
    assert has_one_result(query_of(text), KEYS)
    assert not has_one_result(query_of(text), {}) or "GROUP BY" in text


@pytest.mark.parametrize("text", SEVERAL)
def test_what_may_leave_rows_equal_is_not_said_to_have_one_result(text: str) -> None:
    assert not has_one_result(query_of(text), KEYS)
