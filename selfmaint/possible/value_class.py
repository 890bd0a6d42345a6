"""One class of values: its constants, and the places for values that nothing mentions, as numbers for the solver.

Values of a class meet each other and no others (`value_classes.py`). Each value of a database that is no constant of
its class can be renamed to any other one that is none either: only which of them are equal matters, and where values
are compared, what they are compared with.

- *Not compared by size*: one region, in which each labelled null has a place of its own.
- *Compared with constants*, the landmarks: a region below the first, between any two neighbours, above the last, with
  a place for each labelled null. What is in one region passes the same tests.
- *Compared with each other*, or with less room in some region than there are nulls: a region between any two
  constants, with so many places as there are nulls, or as there are values if these are fewer; any null may take any
  place. Numbers follow the order in all of these, so that the solver compares numbers.

Condition of exactness: steps between values are known where all columns of the class have one declared type; else the
class is taken for dense, which adds databases: a "yes" stays sound, and a "no" is shown by real values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

from datalog.model import ANY, ColumnType, Comparison, Constant, Value, Variable, value_kind
from datalog.order import satisfiable
from datalog.order.domains import Grid, domain_of
from datalog.order.points import point_of

_COLUMN = Variable("Column")


def fits(value: Value, column_type: ColumnType) -> bool:
    """Whether a column of a type can hold a value that is not null."""
    if not column_type.accepts(value):
        return False
    if column_type == ANY or isinstance(value, float):
        return True
    return satisfiable([Comparison("=", _COLUMN, Constant(value))], {_COLUMN: column_type})


class NotComparableError(Exception):
    """Values of several families are compared, or values without a place in an order."""


@dataclass(eq=False)
class ValueClass:
    """The columns that share values.

    Attributes:
        number: tells classes apart.
        types: of the base columns.
        values: the constants.
        landmarks: those of them that rules compare with.
        is_ordered: whether values are compared by size.
        is_related: whether they are compared with each other, or have to be looked at as if they were.
        constants: the constants' numbers.
        regions: the numbers of places.
    """

    number: int
    types: frozenset[ColumnType]
    values: frozenset[Constant]
    landmarks: frozenset[Constant]
    is_ordered: bool
    is_related: bool
    constants: dict[Constant, int] = field(default_factory=dict)
    regions: list[list[int]] = field(default_factory=list)

    @property
    def is_shared(self) -> bool:
        """Whether a labelled null may take any place."""
        return self.is_ordered and self.is_related

    @cached_property
    def places(self) -> frozenset[int]:
        """All places."""
        return frozenset(place for region in self.regions for place in region)

    @cached_property
    def in_order(self) -> list[Constant]:
        """The constants in order.

        Raises:
            NotComparableError: there is none.
        """
        if len({value_kind(c.value) for c in self.values}) > 1:
            raise NotComparableError
        try:
            return sorted(self.values, key=lambda c: point_of(c.value))
        except ValueError as error:
            raise NotComparableError from error

    def give_numbers(self, nulls: int, fresh: Callable[[], int]) -> None:
        """Gives the constants their numbers, and the labelled nulls their places.

        Args:
            nulls: how many labelled nulls may have a value that is no constant.
            fresh: makes numbers, each greater than the last.

        Raises:
            NotComparableError: the class is compared by size and has no order.
        """
        if not self.is_ordered:
            for constant in sorted(self.values, key=repr):
                self.constants[constant] = fresh()
            self.regions.append([fresh() for _ in range(nulls)])
            return
        marks = [c for c in self.in_order if c in self.landmarks]
        if not self.is_related and any(room < nulls for room in self._rooms(marks)):
            self.is_related = True
        ends = self.in_order if self.is_related else marks
        rooms = iter(self._rooms(ends))
        for constant in self.in_order:
            if constant in ends:
                self._add_region(nulls, rooms, fresh)
            self.constants[constant] = fresh()
        self._add_region(nulls, rooms, fresh)

    def _add_region(self, nulls: int, rooms: Iterator[float], fresh: Callable[[], int]) -> None:
        self.regions.append([fresh() for _ in range(int(min(nulls, next(rooms))))])

    def _rooms(self, ends: Sequence[Constant]) -> Iterator[float]:
        """How many values are no constants: below the first of some constants, between any two, above the last."""
        grid = self._grid()
        points = [point_of(c.value) for c in self.values]
        for low, high in pairwise([None, *(point_of(c.value) for c in ends), None]):
            if grid is None:
                yield float("inf")
                continue
            first = grid.low - grid.step if low is None else low
            last = grid.high + grid.step if high is None else high
            assert not isinstance(first, str)
            assert not isinstance(last, str)
            taken = sum(first < point < last for point in points if not isinstance(point, str))
            yield max(0, int((Fraction(last) - Fraction(first)) / grid.step) - 1 - taken)

    def _grid(self) -> Grid | None:
        """The steps between its values, where the types agree on them."""
        if len(self.types) != 1:
            return None
        (its,) = self.types
        if its.family in ("any", "string"):
            return None
        domain = domain_of(its, its.family)
        if not isinstance(domain, Grid):
            return None
        whole = all((Fraction(point_of(c.value)) - domain.low) % domain.step == 0 for c in self.values)
        return domain if whole else None
