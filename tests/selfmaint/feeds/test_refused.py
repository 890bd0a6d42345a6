"""Feeds that are refused or read with care, for sets of rows: tables, snapshots, order, missing keys."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import selfmaint
from selfmaint import Update
from selfmaint.api.warehouse import Warehouse, build
from selfmaint.engine.memory import MemoryEngine
from selfmaint.errors import InputError
from selfmaint.feeds.changes import Ignored
from selfmaint.feeds.settings import FeedSettings

Rows = frozenset[tuple[Any, ...]]
PROGRAM = """\
.decl r(id: int, name: string) key(id).
.decl k(id: int) key(id).
.decl u(a: int, b: string).
v(I, N) :- r(I, N).  w(A, B) :- u(A, B).  x(I) :- k(I).
"""


def warehouse(**settings: Any) -> Warehouse[Rows]:
    nothing: Rows = frozenset()
    made = build(PROGRAM, {"v": nothing, "w": nothing, "x": nothing}, MemoryEngine())
    return Warehouse(made.catalog, made.engine, made.contents, feeds=FeedSettings(**settings))


TABLES = """
create table r (id int primary key, name string); create table u (a int, b string);
create view v as select id, name from r; create view w as select a, b from u;
"""


def warehouse_of_files() -> Warehouse[Any]:
    """Tables of SQL, on an engine that reads files: without a key rows may stand twice."""
    rows = {"v": pa.table({"id": [1], "name": ["a"]}), "w": pa.table({"a": [1], "b": ["x"]})}
    return selfmaint.build(TABLES, {n: one.slice(0, 0) for n, one in rows.items()}, engine="duckdb")


def event(op: str, before: Any, after: Any, table: str | None = "r", **source: Any) -> dict[str, Any]:
    return {"op": op, "before": before, "after": after, "source": {"table": table, **source}}


def row(key: int, name: str | None = "a") -> dict[str, Any]:
    return {"id": key, "name": name}


def codes(found: Any, opened: Warehouse[Rows] | None = None, **options: Any) -> set[str]:
    with pytest.raises(InputError) as caught:
        Update.from_feed(opened or warehouse(), found, **options)
    return {d.code.value for d in caught.value.diagnostics}


def write(path: Path, *events: Any) -> Path:
    path.write_text("".join(json.dumps(e) + "\n" for e in events), encoding="utf-8")
    return path


def test_lines_order_events_without_positions(tmp_path: Path) -> None:
    feed = write(tmp_path / "f.jsonl", event("d", row(1), None), event("c", None, row(1, "b")))
    found = Update.from_feed(warehouse(), feed)
    assert (found.deleted["r"], found.inserted["r"]) == ({(1, "a")}, {(1, "b")})
    assert found.feed is not None
    assert found.feed.relations[0].upto is None
    assert codes(feed, upto=5) == {"SM603"}


def test_positions_go_before_lines(tmp_path: Path) -> None:
    events = [event("c", None, row(1, "b"), lsn=2), event("d", row(1), None, lsn=1)]
    found = Update.from_feed(warehouse(), write(tmp_path / "f.jsonl", *events))
    assert (found.deleted["r"], found.inserted["r"]) == ({(1, "a")}, {(1, "b")})


def test_a_clock_that_goes_backwards_orders_nothing(tmp_path: Path) -> None:
    events = [event("d", row(1), None, ts_ms=2), event("c", None, row(1, "b"), ts_ms=1)]
    assert codes(write(tmp_path / "f.jsonl", *events)) == {"SM603"}


def test_events_of_several_tables(tmp_path: Path) -> None:
    events = [
        event("c", None, row(1), schema="public"),
        event("c", None, {"id": 1}, "k"),
        event("c", None, row(9), "audit"),
        {"op": "m", "message": {}},
        None,
    ]
    feed = write(tmp_path / "f.jsonl", *events)
    assert codes(feed) == {"SM102"}
    assert codes({"r": feed}) == {"SM102", "SM601"}
    found = Update.from_feed(warehouse(ignored=frozenset({"audit"})), feed)
    assert found.inserted == {"r": {(1, "a")}, "k": {(1,)}}
    assert found.feed is not None
    assert found.feed.ignored == dict.fromkeys((Ignored.TABLE, Ignored.MESSAGE, Ignored.TOMBSTONE), 1)


def test_two_tables_of_one_name_are_one_only_if_it_is_said(tmp_path: Path) -> None:
    feed = write(
        tmp_path / "f.jsonl", event("c", None, row(1), schema="a"), event("c", None, row(2), schema="b")
    )
    assert codes(feed) == {"SM601"}
    found = Update.from_feed(warehouse(tables={"a.r": "r", "b.r": "r"}), feed)
    assert found.inserted["r"] == {(1, "a"), (2, "a")}


def test_snapshot_reads_are_insertions_in_an_initial_load_only(tmp_path: Path) -> None:
    feed = write(tmp_path / "f.jsonl", event("r", None, row(1), lsn=1), event("d", row(1), None, lsn=2))
    assert codes(feed) == {"SM606"}
    assert Update.from_feed(warehouse(), feed, initial_load=True).inserted["r"] == frozenset()


def test_without_a_key_rows_are_taken_to_be_unique() -> None:
    def rows(*found: tuple[str, int]) -> dict[str, Any]:
        return {"u": [{"_change_type": c, "_commit_version": v, "a": 1, "b": None} for c, v in found]}

    found = Update.from_feed(warehouse(), rows(("insert", 1), ("delete", 2), ("insert", 3)))
    assert found.inserted["u"] == {(1, None)}
    assert not found.effective
    assert Update.from_feed(warehouse(), rows(("insert", 1)), effective=True).effective
    assert codes(rows(("insert", 1), ("insert", 2))) == {"SM604"}
    assert codes(rows(("insert", 1), ("insert", 1))) == {"SM603"}
    assert codes({"u": [{"_change_type": "insert", "_commit_version": 1, "a": 1, "b": "", "c": 1}]}) == {
        "SM104"
    }
    same = [event("c", None, {"a": 1, "b": "x"}, "u", lsn=1)] * 2
    assert codes({"u": same}) == {"SM604"}, "two rows that look the same, or one event twice: not known"


def test_equal_rows_in_files_without_positions_are_refused_without_a_key(tmp_path: Path) -> None:
    """Two that come may be two rows, or one that was delivered again."""
    for folder, suffix, equal in (("two", "insert", 2), ("gone", "delete", 2), ("one", "insert", 1)):
        (tmp_path / folder).mkdir()
        rows = [{"a": 1, "b": "x"}] * equal + [{"a": 2, "b": "x"}]
        write(tmp_path / folder / f"u.{suffix}.jsonl", *rows)
    opened = warehouse_of_files()
    assert codes(tmp_path / "two", opened) == codes(tmp_path / "gone", opened) == {"SM603"}
    assert opened.engine.count(Update.from_feed(opened, tmp_path / "one").inserted["u"]) == 2
    write(tmp_path / "one" / "u.delete.jsonl", {"a": 1, "b": "x"})  # a row that is carried over
    assert opened.engine.count(Update.from_feed(opened, tmp_path / "one").inserted["u"]) == 1
    (tmp_path / "keyed").mkdir()
    write(tmp_path / "keyed" / "r.insert.jsonl", row(1), row(1))
    found = Update.from_feed(opened, tmp_path / "keyed")
    assert (opened.engine.count(found.inserted["r"]), found.feed and found.feed.relations[0].repeated) == (
        1,
        1,
    )


def test_files_may_have_columns_that_are_not_read_of_a_table_with_a_key(tmp_path: Path) -> None:
    program = "create table r (id int primary key, tags array<string>, x int); create view v as select id, x from r;"
    program += "create table u (id int, tags array<string>); create view w as select id from u;"
    rows: Any = {"v": pa.table({"id": [1], "x": [2]}), "w": pa.table({"id": [1]})}
    opened: Any = selfmaint.build(program, rows, engine="duckdb")
    write(tmp_path / "r.insert.jsonl", {"id": 9, "tags": ["q"], "x": 7})
    write(tmp_path / "r.delete.jsonl", {"id": 1, "x": 2})
    found = Update.from_feed(opened, tmp_path)
    assert opened.engine.sample(found.inserted["r"], 2) == [(9, 7)]
    write(tmp_path / "u.insert.jsonl", {"id": 9, "tags": ["q"]})
    assert codes(tmp_path, opened) == {"SM104"}


def test_an_update_without_before_image_may_have_changed_another_key() -> None:
    update = event("u", None, {"id": 1}, "k", lsn=2)
    assert codes({"k": [update]}) == {"SM605"}
    found = Update.from_feed(warehouse(), {"k": [event("c", None, {"id": 1}, "k", lsn=1), update]})
    assert found.inserted["k"] == {(1,)}
    key_only = event("d", {"id": 1}, None, "k", lsn=2)
    assert Update.from_feed(warehouse(), {"k": [key_only]}).deleted["k"] == {(1,)}


def test_a_before_image_of_nulls_is_whole_if_something_says_so() -> None:
    def feed(**more: Any) -> dict[str, Any]:
        return {"r": [event("d", {**row(1, None), **more}, None, lsn=1)]}

    assert codes(feed()) == {"SM605"}
    for found, opened in ((feed(), warehouse(full_before_images=True)), (feed(other=1), warehouse())):
        assert Update.from_feed(opened, found).deleted["r"] == {(1, None)}


def test_a_large_value_that_is_left_out() -> None:
    left_out = event("u", row(1), row(1, "__debezium_unavailable_value"), lsn=1)
    assert codes({"r": [left_out]}) == {"SM605"}


def test_every_line_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    feed = tmp_path / "f.jsonl"
    feed.write_bytes(b'{"op"\n\n\xff\n[1]\n"x"\n' + json.dumps(event("c", None, row(1))).encode()[:-9])
    with pytest.raises(InputError) as caught:
        Update.from_feed(warehouse(), feed)
    places = [(d.code.value, d.span.line) for d in caught.value.diagnostics if d.span is not None]
    assert places == [("SM602", 1), ("SM602", 3), ("SM601", 4), ("SM601", 5), ("SM602", 6)]


def test_compressed_lines_and_those_cut_off(tmp_path: Path) -> None:
    whole = gzip.compress(json.dumps(event("c", None, row(1))).encode())
    feed = tmp_path / "f.jsonl.gz"
    feed.write_bytes(whole)
    assert Update.from_feed(warehouse(), feed).inserted["r"] == {(1, "a")}
    feed.write_bytes(whole[:-12])
    assert codes(feed) == {"SM602"}


@pytest.mark.parametrize(
    ("options", "code"),
    [({"format": "avro"}, "SM601"), ({"after": "x"}, "SM603"), ({"format": "delta"}, "SM601")],
)
def test_options_that_do_not_fit(options: dict[str, Any], code: str) -> None:
    assert codes({"r": [event("c", None, row(1), lsn=1)]}, **options) == {code}


def test_a_relation_without_declared_columns(tmp_path: Path) -> None:
    nothing: Rows = frozenset()
    for program in ("v(X) :- r(X).", ".decl r(a).  v(X) :- r(X)."):
        made = build(program, {"v": nothing}, MemoryEngine())
        feed = write(tmp_path / "f.jsonl", event("c", None, {"a": 1}))
        assert codes(feed, made) == {"SM104"}
        assert codes({"r": feed}, made) == {"SM104"}


def test_an_unknown_relation() -> None:
    assert codes({"rr": []}) == {"SM102"}
    assert codes([], warehouse(tables={"t": "rr"})) == {"SM102"}
