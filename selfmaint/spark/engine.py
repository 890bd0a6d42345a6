"""The Spark engine: programs over DataFrames of any size. What is small is computed with in this process."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as st
from pyspark.sql.functions import col

from datalog.model import (
    ColumnType,
    OpaqueView,
    Predicate,
    Program,
    Row,
    TypeName,
    ViewDefinition,
    value_kind,
)
from selfmaint.duckdb.relation import Relation
from selfmaint.engine.arrow_rows import ArrowTable, arrow_table, python_rows
from selfmaint.engine.arrow_types import column_type
from selfmaint.engine.guard import require_given
from selfmaint.engine.protocol import Asked, Facts
from selfmaint.spark.bags import FrameBags
from selfmaint.spark.bounds import held
from selfmaint.spark.column_types import types_of
from selfmaint.spark.failures import translated
from selfmaint.spark.frames import difference, empty, once, positional, rows, session_zone
from selfmaint.spark.local_files import FileFrame
from selfmaint.spark.near import NEAR_VALUES, NearRows
from selfmaint.spark.programs import Programs, unless_unlike
from selfmaint.spark.same_values import are_exact, begin_days, exact_rows, is_on_utc, names_instants
from selfmaint.spark.session import require_usable
from selfmaint.spark.statements import Statements, union_all
from selfmaint.spark.text_views import text_rows


class SparkEngine:
    """The engine for data of any size.

    What is large stays in Spark. A relation of few values is brought into this process, and whatever is computed of
    such relations alone is computed here, by DuckDB, as far as it gives what Spark gives.
    """

    def __init__(self, spark: SparkSession, near_values: int = NEAR_VALUES) -> None:
        """At most so many values of one relation are brought into this process; if none, Spark computes everything.

        Raises:
            InputError: SM501 the session is one of Spark Connect, or SQL means something else in it.
        """
        require_usable(spark)
        self._spark = spark
        self.statements = Statements(spark)
        self._near = NearRows(spark, near_values)
        self._programs = Programs(spark, self._near, self._size)
        self._kept: list[DataFrame] = []
        self._sizes: WeakKeyDictionary[DataFrame, int] = WeakKeyDictionary()
        self.bags = FrameBags()

    @property
    def name(self) -> str:
        """`spark`."""
        return "spark"

    @property
    def spark(self) -> SparkSession:
        """The session that this engine runs in."""
        return self._spark

    def load(self, rows: Iterable[Row], names: Sequence[str], types: Sequence[ColumnType]) -> DataFrame:
        """A relation from a few rows that are at hand; duplicates count once.

        Types `ANY` and decimals without precision are inferred from the values.

        Raises:
            InputError: SM104 values that the types cannot hold, or of several families in one column.
        """
        distinct = list({tuple((value_kind(v), v) for v in row): row for row in rows}.values())
        if not names:
            return self._near.frame(self._near.engine.load(distinct, (), ()))
        table = arrow_table(distinct, names, types, session_zone(self._spark))
        return self.given(table)

    def given(self, rows: ArrowTable) -> DataFrame:
        """Rows at hand, a bounded number, as a relation."""
        return self._near.given(rows, rows.column_names, [column_type(field.type) for field in rows.schema])

    def evaluate(
        self, program: Program, goal: Predicate, facts: Facts[DataFrame], names: Sequence[str] | None = None
    ) -> DataFrame:
        """The goal's extension: distinct rows.

        A goal without rules and facts is empty; columns are named `c0`, `c1`, ... or as the fact's by default.

        Raises:
            ReadRefusedError: SM403 a rule reads a predicate that has neither rules nor facts.
            InputError: SM103 or SM104, stored contents that turn out to be unreadable.
        """
        if goal in program.heads:
            found = self._programs.extensions(program, [goal], facts)[goal]
            return self._renamed(found, names) if names is not None and found.columns else found
        if goal in facts.relations:
            given = facts.relations[goal]
            return self._renamed(self.union([given]), names or given.columns)
        return empty(self._spark, names or ())

    def evaluate_all(
        self,
        program: Program,
        goals: Mapping[Predicate, Sequence[str]],
        facts: Facts[DataFrame],
        most: int | None = None,
    ) -> dict[Predicate, DataFrame]:
        """The extensions of some predicates with rules, in one go; see `evaluate`."""
        found = self._programs.extensions(program, list(goals), facts)
        return {g: self._renamed(found[g], names) if names else found[g] for g, names in goals.items()}

    def evaluate_view(
        self,
        definition: ViewDefinition,
        facts: Facts[DataFrame],
        types: Mapping[Predicate, Sequence[ColumnType]],
    ) -> DataFrame:
        """The distinct rows of a definition.

        Raises:
            ReadRefusedError: SM403 it reads a predicate of which no facts are given.
        """
        require_given(Program(tuple(block.core for block in definition.blocks)), facts.relations)
        here = self._here(*(facts.relations[p] for p in definition.reads))
        if here is not None and not self._follows_zone(here, definition):
            given = Facts(dict(zip(definition.reads, here, strict=True)), facts.not_null)
            near = self._near.engine
            found = unless_unlike(lambda: near.evaluate_view(definition, given, types))
            if found is not None:
                return self._near.frame(found)
        return once(self._view(definition, facts))

    def selected(self, selection: ViewDefinition, data: DataFrame) -> DataFrame:
        """The rows of a relation that a selection leaves, computed when they are used."""
        (predicate,) = selection.reads

        def in_spark() -> DataFrame:
            return self._view(selection, Facts({predicate: data})).toDF(*selection.columns)

        here = self._here(data)
        if here is not None and self._follows_zone(here, selection):
            return in_spark()
        return self.either([data], lambda parts: self._near.engine.selected(selection, parts[0]), in_spark)

    def recompute(
        self,
        definition: ViewDefinition | OpaqueView,
        facts: Facts[DataFrame],
        types: Mapping[Predicate, Sequence[ColumnType]],
        like: DataFrame,
    ) -> DataFrame:
        """All rows of a definition, computed now and held, each as often as it stands."""
        if isinstance(definition, OpaqueView):
            found = text_rows(self._spark, definition, facts, like)
        else:
            found = self._view(definition, facts)
        return self._held(self.like(found, like) if like.columns else found)

    def _view(self, definition: ViewDefinition, facts: Facts[DataFrame]) -> DataFrame:
        program = Program(tuple(block.core for block in definition.blocks))
        with self.statements.bound([program], facts, self._programs.is_broadcastable) as tables:
            return self.statements.run_view(definition, tables)

    def _held(self, data: DataFrame) -> DataFrame:
        with translated():
            rows, _ = held(data)
        self._kept.append(rows)
        return rows

    def nonempty(
        self, program: Program, goals: Sequence[Predicate], facts: Facts[DataFrame], *, bounded: bool = False
    ) -> frozenset[Predicate]:
        """Which goals have a row.

        Raises:
            ReadRefusedError: SM403 a rule reads a predicate that has neither rules nor facts.
            InputError: SM103 or SM104, stored contents that turn out to be unreadable.
        """
        return self._programs.nonempty(program, goals, facts)

    def foresee(self, asked: Iterable[Asked], facts: Facts[DataFrame]) -> None:
        """Nothing is done about it: no gain was measured."""

    def sample(self, data: DataFrame, limit: int) -> list[Row]:
        """At most `limit` rows, the first ones, as plain Python values.

        Raises:
            InputError: SM103 or SM104, stored contents that turn out to be unreadable.
        """
        here = self._relation(data)
        if here is not None and not here.types:
            return [()] * min(limit, self._near.engine.count(here))
        if here is not None:
            return python_rows(self._near.rows(here, limit, ordered=True), session_zone(self._spark))
        with translated():
            plain = positional(data)
            places = [plain[name].asc_nulls_first() for name in plain.columns]
            return rows(plain.orderBy(*places) if places else plain, limit)

    def fetch(self, data: DataFrame, limit: int) -> Collection[Row] | None:
        """All rows, if there are at most `limit`; distinct.

        Raises:
            InputError: SM103 or SM104, stored contents that turn out to be unreadable.
        """
        if not are_exact([field.dataType for field in data.schema.fields]):
            return None if self.sample(data, 1) else frozenset()
        here = self._relation(data)
        if not data.columns:
            found: list[Row] | None = self.sample(data, limit + 1)
        elif here is not None:
            found = exact_rows(self._near.rows(here, limit + 1))
        else:
            with translated():
                found = exact_rows(positional(data.limit(limit + 1)).toArrow())
        return None if found is None or len(found) > limit else frozenset(found)

    def count(self, data: DataFrame) -> int:
        """The number of rows.

        Raises:
            InputError: SM103 or SM104, stored contents that turn out to be unreadable.
        """
        here, known = self._relation(data), self._programs.measures.get(data)
        if here is not None:
            return self._near.engine.count(here)
        if known is not None and known.rows is not None:
            return known.rows
        with translated():
            return data.count()

    def union(self, parts: Sequence[DataFrame]) -> DataFrame:
        """The set union of one or more relations, columns by position, named as the first's."""
        return self.either(
            parts,
            self._near.engine.union,
            lambda: once(union_all([positional(part) for part in parts])).toDF(*parts[0].columns),
        )

    def minus(self, left: DataFrame, right: DataFrame) -> DataFrame:
        """The distinct rows of `left` not in `right`, nulls equal, columns by position."""
        return self.either(
            [left, right], lambda here: self._near.engine.minus(*here), lambda: difference(left, right)
        )

    def minus_all(self, left: DataFrame, right: DataFrame) -> DataFrame:
        """The rows of `left` without as many equal ones as `right` has, computed now and held."""
        return self._held(positional(left).exceptAll(positional(right)).toDF(*left.columns))

    def beyond(self, one: DataFrame, other: DataFrame) -> tuple[DataFrame, DataFrame]:
        """The rows of each without as many equal ones as the other has, computed now and held."""
        return self.minus_all(one, other), self.minus_all(other, one)

    def empty(self, like: DataFrame) -> DataFrame:
        """No rows, with the columns of `like`; nothing is read."""
        kinds = types_of(like)
        if not kinds or not all(isinstance(kind, ColumnType) for kind in kinds):
            return like.limit(0)
        return self._near.frame(Relation(self._near.empty(kinds).stored, tuple(like.columns)))

    def like(self, data: DataFrame, other: DataFrame) -> DataFrame:
        """The rows with the types and names of another relation's columns; an error where a value does not fit."""
        kinds = [field.dataType for field in other.schema.fields]
        if kinds == [field.dataType for field in data.schema.fields]:
            return data if data.columns == other.columns else self._renamed(data, other.columns)
        placed = positional(data)
        columns = zip(placed.columns, kinds, strict=True)
        cast = (col(c) if isinstance(t, st.NullType) else col(c).cast(t) for c, t in columns)
        return placed.select(*cast).toDF(*other.columns)

    def keep(self, data: DataFrame) -> DataFrame:
        """The same rows, computed now: in this process if they are few, else held by the executors.

        A local checkpoint, not a cache: dropping a temporary view evicts cached plans that contain the view's,
        and a plan that grows with every step is analysed again with every step. Their number and the ranges of
        their columns are then known.

        Raises:
            InputError: SM103 or SM104, stored contents that turn out to be unreadable.
        """
        here = self._relation(data)
        if here is not None:
            return self._near.frame(self._near.engine.keep(here))
        rows = self._programs.kept(data)
        self._kept.append(rows)
        return rows

    def release(self) -> None:
        """Lets go of everything that `keep` holds: Spark drops it once nobody refers to it."""
        self._kept.clear()
        self._programs.release()
        self._near.release()

    def columns(self, data: DataFrame) -> tuple[str, ...]:
        """The column names, in order."""
        return tuple(data.columns)

    def _renamed(self, data: DataFrame, names: Sequence[str]) -> DataFrame:
        here = self._relation(data)
        return data.toDF(*names) if here is None else self._near.frame(Relation(here.stored, tuple(names)))

    def _relation(self, data: DataFrame) -> Relation | None:
        """The rows of a relation that are in this process."""
        return self._near.relation(data, self._size)

    def _here(self, *parts: DataFrame) -> list[Relation] | None:
        """The rows of some relations, if all of them are in this process."""
        found = [here for part in parts if (here := self._relation(part)) is not None]
        return found if len(found) == len(parts) else None

    def _follows_zone(self, parts: Sequence[Relation], definition: ViewDefinition) -> bool:
        """Whether what a definition makes of some relations may depend on the session's clock, which is not UTC's."""
        kinds = (t for r in parts for t in r.types if isinstance(t, ColumnType))
        names_one = any(t.name is TypeName.TIMESTAMP for t in kinds) or names_instants(definition)
        return names_one and not is_on_utc(self._spark)

    def either(
        self,
        parts: Sequence[DataFrame],
        here: Callable[[list[Relation]], Relation],
        in_spark: Callable[[], DataFrame],
    ) -> DataFrame:
        """What is computed in this process, where all of it is here, or in Spark."""
        given = self._here(*parts)
        if given is not None and begin_days(t for r in given for t in r.types) and not is_on_utc(self._spark):
            given = None
        found = None if given is None else unless_unlike(lambda: here(given))
        return in_spark() if found is None else self._near.frame(found)

    def _size(self, frame: DataFrame) -> int:
        """Spark's estimate, in bytes."""
        if isinstance(frame, FileFrame):
            return frame.size
        if frame not in self._sizes:
            plan = frame._jdf.queryExecution().optimizedPlan()
            self._sizes[frame] = int(str(plan.stats().sizeInBytes()))
        return self._sizes[frame]
