"""The in-memory engine: the reference evaluator over sets of rows. For small data, tests and counterexamples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

from datalog.evaluate import Evaluator, evaluate_view
from datalog.model import ColumnType, OpaqueView, Predicate, Program, Row, Value, ViewDefinition, value_kind
from selfmaint.engine.protocol import Asked, Facts
from selfmaint.errors import Code, input_error


class SetBags:
    """`Bags` over frozensets of rows."""

    def recounted(self, parts: Sequence[tuple[frozenset[Row], int]]) -> frozenset[Row]:
        """The sum of some bags, each with 1 or -1."""
        total: Counter[Row] = Counter()
        for rows, sign in parts:
            for row in rows:
                total[row[:-1]] += sign * _copies(row)
        return frozenset((*row, copies) for row, copies in total.items() if copies > 0)

    def copies(self, data: frozenset[Row]) -> int:
        """The sum of the last column."""
        return sum(map(_copies, data))

    def expanded(self, data: frozenset[Row]) -> frozenset[Row]:
        """The rows, if none stands twice."""
        if any(_copies(row) > 1 for row in data):
            message = "a set of rows cannot hold a row twice, as a view that keeps duplicates does"
            raise input_error(Code.NOT_MAINTAINED, message, "use the Spark engine")
        return frozenset(row[:-1] for row in data)

    def matching(self, data: frozenset[Row], columns: Sequence[int], keys: frozenset[Row]) -> frozenset[Row]:
        """The rows whose values in some columns are a row of `keys`."""
        known = {tuple(map(_typed, key)) for key in keys}
        return frozenset(row for row in data if tuple(_typed(row[i]) for i in columns) in known)

    def numbered(self, data: frozenset[Row], sign: int, name: str) -> frozenset[Row]:
        """The rows, none of which stands twice."""
        return frozenset((*row, sign) for row in data)

    def together(self, parts: Sequence[frozenset[Row]]) -> frozenset[Row]:
        """The rows of some sets, if none is in two of them."""
        found = frozenset[Row]().union(*parts)
        if len(found) < sum(map(len, parts)):
            message = "a set of rows cannot hold a row twice"
            raise input_error(Code.NOT_MAINTAINED, message, "use the Spark or the DuckDB engine")
        return found


def _copies(row: Row) -> int:
    copies = row[-1]
    assert isinstance(copies, int)
    return copies


class MemoryEngine:
    """An `Engine` whose relations are frozensets of rows. They have no column names."""

    name = "memory"
    bags = SetBags()

    _last: tuple[Program, Mapping[Predicate, frozenset[Row]], Evaluator] | None = None

    def load(self, rows: Iterable[Row], names: Sequence[str], types: Sequence[ColumnType]) -> frozenset[Row]:
        """The rows as a set."""
        return frozenset(tuple(row) for row in rows)

    def evaluate(
        self,
        program: Program,
        goal: Predicate,
        facts: Facts[frozenset[Row]],
        names: Sequence[str] | None = None,
    ) -> frozenset[Row]:
        """The goal's extension."""
        return self._evaluator(program, facts).extension(goal)

    def evaluate_all(
        self,
        program: Program,
        goals: Mapping[Predicate, Sequence[str]],
        facts: Facts[frozenset[Row]],
        most: int | None = None,
    ) -> dict[Predicate, frozenset[Row]]:
        """The extensions of some goals."""
        return {goal: self.evaluate(program, goal, facts, names) for goal, names in goals.items()}

    def _evaluator(self, program: Program, facts: Facts[frozenset[Row]]) -> Evaluator:
        """What evaluates a program; the last one is kept, with what it has derived."""
        if self._last is None or self._last[0] is not program or self._last[1] is not facts.relations:
            self._last = (program, facts.relations, Evaluator(program, facts.relations))
        return self._last[2]

    def evaluate_view(
        self,
        definition: ViewDefinition,
        facts: Facts[frozenset[Row]],
        types: Mapping[Predicate, Sequence[ColumnType]],
    ) -> frozenset[Row]:
        """The rows of a definition."""
        bags = {p: Counter(facts.relations[p]) for p in definition.reads if p in facts.relations}
        return frozenset(evaluate_view(definition, bags, types))

    def selected(self, selection: ViewDefinition, data: frozenset[Row]) -> frozenset[Row]:
        """The rows that a selection leaves."""
        (stored,) = selection.reads
        return self.evaluate_view(selection, Facts({stored: data}), {})

    def recompute(
        self,
        definition: ViewDefinition | OpaqueView,
        facts: Facts[frozenset[Row]],
        types: Mapping[Predicate, Sequence[ColumnType]],
        like: frozenset[Row],
    ) -> frozenset[Row]:
        """The rows of a definition; a text is nothing that this engine can run.

        Raises:
            InputError: SM404 a view of which only the text is known.
        """
        if isinstance(definition, OpaqueView):
            message = f"the view `{definition.name}` cannot be recomputed in memory: only its SQL is known"
            raise input_error(Code.NOT_MAINTAINED, message, "use the Spark engine")
        return self.evaluate_view(definition, facts, types)

    def nonempty(
        self,
        program: Program,
        goals: Sequence[Predicate],
        facts: Facts[frozenset[Row]],
        *,
        bounded: bool = False,
    ) -> frozenset[Predicate]:
        """The goals that have a row."""
        evaluator = self._evaluator(program, facts)
        return frozenset(goal for goal in goals if evaluator.first(goal) is not None)

    def foresee(self, asked: Iterable[Asked], facts: Facts[frozenset[Row]]) -> None:
        """Nothing is read twice here."""

    def sample(self, data: frozenset[Row], limit: int) -> list[Row]:
        """Some rows."""
        return list(islice(data, limit))

    def fetch(self, data: frozenset[Row], limit: int) -> frozenset[Row] | None:
        """The rows, if they are few."""
        return data if len(data) <= limit else None

    def count(self, data: frozenset[Row]) -> int:
        """The number of rows."""
        return len(data)

    def union(self, parts: Sequence[frozenset[Row]]) -> frozenset[Row]:
        """The union."""
        return frozenset().union(*parts)

    def minus(self, left: frozenset[Row], right: frozenset[Row]) -> frozenset[Row]:
        """The difference."""
        return left - right

    def minus_all(self, left: frozenset[Row], right: frozenset[Row]) -> frozenset[Row]:
        """The difference: a set holds a row once."""
        return left - right

    def beyond(self, one: frozenset[Row], other: frozenset[Row]) -> tuple[frozenset[Row], frozenset[Row]]:
        """The differences."""
        return one - other, other - one

    def empty(self, like: frozenset[Row]) -> frozenset[Row]:
        """No rows."""
        return frozenset()

    def like(self, data: frozenset[Row], other: frozenset[Row]) -> frozenset[Row]:
        """The rows: they have no types."""
        return data

    def keep(self, data: frozenset[Row]) -> frozenset[Row]:
        """The rows: they are computed already."""
        return data

    def release(self) -> None:
        """Lets go of what was derived last."""
        self._last = None

    def columns(self, data: frozenset[Row]) -> tuple[str, ...]:
        """Positional names."""
        width = len(next(iter(data), ()))
        return tuple(f"c{i}" for i in range(width))


def _typed(value: Value) -> tuple[str, Value]:
    """A value that tells booleans from numbers."""
    return value_kind(value), value
