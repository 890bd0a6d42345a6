"""`selfmaint init`, `import`, `history`, `undo` and `compact`: the store in which a warehouse keeps its views."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Collection, Iterable
from functools import partial
from pathlib import Path

from rich.table import Table

from selfmaint.api.file.warehouse_file import read_warehouse_file
from selfmaint.api.stores.store_upkeep import compact as compact_store
from selfmaint.api.stores.store_upkeep import history as states_of
from selfmaint.api.stores.store_upkeep import init as fill
from selfmaint.api.stores.store_upkeep import origins_in, undone
from selfmaint.cli.app import UsageError
from selfmaint.cli.options import ENGINE, FORMAT, WAREHOUSE, number, option, repeatable, state, switch
from selfmaint.cli.output import Format, print_json, print_note, print_text, progressing, reporting
from selfmaint.errors import Code, input_error
from selfmaint.report.values import Json, cell
from selfmaint.store.stored_tables import Occupied, Snapshot

_ORIGINS = repeatable(
    "--from",
    metavar="[VIEW=]PATH",
    help="The files that hold a view's rows, `table:NAME` for a table of Spark's catalog, or a folder of files named "
    "as the views; may be repeated. Other views are computed from their sources.",
)

OPTIONS = {
    "init": (WAREHOUSE, _ORIGINS, ENGINE, FORMAT),
    "import": (
        WAREHOUSE,
        repeatable(
            "--view", metavar="V", help="Only this view, and those that read it; repeatable. By default all."
        ),
        repeatable(
            "--keep",
            metavar="V",
            help="The stored rows of this view stay: its new definition has the same rows; repeatable.",
        ),
        _ORIGINS,
        ENGINE,
        FORMAT,
    ),
    "history": (WAREHOUSE, FORMAT),
    "undo": (
        WAREHOUSE,
        option(
            "--to",
            metavar="SNAPSHOT",
            type=state,
            help="This state, or the id of the update that made it; by default that before the last update.",
        ),
        FORMAT,
    ),
    "compact": (
        WAREHOUSE,
        option(
            "--keep-days",
            metavar="DAYS",
            type=number("a number of days", 0, 36_500),
            default=7.0,
            help="Let go of states that are older; by default 7.",
        ),
        switch("--keep-all", help="Let go of no state."),
        switch("--dry-run", help="Only say what the files take up."),
        FORMAT,
    ),
}


def init(given: Namespace) -> int:
    """Makes the store of a warehouse, with the contents of all views.

    It is there as a whole, or not at all. Exit status: 0 done; 2 bad usage or input, or a source failed.
    """
    return _filled(given, None)


def import_(given: Namespace) -> int:
    """Brings views into the store anew.

    All of them are replaced in one transaction. Exit status: 0 done; 2 bad usage or input, or a source failed.
    """
    with reporting(given.format):
        every = [view.name for view in read_warehouse_file(given.warehouse).catalog.views]
    return _filled(given, given.view or ([] if given.keep else every), given.keep)


def _filled(given: Namespace, views: Collection[str] | None, keep: Collection[str] = ()) -> int:
    with reporting(given.format), progressing() as progress:
        origins = _origins(given)
        told = partial(print_note, given.format)
        sizes = fill(
            given.warehouse,
            origins=origins,
            views=views,
            keep=keep,
            engine=given.engine,
            progress=progress,
            told=told,
        )
    if given.format is Format.JSON:
        print_json({"tables": dict(sizes)})
        return 0
    table = Table("table", "rows", "from")
    for name, rows in sizes.items():
        table.add_row(cell(name), f"{rows:,}", cell(str(origins.get(name, "its sources"))))
    for name in keep:
        table.add_row(cell(name), "as before", "the store")
    print_text(table)
    return 0


def _origins(given: Namespace) -> dict[str, str | Path]:
    """The origins of views: those of folders first, single ones go before them."""
    found: dict[str, str | Path] = {}
    names = _names(given.warehouse)
    single: dict[str, str | Path] = {}
    for text in getattr(given, "from"):
        name, _, where = text.partition("=")
        if where and not Path(text).exists():
            if name in single:
                raise UsageError(f"--from: {name!r} is given twice")
            single[name] = where
        elif Path(text).is_dir():
            found.update(origins_in(Path(text), names))
        else:
            raise input_error(Code.MISSING_CONTENTS, f"`--from {text}`: there is no such folder")
    return {**found, **single}


def _names(warehouse: Path) -> list[str]:
    file = read_warehouse_file(warehouse)
    copies = [f"{name}@{part}" for name in file.copies for part in ("present", "absent")]
    return [*(view.name for view in file.catalog.views), *copies]


def history(given: Namespace) -> int:
    """Lists the states of the store: which update made each, and what changed.

    Exit status: 0; 2 bad usage or input.
    """
    with reporting(given.format):
        found = states_of(given.warehouse)
    if given.format is Format.JSON:
        print_json({"snapshots": [_snapshot_json(one) for one in found]})
        return 0
    table = Table("snapshot", "at", "what", "update", "rows lost and gained", "files", "bytes")
    for some in _together(found):
        one, said = some[-1], some[-1].said
        changed = "" if said is None else _changes(said.changes or {})
        what, update = ("upkeep", "") if said is None else (said.kind, said.about)
        at = one.at.isoformat(sep=" ", timespec="seconds")
        number = str(one.version) if len(some) == 1 else f"{some[0].version} to {one.version}"
        files, size = sum(its.files for its in some), sum(its.size for its in some)
        table.add_row(number, at, what, cell(update), cell(changed), str(files), f"{size:,}")
    print_text(table)
    return 0


def _together(found: Iterable[Snapshot]) -> list[list[Snapshot]]:
    """Snapshots, those of upkeep that follow each other together: the views' rows are the same in all of these."""
    together: list[list[Snapshot]] = []
    for one in found:
        if together and one.said is None and together[-1][-1].said is None:
            together[-1].append(one)
        else:
            together.append([one])
    return together


def _changes(changes: dict[str, tuple[int, int]]) -> str:
    return ", ".join(f"{name} -{lost} +{gained}" for name, (lost, gained) in changes.items())


def _snapshot_json(one: Snapshot) -> Json:
    said = one.said
    return {
        "snapshot": one.version,
        "at": one.at.isoformat(),
        "what": None if said is None else said.kind,
        "update": None if said is None else said.update,
        "given": None if said is None else said.given,
        "positions": None if said is None or said.positions is None else dict(said.positions),
        "changes": {}
        if said is None
        else {n: {"lost": a, "gained": b} for n, (a, b) in (said.changes or {}).items()},
        "files": one.files,
        "bytes": one.size,
    }


def undo(given: Namespace) -> int:
    """Puts the contents of all views back to what they were before the last update.

    They are committed as a new state, so that nothing is lost: `undo --to` leads to any other. The sources are not
    changed. Exit status: 0 done; 2 bad usage or input.
    """
    with reporting(given.format), progressing() as progress:
        progress("undoing")
        old, new, updates = undone(given.warehouse, given.to)
    if given.format is Format.JSON:
        print_json({"returned_to": old.version, "snapshot": new, "undone": list(updates)})
    else:
        at = old.at.isoformat(sep=" ", timespec="seconds")
        print_text(f"snapshot {new} has the contents of snapshot {old.version}, of {at}")
        if updates:
            print_text(cell(f"taken back: {', '.join(updates)}"))
    return 0


def compact(given: Namespace) -> int:
    """Writes the store's files anew where that saves reading, and lets go of old states.

    Exit status: 0 done; 2 bad usage or input.
    """
    with reporting(given.format), progressing() as progress:
        progress("compacting")
        keep = None if given.keep_all else given.keep_days
        before, after = compact_store(given.warehouse, keep_days=keep, dry_run=given.dry_run)
    if given.format is Format.JSON:
        print_json(
            {"before": _occupied_json(before), "after": _occupied_json(after), "dry_run": given.dry_run}
        )
        return 0
    table = Table("", "files", "bytes", "deleted rows in them", "files of all states", "bytes of all states")
    for name, one in [("now", after)] if given.dry_run else [("before", before), ("after", after)]:
        sizes = (one.files, one.size, one.deleted, one.all_files, one.all_size)
        table.add_row(name, *(f"{size:,}" for size in sizes))
    print_text(table)
    return 0


def _occupied_json(one: Occupied) -> Json:
    return {
        "files": one.files,
        "bytes": one.size,
        "deleted_rows": one.deleted,
        "all_files": one.all_files,
        "all_bytes": one.all_size,
    }
