"""Values that nothing known holds, for showing a counterexample.

A value is only likely to be fresh: the counterexample is evaluated again with it, and another value is tried if
it turns out to be known.
"""

from __future__ import annotations

from collections.abc import Mapping

from datalog.model import ColumnType, Value, Variable
from selfmaint.countermodel.values import NUMBER, fresh_value
from selfmaint.decide.new_facts import NewFacts
from selfmaint.warehouse.base_relations import variable_types
from selfmaint.warehouse.catalog import Catalog


def fresh_values(catalog: Catalog, new_facts: NewFacts, attempt: int) -> dict[Variable, Value]:
    """A value for each fresh variable of new facts, pairwise different; any order is as good as another.

    Args:
        catalog: for the columns' types.
        new_facts: the new facts.
        attempt: 0, 1, ...; each gives other values.
    """
    types = fresh_types(catalog, new_facts)
    return {
        v: fresh_value(t, number + attempt * len(types))
        for number, (v, t) in enumerate(_ordered(types).items(), 1)
    }


def fresh_types(catalog: Catalog, new_facts: NewFacts) -> dict[Variable, ColumnType]:
    """The type of each fresh variable."""
    types = variable_types(new_facts.atoms, catalog.relations)
    found = {v: its for v, its in types.items() if v in new_facts.fresh}
    for atom in new_facts.atoms:
        for i, term in enumerate(atom.terms):
            if term in found and (atom.predicate.name, i) in catalog.number_columns:
                assert isinstance(term, Variable)
                found[term] = NUMBER
    return found


def _ordered(types: Mapping[Variable, ColumnType]) -> dict[Variable, ColumnType]:
    return dict(sorted(types.items(), key=lambda item: item[0].name))
