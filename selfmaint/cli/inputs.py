"""The warehouse and the update that a command line names."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from datalog.copies import replace
from datalog.diagnostics import Diagnostic, Severity
from selfmaint.api.file.file_settings import EngineKind
from selfmaint.api.file.warehouse_file import WarehouseFile, read_warehouse_file
from selfmaint.api.load import at_snapshot, open_warehouse
from selfmaint.api.platforms.platform import engines_for, first_that_can, is_spark_active
from selfmaint.api.update import Update
from selfmaint.api.update_rows import update_files, update_from
from selfmaint.api.warehouse import Warehouse
from selfmaint.cli.app import UsageError
from selfmaint.cli.output import print_briefly, print_note, print_warnings
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


def cross_examination(given: Namespace) -> CrossExamination | bool:
    """What was given of the options `CROSS_EXAMINE`; files are written beside the warehouse file."""
    seconds = given.cross_examine_budget
    if not given.cross_examine and seconds is None:
        return False
    from selfmaint.cross_examine.examine import SECONDS, CrossExamination  # noqa: PLC0415 - only then

    return CrossExamination(SECONDS if seconds is None else seconds, folder=given.warehouse.parent)


def _searching(file: WarehouseFile, given: Namespace) -> WarehouseFile:
    """The file with the budget of searches that a command line gives."""
    asked = {"seconds": getattr(given, "search_seconds", None), "rows": getattr(given, "search_rows", None)}
    return replace(file, search=replace(file.search, **{n: v for n, v in asked.items() if v is not None}))


def using(
    path: Path,
    given: Namespace,
    progress: Callable[[str], None],
    use: Callable[[Warehouse[Any], Update[Any]], T],
    *,
    verify: bool = False,
    is_asked: bool = True,
) -> T:
    """What a use of the warehouse, and of the update that the options `UPDATE` give, gives; it is closed then.

    What can be refused without an engine is. Where no engine is named, and DuckDB refuses something, all of it is
    done again with Spark. `is_asked`: whether verdicts are what is asked for, and so what limits them.

    Raises:
        InputError: what `load` and `read_update` raise.
        UsageError: options that make no update.
    """
    format_ = given.format
    file = _searching(at_snapshot(read_warehouse_file(path), getattr(given, "as_of", None)), given)
    print_briefly(file.catalog.warnings, format_, kept_too=is_asked)
    if verify:
        from selfmaint.api.verify import require_sources  # noqa: PLC0415 - not where nothing is recomputed

        require_sources(file.catalog, file.relations)
    if given.feed or given.feed_format or given.after or given.upto or given.initial_load:
        update_of = _from_feed(file, given, progress)
    else:
        inserted, deleted = _parts(file, given)
        if not inserted and not deleted and given.update is not None:
            print_warnings([_EMPTY], format_)
        name = getattr(given, "id", None)
        update_of = partial(
            update_from, inserted=inserted, deleted=deleted, effective=given.effective, id=name
        )

    def run(kind: EngineKind) -> T:
        is_started = kind is EngineKind.SPARK and not is_spark_active()
        progress("starting Spark and opening the views" if is_started else "opening the views")
        alone = without_pandas() if kind is EngineKind.DUCKDB else nullcontext()
        with alone, open_warehouse(file, engine=kind) as warehouse:
            return use(warehouse, update_of(warehouse))

    return first_that_can(engines_for(file, given.engine), run, partial(print_note, format_))


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


def _from_feed(
    file: WarehouseFile, given: Namespace, progress: Callable[[str], None]
) -> Callable[[Warehouse[Any]], Update[Any]]:
    """The update from change feeds."""
    if not given.feed:
        raise UsageError("--feed-format, --after, --upto and --initial-load are of a --feed")
    if given.update is not None or given.insert or given.delete:
        raise UsageError("an update is given by --feed, or by --update, --insert and --delete")
    feeds: dict[str | None, Path] = {}
    for text in given.feed:
        relation, path = _feed_place(text, file.catalog.relations)
        if relation in feeds:
            named = "two feeds: say which relation each is of, `--feed RELATION=PATH`"
            raise UsageError(f"--feed: {named if relation is None else f'{relation!r} is given twice'}")
        if not path.exists():
            raise input_error(Code.MISSING_CONTENTS, f"there is no change feed `{path}`")
        feeds[relation] = path
    after, upto = _ends("after", given.after), _ends("upto", given.upto)

    def update_of(warehouse: Warehouse[Any]) -> Update[Any]:
        progress("reading the change feed")
        return Update.from_feed(
            warehouse,
            feeds,
            format=given.feed_format,
            after=after,
            upto=upto,
            initial_load=given.initial_load,
            effective=given.effective,
            id=getattr(given, "id", None),
        )

    return update_of


def _ends(option: str, texts: list[str]) -> dict[str | None, str | int]:
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


def _parts(file: WarehouseFile, given: Namespace) -> tuple[dict[str, Path], dict[str, Path]]:
    """The paths of the inserted and of the deleted rows by relation."""
    relations = file.catalog.relations
    parts: dict[str, dict[str, Path]] = {"insert": {}, "delete": {}}
    if given.update is not None:
        for part in update_files(given.update, relations):
            parts[part.part][part.relation] = part.path
    elif not given.insert and not given.delete and file.catalog.clock is None:
        raise UsageError("no update: give --update DIR, --insert and --delete REL=PATH, or --feed [REL=]PATH")
    for option, found in parts.items():
        for text in getattr(given, option):
            relation, path = split_assignment(text, relations, f"--{option}")
            require_known([relation], relations, "base relation")
            if relation in found:
                raise UsageError(f"--{option}: {relation!r} is given twice")
            if not path.exists():
                message = f"there is no `{path}` with the rows of `{relation}`"
                raise input_error(Code.MISSING_CONTENTS, message)
            found[relation] = path
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
