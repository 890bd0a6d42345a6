"""What an engine does: it evaluates programs over facts, and never hands out more than a bounded number of rows.

Data reaches Python only through `sample` and `fetch`, each with a limit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Generic, Protocol, TypeVar

from msgspec import Struct, field

from datalog.copies import replace
from datalog.model import ColumnType, OpaqueView, Predicate, Program, Row, ViewDefinition

D = TypeVar("D")
"""An engine's own representation of a relation: a frozenset of rows, a Spark DataFrame, a table of DuckDB's."""


class Dependencies(Struct, frozen=True):
    """What the rows of a relation are promised to have in common with one another; columns are 0-based.

    Attributes:
        joined: sets of columns, on whose projections the rows are the natural join: a join dependency.
        determined: for some columns those that have one value wherever the column has one: functional dependencies.
    """

    joined: tuple[frozenset[int], ...] = ()
    determined: tuple[tuple[int, frozenset[int]], ...] = ()

    def told_by(self, column: int) -> frozenset[int]:
        """The columns that a column determines."""
        return dict(self.determined).get(column, frozenset())


NOTHING_PROMISED = Dependencies()


class Facts(Struct, Generic[D], frozen=True):
    """The extensions of the predicates that a program may read. A statement can read nothing else.

    Attributes:
        not_null: for each predicate, the 0-based columns that never hold null.
        small: predicates whose size follows the update's, not the base's.
        dependencies: what the rows of some predicates have in common.
    """

    relations: Mapping[Predicate, D] = field(default_factory=dict)
    not_null: Mapping[Predicate, frozenset[int]] = field(default_factory=dict)
    small: frozenset[Predicate] = frozenset()
    dependencies: Mapping[Predicate, Dependencies] = field(default_factory=dict)

    def extended(
        self,
        relations: Mapping[Predicate, D],
        *,
        not_null: Mapping[Predicate, frozenset[int]] | None = None,
        small: bool = True,
    ) -> Facts[D]:
        """These facts and some more; where a predicate is given again, the new rows count."""
        return replace(
            self,
            relations={**self.relations, **relations},
            not_null={**self.not_null, **(not_null or {})},
            small=self.small | frozenset(relations) if small else self.small,
            dependencies={p: its for p, its in self.dependencies.items() if p not in relations},
        )


class Layout(Struct, frozen=True):
    """How a relation is stored, as far as that is known without reading it.

    Attributes:
        rows: the number of rows.
        most: at most so many rows there are, if it is not known how many.
        spreads: for columns of whole numbers, how many there are from the smallest to the largest.
        never_null: columns that certainly hold no null. Only costs depend on the others.
    """

    rows: int | None = None
    spreads: Mapping[int, int] = field(default_factory=dict)
    never_null: frozenset[int] = frozenset()
    most: int | None = None

    @property
    def at_most(self) -> int | None:
        """How many rows there are at most, if that is known."""
        return self.most if self.rows is None else self.rows


class Asked(Struct, frozen=True):
    """What is asked of an engine.

    Attributes:
        program: safe, non-recursive rules.
        goals: the predicates asked for.
        whole: whether their rows are asked for, or only whether they have one.
    """

    program: Program
    goals: tuple[Predicate, ...]
    whole: bool


class Bags(Protocol[D]):
    """What an engine does with bags. They are given as counted rows: each row once, its number of copies last."""

    def recounted(self, parts: Sequence[tuple[D, int]]) -> D:
        """The sum of some bags, each with 1 or -1, as counted rows: those with a positive number of copies.

        Columns are named as the first part's.
        """
        ...

    def copies(self, data: D) -> int:
        """The number of rows of a bag: the sum of the last column.

        Raises:
            InputError: SM103 or SM104, stored contents that turn out to be unreadable.
        """
        ...

    def expanded(self, data: D) -> D:
        """The rows of a bag, each as often as it stands.

        Raises:
            InputError: SM404 the engine has no relation that holds a row twice.
        """
        ...

    def matching(self, data: D, columns: Sequence[int], keys: D) -> D:
        """The rows, as often as they stand, whose values in some columns are a row of `keys`; null is a value.

        The rows need not be counted here; keys are of the columns' types, or whole numbers where these are.
        """
        ...

    def together(self, parts: Sequence[D]) -> D:
        """The rows of some relations, here not counted, each as often as it stands in them; named as the first's."""
        ...

    def numbered(self, data: D, sign: int, name: str) -> D:
        """The rows, not counted here, with their numbers among equal ones (1, 2, ...) times `sign` as a last column."""
        ...


class Engine(Protocol[D]):
    """Evaluates safe non-recursive Datalog under set semantics. Programs are read-only and validated before."""

    @property
    def name(self) -> str:
        """`memory`, `duckdb` or `spark`."""
        ...

    @property
    def bags(self) -> Bags[D]:
        """What it does with bags."""
        ...

    def load(self, rows: Iterable[Row], names: Sequence[str], types: Sequence[ColumnType]) -> D:
        """A relation from a few rows that are at hand (a bounded number: they pass through this process)."""
        ...

    def evaluate(
        self, program: Program, goal: Predicate, facts: Facts[D], names: Sequence[str] | None = None
    ) -> D:
        """The goal's extension, distinct rows. `names` names its columns."""
        ...

    def evaluate_all(
        self,
        program: Program,
        goals: Mapping[Predicate, Sequence[str]],
        facts: Facts[D],
        most: int | None = None,
    ) -> dict[Predicate, D]:
        """The extensions of some predicates with rules, given with the names of their columns, in one go.

        Where joins have more than `most` rows on the way to a goal, it may be left out.
        """
        ...

    def evaluate_view(
        self, definition: ViewDefinition, facts: Facts[D], types: Mapping[Predicate, Sequence[ColumnType]]
    ) -> D:
        """The distinct rows of a definition over facts, each of which is a set; columns named as it says.

        The digits of decimals depend on the types of the columns that it reads.
        """
        ...

    def selected(self, selection: ViewDefinition, data: D) -> D:
        """The rows of a relation that a selection leaves, or some of their columns; computed when they are used."""
        ...

    def recompute(
        self,
        definition: ViewDefinition | OpaqueView,
        facts: Facts[D],
        types: Mapping[Predicate, Sequence[ColumnType]],
        like: D,
    ) -> D:
        """All rows of a definition, held, each as often as it stands where the engine's relations keep that.

        `like` has the columns of the result; a text's are matched by name.

        Raises:
            InputError: SM502 a text that the engine cannot run; SM104 one with other columns.
        """
        ...

    def nonempty(
        self, program: Program, goals: Sequence[Predicate], facts: Facts[D], *, bounded: bool = False
    ) -> frozenset[Predicate]:
        """Which goals have a row; one job for all of them.

        `bounded` may say so, too, of goals of which it takes joins of far more rows than are joined to know.
        """
        ...

    def foresee(self, asked: Iterable[Asked], facts: Facts[D]) -> None:
        """Says what will be evaluated, so that it can be read along with what is read before; only costs depend on it.

        Args:
            asked: all that is known of, found out only if it is gone through; what was foreseen before is forgotten.
            facts: what it reads.
        """
        ...

    def sample(self, data: D, limit: int) -> list[Row]:
        """At most `limit` rows, to be shown: where data may be large the first ones, in the order of their columns."""
        ...

    def fetch(self, data: D, limit: int) -> Collection[Row] | None:
        """All rows, if there are at most `limit`, with exactly the values that are stored.

        Returns:
            The distinct rows; None if there are more, or if this process has no exact values for a column's type.
        """
        ...

    def count(self, data: D) -> int:
        """The number of rows."""
        ...

    def union(self, parts: Sequence[D]) -> D:
        """The set union of one or more relations of one arity, columns by position, named as the first's."""
        ...

    def minus(self, left: D, right: D) -> D:
        """Rows of `left` not in `right`, nulls equal, columns by position."""
        ...

    def minus_all(self, left: D, right: D) -> D:
        """As `minus`, but each row of `right` takes away one equal row of `left`, held."""
        ...

    def beyond(self, one: D, other: D) -> tuple[D, D]:
        """`minus_all` both ways: the rows of each beyond those of the other, held."""
        ...

    def empty(self, like: D) -> D:
        """No rows, with the types and names of some columns."""
        ...

    def like(self, data: D, other: D) -> D:
        """The rows with the types and names of another relation's columns."""
        ...

    def keep(self, data: D) -> D:
        """The same rows, computed once and held until `release`."""
        ...

    def release(self) -> None:
        """Lets go of everything that `keep` holds."""
        ...

    def columns(self, data: D) -> tuple[str, ...]:
        """The column names, in order."""
        ...
