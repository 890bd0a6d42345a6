"""The sources of a warehouse file, each connected to when one of its relations is first read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import partial

from datalog.diagnostics import Diagnostic
from selfmaint.api.columns import columns_of
from selfmaint.api.frames import expected_columns
from selfmaint.api.warehouse_file import RelationEntry, SourceEntry, SourceKind, WarehouseFile
from selfmaint.errors import Code, SourceError
from selfmaint.fallback.settle import Readable
from selfmaint.sources.lazy import LazySource
from selfmaint.sources.protocol import Source
from selfmaint.spark import DataFrame, SparkSession
from selfmaint.spark.parquet_source import SparkSource, StoredRelation
from selfmaint.spark.postgres_connection import TIMEOUT_S
from selfmaint.spark.postgres_source import PostgresSource
from selfmaint.store.expected import Expected
from selfmaint.store.formats import Format


def readable(spark: SparkSession, file: WarehouseFile) -> dict[str, Readable[DataFrame]]:
    """The base relations that may be read: one source for all relations of a `[sources.NAME]`."""
    sources = {
        entry.source.name: LazySource(entry.source.name, partial(_connected, spark, file, entry.source))
        for entry in file.relations.values()
    }
    return {name: Readable(sources[entry.source.name], entry.cost) for name, entry in file.relations.items()}


def _connected(spark: SparkSession, file: WarehouseFile, source: SourceEntry) -> Source[DataFrame]:
    """The source, ready to be read.

    Raises:
        SourceError: SM401 it does not answer, or its URL is not in the environment.
    """
    mine = {name: entry for name, entry in file.relations.items() if entry.source == source}
    match source.kind:
        case SourceKind.POSTGRES:
            tables = {name: entry.location.text for name, entry in mine.items()}
            timeout_s = TIMEOUT_S if source.timeout_s is None else source.timeout_s
            url, expected = _url(source), _expected(file, mine)
            return PostgresSource(source.name, url, spark, tables, expected, timeout_s)
        case SourceKind.FILES | SourceKind.SPARK:
            return SparkSource(source.name, spark, _stored(file, mine))


def _stored(file: WarehouseFile, mine: Mapping[str, RelationEntry]) -> dict[str, StoredRelation]:
    columns, expected = columns_of(file.catalog), _expected(file, mine)
    return {
        name: StoredRelation(
            location=entry.location.text,
            expected=expected[name],
            format=Format.TABLE if entry.location.is_table else None,
            declared=columns[name].declared,
        )
        for name, entry in mine.items()
    }


def _expected(file: WarehouseFile, names: Iterable[str]) -> dict[str, Expected]:
    columns = columns_of(file.catalog)
    return {name: expected_columns(columns[name]) for name in names}


def _url(source: SourceEntry) -> str:
    if source.url is not None:
        return source.url
    assert source.url_env is not None
    url = os.environ.get(source.url_env, "")
    if not url:
        message = (
            f"the source `{source.name}` has no URL: the environment variable `{source.url_env}` is not set"
        )
        raise SourceError([Diagnostic(Code.SOURCE_UNREACHABLE, message, hint=f"set `{source.url_env}`")])
    return url
