"""Files of rows to mutate: CSV and JSON lines as texts, Parquet as a recipe of odd columns and spoilt bytes."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

TYPES: Mapping[str, tuple[pa.DataType, Sequence[Any]]] = {
    "bool": (pa.bool_(), [True, False]),
    "int8": (pa.int8(), [1, -128]),
    "int32": (pa.int32(), [1, 2, 3, -(2**31)]),
    "int64": (pa.int64(), [1, 2, 3, 2**63 - 1]),
    "uint64": (pa.uint64(), [1, 2**64 - 1]),
    "float16": (pa.float16(), [1.5]),
    "float": (pa.float32(), [1.5, float("nan")]),
    "double": (pa.float64(), [1.5, float("inf"), -0.0]),
    "decimal(9,2)": (pa.decimal128(9, 2), [Decimal("1.50"), Decimal("-9999999.99")]),
    "decimal(38,18)": (pa.decimal128(38, 18), [Decimal("1e-18")]),
    "decimal(50,2)": (pa.decimal256(50, 2), [Decimal("1.50"), Decimal(10) ** 45]),
    "string": (pa.string(), ["a", "", "b ", "2026-01-31", "\0", "é"]),
    "large_string": (pa.large_string(), ["a", "b"]),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), ["a", "b"]),
    "binary": (pa.binary(), [b"a", b"\xff"]),
    "date": (pa.date32(), [dt.date(2026, 1, 31), dt.date(1, 1, 1)]),
    "far date": (pa.date32(), [-(2**31), 2**31 - 1, -800_000]),
    "date64": (pa.date64(), [dt.date(2026, 1, 31)]),
    "timestamp": (pa.timestamp("us"), [dt.datetime(2026, 1, 31, 12)]),
    "far timestamp": (pa.timestamp("us"), [-(2**62), 2**62, -(2**63) + 1]),
    "instant": (pa.timestamp("us", "UTC"), [dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC)]),
    "ns": (pa.timestamp("ns"), [1, 2**60]),
    "seconds": (pa.timestamp("s"), [1, 2**45]),
    "time": (pa.time64("us"), [dt.time(12)]),
    "duration": (pa.duration("us"), [5]),
    "null": (pa.null(), [None]),
    "list": (pa.list_(pa.int32()), [[1, 2], []]),
    "struct": (pa.struct([("x", pa.int32())]), [{"x": 1}]),
    "map": (pa.map_(pa.string(), pa.int32()), [[("a", 1)]]),
}
RELATIONS: Mapping[str, Sequence[tuple[str, str]]] = {
    "r": [("id", "int32"), ("name", "string"), ("price", "decimal(9,2)"), ("day", "date"), ("ok", "bool")],
    "k": [("id", "int64"), ("g", "string"), ("a", "int64")],
    "m": [("id", "int32"), ("at", "instant"), ("w", "timestamp"), ("x", "double"), ("f", "float")],
}
PROGRAM = """
.decl r(id: int not null, name: string, price: decimal(9,2), day: date, ok: boolean) key(id).
.decl k(id, g, a) key(id).
.decl m(id: int not null, at: timestamp, w: timestamp_ntz, x: double, f: float) key(id).
v(I, N, P, D, O) :- r(I, N, P, D, O).
late(I, D) :- r(I, N, P, D, O), D > date '2026-01-01', P >= 1.
by_name(N, count(*), sum(P), max(D)) :- r(I, N, P, D, O).
groups(G, count(*), sum(A), count(A), min(A)) :- k(I, G, A).
times(I, T, W, X, F) :- m(I, T, W, X, F).
"""
VIEWS: Mapping[str, Sequence[tuple[str, str]]] = {
    "v": [("i", "int32"), ("n", "string"), ("p", "decimal(9,2)"), ("d", "date"), ("o", "bool")],
    "late": [("i", "int32"), ("d", "date")],
    "by_name": [("n", "string"), ("count", "int64"), ("sum_p", "decimal(19,2)"), ("max_d", "date")],
    "groups": [("g", "string"), ("count", "int64"), ("sum_a", "int64"), ("count_a", "int64"), ("min_a", "int64")],
    "times": [("i", "int32"), ("t", "instant"), ("w", "timestamp"), ("x", "double"), ("f", "float")],
}  # fmt: skip
_TEXTS = {
    "int32": ["1", "2", "-5"],
    "int64": ["1", "7", "9223372036854775807"],
    "string": ["a", '"b, ""c"""', "", '""'],
    "decimal(9,2)": ["1.50", "-3", "0.01"],
    "date": ["2026-01-31", "0001-01-01", "9999-12-31"],
    "bool": ["true", "FALSE"],
    "instant": ["2026-01-31T12:00:00Z", "2026-01-31 12:00:00"],
    "timestamp": ["2026-03-29 02:30:00", "2026-01-31T12:00:00.000001"],
    "double": ["1.5", "NaN", "-0.0", "1e300", "Infinity"],
    "float": ["0.5", "-Infinity"],
}


def csv_texts() -> list[str]:
    """A file for each relation."""
    made = []
    for columns in RELATIONS.values():
        rows = [[_TEXTS[kind][at % len(_TEXTS[kind])] for _, kind in columns] for at in range(4)]
        made.append("\n".join(",".join(row) for row in [[name for name, _ in columns], *rows]) + "\n")
    return made


def json_texts() -> list[str]:
    """A file of JSON lines for each relation."""
    numbers = ("int32", "int64", "decimal(9,2)", "bool")
    made = []
    for columns in RELATIONS.values():
        lines = []
        for at in range(3):  # as many as there are keys
            row = {name: _TEXTS[kind][at % len(_TEXTS[kind])].lower() for name, kind in columns}
            lines.append(
                "{"
                + ", ".join(f'"{n}": {row[n] if k in numbers else json.dumps(row[n])}' for n, k in columns)
                + "}\n"
            )
        made.append("".join(lines))
    return made


def recipe(random: Random) -> str:
    """A Parquet file of a relation, with odd columns perhaps, whose bytes are spoilt perhaps."""
    columns = [list(column) for column in random.choice([*RELATIONS.values(), *VIEWS.values()])]
    for _ in range(random.choice((0, 1, 1, 2))):
        column = random.choice(columns)
        match random.randrange(6):
            case 0:
                columns.remove(column)
            case 1:
                columns.append(
                    [random.choice((column[0], column[0].upper(), "é", "", "a.b", "c0")), *column[1:]]
                )
            case 2:
                random.shuffle(columns)
            case _:
                column[1] = random.choice([*TYPES])
        if not columns:
            break
    spoilt = [[random.random(), random.randrange(256)] for _ in range(random.choice((0, 0, 1, 3, 20)))]
    return json.dumps(
        {
            "columns": columns,
            "rows": random.choice((0, 1, 2, 3, 5)),
            "nulls": random.random() < 0.3,
            "seed": random.randrange(100),
            "spoilt": spoilt,
            "cut": random.choice((1.0, 1.0, 1.0, random.random())),
            "compression": random.choice(("none", "snappy", "zstd")),
            "version": "2.6",
        }
    )


def parquet(text: str) -> bytes:
    """The file of a recipe."""
    wanted = json.loads(text)
    random = Random(wanted["seed"])
    arrays, fields = [], []
    for number, (name, kind) in enumerate(wanted["columns"]):
        its, values = TYPES.get(kind, (pa.decimal128(19, 2), [Decimal(1)]))
        column = [
            None if wanted["nulls"] and random.random() < 0.3
            else values[(at + number) % len(values)] if name not in ("id", "i") or len(values) < 3 else values[at % 3]
            for at in range(wanted["rows"])
        ]  # fmt: skip
        is_far = (
            column and isinstance(column[0], int) and (pa.types.is_date(its) or pa.types.is_timestamp(its))
        )
        base = (pa.int32() if pa.types.is_date32(its) else pa.int64()) if is_far else its
        array = pa.array(column, base)
        arrays.append(array.view(its) if is_far else array)
        fields.append(pa.field(name, its))
    sink = pa.BufferOutputStream()
    table = pa.Table.from_arrays(arrays, schema=pa.schema(fields))
    pq.write_table(table, sink, compression=wanted["compression"], version=wanted["version"])
    made = bytearray(sink.getvalue().to_pybytes())
    for at, byte in wanted["spoilt"]:
        made[min(int(at * len(made)), len(made) - 1)] = byte
    return bytes(made[: max(1, int(wanted["cut"] * len(made)))])


def meant_for(text: str, random: Random) -> str:
    """The relation or view whose columns a text speaks of, or another one."""
    every = {**RELATIONS, **VIEWS}
    if random.random() < 0.1:
        return random.choice([*every])
    start = text[:200]
    return max(
        every, key=lambda name: sum(f'"{c}"' in start or c in start.split(",") for c, _ in every[name])
    )


def warehouse_folder(folder: Path) -> Path:
    """A warehouse of empty views over the relations, and an empty folder for the update."""
    place = folder / "stored"
    (place / "u").mkdir(parents=True)
    (place / "views.dl").write_text(PROGRAM)
    lines = ['program = "views.dl"', "[update]", "effective = true", "[engine]", 'kind = "duckdb"']
    for view, columns in VIEWS.items():
        fields = [(name, TYPES.get(kind, (pa.decimal128(19, 2), ()))[0]) for name, kind in columns]
        pq.write_table(pa.schema(fields).empty_table(), place / f"{view}.parquet")
        lines += [f"[views.{view}]", f'path = "{view}.parquet"']
    (place / "warehouse.toml").write_text("\n".join(lines) + "\n")
    return place
