"""The order of variables in columns whose values are related, among themselves and with constants.

Conditions of exactness:

1. If some view compares two variables there, every order is tried, and what is equal.
2. If all comparisons are with constants, each of them that holds of a value can only make views hold more rows, and so
   prove more. A variable is tried where no fewer of them hold, in one of the places where the same ones do: but only
   a place with values for all variables does for others. So the variables can be pairwise different.
   Variables that come later may need more values than a place has: if it was taken to do for others, or one was to
   have a value of its own there, the instance is marked as crowded: what was made is not all. Nor is it if a variable
   with such a place gets another value, so that there are no values in the end (`candidates.py`).
3. A variable of no declared type may also be of another family than the constants.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations, pairwise

from msgspec import Struct, field

from datalog.copies import replace
from datalog.model import (
    ANY,
    MIRRORED,
    ColumnType,
    Comparison,
    Constant,
    Operator,
    Term,
    Variable,
    apply_comparison,
    value_kind,
    variables_of,
)
from datalog.order import constants_compare, precedes, satisfiable
from datalog.order.points import point_of
from selfmaint.audit.instance import Instance
from selfmaint.warehouse.catalog import View

Types = Mapping[Variable, ColumnType]

_V = Variable("V")

SPARE = 4
"""A place has room if it has values for twice the variables that there are, and so many more."""

Truths = frozenset[tuple[Operator, Constant]]


class Position(Struct, frozen=True):
    """A constant, or what lies between two that follow one another, or beyond the last.

    Attributes:
        truths: the comparisons with constants that hold there.
        low: what it lies above.
        high: what it lies below.
    """

    truths: Truths
    value: Constant | None = None
    low: Constant | None = None
    high: Constant | None = None

    def of(self, variable: Variable) -> tuple[Comparison, ...]:
        """That a variable is there."""
        tests = []
        if self.value is not None:
            tests.append(Comparison("=", variable, self.value))
        if self.low is not None:
            tests.append(Comparison("<", self.low, variable))
        if self.high is not None:
            tests.append(Comparison("<", variable, self.high))
        return tuple(tests)


class Related(Struct, frozen=True, eq=False, dict=True):
    """Columns whose values are related: they meet or are compared, and some are compared.

    Attributes:
        truths: the comparisons of variables with constants that views make there; by `=` with those in atoms.
        is_among: whether some view compares two variables.
    """

    truths: Truths
    is_among: bool
    _kept: dict[object, tuple[tuple[Position, bool], ...]] = field(default_factory=dict)

    @classmethod
    def of(
        cls, columns: frozenset[tuple[str, int]], tests: Sequence[Comparison], views: Sequence[View]
    ) -> Related:
        """What views say of some columns."""
        found: dict[tuple[Operator, Constant], None] = {}
        for test in tests:
            if isinstance(test.right, Constant):
                found[test.operator, test.right] = None
            elif isinstance(test.left, Constant):
                found[MIRRORED[test.operator], test.left] = None
        for atom in (atom for view in views for atom in view.body):
            for i, term in enumerate(atom.terms):
                if (atom.predicate.name, i) in columns and isinstance(term, Constant):
                    found["=", term] = None
        is_among = any(len(variables_of([test])) > 1 for test in tests)
        return cls(frozenset((o, c) for o, c in found if c.value is not None), is_among)

    @cached_property
    def landmarks(self) -> tuple[Constant, ...]:
        """The constants."""
        return tuple(sorted({constant for _, constant in self.truths}, key=repr))

    @cached_property
    def positions(self) -> tuple[Position, ...] | None:
        """Every position, what lies between constants first; None where not all are of one order (condition 1)."""
        if self.is_among or len({value_kind(c.value) for c in self.landmarks}) > 1:
            return None
        ordered: list[Constant] = []
        for constant in self.landmarks:
            at = sum(precedes(point_of(c.value), point_of(constant.value)) for c in ordered)
            ordered.insert(at, constant)
        between = (
            Position(frozenset(t for t in self.truths if _holds(t, low)), low=low, high=high)
            for low, high in pairwise((None, *ordered, None))
        )
        return (*between, *(Position(self._truths_at(c), c) for c in ordered))

    def _truths_at(self, value: Constant) -> Truths:
        return frozenset((o, c) for o, c in self.truths if constants_compare(o, value, c))

    def orders(
        self, instance: Instance, variables: Sequence[Variable], types: Types
    ) -> Iterator[Instance | None] | None:
        """The instances for an order that is still open (condition 1); None if there is none."""
        if self.positions is not None:
            return None
        return self._every_order(instance, variables, _about(instance.comparisons, variables), types)

    def places(
        self, instance: Instance, variables: Sequence[Variable], types: Types
    ) -> Iterator[Instance | None] | None:
        """The instances for a place that is still open (condition 2); None if there is none."""
        start = instance
        for variable in variables if self.positions is not None else ():
            if variable not in instance.placed | instance.apart:
                ways = tuple(self._placed(instance, variable, len(variables), types))
                if len(ways) != 1 or ways[0] is None or variable not in ways[0].placed:
                    return iter(ways)
                instance = ways[0]  # there is nothing to choose: the next one, too
        return None if instance is start else iter([instance])

    def spread(
        self, instance: Instance, variables: Sequence[Variable], types: Types
    ) -> Iterator[Instance | None] | None:
        """The instances in which variables that are placed are different (condition 2); None if they are."""
        if self.positions is None:
            return None
        comparisons = _about(instance.comparisons, variables)
        chain = _chain(comparisons, [v for v in variables if v not in instance.apart])
        if set(chain) <= set(comparisons):
            return None
        if not satisfiable((*comparisons, *chain), types):
            if not instance.is_crowded and self._is_crowded(instance, chain, comparisons, types):
                return iter([replace(instance, is_crowded=True)])
            return self._every_order(instance, variables, comparisons, types)
        more = tuple(dict.fromkeys((*instance.comparisons, *chain)))
        within = [v for c in chain if self._is_in_one_place(c, comparisons) for v in variables_of([c])]
        return iter([replace(instance, comparisons=more, alone=instance.alone.union(within))])

    def _is_crowded(
        self, instance: Instance, chain: Sequence[Comparison], comparisons: Sequence[Comparison], types: Types
    ) -> bool:
        """Whether a place has too few values for its variables, of which one was to have a value of its own."""
        within = {v: self._place(v, comparisons) for v in variables_of(chain)}
        places = {place for variable, place in within.items() if variable in instance.alone}
        crowd = _chain(comparisons, [v for v, place in within.items() if place in places])
        return not satisfiable((*comparisons, *crowd), types)

    def _is_in_one_place(self, test: Comparison, comparisons: Sequence[Comparison]) -> bool:
        """Whether both of two variables are in one place."""
        return len({self._place(variable, comparisons) for variable in variables_of([test])}) == 1

    def _place(self, variable: Variable, comparisons: Sequence[Comparison]) -> Position:
        """Where a variable is placed: of the positions of which all is said of it, the one of which most is."""
        said = set(comparisons)
        tests = {p: p.of(variable) for p in self.positions or () if p.value is None}
        return max((p for p, its in tests.items() if said.issuperset(its)), key=lambda p: len(tests[p]))

    def _placed(
        self, instance: Instance, variable: Variable, number: int, types: Types
    ) -> Iterator[Instance | None]:
        """Condition 2."""
        own = _about((apply_comparison({variable: _V}, c) for c in instance.comparisons), [_V])
        for position, is_for_others in self._chosen(tuple(own), number, types.get(variable, ANY)):
            if position.value is not None:
                yield instance.under({variable: position.value})
            else:
                more = (*instance.comparisons, *position.of(variable))
                alone = instance.alone | {variable} if is_for_others else instance.alone
                yield replace(instance, comparisons=more, placed=instance.placed | {variable}, alone=alone)
        yield from _of_another_family(instance, variable, types)

    def _chosen(
        self, comparisons: tuple[Comparison, ...], number: int, its: ColumnType
    ) -> tuple[tuple[Position, bool], ...]:
        """The positions to be tried of a variable `V` of some type, and whether they are tried for others, too."""
        key = (comparisons, number, its)
        if key not in self._kept:
            types = {_V: its}
            open_ = [p for p in self.positions or () if satisfiable((*comparisons, *p.of(_V)), types)]
            roomy = [p for p in open_ if _has_room(p, comparisons, number, its)]
            chosen: list[Position] = []
            for position in open_:
                others = [p for p in roomy if p.truths <= position.truths and p is not position]
                is_less = any(p.truths < position.truths or p in chosen for p in others)
                if not is_less and (position in roomy or not others):
                    chosen.append(position)
            left_out = [p for p in open_ if p not in chosen]
            self._kept[key] = tuple((p, any(p.truths <= q.truths for q in left_out)) for p in chosen)
        return self._kept[key]

    def _every_order(
        self,
        instance: Instance,
        variables: Sequence[Variable],
        comparisons: Sequence[Comparison],
        types: Types,
    ) -> Iterator[Instance | None] | None:
        """Condition 1."""
        above = _above(comparisons)
        pairs: list[tuple[Variable, Term]] = [(v, c) for v in variables for c in self.landmarks]
        pairs += combinations(variables, 2)
        for left, right in pairs:
            if (left in instance.apart) != (right in instance.apart):
                continue
            if right in above.get(left, ()) or left in above.get(right, ()):
                continue
            tests = [Comparison("<", left, right), Comparison("<", right, left)]
            if any(satisfiable((*comparisons, test), types) for test in tests):
                return _orders(instance, comparisons, left, right, types)
        return None


def _holds(truth: tuple[Operator, Constant], low: Constant | None) -> bool:
    """Whether a comparison holds of what is just above a constant, or below all."""
    operator, constant = truth
    is_above = low is not None and not precedes(point_of(low.value), point_of(constant.value))
    return operator == "!=" or operator in ((">", ">=") if is_above else ("<", "<="))


def _has_room(position: Position, comparisons: Sequence[Comparison], number: int, its: ColumnType) -> bool:
    """Whether there are values in a position for many variables of which the same is known."""
    chain = [_V, *(Variable(f"_r{i}") for i in range(2 * number + SPARE))]
    tests = [
        t
        for one in chain
        for t in (*position.of(one), *(apply_comparison({_V: one}, c) for c in comparisons))
    ]
    order = (Comparison("<", a, b) for a, b in pairwise(chain))
    return satisfiable((*tests, *order), dict.fromkeys(chain, its))


def _about(comparisons: Iterable[Comparison], variables: Sequence[Variable]) -> list[Comparison]:
    return [c for c in comparisons if not {c.left, c.right}.isdisjoint(variables)]


def _chain(comparisons: Sequence[Comparison], variables: Sequence[Variable]) -> list[Comparison]:
    """One order of variables that are placed among constants."""
    above = _above(comparisons)
    below = {v: sum(v in its for its in above.values()) for v in variables}
    ordered = sorted(variables, key=lambda v: below[v])
    return [Comparison("<", a, b) for a, b in pairwise(ordered)]


def _orders(
    instance: Instance, comparisons: Sequence[Comparison], left: Variable, right: Term, types: Types
) -> Iterator[Instance | None]:
    for less, more in ((left, right), (right, left)):
        test = Comparison("<", less, more)
        if satisfiable((*comparisons, test), types):
            yield replace(instance, comparisons=(*instance.comparisons, test))
    is_open = left not in instance.alone or right not in instance.alone
    if is_open and satisfiable((*comparisons, Comparison("=", left, right)), types):
        yield instance.under({left: right})
    if isinstance(right, Constant):
        yield from _of_another_family(instance, left, types)


def _of_another_family(instance: Instance, variable: Variable, types: Types) -> Iterator[Instance]:
    """Condition 3."""
    if types.get(variable, ANY) == ANY and not any(
        variable in (one.left, one.right) for one in instance.comparisons
    ):
        yield replace(instance, apart=instance.apart | {variable})


def _above(comparisons: Sequence[Comparison]) -> dict[Term, set[Term]]:
    """For each term those above it, by transitivity."""
    found: dict[Term, set[Term]] = {}
    for one in comparisons:
        if one.operator == "<":
            found.setdefault(one.left, set()).add(one.right)
    while more := [(low, above) for low, above in found.items() if _next(found, above) - above]:
        for low, above in more:
            found[low] = above | _next(found, above)
    return found


def _next(above: Mapping[Term, set[Term]], terms: set[Term]) -> set[Term]:
    return {more for term in terms for more in above.get(term, ())}
