"""`selfmaint check`: the verdict on each view."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from selfmaint.api.check import check as decide
from selfmaint.api.update import Update
from selfmaint.api.warehouse import Warehouse
from selfmaint.cli.inputs import cross_examination, using
from selfmaint.cli.options import (
    AS_OF,
    BUDGET,
    CROSS_EXAMINE,
    FORMAT,
    FULL,
    SEARCH,
    UPDATE,
    VERBOSE,
    WAREHOUSE,
    repeatable,
)
from selfmaint.cli.output import (
    Format,
    feed_entry,
    print_committed,
    print_feed,
    print_json,
    print_text,
    progressing,
    reporting,
)
from selfmaint.decide.verdict import Verdicts
from selfmaint.report.verdicts import ALL_YES, status, verdicts_json, verdicts_table, would_tell

if TYPE_CHECKING:
    from selfmaint.feeds.changes import FeedReport

OPTIONS = (
    WAREHOUSE,
    *UPDATE,
    repeatable("--view", metavar="V", help="Only this view; repeatable."),
    FULL,
    BUDGET,
    *SEARCH,
    *CROSS_EXAMINE,
    AS_OF,
    VERBOSE,
    FORMAT,
)


def check(given: Namespace) -> int:
    """Says for each view whether its new state is determined without reading a base relation.

    Exit status: 0 all are, or the store has the update already; 1 some view is not; 2 bad usage or input; 3 none is
    not, but some are undecided.
    """

    def decided(opened: Warehouse[Any], change: Update[Any]) -> tuple[Verdicts, FeedReport | None] | int:
        for name in given.view:
            opened.view(name)
        before = None if opened.store is None else opened.store.committed(change)
        if before is not None:
            return before
        progress("deciding")
        found = decide(
            opened,
            change,
            given.view or None,
            full=given.full,
            budget_s=given.budget,
            cross_examine=cross_examination(given),
        )
        return found, change.feed

    with reporting(given.format), progressing() as progress:
        result = using(given.warehouse, given, progress, decided)
    if isinstance(result, int):
        print_committed(result, given.format, "verdicts")
        return ALL_YES
    verdicts, report = result
    if given.format is Format.JSON:
        print_json({"verdicts": verdicts_json(verdicts), **feed_entry(report)})
    else:
        print_feed(report)
        print_text(verdicts_table(verdicts, verbose=given.verbose))
        advice = would_tell(verdicts)
        if advice:
            print_text(advice)
    return status(verdicts.values())
