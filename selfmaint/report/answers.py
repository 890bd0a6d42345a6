"""The rows of a query as a table, CSV, JSON or Parquet, with exactly the values that they have.

Values that JSON has not are texts: decimals with all their places, days and times as ISO 8601 has them (an instant in
UTC, with a `Z`), NaN and infinite numbers by name, binary values in hexadecimal digits.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from rich.console import RenderableType
from rich.table import Table

from selfmaint.errors import Code, InputError, input_error
from selfmaint.report.values import Json, cell

MOST_SHOWN = 1_000
"""So many rows a table for people has at most."""

_QUOTED = re.compile(r'[,"\r\n]|\A\Z')


class AnswerFormat(StrEnum):
    """How rows are printed."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    PARQUET = "parquet"


def written_table(reader: pa.RecordBatchReader) -> tuple[RenderableType, str]:
    """The first rows for people, and how many there are."""
    found = Table()
    for field in reader.schema:
        is_number = pa.types.is_integer(field.type) or pa.types.is_decimal(field.type)
        right = is_number or pa.types.is_floating(field.type)
        found.add_column(cell(field.name), justify="right" if right else "left", overflow="fold")
    rows = _rows(reader)
    number = 0
    for row in islice(rows, MOST_SHOWN):
        number += 1
        found.add_row(*(cell("null", "dim") if value is None else cell(_text(value)) for value in row))
    more = sum(1 for _ in rows)
    if more:
        return found, f"the first {number:,} of {number + more:,} rows; other formats have all"
    return found, "1 row" if number == 1 else f"{number:,} rows"


def write_csv(reader: pa.RecordBatchReader, out: IO[str]) -> None:
    """CSV with a header line: null is an empty field, the empty text two quotes.

    Raises:
        InputError: SM104 null in a single column, where it would be an empty line, which is no row.
    """
    out.write(",".join(_field(name) for name in reader.schema.names) + "\n")
    for row in _rows(reader):
        if row == (None,):
            message = "CSV of one column cannot hold null, and these rows do"
            raise input_error(
                Code.COLUMNS_DIFFER, message, "query another column beside it, or use another format"
            )
        out.write(",".join(_field(value) for value in row) + "\n")


def _field(value: Json) -> str:
    """A field of CSV; Python's own writer has no nulls before 3.12."""
    if value is None:
        return ""
    text = _text(value)
    return '"' + text.replace('"', '""') + '"' if _QUOTED.search(text) else text


def write_json(reader: pa.RecordBatchReader, out: IO[str]) -> None:
    """One object: `{"columns": [{"name", "type"}], "rows": [[...]]}`; types are Arrow's."""
    columns = [{"name": field.name, "type": str(field.type)} for field in reader.schema]
    out.write(f'{{"columns": {json.dumps(columns, ensure_ascii=False)}, "rows": [')
    for number, row in enumerate(_rows(reader)):
        out.write((", " if number else "") + json.dumps(list(row), ensure_ascii=False))
    out.write("]}\n")


def write_parquet(reader: pa.RecordBatchReader, path: Path) -> None:
    """A Parquet file, with the types that the query gives.

    Raises:
        InputError: SM104 a type that Parquet has not.
    """
    try:
        with pq.ParquetWriter(path, reader.schema) as writer:
            for batch in reader:
                writer.write_batch(batch)
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError) as failure:
        raise _unknown(str(failure)) from failure


def _rows(reader: pa.RecordBatchReader) -> Iterator[tuple[Json, ...]]:
    """The rows as values that JSON has; a row of no columns is an empty one."""
    for batch in reader:
        columns = [_values(column) for column in batch.columns]
        yield from zip(*columns, strict=True) if columns else ((),) * batch.num_rows


def _values(column: pa.Array) -> Iterable[Json]:
    """The values of a column, as JSON has them."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _values(column.dictionary_decode())
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind) or pa.types.is_date(kind):
        # Arrow's texts: Python has fewer days, and no nanoseconds.
        texts = pc.cast(column, pa.string()).to_pylist()
        return [text if text is None else _shorter(text) for text in texts]
    if isinstance(kind, pa.BaseExtensionType):
        raise _unknown(f"no text of the type `{kind}` is known")
    return [_json(value) for value in column.to_pylist()]


def _shorter(text: str) -> str:
    """A moment as ISO 8601 has it, without zeros behind the last digit of its second."""
    plain, zone = text.removesuffix("Z"), "Z" if text.endswith("Z") else ""
    day, space, time = plain.rpartition(" ")
    if "." in time:
        time = time.rstrip("0").rstrip(".")
    return f"{day}{'T' if space else ''}{time}{zone}"


def _json(value: Any) -> Json:
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else _name(value)
        case bytes():
            return value.hex()
        case list():
            return [_json(one) for one in value]
        case dict():
            return {str(name): _json(one) for name, one in value.items()}
        case tuple():
            return [_json(one) for one in value]
        case Decimal():
            text = format(value, "f")
            return text if "." in text else int(text)
        case _:
            return str(value)


def _name(value: float) -> str:
    """As Spark spells them."""
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _text(value: Json) -> str:
    """A value on its own, without the quotes of JSON."""
    if isinstance(value, str):
        return value
    return str(value) if type(value) is int else json.dumps(value, ensure_ascii=False)


def _unknown(why: str) -> InputError:
    return input_error(
        Code.COLUMNS_DIFFER, f"the rows cannot be written: {why}", "cast the column, as to VARCHAR"
    )
