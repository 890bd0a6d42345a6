"""What the audit says of views without a test of their own, held against plain DuckDB on all databases of a few rows.

An example is two databases in which all views hold the same, and an update after which one does not. Where "always" is
said, no two databases with the same rows of the view may differ after the same update.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import chain, combinations, product
from typing import Any

import duckdb
import pytest

from selfmaint.api.audit import AuditOptions, audit_catalog
from selfmaint.api.file.programs import catalog_of
from selfmaint.audit.changes import Kind
from selfmaint.audit.example import Always, Depends
from selfmaint.audit.matrix import Audit
from selfmaint.warehouse.situation import Situation

Database = tuple[frozenset[Any], frozenset[Any]]

TABLES = (
    "create table c (id int primary key, n int not null);"
    "create table o (id int primary key, c int not null{}, t int not null);"
)
REFERENCES = " references c (id)"
SUMMED = (
    "select c.id, c.n, coalesce(p.s, 0) as s "
    "from c left join (select c, sum(t) as s from o group by c) p on p.c = c.id"
)
BOTH = "select c as k, t as x from o union all select id, n from c"
QUIET = "select id, n from c where not exists (select 1 from o where o.c = c.id{})"
KEPT = [(1, 0), (1, 1), (2, 0)]
OTHERS = [(1, 1, 5), (1, 2, 5), (2, 1, 1), (2, 1, -5)]


def audited(text: str, references: str = REFERENCES, more: str = "") -> Audit:
    program = f"{TABLES.format(references)} create view v as {text};{more}"
    return audit_catalog(
        catalog_of(program), Situation(effective=True), AuditOptions(advise=False, budget_s=60)
    ).audit


@cache
def connection() -> duckdb.DuckDBPyConnection:
    made = duckdb.connect()
    made.execute("create table c (id int, n int); create table o (id int, c int, t int)")
    return made


@cache
def held(text: str, database: Database) -> tuple[Any, ...]:
    """What a query gives."""
    made = connection()
    for name, rows in zip("co", database, strict=True):
        made.execute(f"delete from {name}")
        if rows:
            made.executemany(f"insert into {name} values ({', '.join('?' * len(min(rows)))})", sorted(rows))
    return tuple(sorted(made.execute(text).fetchall()))


def after(database: Database, inserted: Mapping[str, Any], deleted: Mapping[str, Any]) -> Database:
    c, o = (
        rows - deleted.get(name, frozenset()) | inserted.get(name, frozenset())
        for name, rows in zip("co", database, strict=True)
    )
    return c, o


DEPENDS = {
    QUIET.format(""): {("o", "delete"), ("o", "update")},
    QUIET.format(" and o.t > 1"): {("o", "delete"), ("o", "update")},
    "select c, count(*) as k from o group by c having count(*) > 3": {("o", "insert"), ("o", "update")},
    "select c, sum(t) as s from o group by c having sum(t) > 500": {
        ("o", "insert"),
        ("o", "update"),
    },
    "select c, count(distinct t) as k from o group by c": {("o", "insert"), ("o", "delete"), ("o", "update")},
    "select id from c where n = 1 union select c from o": {
        ("c", "update"),
        ("o", "delete"),
        ("o", "update"),
    },
}
"""Views, and kinds of change that they do not always follow."""


@pytest.mark.parametrize("text", DEPENDS)
def test_two_databases_show_that_it_depends(text: str) -> None:
    total = "select count(*) as n from c"
    views = audited(text, more=f"create view total as {total};").views
    audit = next(one for one in views if one.view.name == "v")
    found = {
        (line.relation, kind.value): its for line, kind, its in audit.cells() if isinstance(its, Depends)
    }
    assert found.keys() >= DEPENDS[text]
    for depends in found.values():
        example = depends.example
        both = [
            (frozenset(rows.get("c", ())), frozenset(rows.get("o", ())))
            for rows in (example.first, example.second)
        ]
        afterwards = [after(one, example.inserted, example.deleted) for one in both]
        assert all(is_sound(one) for one in [*both, *afterwards])
        for query in (text, total):
            assert held(query, both[0]) == held(query, both[1])
        assert held(text, afterwards[0]) != held(text, afterwards[1])


def is_sound(database: Database, references: str = REFERENCES) -> bool:
    c, o = database
    keys = {row[0] for row in c}
    is_key = len(keys) == len(c) and len({row[0] for row in o}) == len(o)
    return is_key and (not references or {row[1] for row in o} <= keys)


def subsets(rows: list[Any]) -> Iterator[frozenset[Any]]:
    return map(frozenset, chain.from_iterable(combinations(rows, n) for n in range(len(rows) + 1)))


ALWAYS = {
    (QUIET.format(""), REFERENCES): {("c", "insert"), ("c", "delete"), ("o", "insert")},
    (QUIET.format(" and o.t > 1"), REFERENCES): {("c", "insert"), ("c", "delete"), ("o", "insert")},
    (QUIET.format("") + " and n = 0", REFERENCES): {("c", "insert"), ("c", "delete"), ("o", "insert")},
    (QUIET.format(""), ""): {("c", "delete"), ("o", "insert")},
    ("select id, c from o where not exists (select 1 from c where n = 1 and c.id = o.c)", ""): {
        ("o", "delete"),
        ("c", "insert"),
    },
    (SUMMED, REFERENCES): {("c", "insert"), ("c", "delete"), ("o", "insert"), ("o", "delete")},
    (SUMMED, ""): {("c", "delete"), ("o", "insert"), ("o", "delete")},
    ("select c, sum(t) as s from o group by c having sum(t) <> 0", ""): {("o", "insert"), ("o", "delete")},
    ("select c from o group by c having sum(t) <> 0", ""): set(),
    (f"select k, count(*) as n, sum(x) as s from ({BOTH}) u group by k", ""): {
        ("c", "insert"),
        ("c", "delete"),
        ("o", "insert"),
        ("o", "delete"),
    },
    (
        f"select k, max(x) as m from ({BOTH}) u group by k",
        "",
    ): {
        ("c", "insert"),
        ("o", "insert"),
    },
    (
        f"select k, sum(x) as s from ({BOTH}) u group by k",
        "",
    ): {
        ("c", "insert"),
        ("o", "insert"),
    },
}
"""Views of rows without a match, or of sums shown alone, with a foreign key or without: what they always follow."""


@pytest.mark.parametrize(("text", "references"), ALWAYS)
def test_what_always_follows_never_differs(text: str, references: str) -> None:
    (audit,) = audited(text, references).views
    found = {
        (str(line.relation), kind.value)
        for line, kind, its in audit.cells()
        if kind in (Kind.INSERT, Kind.DELETE) and isinstance(its, Always)
    }
    assert found == ALWAYS[text, references]
    databases = [one for one in product(subsets(KEPT), subsets(OTHERS)) if is_sound(one, references)]
    for name, kind in found:
        seen: dict[Any, Any] = {}
        every = list(subsets(KEPT if name == "c" else OTHERS))
        for before, rows in product(databases, every):
            here = before["co".index(name)]
            if not rows or (rows & here if kind == "insert" else rows - here):
                continue
            then = after(before, *(({name: rows}, {}) if kind == "insert" else ({}, {name: rows})))
            if not is_sound(then, references):
                continue
            state = held(text, then)
            assert seen.setdefault((held(text, before), rows), state) == state, (name, kind, before, rows)
