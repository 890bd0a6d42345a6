"""What queries read of which only the text is known: random ones of every shape, held against plain DuckDB."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datalog.copies import replace
from datalog.model import OpaqueView, Predicate, Row, TextQuery, Version
from datalog.sql.views import read_sql
from datalog.sql.views.catalogue import Catalogue
from datalog.sql.views.kept.text_reads import text_query
from selfmaint.api.file.programs import catalog_of
from selfmaint.decide.decision import Decision
from selfmaint.decide.rows_read import rows_read
from selfmaint.decide.unmet_rows import unmet
from selfmaint.decide.unread_columns import untouched
from selfmaint.engine.memory import MemoryEngine
from selfmaint.engine.protocol import Facts
from selfmaint.warehouse.catalog import Catalog
from selfmaint.warehouse.definitions import limited_view
from selfmaint.warehouse.over_stored import with_views
from selfmaint.warehouse.reads import reads
from selfmaint.warehouse.situation import Situation
from selfmaint.warehouse.views import Limitation, Outside, View
from tests.effort import effort
from tests.keyed_queries import COLUMNS, KEYS, TABLES, Database, bag, database, truth
from tests.oracle.sql_engines import in_duckdb
from tests.oracle.sql_schemas import names_read
from tests.oracle.sql_shapes import SHAPES
from tests.random_queries import Maker

REFERENCES = """
create table r (a int not null primary key, b int references s, c int references s);
create table s (f int not null primary key, d int, e int);
create table t (x int not null references r, y int not null, primary key (x, y));
"""
SCHEMAS = [catalog_of(f"{tables} create view v as select a from r;") for tables in (TABLES, REFERENCES)]
CHANGING = {"r": ("b", "c"), "s": ("d", "e")}


def moved(choice: random.Random, before: Database) -> Database:
    """A database in which rows of a table have another value in one column, and others may come or go."""
    found = dict(before)
    name = choice.choice([*CHANGING])
    column = COLUMNS[name].index(choice.choice(CHANGING[name]))
    rows = {row[: KEYS[name]]: row for row in before[name]}
    for key, row in rows.items():
        if choice.random() < 0.6:
            new = choice.choice([0, 1, 2, 3, 4, None])
            rows[key] = (*row[:column], new, *row[column + 1 :])
    found[name] = frozenset(rows.values())
    if choice.random() < 0.4:
        found = dict(before) if choice.random() < 0.7 else found
        name = choice.choice(["r", "s", "s", "t"])
        width = len(COLUMNS[name]) - KEYS[name]
        new_key = (choice.randrange(5, 8),) if KEYS[name] == 1 else (choice.randrange(5), 6)
        stay = frozenset(row for row in found[name] if choice.random() < 0.8)
        found[name] = stay | {(*new_key, *(choice.choice([0, 1, 2, 3, None]) for _ in range(width)))}
    return found


def referencing(rows: Database) -> Database:
    """A database without what references no row."""
    keys = {row[0] for row in rows["s"]} | {None}
    kept = frozenset((a, b if b in keys else None, c if c in keys else None) for a, b, c in rows["r"])
    return {**rows, "r": kept, "t": frozenset(row for row in rows["t"] if row[0] in {one[0] for one in kept})}


def as_text(text: str) -> View:
    """The view of a query, as if nothing but its text were known."""
    catalogue = Catalogue(lambda _view: None)
    for one in read_sql(TABLES).declarations:
        catalogue.declare((one.name,), one)
    query = text_query(text, catalogue, None)
    assert isinstance(query, TextQuery)
    definition = OpaqueView("v", text, (), ("q",), None, query)
    return limited_view(definition, ("q",), Limitation(Outside.OPAQUE, "the test says so"))


def update_of(before: Database, after: Database) -> tuple[dict[Predicate, frozenset[Row]], Situation]:
    """The effective update between two databases."""
    sides = ((Version.DELETED, before, after), (Version.INSERTED, after, before))
    changes = {Predicate(n, side): one[n] - other[n] for side, one, other in sides for n in before}
    facts: dict[Predicate, frozenset[Row]] = {p: rows for p, rows in changes.items() if rows}
    return facts, Situation.of(facts, effective=True)


def said_and_right(text: str, schema: Catalog, before: Database, after: Database) -> tuple[bool, bool]:
    """Whether the view of a query, of which only the text is known, is said to stay as it is; whether it does."""
    facts, situation = update_of(before, after)
    catalog = with_views(schema, [as_text(text)])
    known = Decision(catalog).knowledge(MemoryEngine(), Facts(facts), situation)
    said = untouched(known, catalog.views) | unmet(known, catalog.views)
    return bool(said), bag(truth(text, before)) == bag(truth(text, after))


def some_query(choice: random.Random) -> str:
    """Some columns of a query that is made at random, or of one of many shapes."""
    if choice.random() < 0.3:
        text = Maker(choice, often=("r", "r", "s", "s", "t")).query(choice.choice([1, 2, 2, 3]))
    else:
        text = ""
        while not text or "count_true" in text or not COLUMNS.keys() >= set(names_read([text])):
            made = SHAPES[choice.choice([*SHAPES])](choice)
            text = in_duckdb(made) if isinstance(made, str) else ""
    columns = truth(text, dict.fromkeys(COLUMNS, frozenset())).column_names
    shown = choice.sample(columns, min(len(columns), choice.choice([1, 1, 2])))
    return f"select {', '.join(shown)} from ({text}) as q"


def tried(seed: int) -> tuple[bool, bool]:
    choice = random.Random(seed)
    text, schema, before = some_query(choice), choice.choice(SCHEMAS), database(choice)
    after = moved(choice, before)
    if schema is SCHEMAS[1]:
        before, after = referencing(before), referencing(after)
    return said_and_right(text, schema, before, after)


@given(st.integers(0, 2**32))
def test_what_is_said_to_stay_stays(seed: int) -> None:
    said, stays = tried(seed)
    assert stays or not said


def test_many_are_said_to_stay() -> None:
    cases = effort(60, 600)
    answers = [tried(seed) for seed in range(cases)]
    assert sum(said for said, _ in answers) > cases / 5


PUT_TOGETHER = [
    "select r.a, r.b, r.c, s.f, s.e from r left join s on r.b = s.f",
    "select r.a, r.b, r.c, s.f, s.e from r full join s on r.b = s.f",
    "select a, b, c from r where c = 1 or c > 2",
    "select a, c, 1 as k from r where c = 1 union all select a, c, 2 as k from r where c = 2",
    "select a, b, c from r where c = 1 or c is null",
    "select a, b, c from r where c in (1, 5) or (c > 1 and b is null)",
    "select a, c, 1 as k from r where c = 1 union all select a, c, 2 as k from r where c is null",
    "select b, count(*) as k, sum(c) as s, sum(c) / count(*) as m from r group by b",
    "select s.f, count(r.a) as k from s left join r on r.b = s.f group by s.f",
]
OVER_IT = [
    "select count(*) as k, median(t.y) as m from t cross join v0",
    "select median(y) as m from t where (select count(*) from v0) = 1 and x > 1",
    "select median(y) as m from t where exists (select 1 from v0)",
    "select t.x, v0.* from t left join v0 on true where t.x > 2",
]


@pytest.mark.parametrize("below", PUT_TOGETHER)
@pytest.mark.parametrize("text", OVER_IT)
def test_views_over_what_is_decided_in_parts_read_the_parts(below: str, text: str) -> None:
    """What the catalog that is decided has in place of the view are its parts; its name is none of a view there."""
    catalog = catalog_of(f"{TABLES} create view v0 as {below}; create view v as {text};").apart
    assert "v0" in catalog.unions
    said_at_times = 0
    for seed in range(effort(12, 200)):
        choice = random.Random(seed)
        before = database(choice)
        after = moved(choice, before)
        if choice.random() < 0.5:
            after = {**after, "t": frozenset((x, y + 5) if x < 3 else (x, y) for x, y in after["t"])}
        facts, situation = update_of(before, after)
        known = Decision(catalog).knowledge(MemoryEngine(), Facts(facts), situation)
        said = {*untouched(known, catalog.views), *unmet(known, catalog.views)}
        said_at_times += "v" in said
        stays = bag(truth(text, before, {"v0": below})) == bag(truth(text, after, {"v0": below}))
        assert stays or "v" not in said, seed
    assert said_at_times or "where" not in text


@pytest.mark.parametrize("test", ["P > 5", "P is null", "P = 3, not m(I, _)"])
def test_rules_that_read_a_union_behind_not_read_its_rules(test: str) -> None:
    catalog = catalog_of(
        f""".decl o(id: int not null, p: int) key(id). .decl l(n: int not null, x: int not null) key(n).
        .decl m(n: int not null, x: int not null) key(n).
        v0(I, P) :- o(I, P), P = 1. v0(I, P) :- o(I, P), {test}. v1(N) :- l(N, _), not v0(N, _)."""
    ).apart
    read = rows_read(catalog, catalog.view("v1"))
    assert read.keys() == {"l", "o", *(["m"] if "m(" in test else [])}
    assert reads(catalog)["v1"] >= {*read, "v0"}
    assert len(read["o"]) == 2


def test_a_name_that_means_nothing_may_be_anything() -> None:
    below = "select a, sum(c) as n from r group by a"
    text = "select x from t where exists (select 1 from v0)"
    catalog = catalog_of(f"{TABLES} create view v0 as {below}; create view v as {text};")
    without = replace(catalog, views=tuple(view for view in catalog.views if view.name == "v"))
    read = rows_read(without, without.view("v"))
    assert {name: [part.columns for part in parts] for name, parts in read.items()} == {
        "r": [frozenset({0, 1, 2})],
        "s": [frozenset({0, 1, 2})],
        "t": [frozenset({0, 1})],
    }


def test_what_references_other_tables_is_asked_for_its_own_columns_alone() -> None:
    catalog = catalog_of(
        """create table c (name string, city string, id int primary key);
        create table o (id int primary key, c int not null references c (id));
        create table l (o int not null references o);
        create view v as select o.id, count(*) as n from l join o on l.o = o.id group by o.id;"""
    )
    (part,) = rows_read(catalog, catalog.view("v"))["o"]
    assert {name for name, _ in part.referenced} == {"l"}


NULL_JOINS = {
    "select r.a, s.f from r join s on r.b = s.d": True,
    "select r.a, s.f from s left join r on r.b = s.d": True,
    "select a, max(c) over (partition by f) as m from r join s on r.b = s.d where e > 1": True,
    "select f, (select max(a) from r where r.b = s.d) as m from s": True,
    "select s.f from s where exists (select 1 from r where r.b < s.d)": True,
    "select r.a, s.f from r join s on r.b is not distinct from s.d": False,
    "select r.a, s.f from r left join s on r.b = s.d": False,
    "select r.a from r where r.b not in (select d from s)": False,
    "select r.a, s.f from r full join s on r.b = s.d": False,
    "select r.a, s.f from r join s on coalesce(r.b, 0) = s.d": False,
}


@pytest.mark.parametrize("text", NULL_JOINS)
def test_a_row_that_is_joined_on_null_is_not_read(text: str) -> None:
    """Both where the query is known and where only its text is; every new row of `r` has null in `b`."""
    catalog, rows = catalog_of(f"{TABLES} create view v as {text};"), [(7, None, 1), (8, None, None)]
    facts = {Predicate("r", Version.INSERTED): frozenset(rows)}
    situation = Situation.of(facts, effective=True)
    for its in (catalog, with_views(SCHEMAS[0], [as_text(text)])):
        known = Decision(its).knowledge(MemoryEngine(), Facts(facts), situation)
        assert (its.views[0].name in unmet(known, its.views)) == NULL_JOINS[text]
