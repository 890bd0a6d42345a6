"""The warehouse and the update that a command line names."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from datalog.diagnostics import Diagnostic, Severity
from selfmaint.api.file_settings import EngineKind
from selfmaint.api.load import at_snapshot, open_warehouse
from selfmaint.api.platform import engines_for, first_that_can, is_spark_active
from selfmaint.api.update import Update
from selfmaint.api.update_rows import update_files, update_from
from selfmaint.api.warehouse import Warehouse
from selfmaint.api.warehouse_file import WarehouseFile, read_warehouse_file
from selfmaint.cli.app import UsageError
from selfmaint.cli.output import Format, print_briefly, print_note, print_warnings
from selfmaint.errors import Code, input_error
from selfmaint.warehouse.near import require_known

if TYPE_CHECKING:
    from selfmaint.cross_examine.examine import CrossExamination

T = TypeVar("T")

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
    id: str | None = None
    as_of: int | str | None = None
    search_seconds: float | None = None
    search_rows: int | None = None


def update_arguments(given: Namespace) -> UpdateArguments:
    """What was given of the options `UPDATE`."""
    feeds = FeedArguments(
        tuple(given.feed), given.feed_format, tuple(given.after), tuple(given.upto), given.initial_load
    )
    return UpdateArguments(
        given.update,
        tuple(given.insert),
        tuple(given.delete),
        given.effective,
        feeds,
        given.engine,
        getattr(given, "id", None),
        getattr(given, "as_of", None),
        getattr(given, "search_seconds", None),
        getattr(given, "search_rows", None),
    )


def cross_examination(given: Namespace) -> CrossExamination | bool:
    """What was given of the options `CROSS_EXAMINE`; files are written beside the warehouse file."""
    seconds = given.cross_examine_budget
    if not given.cross_examine and seconds is None:
        return False
    from selfmaint.cross_examine.examine import SECONDS, CrossExamination  # noqa: PLC0415 - only then

    return CrossExamination(SECONDS if seconds is None else seconds, folder=given.warehouse.parent)


def _searching(file: WarehouseFile, arguments: UpdateArguments) -> WarehouseFile:
    """The file with the budget of searches that a command line gives."""
    seconds, rows = arguments.search_seconds, arguments.search_rows
    its = file.search
    its = its if seconds is None else replace(its, seconds=seconds)
    return replace(file, search=its if rows is None else replace(its, rows=rows))


def using(
    path: Path,
    arguments: UpdateArguments,
    format_: Format,
    progress: Callable[[str], None],
    use: Callable[[Warehouse[Any], Update[Any]], T],
    *,
    verify: bool = False,
) -> T:
    """What a use of the warehouse and the update gives; the warehouse is closed then.

    What can be refused without an engine is. Where no engine is named, and DuckDB refuses something, all of it is
    done again with Spark.

    Raises:
        InputError: what `load` and `read_update` raise.
        UsageError: options that make no update.
    """
    file = _searching(at_snapshot(read_warehouse_file(path), arguments.as_of), arguments)
    print_briefly(file.catalog.warnings, format_)
    if verify:
        from selfmaint.api.verify import require_sources  # noqa: PLC0415 - not where nothing is recomputed

        require_sources(file.catalog, file.relations)
    if arguments.feed != FeedArguments():
        update_of = _from_feed(file, arguments, progress)
    else:
        inserted, deleted = _parts(file, arguments)
        if not inserted and not deleted and arguments.folder is not None:
            print_warnings([_EMPTY], format_)
        update_of = partial(
            update_from, inserted=inserted, deleted=deleted, effective=arguments.effective, id=arguments.id
        )

    def run(kind: EngineKind) -> T:
        is_started = kind is EngineKind.SPARK and not is_spark_active()
        progress("starting Spark and opening the views" if is_started else "opening the views")
        alone = without_pandas() if kind is EngineKind.DUCKDB else nullcontext()
        with alone, open_warehouse(file, engine=kind) as warehouse:
            return use(warehouse, update_of(warehouse))

    return first_that_can(engines_for(file, arguments.engine), run, partial(print_note, format_))


class _NoPandas:
    """A finder of modules that has no pandas."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Nothing, for the other finders to find."""
        if name == "pandas":
            raise ModuleNotFoundError(name)


@contextmanager
def without_pandas() -> Iterator[None]:
    """Arrow and DuckDB import pandas to know its objects: a command gives them none, and that import takes long.

    NumPy is left alone: Arrow that began without it ends the process when it comes later.
    """
    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


def require_new(warehouse: Warehouse[Any], update: Update[Any]) -> None:
    """Refuses an update that the store has already.

    Raises:
        InputError: SM409.
    """
    before = None if warehouse.store is None else warehouse.store.committed(update)
    if before is not None:
        raise input_error(
            Code.COMMITTED,
            f"this update was committed before, in snapshot {before}",
            "`--as-of` looks at the state before it: `selfmaint history` lists them",
        )


def _from_feed(
    file: WarehouseFile, arguments: UpdateArguments, progress: Callable[[str], None]
) -> Callable[[Warehouse[Any]], Update[Any]]:
    """The update from change feeds."""
    given = arguments.feed
    if not given.feeds:
        raise UsageError("--feed-format, --after, --upto and --initial-load are of a --feed")
    if arguments.folder is not None or arguments.inserts or arguments.deletes:
        raise UsageError("an update is given by --feed, or by --update, --insert and --delete")
    feeds: dict[str | None, Path] = {}
    for text in given.feeds:
        relation, path = _feed_place(text, file.catalog.relations)
        if relation in feeds:
            raise UsageError(f"--feed: {relation or 'a feed without relation'!r} is given twice")
        if not path.exists():
            raise input_error(Code.MISSING_CONTENTS, f"there is no change feed `{path}`")
        feeds[relation] = path
    after, upto = _ends("after", given.after), _ends("upto", given.upto)

    def update_of(warehouse: Warehouse[Any]) -> Update[Any]:
        progress("reading the change feed")
        return Update.from_feed(
            warehouse,
            feeds,
            format=given.format,
            after=after,
            upto=upto,
            initial_load=given.initial_load,
            effective=arguments.effective,
            id=arguments.id,
        )

    return update_of


def _ends(option: str, texts: tuple[str, ...]) -> dict[str | None, str | int]:
    """The positions of `REL=POSITION`, or of a position alone, which is for all other feeds."""
    found: dict[str | None, str | int] = {}
    for text in texts:
        relation, _, position = text.rpartition("=")
        if (relation or None) in found:
            raise UsageError(f"--{option}: {relation or 'a position without relation'!r} is given twice")
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
    elif not arguments.inserts and not arguments.deletes and file.catalog.clock is None:
        raise UsageError("no update: give --update DIR, --insert and --delete REL=PATH, or --feed [REL=]PATH")
    for option, given in (("insert", arguments.inserts), ("delete", arguments.deletes)):
        for text in given:
            relation, path = split_assignment(text, relations, f"--{option}")
            require_known([relation], relations, "base relation")
            if relation in parts[option]:
                raise UsageError(f"--{option}: {relation!r} is given twice")
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
        raise UsageError(f"{option} takes REL=PATH, not {text!r}")
    return name, Path(path)
