"""Queries that are known as text alone are not run where they use texts of which equal ones differ."""

from __future__ import annotations

import pytest

from datalog.model import NotToRun, OpaqueView
from datalog.sql.views import read_sql

TABLES = """
    create table c (id bigint primary key, code char(5), v string collate utf8_lcase, x int);
    create table o (id bigint primary key, code string, v string);
"""


def refused(query: str, *others: str) -> str | None:
    """Why a view is not to be run; others stand before it. None if it is read, or may be run as text."""
    read = read_sql(f"{TABLES} {''.join(others)} create view asked as {query};")
    view = next((view for view in read.opaque if view.name == "asked"), None)
    found = view.refused if isinstance(view, OpaqueView) else None
    return None if found is None else found.why


@pytest.mark.parametrize(
    ("query", "column"),
    [
        ("select id from c where code = 'ab'", "code"),
        ("select id, CODE from c", "code"),
        ("select * from c", "code"),
        ("select c.* from c", "code"),
        ("select count(distinct v) as n from c", "v"),
        ("select v, count(*) as n from c group by v", "v"),
        ("select a.id from c a join o b using (code)", "code"),
        ("select o.id from o natural join c", "code"),
        ("select e.i from c as e(i, p, q, r) where q = 'x'", "code"),
        ("with q as (select id, v from c) select id from q", "v"),
        ("select id from o where exists (select 1 from c where c.`V` = o.v)", "v"),
        ("select id, row_number() over (partition by v order by id) as n from c", "v"),
        ("select id from c order by code limit 2", "code"),
    ],
)
def test_a_view_that_uses_such_a_column_is_not_run(query: str, column: str) -> None:
    why = refused(query)
    assert why is not None
    assert f"`{column}` of `c`" in why


@pytest.mark.parametrize(
    "query",
    [
        "select id, x from c",
        "select x, count(*) as n from c group by x",
        "select o.id, code.x from o left join (select id, x from c) as code on code.id = o.id",
        "with v as (select x as y, count(*) as n from c group by x) select v.y, v.n from v",
    ],
)
def test_one_that_does_not_is(query: str) -> None:
    assert refused(query) is None


def test_a_stored_view_hands_its_collation_on_and_not_its_blanks() -> None:
    folded = "create view folded as select id, v from c;"
    padded = "create view padded as select id, code from c;"
    assert refused("select id from folded where v = 'ab'", folded)
    assert refused("select id from over_it", folded, "create view over_it as select id, v from folded;")
    assert refused("select id from padded where code = 'ab'", padded) is None


def test_a_view_with_a_collation_of_its_own_is_not_run() -> None:
    read = read_sql(
        f"{TABLES} create view asked default collation unicode_ci as select id from o where v = 'a'"
    )
    (view,) = read.opaque
    assert isinstance(view.query, NotToRun)
    assert "a collation of its own" in view.query.why
