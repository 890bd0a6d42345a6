"""`selfmaint maintain`: every view brought up to date, reading base relations only where that is needed."""

from __future__ import annotations

import contextlib
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from selfmaint.api.apply import Written, apply
from selfmaint.api.following.not_maintained import NotMaintainedError
from selfmaint.api.following.recompute import require_not_strict
from selfmaint.api.maintain import maintain as compute
from selfmaint.api.maintained import Maintained, nothing_of_it
from selfmaint.api.update import Update
from selfmaint.api.verify import TOLERANCE
from selfmaint.api.warehouse import Warehouse
from selfmaint.canonical import copied
from selfmaint.cli.app import EndedError
from selfmaint.cli.inputs import cross_examination, using
from selfmaint.cli.options import (
    BUDGET,
    CROSS_EXAMINE,
    FORMAT,
    FULL,
    SEARCH,
    UPDATE,
    WAREHOUSE,
    option,
    switch,
)
from selfmaint.cli.output import (
    Format,
    feed_entry,
    print_committed,
    print_error,
    print_feed,
    print_json,
    print_text,
    progressing,
    reporting,
)
from selfmaint.decide.verdict import SelfMaintainable, Verdicts
from selfmaint.fallback.keyed_rows import MOST_KEYS, KeyedDelta
from selfmaint.report.maintenance import (
    Change,
    changes,
    changes_json,
    changes_table,
    differences_json,
    differences_table,
    keyed_json,
    keyed_table,
    reads_json,
    reads_table,
)
from selfmaint.report.values import Json, cell
from selfmaint.report.verdicts import ALL_YES, SOME_NO, status, verdicts_json, verdicts_table
from selfmaint.store.stored_tables import Rewritten
from selfmaint.warehouse.catalog import Catalog, GroupedView

_SOURCES_ARE_AFTER = (
    "a source with other changes gives such differences, too: "
    "it is expected right after the update, or right before it"
)


OPTIONS = (
    WAREHOUSE,
    *UPDATE,
    FULL,
    BUDGET,
    *SEARCH,
    *CROSS_EXAMINE,
    option(
        "--id", metavar="ID", help="What the store knows the update by; by default a digest of its files."
    ),
    switch("--dry-run", help="Compute everything, write nothing."),
    switch("--strict", help="Never read a base relation."),
    switch("--verify", help="Recompute every view from its sources, and compare before writing."),
    switch("--recompute", help="Recompute from its sources what can be followed in no other way."),
    option(
        "--most-keys",
        metavar="N",
        type=int,
        default=MOST_KEYS,
        help="How many keys of base rows to read by for what is not decided; 0 for none.",
    ),
    FORMAT,
)


_MOST_NAMED = 10
"""The names of so many views are written out below the table that has them."""


class _Result(Struct, frozen=True):
    """What was done, without any data."""

    found: Maintained[Any]
    changes: tuple[Change, ...]
    written: tuple[Written, ...]
    dry_run: bool
    is_inexact: bool
    snapshot: int | None
    told_by: Mapping[str, list[str]]


def maintain(given: Namespace) -> int:
    """Brings all views up to date, or none.

    Base relations are read only for the views that are not self-maintainable, and only the rows that matter.
    Exit status: 0 done; 1 a view stays undetermined, or --verify found a difference; 2 bad usage or input, or
    a source failed; 3 a view is undecided. Nothing is written unless it is 0.
    """
    with reporting(given.format):
        require_not_strict(recompute=given.recompute, strict=given.strict)

    def maintained(opened: Warehouse[Any], change: Update[Any]) -> _Result | int:
        before = None if opened.store is None else opened.store.committed(change)
        if before is not None:
            return before
        newest = None if opened.store is None else opened.store.version
        if opened.store is not None and not given.dry_run:
            opened.store.store.require_writable()
        helpers = opened.catalog.helpers
        try:
            found = compute(
                opened,
                change,
                strict=given.strict,
                verify=given.verify,
                full=given.full,
                recompute=given.recompute,
                most_keys=given.most_keys,
                budget_s=given.budget,
                cross_examine=cross_examination(given),
                progress=progress,
            )
        except NotMaintainedError as error:
            raise error.without(helpers) from None
        sizes = changes(opened, found)
        written: tuple[Written, ...] = ()
        snapshot = None
        if not given.dry_run and not found.differences:
            progress("writing")
            written = tuple(one for one in apply(opened, found) if one.name not in helpers)
            if opened.store is not None:
                snapshot = opened.store.version if opened.store.version != newest else None
                from selfmaint.api.stores.store_upkeep import compact_if_due  # noqa: PLC0415 - only where there is one

                compact_if_due(opened.store, progress)
        is_inexact = any(isinstance(v, GroupedView) and v.grouped.inexact for v in opened.catalog.views)
        told_by = _told_by(opened.catalog, found.keyed.values())
        return _Result(found, sizes, written, given.dry_run, is_inexact, snapshot, told_by)

    with reporting(given.format), refusing(given.format), progressing() as progress:
        result = using(given.warehouse, given, progress, maintained, verify=given.verify, is_asked=False)
    if isinstance(result, int):
        print_committed(result, given.format, "written")
        return ALL_YES
    _print_result(result, given.format)
    return SOME_NO if result.found.differences else ALL_YES


def _told_by(catalog: Catalog, followed: Iterable[KeyedDelta[Any]]) -> dict[str, list[str]]:
    """The relations that were read from stored views, which tell all of their rows, and these views."""
    names = {name for one in followed for name in (*one.relations, *one.whole)}
    copies = copied(catalog.apart) if names else {}
    return {
        name: list(dict.fromkeys(catalog.whole(its.name) for its in copies[name].stored))
        for name in sorted(names & copies.keys())
    }


@contextlib.contextmanager
def refusing(format_: Format) -> Iterator[None]:
    """Prints why a view is not maintained, and exits."""
    try:
        yield
    except NotMaintainedError as error:
        _print_refusal(error, format_)
        raise EndedError(status(error.verdicts.values()) or SOME_NO) from None


def _print_refusal(error: NotMaintainedError, format_: Format) -> None:
    if format_ is Format.JSON:
        print_json({"verdicts": verdicts_json(error.verdicts)})
    else:
        print_text(verdicts_table(error.verdicts))
    print_error(error, format_)


def _unsettled(verdicts: Verdicts) -> Verdicts | None:
    """The verdicts of which there is more to say than "yes", which `check` says of all; None if there are none."""
    examined = verdicts.examined
    told = {
        name: one
        for name, one in verdicts.items()
        if not isinstance(one, SelfMaintainable) or one.remarks or name in examined
    }
    return Verdicts(told, examined) if told else None


def _print_result(result: _Result, format_: Format) -> None:
    found = result.found
    if format_ is Format.JSON:
        print_json(_json(result))
        return
    print_feed(found.update.feed)
    if (told := _unsettled(found.verdicts)) is not None:
        print_text(verdicts_table(told))
    if found.reads:
        print_text(reads_table(found.reads))
    else:
        print_text("no base relation was read to maintain the views")
    if found.keyed:
        print_text(keyed_table(found.keyed.values()))
    for name, views in result.told_by.items():
        shown = ", ".join(f"`{view}`" for view in views[:-1])
        shown = f"{shown} and `{views[-1]}`" if shown else f"`{views[-1]}`"
        tell = "which tells" if len(views) == 1 else "which together tell"
        print_text(cell(f"`{name}` was read from {shown}, {tell} all of its rows"))
    print_text(changes_table(result.changes))
    if found.differences:
        print_text(differences_table(found.differences), _SOURCES_ARE_AFTER, "nothing was written")
        return
    if found.differences is not None:
        _print_verified(result)
    if result.dry_run:
        print_text("dry run: nothing was written")
    elif result.written:
        names = [entry.name for entry in result.written]
        many = f"{len(names)} views, as above"
        print_text(cell(f"written: {', '.join(names) if len(names) <= _MOST_NAMED else many}"))
        _print_rewritten([entry.rewritten for entry in result.written if entry.rewritten is not None])
    elif result.snapshot is not None:
        print_text(f"no view changed; snapshot {result.snapshot} says that the update was there")
    else:
        print_text("nothing changed, nothing was written")


def _print_verified(result: _Result) -> None:
    found = result.found
    which = f"every view but {', '.join(found.unverified)}" if found.unverified else "every view"
    near = f", sums of doubles to within {TOLERANCE:g} of their size" if result.is_inexact else ""
    print_text(cell(f"verified: recomputing {which} from its sources gives the same rows{near}"))
    if several := ", ".join(
        f"`{name}`" for name in (() if found.verified is None else found.verified.several)
    ):
        print_text(
            cell(
                f"{several}: not verified, for recomputing gave other rows where ties of an order may decide"
            )
        )
    if found.sources_before:
        print_text(cell(nothing_of_it(found.sources_before)))


def _print_rewritten(costs: Sequence[Rewritten]) -> None:
    """Says what copying on write took."""
    if costs:
        files, added = sum(one.files for one in costs), sum(one.added for one in costs)
        size = sum(one.size for one in costs)
        print_text(f"files: {files:,} rewritten, {added:,} written with {size:,} bytes")


def _rewritten_json(cost: Rewritten | None) -> dict[str, Json]:
    if cost is None:
        return {}
    return {"files_rewritten": cost.files, "files_written": cost.added, "bytes_written": cost.size}


def _json(result: _Result) -> Json:
    differences = result.found.differences
    return {
        "verdicts": verdicts_json(result.found.verdicts),
        **feed_entry(result.found.update.feed),
        "reads": reads_json(result.found.reads),
        "keyed": keyed_json(result.found.keyed.values()),
        "told_by": {name: [*views] for name, views in result.told_by.items()},
        "recomputed": list(result.found.recomputed),
        "changes": changes_json(result.changes),
        "verified": None if differences is None else not differences,
        "differences": differences_json(differences or ()),
        "unverified": None if differences is None else [*result.found.unverified],
        "sources_before": [*result.found.sources_before],
        "dry_run": result.dry_run,
        "written": [
            {"name": entry.name, "path": entry.path, **_rewritten_json(entry.rewritten)}
            for entry in result.written
        ],
    }
