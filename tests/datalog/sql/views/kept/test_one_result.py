"""Which queries have one result: they choose nothing among rows that their orders leave equal."""

from __future__ import annotations

import random
import re
from collections import Counter

import duckdb
import pytest

from datalog.model import ColumnType, TextQuery, TextRead, TypeName
from datalog.sql.affected import Table, has_one_result_by_keys
from datalog.sql.views.kept.one_result import has_one_result
from tests.effort import effort

BIGINT = ColumnType(TypeName.BIGINT)
TABLES = {
    "t": Table("t", ("id", "x", "y"), (BIGINT,) * 3, frozenset({1, 2}), ((0,),)),
    "s": Table("s", ("a", "b", "x"), (BIGINT,) * 3, frozenset({2}), ((0, 1),)),
    "bag": Table("bag", ("x", "y"), (BIGINT,) * 2, frozenset({0, 1})),
}

ONE = [
    "SELECT id, row_number() OVER (PARTITION BY x ORDER BY id DESC) AS n FROM t",
    "SELECT id, lag(x) OVER (ORDER BY y, ID) AS n FROM t",
    "SELECT id, first_value(x) OVER (PARTITION BY id ORDER BY x) AS n FROM t",
    "SELECT row_number() OVER (ORDER BY a.id) AS n FROM t a JOIN t c ON a.x = c.id",
    "SELECT sum(x) OVER (ORDER BY a.id ROWS 1 PRECEDING) AS n FROM t a",
    "SELECT row_number() OVER (PARTITION BY b ORDER BY a) AS n FROM s",
    "SELECT row_number() OVER (ORDER BY a.id, c.a, c.b) AS n FROM t a LEFT JOIN s c ON a.x = c.a",
    "SELECT x, row_number() OVER (ORDER BY x) AS n FROM bag GROUP BY x",
    "SELECT id, y FROM t ORDER BY y, id LIMIT 3",
    "SELECT x, count(*) AS n FROM t GROUP BY x ORDER BY n DESC, x LIMIT 3",
    (
        "SELECT id FROM (SELECT w.*, row_number() OVER (PARTITION BY x ORDER BY y, id) AS n FROM t w) d "
        "WHERE n = 1"
    ),
    "WITH r AS (SELECT *, row_number() OVER (ORDER BY id) AS n FROM t) SELECT x FROM r WHERE n = 1",
    (
        "SELECT a.id, c.x AS y, row_number() OVER (PARTITION BY a.id ORDER BY a.x) AS n FROM t a JOIN t c "
        "ON a.y = c.id GROUP BY a.id, c.x, a.x"
    ),
    (
        "SELECT id, row_number() OVER (ORDER BY id) AS n FROM (SELECT a.id, c.y, count(*) AS m FROM t a "
        "JOIN t c ON a.x = c.id GROUP BY a.id, c.y) d"
    ),
    "SELECT date_trunc('MONTH', x) AS month, count(*) AS n FROM bag GROUP BY date_trunc('MONTH', x)",
    (
        "SELECT cid, row_number() OVER (ORDER BY cid) AS n FROM (SELECT c.id AS cid, c.y, count(*) AS m "
        "FROM bag a LEFT JOIN t c ON a.x = c.id GROUP BY c.id, c.y) d"
    ),
    "SELECT -id AS key, row_number() OVER (ORDER BY id) AS n FROM t",
    "SELECT x, max_by(y, id) AS m, sum(y) AS n FROM t GROUP BY x",
    "SELECT b, min_by(x, a) AS m FROM s GROUP BY b",
    "SELECT x, listagg(y, ',') WITHIN GROUP (ORDER BY id DESC) AS m FROM t GROUP BY x",
    "SELECT x, grouping(x) AS g, count(*) AS n FROM t GROUP BY ROLLUP (x)",
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
    "SELECT DISTINCT ON (x) x, y FROM t",
    "SELECT x AS m FROM t GROUP BY x, y ORDER BY x LIMIT 3",
    "SELECT row_number() OVER (ORDER BY id) AS n FROM t AS w(x, id, y)",  # another column is called so
    "WITH t AS (SELECT x AS id FROM bag) SELECT row_number() OVER (ORDER BY id) AS n FROM t",
    "SELECT row_number() OVER (ORDER BY id) AS n FROM (SELECT x AS id FROM t) w",
    (
        "SELECT id, row_number() OVER (ORDER BY id) AS n FROM (SELECT a.id, c.y, count(*) AS m FROM t a "
        "JOIN bag c ON a.x = c.x GROUP BY a.id, c.y) d"
    ),  # no key of it tells its y
    (
        "SELECT id, row_number() OVER (ORDER BY id) AS n FROM (SELECT a.id, c.b, count(*) AS m FROM t a "
        "LEFT JOIN s c ON a.x = c.a GROUP BY a.id, c.b) d"
    ),
    (
        "SELECT year, row_number() OVER (ORDER BY year) AS n FROM (SELECT DATE_TRUNC('YEAR', y) AS year, "
        "x, count(*) AS m FROM t GROUP BY DATE_TRUNC('YEAR', y), x) d"
    ),
    "SELECT collect_list(x) OVER (ORDER BY id) AS n FROM t",
    "SELECT id, first_value(x) AS n FROM t GROUP BY id",
    "SELECT x, max_by(id, y) AS m FROM t GROUP BY x",
    "SELECT x, min_by(b, a) AS m FROM s GROUP BY x",
    "SELECT b, max_by(x, a) AS m FROM s GROUP BY ROLLUP (b)",
    "SELECT x, max_by(y, -id) AS m FROM t GROUP BY x",
    "SELECT x, listagg(id, ',') WITHIN GROUP (ORDER BY y) AS m FROM t GROUP BY x",
    "SELECT x, listagg(id, ',') AS m FROM t GROUP BY x",
    "SELECT row_number() OVER (ORDER BY id) AS n FROM t LATERAL VIEW explode(xs) e AS one",
]


def query_of(text: str) -> TextQuery:
    found = re.finditer(r"(?:FROM|JOIN) (t|s|bag)\b", text)
    within = {match[1] for match in re.finditer(r"WITH (\w+)", text)}
    reads = [TextRead(m.start(1), m.end(1), m[1]) for m in found if m[1] not in within]
    return TextQuery(text, tuple(reads))


def is_told(text: str) -> bool:
    query = query_of(text)
    return has_one_result(query) or has_one_result_by_keys(query, TABLES)


@pytest.mark.parametrize("text", ONE)
def test_keys_tell_rows_apart(text: str) -> None:
    assert is_told(text)


@pytest.mark.parametrize("text", SEVERAL)
def test_what_may_leave_rows_equal_is_not_said_to_have_one_result(text: str) -> None:
    assert not is_told(text)


SOURCES = {
    "FROM t a": ["a.id", "a.x", "a.y"],
    "FROM s a": ["a.a", "a.b", "a.x"],
    "FROM bag a": ["a.x", "a.y"],
    "FROM t a LEFT JOIN s c ON a.x = c.a": ["a.id", "a.x", "c.a", "c.b", "c.x"],
    "FROM t a JOIN t c ON a.x = c.x": ["a.id", "c.id", "a.y", "c.y"],
    "FROM t a FULL JOIN s c ON a.x = c.a": ["a.id", "a.y", "c.a", "c.b"],
    "FROM t": ["id", "x", "y"],
}
FUNCTIONS = [
    *(
        "row_number()",
        "lag({})",
        "lead({})",
        "first_value({})",
        "last_value({})",
        "ntile(2)",
        "nth_value({}, 2)",
    ),
    *("sum({})", "count({})", "max({})", "rank()"),
]
FRAMES = ["", "", " ROWS 1 PRECEDING", " ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING"]


def a_query(draw: random.Random) -> str:
    """A window, or first rows; perhaps over groups, perhaps with a column that is called as another."""
    source, columns = draw.choice(list(SOURCES.items()))
    groups = draw.sample(columns, draw.randint(1, min(3, len(columns)))) if draw.random() < 0.3 else []
    shown = groups or draw.sample(columns, draw.randint(1, len(columns)))
    some = [draw.choice(["{}", "{}", "{}", "-{}", "{} % 2"]).format(one) for one in shown]
    names = draw.sample(["id", "x", "y", "o", "p", "q", "r"], len(some))
    outputs = [f"{one} AS {name}" for one, name in zip(some, names, strict=True)]
    by = [
        draw.choice(["{}", "{}", "{} DESC", "-{}"]).format(one)
        for one in draw.sample(shown, draw.randint(1, len(shown)))
    ]
    end = f" GROUP BY {', '.join(groups)}" if groups else ""
    if draw.random() < 0.3:
        order = ", ".join(draw.sample([*by, *draw.sample(names, 1)], draw.randint(1, len(by))))
        return f"SELECT {', '.join(outputs)} {source}{end} ORDER BY {order} LIMIT {draw.randint(1, 3)}"
    partition = f"PARTITION BY {draw.choice(shown)} " if draw.random() < 0.6 else ""
    function = draw.choice(FUNCTIONS).format(draw.choice(shown))
    frame = "" if function.startswith(("row", "rank", "ntile", "lag", "lead")) else draw.choice(FRAMES)
    window = f"{function} OVER ({partition}ORDER BY {', '.join(by)}{frame}) AS w"
    return f"SELECT {', '.join([*outputs, window])} {source}{end}"


@pytest.mark.parametrize("seed", range(effort(3, 12)))
def test_one_result_does_not_depend_on_how_rows_lie(seed: int) -> None:
    """What DuckDB gives for the same rows in other orders."""
    draw = random.Random(seed)
    rows = {
        "t": [(i, draw.choice([None, 0, 1]), draw.choice([None, 0, 1])) for i in range(6)],
        "s": [(a, b, draw.choice([None, 0, 1])) for a in range(2) for b in range(3)],
        "bag": [(draw.choice([None, 0, 1]), draw.choice([0, 1])) for _ in range(6)],
    }
    places = [duckdb.connect(config={"threads": 1}) for _ in range(6)]
    for place in places:
        for name, columns in {"t": "id, x, y", "s": "a, b, x", "bag": "x, y"}.items():
            place.execute(f"CREATE TABLE {name} ({columns.replace(',', ' BIGINT,')} BIGINT)")
            width = columns.count(",") + 1
            shuffled = draw.sample(rows[name], len(rows[name]))
            place.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * width)})", shuffled)
    several, one = 0, 0
    for _ in range(effort(200, 400)):
        text = a_query(draw)
        found = {frozenset(Counter(place.sql(text).fetchall()).items()) for place in places}
        if is_told(text):
            assert len(found) == 1, text
            one += 1
        several += len(found) > 1
    assert one > 20
    assert several > 10
