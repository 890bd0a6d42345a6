"""TPC-H warehouses for the benchmarks: the example's rules and views at larger scales, made once and kept."""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "examples" / "tpch"
sys.path[:0] = [str(ROOT), str(EXAMPLE)]

import contents  # noqa: E402
import data  # noqa: E402

ORDERS_AT_SCALE_1 = 1_500_000
UPDATES = ("1 row", "10 orders", "0.1 %", "1 %")
"""One line item of an existing order; so many orders inserted and as many deleted, with their line items."""

MOVERS = 2
"""Customers who change their market segment along with these orders."""

MEMORY = "6g"
"""The Spark driver's heap."""


def folder(work: Path, scale: float) -> Path:
    """Where the warehouse of a scale factor is."""
    return work / f"sf{scale:g}"


def prepare(work: Path, scale: float) -> Path:
    """The base relations, the views and the updates of a scale factor, unless they are there already."""
    place = folder(work, scale)
    done = place / "done"
    if done.exists():
        return place
    shutil.rmtree(place, ignore_errors=True)
    data.generate(scale, place / "base")
    for label in UPDATES:
        data.write_update(_update(place / "base", scale, label), place / "updates" / label)
    contents.store(place / "base", place / "views")
    shutil.copy(EXAMPLE / "views.dl", place / "views.dl")
    text = (EXAMPLE / "warehouse.toml").read_text(encoding="utf-8")
    (place / "warehouse.toml").write_text(in_files(text), encoding="utf-8")
    done.touch()
    return place


def in_files(text: str) -> str:
    """The warehouse file with its views in plain files instead of a lake."""
    places = "\n".join(f'[views.{name}]\npath = "views/{name}"\n' for name in contents.statements())
    found, number = re.subn(r"^\[store\][^\[]*\n(?=\n)", places, text, flags=re.MULTILINE)
    if number != 1:
        raise ValueError("the example keeps its views elsewhere now")
    return found


def _update(base: Path, scale: float, label: str) -> data.Update:
    match label.split():
        case ["1", "row"]:
            return data.Update({"lineitem": _one_more_line(base)}, {})
        case [count, "orders"]:
            return data.refresh(base, int(count), movers=MOVERS)
        case [percent, _]:
            orders = max(1, round(ORDERS_AT_SCALE_1 * scale * float(percent) / 100))
            return data.refresh(base, orders, movers=MOVERS)
    raise ValueError(label)


def _one_more_line(base: Path) -> pa.Table:
    """One more line item of the first order, of its first part."""
    lines = pq.ParquetFile(base / "lineitem.parquet").read_row_group(0).slice(0, 1)
    number = pc.add(lines["l_linenumber"], pa.scalar(50, pa.int32()))
    return lines.set_column(lines.schema.get_field_index("l_linenumber"), "l_linenumber", number).cast(
        data.SCHEMAS["lineitem"]
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Makes the warehouse of one scale factor.")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--scale", type=float, required=True)
    arguments = parser.parse_args()
    prepare(arguments.work, arguments.scale)
