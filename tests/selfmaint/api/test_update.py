"""An update's directory, columns and their families, costs, and sources that are opened late."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import selfmaint
from datalog.model import ColumnType, TypeName
from datalog.syntax import parse_program
from selfmaint.api.columns import columns_of
from selfmaint.api.families import of_views
from selfmaint.api.update import Update
from selfmaint.api.update_rows import update_files
from selfmaint.api.warehouse import Warehouse, build
from selfmaint.cli.inputs import split_assignment
from selfmaint.engine.memory import MemoryEngine
from selfmaint.errors import Code, InputError
from selfmaint.fallback.settle import LazyCosts, Readable
from selfmaint.sources.memory import RowsSource
from selfmaint.sources.protocol import LazySource
from selfmaint.warehouse.catalog import Catalog, catalog

RELATIONS = {"orders": None, "a.b": None}


def folder(path: Path, *names: str) -> Path:
    for name in names:
        (path / name).touch()
    return path


def test_files_are_named_after_relation_and_part(tmp_path: Path) -> None:
    (tmp_path / "orders.insert.parquet").mkdir()
    found = update_files(
        folder(tmp_path, "orders.delete.csv", "a.b.insert.jsonl", "_SUCCESS", ".x"), RELATIONS
    )
    assert [(p.relation, p.part, p.path.name) for p in found] == [
        ("a.b", "insert", "a.b.insert.jsonl"),
        ("orders", "delete", "orders.delete.csv"),
        ("orders", "insert", "orders.insert.parquet"),
    ]


def test_every_wrong_file_is_reported(tmp_path: Path) -> None:
    names = ("orders.inserted.csv", "orders.insert.txt", "order.insert.csv", "notes", "orders.insert.csv")
    with pytest.raises(InputError) as caught:
        update_files(folder(tmp_path, *names, "orders.insert.parquet"), RELATIONS)
    assert sorted(d.code.value for d in caught.value.diagnostics) == ["SM101"] * 4 + ["SM102"]
    (misspelt,) = [d for d in caught.value.diagnostics if d.code is Code.UNKNOWN_RELATION]
    assert misspelt.hint == "a base relation `orders` exists"


def test_an_empty_directory_is_an_update_that_changes_nothing(tmp_path: Path) -> None:
    assert update_files(tmp_path, RELATIONS) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("r=x.csv", ("r", "x.csv")),
        ("a=b=c", ("a=b", "c")),
        ("z=b=c", ("z", "b=c")),
        ("r=/a=b/c", ("r", "/a=b/c")),
    ],
)
def test_assignments(text: str, expected: tuple[str, str]) -> None:
    name, path = split_assignment(text, {"r": None, "a": None, "a=b": None}, "--insert")
    assert (name, str(path)) == expected


# --------------------------------------------------------------------------------------- columns, families


def schema(text: str) -> Catalog:
    return catalog(parse_program(text))


def test_columns_are_those_declared_or_inferred() -> None:
    found = columns_of(
        schema(
            ".decl r(id: int, name: string).  .decl w(n, id).\n"
            "v(X, Y, 'a', 1, null) :- r(X, Y).  w(Y, X) :- r(X, Y)."
        )
    )
    assert {c.name: (c.names, [str(t) for t in c.types], c.declared) for c in found.values()} == {
        "r": (("id", "name"), ["int", "string"], True),
        "v": (("x", "y", "c2", "c3", "c4"), ["int", "string", "string", "any", "any"], False),
        "w": (("n", "id"), ["string", "int"], True),
    }


def stored(types: Sequence[str]) -> tuple[ColumnType, ...]:
    return tuple(ColumnType(TypeName(name)) for name in types)


@pytest.mark.parametrize(
    ("program", "views", "rows", "column"),
    [
        ("v(X) :- r(X).  w(X) :- r(X), s(X).", {"v": ["int"], "w": ["string"]}, {}, "`c0` of `r`"),
        ("v(X) :- r(X).", {"v": ["int"]}, {"r": ["string"]}, "`c0` of `r`"),
        ("v(X) :- r(X, 'a').", {"v": ["any"]}, {"r": ["int", "int"]}, "`c1` of `r`"),
        (".decl r(a: date).  v(X) :- r(X).", {"v": ["int"]}, {}, "`a` of `r`"),
        ("v(X, Y) :- r(X), s(X, Y).", {"v": ["date", "any"]}, {"s": ["timestamp", "any"]}, "`c0` of `s`"),
    ],
)
def test_families_that_never_meet_are_refused(
    program: str, views: dict[str, Sequence[str]], rows: dict[str, Sequence[str]], column: str
) -> None:
    found = of_views(schema(program), {name: stored(types) for name, types in views.items()})
    for relation, types in rows.items():
        found.add_rows(relation, stored(types), "the update")
    assert any(d.message.startswith(f"column {column} is a ") for d in found.problems)


def test_families_that_agree_are_taken() -> None:
    found = of_views(
        schema("v(X, Y) :- r(X), s(X, Y).  w(Y) :- t(Y, 1)."),
        {"v": stored(["date", "any"]), "w": stored(["any"])},
    )
    found.add_rows("s", stored(["date", "string"]), "the update")
    found.add_rows("t", stored(["string", "int"]), "the update")
    assert found.problems == []


def test_a_view_over_a_union_says_nothing_of_the_relations() -> None:
    found = of_views(
        schema("v(X) :- u(X).  u(X) :- r(X).  u(X) :- s(X)."), {"v": stored(["int"]), "u": stored(["int"])}
    )
    assert found.problems == []


# ------------------------------------------------------------------------------------------ costs, sources


def source() -> RowsSource:
    return RowsSource("here", {"r": (("c0",), frozenset({(i,) for i in range(9)}))})


def test_costs_are_asked_for_when_they_matter_and_once() -> None:
    asked = []

    def ask() -> float:
        asked.append("r")
        return 2.0

    costs = LazyCosts({"r": ask})
    assert "r" in costs
    assert len(costs) == 1
    assert asked == []
    assert (costs["r"], costs["r"]) == (2.0, 2.0)
    assert asked == ["r"]


def test_a_cost_is_that_given_or_follows_the_number_of_rows() -> None:
    assert Readable(source(), 7.5).cost_of("r") == 7.5
    assert Readable(source()).cost_of("r") == 2.0


def test_a_source_is_opened_when_it_is_read_and_closed_with_the_warehouse() -> None:
    made: list[str] = []
    closed: list[str] = []

    class Closing(RowsSource):
        def close(self) -> None:
            closed.append(self.name)

    def connect() -> Closing:
        made.append("ops")
        return Closing("ops", {"r": (("c0",), frozenset({(1,)}))})

    lazy = LazySource("ops", connect)
    rows = {"v": frozenset[tuple[int]]()}
    warehouse: Warehouse[frozenset[tuple[int, ...]]] = build(
        "v(X) :- r(X).", rows, MemoryEngine(), readable={"r": Readable(lazy)}
    )
    with warehouse:
        assert lazy.name == "ops"
        assert not made
        assert lazy.row_count("r") == 1
        assert made == ["ops"]
    assert closed == ["ops"]
    warehouse.close()
    assert closed == ["ops"]


def test_an_update_without_files_needs_no_spark() -> None:
    assert Update[frozenset[tuple[int]]]().inserted == {}


def test_an_extremum_has_the_type_of_one_of_the_columns_that_are_joined() -> None:
    program = """create table h (k bigint primary key);
    create table o (id int primary key, g decimal(6, 2) not null);
    create view v as select o.id, min(h.k) as k, count(*) as n from o join h on o.g = h.k group by o.id;"""
    view = pa.table(
        {"id": pa.array([], pa.int32()), "k": pa.array([], pa.int64()), "n": pa.array([], pa.int64())}
    )
    inserted = {
        "h": pa.table({"k": [7]}),
        "o": pa.table({"id": pa.array([1], pa.int32()), "g": [Decimal("7.00")]}),
    }
    with selfmaint.build(program, {"v": view}, engine="duckdb", effective=True) as warehouse:
        assert Update.from_frames(warehouse, inserted).inserted.keys() == {"h", "o"}


@pytest.mark.parametrize("joined", ["o join h on o.g = h.k", "h join o on h.k = o.g"])
def test_a_row_may_reference_by_a_number_that_no_row_there_can_have(joined: str) -> None:
    program = f"""create table h (k int primary key, v boolean);
    create table o (id int primary key, g bigint);
    create view v as select distinct o.g, h.v from {joined};
    create view w as select h.v, count(*) as n from {joined} group by h.v;"""
    some = {name: pa.array([], pa.int64()) for name in ("g", "n")} | {"v": pa.array([], pa.bool_())}
    views = {"v": pa.table({n: some[n] for n in ("g", "v")}), "w": pa.table({n: some[n] for n in ("v", "n")})}
    new = pa.table({"id": pa.array([1, 2], pa.int32()), "g": [1, 2**53]})
    with selfmaint.build(program, views, engine="duckdb", effective=True) as warehouse:
        assert warehouse.check(Update.from_frames(warehouse, {"o": new})).keys() == views.keys()
