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
5. Fresh variables that are to be equal are one for a demand: it may ask just that.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from msgspec import Struct

from datalog.budget import check
from datalog.copies import replace
from datalog.model import (
    AggregateFunction,
    Atom,
    Comparison,
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
from selfmaint.decide.inconsistency import Contradiction, apart, matches
from selfmaint.decide.instances import MAPPING_LIMIT, Instance
from selfmaint.decide.new_facts import NewFacts
from selfmaint.warehouse.catalog import Catalog, GroupedView, View, certain_variables

_SPLITS = 2
"""At most so many demands that depend on known facts are made of one set of new facts."""
_OWN_VALUE = (AggregateFunction.SUM, AggregateFunction.MIN, AggregateFunction.MAX)


def demands(catalog: Catalog, instance: Instance, sets: Collection[int]) -> tuple[Demand, ...]:
    """The demands that some sets of new facts for an instance's atoms may meet, those of new facts alone first."""
    largest = [one for one in set(sets) if not any(one & other == one != other for other in sets)]
    atoms = instance.atoms
    certain = instance.not_null | certain_variables(atoms, catalog.relations)
    found: dict[Demand, None] = {}
    everything = (1 << len(atoms)) - 1 & ~instance.old
    for contradiction in instance.dead:
        if contradiction.facts.bit_count() == 1:
            everything &= ~contradiction.facts  # this fact is never new
    for view in catalog.grouped_views:
        if not view.grouped.tells_absence:
            continue
        groups = frozenset(t for t in view.grouped.group_terms.values() if isinstance(t, Variable))
        ways = matches(atoms, everything, certain, view.core, catalog, MAPPING_LIMIT, groups)
        if ways:
            names = _Names.of(view.core, atoms)
            met = (way for way in ways if any(way.facts & one == way.facts for one in largest))
            found |= dict.fromkeys(_demand(view, way, instance, names) for way in met)
    ordered = sorted(found, key=lambda d: (len(d.body), d.facts.bit_count()))
    return tuple(demand.renamed(i) for i, demand in enumerate(ordered))


class _Names(Struct, frozen=True):
    """What the demands of one view on one instance are named like.

    Attributes:
        prefix: of variables that the instance has not.
        new: for the core's variables, others that it has not.
    """

    prefix: str
    new: Mapping[Variable, Term]
    taken: frozenset[Variable]

    @classmethod
    def of(cls, core: View, atoms: Sequence[Atom]) -> _Names:
        """The names for a core."""
        taken = frozenset(variables_of(atoms))
        return cls(unused_prefix("E", atoms), apart(core.body, atoms), taken)


def _demand(view: GroupedView, way: Contradiction, instance: Instance, names: _Names) -> Demand:
    atoms = instance.atoms
    prefix, grouped = names.prefix, view.grouped
    images: dict[Variable, Term] = {}
    for atom, at in zip(view.core.body, way.mapping, strict=True):
        if at is not None:
            for term, value in zip(atom.terms, atoms[at].terms, strict=True):
                if isinstance(term, Variable):
                    vague = value == Constant(None) and instance.chased.companions >> at & 1
                    images.setdefault(term, Variable(f"{prefix}any_{term.name}") if vague else value)
    named = {v: t for v, t in names.new.items() if v not in images}
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
    own = told - names.taken
    return Demand(view, way.facts, moved, group, operands, own)


def with_groups(catalog: Catalog, candidate: NewFacts, found: Sequence[Demand]) -> Iterator[NewFacts]:
    """The candidate with the groups that its facts are in, for each choice of what known facts add: nothing first."""
    same = _made_equal(candidate)
    mine = tuple(d.under(same) if same else d for d in found if not d.facts & ~candidate.facts)
    stack = [(candidate, mine, 0, _SPLITS)]  # no recursion: it would go as deep as there are demands
    while stack:
        check()
        chosen, waiting, start, splits = stack.pop()
        fresh = chosen.fresh
        at = next((i for i in range(start, len(waiting)) if fresh.isdisjoint(waiting[i].tested)), None)
        if at is None:
            yield chosen
            continue
        rest = waiting[:at] + waiting[at + 1 :]
        for one, left in _ways(catalog, chosen, waiting[at], splits):
            stack.append((one, rest, at if one.fresh == fresh else 0, left))


def _made_equal(candidate: NewFacts) -> dict[Variable, Term]:
    """For the fresh variables that are to equal another term, that term (condition 5)."""
    found: dict[Variable, Term] = {}
    for condition in candidate.conditions:
        if not isinstance(condition, Comparison) or condition.operator != "=":
            continue
        left, right = (
            found.get(t, t) if isinstance(t, Variable) else t for t in (condition.left, condition.right)
        )
        if left not in candidate.fresh:
            left, right = right, left
        if isinstance(left, Variable) and left in candidate.fresh and left != right:
            found = {v: right if t == left else t for v, t in found.items()} | {left: right}
    return found


def _ways(
    catalog: Catalog, candidate: NewFacts, demand: Demand, splits: int
) -> tuple[tuple[NewFacts, int], ...]:
    """The candidate where a demand applies and where it does not (condition 4), with the splits that are left."""
    met = _is_met(candidate, demand)
    is_passed_over = bool(demand.body) and splits == 0 and not met
    if is_passed_over or _is_impossible(catalog, candidate, demand):
        return ((candidate, splits),)
    if not demand.body:
        more = candidate if met else replace(candidate, patterns=(*candidate.patterns, demand.group))
        return ((_closing(more, demand), splits),)
    if met:
        return ((_closing(candidate, demand), splits),)
    without = replace(candidate, excluded=(*candidate.excluded, demand.body))
    return (_closing(_holding(candidate, demand), demand), splits - 1), (without, splits - 1)


def _closing(candidate: NewFacts, demand: Demand) -> NewFacts:
    """The candidate with what the stored aggregates of a group rule out."""
    if candidate.fresh.intersection(variables_of([demand.group])):
        return candidate
    known = candidate.fresh
    ruled_out = _full_groups(
        replace(demand, operands=tuple((c, t) for c, t in demand.operands if t not in known))
    )
    excluded = tuple(dict.fromkeys((*candidate.excluded, *ruled_out)))
    return candidate if excluded == candidate.excluded else replace(candidate, excluded=excluded)


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


@dataclass(frozen=True)
class Demand:
    """One way in which new facts and known facts make a core row of a view that groups.

    Attributes:
        facts: the new facts used, as a bit mask over the instance's atoms.
        body: what must hold for it, besides.
        group: the view's stored row, a variable of its own where a column is not told.
        operands: for columns that hold an aggregate of a term, the term.
        own: the variables that no new fact has.
    """

    view: GroupedView = field(hash=False)
    facts: int
    body: tuple[Literal, ...]
    group: Atom
    operands: tuple[tuple[int, Term], ...]
    own: frozenset[Variable]

    @cached_property
    def tested(self) -> frozenset[Variable]:
        """The variables of what must hold."""
        return frozenset(variables_of(self.body))

    def under(self, same: Mapping[Variable, Term]) -> Demand:
        """With some variables replaced by what they equal, and what is so anyway left out."""
        body = (apply_literal(same, li) for li in self.body)
        return replace(
            self,
            body=tuple(
                li
                for li in body
                if not (isinstance(li, Comparison) and li.operator == "=" and li.left == li.right)
            ),
            group=apply_atom(same, self.group),
            operands=tuple((c, same.get(t, t) if isinstance(t, Variable) else t) for c, t in self.operands),
        )

    def renamed(self, number: int) -> Demand:
        """With variables of its own, none of which another demand of a set of new facts has."""
        names = {v: Variable(f"{v.name}_{number}") for v in self.own}
        return replace(
            self,
            body=tuple(apply_literal(names, li) for li in self.body),
            group=apply_atom(names, self.group),
            operands=tuple((c, names.get(t, t) if isinstance(t, Variable) else t) for c, t in self.operands),
            own=frozenset(names.values()),
        )


def _full_groups(demand: Demand) -> tuple[tuple[Literal, ...], ...]:
    """Conjunctions over known facts and stored groups, none of which holds where the demand's core row is there.

    Conditions of soundness:

    1. The group is told wholly, so that the stored row is the one of the new core row.
    2. A new core row uses a fact that is not known, so it differs from every known core row.
    3. A group of one row that is known has no other; and the only row of a group has the group's aggregates.
    4. No row of a group has less than its minimum, nor more than its maximum.
    """
    return tuple(_ruled_out(demand)) if _is_told(demand) else ()


def _is_told(demand: Demand) -> bool:
    """Condition 1 of `_full_groups`."""
    grouped = demand.view.grouped
    bound = variables_of([li for li in demand.body if isinstance(li, Atom)])
    terms = [demand.group.terms[c] for c in grouped.columns]
    plain = all(column in grouped.group_terms for column in grouped.columns)
    return plain and all(t not in demand.own or t in bound for t in terms)


def _ruled_out(demand: Demand) -> Iterator[tuple[Literal, ...]]:
    grouped = demand.view.grouped
    values = demand.group.terms
    functions = {m.column: m.aggregate.function for m in grouped.measures}
    bound = variables_of([li for li in demand.body if isinstance(li, Atom)])
    operands = [(c, t) for c, t in demand.operands if t not in demand.own or t in bound]
    for column, operand in operands:
        if functions[column] is AggregateFunction.MIN:  # condition 4 of `_full_groups`
            yield (*demand.body, demand.group, Comparison("<", operand, values[column]))
        if functions[column] is AggregateFunction.MAX:
            yield (*demand.body, demand.group, Comparison(">", operand, values[column]))
    if grouped.count_column is None:
        return
    single = _with(demand.group, grouped.count_column, Constant(1))
    for column, operand in operands:  # condition 3 of `_full_groups`
        if functions[column] in _OWN_VALUE and column not in grouped.inexact:
            yield (*demand.body, single, Comparison("!=", operand, values[column]))
    yield (*demand.body, single, *_known_row(demand))


def _with(atom: Atom, column: int, term: Term) -> Atom:
    return Atom(atom.predicate, (*atom.terms[:column], term, *atom.terms[column + 1 :]))


def _known_row(demand: Demand) -> Iterator[Literal]:
    """Condition 2 of `_full_groups`: a known core row of the demand's group."""
    core, grouped = demand.view.core, demand.view.grouped
    taken = {v.name for v in variables_of([demand.group, *demand.body])}
    suffix = "_known"
    while any(v.name + suffix in taken for v in variables_of(core.body)):
        suffix += "_"
    images: dict[Variable, Term] = {v: Variable(v.name + suffix) for v in variables_of(core.body)}
    for column, term in grouped.group_terms.items():
        if isinstance(term, Variable):
            images[term] = demand.group.terms[column]
    for atom in core.body:
        moved = apply_atom(images, atom)
        yield moved.of(Version.KNOWN)
    yield from (apply_literal(images, li) for li in core.filters)
