"""Views of Spark's catalog as view definitions, from their own SQL."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator

from pyspark.errors import AnalysisException
from pyspark.sql import Row, SparkSession

from datalog.model import ANY, Column, Declaration
from datalog.sql.views import SqlText, SqlViews, read_sql
from datalog.sql.views.kept.text_reads import names_alone
from datalog.sql_settings import SQL_SETTINGS, TIME_ZONE, UTC
from selfmaint.errors import Code, InputError, input_error
from selfmaint.spark.column_types import column_type, unmodelled
from selfmaint.spark.frames import session_zone
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
        InputError: SM103 no such view, or one whose tables its text does not tell; SM501 the session is one of Spark
            Connect, or SQL means something else in it than here, or than in the session that created a view.
        ProgramError: a view over a table that is neither in its database nor declared (DL101).
    """
    require_usable(spark)
    wanted = list(names)
    given = list(declarations)
    texts = {name: _text(spark, name) for name in wanted}
    databases = list(dict.fromkeys(_database(spark, name) for name in wanted))
    asked = {name.rpartition(".")[2].strip("`").casefold() for name in wanted}
    declared = {one.name.casefold() for one in given}
    found = [
        (name, database, is_view) for database in databases for name, is_view in _relations(spark, database)
    ]
    times = Counter(name.casefold() for name, _, _ in found)
    views = asked.union(name.casefold() for name, _, is_view in found if is_view)
    unfolded: list[str] = []
    refused: dict[str, InputError] = {}
    for name, database, is_view in found:
        mine, full = name.casefold(), f"`{database}`.`{name}`"
        if times[mine] > 1 and mine not in views | declared:
            given.append(_declaration(spark, full, f"{database}.{name}"))
        elif mine in declared | asked:
            continue
        elif is_view:
            try:
                texts[full] = _text(spark, full)
                unfolded.append(name)
            except InputError as error:
                refused[name] = error
        else:
            given.append(_declaration(spark, full, name))
    for name in times:
        if times[name] > 1 and name in views | declared and any(_says(text, name) for text in texts.values()):
            raise _of_several(name, [database for its, database, _ in found if its.casefold() == name])
    for name, refusal in refused.items():
        if any(_says(text, name) for text in texts.values()):
            raise refusal
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
    _require_as_created(spark, name)
    return str(row[0])


def _require_as_created(spark: SparkSession, name: str) -> None:
    """Refuses a view that Spark reads by other settings than the session has: those of the session that created it.

    Likewise one that was created in another database than its own, whose names without a database mean that one's.
    """
    row = spark.sql("describe extended identifier(:name) as json", {"name": name}).first()
    found = json.loads(row[0]) if row is not None else {}
    created = found.get("view_creation_spark_configuration", {})
    zone = session_zone(spark)
    here = {**SQL_SETTINGS, TIME_ZONE: zone}
    for setting, value in created.items():
        means = here.get(setting, value)
        is_utc = setting == TIME_ZONE and {value, means} <= {*UTC}
        if value.casefold() != means.casefold() and not is_utc:
            message = f"the view `{name}` was created where `{setting}` was `{value}`, and goes by that"
            message += f"; here it is `{means}`"
            hint = f"create the view anew in a session in which it is `{means}`"
            if setting == TIME_ZONE:
                hint = f"use a session in which it is `{value}`, in `[engine]` of the warehouse file; or c{hint[1:]}"
            raise input_error(Code.NO_ENGINE, message, hint)
    database = ".".join(found.get("namespace", ()))
    meant = found.get("view_catalog_and_namespace", database).rpartition(".")[2].strip("`")
    if database and meant != database and names_alone(found.get("view_text", "")):
        message = (
            f"the view `{name}` was created in the database `{meant}`: names of tables without one mean that"
        )
        hint = "create the view anew, its tables named with their databases"
        raise input_error(Code.MISSING_CONTENTS, message, hint)


def _says(text: str, name: str) -> bool:
    """Whether a text has a name in it."""
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE) is not None


def _of_several(name: str, databases: Iterable[str]) -> InputError:
    message = f"`{name}` is in several databases, {' and '.join(f'`{one}`' for one in databases)}"
    hint = "a warehouse file of its own for the views of each database"
    return input_error(Code.MISSING_CONTENTS, message, hint)


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
