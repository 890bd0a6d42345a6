"""Relations written as files, so that DuckDB and Spark read the same values back."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb

from datalog.sql.duckdb import relations as sql
from selfmaint.duckdb.database import Database
from selfmaint.duckdb.relation import Relation
from selfmaint.errors import Code, input_error
from selfmaint.store.formats import Format
from selfmaint.store.write import Write


def writing(database: Database, data: Relation) -> Write:
    """What writes a relation's rows.

    It raises InputError SM405 for null in a CSV file of one column, where it would be an empty line, which is no row.
    """

    def write(path: Path, format_: Format, order: str | None, /, *, single: bool = False) -> None:  # noqa: ARG001 - it is
        path.mkdir()
        try:
            _write(database, data, path, format_, order)
        except duckdb.Error as failure:
            raise OSError(str(failure)) from failure

    return write


def _write(database: Database, data: Relation, path: Path, format_: Format, order: str | None) -> None:
    if len({name.casefold() for name in data.columns}) < len(data.columns):
        message = f"the columns of `{path.name}` have names that differ in case alone"
        raise input_error(Code.WRITE_FAILED, message, hint="name them otherwise")
    reads = [data.stored.name]
    file = path / f"part-00000.{format_.value}"
    match format_:
        case Format.CSV:
            if len(data.columns) == 1 and database.plain_rows(sql.null(data.stored.name), reads):
                raise input_error(
                    Code.WRITE_FAILED,
                    f"a CSV file of one column cannot hold null, and `{path.name}` would",
                    hint="store these contents as Parquet",
                )
            database.write_csv(sql.texts_of(data.stored.name, data.types, data.columns), file, reads)
        case Format.JSON_LINES:
            query = sql.texts_of(data.stored.name, data.types, data.columns, days_only=True)
            with file.open("x", encoding="utf-8") as lines:
                for batch in database.batches(query, reads):
                    for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                        lines.write(_line(dict(zip(data.columns, row, strict=True))))
        case _:
            column = data.columns.index(order) if order in data.columns else None
            query = sql.named(data.stored.name, data.types, data.columns, column)
            signed = sql.negative_zero(data.stored.name, data.types)
            has_signed = signed is not None and database.plain_rows(signed, reads)
            database.write_parquet(query, file, reads, dictionaries=not has_signed)


def _line(record: dict[str, Any]) -> str:
    """One object of JSON, its decimals with all their digits."""
    fields = (f"{json.dumps(name)}: {_json(value)}" for name, value in record.items())
    return "{" + ", ".join(fields) + "}\n"


def _json(value: Any) -> str:
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, float) and not math.isfinite(value):
        return '"NaN"' if math.isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'
    return json.dumps(value, ensure_ascii=False)
