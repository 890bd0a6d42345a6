"""Which engine a warehouse is opened with: what a call or its file names, else one that reads all of it.

Where nothing is named it is Spark if a session is active, or something is only Spark's; else DuckDB, which starts no
Java process, and Spark again where DuckDB refuses something (SM502).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import TypeVar

from selfmaint.api.engine_settings import EngineKind
from selfmaint.api.warehouse_file import SourceKind, WarehouseFile
from selfmaint.errors import Code, InputError

T = TypeVar("T")


def is_spark_active() -> bool:
    """Whether a session is active in this process; PySpark, of whatever version, is not imported to find out."""
    context = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    return getattr(context, "_active_spark_context", None) is not None


def default_engine(asked: str | None = None, spark: object = None) -> EngineKind:
    """The engine for rows at hand: the one that is asked for, else Spark where there is a session."""
    if asked is not None:
        return EngineKind(asked)
    return EngineKind.SPARK if spark is not None or is_spark_active() else EngineKind.DUCKDB


def engines_for(file: WarehouseFile, asked: EngineKind | None = None) -> tuple[EngineKind, ...]:
    """The engines to try, in order: one if it is named, or something is only Spark's."""
    named = asked or file.engine.kind
    if named is not None:
        return (named,)
    if is_spark_active() or any(_of_spark(file)):
        return (EngineKind.SPARK,)
    return (EngineKind.DUCKDB, EngineKind.SPARK)


def _of_spark(file: WarehouseFile) -> Iterable[bool]:
    """What only Spark reads: tables of its catalog, other file systems."""
    entries = file.relations.values()
    places = [
        *file.views.values(),
        *(entry.location for entry in entries if entry.source.kind is SourceKind.FILES),
    ]
    places += [place for copy in file.copies.values() for place in (copy.present, copy.absent) if place]
    yield any(place.is_table or "://" in place.text for place in places)
    yield any(entry.source.kind is SourceKind.SPARK for entry in entries)


def first_that_can(
    kinds: Iterable[EngineKind],
    use: Callable[[EngineKind], T],
    told: Callable[[str], None] = lambda _: None,
) -> T:
    """What the first engine gives that does not refuse.

    Args:
        kinds: the engines, in order.
        use: what is asked of one.
        told: told why another one is asked.

    Raises:
        InputError: SM502 the last one refuses, too; SM501 there is no Spark, beside what DuckDB refused.
    """
    refusal: InputError | None = None
    for kind in kinds:
        if refusal is not None:
            told(f"Spark is used: {refusal.diagnostics[0].message}")
        try:
            return use(kind)
        except InputError as error:
            codes = {diagnostic.code for diagnostic in error.diagnostics}
            if refusal is not None and codes == {Code.NO_ENGINE}:
                raise InputError([*refusal.diagnostics, *error.diagnostics]) from error
            if codes != {Code.ENGINE_DIFFERS}:
                raise
            refusal = error
    assert refusal is not None
    raise refusal
