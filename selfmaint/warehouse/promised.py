"""What foreign keys promise beside one row: a chase of the row.

    line(O, N, P), orders(O, C), customer(C, T), product(P, Q)        for `line`, which references the others

Conditions of soundness:

1. A foreign key is followed where none of its columns can be null; of what is referenced no more is known.
2. A row of a relation of a view's own comes from rows of base relations, and these give rows of others of its own.
3. Fewer rows than there are is no harm: foreign keys that lead back to a relation end there.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from datalog.model import Atom, Predicate, Term, Variable
from selfmaint.warehouse.base_relations import certain_variables
from selfmaint.warehouse.catalog import Catalog


def promised(catalog: Catalog, row: Atom) -> list[Atom]:
    """The rows that there are where a row is, itself first; what else is in them are other variables."""
    taken = frozenset(row.terms)
    fresh = (v for v in (Variable(f"Beside_{i}") for i in count()) if v not in taken)
    made = {own.relation.name: own for own in catalog.own}
    origin = (
        made[row.predicate.name].origin(row, catalog.relations, fresh)
        if row.predicate.name in made
        else [row]
    )
    rows, depth = list(origin), {atom: frozenset({atom.predicate.name}) for atom in origin}
    for atom in rows:
        for more in _referenced(catalog, atom, depth[atom], rows, fresh):
            depth[more] = depth[atom] | {more.predicate.name}
            rows.append(more)
    known = certain_variables(rows, catalog.relations)
    given = [atom for own in catalog.own for atom in own.implied(rows, known)]
    return list(dict.fromkeys([row, *rows, *given]))


def _referenced(
    catalog: Catalog, atom: Atom, above: frozenset[str], rows: list[Atom], fresh: Iterator[Variable]
) -> Iterator[Atom]:
    relation = catalog.relations[atom.predicate.name]
    for reference in relation.references:
        key = reference.key_of(atom)
        is_there = any(
            one.predicate.name == reference.target and reference.key_in(one) == key for one in rows
        )
        if is_there or reference.target in above or not relation.nullable.isdisjoint(reference.columns):
            continue
        at: dict[int, Term] = dict(zip(reference.target_columns, key, strict=True))
        arity = catalog.relations[reference.target].arity
        terms = (at[i] if i in at else next(fresh) for i in range(arity))
        yield Atom(Predicate(reference.target), tuple(terms))
