"""What is asked: the views as they are written, everything known, and the new states that verdicts promise.

And what a search came to, for one view: an answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Self

from msgspec import Struct, field

from datalog.analysis import atoms_of
from datalog.copies import replace
from datalog.evaluate.order import one_nan, with_one_nan
from datalog.model import (
    ANY,
    Atom,
    Block,
    ColumnType,
    Expression,
    Literal,
    OpaqueView,
    Predicate,
    Row,
    Rule,
    Value,
    Variable,
    Version,
    ViewDefinition,
    value_kind,
)
from selfmaint.countermodel.model_check import may_repeat
from selfmaint.warehouse.catalog import Catalog, View
from selfmaint.warehouse.situation import Situation

Rows = Mapping[str, frozenset[Row]]

MOST_CANDIDATES = 2_000
"""How many rows a database may be chosen from, if nobody says."""


class Part(Struct, frozen=True):
    """One rule, or one block, of a view, as written."""

    body: tuple[Literal, ...]
    outputs: tuple[Expression, ...]
    block: Block | None = None


class Question(Struct, frozen=True, dict=True):
    """What is known, and what is promised.

    Attributes:
        catalog: the schema; of its views only what is written is read.
        situation: the kinds of facts known.
        rows: the facts: stored views, the update, copies.
        promised: for each "yes" the view's rows after the update, as they are stored; None of a "no", for which two
            databases are looked for, and of a "yes" in `open`.
        open: the views with a "yes" whose new rows are not at hand: two databases that differ contradict it.
        most_candidates: how many rows of base relations are looked at.
    """

    catalog: Catalog
    situation: Situation
    rows: Mapping[Predicate, frozenset[Row]]
    promised: Mapping[str, frozenset[Row] | None] = field(default_factory=dict)
    open: frozenset[str] = frozenset()
    most_candidates: int = MOST_CANDIDATES

    def with_one_nan(self) -> Question:
        """The question, where it came from another process."""
        promised = {name: None if its is None else with_one_nan(its) for name, its in self.promised.items()}
        return replace(self, rows={p: with_one_nan(its) for p, its in self.rows.items()}, promised=promised)

    def of(self, name: str, version: Version) -> frozenset[Row]:
        """What is given of one version of a relation."""
        return self.rows.get(Predicate(name, version), frozenset())

    def stored(self, view: View) -> frozenset[Row]:
        """A view's rows before the update."""
        return self.of(view.name, Version.STORED)

    def parts(self, view: View) -> tuple[Part, ...]:
        """The rules or blocks of a view; of one of rows without a match it is one that says so by `not`.

        That of a branch of a union is what the schema made of it: so a union's branches may be asked about, too.
        """
        definition = view.definition
        if isinstance(definition, OpaqueView):
            definition = definition.by_rules
        if isinstance(definition, ViewDefinition):
            return tuple(Part(b.core.body, b.outputs, b) for b in definition.blocks)
        is_branch = self.catalog.whole(view.name) != view.name
        rules = (view.rule,) if is_branch else self.written[view.name]
        return tuple(Part(rule.body, rule.head.terms) for rule in rules)

    @cached_property
    def written(self) -> Mapping[str, list[Rule]]:
        """The rules as written, by view."""
        found: dict[str, list[Rule]] = {view.name: [] for view in self.catalog.views}
        for rule in self.catalog.program.rules:
            found.setdefault(rule.head.predicate.name, []).append(rule)
        return found

    @cached_property
    def read_by_views(self) -> frozenset[str]:
        """The names of what the views read."""
        return frozenset().union(*map(self.reads, self.catalog.views))

    def reads(self, view: View) -> frozenset[str]:
        """The names of what a view reads."""
        bodies = [part.body for part in self.parts(view)]
        return frozenset(atom.predicate.name for body in bodies for li in body for atom in atoms_of(li))

    def types(self, body: Sequence[Literal]) -> dict[Variable, ColumnType]:
        """The types of a body's variables, of the first column that has one."""
        found: dict[Variable, ColumnType] = {}
        for atom in (li for li in body if isinstance(li, Atom)):
            relation = self.catalog.relations.get(atom.predicate.name)
            for i, term in enumerate(atom.terms):
                if relation is not None and isinstance(term, Variable) and relation.types[i] != ANY:
                    found.setdefault(term, relation.types[i])
        return found

    def keeps_duplicates(self, view: View) -> bool:
        """Whether the stored rows are counted here: each once, its number of copies last."""
        return view.is_counted or may_repeat(view)

    def is_certain(self, relation: str, row: Row) -> bool:
        """Whether it is known, without the views, that a row was there before."""
        known = row in self.of(relation, Version.PRESENT) or row in self.of(relation, Version.BEFORE)
        return known or (self.situation.effective and row in self.of(relation, Version.DELETED))

    def is_excluded(self, relation: str, row: Row) -> bool:
        """Whether it is known, without the views, that a row was not there before."""
        if relation in self.situation.readable and row not in self.of(relation, Version.BEFORE):
            return True
        inserted = self.situation.effective and row in self.of(relation, Version.INSERTED)
        return inserted or row in self.of(relation, Version.ABSENT)

    def known_rows(self, relation: str) -> Iterator[Row]:
        """The rows of a relation that are given."""
        given = (Version.INSERTED, Version.DELETED, Version.PRESENT, Version.BEFORE)
        for version in given:
            yield from sorted(self.of(relation, version), key=repr)


def identity(value: Value) -> tuple[str, Value]:
    """What tells values apart: 1 and 1.0 are one, `true` and 1 are two, and NaN is one."""
    return value_kind(value), one_nan(value)


def database_with_one_nan(database: Rows) -> dict[str, frozenset[Row]]:
    """A database in which NaN is itself."""
    return {name: with_one_nan(rows) for name, rows in database.items()}


class _WithoutRows:
    """An answer that has no rows."""

    def with_one_nan(self) -> Self:
        """Itself."""
        return self


class NothingFound(_WithoutRows, Struct, frozen=True):
    """No database was found on which the new state is another one: among so many candidate rows.

    Attributes:
        candidates: the number of rows that databases were chosen from.
    """

    view: str
    candidates: int


class Differing(Struct, frozen=True):
    """Databases before the update that explain what is known, and contradict the promised state, or each other.

    Attributes:
        databases: one whose new state is not the promised one; or two with different new states.
    """

    view: str
    databases: tuple[Rows, ...]

    def with_one_nan(self) -> Differing:
        """The databases, where they came from another process."""
        return replace(self, databases=tuple(map(database_with_one_nan, self.databases)))


class NotExamined(_WithoutRows, Struct, frozen=True):
    """Nothing is said; `is_late` where the time was over."""

    view: str
    reason: str
    is_late: bool = False


Answer = NothingFound | Differing | NotExamined


def better(one: Answer | None, other: Answer) -> Answer:
    """Of two answers for a view the one that says more; the second of two that say as much.

    >>> better(NothingFound("v", 10), NotExamined("v", "no time"))
    NothingFound(view='v', candidates=10)
    """
    worth = {NotExamined: 0, NothingFound: 1, Differing: 2}
    return one if one is not None and worth[type(one)] > worth[type(other)] else other
