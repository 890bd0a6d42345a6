"""`build`: a warehouse from rules and frames that are at hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, overload

from datalog.copies import replace
from datalog.diagnostics import Diagnostic
from datalog.model import Program
from selfmaint.api.columns import columns_of
from selfmaint.api.file.programs import catalog_of
from selfmaint.api.platforms.platform import (
    default_engine,
    known_families,
    opened_engine,
    platform_of,
    with_counts,
)
from selfmaint.api.stored_types import StoredTypes, as_queried
from selfmaint.api.warehouse import Warehouse
from selfmaint.errors import InputError
from selfmaint.fallback.settle import Readable
from selfmaint.sources.protocol import Source
from selfmaint.warehouse.catalog import with_inexact_sums
from selfmaint.warehouse.near import require_known

if TYPE_CHECKING:
    from datalog.sql.views import SqlViews
    from selfmaint.duckdb import Relation
    from selfmaint.spark import DataFrame, SparkSession
    from selfmaint.store.frames import ArrowStream


@overload
def build(
    program: str | Program | SqlViews,
    views: Mapping[str, DataFrame | ArrowStream],
    *,
    present: Mapping[str, DataFrame | ArrowStream] | None = None,
    absent: Mapping[str, DataFrame | ArrowStream] | None = None,
    sources: Mapping[str, Source[DataFrame] | Readable[DataFrame]] | None = None,
    effective: bool = False,
    inexact_sums: bool = False,
    spark: SparkSession | None = None,
    engine: Literal["spark"],
) -> Warehouse[DataFrame]: ...


@overload
def build(
    program: str | Program | SqlViews,
    views: Mapping[str, Relation | ArrowStream],
    *,
    present: Mapping[str, Relation | ArrowStream] | None = None,
    absent: Mapping[str, Relation | ArrowStream] | None = None,
    sources: Mapping[str, Source[Relation] | Readable[Relation]] | None = None,
    effective: bool = False,
    inexact_sums: bool = False,
    spark: None = None,
    engine: Literal["duckdb"],
) -> Warehouse[Relation]: ...


@overload
def build(
    program: str | Program | SqlViews,
    views: Mapping[str, DataFrame | Relation | ArrowStream],
    *,
    present: Mapping[str, DataFrame | Relation | ArrowStream] | None = None,
    absent: Mapping[str, DataFrame | Relation | ArrowStream] | None = None,
    sources: Mapping[str, Source[Any] | Readable[Any]] | None = None,
    effective: bool = False,
    inexact_sums: bool = False,
    spark: SparkSession | None = None,
    engine: None = None,
) -> Warehouse[Any]: ...


def build(  # noqa: PLR0913 - each says another part of a warehouse
    program: str | Program | SqlViews,
    views: Mapping[str, Any],
    *,
    present: Mapping[str, Any] | None = None,
    absent: Mapping[str, Any] | None = None,
    sources: Mapping[str, Source[Any] | Readable[Any]] | None = None,
    effective: bool = False,
    inexact_sums: bool = False,
    spark: SparkSession | None = None,
    engine: Literal["spark", "duckdb"] | None = None,
) -> Warehouse[Any]:
    """A warehouse from rules and frames that are at hand.

    Args:
        program: view rules and declarations of base relations, or SQL, as text or parsed.
        views: for each view its stored rows before the update, as a frame (see `Update.from_frames`); columns are
            matched by name where the view or what it reads is declared and the names fit, else by position. A bag's
            rows stand as often as stored.
        present: partial copies: for a base relation, rows known to be in it before the update.
        absent: rows known not to be in it before the update.
        sources: where base relations may be read if need be, in the state right after the update.
        effective: whether updates are effective unless they say otherwise.
        inexact_sums: whether sums of doubles are maintained, though recomputing may give other last digits.
        spark: the session; by default the active one, else a new local one.
        engine: which engine computes; by default Spark where a session is active or given, else DuckDB.

    For rows at hand, and neither engine: `selfmaint.api.warehouse.build`.

    Raises:
        ProgramError: the program is not valid.
        InputError: SM102 a name that is no view or base relation; SM103 a view without contents; SM104
            columns that do not fit; SM105 a program that defines no views; SM501 Spark or Java is missing; SM502 what
            DuckDB would compute otherwise than Spark.
    """
    schema = with_inexact_sums(catalog_of(program)) if inexact_sums else catalog_of(program)
    columns = columns_of(schema)
    problems: list[Diagnostic] = []
    platform = platform_of(opened_engine(default_engine(engine, spark), spark))

    def fitted(given: Mapping[str, Any] | None, names: Iterable[str], kind: str) -> dict[str, Any]:
        found = {}
        for name, frame in (given or {}).items():
            try:
                require_known([name], [*names], kind)
                found[name] = platform.fit_rows(frame, columns[name])
            except InputError as error:
                problems.extend(error.diagnostics)
        return found

    stored = as_queried(platform, schema, fitted(views, [view.name for view in schema.views], "view"))
    contents = with_counts(platform, schema, stored)
    known, unknown = (fitted(given, schema.relations, "base relation") for given in (present, absent))
    problems = problems or known_families(platform, schema, contents, known, unknown).problems
    if problems:
        raise InputError(problems)
    readable = {n: s if isinstance(s, Readable) else Readable(s) for n, s in (sources or {}).items()}
    typed = replace(schema, loose=StoredTypes(platform, schema, contents, frozenset()))
    return Warehouse(typed, platform.engine, contents, known, unknown, readable, effective=effective)
