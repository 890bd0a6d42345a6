"""Groups that are shown where some sum is not 0: one that is not shown adds up to nothing, whatever rows it has.

    v(C, sum(A)) :- payment(I, C, A) having sum(A) <> 0.
    k1: 7 in all. A payment of 7 is deleted: 0 is left, of no rows or of others, and the group is left out
    k2 is not stored, and a payment of 3 comes: 3

So are the sides of LEFT JOINs that show sums with 0 for none, and nothing else (`datalog.sql.views.outer.outer_joins`).

Conditions of soundness:

1. All aggregates are sums, of whole numbers or decimals, and HAVING asks that one of them is not 0, no more and no
   less: each is shown, and no other is asked for. A sum of what may be null is the only one: else it could be shown
   beside another, as null or as 0. Then the old sums of a group are those of its row, or come to 0, as those of one
   without rows do.
2. They add and subtract; where numbers pass what can be computed without loss (`exact_numbers.py`) the group is open.
"""

from __future__ import annotations

from msgspec import Struct

from datalog.model import AnyOf, Compared, Condition, Expression
from selfmaint.maintain.conditions import negation
from selfmaint.maintain.group_values import FALSE, ZERO, GroupValues
from selfmaint.warehouse.grouped import Measure


class NonzeroSums(Struct, frozen=True):
    """Expressions over a group's old row, if it is stored, and its parts.

    Attributes:
        values: the values of the group.
        sums: those that the view shows, which are all that HAVING asks for.
    """

    values: GroupValues
    sums: tuple[Measure, ...]

    @property
    def exists(self) -> Condition:
        """Whether the group is shown after the update."""
        return AnyOf(tuple(Compared("!=", self.new(m), ZERO) for m in self.sums))

    @property
    def is_open(self) -> Condition:
        """Whether something about the group is not determined."""
        return AnyOf(tuple(negation(self.values.adds_up(m.column)) for m in self.sums))

    @property
    def is_overdrawn(self) -> Condition:
        """Whether more rows are lost than there were: sums do not tell."""
        return FALSE

    def new(self, measure: Measure) -> Expression:
        """A sum after the update, where it is determined."""
        return self.values.total(measure.column)
