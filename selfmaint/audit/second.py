"""The second database of an example: the first with the facts that a witness says may exist.

Some of the first database's own rows are known only by their key: a foreign key proves them. Where a witness's fact
has the key of such a row it takes its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

from datalog.model import (
    ANY,
    Atom,
    ColumnType,
    Comparison,
    Constant,
    Row,
    Value,
    Variable,
    apply_comparison,
    value_kind,
    variables_of,
)
from datalog.order import assign, precedes
from datalog.order.points import point_of
from selfmaint.audit.candidates import Candidate, Relations
from selfmaint.audit.grounding import constants_of, new_value
from selfmaint.decide.positions import Above, At, Below
from selfmaint.decide.verdict import Witness
from selfmaint.warehouse.base_relations import variable_types
from selfmaint.warehouse.catalog import Catalog


def second_databases(catalog: Catalog, candidate: Candidate, witness: Witness) -> Iterator[Relations]:
    """Databases that may, with the candidate's, make an example; whether they do is for the definition to say.

    Args:
        catalog: the warehouse's schema.
        candidate: the first database, and the update.
        witness: a row of the test there.
    """
    for values in _values(catalog, candidate, witness):
        added: dict[str, set[Row]] = {}
        for fact in witness.unknown:
            added.setdefault(fact.predicate.name, set()).add(_row(fact, values))
        yield _with(catalog, candidate, added, replaced=False)
        yield _with(catalog, candidate, added, replaced=True)


def _with(
    catalog: Catalog, candidate: Candidate, added: Mapping[str, set[Row]], *, replaced: bool
) -> Relations:
    second = {name: set(rows) for name, rows in candidate.database.items()}
    for name, rows in added.items():
        old = second.setdefault(name, set())
        if replaced:
            keys = catalog.relations[name].unique
            old -= {row for row in old for new in rows if any(_agree(row, new, key) for key in keys)}
        old |= rows
    return {name: frozenset(rows) for name, rows in second.items()}


def _agree(row: Row, other: Row, key: tuple[int, ...]) -> bool:
    return all(row[i] == other[i] is not None for i in key)


def _row(fact: Atom, values: Mapping[Variable, Value]) -> Row:
    return tuple(t.value if isinstance(t, Constant) else values[t] for t in fact.terms)


def _values(catalog: Catalog, candidate: Candidate, witness: Witness) -> Iterator[dict[Variable, Value]]:
    """Values for the variables of the witness's facts: its own, and new ones for those that it leaves open."""
    fixed = {
        v: t.value for v, t in witness.new_facts.instance.substitution.items() if isinstance(t, Constant)
    }
    known: dict[Variable, Value] = {**fixed, **witness.binding}
    facts = witness.unknown
    types = variable_types((Atom(f.predicate, f.terms) for f in witness.new_facts.atoms), catalog.relations)
    taken = {v for part in _parts(candidate) for rows in part.values() for row in rows for v in row}
    taken |= constants_of(catalog)
    view = witness.new_facts.view
    substitution = witness.new_facts.instance.substitution
    comparisons = [apply_comparison(substitution, c) for c in view.comparisons]
    for positions in (_positioned(witness, known, taken, types), []):
        tests = [*comparisons, *positions]
        free = [v for v in variables_of([*facts, *tests]) if v not in known]
        compared = set(variables_of(tests))
        ordered = assign([v for v in free if v in compared], tests, known, types)
        if ordered is not None:
            yield _completed(catalog, facts, {**known, **ordered}, free, types, taken)


def _completed(
    catalog: Catalog,
    facts: tuple[Atom, ...],
    values: dict[Variable, Value],
    free: list[Variable],
    types: Mapping[Variable, ColumnType],
    taken: set[Value],
) -> dict[Variable, Value]:
    """With a new value for each variable that is left."""
    used = taken | set(values.values())
    for variable in free:
        if variable not in values:
            name = _column(catalog, facts, variable)
            values[variable] = new_value(types.get(variable, ANY), name, used)
            used.add(values[variable])
    return values


def _column(catalog: Catalog, facts: tuple[Atom, ...], variable: Variable) -> str:
    for fact in facts:
        if variable in fact.terms:
            return catalog.relations[fact.predicate.name].columns[fact.terms.index(variable)]
    return "value"


def _parts(candidate: Candidate) -> tuple[Relations, ...]:
    return candidate.database, candidate.inserted, candidate.deleted


def _positioned(
    witness: Witness, known: Mapping[Variable, Value], taken: set[Value], types: Mapping[Variable, ColumnType]
) -> list[Comparison]:
    """What the positions of compared variables demand: no value at hand lies between a landmark and them."""
    found: list[Comparison] = []
    ranked: dict[object, list[tuple[int, Variable]]] = {}
    for variable, position in witness.new_facts.positions:
        match position:
            case At():
                continue
            case Above(landmark=landmark, rank=rank):
                value = landmark.value if isinstance(landmark, Constant) else known[landmark]
                higher = [v for v in taken if _is_like(v, value) and precedes(point_of(value), point_of(v))]
                found.append(Comparison(">", variable, Constant(value)))
                found += [Comparison("<", variable, Constant(v)) for v in higher]
                ranked.setdefault(Constant(value), []).append((rank, variable))
            case Below(rank=rank):
                ranked.setdefault(None, []).append((rank, variable))
                its = types.get(variable, ANY)
                found += [
                    Comparison("<", variable, Constant(v)) for v in taken if v is not None and its.accepts(v)
                ]
    for together in ranked.values():
        ordered = [variable for _, variable in sorted(together, key=lambda pair: pair[0])]
        found += [Comparison("<", a, b) for a, b in pairwise(ordered)]
    return found


def _is_like(value: Value, other: Value) -> bool:
    return value is not None and other is not None and value_kind(value) == value_kind(other)
