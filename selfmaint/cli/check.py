"""`selfmaint check`: the verdict on each view."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from selfmaint.api.check import check as decide
from selfmaint.api.update import Update
from selfmaint.api.warehouse import Warehouse
from selfmaint.cli.inputs import FeedArguments, UpdateArguments, using
from selfmaint.cli.options import (
    After,
    Budget,
    Deletes,
    Effective,
    EngineOption,
    FeedFormatName,
    Feeds,
    FormatOption,
    Full,
    InitialLoad,
    Inserts,
    UpdateFolder,
    Upto,
    WarehousePath,
)
from selfmaint.cli.output import (
    Format,
    feed_entry,
    print_feed,
    print_json,
    print_text,
    progressing,
    reporting,
)
from selfmaint.decide.verdict import Verdicts
from selfmaint.feeds.report import FeedReport
from selfmaint.report.verdicts import status, verdicts_json, verdicts_table


def check(
    warehouse: WarehousePath,
    update: UpdateFolder = None,
    insert: Inserts = None,
    delete: Deletes = None,
    view: Annotated[
        list[str] | None, typer.Option("--view", metavar="V", help="Only this view; repeatable.")
    ] = None,
    effective: Effective = None,
    feed: Feeds = None,
    feed_format: FeedFormatName = None,
    after: After = None,
    upto: Upto = None,
    initial_load: InitialLoad = False,
    full: Full = False,
    budget: Budget = None,
    engine: EngineOption = None,
    format_: FormatOption = Format.TABLE,
) -> None:
    """Says for each view whether its new state is determined without reading a base relation.

    Exit status: 0 all are; 1 some view is not; 2 bad usage or input; 3 none is not, but some are undecided.
    """
    feeds = FeedArguments(tuple(feed or ()), feed_format, tuple(after or ()), tuple(upto or ()), initial_load)
    arguments = UpdateArguments(update, tuple(insert or ()), tuple(delete or ()), effective, feeds, engine)

    def decided(opened: Warehouse[Any], change: Update[Any]) -> tuple[Verdicts, FeedReport | None]:
        progress("deciding")
        return decide(opened, change, view or None, full=full, budget_s=budget), change.feed

    with reporting(format_), progressing() as progress:
        verdicts, report = using(warehouse, arguments, format_, progress, decided)
    if format_ is Format.JSON:
        print_json({"verdicts": verdicts_json(verdicts), **feed_entry(report)})
    else:
        print_feed(report)
        print_text(verdicts_table(verdicts))
    raise typer.Exit(status(verdicts.values()))
