"""VALUES as queries: only where each column's values are written alike."""

from __future__ import annotations

import pytest
from sqlglot import exp, parse_one

from datalog.sql.views.written_out.written_rows import MOST, with_queries


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("values (1, 'a'), (2, 'b')", "SELECT 1 AS `col1`, 'a' AS `col2` UNION SELECT 2, 'b'"),
        ("select * from values 1, 1", "SELECT * FROM (SELECT 1 AS `col1` UNION ALL SELECT 1)"),
        (
            "select * from values ('a', 1), ('\\\\x62', 1), ('b', 1)",
            (
                "SELECT * FROM (SELECT 'a' AS `col1`, 1 AS `col2` UNION ALL SELECT '\\\\x62', 1 "
                "UNION ALL SELECT 'b', 1)"
            ),
        ),
        ("select * from values 1, -2", "SELECT * FROM (SELECT 1 AS `col1` UNION SELECT -2)"),
        (
            "with m(x) as (values (true), (null)) select x from m",
            (
                "WITH m(x) AS (SELECT * FROM (SELECT TRUE AS `col1` UNION ALL SELECT NULL) AS _values) "
                "SELECT x FROM m"
            ),
        ),
        (
            "select t.x from r join (values (true), (false)) as t(x) on t.x = r.b",
            "SELECT t.x FROM r JOIN (SELECT TRUE AS `x` UNION ALL SELECT FALSE) AS t ON t.x = r.b",
        ),
    ],
)
def test_rows_are_queries(text: str, made: str) -> None:
    assert with_queries(parse_one(text, read="spark")).sql("spark") == made


@pytest.mark.parametrize(
    "text",
    [
        "select * from values (1), ('a')",  # an error to Spark, where UNION ALL finds a type
        "select * from values (1), (1.5)",
        "select * from values (1, 2), (3)",
        "select * from values (1e3), (2e3)",
        "select * from values (null), (null)",
        "select * from values (1 + 1), (2)",
        "select * from values (1, 2) as t(a)",
        "select * from values (date '2026-01-01'), ('2026-01-02')",
        f"select * from values {', '.join(f'({i})' for i in range(MOST + 1))}",
    ],
)
def test_others_stay_as_they_are(text: str) -> None:
    tree = parse_one(text, read="spark")
    assert with_queries(tree.copy()) == tree
    assert tree.find(exp.Values)
