"""Columns of undeclared types, whatever type the files have: the exact new rows, or a refusal.

Oracle: the views computed from all rows, as fractions. Stored views are what Spark's types make of that: a sum of
doubles is rounded with each addition, one of decimals has ten digits more. So a sum that is right stands for itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datalog.model import Row
from selfmaint import SelfMaintainable, Undecided, Update, load
from selfmaint.api.maintain import new_contents
from selfmaint.api.warehouse import build
from selfmaint.engine.memory import MemoryEngine
from selfmaint.errors import Code, InputError

VALUES: dict[str, tuple[pa.DataType, Sequence[Any]]] = {
    "int": (pa.int32(), [3, -7, 2, 5]),
    "bigint": (pa.int64(), [2**53 + 1, -7, 2, 5]),
    "float": (pa.float32(), [1.5, 0.10000000149011612, 0.25, 3.0]),
    "double": (pa.float64(), [0.1, 0.2, 0.3, 7.0]),
    "decimal(9,0)": (pa.decimal128(9, 0), [Decimal(x) for x in (3, -7, 2, 5)]),
    "decimal(9,2)": (pa.decimal128(9, 2), [Decimal(x) for x in ("3.05", "-7.10", "0.01", "5")]),
    "decimal(30,10)": (pa.decimal128(30, 10), [Decimal(x) for x in ("3.0000000005", "-7.1", "1e-10", "5")]),
    "decimal(38,18)": (pa.decimal128(38, 18), [Decimal(x) for x in ("1e-18", "-7.1", "3e-18", "5")]),
    "string": (pa.string(), ["3", "-7", "02", "x"]),
}
VIEWS = {
    "plain": "plain(I, G, A) :- t(I, G, A).",
    "narrow": "narrow(A) :- t(I, G, A).",
    "ends": "ends(G, count(*), min(A), max(A)) :- t(I, G, A).",
    "sums": "sums(G, count(*), sum(A)) :- t(I, G, A).",
    "averages": "averages(G, count(*), sum(A), avg(A)) :- t(I, G, A).",
    "products": "products(G, count(*), sum(A * 3)) :- t(I, G, A).",
}
OTHERS = 2
"""Of eight other types, how many a test tries."""
REFUSALS = (Code.COLUMNS_DIFFER, Code.ENGINE_DIFFERS)


def sum_type(kind: str) -> pa.DataType:
    its = VALUES[kind][0]
    if pa.types.is_decimal(its):
        return pa.decimal128(min(38, its.precision + 10), its.scale)
    return pa.float64() if pa.types.is_floating(its) else pa.int64()


def stored(view: str, kind: str, rows: Sequence[tuple[int, int, Any]]) -> pa.Table | None:
    """The view's rows over base rows of a type; None if the type has no such view."""
    its, total = VALUES[kind][0], None if kind == "string" else sum_type(kind)
    groups: dict[int, list[Any]] = {}
    for _, group, value in rows:
        groups.setdefault(group, []).append(value)
    keys, counts = [*groups], [len(values) for values in groups.values()]
    if view == "plain":
        columns = zip(*rows, strict=True)
        types = (pa.int64(), pa.int64(), its)
        return pa.table([pa.array(c, t) for c, t in zip(columns, types, strict=True)], names=["i", "g", "a"])
    if view == "narrow":
        return pa.table({"a": pa.array(sorted({value for _, _, value in rows}), its)})
    first = {"g": keys, "count": counts}
    if view == "ends":
        least = pa.array([min(values) for values in groups.values()], its)
        most = pa.array([max(values) for values in groups.values()], its)
        return pa.table({**first, "min_a": least, "max_a": most})
    if total is None:
        return None
    sums = pa.array([sum(values) for values in groups.values()], total)
    if view == "products":
        if pa.types.is_decimal(total):  # as Spark types the product with a whole constant, and its sum
            total = pa.decimal128(min(38, total.precision + 2), total.scale)
        return pa.table({**first, "sum": pa.array([sum(v * 3 for v in vs) for vs in groups.values()], total)})
    if view == "sums":
        return pa.table({**first, "sum_a": sums})
    means = pa.array([float(sum(values)) / len(values) for values in groups.values()], pa.float64())
    return pa.table({**first, "sum_a": sums, "avg_a": means})


def exact(row: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(Fraction(v) if isinstance(v, int | float | Decimal) else v for v in row)


def expected(view: str, rows: Sequence[tuple[int, int, Any]]) -> set[tuple[Any, ...]]:
    exactly = [exact(row) for row in rows]
    groups: dict[Any, list[Any]] = {}
    for _, group, value in exactly:
        groups.setdefault(group, []).append(value)
    match view:
        case "plain":
            return set(exactly)
        case "narrow":
            return {(value,) for _, _, value in exactly}
        case "ends":
            return {(g, Fraction(len(v)), min(v), max(v)) for g, v in groups.items()}
        case "sums":
            return {(g, Fraction(len(v)), sum(v)) for g, v in groups.items()}
        case "products":
            return {(g, Fraction(len(v)), sum(v) * 3) for g, v in groups.items()}
        case _:
            return {(g, Fraction(len(v)), sum(v), sum(v) / len(v)) for g, v in groups.items()}


def answered(
    folder: Path, declared: str, rule: str, contents: pa.Table, update: Mapping[str, pa.Table], top: str = ""
) -> set[tuple[Any, ...]] | str:
    """The new rows as fractions, or why there are none."""
    view = rule.partition("(")[0]
    (folder / "views.dl").write_text(f"{declared}\n{rule}\n")
    pq.write_table(contents, folder / "v.parquet")
    (folder / "warehouse.toml").write_text(
        f'program = "views.dl"\n{top}\n[views.{view}]\npath = "v.parquet"\n[update]\neffective = true\n'
    )
    (folder / "u").mkdir()
    for part, rows in update.items():
        pq.write_table(rows, folder / "u" / f"{part}.parquet")
    try:
        with load(folder / "warehouse.toml", engine="duckdb") as warehouse:
            given = Update.from_files(warehouse, folder / "u")
            verdict = warehouse.check(given)[view]
            if not isinstance(verdict, SelfMaintainable):
                return f"{type(verdict).__name__}: {'; '.join(getattr(verdict, 'reasons', ()))}"
            delta = warehouse.maintain(given).deltas[view]
            rows = new_contents(warehouse, warehouse.view(view), delta)
            return {exact(row) for row in warehouse.engine.sample(rows, 100)}
    except InputError as error:
        if not {d.code for d in error.diagnostics} <= set(REFUSALS):
            raise
        return str(error)


def table(kind: str, rows: Sequence[tuple[int, int, Any]]) -> pa.Table:
    types = (pa.int64(), pa.int64(), VALUES[kind][0])
    columns = zip(*rows, strict=True)
    return pa.table([pa.array(c, t) for c, t in zip(columns, types, strict=True)], names=["id", "g", "a"])


def outcome(
    folder: Path, declared: str, view: str, kind: str, other: str
) -> tuple[set[tuple[Any, ...]] | str, set[tuple[Any, ...]]]:
    a, b, c, d = VALUES[kind][1]
    e, f, *_ = VALUES[other][1]
    before = [(1, 1, a), (2, 1, b), (3, 2, c), (4, 2, d)]
    inserted = [(5, 1, e), (6, 3, f)]
    contents = stored(view, kind, before)
    if contents is None:
        pytest.skip("strings do not add up")
    found = answered(folder, declared, VIEWS[view], contents, {"t.insert": table(other, inserted)})
    comparable = "string" not in (kind, other) or kind == other
    return found, expected(view, [*before, *inserted]) if comparable else set()


@pytest.mark.parametrize(("view", "kind"), [*product(VIEWS, VALUES)])
def test_one_type(view: str, kind: str, tmp_path: Path) -> None:
    found, wanted = outcome(tmp_path, ".decl t(id, g, a) key(id).", view, kind, kind)
    is_easy = view in ("plain", "narrow", "ends") or (
        view == "sums" and kind in ("int", "bigint", "decimal(9,2)")
    )
    assert found == wanted if is_easy else isinstance(found, str) or found == wanted
    if view == "sums" and kind in ("float", "double"):
        assert "doubles" in str(found)


@pytest.mark.parametrize(("view", "kind"), [*product(VIEWS, VALUES)])
def test_other_types_in_the_update(view: str, kind: str, tmp_path: Path) -> None:
    others = Random(f"{view} {kind}").sample([other for other in VALUES if other != kind], OTHERS)
    for other in others:
        folder = tmp_path / other
        folder.mkdir()
        found, wanted = outcome(folder, ".decl t(id, g, a) key(id).", view, kind, other)
        assert isinstance(found, str) or found == wanted, other


@pytest.mark.parametrize("view", ["sums", "averages", "products"])
@pytest.mark.parametrize("kind", [k for k in VALUES if k.startswith("decimal")])
def test_a_decimal_without_a_size(view: str, kind: str, tmp_path: Path) -> None:
    declared = ".decl t(id: bigint, g: bigint, a: decimal) key(id)."
    found, wanted = outcome(tmp_path, declared, view, kind, kind)
    assert isinstance(found, str) or found == wanted


@pytest.mark.parametrize("wrong", ["decimal(9,0)", "decimal(9,1)", "double", "float", "bigint", "string"])
@pytest.mark.parametrize("view", ["sums", "ends", "products"])
def test_stored_columns_that_cannot_hold_what_is_computed(view: str, wrong: str, tmp_path: Path) -> None:
    declared = ".decl t(id: bigint, g: bigint, a: decimal(9,2)) key(id)."
    before = [(1, 1, Decimal(3)), (2, 1, Decimal(4))]
    contents = stored(view, "decimal(9,2)", before)
    assert contents is not None
    kinds = {k: v[0] for k, v in VALUES.items()} | {"decimal(9,1)": pa.decimal128(9, 1)}
    texts = {name: pa.compute.cast(contents[name], pa.string()) for name in contents.column_names[2:]}
    columns = {n: contents[n] for n in contents.column_names[:2]} | {
        n: pa.array([float(str(t)) for t in column], kinds[wrong])
        if wrong in ("double", "float")
        else pa.array(
            [str(t) if wrong == "string" else int(float(str(t))) for t in column.to_pylist()], kinds[wrong]
        )
        for n, column in texts.items()
    }
    inserted = [(3, 1, Decimal("0.05"))]
    update = {"t.insert": table("decimal(9,2)", inserted)}
    found = answered(tmp_path, declared, VIEWS[view], pa.table(columns), update)
    assert isinstance(found, str) or found == expected(view, [*before, *inserted])


def test_groups_are_of_the_columns_type(tmp_path: Path) -> None:
    contents = pa.table({"g": ["1"], "count": [1], "sum_a": [3]})
    update = {"t.insert": table("int", [(2, 1, 4)])}
    found = answered(tmp_path, ".decl t(id, g, a) key(id).", VIEWS["sums"], contents, update)
    assert "`g` of `t` is a string in the view `sums` and a number in the update" in str(found)


@pytest.mark.parametrize("declared", [".decl t(id, g, a) key(id).", ".decl t(id, g, a: double) key(id)."])
def test_allowed_sums_of_doubles_never_tell_that_a_group_is_there(declared: str, tmp_path: Path) -> None:
    """What is left of 0.1 + 0.2 without 0.3 is not 0, and no row."""
    update = {"t.delete": table("double", [(1, 1, 0.1), (2, 1, 0.2)])}
    contents = pa.table({"g": [1], "sum_a": [0.3]})
    rule = "uncounted(G, sum(A)) :- t(I, G, A)."
    found = answered(tmp_path, declared, rule, contents, update, top="inexact_sums = true")
    assert str(found).startswith(Undecided.__name__)


ADDED_UP = ".decl t(id, g, a) key(id).\nsums(G, count(*), sum(A)) :- t(I, G, A).\nall(I, G, A) :- t(I, G, A)."
IN_MEMORY: list[tuple[Row, Row]] = [
    ((1, 1, 0.25), (2, 1, 0.5)),
    ((1, 1, 1), (2, 1, 0.5)),
    ((1, 1, 0.5), (2, 1, 1)),
    ((1, 1, Decimal("1e-7")), (2, 1, Decimal(1))),
]


@pytest.mark.parametrize(("old", "new"), IN_MEMORY)
@pytest.mark.parametrize("is_new", [False, True])
def test_of_rows_in_memory_no_sum_is_followed_that_depends_on_the_order(
    old: Row, new: Row, is_new: bool
) -> None:
    """Nor is the first sum of a group."""
    contents: dict[str, frozenset[Row]] = {"sums": frozenset({(1, 1, old[2])}), "all": frozenset({old})}
    warehouse = build(ADDED_UP, dict.fromkeys(contents, frozenset()) if is_new else contents, MemoryEngine())
    update = Update({"t": frozenset({old, new} if is_new else {new})}, effective=True)
    with pytest.raises(InputError, match="`sum_a` of `sums` adds up") as refused:
        warehouse.check(update)
    assert refused.value.diagnostics[0].code is Code.COLUMNS_DIFFER


@pytest.mark.parametrize("kind", ["float", "double", "decimal(30,10)", "string"])
def test_rows_read_from_a_source_are_of_the_types_that_were_seen(kind: str, tmp_path: Path) -> None:
    (tmp_path / "views.dl").write_text(
        ".decl s(id, g) key(id).\n.decl t(id, a) key(id).\n"
        "sums(G, count(*), sum(A)) :- s(I, G), t(I, A).\nlargest(G, max(A)) :- s(I, G), t(I, A)."
    )
    (tmp_path / "warehouse.toml").write_text(
        'program = "views.dl"\n[views.sums]\npath = "sums.parquet"\n[views.largest]\npath = "largest.parquet"\n'
        '[sources.files]\nkind = "files"\n[relations.t]\nsource = "files"\npath = "t.parquet"\n'
        "[update]\neffective = true\n"
    )
    pq.write_table(pa.table({"g": [1], "count": [1], "sum_a": [3]}), tmp_path / "sums.parquet")
    pq.write_table(pa.table({"g": [1], "max_a": [3]}), tmp_path / "largest.parquet")
    its, values = VALUES[kind]
    pq.write_table(pa.table({"id": [1, 2], "a": pa.array(values[:2], its)}), tmp_path / "t.parquet")
    with load(tmp_path / "warehouse.toml", engine="duckdb") as warehouse:
        update = Update.from_frames(warehouse, {"s": pa.table({"id": [2], "g": [1]})})
        with pytest.raises(InputError, match=r"in the view `largest` and a .* in its source") as refused:
            warehouse.maintain(update)
    assert refused.value.diagnostics[0].code is Code.COLUMNS_DIFFER
