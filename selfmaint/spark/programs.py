"""Whole programs, predicate by predicate: in this process where all that a predicate reads is here, else in Spark.

What Spark computes is brought here if it is small; then whatever is computed of it is computed here. So a large
relation is read by one statement for all demands on it by the same columns, and nothing else is.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import count
from typing import TypeVar
from weakref import WeakKeyDictionary

from msgspec import Struct
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as st

from datalog.analysis.dependency import evaluation_order
from datalog.model import Predicate, Program, Rule
from datalog.rewrite.reachable import predicates_of
from selfmaint.duckdb.extensions import Extension
from selfmaint.duckdb.fetched import KEYS, STORED, Large, lookup_of
from selfmaint.duckdb.layouts import finding
from selfmaint.duckdb.relation import Relation, Stored
from selfmaint.duckdb.representatives import Representatives
from selfmaint.engine.plans import over_tables, prepared, without_columns
from selfmaint.engine.protocol import Facts, Layout
from selfmaint.errors import InputError
from selfmaint.spark.bounds import Measure, bounded, held, measured
from selfmaint.spark.column_types import types_of
from selfmaint.spark.failures import translated
from selfmaint.spark.near import NearRows
from selfmaint.spark.same_values import are_exact, begin_days, exact_rows, is_on_utc, names_time
from selfmaint.spark.session import quick_session
from selfmaint.spark.statements import Statements, marked, union_all

MOST_HELD = 500
"""Of so many predicates the rows are kept, by the executors unless they are few."""

BROADCAST_BYTES = 128 * 2**20
"""A small relation that Spark estimates to be larger is not forced into every executor's memory."""

T = TypeVar("T")

KEY_ROWS = 50_000
"""The ranges of so many keys are written into a statement."""


class Rows(Struct, frozen=True):
    """The rows of a predicate, which of their columns are never null, and whether they are known to be few."""

    frame: DataFrame
    not_null: frozenset[int] = frozenset()
    few: bool = True


class Programs:
    """Evaluates programs over DataFrames, some of whose rows are in this process."""

    def __init__(self, spark: SparkSession, near: NearRows, size: Callable[[DataFrame], int]) -> None:
        """Of a DataFrame, `size` is an estimate in bytes."""
        self._spark = spark
        self._near = near
        self._size = size
        self._own = Statements(spark)
        self._held: OrderedDict[object, Rows] = OrderedDict()
        self._names: WeakKeyDictionary[DataFrame, str] = WeakKeyDictionary()
        self._contents: WeakKeyDictionary[DataFrame, Relation | None] = WeakKeyDictionary()
        self._numbers = count()
        self.measures: WeakKeyDictionary[DataFrame, Measure] = WeakKeyDictionary()

    @cached_property
    def _quick(self) -> Statements:
        """Statements with small results, in a session beside the caller's."""
        return Statements(quick_session(self._spark), beside=True)

    def release(self) -> None:
        """Lets go of the rows of all predicates."""
        self._held.clear()

    def extensions(
        self, program: Program, goals: Sequence[Predicate], facts: Facts[DataFrame]
    ) -> dict[Predicate, DataFrame]:
        """The rows of some predicates with rules, each once.

        Raises:
            ReadRefusedError: SM403 a rule reads a predicate that has neither rules nor facts.
            InputError: SM103 or SM104, stored contents that turn out to be unreadable.
        """
        known = self._derived(self._prepared(program, goals, facts), facts, ())
        return {goal: known[goal].frame for goal in goals}

    def nonempty(
        self, program: Program, goals: Sequence[Predicate], facts: Facts[DataFrame]
    ) -> frozenset[Predicate]:
        """Which predicates have a row; those that only Spark tells are asked in one job.

        Each goal's rules get the goal's number as their head, so that Spark carries no column of the goal's.
        Each goal is limited to one row, which Spark pushes down: a rule's joins end at their first row.
        """
        distinct = list(dict.fromkeys(goals))
        needed = self._prepared(without_columns(program, distinct), distinct, facts)
        rules = needed.by_head()
        used = {p for rule in needed.rules for p in predicates_of(rule.body)}
        known = self._derived(needed, facts, [goal for goal in distinct if goal not in used])
        found, open_ = set(), {}
        for number, goal in enumerate(distinct):
            given = known.get(goal)
            if given is not None:
                here = self._relation(given.frame)
                if here is None:
                    open_[number] = goal
                elif self._near.engine.sample(here, 1):
                    found.add(goal)
            elif goal in rules:
                made = self._here(rules[goal], known)
                has_row = self._holds_in_files(rules[goal], known) if made is None else bool(made.stored.rows)
                if has_row is None:
                    open_[number] = goal
                elif has_row:
                    found.add(goal)
        return frozenset(found) | {distinct[n] for n in self._have_rows(open_, rules, known)}

    def _holds_in_files(self, rules: Sequence[Rule], known: Mapping[Predicate, Rows]) -> bool | None:
        """Whether a rule has a row; None unless each reads what is here, and one relation of local files once.

        Such a relation streams through this process; often its footers tell enough.
        """
        tables: dict[Predicate, Relation] = {}
        for rule in rules:
            read = list(predicates_of(rule.body))
            away = [p for p in read if self._relation(known[p].frame) is None]
            if len(away) > 1 or not {atom.predicate for atom in rule.atoms}.issuperset(away):
                return None
            for predicate in read:
                frame = known[predicate].frame
                found = self._relation(frame) or self._files(frame)
                if found is None:
                    return None
                tables[predicate] = found
        if self._follows_zone(rules, (one.stored for one in tables.values())):
            return None
        program, goals = Program(tuple(rules)), [rules[0].head.predicate]
        small = frozenset(p for p, one in tables.items() if one.stored.rows is not None)
        facts = Facts(tables, {p: known[p].not_null for p in tables}, small)
        return unless_unlike(lambda: bool(self._near.engine.nonempty(program, goals, facts)))

    def _have_rows(
        self,
        goals: Mapping[int, Predicate],
        rules: Mapping[Predicate, Sequence[Rule]],
        known: Mapping[Predicate, Rows],
    ) -> frozenset[int]:
        """The numbers of the goals that have a row, as Spark tells."""
        if not goals:
            return frozenset()
        frames = {p: rows.frame for p, rows in known.items()}
        asked = []
        for number, goal in goals.items():
            live = [rule for rule in rules.get(goal, ()) if self._may_derive(rule, known)]
            if live or goal not in rules:
                asked.append(marked(Program(tuple(live)), goal, number, frames))
        if not asked:
            return frozenset()
        facts = self._facts({p for one in asked for r in one.rules for p in predicates_of(r.body)}, known)
        measures = self._measured(facts)
        with self._quick.bound(asked, facts, self.is_broadcastable) as tables:
            tested = [
                self._quick.run(bounded(tests, measures), tests.heads[0], tables).limit(1) for tests in asked
            ]
        with translated():
            return frozenset(int(number) for (number,) in union_all(tested).collect())

    def _prepared(self, program: Program, goals: Sequence[Predicate], facts: Facts[DataFrame]) -> Program:
        def found_by(predicate: Predicate, columns: tuple[int, ...]) -> tuple[int, ...]:
            best = finding(self._layout(facts.relations[predicate]), columns)
            return () if best is None else (best,)

        types = {p: types_of(frame) for p, frame in facts.relations.items()}
        return prepared(program, goals, types, facts.small, found_by)

    def _layout(self, frame: DataFrame) -> Layout:
        """What the footers of a relation's files tell, if it is read from them here."""
        files = self._files(frame)
        return Layout() if files is None else files.stored.layout

    def _files(self, frame: DataFrame) -> Relation | None:
        """The rows of a relation in Spark, as its local files have them."""
        if frame not in self._contents:
            is_here = self._relation(frame) is not None or not self._near.is_used
            self._contents[frame] = None if is_here else self._near.contents(frame)
        return self._contents[frame]

    def _derived(
        self, program: Program, facts: Facts[DataFrame], without: Sequence[Predicate]
    ) -> dict[Predicate, Rows]:
        """The rows of everything that a program reads or defines, but for some that nothing else uses."""
        known = {
            p: Rows(frame, facts.not_null.get(p, frozenset()), p in facts.small)
            for p, frame in facts.relations.items()
        }
        rules = program.by_head()
        self._near.engine.programs.fetched.expect(rules.values())
        for predicate in rules:
            known.pop(predicate, None)
        for predicate in evaluation_order(program):
            if predicate not in without:
                known[predicate] = self._rows(rules[predicate], known)
        return known

    def _rows(self, rules: Sequence[Rule], known: Mapping[Predicate, Rows]) -> Rows:
        """The rows of one predicate: those kept, if its rules have been evaluated over the same relations."""
        read = {p: known[p] for rule in rules for p in predicates_of(rule.body)}
        named = {p: (self._name(rows.frame), rows.not_null) for p, rows in read.items()}
        key = tuple(over_tables(rule, named) for rule in rules)
        if key in self._held:
            self._held.move_to_end(key)
            return self._held[key]
        made = self._looked_up(rules, known) or self._here(rules, known)
        found = Rows(self._by_spark(rules, known)) if made is None else self._as_rows(made)
        self._held[key] = found
        if len(self._held) > MOST_HELD:
            self._held.popitem(last=False)
        return found

    def _as_rows(self, made: Extension) -> Rows:
        relation = Relation(made.stored, numbered(len(made.stored.types)))
        return Rows(self._near.frame(relation), made.not_null)

    def _looked_up(self, rules: Sequence[Rule], known: Mapping[Predicate, Rows]) -> Extension | None:
        """The demanded rows of a relation that is in Spark; None if the rules are others, or the rows too many."""
        asked = lookup_of(rules)
        if asked is None or self._relation(known[asked.stored].frame) is not None:
            return None
        stored, keys = known[asked.stored], known[asked.keys]
        here = self._relation(keys.frame)
        if here is None:
            return None

        def read(rule: Rule, missing: Extension, _few: Representatives | None) -> Extension | None:
            given = {KEYS: self._as_rows(missing), STORED: stored}
            made = self._here([rule], given) or self._in_files(rule, missing, stored)
            if made is not None:
                return made
            found = self._relation(self._by_spark([rule], given))
            return None if found is None else Extension(found.stored)

        fetched = self._near.engine.programs.fetched
        demanded, name = Extension(here.stored, keys.not_null), (self._name(stored.frame), stored.not_null)
        return unless_unlike(lambda: fetched.rows(asked, demanded, Large(name, read)))

    def _in_files(self, rule: Rule, keys: Extension, stored: Rows) -> Extension | None:
        """The rows of some keys, from local files; None if it has none, or what Spark alone can read."""
        files = self._files(stored.frame)
        if files is None:
            return None
        never_null = stored.not_null | files.stored.layout.never_null
        given = {KEYS: keys, STORED: Extension(files.stored, never_null)}
        if self._follows_zone([rule], (one.stored for one in given.values())):
            return None
        try:
            return self._near.engine.programs.made([rule], given)
        except InputError:
            return None

    def _here(self, rules: Sequence[Rule], known: Mapping[Predicate, Rows]) -> Extension | None:
        """The rows of one predicate, computed in this process; None if they cannot be.

        Rules of which a relation is known to be empty need nothing of Spark.
        """
        live = [rule for rule in rules if self._may_derive(rule, known)]
        tables: dict[Predicate, Extension] = {}
        for predicate in dict.fromkeys(p for rule in live or rules for p in predicates_of(rule.body)):
            rows = known[predicate]
            here = self._relation(rows.frame)
            if here is None and not live:
                kinds = types_of(rows.frame)
                here = self._near.empty(kinds)
            if here is None:
                return None
            tables[predicate] = Extension(here.stored, rows.not_null)
        if self._follows_zone(live, (one.stored for one in tables.values())):
            return None
        return unless_unlike(lambda: self._near.engine.programs.table(live or rules, tables))

    def _follows_zone(self, rules: Sequence[Rule], given: Iterable[Stored]) -> bool:
        """Whether what rules name or compare is another instant here: the session's clock is not the one of UTC."""
        kinds = (kind for one in given for kind in one.types)
        return (any(map(names_time, rules)) or begin_days(kinds)) and not is_on_utc(self._spark)

    def _by_spark(self, rules: Sequence[Rule], known: Mapping[Predicate, Rows]) -> DataFrame:
        """The rows of one predicate by one statement of Spark's, brought here if they are few, else held there."""
        live = tuple(rule for rule in rules if self._may_derive(rule, known)) or tuple(rules[:1])
        program, goal = Program(live), rules[0].head.predicate
        facts = self._facts({p for rule in live for p in predicates_of(rule.body)}, known)
        with self._own.bound([program], facts, self.is_broadcastable) as tables:
            found = self._own.rows(bounded(program, self._measured(facts)), goal, tables)
        return self.kept(found.toDF(*numbered(len(found.columns))) if found.columns else found)

    def kept(self, frame: DataFrame) -> DataFrame:
        """The same rows, computed now: here if they are few, else held by the executors."""
        known = self.measures.get(frame)
        if known is not None:
            return frame
        here = self._near.brought(frame)
        if here is not None:
            return self._near.frame(here)
        with translated():
            rows, measure = held(frame)
        self.measures[rows] = measure
        return rows

    def _facts(self, read: set[Predicate], known: Mapping[Predicate, Rows]) -> Facts[DataFrame]:
        small = {p for p in read if known[p].few or self._relation(known[p].frame) is not None}
        frames = {p: known[p].frame for p in read}
        return Facts(frames, {p: known[p].not_null for p in read}, frozenset(small))

    def _may_derive(self, rule: Rule, known: Mapping[Predicate, Rows]) -> bool:
        """Whether no subgoal of a rule is known to be empty."""
        for atom in rule.atoms:
            here = self._relation(known[atom.predicate].frame)
            if here is not None and here.stored.rows == 0:
                return False
        return True

    def _relation(self, frame: DataFrame) -> Relation | None:
        return self._near.relation(frame, self._size)

    def _name(self, frame: DataFrame) -> str | int:
        """What tells a relation from others."""
        here = self._relation(frame)
        if here is not None:
            return here.stored.number
        if frame not in self._names:
            self._names[frame] = f"in Spark {next(self._numbers)}"
        return self._names[frame]

    def is_broadcastable(self, frame: DataFrame) -> bool:
        """Whether a small relation may be put into every executor's memory."""
        return self._size(frame) <= BROADCAST_BYTES

    def _measured(self, facts: Facts[DataFrame]) -> dict[Predicate, Measure]:
        """What is known about the sizes and ranges of the small ones among some facts."""
        found = {}
        for predicate in facts.small:
            measure = self._measure(facts.relations[predicate])
            if measure is not None:
                found[predicate] = measure
        return found

    def _measure(self, frame: DataFrame) -> Measure | None:
        here = self._relation(frame)
        if frame not in self.measures and here is not None:
            self.measures[frame] = self._measure_here(here, [field.dataType for field in frame.schema.fields])
        return self.measures.get(frame)

    def _measure_here(self, here: Relation, types: Sequence[st.DataType]) -> Measure:
        number = self._near.engine.count(here)
        written = types and number <= KEY_ROWS and are_exact(types)
        rows = exact_rows(self._near.rows(here)) if written else None
        return Measure(number, {}) if rows is None else measured(rows, types)


def unless_unlike(compute: Callable[[], T]) -> T | None:
    """What is computed in this process; None of what DuckDB computes otherwise than Spark, or refuses to compute."""
    try:
        return compute()
    except InputError:  # Spark computes it, or says what is wrong
        return None


def numbered(width: int) -> tuple[str, ...]:
    """Names for columns."""
    return tuple(f"c{i}" for i in range(width))
