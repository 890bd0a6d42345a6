"""Frames of other libraries: whatever offers an Arrow C stream, with the types that both engines hold."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Protocol, TypeAlias, TypeVar, runtime_checkable

import pyarrow as pa

from datalog.diagnostics import Diagnostic
from datalog.model.schema import MAX_PRECISION, OTHER_HINT
from selfmaint.engine.arrow_rows import ArrowTable
from selfmaint.errors import Code, InputError, input_error
from selfmaint.store.expected import INDEX

ArrowSchema: TypeAlias = pa.Schema
Rows = TypeVar("Rows", pa.Table, pa.RecordBatch)

_NARROW = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
}
"""Types of Arrow's with the type that holds their values here."""
_LOST = (
    "give a table (`to_arrow_table()`, `read_all()`) or DuckDB's relation itself: another query on its connection "
    "ends a stream of DuckDB without an error"
)
_HELD = (
    *(pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()),
    *(pa.string(), pa.date32(), pa.null(), pa.timestamp("us"), pa.timestamp("us", "UTC")),
)


@runtime_checkable
class ArrowStream(Protocol):
    """What offers its rows as Arrow: frames of pandas, polars and Spark, tables of Arrow, relations of DuckDB."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """A capsule of Arrow's C stream interface."""
        ...


def arrow_frame(rows: ArrowStream, name: str, unread: Collection[str] = ()) -> ArrowTable:
    """The rows as an Arrow table of types that both engines hold, in this process, without some columns.

    What pandas adds for an index without a name is left out; its NaN is null, as pandas has it.

    Raises:
        InputError: SM104 a type that the language does not have, or a value that is lost in the type that is held:
            nanoseconds.
    """
    by_spark = getattr(rows, "toArrow", None)  # whose Arrow stream has no timestamps (PySpark 4.3)
    table = by_spark() if callable(by_spark) else pa.table(rows)
    if isinstance(rows, pa.RecordBatchReader) and not table.num_rows:
        message = f"the stream given for `{name}` has no rows, or has lost them"
        raise input_error(Code.COLUMNS_DIFFER, message, _LOST)
    out = [*added_by_pandas(table.schema), *(column for column in table.column_names if column in unread)]
    table = table.drop_columns(out)
    wanted = [held_type(field.type) for field in table.schema]
    problems = [
        Diagnostic(
            Code.COLUMNS_DIFFER,
            f"column `{field.name}` of the frame given for `{name}` is `{field.type}`",
            hint=OTHER_HINT,
        )
        for field, kind in zip(table.schema, wanted, strict=True)
        if kind is None
    ]
    if problems:
        raise InputError(problems)
    schema = pa.schema(list(zip(table.column_names, wanted, strict=True)))
    try:
        return with_plain_texts(table).cast(schema) if wanted else table
    except pa.ArrowInvalid as failure:
        message = f"the frame given for `{name}` cannot be held: {failure}"
        raise input_error(Code.COLUMNS_DIFFER, message, "round its values before") from failure


def with_plain_texts(rows: Rows) -> Rows:
    """The same with dictionaries of plain texts: Arrow looks up no views of texts, which polars' categories are."""
    schema = rows.schema
    for i, field in enumerate(schema):
        if pa.types.is_dictionary(field.type) and field.type.value_type == pa.string_view():
            schema = schema.set(i, field.with_type(pa.dictionary(field.type.index_type, pa.string())))
    return rows if schema is rows.schema else rows.cast(schema)


def held_type(kind: pa.DataType) -> pa.DataType | None:
    """The type that holds the values of one; None where there is none."""
    if pa.types.is_dictionary(kind):
        return held_type(kind.value_type)
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", None if kind.tz is None else "UTC")
    if pa.types.is_decimal(kind):
        held = 0 <= kind.scale <= kind.precision <= MAX_PRECISION
        return pa.decimal128(kind.precision, kind.scale) if held else None
    return _NARROW.get(kind) or (kind if kind in _HELD else None)


def added_by_pandas(schema: ArrowSchema) -> list[str]:
    """The columns of an index that has no name."""
    given = (schema.metadata or {}).get(b"pandas")
    index = [] if given is None else json.loads(given).get("index_columns", [])
    return [name for name in index if isinstance(name, str) and INDEX.fullmatch(name)]
