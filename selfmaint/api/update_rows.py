"""The rows of an update, from files or frames, with the declared columns."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from datalog.copies import replace
from datalog.diagnostics import Diagnostic
from datalog.model import Predicate, Program, Version
from selfmaint.api.columns import Columns, columns_of
from selfmaint.api.file.places import Location, require_outside
from selfmaint.api.platforms.platform import Platform, known_families, platform_of
from selfmaint.api.update import Update
from selfmaint.api.warehouse import Warehouse
from selfmaint.engine.protocol import D, Facts
from selfmaint.errors import Code, InputError, input_error
from selfmaint.store.formats import data_files
from selfmaint.store.stored_tables import ROWS
from selfmaint.warehouse.near import require_known

if TYPE_CHECKING:
    from selfmaint.store.frames import ArrowStream

SUFFIXES = ("parquet", "csv", "jsonl", "ndjson", "json")
"""What the names of an update's files end with."""
PARTS = ("insert", "delete")
"""The two parts of a relation's update, as files name them."""


class _Part(Struct, frozen=True):
    """A file of an update."""

    relation: str
    part: str
    path: Path


def from_files(
    warehouse: Warehouse[D],
    directory: str | Path | None,
    inserted: Mapping[str, str | Path],
    deleted: Mapping[str, str | Path],
    effective: bool | None,
    id: str | None = None,  # noqa: A002 - what it is
) -> Update[D]:
    """See `Update.from_files`."""
    parts = {"insert": dict(inserted), "delete": dict(deleted)}
    named = [] if directory is None else update_files(directory, warehouse.catalog.relations)
    for part in named:
        if part.relation in parts[part.part]:
            message = f"`{part.path}` and `{parts[part.part][part.relation]}` are the same part of the update"
            raise input_error(Code.WAREHOUSE_FILE, message, "put their rows into one")
        parts[part.part][part.relation] = part.path
    return update_from(warehouse, parts["insert"], parts["delete"], effective=effective, id=id)


def update_from(
    warehouse: Warehouse[D],
    inserted: Mapping[str, D | ArrowStream | str | Path] | None = None,
    deleted: Mapping[str, D | ArrowStream | str | Path] | None = None,
    *,
    effective: bool | None = None,
    id: str | None = None,  # noqa: A002 - what it is
) -> Update[D]:
    """An update from frames or paths; see `Update.from_frames` and `Update.from_files`."""
    for side, its in (("inserted", inserted), ("deleted", deleted)):
        if not isinstance(its, Mapping | None):  # callers may not be type-checked
            message = f"`{side}` is a `{type(its).__name__}`, and not a mapping from relations to rows"
            raise input_error(Code.COLUMNS_DIFFER, message, f'name the relation: `{side}={{"orders": rows}}`')
    files = _files(inserted, Version.INSERTED) | _files(deleted, Version.DELETED)
    require_outside(files.values(), warehouse.locations)
    platform = platform_of(warehouse.engine)
    fit = _fitting(platform)
    columns = columns_of(warehouse.catalog)
    problems: list[Diagnostic] = []

    def part(given: Mapping[str, D | ArrowStream | str | Path] | None) -> dict[str, D]:
        found = {}
        for relation, rows in (given or {}).items():
            try:
                require_known([relation], warehouse.catalog.relations, "base relation")
                found[relation] = fit(rows, columns[relation])
            except InputError as error:
                problems.extend(_placed(rows, diagnostic) for diagnostic in error.diagnostics)
        return found

    result = Update(
        part(inserted),
        part(deleted),
        warehouse.effective if effective is None else effective,
        files=files,
        id=id,
    )
    if not problems:
        result = _net(platform, columns, result)
    # Of frames what is not read is gone: two of them may be one only in what is left.
    is_told = all(p in files or not columns[p.name].unread for p in result.sides)
    if warehouse.store is not None and not problems and is_told:
        result = replace(result, digest=digest_of(platform, files, result))
    if not problems:
        copies = (warehouse.present, warehouse.absent)
        known = known_families(platform, warehouse.catalog, warehouse.contents, *copies)
        for rows_of in (result.inserted, result.deleted):
            for relation, rows in rows_of.items():
                known.add_rows(relation, platform.types(rows), "the update")
        problems = known.problems
    if problems:
        raise InputError(problems)
    return result


def _net(platform: Platform[D], columns: Mapping[str, Columns], update: Update[D]) -> Update[D]:
    """The update where rows of which columns alone change that are not read do not change.

    Raises:
        InputError: SM302 it need not be effective, and nobody can tell what it changes: the row that is there may
            differ in what is not read from the one that is deleted, and would stay.
    """
    inserted, deleted = {**update.inserted}, {**update.deleted}
    told = {name for name in {*inserted, *deleted} if columns[name].unread}
    sides = {
        side: rows
        for side, rows in update.sides.items()
        if side.name in told
        and not update.effective
        and (side.version is Version.DELETED or columns[side.name].twins)
    }
    for name in sorted(one.name for one in platform.engine.nonempty(Program(), tuple(sides), Facts(sides))):
        listed = ", ".join(f"`{column}`" for column in sorted(columns[name].unread))
        message = (
            f"the update of `{name}` is not said to be effective, and {listed} of the table are not read"
        )
        hint = "see that all rows deleted were there, and all inserted were not: `effective = true` in `[update]`"
        raise input_error(Code.CONTRADICTS, message, hint)
    for name in told & inserted.keys() & deleted.keys():
        inserted[name], deleted[name] = platform.engine.beyond(inserted[name], deleted[name])
    return replace(update, inserted=inserted, deleted=deleted)


def _files(
    given: Mapping[str, D | ArrowStream | str | Path] | None, version: Version
) -> dict[Predicate, str]:
    """The parts of an update that are given by path."""
    return {
        Predicate(name, version): str(rows)
        for name, rows in (given or {}).items()
        if isinstance(rows, str | Path)
    }


def digest_of(platform: Platform[D], files: Mapping[Predicate, str], update: Update[D]) -> str | None:
    """What tells an update from another: the contents of its files, the rows of its frames, and what these are of.

    None for files in other places, and for an update without rows: that is no second time of another one.
    """
    digest, name, some = hashlib.sha256(), "", False
    for predicate, frame in sorted(update.sides.items(), key=lambda entry: str(entry[0])):
        if predicate not in files:
            number, mixed = platform.digest(frame)
            name = ROWS
            if number:
                some = True
                digest.update(f"{predicate}\0{number}:{mixed}\0".encode())
            continue
        if not platform.engine.nonempty(Program(), (predicate,), Facts({predicate: frame})):
            continue
        path = files[predicate]
        parts = data_files(Path(path)) if "://" not in path else []
        if not parts:
            return None
        for part in parts:
            with part.open("rb") as rows:
                digest.update(f"{predicate}\0".encode() + hashlib.file_digest(rows, "sha256").digest())
        some = True
    return name + digest.hexdigest() if some else None


def _fitting(platform: Platform[D]) -> Callable[[D | ArrowStream | str | Path, Columns], D]:
    """What makes given rows fit columns."""

    def fit(rows: D | ArrowStream | str | Path, columns: Columns) -> D:
        if isinstance(rows, str | Path):
            text = str(rows)
            here = text if "://" in text else str(Path(text).absolute())
            return platform.read_rows(Location(here), columns)
        return platform.fit_rows(rows, columns)

    return fit


def update_files(directory: str | Path, relations: Mapping[str, object]) -> list[_Part]:
    """The files of an update by relation and part.

    Raises:
        InputError: SM101, SM102, SM103, see `Update.from_files`.
    """
    folder = Path(directory)
    if not folder.is_dir():
        raise input_error(
            Code.MISSING_CONTENTS,
            f"there is no directory `{folder}`",
            hint="an update is a directory of files `RELATION.insert.SUFFIX` and `RELATION.delete.SUFFIX`: "
            "parquet, csv or jsonl",
        )
    problems: list[Diagnostic] = []
    parts: dict[tuple[str, str], _Part] = {}
    for part in _named(folder, problems):
        try:
            require_known([part.relation], relations, "base relation")
        except InputError as error:
            problems.extend(_at(part.path, diagnostic) for diagnostic in error.diagnostics)
        earlier = parts.setdefault((part.relation, part.part), part)
        if earlier is not part:
            message = (
                f"`{earlier.path.name}` and `{part.path.name}` are the same part of the update in `{folder}`"
            )
            problems.append(Diagnostic(Code.WAREHOUSE_FILE, message, hint="put their rows into one"))
    if problems:
        raise InputError(problems)
    return list(parts.values())


def _named(folder: Path, problems: list[Diagnostic]) -> Iterator[_Part]:
    """The directory's files by what their names say; other names are problems, hidden files are none."""
    for path in sorted(folder.iterdir()):
        if path.name.startswith(("_", ".")):
            continue
        pieces = path.name.rsplit(".", 2)
        if (
            len(pieces) == len(("relation", "part", "suffix"))
            and pieces[1] in PARTS
            and pieces[2] in SUFFIXES
        ):
            yield _Part(pieces[0], pieces[1], path)
            continue
        problems.append(
            Diagnostic(
                Code.WAREHOUSE_FILE,
                f"`{path.name}` in `{folder}` is no part of an update",
                hint="name it `RELATION.insert.SUFFIX` or `RELATION.delete.SUFFIX`, "
                f"with {', '.join(f'`{s}`' for s in SUFFIXES[:3])} for the suffix, in small letters",
            )
        )


def _placed(rows: object, diagnostic: Diagnostic) -> Diagnostic:
    """The diagnostic with the file that it is about, if it says nothing of it and there is one."""
    if not isinstance(rows, str | Path):
        return diagnostic
    said = f"{diagnostic.message} {diagnostic.span.source if diagnostic.span is not None else ''}"
    return diagnostic if str(rows) in said else _at(Path(rows), diagnostic)


def _at(path: Path, diagnostic: Diagnostic) -> Diagnostic:
    """The diagnostic with the file that it is about."""
    message = f"`{path}`: {diagnostic.message}"
    return replace(diagnostic, message=message)
