"""Rows as DataFrames with the expected columns, from files, tables of Spark's catalog, or DataFrames."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from datalog.model import ANY, ColumnType, TypeName
from selfmaint.api.columns import Columns
from selfmaint.api.families import Families, of_views
from selfmaint.api.warehouse_file import Location
from selfmaint.errors import Code, input_error
from selfmaint.spark import DataFrame, SparkSession
from selfmaint.spark.bags import counted
from selfmaint.spark.column_types import column_type
from selfmaint.spark.tables import conform, read_as_stored, read_contents
from selfmaint.spark.undeclared import conform_undeclared, read_undeclared
from selfmaint.store.expected import Expected
from selfmaint.store.formats import Format, format_of
from selfmaint.warehouse.catalog import Catalog


def read_rows(spark: SparkSession, location: Location, columns: Columns) -> DataFrame:
    """Stored rows, columns matched by name where they are declared, else by name or position.

    Raises:
        InputError: SM103 nothing is stored there; SM104 other columns or types.
    """
    if columns.open:
        return read_as_stored(spark, location.text, columns.name, Format.TABLE if location.is_table else None)
    read = read_contents if columns.declared else read_undeclared
    expected = expected_columns(columns)
    if columns.as_text and not location.is_table and format_of(location.text) is Format.CSV:
        text = ColumnType(TypeName.STRING)
        expected = replace(expected, types=tuple(text if t == ANY else t for t in expected.types))
    return read(spark, location.text, expected, Format.TABLE if location.is_table else None)


def fit_rows(frame: DataFrame, columns: Columns) -> DataFrame:
    """A DataFrame's rows, columns matched by name where they are declared, else by name or position.

    Raises:
        InputError: SM104 other columns or types, or something else than a DataFrame.
    """
    given: object = frame  # callers may not be type-checked
    if not isinstance(given, DataFrame):
        raise input_error(
            Code.COLUMNS_DIFFER,
            f"the rows of `{columns.name}` are given as a `{type(given).__name__}`, not as a DataFrame",
            hint=f"`spark.createDataFrame(rows, {list(columns.names)!r})` makes one of a list of tuples",
        )
    if columns.open:
        return frame
    return (conform if columns.declared else conform_undeclared)(frame, expected_columns(columns))


def families(frame: DataFrame) -> tuple[str, ...]:
    """The family of each column's values; `any` where the language has no such type."""
    types = (column_type(stored.dataType) for stored in frame.schema.fields)
    return tuple("any" if found is None else found.family for found in types)


def known_families(catalog: Catalog, views: Mapping[str, DataFrame]) -> Families:
    """What the stored views tell about the base columns' families."""
    return of_views(catalog, {name: families(frame) for name, frame in views.items()})


def with_counts(catalog: Catalog, views: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
    """The stored rows of views, those of a view that keeps duplicates as counted rows."""
    known = {name: catalog.view(name) for name in views}
    return {n: counted(rows, known[n].columns) if known[n].is_counted else rows for n, rows in views.items()}


def expected_columns(columns: Columns) -> Expected:
    """The columns that stored rows must have, as reading them takes it."""
    return Expected(columns.name, columns.names, columns.types, columns.place, columns.naming)
