"""Values for the variables of an instance: pairwise different, in the order that is wanted, easy to read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise

from datalog.model import (
    ANY,
    Atom,
    ColumnType,
    Comparison,
    Constant,
    Term,
    TypeName,
    Value,
    Variable,
    variables_of,
)
from datalog.order import assign, satisfiable
from selfmaint.audit.instance import Instance
from selfmaint.countermodel.values import values_of
from selfmaint.warehouse.base_relations import variable_types
from selfmaint.warehouse.catalog import Catalog

ROOM = (3, 1, 0)
"""How many values are wanted between two that are ordered, if there are so many."""

_NUMBER = ColumnType(TypeName.BIGINT)
"""What values of no declared type are where some view compares values: such columns mostly hold numbers."""

_NAMED = (TypeName.STRING, TypeName.ANY)
"Types whose values say what they are of."


def grounded(
    catalog: Catalog, instance: Instance, constants: AbstractSet[Value], rooms: Sequence[int] = ROOM
) -> dict[Variable, Value] | None:
    """A value for each variable; None if there are none.

    They keep away from `constants`; `rooms` say how many others are wanted between two in order, wish after wish.
    """
    types = variable_types(instance.atoms, catalog.relations)
    if not satisfiable(instance.comparisons, types):
        return None  # what is left of comparisons in a circle may say nothing
    ordered = [v for v in variables_of(instance.comparisons) if v not in instance.apart]
    values: dict[Variable, Value] | None = None
    comparisons = _neighbours(instance.comparisons)
    for room in rooms:
        values = _assigned(ordered, comparisons, types, room)
        if values is not None:
            break
    if values is None:
        return None
    taken = {*values.values(), *constants, *_constants_of(instance.atoms)}
    names = _column_names(catalog, instance)
    is_compared = any(view.decided.comparisons for view in catalog.views)
    fresh: dict[tuple[ColumnType, str], Iterator[Value]] = {}
    for variable in dict.fromkeys((*instance.variables, *instance.asked)):
        if isinstance(variable, Variable) and variable not in values:
            its = types.get(variable, ANY)
            family = _NUMBER if its == ANY and is_compared and variable not in instance.apart else its
            name = names.get(variable, "value") if family.name in _NAMED else ""
            more = fresh.setdefault((family, name), values_of(family, name))
            values[variable] = next((v for v in more if v not in taken), True)
            taken.add(values[variable])
    return values


def _neighbours(comparisons: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """The comparisons without those by `<` that follow from two others."""
    above: dict[Term, set[Term]] = {}
    for one in comparisons:
        if one.operator == "<":
            above.setdefault(one.left, set()).add(one.right)
    return tuple(
        one
        for one in comparisons
        if one.operator != "<" or not any(one.right in above.get(t, ()) for t in above[one.left])
    )


def _assigned(
    variables: Sequence[Variable],
    comparisons: Sequence[Comparison],
    types: Mapping[Variable, ColumnType],
    room: int,
) -> dict[Variable, Value] | None:
    """Values with some others between each two that are ordered, so that there is room for more."""
    spread: list[Comparison] = []
    between: dict[Variable, ColumnType] = {}
    for number, one in enumerate(comparisons):
        if one.operator != "<" or room == 0:
            spread.append(one)
            continue
        its = next((types[t] for t in (one.left, one.right) if isinstance(t, Variable) and t in types), ANY)
        chain = [one.left, *(Variable(f"_b{number}_{i}") for i in range(room)), one.right]
        between.update({t: its for t in chain[1:-1] if isinstance(t, Variable)})
        spread += [Comparison("<", a, b) for a, b in pairwise(chain)]
    found = assign([*variables, *between], spread, {}, {**types, **between})
    return None if found is None else {v: found[v] for v in variables}


def constants_of(catalog: Catalog) -> set[Value]:
    """The constants that the views mention."""
    found: set[Value] = set()
    for view in (each.decided for each in catalog.views):
        found |= _constants_of(view.body)
        found |= {t.value for c in view.comparisons for t in (c.left, c.right) if isinstance(t, Constant)}
    return found


def _constants_of(atoms: Sequence[Atom]) -> set[Value]:
    return {term.value for atom in atoms for term in atom.terms if isinstance(term, Constant)}


def _column_names(catalog: Catalog, instance: Instance) -> dict[Variable, str]:
    """For each variable the name of a column that it stands in."""
    found: dict[Variable, str] = {}
    for atom in instance.atoms:
        for name, term in zip(catalog.relations[atom.predicate.name].columns, atom.terms, strict=True):
            if isinstance(term, Variable):
                found.setdefault(term, name)
    return found
