"""Looking up the rows of some keys in a stored relation: one statement, whose filters Parquet's statistics answer."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from datalog.model import Atom, Predicate, Program, Row, Rule, Variable, Version
from selfmaint.engine.protocol import Facts
from selfmaint.spark.bounds import bounded, enclosing, measured, without_null
from selfmaint.spark.exact_rows import are_exact, fetched, fitting, frame_of
from selfmaint.spark.failures import translated
from selfmaint.spark.statements import Statements

_KEYS, _STORED, _FOUND = (Predicate(name, Version.STEP) for name in ("keys", "stored", "found"))


@dataclass(frozen=True)
class KeyLookup:
    """What is looked up, and where.

    Attributes:
        spark: the session of `data`.
        statements: where the statement runs.
        data: the relation.
        columns: the columns of the key.
        wanted: the columns of the result.
        limit: the most rows to return.
        order: the column that the rows are stored in order of.
        not_null: columns that never hold null.
    """

    spark: SparkSession
    statements: Statements
    data: DataFrame
    columns: tuple[int, ...]
    wanted: tuple[int, ...]
    limit: int
    order: int | None
    not_null: frozenset[int]

    def rows(self, keys: Collection[Row]) -> list[Row] | None:
        """The rows of some keys; None if they are too many, or of types without exact values."""
        fields = self.data.schema.fields
        if not are_exact([fields[c].dataType for c in {*self.columns, *self.wanted}]):
            return None
        types = [fields[c].dataType for c in self.columns]
        asked = fitting(keys, types)  # no row has any of the others
        if not asked:
            return []
        found = self._enclosed(asked)
        if found is not None:
            return found
        given = frame_of(self.spark, asked, [f"c{i}" for i in range(len(types))], types)
        measure = measured(asked, types, [i for i, c in enumerate(self.columns) if c == self.order])
        key = Atom(_KEYS, tuple(self._row[c] for c in self.columns))
        known = {_KEYS: frozenset(without_null(asked, len(types))), _STORED: self.not_null}
        facts = Facts({_KEYS: given, _STORED: self.data}, known, frozenset({_KEYS}))
        rule = Rule(self._head, (key, Atom(_STORED, self._row)))
        return self._fetched(bounded(Program((rule,)), {_KEYS: measure}), facts)

    @property
    def _row(self) -> tuple[Variable, ...]:
        return tuple(Variable(f"X{i}") for i in range(len(self.data.columns)))

    @property
    def _head(self) -> Atom:
        return Atom(_FOUND, tuple(self._row[c] for c in self.wanted))

    def _enclosed(self, keys: Collection[Row]) -> list[Row] | None:
        """Without a join: by conditions that hold for few values more. None where there are none such."""
        if len(self.columns) != 1 or self.columns[0] not in self.wanted:
            return None
        (column,) = self.columns
        conditions = enclosing(self._row[column], keys, self.data.schema.fields[column].dataType)
        if conditions is None:
            return None
        rule = Rule(self._head, (Atom(_STORED, self._row), *conditions))
        found = self._fetched(Program((rule,)), Facts({_STORED: self.data}, {_STORED: self.not_null}))
        asked, place = {key for (key,) in keys}, self.wanted.index(column)
        return None if found is None else [row for row in found if row[place] in asked]

    def _fetched(self, program: Program, facts: Facts[DataFrame]) -> list[Row] | None:
        """The statement's rows; whole rows are distinct as they are stored, or become so here."""
        is_whole = len(self.wanted) == len(self.data.columns)
        with self.statements.bound([program], facts, lambda _frame: True) as tables:
            found = self.statements.run(program, _FOUND, tables, distinct=not is_whole)
        with translated():
            return fetched(found, self.limit)
