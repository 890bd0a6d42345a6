"""One program as one statement of Spark SQL over temporary views of its facts, behind the read guard.

Of many goals in one statement each is asked only whether it has a row.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit

from datalog.copies import replace
from datalog.model import Atom, Constant, Literal, Predicate, Program, Rule, Variable, ViewDefinition
from datalog.rewrite import drop_unreachable
from datalog.rewrite.reachable import predicates_of
from datalog.sql import Table, read_set, select, select_view, text
from datalog.sql.changes import Query
from selfmaint.engine.guard import require_allowed, require_given, undefined
from selfmaint.engine.protocol import Facts
from selfmaint.spark.failures import translated
from selfmaint.spark.frames import has_floats, once, positional

GLOBAL = "global_temp"
"""Where Spark keeps the temporary views that all sessions see."""


class Statements:
    """Runs statements in one session, over DataFrames of that session or of one beside it.

    Facts are bound under names that are made for one statement, and dropped as soon as Spark has analysed it,
    so that the session's catalog is left as it was found.
    """

    def __init__(self, spark: SparkSession, *, beside: bool = False) -> None:
        """With `beside`, the DataFrames are another session's."""
        self._spark = spark
        self._beside = beside

    def run(
        self, program: Program, goal: Predicate, tables: Mapping[Predicate, Table], *, distinct: bool = True
    ) -> DataFrame:
        """One statement for a goal that has rules; it reads nothing but the tables."""
        statement = select(program, goal, tables, hints=True, distinct=distinct)
        require_allowed(read_set(statement), {table.name for table in tables.values()})
        with translated():
            found = self._spark.sql(text(statement))
        return found if program.rules_for(goal)[0].head.arity else found.select()

    def rows(self, program: Program, goal: Predicate, tables: Mapping[Predicate, Table]) -> DataFrame:
        """Each row of a goal once, as `run` gives them; zeros keep their signs."""
        found = self.run(program, goal, tables)
        return once(self.run(program, goal, tables, distinct=False)) if has_floats(found) else found

    def run_view(self, definition: ViewDefinition, tables: Mapping[Predicate, Table]) -> DataFrame:
        """The rows of a definition, each as often as it stands; it reads nothing but the tables, which `bound` gave."""
        statement = select_view(definition, tables)
        require_allowed(read_set(statement), {table.name for table in tables.values()})
        with translated():
            return self._spark.sql(text(statement))

    def over(self, query: Callable[[Sequence[str]], Query], frames: Sequence[DataFrame]) -> DataFrame:
        """The rows of a query over some DataFrames, whose names it is made of; it reads nothing else."""
        names: list[tuple[str, ...]] = []
        try:
            for frame in frames:
                name = f"selfmaint_{uuid.uuid4().hex}"
                names.append(self._named(positional(frame).where(lit(True)), name))
            statement = query([name[-1] for name in names])
            require_allowed(read_set(statement), set(names))
            with translated():
                return self._spark.sql(text(statement))
        finally:
            for bound in names:
                self._drop(bound)

    @contextlib.contextmanager
    def bound(
        self,
        programs: Sequence[Program],
        facts: Facts[DataFrame],
        is_broadcastable: Callable[[DataFrame], bool],
    ) -> Iterator[Mapping[Predicate, Table]]:
        """Temporary views, under fresh names, of the facts that the programs read.

        Raises:
            ReadRefusedError: SM403 a rule reads a predicate that has neither rules nor facts.
        """
        read = list(dict.fromkeys(predicate for program in programs for predicate in undefined(program)))
        for program in programs:
            require_given(program, facts.relations)
        batch = uuid.uuid4().hex
        tables: dict[Predicate, Table] = {}
        try:
            for number, predicate in enumerate(read):
                # Dropping a view evicts whatever is cached with the view's own plan: the filter, which Spark
                # optimises away, makes the view's plan another one than that of a kept relation.
                frame = positional(facts.relations[predicate]).where(lit(True))
                tables[predicate] = Table(
                    name=self._named(frame, f"selfmaint_{batch}_{number}"),
                    columns=tuple(frame.columns),
                    not_null=facts.not_null.get(predicate, frozenset()),
                    broadcast=predicate in facts.small and is_broadcastable(facts.relations[predicate]),
                )
            yield tables
        finally:
            for table in tables.values():
                self._drop(table.name)

    def _named(self, frame: DataFrame, name: str) -> tuple[str, ...]:
        """A temporary view of a frame: the name that a statement reads it by."""
        if self._beside:
            frame.createGlobalTempView(name)
            return GLOBAL, name
        frame.createTempView(name)
        return (name,)

    def _drop(self, name: tuple[str, ...]) -> None:
        if self._beside:
            self._spark.catalog.dropGlobalTempView(name[-1])
        else:
            self._spark.catalog.dropTempView(name[-1])


def union_all(parts: Sequence[DataFrame]) -> DataFrame:
    """All rows of one or more relations, duplicates kept; by halves, as each union is analysed as a whole."""
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return union_all(parts[:middle]).union(union_all(parts[middle:]))


def marked(program: Program, goal: Predicate, number: int, given: Mapping[Predicate, DataFrame]) -> Program:
    """A program for a predicate that holds the goal's number if the goal has a row, and for nothing else.

    Before: `a(X, Y) :- r(X, Y), not b(X).  b(X) :- s(X).`  (goal `a`, number 3)
    After:  `goal(3) :- r(X, Y), not b(X).  b(X) :- s(X).`
    """
    taken = {p.name for rule in program.rules for p in (rule.head.predicate, *predicates_of(rule.body))}
    name = "goal"
    while name in taken:
        name += "_"
    head = Atom(Predicate(name), (Constant(number),))
    bodies: list[tuple[Literal, ...]] = [rule.body for rule in program.rules_for(goal)]
    if not bodies and goal in given:
        bodies.append((Atom(goal, tuple(Variable(f"X{i}") for i in range(len(given[goal].columns)))),))
    marks = tuple(Rule(head, body) for body in bodies)
    return drop_unreachable(replace(program, rules=(*marks, *program.rules)), [head.predicate])
