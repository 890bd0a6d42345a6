"""Values for free variables in their positions, for showing a counterexample: between the values at hand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from datalog.model import (
    ANY,
    ColumnType,
    Comparison,
    Constant,
    Row,
    Term,
    Value,
    Variable,
    value_kind,
    variables_of,
)
from datalog.order import assign, constants_compare
from selfmaint.countermodel.values import NUMBER, fresh_value
from selfmaint.decide.new_facts import NewFacts
from selfmaint.decide.positions import Above, At, Below, Position
from selfmaint.warehouse.base_relations import variable_types
from selfmaint.warehouse.catalog import Catalog


def placed_values(
    catalog: Catalog, rows: Iterable[Row], new_facts: NewFacts, values: Mapping[Variable, Value]
) -> Iterator[dict[Variable, Value]]:
    """Values of the variables that have a position: beside all values at hand, or those of comparisons, or anywhere.

    Args:
        catalog: the warehouse's schema.
        rows: those at hand: none of their values may lie between a landmark and what is just above it.
        new_facts: the new facts.
        values: of the bound variables.
    """
    positions = dict(new_facts.positions)
    free = [v for v, p in positions.items() if not isinstance(p, At)]
    if not free:
        yield {}
        return
    types = _fresh_types(catalog, new_facts)
    compared = _compared(catalog, values, new_facts)
    at_hand = list(dict.fromkeys([*compared, *_at_hand(catalog, rows)]))
    order = [
        Comparison("<", v, w)
        for v in free
        for w in free
        if _gap(positions[v]) == _gap(positions[w]) and _rank(positions[v]) < _rank(positions[w])
    ]
    mine = [c for c in new_facts.instance.comparisons if not set(free).isdisjoint((c.left, c.right))]
    bound = {v: values[v] for v in variables_of(mine) if v in values and v not in free}
    for beside in (at_hand, compared, []):
        wanted = [*order, *mine]
        for v in free:
            here = _of_family(types.get(v, ANY), beside)
            wanted.extend(_side(v, positions[v], values, here))
            wanted.extend(Comparison("!=", v, c) for c in at_hand if c not in here)
        found = assign(free, wanted, bound, types)
        if found is not None:
            yield found


def _gap(position: Position) -> Term | None:
    return position.landmark if isinstance(position, Above) else None


def _rank(position: Position) -> int:
    return 0 if isinstance(position, At) else position.rank


def _of_family(its: ColumnType, at_hand: Sequence[Constant]) -> list[Constant]:
    """The values that one of a type compares with; of a type that is not declared, the numbers if there are any."""
    kinds = {value_kind(c.value) for c in at_hand}
    family = its.family if its != ANY else "number" if "number" in kinds else "string"
    return [c for c in at_hand if value_kind(c.value) == family]


def _compared(catalog: Catalog, values: Mapping[Variable, Value], new_facts: NewFacts) -> list[Constant]:
    """The constants of comparisons, and the values of the bound variables."""
    terms = [t for view in catalog.views for c in view.comparisons for t in (c.left, c.right)]
    found = [t for t in terms if isinstance(t, Constant)]
    found += [Constant(values[v]) for v in new_facts.bound if values.get(v) is not None]
    return list(dict.fromkeys(found))


def _at_hand(catalog: Catalog, rows: Iterable[Row]) -> list[Constant]:
    terms = (t for view in catalog.views for atom in view.body for t in atom.terms)
    constants = (t.value for t in terms if isinstance(t, Constant))
    return [Constant(x) for x in {*(x for row in rows for x in row), *constants} - {None}]


def _side(
    variable: Variable, position: Position, values: Mapping[Variable, Value], at_hand: list[Constant]
) -> Iterator[Comparison]:
    match position:
        case Above(landmark):
            low = landmark if isinstance(landmark, Constant) else Constant(values[landmark])
            yield Comparison(">", variable, low)
            yield from (Comparison("<", variable, c) for c in at_hand if constants_compare(">", c, low))
        case Below():
            yield from (Comparison("<", variable, c) for c in at_hand)
        case At():
            return


def fresh_values(catalog: Catalog, new_facts: NewFacts, attempt: int) -> dict[Variable, Value]:
    """A value for each fresh variable of new facts, pairwise different; any order is as good as another.

    Args:
        catalog: for the columns' types.
        new_facts: the new facts.
        attempt: 0, 1, ...; each gives other values.
    """
    types = _fresh_types(catalog, new_facts)
    return {
        v: fresh_value(t, number + attempt * len(types))
        for number, (v, t) in enumerate(_ordered(types).items(), 1)
    }


def _fresh_types(catalog: Catalog, new_facts: NewFacts) -> dict[Variable, ColumnType]:
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
