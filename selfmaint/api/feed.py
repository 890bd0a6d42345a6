"""An update from change feeds: the net effect of a batch of change events."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from datalog.copies import replace
from datalog.diagnostics import Diagnostic
from selfmaint.api.file.places import require_outside
from selfmaint.api.platforms.platform import platform_of
from selfmaint.api.update import Update
from selfmaint.api.update_rows import digest_of
from selfmaint.api.warehouse import Warehouse
from selfmaint.engine.memory import MemoryEngine
from selfmaint.engine.protocol import D, Engine
from selfmaint.errors import Code, InputError, input_error
from selfmaint.feeds.changes import FeedReport, RelationReport
from selfmaint.feeds.condense import condensed
from selfmaint.feeds.formats import FeedFormat, is_plain
from selfmaint.feeds.lines import Tally
from selfmaint.feeds.ranges import Bounds, End, Ends, Ranges, by_relation, position_of, ranges, shown
from selfmaint.feeds.reading import FeedReading, Wanted
from selfmaint.feeds.table import FeedTable, TableNames, feed_table
from selfmaint.warehouse.near import near_miss, require_known

if TYPE_CHECKING:
    from selfmaint.spark import DataFrame
    from selfmaint.store.frames import ArrowStream

    Feed: TypeAlias = DataFrame | ArrowStream | Iterable[Mapping[str, object]] | str | Path
    """A frame, records at hand, or the path of a file, a directory, a Delta table."""


def update_from_feed(  # noqa: PLR0913 - each is a choice of its own
    warehouse: Warehouse[D],
    feed: Feed | Mapping[str, Feed] | Mapping[str | None, Feed],
    *,
    format: str | None = None,  # noqa: A002 - what it is
    after: Ends = None,
    upto: Ends = None,
    initial_load: bool = False,
    effective: bool | None = None,
    id: str | None = None,  # noqa: A002 - what it is
) -> Update[D]:
    """The net effect of a batch of change events; see `Update.from_feed`."""
    feeds: dict[str | None, Feed] = dict(feed.items()) if isinstance(feed, Mapping) else {None: feed}
    placed = [only for only, one in feeds.items() if not is_plain(one)]
    within = ranges(_continued(warehouse, placed, after, is_named=id is not None), upto, feeds)
    named = _format(format)
    require_known([name for name in feeds if name], warehouse.catalog.relations, "base relation")
    require_known(warehouse.feeds.tables.values(), warehouse.catalog.relations, "base relation")
    paths = [str(one) for one in feeds.values() if isinstance(one, str | Path)]
    require_outside(paths, warehouse.locations)
    wanted = {only: Wanted(_names(warehouse, only), within.of(only), named, initial_load) for only in feeds}
    inserted, deleted, report = _net_effects(warehouse, feeds, wanted)
    if effective is None:
        effective = report.has_keys or warehouse.effective
    found = Update(
        cast(dict[str, D], inserted),
        cast(dict[str, D], deleted),
        effective,
        report,
        id=id,
        positions=_ends(report, feeds, within),
    )
    if warehouse.store is None:
        return found
    if found.positions:
        _require_all_placed(report)
        return found
    # Nothing else tells a feed without positions from another one.
    return replace(found, digest=digest_of(platform_of(warehouse.engine), {}, found))


def _require_all_placed(report: FeedReport) -> None:
    """Refuses changes without positions beside others: nothing would tell them from the same ones, given again."""
    for one in report.relations:
        if one.upto is None and (one.inserted or one.deleted):
            raise input_error(
                Code.FEED_UNORDERED,
                f"the changes of `{one.relation}` have no positions, and those of another feed have",
                note="of an update with positions only these tell that it was applied",
                hint="give the feed without positions by itself, as an update of its own",
            )


def _continued(warehouse: Warehouse[D], feeds: Iterable[str | None], after: Ends, *, is_named: bool) -> Ends:
    """Where the feeds begin: as is said, else where the last update that the store has ended.

    Raises:
        InputError: SM409 what is said lies before that, and no id tells the update from those that the store has.
    """
    if warehouse.store is None:
        return after
    known = warehouse.store.positions()
    said = by_relation(after)
    for name in feeds:
        its, given = known.get(name or ""), said.get(name, said.get(None))
        if its is not None and given is None:
            said[name] = its
        elif not is_named:
            _require_not_followed(known, name, given)
    return said


def _require_not_followed(known: Mapping[str, str], name: str | None, given: End) -> None:
    """Refuses a feed that begins before where the views are: that of several relations may have the same changes."""
    own = known.get(name or "")
    rivals = [
        end for feed, end in known.items() if feed in ({name or ""} if own else {""} if name else known)
    ]
    if not rivals:
        return
    last = max(rivals, key=position_of)
    message = f"the changes after `{given}` are asked for, and the views have those up to `{last}`"
    if given is None:
        message = f"the views follow another feed, up to `{last}`, which may have changes of this one"
    elif not Bounds(after=position_of(str(given))).holds(position_of(last)):
        return
    hint = "leave `--after` out: what comes next is read" if own else "say where it begins (`--after`)"
    raise input_error(
        Code.COMMITTED,
        message,
        f"{hint}; of a feed that has nothing of what the views have, or began anew with lower positions, "
        "give the update an id (`--id` of `maintain`)",
        "nothing was done: changes would be counted twice",
    )


def _ends(report: FeedReport, feeds: Iterable[str | None], within: Ranges) -> dict[str, str]:
    """Where each feed ended; under "" that of several relations. One without events is where it began."""
    begun = {name: within.after.get(name, within.after.get(None)) for name in feeds}
    found = {name or "": str(end) for name, end in begun.items() if end is not None}
    own = set(feeds)
    for one in report.relations:
        key = one.relation if one.relation in own else ""
        if one.upto is not None and (key not in found or position_of(one.upto) > position_of(found[key])):
            found[key] = one.upto
    return found


def _format(name: str | None) -> FeedFormat | None:
    known = [format_.value for format_ in FeedFormat]
    if name is None or name in known:
        return None if name is None else FeedFormat(name)
    raise input_error(Code.FEED_FORMAT, f"`{name}` is no format of feeds", near_miss(name, known, "format"))


def _names(warehouse: Warehouse[D], only: str | None) -> TableNames:
    """The relations that a feed may be of."""
    relations: dict[str, FeedTable] = {}
    for name in warehouse.catalog.relations:
        try:
            relations[name] = feed_table(warehouse.catalog, name)
        except InputError:
            if name == only:
                raise
    undeclared = frozenset(warehouse.catalog.relations) - relations.keys()
    return TableNames(relations, warehouse.feeds, only, undeclared)


def _net_effects(
    warehouse: Warehouse[D], feeds: Mapping[str | None, Feed], wanted: Mapping[str | None, Wanted]
) -> tuple[dict[str, Any], dict[str, Any], FeedReport]:
    engine: Engine[Any] = _reading(warehouse.engine)
    exchange = platform_of(engine).exchange
    inserted: dict[str, Any] = {}
    deleted: dict[str, Any] = {}
    reports: list[RelationReport] = []
    tallies: list[Tally] = []
    problems: list[Diagnostic] = []
    with tempfile.TemporaryDirectory(prefix="selfmaint-feed-") as folder:
        for only, feed in feeds.items():
            reading = FeedReading(engine, exchange, wanted[only], Path(folder))
            try:
                changes, tally = reading.read(feed)
                tallies.append(tally)
                for relation, part in changes.items():
                    _require_once(relation, deleted)
                    table = wanted[only].tables.relations[relation]
                    found = condensed(engine, exchange, part, table)
                    sizes = engine.count(found.deleted), engine.count(found.inserted)
                    deleted[relation], inserted[relation] = (
                        rows if engine is warehouse.engine else frozenset(engine.sample(rows, size))
                        for rows, size in zip((found.deleted, found.inserted), sizes, strict=True)
                    )
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


def _reading(engine: Engine[Any]) -> Engine[Any]:
    """The engine that reads feeds: for sets of rows, of which no statement can be asked, DuckDB."""
    if not isinstance(engine, MemoryEngine):
        return engine
    from selfmaint.duckdb import DuckEngine  # noqa: PLC0415 - only when it is needed

    return DuckEngine()


def _require_once(relation: str, known: Mapping[str, object]) -> None:
    if relation in known:
        raise input_error(
            Code.FEED_FORMAT,
            f"several feeds hold changes of `{relation}`",
            note="nothing orders the changes of one with those of another",
            hint="put them into one directory, or give one after the other as batches of their own",
        )


def _report(reports: list[RelationReport], tallies: list[Tally]) -> FeedReport:
    ignored = sum((Counter(tally.ignored) for tally in tallies), Counter())
    return FeedReport(tuple(reports), dict(ignored), sum(tally.outside for tally in tallies))
