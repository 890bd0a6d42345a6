"""Views that project, decided over relations of their own: see `selfmaint.warehouse.own_relations`. "Yes" counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from datalog.model import Atom, Negation, Predicate, Program, Rule, Variable, Version
from selfmaint.engine.protocol import D, Engine, Facts
from selfmaint.warehouse.catalog import Catalog, View
from selfmaint.warehouse.own_relations import OwnRelation, OwnSchema, own_schema
from selfmaint.warehouse.situation import Situation

_SIDES = (Version.DELETED, Version.INSERTED)


def schema_of(catalog: Catalog, view: View, situation: Situation) -> OwnSchema | None:
    """The schema over which a view is decided again; None if there is none that helps, or it would not be right."""
    if not situation.effective:
        return None
    return own_schema(catalog, view, situation.inserted | situation.deleted)


def known_there(
    schema: OwnSchema, catalog: Catalog, engine: Engine[D], facts: Facts[D], situation: Situation
) -> tuple[Facts[D], Situation]:
    """What is known of the relations of a view's own, besides all else: how the update changes them.

    Args:
        schema: the relations.
        catalog: the warehouse's schema.
        engine: projects the update's rows.
        facts: what is known.
        situation: the kinds of it.
    """
    rules, goals = list[Rule](), dict[Predicate, tuple[str, ...]]()
    for name, own in schema.changing.items():
        for rule in _changes(own, catalog.relations[name].arity, situation):
            rules.append(rule)
            if rule.head.predicate.version in _SIDES:
                goals[rule.head.predicate] = own.relation.columns
    program = Program(tuple(rules))
    found = engine.evaluate_all(program, goals, facts) if goals else {}
    names = {side: frozenset(p.name for p in goals if p.version is side) for side in _SIDES}
    more = replace(
        situation,
        deleted=situation.deleted | names[Version.DELETED],
        inserted=situation.inserted | names[Version.INSERTED],
        ruled_out=frozenset(),  # of other tests
    )
    return facts.extended({p: engine.keep(rows) for p, rows in found.items()}), more


def _changes(own: OwnRelation, arity: int, situation: Situation) -> Iterator[Rule]:
    """The projections of the deleted and of the inserted rows, and what of each the other does not have."""
    (name,) = own.of
    terms = tuple(Variable(f"X{i}") for i in range(arity))
    held = tuple(terms[p] for _, p in own.kept)
    changed = {Version.DELETED: name in situation.deleted, Version.INSERTED: name in situation.inserted}
    sides = {v: Atom(Predicate(own.relation.name, Version.STEP, (i,)), held) for i, v in enumerate(_SIDES)}
    for version in _SIDES:
        if changed[version]:
            yield Rule(sides[version], (Atom(Predicate(name, version), terms),))
    for version, other in (_SIDES, _SIDES[::-1]):
        if changed[version]:
            kept = (Negation((sides[other],)),) if changed[other] else ()
            yield Rule(Atom(Predicate(own.relation.name, version), held), (sides[version], *kept))
