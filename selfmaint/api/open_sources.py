"""The sources of a warehouse file, each connected to when one of its relations is first read."""

from __future__ import annotations

import os
from functools import partial

from datalog.diagnostics import Diagnostic
from selfmaint.api.columns import columns_of
from selfmaint.api.platform import Platform, expected_columns
from selfmaint.api.warehouse_file import SourceEntry, SourceKind, WarehouseFile
from selfmaint.engine.protocol import D
from selfmaint.errors import Code, SourceError
from selfmaint.fallback.settle import Readable
from selfmaint.sources.protocol import LazySource, Source


def readable(platform: Platform[D], file: WarehouseFile) -> dict[str, Readable[D]]:
    """The base relations that may be read: one source for all relations of a `[sources.NAME]`."""
    sources = {
        entry.source.name: LazySource(entry.source.name, partial(_connected, platform, file, entry.source))
        for entry in file.relations.values()
    }
    return {name: Readable(sources[entry.source.name], entry.cost) for name, entry in file.relations.items()}


def _connected(platform: Platform[D], file: WarehouseFile, source: SourceEntry) -> Source[D]:
    """The source, ready to be read.

    Raises:
        SourceError: SM401 its URL is not in the environment; SM502 the engine does not read it.
    """
    mine = {name: entry for name, entry in file.relations.items() if entry.source == source}
    columns = columns_of(file.catalog)
    if source.kind is not SourceKind.POSTGRES:
        return platform.source(source, mine, columns)
    from selfmaint.postgres.connection import TIMEOUT_S  # noqa: PLC0415 - the driver only when it is needed
    from selfmaint.postgres.source import PostgresSource  # noqa: PLC0415

    tables = {name: entry.location.text for name, entry in mine.items()}
    expected = {name: expected_columns(columns[name]) for name in mine}
    timeout_s = TIMEOUT_S if source.timeout_s is None else source.timeout_s
    return PostgresSource(source.name, url_of(source), platform.exchange, tables, expected, timeout_s)


def url_of(source: SourceEntry) -> str:
    """The URL of a source of PostgreSQL.

    Raises:
        SourceError: SM401 it is not in the environment.
    """
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
