"""What foreign keys add to the canonical database: rows that must exist because another row references them.

    store@known(S)        :- sale@known(T, S), not null ...      where the key is all of `store`'s columns
    store@exists_0(S)     :- store@known(S, _).                  of a wider `store` only these columns are known
    store@exists_0(S)     :- sale@known(T, S).
    store@exists_0(S)     :- sale@inserted(T, S), not store@inserted(S, _).

Conditions of soundness:

1. Foreign keys hold before the update, so each known row's reference was there; and after it, so the reference of
   an inserted row is inserted too or was there before.
2. A reference with a null is none.
3. A relation that is wholly known gets nothing from this: its rows are at hand.
4. Foreign keys that form a cycle are followed only as far as the order of the relations goes: fewer rows are proved.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, combinations

from datalog.containment import contained_in
from datalog.graphs import strong_components
from datalog.model import (
    Atom,
    Constant,
    Literal,
    Negation,
    NullTest,
    Predicate,
    Rule,
    Term,
    Variable,
    Version,
)
from selfmaint.warehouse.base_relations import row_atom
from selfmaint.warehouse.catalog import BaseRelation, Catalog
from selfmaint.warehouse.constraints import Reference
from selfmaint.warehouse.situation import Situation

Proofs = dict[tuple[str, tuple[int, ...]], list[Rule]]
"""For columns of a relation, the rules that prove rows with certain values there."""


def reference_order(catalog: Catalog) -> tuple[BaseRelation, ...]:
    """The relations, each before those that it references, as far as there are no cycles."""
    together = strong_components(_targets(catalog))
    return tuple(catalog.relations[name] for component in together for name in sorted(component))


def _targets(catalog: Catalog) -> Mapping[str, Sequence[str]]:
    """The relations that each one references."""
    return {r.name: [reference.target for reference in r.references] for r in catalog.relations.values()}


def proved(
    catalog: Catalog, situation: Situation, evident: Mapping[str, tuple[Rule, ...]], whole: frozenset[str]
) -> tuple[Rule, ...]:
    """The rules of `relation@known` and `relation@exists`, from those of what views and partial copies tell.

    `evident` are the rules of `relation@known` without foreign keys; `whole` relations are wholly known.
    """
    rules: list[Rule] = []
    proofs: Proofs = {}
    for relation in reference_order(catalog):
        known = list(evident[relation.name])
        everything = tuple(range(relation.arity))
        if relation.name not in whole:
            for rule in proofs.get((relation.name, everything), ()):
                known = _joined(known, rule)
        rules += known
        for columns in referenced_columns(catalog, relation):
            if columns != everything:
                mine = [] if relation.name in whole else proofs.get((relation.name, columns), [])
                projected = [_projected(rule, relation, columns) for rule in known]
                there: list[Rule] = []
                for rule in [*projected, *mine]:
                    there = _joined(there, rule)
                rules += there
        for reference in relation.references:
            target = catalog.relations[reference.target]
            for values, body in _references(relation, reference, catalog, situation, known, proofs):
                for columns in _subsets(tuple(values)):
                    at = proofs.setdefault((target.name, columns), [])
                    at[:] = _joined(at, _rule(target, values, columns, body))
    return tuple(rules)


def referenced_columns(catalog: Catalog, relation: BaseRelation) -> tuple[tuple[int, ...], ...]:
    """The sets of columns of a relation that some foreign key says something about."""
    found = (_subsets(reference.target_columns) for _, reference in catalog.referenced_by[relation.name])
    return tuple(dict.fromkeys(chain(*found)))


def _subsets(columns: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    ordered = sorted(columns)
    return chain.from_iterable(combinations(ordered, size) for size in range(len(ordered), -1, -1))


def _joined(rules: list[Rule], new: Rule) -> list[Rule]:
    """The rules with another one, without those that others contain."""
    rivals = [r for r in rules if r.head.predicate == new.head.predicate]
    if any(_may_contain(rival, new) and _contained(new, rival) for rival in rivals):
        return rules
    gone = [r for r in rivals if _may_contain(new, r) and _contained(r, new)]
    return [*(r for r in rules if r not in gone), new] if gone else [*rules, new]


def _may_contain(outer: Rule, inner: Rule) -> bool:
    """Whether a rule has the first atom's predicate of one that is to contain it, as it must."""
    first = outer.body[0] if outer.body else None
    return not isinstance(first, Atom) or any(
        isinstance(li, Atom) and li.predicate == first.predicate for li in inner.body
    )


@lru_cache(maxsize=100_000)
def _contained(inner: Rule, outer: Rule) -> bool:
    plain = not any(isinstance(li, Negation) for li in (*inner.body, *outer.body))
    return inner == outer or (plain and contained_in(inner, outer))


def _projected(rule: Rule, relation: BaseRelation, columns: tuple[int, ...]) -> Rule:
    head = Predicate(relation.name, Version.EXISTS, columns)
    return Rule(Atom(head, tuple(rule.head.terms[i] for i in columns)), rule.body)


def _references(
    relation: BaseRelation,
    reference: Reference,
    catalog: Catalog,
    situation: Situation,
    known: list[Rule],
    proofs: Proofs,
) -> Iterator[tuple[dict[int, Term], tuple[Literal, ...]]]:
    """What `relation`'s certain rows reference: terms for the target's columns, with the body that binds them."""

    def values(terms: tuple[Term, ...]) -> dict[int, Term]:
        return dict(zip(reference.target_columns, terms, strict=True))

    for rule in known:
        terms = reference.key_of(rule.head)
        if Constant(None) not in terms:
            yield values(terms), (*rule.body, *_not_null(relation, reference, terms))
    if relation.name in situation.inserted:
        row = row_atom(relation, Version.INSERTED)
        terms = reference.key_of(row)
        body: list[Literal] = [row, *_not_null(relation, reference, terms)]
        if reference.target in situation.inserted:
            target = row_atom(catalog.relations[reference.target], Version.INSERTED)
            there = values(terms)
            others = tuple(there.get(j, Variable(f"Y{j}")) for j in range(target.arity))
            body.append(Negation((Atom(target.predicate, others),)))
        yield values(terms), tuple(body)
    for (name, columns), rules in list(proofs.items()):
        if name == relation.name and relation.nullable.isdisjoint(set(reference.columns) - set(columns)):
            for rule in rules:
                given = dict(zip(columns, rule.head.terms, strict=True))
                yield (
                    {
                        j: given[i]
                        for i, j in zip(reference.columns, reference.target_columns, strict=True)
                        if i in given
                    },
                    rule.body,
                )


def _not_null(relation: BaseRelation, reference: Reference, terms: tuple[Term, ...]) -> Iterator[NullTest]:
    """Condition 2."""
    for column, term in zip(reference.columns, terms, strict=True):
        if column in relation.nullable and isinstance(term, Variable):
            yield NullTest(term)


def _rule(
    target: BaseRelation, values: Mapping[int, Term], columns: tuple[int, ...], body: tuple[Literal, ...]
) -> Rule:
    """A body as a proof of rows of the target with certain values."""
    whole = columns == tuple(range(target.arity))
    predicate = (
        Predicate(target.name, Version.KNOWN) if whole else Predicate(target.name, Version.EXISTS, columns)
    )
    return Rule(Atom(predicate, tuple(values[j] for j in columns)), body)
