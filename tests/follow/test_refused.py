"""What a log does not say, or says of something else: refused with what to do, and nothing is skipped."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import selfmaint
from datalog.copies import replace
from selfmaint.api.file.warehouse_file import read_warehouse_file
from selfmaint.api.log.follower import Follower, FollowOptions
from selfmaint.api.log.log_source import log_of
from selfmaint.errors import SourceError
from selfmaint.postgres.pgoutput import message
from selfmaint.store.log_position import LogPosition, Snapshot
from tests.command_line import run
from tests.follow.shops import LoggedShop, codes

pytestmark = pytest.mark.usefixtures("postgres")

CHANGE = "update shop.sale set amount = 1 where id = 1"


def refused(shop: LoggedShop, code: str, *said: str) -> None:
    """Following is refused, and again, and the views are as they were."""
    before = shop.stored()
    for _ in range(2):
        ran = shop.follow("--once")
        assert codes(ran) == {code}, ran.stderr
        for words in said:
            assert words in ran.stderr, ran.stderr
    assert shop.stored() == before


def healed(shop: LoggedShop) -> None:
    """After all views are brought in anew it goes on."""
    ran = run("import", str(shop.toml))
    assert ran.status == 0, ran.stderr
    shop.execute(CHANGE)
    assert shop.follow("--once").status == 0
    assert shop.stored() == shop.expected()


def test_tables_whose_old_rows_are_not_logged_are_named_with_the_statement(shop: LoggedShop) -> None:
    shop.execute("alter table shop.sale replica identity default")
    ran = run("follow", str(shop.toml), "--create")
    assert codes(ran) == {"SM605"}
    assert 'ALTER TABLE "shop"."sale" REPLICA IDENTITY FULL;' in ran.stderr
    shop.execute("alter table shop.sale replica identity full")
    shop.made()
    shop.execute("alter table shop.sale replica identity default")
    shop.execute(CHANGE)
    refused(shop, "SM605", 'ALTER TABLE "shop"."sale" REPLICA IDENTITY FULL')
    shop.execute("alter table shop.sale replica identity full")
    refused(shop, "SM605", "at log sequence number", "shop.sale", "REPLICA IDENTITY FULL")
    healed(shop)


def test_generated_columns_are_published_or_refused_before_the_source_is_touched(shop: LoggedShop) -> None:
    shop.execute("alter table shop.sale add column twice int generated always as (amount * 2) stored")
    shop.made()
    shop.execute(CHANGE)
    assert shop.follow("--once").status == 0
    assert shop.stored() == shop.expected()
    shop.execute("alter publication changes set (publish_generated_columns = none)")
    refused(
        shop,
        "SM608",
        "leaves columns of `shop.sale` out: twice",
        "publish_generated_columns = stored",
    )
    shop.execute("alter publication changes set (publish_generated_columns = stored)")
    shop.execute(CHANGE)
    assert shop.follow("--once").status == 0
    shop.execute("drop publication changes")
    shop.execute("alter table shop.customer add column loud text generated always as (upper(region)) virtual")
    ran = run("follow", str(shop.toml), "--create")
    assert codes(ran) == {"SM608"}
    assert "`loud` of `customer` is generated when it is read" in ran.stderr
    shop.execute("update shop.customer set region = 'west' where id = 4")


@pytest.mark.parametrize(
    ("kind", "said"),
    [("char(9)", "may be filled up with blanks"), ("shop.area", "may be renamed without a word of it")],
)
def test_texts_that_may_become_others_past_the_log_are_not_followed(
    shop: LoggedShop, kind: str, said: str
) -> None:
    values = "select string_agg(distinct quote_literal(region), ',') from shop.customer"
    shop.execute(
        f"do $$ begin execute 'create type shop.area as enum (' || ({values}) || ')'; end $$",
        f"alter table shop.customer alter region type {kind} using region::{kind}",
    )
    ran = run("follow", str(shop.toml), "--create")
    assert codes(ran) == {"SM608"}
    assert "`region` of `customer`" in ran.stderr
    assert said in ran.stderr


@pytest.mark.parametrize(
    ("statements", "code", "said"),
    [
        (["truncate shop.sale"], "SM606", "at log sequence number"),
        (
            ["alter table shop.sale rename amount to quantity", "insert into shop.sale values (9, 1, 1, 1)"],
            "SM104",
            "`amount`",
        ),
        (
            ["alter table shop.sale alter amount type bigint using amount * 2", "delete from shop.sale"],
            "SM104",
            "`amount`",
        ),
        (["alter table shop.sale alter amount type int using amount * 2"], "SM608", "has other values"),
        (["alter table shop.sale drop amount", "alter table shop.sale add amount int"], "SM608", "made anew"),
        (
            [
                "alter table shop.sale rename amount to a",
                "alter table shop.sale rename kind to amount",
                "alter table shop.sale rename a to kind",
                CHANGE,
            ],
            "SM608",
            "`sale`",
        ),
        (
            ["alter table shop.sale alter price type numeric(11, 1)", "delete from shop.sale"],
            "SM608",
            "columns of other types",
        ),
    ],
)
def test_what_cannot_be_followed_is_refused_until_the_views_are_made_anew(
    shop: LoggedShop, statements: list[str], code: str, said: str
) -> None:
    shop.made()
    for statement in statements:
        shop.execute(statement)
    refused(shop, code, said)
    if len(statements) > 3:
        shop.execute(
            "alter table shop.sale rename amount to a", "alter table shop.sale rename kind to amount"
        )
        shop.execute("alter table shop.sale rename a to kind")
    elif "rename" in statements[0]:
        shop.execute("alter table shop.sale rename quantity to amount")
        refused(shop, "SM104", "at log sequence number", "has no column `amount` any more")
    if "bigint" in statements[0]:
        shop.execute("alter table shop.sale alter amount type int")
        refused(shop, "SM608", "has other values, or columns made anew")
    if "truncate" in statements[0]:
        shop.execute("insert into shop.sale values (1, 1, 1, 1)")
    healed(shop)


def test_what_leaves_the_values_as_they_are_does_not_stop_it(shop: LoggedShop) -> None:
    shop.made()
    for statement in ("vacuum full shop.sale", CHANGE, "alter table shop.sale alter note set statistics 10"):
        shop.connection.execute(statement)
        assert shop.follow("--once").status == 0
        assert shop.follow("--once").status == 0
    shop.execute("alter table shop.sale alter note set storage external", CHANGE)
    assert shop.follow("--once").status == 0
    assert shop.stored() == shop.expected()


@pytest.mark.parametrize("statement", ["partition by list (id)", "inherits"])
def test_tables_with_parts_are_refused(shop: LoggedShop, statement: str) -> None:
    if statement == "inherits":
        shop.execute("create table shop.more () inherits (shop.customer)")
    else:
        shop.execute(
            "drop table shop.sale",
            "drop table shop.customer",
            f"create table shop.customer (id int primary key, region text not null) {statement}",
            "create table shop.sale (like shop.customer)",
        )
    ran = run("follow", str(shop.toml), "--create")
    assert ran.status == 2
    assert "has partitions, or others that inherit from it" in ran.stderr


def test_columns_that_no_view_needs_may_come_and_go(shop: LoggedShop) -> None:
    shop.made()
    shop.execute(CHANGE)
    shop.execute("alter table shop.sale drop kind", "alter table shop.sale add surprise int default 5")
    shop.execute("update shop.sale set surprise = 6, amount = 8")
    assert shop.follow("--once").status == 0
    assert shop.stored() == shop.expected()


def test_a_large_value_that_an_update_leaves_is_taken_from_the_old_row(shop: LoggedShop) -> None:
    shop.made()
    large = "(select string_agg(md5(g::text), '') from generate_series(1, 2000) g)"
    shop.execute(f"insert into shop.sale values (20, 1, 1, 1, null, null, null, null, {large}, null, 1)")
    shop.execute("update shop.sale set amount = 2 where id = 20")
    shop.execute("update shop.sale set kind = 2 where id = 20")
    assert shop.follow("--once").status == 0
    assert shop.stored() == shop.expected()


def drop_and_make(shop: LoggedShop) -> None:
    shop.execute(
        "create table shop.anew (like shop.sale including all)",
        "drop table shop.sale",
        "alter table shop.anew rename to sale",
        "alter table shop.sale replica identity full",
    )


def test_another_table_of_the_same_name_is_not_followed(shop: LoggedShop) -> None:
    shop.made()
    drop_and_make(shop)
    refused(shop, "SM608", "the publication `changes` has no table `shop.sale`", "ALTER PUBLICATION")
    shop.execute("alter publication changes add table shop.sale")
    refused(shop, "SM608", "another one of the same name", "selfmaint import")
    shop.execute("insert into shop.sale values (1, 1, 1, 1)")
    refused(shop, "SM608", "another one of the same name")
    healed(shop)


def test_a_table_that_is_renamed_and_named_back_is_followed(shop: LoggedShop) -> None:
    shop.made()
    shop.execute("alter table shop.sale rename to old_sale", "update shop.old_sale set amount = 4")
    shop.execute("alter table shop.old_sale rename to sale")
    assert shop.follow("--once").status == 0
    assert shop.stored() == shop.expected()


@pytest.mark.parametrize("how", ["gone", "anew", "moved", "other plugin"])
def test_a_slot_that_does_not_have_what_comes_next_is_refused(shop: LoggedShop, how: str) -> None:
    shop.made()
    shop.execute(CHANGE)
    said = {"gone": "there is no replication slot", "other plugin": "is no slot of `pgoutput`"}
    if how == "moved":
        shop.execute(f"select pg_replication_slot_advance('{shop.slot}', pg_current_wal_flush_lsn())")
    else:
        shop.execute(f"select pg_drop_replication_slot('{shop.slot}')")
    if how == "anew":
        assert run("follow", str(shop.toml), "--create").status == 0
    if how == "other plugin":
        shop.execute(f"select pg_create_physical_replication_slot('{shop.slot}')")
    refused(shop, "SM608", said.get(how, "has let go of the log"))
    if how == "other plugin":
        shop.execute(f"select pg_drop_replication_slot('{shop.slot}')")
    assert run("follow", str(shop.toml), "--create").status == 0
    healed(shop)


@pytest.mark.parametrize(
    "statement",
    [
        "drop publication changes",
        "alter publication changes drop table shop.sale",
        "alter publication changes set (publish = 'insert, update, delete')",
        "alter publication changes set table shop.customer, shop.sale where (id > 1)",
    ],
)
def test_a_publication_that_leaves_something_out_is_refused(shop: LoggedShop, statement: str) -> None:
    shop.made()
    shop.execute(statement)
    refused(shop, "SM608", "publication `changes`")


def test_without_a_publication_or_slot_the_statements_are_told(shop: LoggedShop) -> None:
    ran = run("init", str(shop.toml))
    assert codes(ran) == {"SM608"}
    assert 'CREATE PUBLICATION "changes" FOR TABLE "shop"."customer", "shop"."sale"' in ran.stderr
    shop.execute("create publication changes for table shop.customer, shop.sale")
    ran = run("init", str(shop.toml))
    assert codes(ran) == {"SM608"}
    assert f"pg_create_logical_replication_slot('{shop.slot}', 'pgoutput')" in ran.stderr


def test_who_may_not_make_them_is_told_what_to_have_run(
    shop: LoggedShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"reader_{shop.slot}"
    shop.execute(f"create role {name} login", f"grant usage on schema shop to {name}")
    try:
        monkeypatch.setenv(
            "SELFMAINT_TEST_SHOP",
            shop.url.replace("postgres:", f"{name}:", 1).replace("user=postgres", f"user={name}"),
        )
        ran = run("follow", str(shop.toml), "--create")
        assert codes(ran) == {"SM608"}
        assert "have an owner run: CREATE PUBLICATION" in ran.stderr
    finally:
        shop.execute(f"drop owned by {name}", f"drop role {name}")


def test_views_at_no_place_of_the_log_do_not_follow_it(shop: LoggedShop) -> None:
    text = shop.toml.read_text(encoding="utf-8")
    shop.toml.write_text(text.partition("[follow]")[0], encoding="utf-8")
    assert run("init", str(shop.toml)).status == 0
    shop.toml.write_text(text, encoding="utf-8")
    assert run("follow", str(shop.toml), "--create").status == 0
    refused(shop, "SM608", "at which place of the log")
    healed(shop)
    shop.toml.write_text(text.partition("[follow]")[0], encoding="utf-8")
    assert codes(run("import", str(shop.toml))) == {"SM608"}
    assert codes(shop.follow()) == {"SM101"}


def test_what_would_put_views_at_different_places_is_refused(shop: LoggedShop) -> None:
    shop.made()
    before = shop.stored()
    assert codes(run("import", str(shop.toml), "--view", "lines")) == {"SM608"}
    rows = shop.folder / "customers.csv"
    rows.write_text("id,region\n1,north\n", encoding="utf-8")
    assert codes(run("import", str(shop.toml), "--from", f"customers={rows}")) == {"SM608"}
    update = shop.folder / "customer.csv"
    update.write_text("id,region\n77,west\n", encoding="utf-8")
    ran = run("maintain", str(shop.toml), "--insert", f"customer={update}", "--effective", "--strict")
    assert codes(ran) == {"SM608"}
    assert shop.stored() == before


def test_after_undo_the_views_are_behind_the_slot(shop: LoggedShop) -> None:
    shop.made()
    shop.execute(CHANGE)
    assert shop.follow("--once").status == 0
    assert run("undo", str(shop.toml)).status == 0
    refused(shop, "SM608", "has let go of the log")
    healed(shop)


def test_another_server_or_an_earlier_state_of_it_is_refused(shop: LoggedShop) -> None:
    shop.made()
    file = read_warehouse_file(shop.toml)
    with selfmaint.load(shop.toml, engine="duckdb") as warehouse:
        log = log_of(file)
        follower = Follower(file, warehouse, log, FollowOptions())
        state = log.state()
        for wrong, said in (
            (replace(state, system="1"), "another server"),
            (replace(state, end=1, confirmed=1), "put back to an earlier state"),
        ):
            with pytest.raises(SourceError, match="SM608") as caught:
                follower._require_followable(wrong)
            assert said in str([(d.message, d.note) for d in caught.value.diagnostics])
        log.close()


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda text: text.replace('source = "shop"\nslot', 'source = "nowhere"\nslot'), "SM101"),
        (lambda text: text.replace('[follow]\nsource = "shop"', "[follow]"), "SM101"),
        (lambda text: text.replace('publication = "changes"', 'publikation = "changes"'), "SM101"),
        (lambda text: text.replace('kind = "lake"\npath = "lake"', 'kind = "files"'), "SM101"),
        (lambda text: text.replace('[relations.sale]\nsource = "shop"\ntable = "shop.sale"', ""), "SM101"),
        (lambda text: text.replace('table = "shop.sale"', 'table = "shop.sail"'), "SM103"),
    ],
)
def test_what_the_warehouse_file_says_of_the_log_is_checked(
    shop: LoggedShop, change: Callable[[str], str], code: str
) -> None:
    shop.toml.write_text(change(shop.toml.read_text(encoding="utf-8")), encoding="utf-8")
    assert code in codes(run("follow", str(shop.toml), "--create"))


def test_a_password_is_never_shown(shop: LoggedShop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("selfmaint.api.log.follow.PAUSES_S", (0.01,))
    monkeypatch.setenv("SELFMAINT_TEST_SHOP", "postgresql://ann:s3cr3t@127.0.0.1:1/shop")
    for arguments in (["--create"], ["--once"]):
        ran = run("follow", str(shop.toml), *arguments)
        assert codes(ran) == {"SM401"}
        assert "s3cr3t" not in ran.stdout + ran.stderr
        assert "database `shop` on `127.0.0.1:1` as `ann`" in ran.stderr


def test_damaged_messages_are_no_messages() -> None:
    whole = b"U" + b"\0\0\x40\0" + b"O\0\x02t\0\0\0\x011n" + b"N\0\x02t\0\0\0\x012u"
    found = message(whole)
    assert repr(found).count("UNCHANGED") == 1
    for end in range(len(whole)):
        with pytest.raises(ValueError, match=r"cut off|unknown kind|damaged|not found"):
            message(whole[:end])
    for wrong in (
        b"?",
        b"U\0\0\x40\0X",
        b"I\0\0\x40\0N\0\1x",
        b"I\0\0\x40\0N\0\1t\0\0\0\1\xff",
        b"R\0\0\x40\0ab",
    ):
        with pytest.raises(ValueError, match=r"."):
            message(wrong)


def test_a_position_comes_back_from_its_text() -> None:
    position = LogPosition(
        "7", "s", 5 << 32, Snapshot.parse("10:20:11,12"), 6 << 32, (12,), {"sale": "1 id:20"}
    )
    assert LogPosition.read(position.entry()) == position
    assert [position.has((5 << 32) + 1, xid) for xid in (9, 11, 13, 25)] == [True, False, True, False]
    assert not position.has(7 << 32, 9)
    assert position.after((5 << 32) + 9, ()).snapshot is not None
    assert position.after(6 << 32, ()).snapshot is None
    assert LogPosition.read(position.after(6 << 32, ()).entry()) == position.after(6 << 32, ())
