"""What is said of a dbt project that can be read, and is followed less well than it could be."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from datalog.diagnostics import Diagnostic, Severity
from datalog.model import ANY, Column, Declaration, TextQuery
from datalog.sql.views import SqlViews
from selfmaint.errors import Code

SPARK = frozenset({"spark", "databricks"})
"""The adapters that compile to Spark's dialect."""
_OWN_SQL = "is_incremental"
_WRITES = re.compile(r"\s*(insert|update|delete|merge|truncate|copy|replace)\b", re.IGNORECASE)


def remarks(path: Path, adapter: str, tables: Iterable[Declaration], found: SqlViews) -> Iterator[Diagnostic]:
    """Warnings about the dialect of the models, and about the types of what they read."""
    if adapter not in SPARK:
        yield Diagnostic(
            Code.MANIFEST,
            f"the dbt manifest `{path}` was compiled for `{adapter}`; its SQL is read as Spark's",
            hint="nulls' order, divisions, casts and functions differ (`explain SM107`): compile it by Spark's adapter",
            severity=Severity.WARNING,
        )
    read = {predicate.name for view in found.views for predicate in view.reads}
    read |= {n for one in found.opaque if isinstance(one.query, TextQuery) for n in one.query.relations}
    untyped = [one.name for one in tables if one.name in read and any(map(_is_untyped, one.columns))]
    if untyped:
        names = ", ".join(f"`{name}`" for name in untyped)
        yield Diagnostic(
            Code.MANIFEST,
            f"the dbt manifest `{path}` does not say the types of columns of {names}",
            hint="views over them are followed less, and by Spark: add `data_type` to the columns in the sources' YAML",
            severity=Severity.WARNING,
        )


def more_than_sql(model: Mapping[str, Any]) -> str | None:
    """Why a model's rows may be others than those of its compiled SQL; None where they are these."""
    if _OWN_SQL in str(model.get("raw_code") or model.get("raw_sql") or ""):
        return "the model's SQL differs between a first and a later run (`is_incremental`)"
    hooks = (model.get("config") or {}).get("post-hook") or ()
    texts = [str(one.get("sql") if isinstance(one, dict) else one) for one in _listed(hooks)]
    return "a hook of the model writes rows (`post_hook`)" if any(map(_WRITES.match, texts)) else None


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _is_untyped(column: Column) -> bool:
    return column.type == ANY and column.unmodelled is None
