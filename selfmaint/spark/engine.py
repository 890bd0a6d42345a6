"""Programs over DataFrames: a goal becomes one statement of Spark SQL over temporary views of its facts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import islice
from weakref import WeakKeyDictionary

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as st
from pyspark.sql.functions import col

from datalog.model import (
    ANY,
    ColumnType,
    OpaqueView,
    Predicate,
    Program,
    Row,
    ViewDefinition,
    value_kind,
)
from datalog.rewrite import drop_unreachable
from selfmaint.engine.arrow_rows import arrow_table
from selfmaint.engine.guard import undefined
from selfmaint.engine.lookups import NEAR_ROWS, Lookups, near_rows
from selfmaint.engine.protocol import Facts, Layout
from selfmaint.engine.topdown import TopDown
from selfmaint.spark.bags import FrameBags
from selfmaint.spark.bounds import Measure, bounded, head_ranges, held, measured
from selfmaint.spark.column_kinds import kinds_of
from selfmaint.spark.exact_rows import are_exact, fetched, fitting, frame_of
from selfmaint.spark.failures import translated
from selfmaint.spark.frames import difference, empty, from_arrow, once, positional, rows, session_zone
from selfmaint.spark.goals import marked, union_all
from selfmaint.spark.key_lookups import KeyLookup
from selfmaint.spark.layouts import Storage
from selfmaint.spark.session import quick_session
from selfmaint.spark.statements import Statements
from selfmaint.spark.text_views import text_rows

BROADCAST_LIMIT_BYTES = 128 * 2**20
"""A small predicate that Spark estimates to be larger is not forced into every executor's memory."""

BYTES_A_VALUE = 16
"""A guess at the size of a value of a small relation."""

NEAR_BYTES = 4 * 2**20
"""What Spark estimates to be at most so large is fetched, if it also has few rows, when it is to be kept."""

LARGE_BYTES = 256 * 2**10
"""Views that Spark estimates to be larger than this (some ten thousand rows of compressed Parquet) are evaluated in
steps: as one statement, joins inside `NOT EXISTS` are computed whole, and their cost grows with the product."""


class SparkEngine:
    """The engine for data of any size.

    Data stays in Spark. What is looked up, or kept and small, is brought here, a bounded number of rows; programs
    over nothing else are evaluated in this process.
    """

    bags = FrameBags()

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._own = Statements(spark)
        self._kept: list[DataFrame] = []
        self._measures: WeakKeyDictionary[DataFrame, Measure] = WeakKeyDictionary()
        self._near: WeakKeyDictionary[DataFrame, frozenset[Row]] = WeakKeyDictionary()
        self._storage = Storage()

    @property
    def name(self) -> str:
        """`spark`."""
        return "spark"

    @cached_property
    def _quick(self) -> Statements:
        """Statements with small results, in a session beside the caller's."""
        return Statements(quick_session(self._spark), beside=True)

    @property
    def spark(self) -> SparkSession:
        """The session that this engine runs in."""
        return self._spark

    def load(self, rows: Iterable[Row], names: Sequence[str], types: Sequence[ColumnType]) -> DataFrame:
        """A relation from a few rows that are at hand; duplicates count once.

        Args:
            rows: the rows, each as long as `names`.
            names: column names, in order.
            types: column types; `ANY` and a decimal without precision are inferred from the values.

        Returns:
            The distinct rows, with exactly the types.

        Raises:
            InputError: SM104 values that the types cannot hold, or of several families in one column.
        """
        distinct = list({tuple((value_kind(v), v) for v in row): row for row in rows}.values())
        if not names:
            return self._spark.range(len(distinct)).select()
        return from_arrow(self._spark, arrow_table(distinct, names, types, session_zone(self._spark)))

    def evaluate(
        self, program: Program, goal: Predicate, facts: Facts[DataFrame], names: Sequence[str] | None = None
    ) -> DataFrame:
        """The goal's extension: distinct rows, computed when they are used.

        Args:
            program: safe, non-recursive rules; a predicate with rules is not looked up in `facts`.
            goal: the predicate asked for. Without rules and facts it is empty.
            facts: the extensions that the program may read.
            names: names of the result's columns; by default those of the fact, or `c0`, `c1`, ...

        Raises:
            ReadRefusedError: SM403 a rule reads a predicate that has neither rules nor facts.
        """
        needed = drop_unreachable(program, [goal])
        near = self._derived(needed, goal, facts, names) if needed.rules else None
        if near is not None:
            return near
        if needed.rules:
            measures = self._measured(facts)
            with self._own.bound([needed], facts, self._is_broadcastable) as tables:
                found = self._own.rows(bounded(needed, measures), goal, tables)
            named = positional(found) if names is None or not found.columns else found.toDF(*names)
            self._measures[named] = Measure(None, head_ranges(needed.rules_for(goal), measures))
            return named
        if goal in facts.relations:
            found = facts.relations[goal]
            return once(positional(found)).toDF(*(names or found.columns))
        return empty(self._spark, names or ())

    def evaluate_view(
        self,
        definition: ViewDefinition,
        facts: Facts[DataFrame],
        types: Mapping[Predicate, Sequence[ColumnType]],
    ) -> DataFrame:
        """The distinct rows of a definition, computed when they are used.

        Raises:
            ReadRefusedError: SM403 it reads a predicate of which no facts are given.
        """
        rules = tuple(block.core for block in definition.blocks)
        with self._own.bound([Program(rules)], facts, self._is_broadcastable) as tables:
            return once(self._own.run_view(definition, tables))

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
            rules = tuple(block.core for block in definition.blocks)
            with self._own.bound([Program(rules)], facts, self._is_broadcastable) as tables:
                found = self._own.run_view(definition, tables)
        return self._held(self.like(found, like))

    def _held(self, data: DataFrame) -> DataFrame:
        with translated():
            rows, _ = held(data)
        self._kept.append(rows)
        return rows

    def _derived(
        self, program: Program, goal: Predicate, facts: Facts[DataFrame], names: Sequence[str] | None
    ) -> DataFrame | None:
        """The goal's extension where all that the program reads is known here as well."""
        given = {p: facts.relations[p] for p in undefined(program) if p in facts.relations}
        if len(given) < len(set(undefined(program))) or any(
            frame not in self._near for frame in given.values()
        ):
            return None
        kinds = kinds_of(program, goal, given)
        if not kinds:
            return None
        queries = TopDown(program, Lookups(self).over(Facts(given, small=frozenset(given))))
        rows = near_rows(queries, goal, len(kinds))
        return (
            None
            if rows is None
            else self._at_hand(rows, names or [f"c{i}" for i in range(len(kinds))], kinds)
        )

    def is_large(self, facts: Facts[DataFrame]) -> bool:
        """Whether some stored relation is more than a few thousand rows."""
        return any(
            self._size(frame) > LARGE_BYTES for p, frame in facts.relations.items() if p not in facts.small
        )

    def nonempty(
        self, program: Program, goals: Sequence[Predicate], facts: Facts[DataFrame]
    ) -> frozenset[Predicate]:
        """Which goals have a row, in one job.

        Each goal's rules get the goal's number as their head, so that Spark carries no column of the goal's.
        Each goal is limited to one row, which Spark pushes down: a rule's joins end at their first row.

        Raises:
            ReadRefusedError: SM403 a rule reads a predicate that has neither rules nor facts.
            InputError: SM103 or SM104, stored contents that turn out to be unreadable.
        """
        distinct = list(dict.fromkeys(goals))
        if not program.rules and all(facts.relations.get(goal) in self._near for goal in distinct):
            return frozenset(goal for goal in distinct if self._near[facts.relations[goal]])
        asked = [marked(program, goal, number, facts.relations) for number, goal in enumerate(distinct)]
        statements = [tests for tests in asked if tests.rules]
        if not statements:
            return frozenset()
        measures = self._measured(facts)
        with self._quick.bound(statements, facts, self._is_broadcastable) as tables:
            tested = [
                self._quick.run(bounded(tests, measures), tests.heads[0], tables).limit(1)
                for tests in statements
            ]
        with translated():
            found = union_all(tested).collect()
        return frozenset(distinct[number] for (number,) in found)

    def sample(self, data: DataFrame, limit: int) -> list[Row]:
        """At most `limit` rows, in no order, as plain Python values.

        Raises:
            InputError: SM103 or SM104, stored contents that turn out to be unreadable.
        """
        near = self._near.get(data)
        if near is not None and not any(isinstance(f.dataType, st.TimestampType) for f in data.schema.fields):
            return list(islice(near, limit))
        with translated():
            return rows(data, limit)

    def layout(self, data: DataFrame) -> Layout:
        """How a relation is stored: known of what is held, and of local Parquet files."""
        known = self._measures.get(data)
        return self._storage.layout(data) if known is None or known.rows is None else Layout(known.rows)

    def fetch(self, data: DataFrame, limit: int) -> Collection[Row] | None:
        """All rows, if there are at most `limit`; distinct.

        Raises:
            InputError: SM103 or SM104, stored contents that turn out to be unreadable.
        """
        near = self._near.get(data)
        if near is None:
            rows = self._fetched(data, limit)
            if rows is None:
                return None
            near = self._near[data] = frozenset(rows)
        return near if len(near) <= limit else None

    def look_up(
        self,
        data: DataFrame,
        columns: tuple[int, ...],
        keys: Collection[Row],
        wanted: tuple[int, ...],
        limit: int,
        not_null: frozenset[int] = frozenset(),
    ) -> Collection[Row] | None:
        """The rows whose `columns` equal one of some keys, cut to the columns `wanted`, in one statement.

        Raises:
            InputError: SM103 or SM104, stored contents that turn out to be unreadable.
        """
        files = self._storage.local_parquet(data)
        if files is not None:
            asked = fitting(keys, [data.schema.fields[c].dataType for c in columns])
            found = files.look_up(columns, asked, wanted, limit) if asked else ()
            if found is not None:
                return found
        order = self.layout(data).ordered_by
        return KeyLookup(self._spark, self._quick, data, columns, wanted, limit, order, not_null).rows(keys)

    def _fetched(self, data: DataFrame, limit: int) -> list[Row] | None:
        known = self._measures.get(data)
        too_many = known is not None and known.rows is not None and known.rows > limit
        if too_many or not are_exact([field.dataType for field in data.schema.fields]):
            return None
        files = self._storage.local_parquet(data)
        here = None if files is None else files.rows(limit)
        if here is not None:
            return here
        with translated():
            return fetched(data, limit)

    def shaped(self, rows: Collection[Row], like: DataFrame, columns: Sequence[int]) -> DataFrame:
        """Exact rows as a DataFrame, with the types and names of some columns."""
        types = [like.schema.fields[c].dataType for c in columns]
        return self._at_hand(rows, [like.columns[c] for c in columns], types)

    def _at_hand(
        self, rows: Collection[Row], names: Sequence[str], types: Sequence[st.DataType]
    ) -> DataFrame:
        """A DataFrame of exact distinct rows that are known here as well."""
        held = fitting(rows, types)
        if len(held) < len(rows):  # they came from wider columns
            made = self.load(rows, names, [ANY] * len(names))
        else:
            made = (
                frame_of(self._spark, held, names, types) if names else self._spark.range(len(rows)).select()
            )
        self._near[made] = frozenset(rows)
        self._measures[made] = measured(rows, types)
        return made

    def count(self, data: DataFrame) -> int:
        """The number of rows.

        Raises:
            InputError: SM103 or SM104, stored contents that turn out to be unreadable.
        """
        known = self._measures.get(data)
        if known is not None and known.rows is not None:
            return known.rows
        with translated():
            return data.count()

    def union(self, parts: Sequence[DataFrame]) -> DataFrame:
        """The set union of one or more relations, columns by position, named as the first's."""
        kinds = [[field.dataType for field in part.schema.fields] for part in parts]
        if all(part in self._near for part in parts) and all(kind == kinds[0] for kind in kinds):
            together = frozenset(row for part in parts for row in self._near[part])
            return self._at_hand(together, parts[0].columns, kinds[0])
        return once(union_all([positional(part) for part in parts])).toDF(*parts[0].columns)

    def minus(self, left: DataFrame, right: DataFrame) -> DataFrame:
        """The distinct rows of `left` not in `right`, nulls equal, columns by position."""
        return difference(left, right)

    def minus_all(self, left: DataFrame, right: DataFrame) -> DataFrame:
        """The rows of `left` without as many equal ones as `right` has, computed now and held."""
        return self._held(positional(left).exceptAll(positional(right)).toDF(*left.columns))

    def empty(self, like: DataFrame) -> DataFrame:
        """No rows, with the columns of `like`; nothing is read."""
        types = [field.dataType for field in like.schema.fields]
        return self._at_hand((), like.columns, types) if types and are_exact(types) else like.limit(0)

    def like(self, data: DataFrame, other: DataFrame) -> DataFrame:
        """The rows with the types and names of another relation's columns; an error where a value does not fit."""
        placed = positional(data)
        columns = zip(placed.columns, (field.dataType for field in other.schema.fields), strict=True)
        cast = (col(c) if isinstance(t, st.NullType) else col(c).cast(t) for c, t in columns)
        return placed.select(*cast).toDF(*other.columns)

    def keep(self, data: DataFrame) -> DataFrame:
        """The same rows, computed now and held by the executors, cut off from what they were computed from.

        A local checkpoint, not a cache: dropping a temporary view evicts cached plans that contain the view's,
        and a plan that grows with every step is analysed again with every step. Their number and the ranges of
        their columns are then known.

        Raises:
            InputError: SM103 or SM104, stored contents that turn out to be unreadable.
        """
        known = self._measures.get(data)
        if known is not None and known.rows is not None:
            return data
        near = self._fetched(data, NEAR_ROWS) if self._size(data) <= NEAR_BYTES else None
        if near is not None:
            return self._at_hand(near, data.columns, [field.dataType for field in data.schema.fields])
        with translated():
            rows, measured = held(data)
        self._measures[rows] = measured
        self._kept.append(rows)
        return rows

    def release(self) -> None:
        """Lets go of everything that `keep` holds: Spark drops it once nobody refers to it."""
        self._kept.clear()

    def columns(self, data: DataFrame) -> tuple[str, ...]:
        """The column names, in order."""
        return tuple(data.columns)

    def _measured(self, facts: Facts[DataFrame]) -> dict[Predicate, Measure]:
        """What is known about the sizes and ranges of the small ones among some facts."""
        small = ((p, self._measures.get(facts.relations[p])) for p in facts.small if p in facts.relations)
        return {p: known for p, known in small if known is not None}

    def _is_broadcastable(self, frame: DataFrame) -> bool:
        return self._size(frame) <= BROADCAST_LIMIT_BYTES

    def _size(self, frame: DataFrame) -> int:
        """Spark's estimate, in bytes; of what is held, a guess from the number of values."""
        known = self._measures.get(frame)
        if known is not None and known.rows is not None:
            return known.rows * max(1, len(frame.columns)) * BYTES_A_VALUE
        return self._storage.size(frame)
