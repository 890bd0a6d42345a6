"""Choices for an instance's variables that a value of their own does not stand for: null, true and false, orders.

Conditions of exactness:

1. Null meets no join and needs no reference, so a variable is tried as null where it stands in a column that some
   view joins on or tests, or that a foreign key or unique constraint looks at.
2. A column of few values has no value of its own: each is tried.
3. Variables in columns that views compare, or that meet these in joins and foreign keys, are put into every order
   with those in columns that theirs meet or are compared with, and with the constants that views mention there; one of
   no declared type may also be of another family. Nothing relates the values of other columns: no view's rows and
   no constraint changes if these are moved in their order. All else is pairwise different, the most general choice.
4. Columns that are compared with constants alone: `orders.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property

from msgspec import Struct

from datalog.copies import replace
from datalog.graphs import components
from datalog.model import Atom, ColumnType, Comparison, Constant, Value, Variable, variables_of
from selfmaint.audit.grounding import constants_of
from selfmaint.audit.instance import Instance, not_null_here
from selfmaint.audit.orders import Related
from selfmaint.warehouse.base_relations import variable_types
from selfmaint.warehouse.catalog import Catalog, View

Place = tuple[str, int]

_Step = Callable[
    [Related, Instance, Sequence[Variable], Mapping[Variable, ColumnType]], Iterator[Instance | None] | None
]


class Choices(Struct, frozen=True, dict=True):
    """The choices that a warehouse's views make necessary."""

    catalog: Catalog

    @cached_property
    def _bodies(self) -> tuple[View, ...]:
        """The views, of those that group their cores: what is joined, tested and compared."""
        return tuple(view.decided for view in self.catalog.views)

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
    def compared(self) -> Mapping[Place, Related]:
        """The columns that views compare, or whose values are met there, each with what is related to it."""
        columns = [(min(at), place) for at in self._met for place in at]
        tests: list[tuple[Comparison, set[Place]]] = []
        for view in self._bodies:
            places = _places(view.body)
            for comparison in view.comparisons:
                at = {place for v in variables_of([comparison]) for place in places.get(v, ())}
                columns += [(min(at), place) for place in at]
                tests.append((comparison, at))
        found: dict[Place, Related] = {}
        for its in map(frozenset, components((), columns)):
            mine = [comparison for comparison, at in tests if not at.isdisjoint(its)]
            if mine:
                found.update(dict.fromkeys(its, Related.of(its, mine, self._bodies)))
        return found

    @property
    def _met(self) -> Iterator[set[Place]]:
        """Columns that hold one value: of a variable of a view, or of a reference."""
        for view in self._bodies:
            yield from _places(view.body).values()
        for relation in self.catalog.relations.values():
            for reference in relation.references:
                for i, j in zip(reference.columns, reference.target_columns, strict=True):
                    yield {(relation.name, i), (reference.target, j)}

    def matters(self, relation: str, column: int) -> bool:
        """Whether some view joins on a column, tests or compares it, or a constraint looks at it."""
        return (relation, column) in self.nulls_matter or (relation, column) in self.compared

    @cached_property
    def constants(self) -> AbstractSet[Value]:
        """The constants that the views mention."""
        return constants_of(self.catalog)

    @cached_property
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
        return self._ordered(instance, places, (Related.orders, Related.places))

    def spread(self, instance: Instance) -> Iterator[Instance | None] | None:
        """The instances in which what is placed is different; None if it is. What may make values equal is before."""
        return self._ordered(instance, _places(instance.atoms), (Related.spread,))

    def _ordered(
        self, instance: Instance, places: dict[Variable, set[Place]], steps: Sequence[_Step]
    ) -> Iterator[Instance | None] | None:
        """Conditions 3 and 4."""
        together: dict[Related, list[Variable]] = {}
        for variable, at in places.items():
            for its in dict.fromkeys(self.compared[place] for place in at & self.compared.keys()):
                together.setdefault(its, []).append(variable)
        if not together:
            return None
        start, types = instance, variable_types(instance.atoms, self.catalog.relations)
        for choose in steps:
            for its, variables in together.items():
                ways = choose(its, instance, variables, types)
                if ways is None:
                    continue
                found = tuple(ways)
                if len(found) != 1 or found[0] is None or found[0].before is not instance.before:
                    return iter(found)
                instance = found[0]  # there is nothing to choose: the next ones, too
        return None if instance is start else iter([instance])


def _places(atoms: Iterable[Atom]) -> dict[Variable, set[Place]]:
    found: dict[Variable, set[Place]] = {}
    for atom in atoms:
        for i, term in enumerate(atom.terms):
            if isinstance(term, Variable):
                found.setdefault(term, set()).add((atom.predicate.name, i))
    return found
