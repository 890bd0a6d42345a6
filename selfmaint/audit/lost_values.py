"""Which values of a view that groups may stay open although the core rows that it gains and loses are known.

The conditions under which a value is determined are those of `maintain/group_values.py`, for every group at once.
Core rows that are gained leave nothing open: a group with a new row is there, counts and sums add, an extremum moves.
Of core rows that are lost:

1. A group may be gone, unless its rows are counted, or it has one at most.
2. A sum may be over nothing, unless its operands are counted, or are never null in a group that is there.
3. An extremum may be the lost one, unless all core rows of the group are known, so that the others can be looked at.
4. An update of columns that nothing joins, compares, filters or groups puts a row in the place of each lost one: the
   group stays, and so do values that do not rest on these columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from datalog.model import AggregateFunction, Variable, variables_of
from datalog.model.expressions import expression_variables
from selfmaint.audit.changes import Change, Kind
from selfmaint.maintain.group_plan import GroupPlan
from selfmaint.warehouse.catalog import Catalog, View
from selfmaint.warehouse.grouped import Grouped, Measure

EXTREMA = (AggregateFunction.MIN, AggregateFunction.MAX)


@dataclass(frozen=True)
class LostValues:
    """What may be open in one view after one kind of change by which it loses core rows.

    Attributes:
        catalog: the warehouse.
        view: a view that groups.
        change: the kind of change.
        is_known: whether all core rows of any group are always known; matters where there are extrema.
    """

    catalog: Catalog
    view: View
    change: Change
    is_known: bool

    @property
    def grouped(self) -> Grouped:
        """What the view's columns are."""
        assert self.view.grouped is not None
        return self.view.grouped

    def open(self) -> Iterator[str]:
        """What may be open, in words."""
        grouped = self.grouped
        if not grouped.is_total and not self._has_rows and self._replaced is None:
            yield f"`{self.view.name}` does not tell whether a group that loses rows is empty: add `count(*)` to it"
        for measure in grouped.measures:
            function = measure.aggregate.function
            name = self.view.columns[measure.column]
            if self._is_replaced(measure):
                continue
            if function is AggregateFunction.SUM and not self._sum_is_closed(measure):
                yield f"`{name}` may be the sum of no value: add the count of its values to the view"
            if function in EXTREMA and not self._extremum_is_closed(measure):
                yield f"the row that `{name}` rests on may be lost, and other rows of the group are not known"

    @property
    def _has_rows(self) -> bool:
        """Condition 1."""
        return self.grouped.count_column is not None or (not self.grouped.is_total and self.grouped.is_single)

    def _counts(self, measure: Measure) -> bool:
        """Whether the number of a measure's values that are not null is known."""
        same = any(
            other.aggregate.function is AggregateFunction.COUNT
            and other.aggregate.operand == measure.aggregate.operand
            for other in self.grouped.measures
        )
        return same or (self._is_never_null(measure) and self._has_rows)

    def _is_never_null(self, measure: Measure) -> bool:
        return measure.column in GroupPlan(self.view, self.catalog.relations).never_null

    def _sum_is_closed(self, measure: Measure) -> bool:
        """Condition 2."""
        return self._counts(measure) or (self._is_never_null(measure) and not self.grouped.is_total)

    def _extremum_is_closed(self, measure: Measure) -> bool:
        """Condition 3; the other rows are looked for by the group's values, which have to be columns of the core."""
        plain = all(isinstance(group, Variable) for group in self.grouped.groups)
        if plain and self.grouped.groups and self.grouped.is_single:
            return True
        return plain and self.is_known and (self._has_rows or self._counts(measure))

    @property
    def _replaced(self) -> frozenset[Variable] | None:
        """Condition 4: the variables that an update changes, if it only puts rows in the places of others."""
        core, grouped = self.view.core, self.grouped
        assert core is not None
        if self.change.kind is not Kind.UPDATE:
            return None
        atoms = [atom for atom in core.body if atom.predicate.name == self.change.relation]
        terms = [atom.terms[i] for atom in atoms for i in self.change.columns]
        times = Counter(t for atom in core.body for t in atom.terms)
        fixed = set(variables_of(core.filters))
        used = expression_variables((*grouped.groups, *grouped.block.filters))
        fixed |= {t for v in used if isinstance(t := grouped.terms.get(v, v), Variable)}
        if any(not isinstance(t, Variable) or times[t] > 1 or t in fixed for t in terms):
            return None
        return frozenset(t for t in terms if isinstance(t, Variable))

    def _is_replaced(self, measure: Measure) -> bool:
        replaced = self._replaced
        if replaced is None:
            return False
        operand = measure.aggregate.operand
        used = () if operand is None else expression_variables([operand])
        return not any(self.grouped.terms.get(v, v) in replaced for v in used)
