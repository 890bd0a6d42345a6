"""Choices for an instance's variables that a value of their own does not stand for: null, true and false, orders.

Conditions of exactness:

1. Null meets no join and needs no reference, so a variable is tried as null where it stands in a column that some
   view joins on or tests, or that a foreign key or unique constraint looks at.
2. A column of few values has no value of its own: each is tried.
3. Variables in columns that views compare, or that meet these in joins and foreign keys, are put into every order,
   among themselves and with the constants that the views mention; one of no declared type may also be of another
   family. The others are pairwise different, the most general choice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

from datalog.model import ANY, Atom, Comparison, Constant, Term, Variable, variables_of
from datalog.order import satisfiable
from selfmaint.audit.instance import Instance, not_null_here
from selfmaint.warehouse.base_relations import variable_types
from selfmaint.warehouse.catalog import Catalog, View

Place = tuple[str, int]


@dataclass(frozen=True)
class Choices:
    """The choices that a warehouse's views make necessary."""

    catalog: Catalog

    @cached_property
    def _bodies(self) -> tuple[View, ...]:
        """The views, of those that group their cores: what is joined, tested and compared."""
        return tuple(view.core or view for view in self.catalog.views)

    @cached_property
    def nulls_matter(self) -> frozenset[Place]:
        """Condition 1: the columns in which null and another value are told apart."""
        found: set[Place] = set()
        for view in self._bodies:
            for atom in view.body:
                for i, term in enumerate(atom.terms):
                    if term in view.not_null or term == Constant(None):
                        found.add((atom.predicate.name, i))
        for relation in self.catalog.relations.values():
            for columns in (*relation.unique, *(reference.columns for reference in relation.references)):
                found.update((relation.name, i) for i in columns)
        return frozenset(found)

    @cached_property
    def compared(self) -> frozenset[Place]:
        """The columns that views compare, and those whose values are met there: by joins or foreign keys."""
        found = {
            place
            for view in self._bodies
            for variable, at in _places(view.body).items()
            if variable in set(variables_of(view.comparisons))
            for place in at
        }
        while more := {place for at in self._met if not at.isdisjoint(found) for place in at} - found:
            found |= more
        return frozenset(found)

    @property
    def _met(self) -> Iterator[set[Place]]:
        """Columns that hold one value: of a variable of a view, or of a reference."""
        for view in self._bodies:
            yield from _places(view.body).values()
        for relation in self.catalog.relations.values():
            for reference in relation.references:
                for i, j in zip(reference.columns, reference.target_columns, strict=True):
                    yield {(relation.name, i), (reference.target, j)}

    @cached_property
    def landmarks(self) -> tuple[Constant, ...]:
        """The constants that views mention in compared columns or comparisons."""
        found: dict[Constant, None] = {}
        for view in self._bodies:
            for comparison in view.comparisons:
                found.update(dict.fromkeys(_values([comparison.left, comparison.right])))
            for atom in view.body:
                terms = (t for i, t in enumerate(atom.terms) if (atom.predicate.name, i) in self.compared)
                found.update(dict.fromkeys(_values(terms)))
        return tuple(found)

    @property
    def are_all(self) -> bool:
        """Whether no view asks for null itself: else a null in a referenced row is not the weakest choice."""
        return not any(term == Constant(None) for v in self._bodies for a in v.body for term in a.terms)

    def ways(self, instance: Instance) -> Iterator[Instance | None] | None:
        """The instances for one choice that is still open; None if there is none."""
        certain = not_null_here(self.catalog, instance)
        places = _places(instance.atoms)
        for variable, at in places.items():
            if variable not in certain and not at.isdisjoint(self.nulls_matter):
                value = replace(instance, settled=instance.settled | {variable})
                return iter((value, instance.under({variable: Constant(None)})))
        for variable, at in places.items():
            if any(self.catalog.relations[name].types[i].is_finite for name, i in at):
                return (instance.under({variable: Constant(truth)}) for truth in (True, False))
        pair = self._unordered(instance, places)
        return None if pair is None else self._orders(instance, *pair)

    def _unordered(
        self, instance: Instance, places: dict[Variable, set[Place]]
    ) -> tuple[Variable, Term] | None:
        """Condition 3: a variable and a term whose order is open."""
        compared = [v for v, at in places.items() if not at.isdisjoint(self.compared)]
        known = {(c.left, c.right) for c in instance.comparisons if c.operator == "<"}
        types = variable_types(instance.atoms, self.catalog.relations)
        pairs: list[tuple[Variable, Term]] = [
            *((v, c) for v in compared for c in self.landmarks),
            *combinations(compared, 2),
        ]
        for left, right in pairs:
            if (left in instance.apart) != (right in instance.apart):
                continue
            if (left, right) in known or (right, left) in known:
                continue
            if self._implied(instance.comparisons, left, right):
                continue
            tests = [Comparison("<", left, right), Comparison(">", left, right)]
            if any(satisfiable((*instance.comparisons, test), types) for test in tests):
                return left, right
        return None

    def _implied(self, comparisons: Sequence[Comparison], left: Term, right: Term) -> bool:
        """Whether the strict order of two terms follows by transitivity from what was chosen."""
        below: dict[Term, set[Term]] = {}
        for one in comparisons:
            if one.operator == "<":
                below.setdefault(one.left, set()).add(one.right)
        return _reaches(below, left, right) or _reaches(below, right, left)

    def _orders(self, instance: Instance, left: Variable, right: Term) -> Iterator[Instance | None]:
        types = variable_types(instance.atoms, self.catalog.relations)
        for less, more in ((left, right), (right, left)):
            tests = (*instance.comparisons, Comparison("<", less, more))
            if satisfiable(tests, types):
                yield replace(instance, comparisons=tests)
        if satisfiable((*instance.comparisons, Comparison("=", left, right)), types):
            yield instance.under({left: right})
        untyped = isinstance(right, Constant) and types.get(left, ANY) == ANY
        if untyped and not any(left in (one.left, one.right) for one in instance.comparisons):
            yield replace(instance, apart=instance.apart | {left})


def _reaches(below: dict[Term, set[Term]], start: Term, end: Term) -> bool:
    waiting, seen = [start], {start}
    while waiting:
        for term in below.get(waiting.pop(), ()):
            if term == end:
                return True
            if term not in seen:
                seen.add(term)
                waiting.append(term)
    return False


def _values(terms: Iterable[Term]) -> Iterator[Constant]:
    return (term for term in terms if isinstance(term, Constant) and term.value is not None)


def _places(atoms: Iterable[Atom]) -> dict[Variable, set[Place]]:
    found: dict[Variable, set[Place]] = {}
    for atom in atoms:
        for i, term in enumerate(atom.terms):
            if isinstance(term, Variable):
                found.setdefault(term, set()).add((atom.predicate.name, i))
    return found
