"""`query`: a SELECT over the views, all of them in one state; nothing is written."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from datalog.copies import replace
from selfmaint.api.columns import Columns
from selfmaint.api.platforms.platform import platform_of
from selfmaint.api.stores.store import OpenStore, no_snapshots, snapshot_of
from selfmaint.engine.protocol import D
from selfmaint.store.stored_tables import TableFiles

if TYPE_CHECKING:
    import pyarrow as pa

    from selfmaint.api.warehouse import Warehouse


def query(warehouse: Warehouse[Any], sql: str, as_of: int | str | None = None) -> pa.Table:
    """See `Warehouse.query`."""
    with answered(warehouse, sql, as_of) as reader:
        return reader.read_all()


@contextlib.contextmanager
def answered(
    warehouse: Warehouse[D], sql: str, as_of: int | str | None = None
) -> Iterator[pa.RecordBatchReader]:
    """The same, some rows at a time; see `Warehouse.query`."""
    views = _views(warehouse, as_of)
    name = sql.strip()
    if name in views or name in warehouse.catalog.relations:
        quote = "`" if warehouse.engine.name == "spark" else '"'
        sql = f"SELECT * FROM {quote}{name.replace(quote, quote * 2)}{quote}"  # noqa: S608 - quoted
    elif re.fullmatch(r"\w+", name):  # no query has one word
        warehouse.view(name)
    with platform_of(warehouse.engine).answered(sql, views, warehouse.catalog.relations) as reader:
        yield reader


def sizes(warehouse: Warehouse[D], as_of: int | str | None = None) -> dict[str, int]:
    """For each view the number of its rows, in order of definition.

    Raises:
        InputError: see `Warehouse.query`.
    """
    platform = platform_of(warehouse.engine)
    found = {}
    for name, table in _views(warehouse, as_of).items():
        as_stored = Columns(name, (), (), declared=False, open=True)
        rows = platform.read_stored(table, as_stored) if isinstance(table, TableFiles) else table
        found[name] = platform.engine.count(rows)
    return found


def _views(warehouse: Warehouse[D], as_of: int | str | None) -> Mapping[str, TableFiles | D]:
    """The views that people see, in order of definition: of a store as they are stored at the snapshot."""
    names = [view.name for view in warehouse.catalog.views if view.name not in warehouse.catalog.helpers]
    open_ = warehouse.store
    if open_ is None:
        if as_of is not None:
            raise no_snapshots("this warehouse")
        return {name: warehouse.read(name) for name in names}
    if as_of is not None:
        open_ = _at(open_, platform_of(warehouse.engine), as_of)
    there = open_.store.catalog.tables(open_.version)
    return {name: open_.table(name) for name in names if name in there}


def _at(open_: OpenStore, platform: Any, as_of: int | str) -> OpenStore:
    """The store at another snapshot."""
    place = replace(open_.store.place, version=snapshot_of(open_.store, as_of))
    return OpenStore.at(platform, place)
