"""The views of a warehouse file whose definitions are in Spark's catalog: the `catalog` key."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from datalog import syntax
from datalog.model import Declaration
from datalog.sql.views import SqlText, SqlViews, read_sql
from selfmaint.api.file.file_settings import spark_settings
from selfmaint.api.file.toml_tables import TomlTable, read_text
from selfmaint.errors import Code, input_error

if TYPE_CHECKING:
    from selfmaint.spark import SparkSession


def read_catalog_key(root: TomlTable, spark: SparkSession | None) -> SqlViews | None:
    """What the session's catalog says of the views of a warehouse file; None where its keys are wrong (SM101).

    Args:
        root: the file: `catalog` names a database, whose views are those with an entry `[views.NAME]`, or lists views
            by their full names; `tables` is a file of declarations, for keys.
        spark: the session; by default the active one, else a new one with the file's settings.

    Raises:
        InputError: SM103 no such view, or no such file; SM501 Spark or Java is missing.
        ProgramError: SQL that is wrong.
    """
    names = _names(root)
    tables = root.text("tables") if "tables" in root.data else None
    if names is None or (tables is None and "tables" in root.data):
        return None
    declared = [] if tables is None else _declarations(root.file.path.parent / tables)
    from selfmaint.spark import session  # noqa: PLC0415 - Spark only when it is needed
    from selfmaint.spark.catalog_views import read_catalog_views  # noqa: PLC0415

    return read_catalog_views(spark or session(spark_settings(root)), names, declared)


def _names(root: TomlTable) -> list[str] | None:
    """The full names of the views."""
    if isinstance(root.data["catalog"], list):
        names = list(root.texts("catalog"))
        whole = len(names) == len(root.data["catalog"])
    else:
        database, views = root.text("catalog"), root.data.get("views")
        names = [] if database is None or not isinstance(views, dict) else [f"{database}.{n}" for n in views]
        whole = database is not None
    if whole and not names:
        hint = "add `[views.NAME]` for each view that is stored"
        root.file.report(("catalog",), "`catalog` names no views", hint=hint)
    return names if whole and names else None


def _declarations(path: Path) -> Iterable[Declaration]:
    """The declarations of a file of rules or of SQL."""
    text = read_text(path, "file of declarations")
    if path.suffix.lower() == ".sql":
        found = read_sql([SqlText(text, str(path))])
        views, declared = bool(found.views or found.opaque), found.declarations
    else:
        program = syntax.parse_program(text, str(path))
        views, declared = bool(program.rules or program.views), program.declarations
    if views:
        message = f"`{path}` defines views, and `tables` is for tables"
        raise input_error(
            Code.WAREHOUSE_FILE, message, "leave them out: their definitions are in the catalog"
        )
    return declared
