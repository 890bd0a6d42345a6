"""The warehouse and the update that a command line names."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from datalog.diagnostics import Diagnostic, Severity
from selfmaint.api.engine_settings import EngineKind
from selfmaint.api.load import open_warehouse
from selfmaint.api.update import Update
from selfmaint.api.update_rows import update_files, update_from
from selfmaint.api.warehouse import Warehouse
from selfmaint.api.warehouse_file import WarehouseFile, read_warehouse_file
from selfmaint.cli.output import Format, print_warnings
from selfmaint.errors import Code, input_error
from selfmaint.warehouse.near import require_known

_EMPTY = Diagnostic(
    Code.WAREHOUSE_FILE,
    "the update is empty: its directory has no file `RELATION.insert.SUFFIX` or `RELATION.delete.SUFFIX`",
    severity=Severity.WARNING,
)


@dataclass(frozen=True, slots=True)
class FeedArguments:
    """How a command line gives change feeds."""

    feeds: tuple[str, ...] = ()
    format: str | None = None
    after: tuple[str, ...] = ()
    upto: tuple[str, ...] = ()
    initial_load: bool = False


@dataclass(frozen=True, slots=True)
class UpdateArguments:
    """How a command line gives an update: a directory, single files, or both; or change feeds."""

    folder: Path | None
    inserts: tuple[str, ...]
    deletes: tuple[str, ...]
    effective: bool | None
    feed: FeedArguments = FeedArguments()
    engine: EngineKind | None = None


@contextlib.contextmanager
def opened(
    path: Path,
    arguments: UpdateArguments,
    format_: Format,
    progress: Callable[[str], None],
    *,
    verify: bool = False,
) -> Iterator[tuple[Warehouse[Any], Update[Any]]]:
    """The warehouse and the update; the warehouse is closed at the end. What can be refused without Spark is.

    Raises:
        InputError: what `load` and `read_update` raise.
        typer.BadParameter: options that make no update.
    """
    file = read_warehouse_file(path)
    print_warnings(file.catalog.warnings, format_)
    if verify:
        from selfmaint.api.verify import require_sources  # noqa: PLC0415 - not where nothing is recomputed

        require_sources(file.catalog, file.relations)
    if arguments.feed != FeedArguments():
        with _from_feed(file, arguments, progress) as opened_:
            yield opened_
        return
    inserted, deleted = _parts(file, arguments)
    if not inserted and not deleted:
        print_warnings([_EMPTY], format_)
    progress(_opening(file, arguments))
    with open_warehouse(file, engine=arguments.engine) as warehouse:
        yield warehouse, update_from(warehouse, inserted, deleted, effective=arguments.effective)


def _opening(file: WarehouseFile, arguments: UpdateArguments) -> str:
    """What is done first."""
    is_spark = (arguments.engine or file.engine.kind) is EngineKind.SPARK
    return "starting Spark and opening the views" if is_spark else "opening the views"


@contextlib.contextmanager
def _from_feed(
    file: WarehouseFile, arguments: UpdateArguments, progress: Callable[[str], None]
) -> Iterator[tuple[Warehouse[Any], Update[Any]]]:
    """The warehouse, and the update from change feeds."""
    given = arguments.feed
    if not given.feeds:
        raise typer.BadParameter("--feed-format, --after, --upto and --initial-load are of a --feed")
    if arguments.folder is not None or arguments.inserts or arguments.deletes:
        raise typer.BadParameter("an update is given by --feed, or by --update, --insert and --delete")
    feeds: dict[str | None, Path] = {}
    for text in given.feeds:
        relation, path = _feed_place(text, file.catalog.relations)
        if relation in feeds:
            raise typer.BadParameter(f"--feed: {relation or 'a feed without relation'!r} is given twice")
        if not path.exists():
            raise input_error(Code.MISSING_CONTENTS, f"there is no change feed `{path}`")
        feeds[relation] = path
    ends = {option: _ends(option, texts) for option, texts in (("after", given.after), ("upto", given.upto))}
    progress(_opening(file, arguments))
    with open_warehouse(file, engine=arguments.engine) as warehouse:
        progress("reading the change feed")
        yield (
            warehouse,
            Update.from_feed(
                warehouse,
                feeds,
                format=given.format,
                **ends,
                initial_load=given.initial_load,
                effective=arguments.effective,
            ),
        )


def _ends(option: str, texts: tuple[str, ...]) -> dict[str | None, str | int]:
    """The positions of `REL=POSITION`, or of a position alone, which is for all other feeds."""
    found: dict[str | None, str | int] = {}
    for text in texts:
        relation, _, position = text.rpartition("=")
        if (relation or None) in found:
            raise typer.BadParameter(
                f"--{option}: {relation or 'a position without relation'!r} is given twice"
            )
        found[relation or None] = position
    return found


def _feed_place(text: str, relations: Mapping[str, object]) -> tuple[str | None, Path]:
    """The relation and the path of `REL=PATH`, or a path alone, which may hold `=` if there is something there."""
    if "=" not in text or Path(text).exists():
        return None, Path(text)
    relation, path = split_assignment(text, relations, "--feed")
    require_known([relation], relations, "base relation")
    return relation, path


def _parts(file: WarehouseFile, arguments: UpdateArguments) -> tuple[dict[str, Path], dict[str, Path]]:
    """The paths of the inserted and of the deleted rows by relation."""
    relations = file.catalog.relations
    parts: dict[str, dict[str, Path]] = {"insert": {}, "delete": {}}
    if arguments.folder is not None:
        for part in update_files(arguments.folder, relations):
            parts[part.part][part.relation] = part.path
    elif not arguments.inserts and not arguments.deletes:
        raise typer.BadParameter(
            "no update: give --update DIR, --insert and --delete REL=PATH, or --feed [REL=]PATH"
        )
    for option, given in (("insert", arguments.inserts), ("delete", arguments.deletes)):
        for text in given:
            relation, path = split_assignment(text, relations, f"--{option}")
            require_known([relation], relations, "base relation")
            if relation in parts[option]:
                raise typer.BadParameter(f"--{option}: {relation!r} is given twice")
            if not path.exists():
                message = f"there is no `{path}` with the rows of `{relation}`"
                raise input_error(Code.MISSING_CONTENTS, message)
            parts[option][relation] = path
    return parts["insert"], parts["delete"]


def split_assignment(text: str, relations: Mapping[str, object], option: str) -> tuple[str, Path]:
    """The two sides of `REL=PATH`; the name of a known relation may hold `=`.

    >>> split_assignment("a=b=c.csv", {"a=b": None}, "--insert")
    ('a=b', PosixPath('c.csv'))
    """
    known = [name for name in relations if text.startswith(f"{name}=")]
    name = max(known, key=len) if known else text.partition("=")[0]
    path = text[len(name) + 1 :]
    if not name or not path:
        raise typer.BadParameter(f"{option} takes REL=PATH, not {text!r}")
    return name, Path(path)
