"""A shop in PostgreSQL whose log a warehouse follows. Oracle: the views' own SQL, run by PostgreSQL."""

from __future__ import annotations

import json
import math
import os
import random
import re
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

import selfmaint
from selfmaint.errors import SelfmaintError
from tests.command_line import Ran, run
from tests.forked import forked

TABLES = """
create table customer (id int not null primary key, region string not null);
create table sale (
    id bigint not null primary key, customer int not null references customer (id), amount int,
    price decimal(12, 2) not null, sold timestamp, paid boolean, weight double, day date, note string
);
"""
VIEWS = {
    "lines": """select s.id, s.amount, s.price, s.sold, s.paid, s.weight, s.day, s.note, c.id as customer, c.region
        from sale s join customer c on c.id = s.customer""",
    "totals": """select c.region, count(*) as n, count(s.amount) as m, sum(s.amount) as total, sum(s.price) as value
        from sale s join customer c on c.id = s.customer group by c.region""",
    "regions": "select c.region from sale s join customer c on c.id = s.customer",
    "customers": "select id, region from customer",
}
HARD = {
    "lines": VIEWS["lines"],
    "cheapest": """select c.region, min(s.price) as least, max(s.amount) as most
        from sale s join customer c on c.id = s.customer group by c.region""",
}
"""Without `customers`: what a new sale's customer is must be looked up."""
WAREHOUSE = """
program = "views.sql"
[store]
kind = "{kind}"
path = "lake"
[sources.shop]
kind = "postgres"
url_env = "SELFMAINT_TEST_SHOP"
[relations.customer]
source = "shop"
table = "shop.customer"
[relations.sale]
source = "shop"
table = "shop.sale"
[follow]
source = "shop"
slot = "{slot}"
publication = "changes"
"""
SCHEMA = """
create schema shop;
create table shop.customer (id int primary key, region text not null, remark text);
create table shop.sale (
    id bigint primary key, customer int not null references shop.customer, amount int, price numeric(12, 2) not null,
    sold timestamptz, paid boolean, weight float8, day date, note text, extra bytea, kind smallint
);
create table shop.other (id int primary key);
alter table shop.customer replica identity full;
alter table shop.sale replica identity full;
alter table shop.other replica identity full;
insert into shop.customer values (1, 'north'), (2, 'south'), (3, 'north'), (4, 'east');
insert into shop.sale values
    (1, 1, 10, 2.50, '2026-01-01 12:00+01', true, 0.1, '2026-01-02', 'a', '\\x00ff', 1),
    (2, 1, null, 2.5, null, null, 'NaN', null, null, null, 2),
    (3, 2, 5, 100, now(), false, -1e300, '0001-01-01', '', null, 3);
"""
Rows = Counter[tuple[Any, ...]]
Views = dict[str, Rows]


class LoggedShop:
    """A shop in a database of its own, and a warehouse that follows it."""

    def __init__(self, folder: Path, url: str, views: dict[str, str], kind: str = "lake") -> None:
        self.folder, self.url, self.views = folder, url, views
        self.toml = folder / "warehouse.toml"
        self.slot = f"shop_{uuid.uuid4().hex[:12]}"
        self.connection = psycopg.connect(url, autocommit=True)
        self.connection.execute("set timezone = 'UTC'")
        self.connection.execute(SCHEMA)
        text = TABLES + "".join(f"create view {name} as {query};\n" for name, query in views.items())
        (folder / "views.sql").write_text(text, encoding="utf-8")
        self.toml.write_text(WAREHOUSE.format(slot=self.slot, kind=kind), encoding="utf-8")

    def made(self) -> LoggedShop:
        """With its slot and its lake."""
        assert run("follow", str(self.toml), "--create").status == 0
        ran = run("init", str(self.toml))
        assert ran.status == 0, ran.stderr
        return self

    def execute(self, *statements: str) -> None:
        """Runs statements, together as one transaction."""
        with self.connection.transaction():
            for statement in statements:
                self.connection.execute(statement)

    def expected(self, connection: Any = None) -> Views:
        """The views as PostgreSQL computes them."""
        connection = connection or self.connection
        found = {}
        with connection.transaction():
            connection.execute("set local search_path = shop")
            for name, query in self.views.items():
                found[name] = Counter(map(plain, connection.execute(query).fetchall()))
        return found

    def stored(self, as_of: int | None = None) -> Views:
        """The views as the lake has them."""
        with selfmaint.load(self.toml, engine="duckdb", as_of=as_of) as warehouse:
            found = {}
            for view in warehouse.catalog.views:
                rows = warehouse.contents[view.name].arrow().to_pylist()
                every: Rows = Counter()
                for row in rows:
                    values = list(row.values())
                    copies = values.pop() if view.is_counted else 1
                    every[plain(values)] += copies
                found[view.name] = every
            return found

    def follow(self, *arguments: str) -> Ran:
        """Runs the command in this process."""
        return run("follow", str(self.toml), *arguments)

    def steps(self, *arguments: str) -> list[dict[str, Any]]:
        """What the steps of the command said."""
        ran = self.follow("--once", "--format", "json", *arguments)
        assert ran.status == 0, ran.stderr
        return [json.loads(line) for line in ran.stdout.splitlines()]

    def confirmed(self) -> int:
        query = "select confirmed_flush_lsn - '0/0' from pg_replication_slots where slot_name = %s"
        row = self.connection.execute(query, [self.slot]).fetchone()
        assert row is not None
        return int(row[0])

    def close(self) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(
                "select pg_terminate_backend(active_pid) from pg_replication_slots where slot_name = %s and active",
                [self.slot],
            )
            connection.execute(
                "select pg_drop_replication_slot(slot_name) from pg_replication_slots "
                "where database = current_database()"
            )
        self.connection.close()


def plain(row: Any) -> tuple[Any, ...]:
    """A row whose values compare by what they are: NaN equals NaN."""
    return tuple("NaN" if isinstance(v, float) and v != v else v for v in row)  # noqa: PLR0124


@contextmanager
def logged_shop(
    folder: Path, server: str, views: dict[str, str] | None = None, kind: str = "lake"
) -> Iterator[LoggedShop]:
    """A shop in a new database of a server."""
    name = f"shop_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"create database {name}")
    url = make_conninfo(server, dbname=name)
    before = os.environ.get("SELFMAINT_TEST_SHOP")
    os.environ["SELFMAINT_TEST_SHOP"] = url
    shop = LoggedShop(folder, url, views or VIEWS, kind)
    try:
        yield shop
    finally:
        shop.close()
        if before is not None:
            os.environ["SELFMAINT_TEST_SHOP"] = before
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f"drop database {name} with (force)")


class Writer:
    """Random transactions that keep the constraints, through a connection of its own."""

    def __init__(self, shop: LoggedShop, seed: int) -> None:
        self.random = random.Random(seed)
        self.connection = psycopg.connect(shop.url, autocommit=True)
        self.next_id = 100 + seed * 1_000_000

    def transaction(self) -> None:
        """One transaction of one to four statements; now and then one that is rolled back."""
        chance = self.random
        with self.connection.transaction() as transaction:
            for _ in range(chance.randint(1, 4)):
                self._statement()
            if chance.random() < 0.1:
                raise psycopg.Rollback(transaction)

    def _statement(self) -> None:
        chance, run_ = self.random, self.connection.execute
        what = chance.random()
        customers = "(select id from shop.customer order by random() limit 1)"
        if what < 0.35:
            self.next_id += 1
            values = [
                self.next_id,
                chance.choice([None, chance.randint(-9, 9)]),
                chance.randint(0, 10_000) / 100,
                chance.choice([None, "2026-07-01 01:02:03.456789+02", "1999-12-31 23:59:59Z"]),
                chance.choice([None, True, False]),
                chance.choice([None, 0.1, -0.0, 1e-300, 12345.678, math.nan]),
                chance.choice([None, "2024-02-29"]),
                chance.choice([None, "", "ä'\\\"", "x" * 5000, "two\nlines"]),
            ]
            run_(
                f"insert into shop.sale values (%s, {customers}, %s, %s, %s, %s, %s, %s, %s, '\\x01', 1)",
                values,
            )
        elif what < 0.6:
            run_(
                "update shop.sale set amount = coalesce(amount, 0) + %s, customer = "
                + customers
                + " where id in "
                "(select id from shop.sale order by random() limit 2)",
                [chance.randint(-3, 3)],
            )
        elif what < 0.7:
            run_(
                "update shop.sale set kind = kind + 1 where id in (select id from shop.sale order by random() limit 1)"
            )
        elif what < 0.85:
            run_("delete from shop.sale where id in (select id from shop.sale order by random() limit 1)")
        elif what < 0.93:
            run_(
                "update shop.customer set region = %s where id = " + customers,
                [chance.choice(["north", "south", "east", "west"])],
            )
        elif what < 0.97:
            self.next_id += 1
            run_(
                "insert into shop.customer values (%s, %s)",
                [self.next_id % 2**31, chance.choice(["north", "west"])],
            )
        else:
            run_(
                "delete from shop.customer c where id = (select id from shop.customer c where not exists "
                "(select from shop.sale s where s.customer = c.id) order by random() limit 1)"
            )

    def close(self) -> None:
        self.connection.close()


POINTS = ("reading", "read", "commit", "committed", "advance", "advanced", "compact")
"""Where the command is killed, see `KILLER`."""

KILLER = """
import os, signal, sys
from selfmaint.api.log import follower
from selfmaint.duckdb import delta, lake
from selfmaint.postgres import log

point, at = sys.argv[1], int(sys.argv[2])
sys.argv = ["selfmaint", *sys.argv[3:]]
seen = 0

def dying(owner, name, before):
    made = getattr(owner, name)
    def replaced(*given, **named):
        global seen
        seen += 1
        if before and seen == at:
            os.kill(os.getpid(), signal.SIGKILL)
        found = made(*given, **named)
        if not before and seen == at:
            os.kill(os.getpid(), signal.SIGKILL)
        return found
    setattr(owner, name, replaced)

POINTS = {
    "reading": (log.ServerLog, "state", True),
    "read": (follower.Follower, "_net_effect", False),
    "commit": (lake.Lake, "commit", True),
    "committed": (lake.Lake, "commit", False),
    "advance": (log.ServerLog, "advance", True),
    "advanced": (log.ServerLog, "advance", False),
    "compact": (lake.Lake, "compact", True),
    "merged": (delta.DeltaTables, "_merge", False),
    "journal": (delta.DeltaJournal, "append", True),
}
if point == "compact":
    lake.MOST_FILES = 2
if point == "statement":
    from selfmaint.duckdb.database import Database
    POINTS["statement"] = (Database, "run", True)
dying(*POINTS[point])
from selfmaint.cli import main
main()
"""


def killed(shop: LoggedShop, point: str, at: int, *arguments: str) -> int:
    """The exit status of the real command, which is killed at the `at`-th time that it is at a point."""
    done = forked(KILLER, point, at, "follow", shop.toml, *arguments)
    assert done.status <= 0, done.said
    return done.status


def codes(ran: Ran) -> set[str]:
    """The codes of what a command refused."""
    assert ran.status == 2, ran.stdout + ran.stderr
    return set(re.findall(r"error\[(SM\d+)\]", ran.stderr))


__all__ = ["HARD", "LoggedShop", "SelfmaintError", "Writer", "codes", "killed", "logged_shop"]
