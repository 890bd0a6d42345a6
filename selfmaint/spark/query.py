"""A query of people over the views of a warehouse, run by Spark over temporary views of their names.

It uses nothing but the clauses and functions that a view that is known by its text may use (`text_plans`), and reads
nothing but the views.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import DataFrame, SparkSession

from selfmaint.errors import Code, InputError, input_error
from selfmaint.spark.failures import first_line, translated
from selfmaint.spark.tables import quoted, stored_rows
from selfmaint.spark.text_plans import refused_when_parsed
from selfmaint.spark.text_views import read_by
from selfmaint.store.stored_tables import TableFiles
from selfmaint.warehouse.near import no_view

if TYPE_CHECKING:
    import pyarrow as pa


@contextlib.contextmanager
def answered(
    spark: SparkSession, query: str, views: Mapping[str, TableFiles | DataFrame], bases: Collection[str]
) -> Iterator[pa.RecordBatchReader]:
    """What one SELECT gives, in its order; all rows are here at once.

    Raises:
        InputError: SM102 it reads something else; SM108 it is no SELECT, or cannot be run.
    """
    made: list[str] = []
    try:
        _require_allowed(spark, query)
        for name, table in views.items():
            if name.replace("`", "``").casefold() in query.casefold():
                rows = stored_rows(spark, table) if isinstance(table, TableFiles) else table
                rows.createTempView(quoted(name))
                made.append(name)
        found = spark.sql(query)
        _require_views(found, made, views, bases)
        with translated():
            rows = found.toArrow()
        yield _in_utc(rows).to_reader()
    except PySparkException as failure:
        raise _refused(failure, views, bases) from failure
    finally:
        for name in made:
            spark.catalog.dropTempView(name)


def _in_utc(rows: pa.Table) -> pa.Table:
    """The same instants, shown by a clock in UTC, whatever the session's is."""
    import pyarrow as pa  # noqa: PLC0415 - only where there are rows

    zoned = pa.timestamp("us", "UTC")
    fields = [
        field.with_type(zoned) if pa.types.is_timestamp(field.type) and field.type.tz else field
        for field in rows.schema
    ]
    return rows.cast(pa.schema(fields))


def _require_allowed(spark: SparkSession, query: str) -> None:
    """Refuses what is no SELECT, or more than one."""
    refused = refused_when_parsed(spark, query)
    if refused is not None:
        message = f"a query is one SELECT of known functions, and Spark finds {refused} in this one"
        raise input_error(Code.QUERY, message, "the views are only read here", "nothing was run")


def _require_views(
    found: DataFrame, made: list[str], views: Mapping[str, object], bases: Collection[str]
) -> None:
    """Refuses a plan that reads anything but the views."""
    known = {name.casefold() for name in made}
    for name, is_view in read_by(found):
        if not is_view or name.casefold() not in known:
            raise input_error(Code.UNKNOWN_RELATION, *no_view(name, views, bases))


def _refused(failure: PySparkException, views: Mapping[str, object], bases: Collection[str]) -> InputError:
    if failure.getCondition() == "TABLE_OR_VIEW_NOT_FOUND":
        name = (failure.getMessageParameters() or {}).get("relationName", "").replace("`", "")
        return input_error(Code.UNKNOWN_RELATION, *no_view(name, views, bases))
    what = "refuses" if isinstance(failure, AnalysisException | ParseException) else "fails at"
    return input_error(Code.QUERY, f"Spark {what} the query: {first_line(failure)}")
