"""LEFT SEMI JOIN and LEFT ANTI JOIN: the same views as with EXISTS and NOT EXISTS, and the same rows as in DuckDB."""

from __future__ import annotations

from typing import Any

import pytest

from datalog.model import OpaqueView
from selfmaint.api.file.programs import catalog_of
from tests.plain_duckdb import plain_duckdb

TABLES = """create table c (id int not null primary key, n string, r int not null);
create table o (id int not null primary key, c int not null references c (id), t int not null, ok boolean);
"""
SAME = [
    (
        "select c.id, c.n from c left anti join o on o.c = c.id and o.ok",
        "select c.id, c.n from c where not exists (select 1 from o where o.c = c.id and o.ok)",
    ),
    (
        "select * from c anti join o on o.c = c.id where r > 1",
        "select * from c where r > 1 and not exists (select 1 from o where o.c = c.id)",
    ),
    (
        (
            "select p.id, n from c left semi join (select c as j from o where ok) x on x.j = c.id "
            "join o p on p.c = c.id where r > 1 or n = 'a'"
        ),
        (
            "select p.id, n from c join o p on p.c = c.id where (r > 1 or n = 'a') and exists "
            "(select 1 from (select c as j from o where ok) x where x.j = c.id)"
        ),
    ),
    (
        "select id, n from c left semi join (select c from o where ok) x on c = id",
        "select id, n from c where exists (select 1 from (select c from o where ok) x where c = id)",
    ),
    (
        "select id, n from c semi join (select c as id from o) x using (id) where r < 3",
        "select id, n from c where r < 3 and exists (select 1 from (select c as id from o) x where c.id = x.id)",
    ),
]
ROWS = {
    "c": [(1, "a", 1), (2, None, 2), (3, "c", 3)],
    "o": [(1, 1, 5, True), (2, 1, 6, None), (3, 2, 7, False)],
}


def definition(query: str) -> Any:
    found = catalog_of(f"{TABLES} create view v as {query};").view("v").definition
    if isinstance(found, OpaqueView):
        return found.anti or found.reasons
    return found


@pytest.mark.parametrize(("joined", "exists"), SAME)
def test_they_are_exists(joined: str, exists: str) -> None:
    found = definition(joined)
    assert found == definition(exists)
    assert not isinstance(found, tuple)
    with plain_duckdb() as plain:
        plain.execute(TABLES.replace("string", "varchar"))
        for name, rows in ROWS.items():
            plain.executemany(f"insert into {name} values ({', '.join('?' * len(rows[0]))})", rows)
        spelled = joined.replace("left anti", "anti").replace("left semi", "semi")
        assert sorted(plain.sql(spelled).fetchall()) == sorted(plain.sql(exists).fetchall()) != []


@pytest.mark.parametrize(
    "query",
    [
        "select c.id from c left anti join o on o.c = c.id right join o p on p.c = c.id",
        "select c.id from c join o p on p.c = c.id left semi join (select r from c) x using (r)",
        # `id` is that of `c` there, and would be ambiguous in WHERE
        "select c.id from c left anti join (select c as j from o) x on x.j = id join o p on p.c = c.id",
    ],
)
def test_some_are_not(query: str) -> None:
    assert "JOIN" in str(definition(query))
