"""Kinds of change that leave a view as it is, whatever the data, held against plain DuckDB; and texts beside others."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from selfmaint.api.audit import AuditOptions, audit_catalog
from selfmaint.api.file.programs import catalog_of
from selfmaint.audit.changes import Change, Kind
from selfmaint.audit.unread import leaves_unread
from selfmaint.warehouse.over_stored import with_views
from selfmaint.warehouse.situation import Situation
from tests.effort import effort
from tests.keyed_queries import COLUMNS, Database, bag, database, truth
from tests.selfmaint.decide.test_rows_read import CHANGING, REFERENCES, as_text, referencing, some_query

SCHEMA = catalog_of(f"{REFERENCES} create view v as select a from r;")


def changed(choice: random.Random, before: Database) -> tuple[Change, Database]:
    """A kind of change of one relation that leaves foreign keys as they are, and a database after one like that."""
    name = choice.choice(["r", "s"])
    rows, kind = before[name], choice.choice([Kind.UPDATE, Kind.INSERT, Kind.DELETE])
    if kind is Kind.INSERT:
        row = (9, *(choice.choice([0, 1, None]) if name == "s" else None for _ in range(2)))
        return Change(kind, name), {**before, name: rows | {row}}
    if kind is Kind.DELETE:
        used = {v for one in before["r"] for v in one[1:]} if name == "s" else {x for x, _ in before["t"]}
        return Change(kind, name), {**before, name: frozenset(row for row in rows if row[0] in used)}
    column = choice.choice([COLUMNS[name].index(one) for one in CHANGING[name]])
    new = {row: None if name == "r" else choice.choice([0, 1, 2, None]) for row in rows}
    moved = frozenset((*row[:column], new[row], *row[column + 1 :]) for row in rows)
    return Change(kind, name, frozenset({column})), {**before, name: moved}


def tried(seed: int) -> tuple[bool, bool]:
    """Whether a view is said to stay as it is, and whether it does."""
    choice = random.Random(seed)
    text = some_query(choice)
    catalog = with_views(SCHEMA, [as_text(text)])
    before = referencing(database(choice))
    change, after = changed(choice, before)
    said = leaves_unread(catalog, catalog.view("v"), change, effective=True)
    assert not leaves_unread(catalog, catalog.view("v"), change, effective=False)
    return said, bag(truth(text, before)) == bag(truth(text, after))


@given(st.integers(0, 2**32))
def test_what_is_said_to_stay_stays(seed: int) -> None:
    said, stays = tried(seed)
    assert stays or not said


def test_many_are_said_to_stay() -> None:
    cases = effort(60, 600)
    assert sum(said for said, _ in map(tried, range(cases))) > cases / 6


CASES = {
    "select a from r": {"r": {"b", "c"}, "s": {"d", "e", "insert", "delete"}},
    "select a from r where b > 1": {"r": {"c"}, "s": {"d", "e", "insert", "delete"}},
    "select r.a, s.e from r join s on r.b = s.f": {"r": {"c"}, "s": {"d", "insert", "delete"}},
    "select r.a, s.e from r join s on r.b = s.f where s.d is null": {"r": {"c"}, "s": {"insert", "delete"}},
    "select r.a, s.e from r left join s on r.b = s.f": {"r": {"c"}, "s": {"d", "insert", "delete"}},
    "select f, r.a from s left join r on r.b = s.f": {"r": {"c"}, "s": {"d", "e"}},
    "select r.a, s.f from r join s on r.b = s.f union all select f, f from s": {"r": {"c"}, "s": {"d", "e"}},
    "select r.a from r join s on r.b = s.f where exists (select 1 from s where d = 1)": {
        "r": {"c"},
        "s": {"e"},
    },
    "select count(*) as n from r join s on r.b = s.f join s as o on r.c = o.f": {
        "s": {"d", "e", "insert", "delete"}
    },
    "select r.a from r join s on r.b = s.d": {"r": {"c"}, "s": {"e"}},
}
"""For each table the columns of which updates leave a view as it is, and other kinds of change that do."""


@pytest.mark.parametrize("text", CASES)
def test_which_changes_leave_a_view_as_it_is(text: str) -> None:
    """Both where the query is known and where only its text is; a foreign key is no reason for the left side."""
    for catalog in (
        with_views(SCHEMA, [as_text(text)]),
        catalog_of(f"{REFERENCES} create view v as {text};"),
    ):
        for name, columns in CHANGING.items():
            changes = {
                one: Change(Kind.UPDATE, name, frozenset({COLUMNS[name].index(one)})) for one in columns
            }
            changes |= {kind.value: Change(kind, name) for kind in (Kind.INSERT, Kind.DELETE)}
            parts = (
                [catalog.view("v")] if "v" not in catalog.apart.unions else catalog.apart.unions["v"].values()
            )
            found = {
                one
                for one, change in changes.items()
                if all(leaves_unread(catalog.apart, part, change, effective=True) for part in parts)
            }
            assert found == CASES[text].get(name, set()), name


SALES = """
create table cust (id bigint primary key, name string not null, segment string not null);
create table sale (id bigint primary key, cust bigint not null references cust, amount int not null, memo string);
create view total as select c.segment, sum(s.amount) as t, count(*) as n from sale s join cust c on s.cust = c.id
  group by c.segment;
"""
MEDIAN = """
create view med as select c.segment, median(s.amount) as m from sale s join cust c on s.cust = c.id group by c.segment;
"""


def words(program: str) -> dict[tuple[str, str, str], str]:
    options = AuditOptions(advise=False, budget_s=60)
    return audit_catalog(catalog_of(program), Situation(effective=True), options).audit.words()


def test_the_audit_says_always_of_what_is_not_read() -> None:
    found = words(SALES + MEDIAN)
    for view in ("med", "total"):
        assert found[view, "cust", "insert"] == found[view, "cust", "delete"] == "always"
    assert (found["med", "sale", "insert"], found["med", "cust", "any"]) == ("undecided", "depends")


def test_the_audit_tells_which_columns_a_text_does_not_read() -> None:
    options = AuditOptions(advise=False, budget_s=60)
    (audit,) = audit_catalog(
        catalog_of(SALES.partition("create view")[0] + MEDIAN), Situation(effective=True), options
    ).audit.views
    assert {line.relation: line.quiet for line in audit.lines} == {"sale": ("memo",), "cust": ("name",)}


def test_a_text_that_reads_nothing_of_an_example_makes_nothing_undecided() -> None:
    """The two share a table that both reference; what the text reads is the same in the two databases."""
    sites = """
    create table site (id int primary key, name string not null);
    create table log (site int not null references site, event string, minutes int);
    create table invoice (id bigint primary key, site int references site, amount int);
    create view events as select distinct event, minutes from log;
    """
    text = "create view medians as select site, median(amount) as m from {} group by site;"
    with_text = words(sites + text.format("invoice"))
    assert {key: word for key, word in with_text.items() if key[0] == "events"} == words(sites)
    assert words(sites)["events", "log", "delete"] == "depends"
    assert words(sites + text.format("(select site, minutes as amount from log) as l"))[
        "events", "log", "delete"
    ] in ("depends", "undecided")


@pytest.mark.parametrize(
    ("query", "stays"),
    [
        ("select f.id, a.name, b.name as other from f join p a on a.id = f.a join p b on b.id = f.b", True),
        ("select f.id, a.name from f join p a on a.id = f.a join p b on b.id > a.id", False),
        ("select f.id, a.name from f join p a on a.id = f.a union all select id, name from p", False),
    ],
    ids=["both by a foreign key", "one by none", "one alone"],
)
@pytest.mark.parametrize("kind", [Kind.INSERT, Kind.DELETE])
def test_two_occurrences_of_what_is_referenced(query: str, *, stays: bool, kind: Kind) -> None:
    tables = (
        "create table p (id int primary key, name string);"
        "create table f (id int primary key, a int not null references p, b int not null references p);"
    )
    catalog = catalog_of(f"{tables} create view v as {query};")
    assert leaves_unread(catalog, catalog.view("v"), Change(kind, "p"), effective=True) is stays
