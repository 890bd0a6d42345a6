"""What stored groups say of new facts: a view that groups has a row for each group that has a core row.

Against such a view a fresh value is not the most general choice: with new facts that match the view's body, alone or
with known facts, the group must be stored, so a variable that only new facts bind has one of the groups' values.

    J = {cust(C, R)} with sale@known(I, C, A)          by_region(R, count(*)) :- sale(I, C, A), cust(C, R).
    either   sale@known(I', C, A'), by_region(R, _)    R is bound by the groups, no longer fresh
    or       not sale@known(I', C, A')

Conditions of soundness:

1. The view stores every group that has a core row (`Grouped.tells_absence`).
2. A demand that mentions a variable that is still fresh is passed over: a fresh value stands for any. So is one
   beyond a limit.
3. A null in a companion stands for any value: the group is then asked for without it.
4. Every combination of demands that apply and that do not is a candidate of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from datalog.model import (
    Atom,
    Constant,
    Literal,
    NullTest,
    Term,
    Variable,
    Version,
    apply_atom,
    apply_literal,
    variables_of,
)
from selfmaint.decide.companions import unused_prefix
from selfmaint.decide.demand import Demand
from selfmaint.decide.full_groups import full_groups
from selfmaint.decide.inconsistency import Contradiction, apart, matches
from selfmaint.decide.instances import MAPPING_LIMIT, Instance
from selfmaint.decide.new_facts import NewFacts
from selfmaint.warehouse.catalog import Catalog, View, certain_variables
from selfmaint.warehouse.grouped import Grouped

SPLITS = 2
"""At most so many demands that depend on known facts are made of one set of new facts."""


def demands(catalog: Catalog, instance: Instance) -> tuple[Demand, ...]:
    """The demands that new facts for an instance's atoms may meet, those of new facts alone first."""
    atoms = instance.atoms
    certain = instance.not_null | certain_variables(atoms, catalog.relations)
    found: dict[Demand, None] = {}
    for view in catalog.views:
        if view.core is None or view.grouped is None or not view.grouped.tells_absence:
            continue
        groups = frozenset(t for t in view.grouped.group_terms.values() if isinstance(t, Variable))
        everything = (1 << len(atoms)) - 1
        ways = matches(atoms, everything, certain, view.core, catalog, MAPPING_LIMIT, groups)
        for way in ways or ():
            found.setdefault(_demand(view, view.core, view.grouped, way, instance))
    return tuple(sorted(found, key=lambda d: (len(d.body), d.facts.bit_count())))


def _demand(view: View, core: View, grouped: Grouped, way: Contradiction, instance: Instance) -> Demand:
    atoms = instance.atoms
    prefix = unused_prefix("E", atoms)
    images: dict[Variable, Term] = {}
    for atom, at in zip(core.body, way.mapping, strict=True):
        if at is not None:
            for term, value in zip(atom.terms, atoms[at].terms, strict=True):
                if isinstance(term, Variable):
                    vague = value == Constant(None) and instance.chased.companions >> at & 1
                    images.setdefault(term, Variable(f"{prefix}any_{term.name}") if vague else value)
    named = {v: t for v, t in apart(core.body, atoms).items() if v not in images}
    existential = {t: Variable(f"{prefix}_{v.name}") for v, t in named.items() if isinstance(t, Variable)}
    images |= {v: Variable(f"{prefix}_{v.name}") for v in named}
    body = (*way.residue, *way.conditions, *(NullTest(v) for v in way.not_null), *way.comparisons)
    group = apply_atom(images, grouped.stored(view.predicate, f"{prefix}q"))
    given = ((measure.column, grouped.operand(measure)) for measure in grouped.measures)
    operands = tuple(
        (column, images[term] if isinstance(term, Variable) else term)
        for column, term in given
        if term is not None
    )
    moved = tuple(apply_literal(existential, li) for li in body)
    told = frozenset(t for _, t in operands if isinstance(t, Variable)).union(variables_of([group, *moved]))
    own = told - frozenset(variables_of(atoms))
    return Demand(view, way.facts, moved, group, operands, own)


def with_groups(catalog: Catalog, candidate: NewFacts, found: Sequence[Demand]) -> Iterator[NewFacts]:
    """The candidate with the groups that its facts are in, for each choice of what known facts add.

    Args:
        catalog: the warehouse's schema.
        candidate: new facts without positions.
        found: the demands of its instance.
    """
    mine = [d.renamed(i) for i, d in enumerate(found) if not d.facts & ~candidate.facts]
    yield from _split(catalog, candidate, mine, SPLITS)


def _split(
    catalog: Catalog, candidate: NewFacts, waiting: Sequence[Demand], splits: int
) -> Iterator[NewFacts]:
    """Condition 4."""
    for demand in waiting:
        if any(_applies_to(candidate, literal) for literal in demand.body):
            continue
        rest = [d for d in waiting if d is not demand]
        if _is_impossible(catalog, candidate, demand):
            yield from _split(catalog, candidate, rest, splits)
            return
        met = _is_met(candidate, demand)
        if not demand.body:
            more = candidate if met else replace(candidate, patterns=(*candidate.patterns, demand.group))
            yield from _split(catalog, _closing(more, demand), rest, splits)
            return
        if met or splits == 0:
            closed = _closing(candidate, demand) if met else candidate
            yield from _split(catalog, closed, rest, splits)
            return
        yield from _split(catalog, _closing(_holding(candidate, demand), demand), rest, splits - 1)
        excluded = (*candidate.excluded, demand.body)
        yield from _split(catalog, replace(candidate, excluded=excluded), rest, splits - 1)
        return
    yield candidate


def _applies_to(candidate: NewFacts, literal: Literal) -> bool:
    """Condition 2: whether a literal mentions a fresh variable."""
    return bool(candidate.fresh.intersection(variables_of([literal])))


def _closing(candidate: NewFacts, demand: Demand) -> NewFacts:
    """The candidate with what the stored aggregates of a group rule out."""
    if candidate.fresh.intersection(variables_of([demand.group])):
        return candidate
    known = candidate.fresh
    ruled_out = full_groups(
        replace(demand, operands=tuple((c, t) for c, t in demand.operands if t not in known))
    )
    return replace(candidate, excluded=tuple(dict.fromkeys((*candidate.excluded, *ruled_out))))


def _holding(candidate: NewFacts, demand: Demand) -> NewFacts:
    """The candidate where a demand's known facts are there, and so is its group."""
    atoms = tuple(li for li in demand.body if isinstance(li, Atom))
    tests = tuple(li for li in demand.body if not isinstance(li, Atom))
    return replace(
        candidate,
        patterns=(*candidate.patterns, *atoms, demand.group),
        conditions=tuple(dict.fromkeys((*candidate.conditions, *tests))),
    )


def _is_met(candidate: NewFacts, demand: Demand) -> bool:
    """Whether a group that the candidate is in already has all that is told of the demand's."""
    free = demand.own.intersection(demand.group.terms)
    return any(
        pattern.predicate == demand.group.predicate
        and all(t == p or t in free for t, p in zip(demand.group.terms, pattern.terms, strict=True))
        for pattern in candidate.patterns
    ) and not any(isinstance(li, Atom) and free.intersection(li.terms) for li in demand.body)


def _is_impossible(catalog: Catalog, candidate: NewFacts, demand: Demand) -> bool:
    """Whether a known row that a demand needs would have the key of a new fact."""
    known = [li for li in demand.body if isinstance(li, Atom) and li.predicate.version is Version.KNOWN]
    return any(
        fact.predicate.name == atom.predicate.name and all(fact.terms[i] == atom.terms[i] for i in key)
        for atom in known
        for fact in candidate.atoms
        for key in catalog.relations[atom.predicate.name].keys
    )
