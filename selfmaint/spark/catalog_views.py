"""Views of Spark's catalog as view definitions, from their own SQL."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pyspark.errors import AnalysisException
from pyspark.sql import Row, SparkSession

from datalog.model import ANY, Column, Declaration
from datalog.sql.views import SqlText, SqlViews, read_sql
from selfmaint.errors import Code, input_error
from selfmaint.spark.column_types import column_type, unmodelled
from selfmaint.spark.session import require_usable


def read_catalog_views(
    spark: SparkSession, names: Iterable[str], declarations: Iterable[Declaration] = ()
) -> SqlViews:
    """The definitions of views of Spark's catalog.

    Args:
        spark: the session.
        names: the views, as Spark reads their names: `database.view`.
        declarations: base relations with their keys, which Spark does not tell; the tables of the views'
            databases that are not among them are declared with their columns alone, without keys.

    Returns:
        What `read_sql` makes of the views' own SQL; other views of these databases that they read are unfolded.

    Raises:
        InputError: SM103 no such view; SM501 the session is one of Spark Connect, or SQL means something else in it.
        ProgramError: a view over a table that is neither in its database nor declared (DL101).
    """
    require_usable(spark)
    wanted = list(names)
    given = list(declarations)
    texts = {name: _text(spark, name) for name in wanted}
    databases = list(dict.fromkeys(_database(spark, name) for name in wanted))
    asked = {name.rpartition(".")[2].strip("`").casefold() for name in wanted}
    known = {one.name.casefold() for one in given} | asked
    unfolded: list[str] = []
    for database in databases:
        for name, is_view in _relations(spark, database):
            if name.casefold() in known:
                continue
            known.add(name.casefold())
            full = f"`{database}`.`{name}`"
            if is_view:
                texts[full] = _text(spark, full)
                unfolded.append(name)
            else:
                given.append(_declaration(spark, full, name))
    sources = [SqlText(text, f"{name} in Spark's catalog") for name, text in texts.items()]
    return read_sql(sources, given, unfolded=unfolded)


def _text(spark: SparkSession, name: str) -> str:
    try:
        row = spark.sql("show create table identifier(:name)", {"name": name}).first()
    except AnalysisException:
        row = None
    if row is None:
        raise input_error(
            Code.MISSING_CONTENTS,
            f"Spark's catalog has no view `{name}` with a definition",
            hint="name a view that was created by CREATE VIEW, with its database",
        )
    return str(row[0])


def _database(spark: SparkSession, name: str) -> str:
    before = name.rpartition(".")[0].rpartition(".")[2].strip("`")
    return before or spark.catalog.currentDatabase()


def _relations(spark: SparkSession, database: str) -> Iterator[tuple[str, bool]]:
    """The tables and views of a database, and whether each is a view; temporary views are not."""
    views = {row.viewName for row in _shown(spark, "show views in identifier(:database)", database)}
    for row in _shown(spark, "show tables in identifier(:database)", database):
        yield row.tableName, row.tableName in views


def _shown(spark: SparkSession, statement: str, database: str) -> list[Row]:
    """The rows of a SHOW that are not temporary; the catalog's Python methods depend on code generation."""
    quoted = f"`{database.replace('`', '``')}`"
    return [row for row in spark.sql(statement, {"database": quoted}).collect() if not row.isTemporary]


def _declaration(spark: SparkSession, full: str, name: str) -> Declaration:
    fields = spark.table(full).schema.fields
    columns = (
        Column(f.name, column_type(f.dataType) or ANY, not f.nullable, unmodelled=unmodelled(f))
        for f in fields
    )
    return Declaration(name, tuple(columns))
