"""What is read and written with an engine: stored rows, given rows, sources. One implementation an engine.

Contents and updates are checked in the same way, with the same errors, whatever engine reads them.

Which engine that is: what a call or the warehouse file names, else one that reads all of it. Where nothing is named it
is Spark if a session is active, or something is only Spark's; else DuckDB, which starts no Java process, and Spark
again where DuckDB refuses something (SM502).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from datalog.model import ColumnType
from datalog.sql_settings import TIME_ZONE, UTC
from selfmaint.api.columns import Columns
from selfmaint.api.families import Families, of_views
from selfmaint.api.file.file_settings import EngineKind, EngineSettings
from selfmaint.api.file.warehouse_file import SourceKind, WarehouseFile
from selfmaint.errors import Code, InputError, input_error
from selfmaint.store.expected import Expected
from selfmaint.store.place import LakePlace
from selfmaint.warehouse.catalog import Catalog

if TYPE_CHECKING:
    import pyarrow as pa

    from selfmaint.api.file.places import Location
    from selfmaint.api.file.warehouse_file import RelationEntry, SourceEntry
    from selfmaint.duckdb import Relation
    from selfmaint.duckdb.database import Database
    from selfmaint.duckdb.store import Store
    from selfmaint.engine.protocol import Engine
    from selfmaint.sources.protocol import Source
    from selfmaint.spark import SparkSession
    from selfmaint.store.exchange import Exchange
    from selfmaint.store.frames import ArrowStream
    from selfmaint.store.stored_tables import TableChange, TableFiles
    from selfmaint.store.write import Write


D = TypeVar("D")


class TableWrites(Protocol):
    """Statements that are ready to run."""

    def run(self) -> None:
        """Changes one table after the other.

        Raises:
            SelfmaintError: SM405 one cannot be changed; which have changed is said.
        """
        ...


class Platform(Protocol[D]):
    """An engine, with what it reads from and writes to."""

    @property
    def engine(self) -> Engine[D]:
        """The engine."""
        ...

    def read_rows(self, location: Location, columns: Columns) -> D:
        """Stored rows, columns matched by name where they are declared, else by name or position.

        Raises:
            InputError: SM103 nothing is stored there; SM104 other columns or types; SM502 what another engine reads.
        """
        ...

    @property
    def store_database(self) -> Database:
        """What a store is read and written with."""
        ...

    def read_stored(self, table: TableFiles, columns: Columns) -> D:
        """The rows of a table of a store, columns matched by name.

        Raises:
            InputError: SM104 other columns or types.
        """
        ...

    def in_store(self, store: Store, rows: D, folder: Path) -> Relation:
        """Rows, held, as a relation of the store's database.

        `folder` is where files may lie until the store has the rows; whoever writes some makes it.

        Raises:
            InputError: SM405 what Spark's executors wrote is not all there.
        """
        ...

    def answered(
        self, query: str, views: Mapping[str, TableFiles | D], bases: Collection[str]
    ) -> AbstractContextManager[pa.RecordBatchReader]:
        """What a query gives that reads nothing but some views; `bases` are relations of which nothing is kept.

        Raises:
            InputError: SM102 it reads something else; SM108 it is no SELECT, or cannot be run. So may reading the rows.
        """
        ...

    def fit_rows(self, rows: D | ArrowStream, columns: Columns) -> D:
        """Given rows, columns matched by name where they are declared, else by name or position.

        Raises:
            InputError: SM104 other columns or types, or nothing that offers an Arrow stream.
        """
        ...

    def digest(self, rows: D) -> tuple[int, str]:
        """How many rows there are, and what tells them from others that this engine reads, in whatever order."""
        ...

    def types(self, rows: D) -> tuple[ColumnType, ...]:
        """The type of each column; `any` where the language has no such type."""
        ...

    def retyped(self, rows: D, types: Sequence[ColumnType]) -> D:
        """The rows with other types; a value that is not of its new one is an error."""
        ...

    def counted(self, rows: D, names: Sequence[str]) -> D:
        """The rows of a bag as counted rows, under new names."""
        ...

    def source(
        self, entry: SourceEntry, relations: Mapping[str, RelationEntry], columns: Mapping[str, Columns]
    ) -> Source[D]:
        """A source of files, or of tables of a catalog.

        Raises:
            SourceError: SM502 tables of a catalog that the engine has not.
        """
        ...

    @property
    def exchange(self) -> Exchange[D]:
        """How rows enter the engine and leave it."""
        ...

    def writing(self, rows: D) -> Write:
        """What writes rows into files."""
        ...

    def table_writes(self, changes: Sequence[TableChange[D]]) -> AbstractContextManager[TableWrites]:
        """What changes tables of the catalog when it is told to; nothing is written before.

        Raises:
            InputError: SM405 a table's format cannot do it.
        """
        ...


def opened_engine(
    kind: EngineKind, spark: SparkSession | None = None, settings: EngineSettings | None = None
) -> Engine[Any]:
    """An engine, ready to be used.

    By default it has the active session, else a new local one.

    Raises:
        InputError: SM501 Spark or Java is missing, Spark does not start, or the session is one of Spark Connect.
    """
    given = settings or EngineSettings()
    if kind is EngineKind.DUCKDB:
        from selfmaint.duckdb import DuckEngine  # noqa: PLC0415 - DuckDB only when it is needed

        return DuckEngine(given.options)
    from selfmaint.spark import SparkEngine, session  # noqa: PLC0415 - Spark only when it is needed

    return SparkEngine(spark or session(given.spark))


def platform_of(engine: Engine[D]) -> Platform[D]:
    """What is read and written with an engine.

    Raises:
        InputError: SM501 an engine for rows at hand.
    """
    found: Any = engine
    if engine.name == "spark":
        from selfmaint.api.platforms.spark_platform import SparkPlatform  # noqa: PLC0415 - Spark only when it is needed

        found = SparkPlatform(found)
    elif engine.name == "duckdb":
        from selfmaint.api.platforms.duck_platform import DuckPlatform  # noqa: PLC0415 - DuckDB only when it is needed

        found = DuckPlatform(found)
    else:
        raise input_error(
            Code.NO_ENGINE,
            f"files and DataFrames cannot be read with the engine `{engine.name}`",
            hint="make the `Update` from sets of rows",
        )
    made: Platform[D] = found
    return made


def known_families(
    platform: Platform[D], catalog: Catalog, views: Mapping[str, D], *copies: Mapping[str, D]
) -> Families:
    """What the stored views and partial copies tell about the base columns' types."""
    known = of_views(catalog, {name: platform.types(rows) for name, rows in views.items()})
    for name, rows in (copy for part in copies for copy in part.items()):
        known.add_rows(name, platform.types(rows), "the partial copy")
    return known


def with_counts(platform: Platform[D], catalog: Catalog, views: Mapping[str, D]) -> dict[str, D]:
    """The stored rows of views, those of a view that keeps duplicates as counted rows."""
    known = {name: catalog.view(name) for name in views}
    return {
        n: platform.counted(rows, known[n].columns) if known[n].is_counted else rows
        for n, rows in views.items()
    }


def not_a_frame(rows: object, columns: Columns) -> InputError:
    """The error for rows that are given as something else than a frame."""
    return input_error(
        Code.COLUMNS_DIFFER,
        f"the rows of `{columns.name}` are given as a `{type(rows).__name__}`, not as a DataFrame or Arrow table",
        hint=f"`pandas.DataFrame(rows, columns={list(columns.names)!r})` makes one of a list of tuples",
    )


def expected_columns(columns: Columns) -> Expected:
    """The columns that stored rows must have, as reading them takes it."""
    return Expected(
        columns.name,
        columns.names,
        columns.types,
        columns.place,
        columns.naming,
        columns.wide,
        columns.unread,
    )


T = TypeVar("T")


def is_spark_active() -> bool:
    """Whether a session is active in this process; PySpark, of whatever version, is not imported to find out."""
    context = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    return getattr(context, "_active_spark_context", None) is not None


def default_engine(asked: str | None = None, spark: object = None) -> EngineKind:
    """The engine for rows at hand: the one that is asked for, else Spark where there is a session."""
    if asked is not None:
        return EngineKind(asked)
    return EngineKind.SPARK if spark is not None or is_spark_active() else EngineKind.DUCKDB


def engines_for(file: WarehouseFile, asked: EngineKind | None = None) -> tuple[EngineKind, ...]:
    """The engines to try, in order: one if it is named, or something is only Spark's."""
    named = asked or file.engine.kind
    objects = file.store.objects if isinstance(file.store, LakePlace) else None
    clock = _other_clock(file)
    if clock is not None and (objects is not None or named is EngineKind.DUCKDB):
        message = (
            f"by the warehouse file days begin in `{clock}` (`{TIME_ZONE}`), and by DuckDB's clock in UTC"
        )
        spark = "" if objects is not None else "use Spark: `--engine spark`; or "
        hint = f"{spark}take the setting out, if the views are to go by UTC"
        raise input_error(Code.ENGINE_DIFFERS, message, hint)
    if objects is not None:
        if named is EngineKind.SPARK or any(_of_spark(file)):
            message = f"the lake's files are in object storage (`{objects.url}`): only DuckDB reads it here"
            hint = "use DuckDB: `--engine duckdb`, or keep the lake's files in a folder; `[store]` without `data`"
            raise input_error(Code.ENGINE_DIFFERS, message, hint)
        return (EngineKind.DUCKDB,)
    if named is not None:
        return (named,)
    if is_spark_active() or any(_of_spark(file)):
        return (EngineKind.SPARK,)
    return (EngineKind.DUCKDB, EngineKind.SPARK)


def _other_clock(file: WarehouseFile) -> str | None:
    """The clock of Spark's sessions that a warehouse file names, if it is not that of UTC."""
    clock = file.engine.spark.get(TIME_ZONE)
    return None if clock in UTC else clock


def _of_spark(file: WarehouseFile) -> Iterable[bool]:
    """What only Spark reads, and goes by: tables of its catalog, other file systems, another clock."""
    yield _other_clock(file) is not None
    entries = file.relations.values()
    places = [
        *file.views.values(),
        *(entry.location for entry in entries if entry.source.kind is SourceKind.FILES),
    ]
    places += [place for copy in file.copies.values() for place in (copy.present, copy.absent) if place]
    yield any(place.is_table or "://" in place.text for place in places)
    yield any(entry.source.kind is SourceKind.SPARK for entry in entries)


def first_that_can(
    kinds: Iterable[EngineKind], use: Callable[[EngineKind], T], told: Callable[[str], None] = lambda _: None
) -> T:
    """What the first engine gives that does not refuse.

    Raises:
        InputError: SM502 the last one refuses, too; SM501 there is no Spark, beside what DuckDB refused.
    """
    refusal: InputError | None = None
    for kind in kinds:
        if refusal is not None:
            why = refusal.diagnostics[0]
            told(f"Spark is used: {why.message}" + (f"; {why.note}" if why.note else ""))
        try:
            return use(kind)
        except InputError as error:
            codes = {diagnostic.code for diagnostic in error.diagnostics}
            if refusal is not None and codes == {Code.NO_ENGINE}:
                raise InputError([*refusal.diagnostics, *error.diagnostics]) from error
            if codes != {Code.ENGINE_DIFFERS}:
                raise
            refusal = error
    assert refusal is not None
    raise refusal
