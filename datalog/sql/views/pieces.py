"""What a query is while it is read: pieces that joins put together, and blocks that they become."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from datalog.model import (
    Condition,
    Expression,
    Literal,
    Term,
    Variable,
    apply_literal,
    map_condition,
    map_expression,
)


@dataclass(frozen=True, slots=True)
class Draft:
    """A block that is not named yet.

    Attributes:
        body: atoms, comparisons and null tests.
        outputs: what the columns are.
        filters: conditions that are no literals.
        groups: grouping expressions; None without grouping.
        having: conditions on groups.
    """

    body: tuple[Literal, ...] = ()
    outputs: tuple[Expression, ...] = ()
    filters: tuple[Condition, ...] = ()
    groups: tuple[Expression, ...] | None = None
    having: tuple[Condition, ...] = ()

    def substituted(self, substitution: Mapping[Variable, Term]) -> Draft:
        """The draft with variables replaced everywhere."""

        def change(value: Expression) -> Expression | None:
            return substitution.get(value) if isinstance(value, Variable) else None

        return Draft(
            tuple(apply_literal(substitution, literal) for literal in self.body),
            tuple(map_expression(change, output) for output in self.outputs),
            tuple(map_condition(change, one) for one in self.filters),
            None if self.groups is None else tuple(map_expression(change, one) for one in self.groups),
            tuple(map_condition(change, one) for one in self.having),
        )


@dataclass(frozen=True, slots=True)
class Query:
    """A query that was read.

    Attributes:
        columns: the names of its columns.
        drafts: the blocks whose rows are added up.
        distinct: whether equal rows then stand once.
    """

    columns: tuple[str, ...]
    drafts: tuple[Draft, ...]
    distinct: bool = False
