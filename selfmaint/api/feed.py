"""An update from change feeds: the net effect of a batch of change events."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from datalog.diagnostics import Diagnostic
from selfmaint.api.feed_records import records_changes
from selfmaint.api.overlaps import require_outside
from selfmaint.api.update import Update
from selfmaint.api.warehouse import Warehouse
from selfmaint.engine.memory import MemoryEngine
from selfmaint.engine.protocol import D
from selfmaint.errors import Code, InputError, input_error
from selfmaint.feeds.formats import FeedFormat
from selfmaint.feeds.lines import Tally
from selfmaint.feeds.memory import net_effect
from selfmaint.feeds.positions import shown
from selfmaint.feeds.ranges import Ends, Ranges, ranges
from selfmaint.feeds.report import FeedReport, RelationReport
from selfmaint.feeds.table import FeedTable, feed_table
from selfmaint.feeds.table_names import TableNames
from selfmaint.warehouse.near import near_miss, require_known

if TYPE_CHECKING:
    from selfmaint.spark import DataFrame

    Feed: TypeAlias = DataFrame | Iterable[Mapping[str, object]] | str | Path
    """A DataFrame, records at hand (for the memory engine), or the path of a file, a directory, a Delta table."""


@dataclass(frozen=True, slots=True)
class _Request:
    """How feeds are to be read."""

    named: FeedFormat | None
    within: Ranges
    initial_load: bool


def update_from_feed(
    warehouse: Warehouse[D],
    feed: Feed | Mapping[str, Feed] | Mapping[str | None, Feed],
    *,
    format: str | None = None,  # noqa: A002 - what it is
    after: Ends = None,
    upto: Ends = None,
    initial_load: bool = False,
    effective: bool | None = None,
) -> Update[D]:
    """The net effect of a batch of change events; see `Update.from_feed`."""
    feeds: dict[str | None, Feed] = dict(feed.items()) if isinstance(feed, Mapping) else {None: feed}
    request = _Request(_format(format), ranges(after, upto, feeds), initial_load)
    require_known([name for name in feeds if name], warehouse.catalog.relations, "base relation")
    _require_mapped(warehouse)
    paths = [str(one) for one in feeds.values() if isinstance(one, str | Path)]
    require_outside(paths, warehouse.locations)
    if warehouse.engine.name == "duckdb":
        message = "change feeds are not read with the engine `duckdb`"
        raise input_error(Code.ENGINE_DIFFERS, message, "use the Spark engine")
    if isinstance(warehouse.engine, MemoryEngine):
        inserted, deleted, report = _in_memory(warehouse, feeds, request)
    else:
        inserted, deleted, report = _on_spark(warehouse, feeds, request)
    if effective is None:
        effective = report.has_keys or warehouse.effective
    return Update(cast(dict[str, D], inserted), cast(dict[str, D], deleted), effective, report)


_Parts = tuple[dict[str, Any], dict[str, Any], FeedReport]


def _format(name: str | None) -> FeedFormat | None:
    known = [format_.value for format_ in FeedFormat]
    if name is None or name in known:
        return None if name is None else FeedFormat(name)
    raise input_error(Code.FEED_FORMAT, f"`{name}` is no format of feeds", near_miss(name, known, "format"))


def _require_mapped(warehouse: Warehouse[D]) -> None:
    require_known(warehouse.feeds.tables.values(), warehouse.catalog.relations, "base relation")


def _names(warehouse: Warehouse[D], only: str | None) -> TableNames:
    """The relations that a feed may be of.

    Raises:
        InputError: SM104 it is said to be of one whose columns are not declared.
    """
    relations: dict[str, FeedTable] = {}
    for name in warehouse.catalog.relations:
        try:
            relations[name] = feed_table(warehouse.catalog, name)
        except InputError:
            if name == only:
                raise
    undeclared = frozenset(warehouse.catalog.relations) - relations.keys()
    return TableNames(relations, warehouse.feeds, only, undeclared)


def _in_memory(warehouse: Warehouse[D], feeds: Mapping[str | None, Feed], request: _Request) -> _Parts:
    inserted: dict[str, Any] = {}
    deleted: dict[str, Any] = {}
    reports: list[RelationReport] = []
    tallies: list[Tally] = []
    for only, feed in feeds.items():
        names = _names(warehouse, only)
        changes, tally = records_changes(
            cast("str | Path | Iterable[Mapping[str, object]]", feed),
            names,
            request.named,
            request.within.of(only),
            initial_load=request.initial_load,
        )
        tallies.append(tally)
        for relation, events in changes.items():
            _require_once(relation, deleted)
            table = names.relations[relation]
            found = net_effect(events.changes, table)
            inserted[relation], deleted[relation] = found.inserted, found.deleted
            last = max((c.position for c in events.changes if c.scale.has_range), default=None)
            reports.append(
                RelationReport(
                    relation,
                    events.count,
                    events.count - found.events,
                    len(found.deleted),
                    len(found.inserted),
                    None if last is None else shown(last),
                    table.key is not None,
                )
            )
    return inserted, deleted, _report(reports, tallies)


def _on_spark(warehouse: Warehouse[D], feeds: Mapping[str | None, Feed], request: _Request) -> _Parts:
    from selfmaint.spark import DataFrame, SparkEngine  # noqa: PLC0415 - Spark only when it is needed
    from selfmaint.spark.feeds.condense import condensed  # noqa: PLC0415
    from selfmaint.spark.feeds.read import FeedReading  # noqa: PLC0415

    engine = warehouse.engine
    assert isinstance(engine, SparkEngine)
    inserted: dict[str, Any] = {}
    deleted: dict[str, Any] = {}
    reports: list[RelationReport] = []
    tallies: list[Tally] = []
    problems: list[Diagnostic] = []
    with tempfile.TemporaryDirectory(prefix="selfmaint-feed-") as folder:
        for only, feed in feeds.items():
            names = _names(warehouse, only)
            reading = FeedReading(
                engine.spark,
                names,
                request.within.of(only),
                request.named,
                request.initial_load,
                Path(folder),
            )
            try:
                changes, tally = reading.read(feed if isinstance(feed, DataFrame) else Path(str(feed)))
                tallies.append(tally)
                for relation, frame in changes.items():
                    _require_once(relation, deleted)
                    table = names.relations[relation]
                    found = condensed(frame, table)
                    inserted[relation], deleted[relation] = (
                        engine.keep(found.inserted),
                        engine.keep(found.deleted),
                    )
                    sizes = engine.count(deleted[relation]), engine.count(inserted[relation])
                    last = None if found.upto is None else shown(found.upto)
                    reports.append(
                        RelationReport(
                            relation, found.events, found.repeated, *sizes, last, table.key is not None
                        )
                    )
            except InputError as error:
                problems.extend(error.diagnostics)
    if problems:
        raise InputError(problems)
    return inserted, deleted, _report(reports, tallies)


def _require_once(relation: str, known: Mapping[str, object]) -> None:
    if relation in known:
        raise input_error(
            Code.FEED_FORMAT,
            f"several feeds hold changes of `{relation}`",
            note="nothing orders the changes of one with those of another",
            hint="put them into one directory, or give one after the other as batches of their own",
        )


def _report(reports: list[RelationReport], tallies: list[Tally]) -> FeedReport:
    ignored: dict[Any, int] = {}
    for tally in tallies:
        for kind, times in tally.ignored.items():
            ignored[kind] = ignored.get(kind, 0) + times
    return FeedReport(tuple(reports), ignored, sum(tally.outside for tally in tallies))
