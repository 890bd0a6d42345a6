"""`build`: a warehouse from rules and DataFrames that are at hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from datalog.diagnostics import Diagnostic
from datalog.model import Program
from datalog.sql.views import SqlViews
from selfmaint.api.columns import columns_of
from selfmaint.api.platform import known_families, platform_of, with_counts
from selfmaint.api.programs import catalog_of
from selfmaint.api.warehouse import Warehouse, require_known
from selfmaint.errors import InputError
from selfmaint.fallback.settle import Readable
from selfmaint.sources.protocol import Source
from selfmaint.warehouse.catalog import with_inexact_sums

if TYPE_CHECKING:
    from selfmaint.spark import DataFrame, SparkSession


def build(  # noqa: PLR0913 - each says another part of a warehouse
    program: str | Program | SqlViews,
    views: Mapping[str, DataFrame],
    *,
    present: Mapping[str, DataFrame] | None = None,
    absent: Mapping[str, DataFrame] | None = None,
    sources: Mapping[str, Source[DataFrame] | Readable[DataFrame]] | None = None,
    effective: bool = False,
    inexact_sums: bool = False,
    spark: SparkSession | None = None,
) -> Warehouse[DataFrame]:
    """A warehouse from rules and DataFrames.

    Args:
        program: view rules and declarations of base relations, or SQL, as text or parsed.
        views: for each view its stored rows before the update; columns are matched by name where the view or
            what it reads is declared and the names fit, else by position. A bag's rows stand as often as stored.
        present: partial copies: for a base relation, rows known to be in it before the update.
        absent: rows known not to be in it before the update.
        sources: where base relations may be read if need be, in the state right after the update.
        effective: whether updates are effective unless they say otherwise.
        inexact_sums: whether sums of doubles are maintained, though recomputing may give other last digits.
        spark: the session; by default the active one, else a new local one.

    Returns:
        The warehouse, with the Spark engine. For rows at hand, and no Spark: `selfmaint.api.warehouse.build`.

    Raises:
        ProgramError: the program is not valid.
        InputError: SM102 a name that is no view or base relation; SM103 a view without contents; SM104
            columns that do not fit; SM105 a program that defines no views; SM501 Spark or Java is missing.
    """
    from selfmaint.spark import SparkEngine, session  # noqa: PLC0415 - Spark only when it is needed

    schema = with_inexact_sums(catalog_of(program)) if inexact_sums else catalog_of(program)
    columns = columns_of(schema)
    problems: list[Diagnostic] = []
    platform = platform_of(SparkEngine(spark or session()))

    def fitted(given: Mapping[str, DataFrame] | None, names: list[str], kind: str) -> dict[str, DataFrame]:
        found = {}
        for name, frame in (given or {}).items():
            try:
                require_known([name], names, kind)
                found[name] = platform.fit_rows(frame, columns[name])
            except InputError as error:
                problems.extend(error.diagnostics)
        return found

    contents = with_counts(platform, schema, fitted(views, [view.name for view in schema.views], "view"))
    known = fitted(present, [*schema.relations], "base relation")
    unknown = fitted(absent, [*schema.relations], "base relation")
    if not problems:
        problems = known_families(platform, schema, contents).problems
    if problems:
        raise InputError(problems)
    readable = {n: s if isinstance(s, Readable) else Readable(s) for n, s in (sources or {}).items()}
    return Warehouse(schema, platform.engine, contents, known, unknown, readable, effective=effective)
