"""What a user of the package meets: names, verdicts that read well, frames in and out, a warehouse that goes on."""

from __future__ import annotations

import datetime as dt
import inspect
import math
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import selfmaint
from datalog.model import Row
from selfmaint import (
    NotSelfMaintainable,
    SelfMaintainable,
    Undecided,
    Update,
    VerdictKind,
    Verdicts,
    Warehouse,
)
from selfmaint.api import aliases
from selfmaint.api.warehouse import build
from selfmaint.engine.memory import MemoryEngine
from selfmaint.errors import InputError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = """\
.decl r(x: bigint not null, y: bigint not null).
.decl s(y: bigint not null, z: bigint not null).
v(X, Y, Z) :- r(X, Y), s(Y, Z).
w(Y, Z) :- s(Y, Z).
"""


def at_hand(program: str = PROGRAM, **views: set[Row]) -> Warehouse[frozenset[Row]]:
    contents = {"v": {(1, 2, 3)}, "w": {(2, 3)}, **views}
    return build(program, {name: frozenset(rows) for name, rows in contents.items()}, MemoryEngine())


def inserted(**rows: set[Row]) -> Update[frozenset[Row]]:
    return Update({name: frozenset(given) for name, given in rows.items()})


# ------------------------------------------------------------------------------------------- the package


def test_every_name_is_there_and_documented() -> None:
    for name in selfmaint.__all__:
        offered = getattr(selfmaint, name)
        assert name in dir(selfmaint)
        assert offered.__doc__ or name == "Verdict"  # a union
    with pytest.raises(AttributeError, match="no attribute 'chekc'"):
        _ = selfmaint.chekc  # type: ignore[attr-defined]


def test_few_functions_are_offered_besides_those_that_go() -> None:
    functions = {name for name in selfmaint.__all__ if inspect.isfunction(getattr(selfmaint, name))}
    going = {name for name in vars(aliases) if not name.startswith("_") and name in functions}
    assert functions - going == {"build", "compact", "follow", "history", "init", "load", "undo"}
    assert len(going) == 8


def test_what_types_are_checked_by_is_what_is_offered() -> None:
    text = (ROOT / "selfmaint" / "__init__.py").read_text(encoding="utf-8")
    declared = {
        line.rpartition(" as ")[2]
        for line in text.partition("if TYPE_CHECKING:")[2].partition("_FROM")[0].splitlines()
        if " import " in line
    }
    assert declared == set(selfmaint.__all__)


def test_importing_the_package_loads_nothing() -> None:
    code = (
        "import sys, selfmaint\n"
        "print(sorted(m for m in sys.modules if m.split('.')[0] in "
        "('selfmaint', 'datalog', 'pyspark', 'duckdb', 'sqlglot', 'pyarrow', 'pandas', 'networkx')))\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert ran.stdout == "['selfmaint']\n"


# ---------------------------------------------------------------------------------------------- verdicts


def test_a_yes_is_true_and_nothing_else_is() -> None:
    yes, no, open_ = SelfMaintainable("v"), NotSelfMaintainable("v", ()), Undecided("v", ("why",))
    assert [bool(one) for one in (yes, no, open_)] == [True, False, False]
    assert [one.kind for one in (yes, no, open_)] == ["yes", "no", "undecided"]
    assert yes.kind is VerdictKind.YES


def test_several_verdicts_are_true_if_there_are_some_and_all_are() -> None:
    yes, open_ = SelfMaintainable("v"), Undecided("w", ("why",))
    assert Verdicts({"v": yes})
    assert not Verdicts({"v": yes, "w": open_})
    assert not Verdicts({})
    assert Verdicts({"v": yes}) == {"v": yes}


def test_verdicts_read_well() -> None:
    found = at_hand().check(inserted(s={(8, 9)}))
    assert str(found) == (
        "v  no   r(X, 8) may or may not exist\n"
        "w  yes  every database that explains what is known gives one new state"
    )
    assert repr(found) == "Verdicts({v: no, w: yes})"
    assert repr(found["v"]) == "NotSelfMaintainable('v', (Witness(r(X, 8))))"
    assert repr(found["w"]) == "SelfMaintainable('w')"


def test_verdicts_are_tables_in_a_notebook() -> None:
    found = Verdicts({"a<b": Undecided("a<b", ("x < y", "and more"))})
    assert found._repr_html_() == (
        "<table><tr><th>view</th><th>verdict</th><th>because</th></tr>"
        "<tr><td>a&lt;b</td><td>undecided</td><td>x &lt; y<br>and more</td></tr></table>"
    )
    assert found["a<b"]._repr_html_() == found._repr_html_()
    assert str(found) == "a<b  undecided  x < y\n                and more"


def test_what_was_maintained_reads_well() -> None:
    warehouse, update = at_hand(), inserted(s={(2, 9)})
    found = warehouse.maintain(update, strict=True)
    assert str(found) == "v  decided exactly\nw  decided exactly"
    assert found._repr_html_() == (
        "<table><tr><th>view</th><th>change</th></tr><tr><td>v</td><td>decided exactly</td></tr>"
        "<tr><td>w</td><td>decided exactly</td></tr></table>"
    )
    explained = warehouse.explain(update, "v")
    assert explained._repr_html_() == f"<pre>{explained}</pre>"
    assert "<tr><td>v</td><td>insert on r</td>" in warehouse.audit()._repr_html_()


# --------------------------------------------------------------------------------- what a warehouse answers


def test_a_warehouse_answers_by_methods() -> None:
    warehouse, update = at_hand(), inserted(s={(8, 9)})
    assert str(warehouse.explain(update, "v")).startswith("`v` is not self-maintainable")
    assert repr(warehouse.explain(update, "v")).startswith("Explanation(NotSelfMaintainable('v'")
    report = warehouse.audit(advise=False)
    assert "v after insert on s: depends" in str(report).splitlines()
    assert repr(report).startswith("AuditReport(")
    maintained = warehouse.maintain(inserted(r={(7, 2)}))
    assert maintained.deltas["v"].gained == {(7, 2, 3)}
    assert maintained.verdicts
    assert repr(maintained) == "Maintained(v, w; 0 reads)"
    assert repr(warehouse) == "Warehouse(v, w; memory)"


def test_statements_are_a_script() -> None:
    found = at_hand().sql("w", inserted=["s"])
    assert [one.name for one in found] == ["w@gained"]
    assert str(found).startswith("-- gained w@gained: rows that `w` gains")
    assert str(found).endswith(";\n")
    assert found.undecided is None
    assert found[0] in found[:]
    assert repr(found) == "Statements(w: w@gained)"
    with pytest.raises(InputError, match="SM102"):
        at_hand().sql("u")
    with pytest.raises(InputError, match="SM102"):
        at_hand().sql("w", deleted=["t"])


def test_where_no_statements_are_right_the_script_says_so() -> None:
    bag = build("v(X, count(*)) :- r(X, Y).", {"v": frozenset({(1, 1)})}, MemoryEngine())
    found = bag.sql("v")
    assert not found
    assert found.undecided is not None
    assert str(found) == f"-- undecided: {found.undecided}"


def test_the_old_functions_say_what_takes_their_place() -> None:
    warehouse, update = at_hand(), inserted(r={(7, 2)})
    with pytest.warns(DeprecationWarning, match=r"`warehouse.check\(update\)`"):
        assert selfmaint.check(warehouse, update) == warehouse.check(update)
    with pytest.warns(DeprecationWarning, match=r"`warehouse.maintain\(update\)`"):
        assert selfmaint.maintain(warehouse, update).deltas["v"].gained == {(7, 2, 3)}
    with pytest.warns(DeprecationWarning, match=r"`warehouse.audit\(\)`"):
        assert selfmaint.audit(warehouse, advise=False).audit.words()
    with pytest.warns(DeprecationWarning, match=r"`warehouse.explain\(update, view\)`"):
        assert str(selfmaint.explain(warehouse, update, "v"))


def test_two_old_functions_have_the_names_of_packages() -> None:
    code = (
        "import selfmaint, selfmaint.maintain.deltas, selfmaint.audit.search\n"
        "assert callable(selfmaint.maintain) and callable(selfmaint.audit)\n"
        "from selfmaint.maintain import Delta\n"
        "import sys; assert sys.modules['selfmaint.maintain'].Delta is selfmaint.Delta\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


# ------------------------------------------------------------------------------------------ frames in and out


TYPES = """\
.decl t(i: bigint, n: int, d: decimal(10,2), s: string, on: date, at: timestamp, wall: timestamp_ntz, b: boolean,
    x: double, u: decimal(20,0)).
v(I, N, D, S, On, At, Wall, B, X, U) :- t(I, N, D, S, On, At, Wall, B, X, U).
"""
AT = dt.datetime(2026, 1, 2, 3, 4, 5, 678901)
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "i": (pa.uint32(), [1, 2**32 - 1]),
    "n": (pa.uint16(), [7, None]),
    "d": (pa.decimal128(5, 2), [Decimal("1.25"), Decimal("-0.01")]),
    "s": (pa.dictionary(pa.int8(), pa.large_string()), ["é", None]),
    "on": (pa.date64(), [dt.date(2026, 2, 3), None]),
    "at": (pa.timestamp("ns", "Asia/Tokyo"), [AT.replace(tzinfo=dt.UTC), None]),
    "wall": (pa.timestamp("s"), [dt.datetime(2026, 1, 1), None]),
    "b": (pa.bool_(), [True, None]),
    "x": (pa.float16(), [0.5, float("nan")]),
    "u": (pa.uint64(), [2**64 - 1, None]),
}
EXPECTED = [
    (1, 7, Decimal("1.25"), "é", dt.date(2026, 2, 3), AT, dt.datetime(2026, 1, 1), True, 0.5, 2**64 - 1),
    (2**32 - 1, None, Decimal("-0.01"), None, None, None, None, None, "nan", None),
]


def every_type() -> pa.Table:
    """A table of the types that are held in others, columns not in the declared order."""
    names = sorted(VALUES)
    return pa.table({name: pa.array(VALUES[name][1], VALUES[name][0]) for name in names})


def plain(rows: list[dict[str, Any]], names: list[str]) -> list[tuple[Any, ...]]:
    def value(one: Any) -> Any:
        if isinstance(one, float) and math.isnan(one):
            return "nan"
        return one.replace(tzinfo=None) if isinstance(one, dt.datetime) else one

    return sorted((tuple(value(row[name]) for name in names) for row in rows), key=lambda row: row[0])


def duck(program: str, **views: Any) -> Warehouse[selfmaint.Relation]:
    return selfmaint.build(program, views, engine="duckdb")


def test_categories_as_polars_has_them_are_texts() -> None:
    values = pa.DictionaryArray.from_arrays(
        pa.array([0, None], pa.uint32()), pa.array(["a"], pa.string_view())
    )
    none = pa.table({"i": pa.array([], pa.int64()), "s": pa.array([], pa.string())})
    with duck(".decl t(i: bigint not null, s: string). v(I, S) :- t(I, S).", v=none) as warehouse:
        update = Update.from_frames(warehouse, {"t": pa.table({"i": [1, 2], "s": values})})
        gained = pa.table(warehouse.maintain(update).deltas["v"].gained).to_pylist()
    assert sorted(map(str, gained)) == ["{'i': 1, 's': 'a'}", "{'i': 2, 's': None}"]


def test_every_type_of_arrow_comes_in_and_goes_out() -> None:
    names = list(VALUES)
    with duck(TYPES, v=every_type().slice(0, 0).select(names).rename_columns(names)) as warehouse:
        update = Update.from_frames(warehouse, {"t": every_type()})
        gained = warehouse.maintain(update).deltas["v"].gained
    assert plain(pa.table(gained).to_pylist(), list(gained.columns)) == EXPECTED
    found = pa.table(gained).schema
    assert [str(kind) for kind in found.types] == [
        *("int64", "int32", "decimal128(10, 2)", "string", "date32[day]", "timestamp[us, tz=UTC]"),
        *("timestamp[us]", "bool", "double", "decimal128(20, 0)"),
    ]


def test_every_type_of_arrow_comes_in_on_spark(spark: SparkSession) -> None:
    names = list(VALUES)
    nothing = every_type().slice(0, 0).select(names)
    with selfmaint.build(TYPES, {"v": nothing}, spark=spark) as warehouse:
        update = Update.from_frames(warehouse, {"t": every_type()})
        gained = warehouse.maintain(update).deltas["v"].gained
    found = gained.toArrow()
    zoned = found.column("at").cast(pa.timestamp("us", "UTC"))
    found = found.set_column(found.column_names.index("at"), "at", zoned)
    assert plain(found.to_pylist(), names) == EXPECTED


PAIR = ".decl r(a: bigint, b: string).\nv(A, B) :- r(A, B).\n"
FRAMES = {
    "pandas": pd.DataFrame({"b": ["x", None, "gone"], "a": [1, 2, 3]}).query("a < 3"),
    "arrow": pa.table({"a": [1, 2], "b": ["x", None]}),
    "batches": pa.RecordBatchReader.from_batches(
        pa.schema({"a": pa.int64(), "b": pa.string()}),
        iter(pa.table({"a": [1, 2], "b": ["x", None]}).to_batches()),
    ),
    "duckdb": duckdb.connect().sql("select 1::bigint as a, 'x' as b union all select 2, null"),
}


def test_frames_of_other_libraries_come_in_on_spark(spark: SparkSession) -> None:
    with selfmaint.build(PAIR, {"v": pa.table({"a": [5], "b": ["y"]})}, spark=spark) as warehouse:
        for frame in (FRAMES["pandas"], FRAMES["arrow"]):
            update = Update.from_frames(warehouse, {"r": frame}, {"r": pa.table({"a": [5], "b": ["y"]})})
            delta = warehouse.maintain(update).deltas["v"]
            assert sorted(row.a for row in delta.gained.collect()) == [1, 2]
            assert [tuple(row) for row in delta.lost.collect()] == [(5, "y")]


def test_frames_of_spark_come_in_without_the_engine_spark(spark: SparkSession) -> None:
    program = ".decl r(a: bigint, at: timestamp).\nv(A, At) :- r(A, At).\n"
    nothing = pa.table({"a": pa.array([], pa.int64()), "at": pa.array([], pa.timestamp("us", "UTC"))})
    frame = spark.sql("select 1L as a, timestamp '2026-01-02 03:04:05Z' as at union all select 2L, null")
    with duck(program, v=nothing) as warehouse:
        gained = warehouse.maintain(Update.from_frames(warehouse, {"r": frame})).deltas["v"].gained
        at = dt.datetime(2026, 1, 2, 3, 4, 5)
        assert sorted(warehouse.engine.sample(gained, 9)) == [(1, at), (2, None)]


@pytest.mark.parametrize("library", FRAMES)
def test_frames_of_other_libraries_come_in(library: str) -> None:
    nothing = pa.table({"a": pa.array([], pa.int64()), "b": pa.array([], pa.string())})
    with duck(PAIR, v=nothing) as warehouse:
        update = Update.from_frames(warehouse, {"r": FRAMES[library]})
        gained = warehouse.maintain(update).deltas["v"].gained
        assert sorted(gained.arrow().to_pydict()["a"]) == [1, 2]
        assert pd.DataFrame(gained.arrow().to_pandas()).shape == (2, 2)
        assert duckdb.connect().from_arrow(pa.table(gained)).aggregate("count(*)").fetchone() == (2,)


def test_a_relation_of_another_warehouse_comes_in() -> None:
    one, other = (duck(PAIR, v=pa.table({"a": [1], "b": ["x"]})) for _ in range(2))
    gained = one.maintain(Update.from_frames(one, {"r": pa.table({"a": [5], "b": ["y"]})})).deltas["v"].gained
    update = Update.from_frames(other, {"r": gained})
    assert other.engine.sample(other.maintain(update).deltas["v"].gained, 9) == [(5, "y")]


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (pa.table({"a": [1], "b": [b"x"]}), "column `b` of the frame given for `r` is `binary`"),
        (pa.table({"a": [[1]], "b": ["x"]}), "column `a` of the frame given for `r` is `list<"),
        (pa.table({"a": [1]}), "`b` missing"),
        (pa.table({"a": ["1"], "b": ["x"]}), "column `a` of `r` is `string`, not `bigint`"),
        (pd.DataFrame({"a": [1.0, None], "b": ["x", "y"]}), "column `a` of `r` is `double`, not `bigint`"),
        ([(1, "x")], "given as a `list`, not as a DataFrame or Arrow table"),
        ({"a": [1], "b": ["x"]}, "given as a `dict`, not as a DataFrame or Arrow table"),
    ],
)
def test_frames_that_do_not_fit_are_refused(frame: Any, said: str) -> None:
    with (
        duck(PAIR, v=pa.table({"a": [1], "b": ["x"]})) as warehouse,
        pytest.raises(InputError, match="SM104") as caught,
    ):
        Update.from_frames(warehouse, {"r": frame})
    assert said in str(caught.value)


def test_nanoseconds_are_not_dropped() -> None:
    program = ".decl r(at: timestamp_ntz).\nv(At) :- r(At).\n"
    nothing = pa.table({"at": pa.array([], pa.timestamp("us"))})
    with duck(program, v=nothing) as warehouse:
        update = Update.from_frames(warehouse, {"r": pd.DataFrame({"at": [pd.Timestamp(1_000)]})})
        assert len(warehouse.maintain(update).deltas["v"].gained.arrow()) == 1
        with pytest.raises(InputError, match=r"SM104.*lose data"):
            Update.from_frames(warehouse, {"r": pd.DataFrame({"at": [pd.Timestamp(1)]})})


def test_a_relation_without_columns_has_a_table() -> None:
    program = ".decl r(a: bigint).\nv :- r(A).\n"
    with duck(program, v=pa.table({"a": [1]}).select([])) as warehouse:
        assert warehouse.contents["v"].arrow().shape == (1, 0)


# ------------------------------------------------------------------------------------------- it goes on


def stored(folder: Path) -> Path:
    """A warehouse of two views and a partial copy, in files."""
    for name, table in {
        "v": pa.table({"x": [1], "y": [2], "z": [3]}),
        "w": pa.table({"y": [2, 5], "z": [3, 6]}),
        "r": pa.table({"x": [1, 9], "y": [2, 9]}),
    }.items():
        pq.write_table(table, folder / f"{name}.parquet")
    (folder / "views.dl").write_text(PROGRAM, encoding="utf-8")
    path = folder / "w.toml"
    places = (
        '[views.v]\npath = "v.parquet"\n[views.w]\npath = "w.parquet"\n[copies.r]\npresent = "r.parquet"\n'
    )
    text = f'program = "views.dl"\n{places}[engine]\nkind = "duckdb"\n[update]\neffective = true\n'
    path.write_text(text, encoding="utf-8")
    return path


def contents(warehouse: Warehouse[Any]) -> dict[str, set[Row]]:
    found = {name: set(warehouse.engine.sample(rows, 99)) for name, rows in warehouse.contents.items()}
    return {**found, "r": set(warehouse.engine.sample(warehouse.present["r"], 99))}


@pytest.mark.parametrize("engine", ["duckdb", "spark"])
def test_a_warehouse_goes_on_with_what_it_wrote(
    tmp_path: Path, engine: Literal["duckdb", "spark"], request: pytest.FixtureRequest
) -> None:
    if engine == "spark":
        request.getfixturevalue("spark")
    path = stored(tmp_path)
    with selfmaint.load(path, engine=engine) as warehouse:
        first = warehouse.maintain(Update.from_frames(warehouse, {"r": pa.table({"x": [7], "y": [2]})}))
        assert [one.name for one in warehouse.apply(first)] == ["v", "r@present"]
        assert contents(warehouse) == {
            "v": {(1, 2, 3), (7, 2, 3)},
            "w": {(2, 3), (5, 6)},
            "r": {(1, 2), (9, 9), (7, 2)},
        }
        frames = {"r": pa.table({"x": [8], "y": [5]})}, {"s": pa.table({"y": [2], "z": [3]})}
        second = warehouse.maintain(Update.from_frames(warehouse, *frames))
        warehouse.apply(second)
        held = contents(warehouse)
        assert held == {"v": {(8, 5, 6)}, "w": {(5, 6)}, "r": {(1, 2), (9, 9), (7, 2), (8, 5)}}
        assert warehouse.engine.sample(first.deltas["v"].gained, 9) == [(7, 2, 3)]
    with selfmaint.load(path, engine=engine) as anew:
        assert contents(anew) == held


def test_deltas_of_an_earlier_state_are_refused(tmp_path: Path) -> None:
    with selfmaint.load(stored(tmp_path), engine="duckdb") as warehouse:
        update = Update.from_frames(warehouse, {"r": pa.table({"x": [7], "y": [2]})})
        maintained = warehouse.maintain(update)
        warehouse.apply(maintained)
        before = contents(warehouse)
        with pytest.raises(InputError, match=r"SM405.*computed from other contents"):
            warehouse.apply(maintained)
        with pytest.raises(InputError, match="SM302"):  # it was inserted, and cannot be again
            warehouse.check(update)
        assert contents(warehouse) == before


def test_what_another_process_writes_is_noticed_after_applying_too(tmp_path: Path) -> None:
    with selfmaint.load(stored(tmp_path), engine="duckdb") as warehouse:
        warehouse.apply(
            warehouse.maintain(Update.from_frames(warehouse, {"r": pa.table({"x": [7], "y": [2]})}))
        )
        update = Update.from_frames(warehouse, {"r": pa.table({"x": [8], "y": [2]})})
        maintained = warehouse.maintain(update)
        pq.write_table(pa.table({"y": [2], "z": [3]}), tmp_path / "w.parquet")
        with pytest.raises(InputError, match=r"SM405.*changed since"):
            warehouse.apply(maintained)


def test_an_update_is_given_by_files(tmp_path: Path) -> None:
    path = stored(tmp_path)
    (tmp_path / "u").mkdir()
    (tmp_path / "u" / "r.insert.csv").write_text("x,y\n7,2\n", encoding="utf-8")
    (tmp_path / "more.csv").write_text("y,z\n2,3\n", encoding="utf-8")
    with selfmaint.load(path, engine="duckdb") as warehouse:
        update = Update.from_files(warehouse, tmp_path / "u", deleted={"s": tmp_path / "more.csv"})
        assert {*update.inserted, *update.deleted} == {"r", "s"}
        with pytest.raises(InputError, match=r"SM101.*the same part of the update"):
            Update.from_files(warehouse, tmp_path / "u", inserted={"r": tmp_path / "more.csv"})
        with pytest.warns(DeprecationWarning, match="from_files"):
            assert set(selfmaint.read_update(warehouse, tmp_path / "u").inserted) == {"r"}
        with pytest.warns(DeprecationWarning, match="from_frames"):
            assert set(selfmaint.update_from(warehouse, {"r": tmp_path / "u" / "r.insert.csv"}).inserted) == {
                "r"
            }


def test_an_update_says_what_it_changes_and_nothing_else_is_one() -> None:
    update = Update({"r": frozenset({(1, 2)})}, {"s": frozenset({(2, 3)})}, effective=True)
    assert repr(update) == "Update(inserts into r; deletes from s; effective)"
    with pytest.raises(InputError, match="not a `dict`"):
        at_hand().check({"r": [(1, 2)]})  # type: ignore[arg-type]


def test_a_column_of_a_join_is_stored_as_either_side_has_it() -> None:
    program = """
    CREATE TABLE o (id INT PRIMARY KEY);
    CREATE TABLE l (n INT PRIMARY KEY, amount DECIMAL(8, 2) NOT NULL);
    CREATE VIEW v AS SELECT o.id, count(*) AS n FROM l JOIN o ON l.amount = o.id GROUP BY o.id;
    """
    stored = pa.table({"id": pa.array([2], pa.int32()), "n": [1]})
    new = pa.table({"n": [5], "amount": [Decimal("2.00")]}).cast(
        pa.schema({"n": pa.int32(), "amount": pa.decimal128(8, 2)})
    )
    with selfmaint.build(program, {"v": stored}, engine="duckdb", effective=True) as warehouse:
        delta = warehouse.maintain(selfmaint.Update.from_frames(warehouse, {"l": new})).deltas["v"]
    gained = pa.table(delta.gained)
    assert gained.to_pylist() == [{"id": 2, "n": 2}]
    assert gained.schema.field("id").type == pa.int32()
    doubles = pa.table({"id": [1.5], "n": [1]})
    with pytest.raises(InputError, match=r"column `id` of `v` is `double`"):
        selfmaint.build(program, {"v": doubles}, engine="duckdb", effective=True)


def test_a_store_knows_the_same_frames_again_in_any_order(tmp_path: Path) -> None:
    (tmp_path / "p.sql").write_text(
        "CREATE TABLE pay (id BIGINT PRIMARY KEY, sale BIGINT, note STRING);\n"
        "CREATE VIEW paid AS SELECT sale, COUNT(*) AS n FROM pay GROUP BY sale;\n",
        encoding="utf-8",
    )
    text = 'program = "p.sql"\n[store]\nkind = "lake"\npath = "lake"\n[update]\neffective = true\n'
    text += '[sources.b]\nkind = "files"\n[relations.pay]\nsource = "b"\npath = "pay.csv"\n'
    (tmp_path / "w.toml").write_text(text, encoding="utf-8")
    (tmp_path / "pay.csv").write_text("id,sale,note\n1,7,a\n", encoding="utf-8")
    selfmaint.init(tmp_path / "w.toml", engine="duckdb")

    def applied(ids: list[int], notes: list[str | None], sales: list[int | None]) -> None:
        with selfmaint.load(tmp_path / "w.toml", engine="duckdb") as wh:
            rows = pa.table(
                {"id": ids, "sale": pa.array(sales, pa.int64()), "note": pa.array(notes, pa.string())}
            )
            wh.apply(wh.maintain(Update.from_frames(wh, inserted={"pay": rows})))

    def counts() -> set[tuple[int | None, int]]:
        with selfmaint.load(tmp_path / "w.toml", engine="duckdb") as wh:
            return {(row["sale"], row["n"]) for row in pa.table(wh.read("paid")).to_pylist()}

    applied([2, 3], [None, "b"], [7, None])
    assert counts() == {(7, 2), (None, 1)}
    with pytest.raises(InputError, match="SM409"):
        applied([3, 2], ["b", None], [None, 7])
    with selfmaint.load(tmp_path / "w.toml", engine="duckdb") as wh:
        again = pa.table({"id": [2, 3], "sale": [7, None], "note": [None, "b"]})
        with pytest.raises(InputError, match="SM409"):  # with a part of no rows it is no other update
            wh.check(Update.from_frames(wh, {"pay": again}, {"pay": again.slice(0, 0)}))
    applied([4, 5], ["b", None], [None, 7])  # the same values, other rows
    applied([], [], [])
    applied([], [], [])  # nothing is no update that could come twice
    assert counts() == {(7, 3), (None, 2)}
    with selfmaint.load(tmp_path / "w.toml", engine="duckdb") as wh:
        with pytest.raises(InputError, match="not a `dict`"):
            wh.check({"pay": again})  # type: ignore[arg-type]
        rows, others = ({"pay": pa.table({"id": [i], "sale": [7], "note": ["c"]})} for i in (6, 7))
        wh.apply(wh.maintain(Update.from_frames(wh, rows, id="monday")))
        for again in (rows, others):
            for ask in (wh.check, wh.maintain):  # the view has no key that could tell
                with pytest.raises(InputError, match="SM409"):
                    ask(Update.from_frames(wh, again, id="monday"))
    assert counts() == {(7, 4), (None, 2)}


@pytest.mark.parametrize("name", [dt.date(2026, 12, 1), 7, ""])
def test_an_id_is_a_text(name: Any) -> None:
    with pytest.raises(InputError, match=r"SM101.*not a text that tells it from others"):
        Update({}, {}, id=name)


def test_a_stream_that_duckdb_has_ended_is_refused() -> None:
    """DuckDB gives a stream that has no rows any more, and no error, once another query runs on its connection."""
    program = "create table r (a int primary key);\ncreate view v as select a from r;\n"
    connection = duckdb.connect()
    with selfmaint.build(program, {"v": pa.table({"a": pa.array([1], pa.int32())})}, engine="duckdb") as wh:
        new, gone = (connection.sql(f"select {n}::int as a").arrow() for n in (2, 1))
        with pytest.raises(
            InputError, match=r"SM104.*the stream given for `r` has no rows, or has lost them"
        ):
            Update.from_frames(wh, {"r": new}, {"r": gone})
        sides = [connection.sql(f"select {n}::int as a") for n in (2, 1)]
        update = Update.from_frames(wh, {"r": sides[0]}, {"r": sides[1].to_arrow_table().to_reader()})
        delta = wh.maintain(update).deltas["v"]
        assert [pa.table(side).to_pylist() for side in (delta.gained, delta.lost)] == [[{"a": 2}], [{"a": 1}]]


@pytest.mark.parametrize(
    ("declared", "zone", "hint"),
    [
        ("date", None, ".dt.date"),
        ("timestamp", None, ".dt.tz_localize(ZONE)"),
        ("timestamp_ntz", "UTC", ".dt.tz_localize(None)"),
    ],
)
def test_times_of_pandas_are_told_how_they_become_what_is_declared(
    declared: str, zone: str | None, hint: str
) -> None:
    program = f"create table r (a int primary key, t {declared});\ncreate view v as select a from r;\n"
    frame = pd.DataFrame({"a": [1], "t": pd.to_datetime(["2026-12-01 10:00"]).tz_localize(zone)})
    with selfmaint.build(program, {"v": pa.table({"a": pa.array([], pa.int32())})}, engine="duckdb") as wh:
        with pytest.raises(InputError) as refused:
            Update.from_frames(wh, {"r": frame})
        assert hint in str(refused.value.diagnostics[0].hint)
        made = {
            ".dt.date": frame.t.dt.date,
            ".dt.tz_localize(ZONE)": frame.t.dt.tz_localize("Europe/Zurich" if zone is None else None),
            ".dt.tz_localize(None)": frame.t.dt.tz_localize(None),
        }
        assert Update.from_frames(wh, {"r": frame.assign(t=made[hint])}).inserted
