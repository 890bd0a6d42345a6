"""Views as the decision sees them, and why some are outside the class that it is exact for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import Enum, unique
from functools import cached_property

from msgspec import Struct

from datalog.copies import replace
from datalog.model import (
    Atom,
    Comparison,
    Literal,
    NullTest,
    OpaqueView,
    Predicate,
    Rule,
    Semantics,
    Variable,
    ViewDefinition,
    variables_of,
)
from selfmaint.engine.protocol import NOTHING_PROMISED, Dependencies
from selfmaint.warehouse.base_relations import BaseRelation, determined_terms
from selfmaint.warehouse.grouped import Grouped


@unique
class Outside(Enum):
    """Why a view is outside the class that is decided exactly."""

    UNION = "union"
    COMPARISON = "comparison"
    PROJECTION = "projection"
    AGGREGATE = "aggregate"
    BAG = "bag"
    COMPUTED = "computed"
    OPAQUE = "opaque"
    OTHER = "other"


class Limitation(Struct, frozen=True):
    """The reason for which a view's verdict is `Undecided`."""

    kind: Outside
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class View:
    """A view as the decision sees it.

    Attributes:
        rule: the rule as written.
        head: the head; a constant where an equality fixes a variable.
        body: the distinct subgoals over base relations, views unfolded.
        not_null: variables that cannot be null in a view row (joined, compared, or tested).
        certain: variables in a base column that is never null.
        columns: the column names of its stored rows.
        comparisons: what a row of the view satisfies besides, in normal form: no `=`, none redundant.
        limitation: why it is outside the class that is decided exactly, or None.
        always_empty: why it can have no rows, whatever the database; then it has no body and no limitation.
        always_one: why its rows are one, its head, whatever the database: it aggregates all rows of nothing. Then it
            has no body and no limitation either.
        definition: what it was defined as, if by more than rules: in SQL, or with `.view`.
        if_inexact: the view as it can be maintained if sums of doubles need not be exact; None if that helps nothing.
        shown_groups: of one outside the class for its HAVING its groups, as a view whose rows tell nothing.
        grouping: the definition of its rows as groups; of a view that keeps duplicates as counted rows (`cores.py`).
        is_counted: whether it keeps duplicates, and is decided and maintained: then `head` and `columns` are those
            of its counted rows, the number of copies last.
        rule_of: of a branch of a union, the union's name and which of its rules this is; of what a view with LEFT
            JOINs is made of, that view's name and what this is.
    """

    name: str
    rule: Rule
    head: Atom
    body: tuple[Atom, ...]
    not_null: frozenset[Variable]
    certain: frozenset[Variable]
    columns: tuple[str, ...]
    comparisons: tuple[Comparison, ...] = ()
    limitation: Limitation | None = None
    always_empty: str | None = None
    always_one: str | None = None
    definition: ViewDefinition | OpaqueView | None = None
    if_inexact: View | None = None
    shown_groups: GroupedView | None = None
    grouping: ViewDefinition | None = None
    is_counted: bool = False
    rule_of: tuple[str, int | str] | None = None

    @property
    def shown(self) -> str:
        """The view's name for messages; a branch is the rule of the union that it is."""
        return f"`{self.name}`" if self.rule_of is None else f"{self.part} of `{self.rule_of[0]}`"

    @property
    def part(self) -> str:
        """What a branch is of its view."""
        number = None if self.rule_of is None else self.rule_of[1]
        return f"rule {number}" if isinstance(number, int) else str(number)

    @property
    def stored_in(self) -> Predicate:
        """The predicate of the view whose rows its rows are stored with: of a branch its union's."""
        return self.predicate if self.rule_of is None else Predicate(self.rule_of[0])

    @property
    def unchanging(self) -> str | None:
        """Why its rows are the same whatever the database, none or one; None of a view whose rows may change."""
        return self.always_empty or self.always_one

    @property
    def stored_columns(self) -> tuple[str, ...]:
        """The column names of its rows where they are stored: without the number of copies."""
        return self.columns[:-1] if self.is_counted else self.columns

    @property
    def semantics(self) -> Semantics | None:
        """Whether its rows stand once or as often as they are derived; None where that is the same, or not decided."""
        return None

    @property
    def stands_once(self) -> bool:
        """Whether equal rows of it stand once, as rules and DISTINCT say."""
        return not isinstance(self.definition, ViewDefinition) or self.definition.semantics is Semantics.SET

    @property
    def is_decided(self) -> bool:
        """Whether it is decided and maintained, if perhaps not exactly."""
        return self.limitation is None

    @property
    def decided(self) -> View:
        """The conjunctive view that is decided for it: itself, or the core of its groups."""
        return self

    @property
    def predicate(self) -> Predicate:
        """The predicate of its stored rows."""
        return self.head.predicate

    @property
    def is_more_than_rules(self) -> bool:
        """Whether its head and body are not what it means: it groups, computes, keeps duplicates, or is text."""
        beyond = (Outside.AGGREGATE, Outside.BAG, Outside.COMPUTED, Outside.OPAQUE)
        return self.limitation is not None and self.limitation.kind in beyond

    @cached_property
    def joined(self) -> tuple[frozenset[int], ...]:
        """Sets of its 0-based columns, one a subgoal or comparison, on whose projections its rows are the natural join.

        None, if its rows do not show all that its body binds, or are not what its body alone says.
        """
        shown = frozenset(variables_of([self.head]))
        is_join = self.is_decided and self.decided is self and not self.is_counted
        if not is_join or not shown >= frozenset(variables_of(self.body)):
            return ()
        literals: tuple[Literal, ...] = (*self.body, *self.comparisons)
        used = (frozenset(variables_of([literal])) for literal in literals)
        return tuple(frozenset(i for i, t in enumerate(self.head.terms) if t in some) for some in used)

    def dependencies(self, relations: Mapping[str, BaseRelation]) -> Dependencies:
        """What its rows have in common, as keys of the relations that it reads say."""
        if not self.is_decided or self.decided is not self or self.is_counted:
            return NOTHING_PROMISED
        determined = []
        for column, term in enumerate(self.head.terms):
            told = determined_terms([term], self.body, relations)
            its = frozenset(i for i, other in enumerate(self.head.terms) if i != column and other in told)
            determined += [(column, its)] if its else []
        return Dependencies(self.joined, tuple(determined))

    @cached_property
    def guards(self) -> tuple[NullTest, ...]:
        """What `not_null` demands beyond what the base columns promise and comparisons imply, in the body's order."""
        implied = self.certain.union(variables_of(self.comparisons))
        return tuple(NullTest(v) for v in variables_of(self.body) if v in self.not_null - implied)

    @cached_property
    def filters(self) -> tuple[NullTest | Comparison, ...]:
        """What a match of the body must satisfy besides: guards and comparisons."""
        return (*self.guards, *self.comparisons)


def as_part_of(view: View, whole: View, part: int | str, columns: tuple[str, ...]) -> View:
    """A branch, said in messages to be a rule of a union, or what a view is made of."""
    found = replace(view, columns=columns, rule_of=(whole.name, part))
    if isinstance(found, GroupedView):
        found = replace(found, core=replace(found.core, rule_of=found.rule_of))
    if view.shown_groups is not None:
        groups = as_part_of(view.shown_groups, whole, part, columns)
        found = replace(found, shown_groups=groups if isinstance(groups, GroupedView) else None)
    if view.limitation is None:
        return found
    text = view.limitation.text.replace(f"`{view.name}`", found.shown)
    return replace(found, limitation=Limitation(view.limitation.kind, text))


@dataclass(frozen=True, kw_only=True)
class GroupedView(View):
    """A view whose stored rows are groups of its core's rows, and that can be maintained.

    A view that projects, or computes columns, groups by its columns; one that keeps duplicates counts them besides.

    Attributes:
        core: the conjunctive view of its core, which is not stored.
        grouped: what its columns are.
    """

    core: View
    grouped: Grouped

    @classmethod
    def of(cls, view: View, core: View, grouped: Grouped) -> GroupedView:
        """A view as groups of a core's rows."""
        own = {f.name: getattr(view, f.name) for f in fields(View)}
        return cls(**own, core=core, grouped=grouped)

    @property
    def is_decided(self) -> bool:
        """Always: but for what its groups leave open."""
        return True

    @property
    def uncounted(self) -> str:
        """Why nobody knows which rows of the view are left, where it has no count of what they are made of."""
        if self.limitation is not None and self.limitation.kind is Outside.AGGREGATE:
            return (
                f"{self.shown} does not tell whether a group that loses rows is empty: add `count(*)` to it"
            )
        shown = f"{self.shown} does not tell how many rows of what it reads give the same row of it"
        return f"{shown}: show their keys, or group by its columns with `count(*)`"

    @property
    def alone(self) -> str | None:
        """What to add to a view with an average whose sum or number of values it does not show."""
        for measure in self.grouped.measures:
            operand = measure.aggregate.operand
            if measure.column in self.grouped.alone:
                of = operand.name.lower() if isinstance(operand, Variable) else "..."
                name = self.columns[measure.column]
                return f"`{name}` is an average: add `sum({of})` and `count({of})` to the view"
        return None

    @property
    def decided(self) -> View:
        """Its core."""
        return self.core

    @property
    def semantics(self) -> Semantics | None:
        """Whether its rows stand once or as often as they are derived; None where that is the same."""
        if self.is_counted:
            return Semantics.BAG
        return None if self.grouped.measures or self.grouped.is_single else Semantics.SET
