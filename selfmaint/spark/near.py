"""Relations of few rows: brought into this process, where DuckDB computes with them, and Spark's when it needs them.

Not more than `NEAR_VALUES` values of one relation come here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as st

from datalog.model import ANY, ColumnType
from datalog.sql.duckdb import SqlType
from datalog.sql.duckdb import relations as sql
from datalog.sql.duckdb.rules import nothing
from selfmaint.duckdb.engine import DuckEngine
from selfmaint.duckdb.relation import Relation
from selfmaint.engine.arrow_rows import ArrowTable
from selfmaint.errors import InputError
from selfmaint.spark.column_types import spark_type, stored_type
from selfmaint.spark.failures import translated
from selfmaint.spark.frames import positional
from selfmaint.spark.lazy_frames import LazyFrame
from selfmaint.spark.local_files import FileFrame, local_contents

NEAR_VALUES = 4_000_000
"""How many values of one relation may come into this process."""

NEAR_BYTES = 4 * 2**20
"""A relation that Spark estimates to be at most so large is brought here whole when it is first met."""

MEMORY_LIMIT = "2GB"
"""What DuckDB may hold in memory beside Spark; the rest it spills to disk."""


class NearFrame(LazyFrame):
    """A DataFrame of rows that are in this process."""

    def __init__(self, spark: SparkSession, owner: NearRows, relation: Relation) -> None:
        kinds = (kind for kind in relation.types if isinstance(kind, ColumnType))
        pairs = zip(relation.columns, kinds, strict=True)
        super().__init__(
            spark, st.StructType([st.StructField(name, spark_type(kind)) for name, kind in pairs])
        )
        self.owner = owner
        self.relation = relation

    def made(self) -> DataFrame:
        """The rows, sent to Spark."""
        if not self.relation.types:
            return self._session.range(self.owner.engine.count(self.relation)).select()
        fields = [st.StructField(f"c{i}", field.dataType) for i, field in enumerate(self.schema.fields)]
        rows = self._session.createDataFrame(self.owner.rows(self.relation), st.StructType(fields))
        return rows.toDF(*self.relation.columns)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows, without Spark."""
        if not self.relation.types:
            return super().__arrow_c_stream__(requested_schema)
        rows = self.owner.rows(self.relation).rename_columns(self.columns)
        return rows.__arrow_c_stream__(requested_schema)


class NearRows:
    """The relations that are in this process, of one engine."""

    def __init__(self, spark: SparkSession, values: int = NEAR_VALUES) -> None:
        """At most so many values of one relation are brought here; if none, all is computed by Spark."""
        self._spark = spark
        self._values = values
        self.engine = DuckEngine({"memory_limit": MEMORY_LIMIT})
        self._brought: WeakKeyDictionary[DataFrame, Relation | None] = WeakKeyDictionary()

    def frame(self, relation: Relation) -> NearFrame:
        """A relation as a DataFrame."""
        return NearFrame(self._spark, self, relation)

    def rows(self, relation: Relation, limit: int | None = None, *, ordered: bool = False) -> ArrowTable:
        """The rows of a relation, or the first of them, columns named `c0`, `c1`, ..."""
        stored = relation.stored
        table = self.engine.database.rows(
            sql.rows(stored.name, len(stored.types), limit=limit, ordered=ordered), [stored.name]
        )
        for i in (i for i, kind in enumerate(stored.types) if kind == ANY):
            table = table.set_column(i, f"c{i}", pa.nulls(table.num_rows))
        return table

    def given(self, rows: ArrowTable, names: Sequence[str], types: Sequence[ColumnType]) -> NearFrame:
        """Rows at hand, exactly of these types, as a DataFrame."""
        return self.frame(Relation(self.engine.database.given(rows, types), tuple(names)))

    def most_rows(self, frame: DataFrame) -> int:
        """How many rows of a DataFrame may come here."""
        return self._values // max(1, len(frame.columns))

    def relation(self, frame: DataFrame, size: Callable[[DataFrame], int]) -> Relation | None:
        """A DataFrame's rows, brought here if it is known to be small; None if they are not here."""
        if not self._values:
            return None
        if isinstance(frame, NearFrame) and frame.owner is self:
            return frame.relation
        if frame not in self._brought:
            self._brought[frame] = self.brought(frame) if size(frame) <= NEAR_BYTES else None
        return self._brought[frame]

    def brought(self, frame: DataFrame) -> Relation | None:
        """A DataFrame's rows, each as often as it stands; None if there are too many, or of types that DuckDB lacks.

        Raises:
            InputError: SM103 or SM104, stored contents that turn out to be unreadable.
        """
        types = [stored_type(field) for field in frame.schema.fields]
        kinds: list[SqlType] = [kind for kind in types if isinstance(kind, ColumnType)]
        most = self.most_rows(frame)
        if len(kinds) < len(types) or not most:
            return None
        files = self.contents(frame) if isinstance(frame, FileFrame) else None
        if files is not None:
            with contextlib.suppress(InputError):  # Spark reads them, or says what is wrong
                rows = files.stored.known_rows
                return self.engine.keep(files) if rows is not None and rows <= most else None
        with translated():
            if not types:  # Arrow does not count rows without columns
                count = frame.limit(most + 1).count()
                return self.engine.load([()] * count, (), ()) if count <= most else None
            table = positional(frame.limit(most + 1)).toArrow()
        if table.num_rows > most:
            return None
        return Relation(self.engine.database.given(table, kinds), tuple(frame.columns))

    def empty(self, types: Sequence[SqlType]) -> Relation:
        """No rows of some types."""
        query = nothing(types)
        return Relation(
            self.engine.database.table(query, types, ()), tuple(f"c{i}" for i in range(len(types)))
        )

    @property
    def is_used(self) -> bool:
        """Whether anything is computed here."""
        return self._values > 0

    def contents(self, frame: DataFrame) -> Relation | None:
        """The rows of a DataFrame as its local files have them."""
        return local_contents(frame, self.engine.database)

    def release(self) -> None:
        """Lets go of what was computed on the way."""
        self.engine.release()
