"""Views that project, decided over relations of their own (see `warehouse.own_relations`): a "yes" carries over."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import product

from datalog.copies import replace
from datalog.model import Atom, Literal, Negation, Predicate, Program, Rule, Variable, Version
from selfmaint.decide.decision import Decision
from selfmaint.decide.knowledge import Knowledge
from selfmaint.engine.protocol import D
from selfmaint.warehouse.own_relations import OwnSchema

SIDES = (Version.DELETED, Version.INSERTED)


def known_there(known: Knowledge[D], schema: OwnSchema, decision: Decision) -> Knowledge[D]:
    """What is known of the relations of a view's own, besides all else: how the update changes them; found once."""
    key = known_there, id(decision)  # which what is kept refers to
    if key not in known.kept:
        known.kept[key] = _known_there(known, schema, decision)
    found: Knowledge[D] = known.kept[key]
    return found


def _known_there(known: Knowledge[D], schema: OwnSchema, decision: Decision) -> Knowledge[D]:
    engine, situation = known.engine, known.situation
    rules, goals = list[Rule](), dict[Predicate, tuple[str, ...]]()
    for name, own in schema.changing.items():
        changed = {Version.DELETED: name in situation.deleted, Version.INSERTED: name in situation.inserted}
        heads = {side: Predicate(own.relation.name, side) for side in SIDES if changed[side]}
        places = [p for _, p in own.kept]
        arity = known.catalog.relations[name].arity
        rules += projected_changes(name, arity, places, heads, heads.__getitem__, own.tests)
        goals |= dict.fromkeys(heads.values(), own.relation.columns)
    program = Program(tuple(rules))
    found = engine.evaluate_all(program, goals, known.facts) if goals else {}
    names = {side: frozenset(p.name for p in goals if p.version is side) for side in SIDES}
    more = replace(
        situation,
        deleted=situation.deleted | names[Version.DELETED],
        inserted=situation.inserted | names[Version.INSERTED],
        ruled_out=frozenset(),  # of other tests
    )
    facts = known.facts.extended({p: engine.keep(rows) for p, rows in found.items()})
    return decision.knowledge(engine, facts, more)


def projected_changes(
    name: str,
    arity: int,
    places: Sequence[int],
    changed: Collection[Version],
    head: Callable[[Version], Predicate],
    tests: Iterable[Sequence[Literal]] = ((),),
) -> Iterator[Rule]:
    """How a projection of a relation changes: what deleted rows hold in some columns, and no inserted ones; and back.

    Args:
        name: the relation.
        arity: the number of its columns.
        places: the columns that are kept, a key among them.
        changed: which of `SIDES` the update has.
        head: what the rules for a side define.
        tests: one of these conjunctions holds of the rows that matter; over `X0`, `X1`, ... for the columns.
    """
    terms = tuple(Variable(f"X{i}") for i in range(arity))
    held = tuple(terms[i] for i in places)
    sides = {v: Atom(Predicate(name, Version.STEP, (i, *places)), held) for i, v in enumerate(SIDES)}
    for version, its in product(changed, tests):
        yield Rule(sides[version], (Atom(Predicate(name, version), terms), *its))
    for version, other in (SIDES, SIDES[::-1]):
        if version in changed:
            kept = (Negation((sides[other],)),) if other in changed else ()
            yield Rule(Atom(head(version), held), (sides[version], *kept))
