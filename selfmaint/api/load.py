"""`load`: a warehouse from its TOML file, its contents as DataFrames, its sources not connected to yet."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from datalog.diagnostics import Diagnostic
from datalog.model import Predicate, Version
from selfmaint.api.columns import Columns, columns_of
from selfmaint.api.fingerprint import fingerprints
from selfmaint.api.warehouse import Warehouse
from selfmaint.api.warehouse_file import Location, WarehouseFile, read_warehouse_file
from selfmaint.errors import InputError

if TYPE_CHECKING:
    from selfmaint.spark import DataFrame, SparkSession


def load(path: str | Path, spark: SparkSession | None = None) -> Warehouse[DataFrame]:
    """A warehouse from its file; see `warehouse_file` for the format.

    Use it as a context manager, so that connections and kept data are let go of:

        with load("warehouse.toml") as warehouse:
            verdicts = check(warehouse, read_update(warehouse, "update"))

    Args:
        path: the TOML file.
        spark: the session to use; by default the active one, else a new local one.

    Returns:
        The warehouse. Its views and partial copies are read when they are used; a source is connected to when
        a base relation is first read.

    Raises:
        ProgramError: the program is not valid.
        InputError: SM101 the file has unknown, missing or wrong entries, SM102 misspelt names, SM103 contents
            that are not there, SM104 columns that do not fit, SM105 a program that defines no views; all of
            one kind at once. SM501 Spark or Java is missing.
        SelfmaintError: SM405 another process is writing the views just now, SM407 a journal beside them that
            was not written for them.
    """
    return open_warehouse(read_warehouse_file(path, spark), spark)


def open_warehouse(file: WarehouseFile, spark: SparkSession | None = None) -> Warehouse[DataFrame]:
    """The warehouse that a warehouse file describes; see `load`."""
    from selfmaint.api.open_sources import readable  # noqa: PLC0415 - Spark only when it is needed
    from selfmaint.spark import SparkEngine, session  # noqa: PLC0415
    from selfmaint.store.write import recover  # noqa: PLC0415

    local = [*_locations(file).values(), *_copy_locations(file).values()]
    recover([Path(path) for path in local])
    engine = SparkEngine(spark or session())
    marks = fingerprints(local)
    columns = columns_of(file.catalog)
    contents, present, absent = _contents(engine.spark, file, columns)
    return Warehouse(
        catalog=file.catalog,
        engine=engine,
        contents=contents,
        present=present,
        absent=absent,
        readable=readable(engine.spark, file),
        locations=_locations(file),
        copy_locations=_copy_locations(file),
        effective=file.effective,
        fingerprints=marks,
        feeds=file.feeds,
        budget_s=file.budget_s,
    )


def _contents(
    spark: SparkSession, file: WarehouseFile, columns: Mapping[str, Columns]
) -> tuple[dict[str, DataFrame], dict[str, DataFrame], dict[str, DataFrame]]:
    """The rows of the views and of both kinds of partial copies; what is wrong with any is raised at once."""
    from selfmaint.api.frames import families, known_families, read_rows, with_counts  # noqa: PLC0415 - Spark only now

    problems: list[Diagnostic] = []

    def read(locations: Mapping[str, Location | None]) -> dict[str, DataFrame]:
        found = {}
        for name, location in locations.items():
            if location is not None:
                try:
                    found[name] = read_rows(spark, location, columns[name])
                except InputError as error:
                    problems.extend(error.diagnostics)
        return found

    views = read({view.name: file.views[view.name] for view in file.catalog.views})
    present = read({name: entry.present for name, entry in file.copies.items()})
    absent = read({name: entry.absent for name, entry in file.copies.items()})
    if not problems:
        known = known_families(file.catalog, views)
        for copies in (present, absent):
            for name, rows in copies.items():
                known.add_rows(name, families(rows), "the partial copy")
        problems = known.problems
    if problems:
        raise InputError(problems)
    return with_counts(file.catalog, views), present, absent


def _locations(file: WarehouseFile) -> dict[str, str]:
    """Where the views are that can be written: local files."""
    return {name: place.text for name, place in file.views.items() if _is_local(place)}


def _copy_locations(file: WarehouseFile) -> dict[Predicate, str]:
    found = {}
    for name, entry in file.copies.items():
        for version, place in ((Version.PRESENT, entry.present), (Version.ABSENT, entry.absent)):
            if place is not None and _is_local(place):
                found[Predicate(name, version)] = place.text
    return found


def _is_local(place: Location) -> bool:
    return not place.is_table and "://" not in place.text
