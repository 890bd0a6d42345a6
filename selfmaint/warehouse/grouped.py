"""Views that group, over a conjunctive core: what each stored column is, and what is missing to maintain it.

    v(G, count(*), sum(X)) :- r(G, X, Y), s(Y, Z).

The *core* is the rule with all body variables in its head: a set of rows, as base relations are sets. A stored row
is a group of core rows; its columns are grouping expressions and aggregates. A view that projects, as a set, groups by
its columns and has no aggregate; one that keeps duplicates groups by its columns and counts (`cores.py`).

Conditions of soundness:

1. Every grouping expression is a column, so that stored rows are told apart by their groups.
2. Core rows are a set: the relations are, as each has a key if the view is in SQL.
3. A group without core rows is not stored, and one with core rows is, unless the view filters or has a `having`. Only
   the one group of a view that aggregates all rows is stored even if there are none.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from msgspec import Struct

from datalog.model import (
    Aggregate,
    AggregateFunction,
    Atom,
    Block,
    Compared,
    Constant,
    Expression,
    Predicate,
    Rule,
    Term,
    Variable,
    ViewDefinition,
    aggregates_of,
    expression_variables,
    is_some,
    variables_of,
)

SOME_ROWS = Compared(">", Aggregate(AggregateFunction.COUNT), Constant(0))
"""What holds of a group of some rows; without grouping expressions there is one of none too."""


class Measure(Struct, frozen=True):
    """An aggregate that a view stores: its column, and what it is."""

    column: int
    aggregate: Aggregate


@dataclass(frozen=True)
class Grouped:
    """A view that groups, without its core's body.

    Attributes:
        block: the definition's only block.
        columns: for each grouping expression, the view's column that holds it.
        measures: the other columns.
        terms: what each variable of the block stands for in the core: another variable, or a constant.
        is_single: whether a group has at most one core row, as keys say.
        inexact: the columns that add up doubles: their values depend on the order of adding.
        alone: the columns of averages whose sum, or number of values, no other column shows.
        is_total: whether it has one row even over no core rows: it aggregates all of them.
        is_hidden: whether nothing is taken of what is stored of it: it is a summand of a union, or a view that leaves
            groups out by its HAVING (`selfmaint.maintain.shown_groups`).
    """

    block: Block
    columns: tuple[int, ...]
    measures: tuple[Measure, ...]
    terms: Mapping[Variable, Term] = field(hash=False)
    is_single: bool = False
    inexact: frozenset[int] = frozenset()
    alone: frozenset[int] = frozenset()
    is_total: bool = False
    is_hidden: bool = False

    @property
    def groups(self) -> tuple[Expression, ...]:
        """The grouping expressions; none if all rows are one group, as those of a view of constants are."""
        return self.block.groups or ()

    @cached_property
    def tells_absence(self) -> bool:
        """Condition 3: whether a group that is not stored has no core rows."""
        return not (self.is_total or self.is_hidden or self.block.filters or self.block.having)

    @cached_property
    def group_terms(self) -> Mapping[int, Term]:
        """For each column that holds a plain variable of the core, the core's term."""
        return {
            column: self.terms[group]
            for column, group in zip(self.columns, self.groups, strict=True)
            if isinstance(group, Variable)
        }

    @cached_property
    def tested(self) -> tuple[Measure, ...]:
        """The aggregates that HAVING asks for and no column holds, with numbers behind those of the columns."""
        stored = {repr(m.aggregate) for m in self.measures}
        others = (one for one in aggregates_of(self.block.having) if repr(one) not in stored)
        return tuple(Measure(at, one) for at, one in enumerate(others, len(self.block.outputs)))

    @cached_property
    def count_column(self) -> int | None:
        """The column of `count(*)`, or None."""
        found = (m.column for m in self.measures if m.aggregate.function is AggregateFunction.COUNT)
        return next((c for c in found if self._counts_all(c)), None)

    def _counts_all(self, column: int) -> bool:
        return any(m.column == column and m.aggregate.operand is None for m in self.measures)

    def stored(self, predicate: Predicate, prefix: str) -> Atom:
        """A stored row as an atom: the core's terms where columns hold them, new variables elsewhere."""
        arity = len(self.block.outputs)
        terms = tuple(self.group_terms.get(i, Variable(f"{prefix}{i}")) for i in range(arity))
        return Atom(predicate, terms)

    def operand(self, measure: Measure) -> Term | None:
        """The core's term that a measure aggregates, if it is a term."""
        operand = measure.aggregate.operand
        return self.terms[operand] if isinstance(operand, Variable) else None

    def is_never_null(self, measure: Measure, known: Collection[Term]) -> bool:
        """Whether what a measure aggregates is null in no row, given terms of the core that never are."""
        operand = measure.aggregate.operand
        return operand is not None and is_some(operand, lambda one: self.terms[one] in known)


def core_rule(definition: ViewDefinition) -> Rule | None:
    """The rule of a view's core, all body variables in its head; None if the view has several blocks."""
    if len(definition.blocks) != 1:
        return None
    body = definition.blocks[0].core.body
    head = Atom(definition.blocks[0].core.head.predicate, variables_of(body))
    return Rule(head, body, definition.span)


def grouped(definition: ViewDefinition, written: Rule, head: Atom) -> Grouped | str:
    """What the columns of a view are, or why it cannot be maintained."""
    (block,) = definition.blocks
    terms = {v: t for v, t in zip(written.head.terms, head.terms, strict=True) if isinstance(v, Variable)}
    groups = block.groups or ()
    measures, computed = [], list[str]()
    places: dict[Expression, int] = {}
    for column, output in enumerate(block.outputs):
        if isinstance(output, Aggregate):
            measures.append(Measure(column, output))
        elif output in groups:
            places.setdefault(output, column)
        elif expression_variables([output]) or aggregates_of([output]):
            computed.append(
                f"its column `{definition.columns[column]}` computes with {_hidden(block, output)}"
            )
    if len(places) < len(groups):
        return "it groups by what is no column of it"
    found = Grouped(block, tuple(places[g] for g in groups), tuple(measures), terms)
    return missing(definition, found) or next(iter(computed), found)


def _hidden(block: Block, output: Expression) -> str:
    """What a computed column has that no other column shows."""
    shown = {repr(one) for one in block.outputs}
    hidden = [one for one in aggregates_of([output]) if repr(one) not in shown]
    if not hidden:
        return "aggregates"
    named = dict.fromkeys(f"`{_written(one)}`" for one in hidden)
    what = "it in a column of its" if len(named) == 1 else "them in columns of their"
    return f"{', '.join(named)}: show {what} own, too"


def _written(one: Aggregate) -> str:
    operand = one.operand
    within = "*" if operand is None else operand.name.lower() if isinstance(operand, Variable) else "..."
    return f"{one.function.value}({'distinct ' if one.distinct else ''}{within})"


def missing(definition: ViewDefinition, found: Grouped) -> str | None:
    """What no change can be added to, whatever it is; None if there is nothing of that kind."""
    for measure in found.measures:
        if measure.aggregate.distinct:
            return f"`{definition.columns[measure.column]}` counts equal values once, which does not add up"
    return None
