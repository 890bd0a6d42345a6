"""What is warned of in texts that other databases read otherwise, and what is not."""

from __future__ import annotations

import pytest

from datalog.sql.views import read_sql

TABLE = "create table r (id int primary key, name string, price double, `decimal` int);\n"


def said(query: str) -> list[str]:
    found = read_sql(f"{TABLE}create view v as {query};").warnings
    return [one.message for one in found if one.code.value == "DL408"]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ('select id, "name" as n from r', "`name` in double quotes"),
        ("select id from r where \"NAME\" = 'x'", "`NAME` in double quotes"),
        (r"select id from r where name rlike '\d'", r"`\d` in a text is the letter `d`"),
        (r"select id, regexp_replace(name, '[^a\\\W]', '') as n from r", r"`\W` in a text"),
        ("select id, to_date(name, 'YYYY-MM-DD') as d from r", "the pattern 'YYYY-MM-DD'"),
        ("select id, to_date(name, 'yyyy-mm-dd') as d from r", "the pattern 'yyyy-mm-dd'"),
        ("select id, price::numeric as p from r", "`numeric` without a size"),
        ("select id, try_cast(price as DECIMAL) as p from r", "`decimal` without a size"),
    ],
)
def test_it_is_warned_of(query: str, message: str) -> None:
    (found,) = said(query)
    assert found.startswith(message)


@pytest.mark.parametrize(
    "query",
    [
        'select id, "north" as n from r',
        "select id, 'name' as n, `name` from r",
        'select id, name as `"name"` from r',
        r"select id from r where name rlike '\\d' or name rlike r'\d' or name = 'a\n'",
        "select id, price::numeric(9, 2) as p, cast(price as decimal (10, 2)) as q, r.decimal from r",
        "select id, to_date(name, 'yyyy-MM-dd') as d, date_format(now(), 'yyyyMMdd HH:mm') as h from r",
        "select name, count(*) as number, sum(price) as decimal from r group by name",
    ],
)
def test_others_are_not(query: str) -> None:
    assert not said(query)
