"""The sources of a warehouse file, each connected to when one of its relations is first read."""

from __future__ import annotations

import os
from functools import partial

from datalog.diagnostics import Diagnostic
from selfmaint.api.columns import columns_of
from selfmaint.api.platform import Platform
from selfmaint.api.warehouse_file import SourceEntry, WarehouseFile
from selfmaint.engine.protocol import D
from selfmaint.errors import Code, SourceError
from selfmaint.fallback.settle import Readable
from selfmaint.sources.lazy import LazySource
from selfmaint.sources.protocol import Source


def readable(platform: Platform[D], file: WarehouseFile) -> dict[str, Readable[D]]:
    """The base relations that may be read: one source for all relations of a `[sources.NAME]`."""
    sources = {
        entry.source.name: LazySource(entry.source.name, partial(_connected, platform, file, entry.source))
        for entry in file.relations.values()
    }
    return {name: Readable(sources[entry.source.name], entry.cost) for name, entry in file.relations.items()}


def _connected(platform: Platform[D], file: WarehouseFile, source: SourceEntry) -> Source[D]:
    """The source, ready to be read; see `Platform.source`."""
    mine = {name: entry for name, entry in file.relations.items() if entry.source == source}
    return platform.source(source, mine, columns_of(file.catalog))


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
