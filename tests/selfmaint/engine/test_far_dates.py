"""Dates and times that Python does not have: conditions hold of them as engines compare them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from selfmaint import SelfMaintainable, Update, load

YEAR_1 = -719_162
"""Days from 1970-01-01 to 0001-01-01."""
LAST = 2_932_896
"""To 9999-12-31."""


@pytest.mark.parametrize(
    ("condition", "kept"),
    [
        ("D >= {} '0001-01-01{}'", [YEAR_1, 0, LAST, LAST + 1]),
        ("D > {} '9999-12-31{}'", [LAST + 1]),
        ("D < {} '0001-01-01{}'", [YEAR_1 - 1]),
        ("D <= {} '9999-12-31{}'", [YEAR_1 - 1, YEAR_1, 0, LAST]),
        ("D <= {0} '9999-12-31{1}', D >= {0} '0001-01-01{1}'", [YEAR_1, 0, LAST]),
    ],
)
@pytest.mark.parametrize("kind", ["date", "timestamp_ntz"])
@pytest.mark.parametrize("rule", ["v(I, D) :- t(I, D), {}.", "v(D, count(*)) :- t(I, D), {}."])
def test_conditions_at_the_ends_of_the_calendar(
    rule: str, kind: str, condition: str, kept: list[int], tmp_path: Path
) -> None:
    midnight = "" if kind == "date" else " 00:00:00"
    test = condition.format(kind, midnight)
    (tmp_path / "views.dl").write_text(
        f".decl t(id: int not null, d: {kind} not null) key(id).\n{rule.format(test)}\n"
    )
    (tmp_path / "warehouse.toml").write_text(
        'program = "views.dl"\n[views.v]\npath = "v.parquet"\n[update]\neffective = true\n'
    )
    days = [YEAR_1 - 1, YEAR_1, 0, LAST, LAST + 1]

    def column(values: list[int]) -> pa.Array:
        if kind == "date":
            return pa.array(values, pa.int32()).cast(pa.date32())
        return pa.array([v * 86_400_000_000 for v in values], pa.int64()).cast(pa.timestamp("us"))

    is_plain = rule.startswith("v(I")
    empty = {"i": pa.array([], pa.int32()), "d": column([])}
    pq.write_table(
        pa.table(empty if is_plain else {"d": column([]), "count": pa.array([], pa.int64())}),
        tmp_path / "v.parquet",
    )
    (tmp_path / "u").mkdir()
    inserted = pa.table({"id": pa.array(range(len(days)), pa.int32()), "d": column(days)})
    pq.write_table(inserted, tmp_path / "u" / "t.insert.parquet")
    with load(tmp_path / "warehouse.toml", engine="duckdb") as warehouse:
        update = Update.from_files(warehouse, tmp_path / "u")
        assert isinstance(warehouse.check(update)["v"], SelfMaintainable)
        maintained = warehouse.maintain(update)
        warehouse.apply(maintained)
    written = pq.read_table(tmp_path / "v.parquet").column("d")
    numbers = written.cast(pa.int32() if kind == "date" else pa.int64()).to_pylist()
    assert sorted(n if kind == "date" else n // 86_400_000_000 for n in numbers) == kept


def test_a_row_of_a_far_date_may_be_unknown(tmp_path: Path) -> None:
    """`w` holds all rows up to the last day that can be written, and tells nothing of the others."""
    (tmp_path / "views.dl").write_text(
        ".decl r(x: int not null). .decl s(x: int not null, d: date not null).\n"
        "v(X, D) :- r(X), s(X, D).\nw(X, D) :- s(X, D), D <= date '9999-12-31'.\n"
    )
    (tmp_path / "warehouse.toml").write_text(
        'program = "views.dl"\n[views.v]\npath = "v.parquet"\n[views.w]\npath = "w.parquet"\n'
    )
    schema = pa.schema([("x", pa.int32()), ("d", pa.date32())])
    for name in "vw":
        pq.write_table(schema.empty_table(), tmp_path / f"{name}.parquet")
    (tmp_path / "u").mkdir()
    pq.write_table(pa.table({"x": pa.array([1], pa.int32())}), tmp_path / "u" / "r.insert.parquet")
    with load(tmp_path / "warehouse.toml", engine="duckdb") as warehouse:
        update = Update.from_files(warehouse, tmp_path / "u")
        assert not isinstance(warehouse.check(update)["v"], SelfMaintainable)
        assert "s(1, D)" in str(warehouse.explain(update, "v"))
