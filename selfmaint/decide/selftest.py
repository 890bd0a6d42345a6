"""TEST: the self-maintainability test of a view as a Datalog program (Huyn 1997, Algorithm 4.1).

Every surviving J gives one predicate `view@depends_n` over the variables that the known subgoals bind; the view is
self-maintainable iff all of them are empty. Each of its rules is anchored on one inserted row:

    v@depends_n(bound) :- g@inserted, others@after,            the subgoals outside J
                          not f@known, not f@inserted, ...,    each ground fact of J is new
                          not (contradiction), ...             and contradicts no view

Conditions of soundness:

1. Some subgoal outside J is an inserted row; otherwise the derivation existed before the update, and the view
   itself contradicts the new facts.
2. A fact with a fresh value is in no relation at hand, so only ground facts are looked up.
3. A new fact is not in the canonical database, not inserted (it would be known after), not deleted (it would be
   gone after), not known absent, and not in a region where its relation is fully known (`newness.py`).
4. A variable that joins is not null, nor is one in a column of a new fact that is never null.
5. A row that a new fact references is there before the update and after it. Before it may also be an inserted row
   if the update is not effective.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

from msgspec import Struct

from datalog.budget import check
from datalog.model import (
    Atom,
    Literal,
    Negation,
    NullTest,
    Predicate,
    Program,
    Rule,
    Term,
    Variable,
    Version,
    apply_atom,
    apply_literal,
    variables_of,
)
from selfmaint.canonical.support import Support
from selfmaint.decide.new_facts import NewFacts
from selfmaint.decide.newness import newness
from selfmaint.decide.surviving import Dominance, has_better_links
from selfmaint.maintain.core_rows import for_changes
from selfmaint.maintain.dropped_groups import dropping
from selfmaint.warehouse.catalog import Catalog, GroupedView, View, certain_variables
from selfmaint.warehouse.situation import Situation


class DependsRules(Struct, frozen=True):
    """The rules of one surviving J.

    Attributes:
        head: `view@depends_n(bound variables)`.
        positive: for each anchor, the subgoals outside J, and the null guards.
        negative: what makes the facts of J possible.
    """

    new_facts: NewFacts
    head: Atom
    positive: tuple[tuple[Literal, ...], ...]
    negative: tuple[Literal, ...]

    @property
    def goal(self) -> Predicate:
        """The predicate whose rows are the witnesses."""
        return self.head.predicate


def depends_rules(
    catalog: Catalog, situation: Situation, survivors: Sequence[NewFacts]
) -> tuple[DependsRules, ...]:
    """The rules of every J that can matter in a situation."""
    return _rules(catalog, situation, survivors, Version.INSERTED)


def losing_rules(
    catalog: Catalog, situation: Situation, survivors: Sequence[NewFacts]
) -> tuple[DependsRules, ...]:
    """The same for rows that may be lost: of the core of a view that groups, whose rows are not stored.

        v@depends_n_1(bound) :- g@deleted, others@known, not ...

    Condition 6: the update is effective, so that deleted rows were there, and no new fact is one of them. What a group
    loses that shows the key of a deleted row is known (`dropped_groups.py`).
    """
    return _rules(catalog, situation, survivors, Version.DELETED) if situation.effective else ()


def _rules(
    catalog: Catalog, situation: Situation, survivors: Sequence[NewFacts], version: Version
) -> tuple[DependsRules, ...]:
    if not survivors:
        return ()
    told = told_subgoals(catalog, situation, catalog.view(survivors[0].view.name))
    result = []
    dominance = Dominance(catalog, survivors)
    impossible = situation.readable | situation.wholly_known
    losing = version is Version.DELETED
    changed = situation.deleted if losing else situation.inserted
    dropped = _dropped(catalog, situation, survivors[0].view) if losing else {}
    for new_facts in survivors:
        check()
        anchors = [j for j in new_facts.outside if new_facts.instance.body[j].predicate.name in changed]
        anchors = [
            j
            for j in anchors
            if not told.issuperset(_positions(new_facts, new_facts.subgoals))
            or told.issuperset(_positions(new_facts, [j]))
        ]
        stays, ended = _staying(new_facts, dropped)
        anchors = [j for j in anchors if j not in ended]
        if not anchors or any(atom.predicate.name in impossible for atom in new_facts.atoms):
            continue
        if not catalog.grouped_views:
            if has_better_links(catalog, new_facts, impossible):
                continue
            anchors = dominance.needed(new_facts, anchors, situation)
        if not anchors:
            continue
        number = (new_facts.number, 1) if losing else (new_facts.number,)
        predicate = Predicate(new_facts.view.name, Version.DEPENDS, number)
        negative = (*_negative(catalog, new_facts, situation), *stays)
        impossible_here = predicate.of(Version.IMPOSSIBLE, number)
        if impossible_here in situation.ruled_out:
            negative = (*negative, Negation((Atom(impossible_here, new_facts.bound),)))
        if any(isinstance(li, Negation) and not li.body for li in negative):
            continue
        positive = (
            (
                *_positive(new_facts, anchor, links, version),
                *new_facts.conditions,
                *_guards(catalog, new_facts),
            )
            for anchor in anchors
            for links in _links(catalog, new_facts, situation, None if losing else anchor)
        )
        made = tuple(positive)
        if made:
            result.append(DependsRules(new_facts, Atom(predicate, new_facts.bound), made, negative))
    return tuple(result)


def known_parts(
    catalog: Catalog, situation: Situation, candidate: NewFacts
) -> tuple[tuple[Literal, ...], ...]:
    """What known facts and a row of the update must match for any new facts that come of a candidate, every way.

    Groups and positions only add to it: where none of these conjunctions has a row, no test of the candidate has one.
    """
    if any(atom.predicate.name in situation.readable | situation.wholly_known for atom in candidate.atoms):
        return ()
    body = candidate.instance.body
    bound = frozenset(variables_of([body[j] for j in candidate.outside]))
    compared = tuple(c for c in candidate.instance.comparisons if bound.issuperset(variables_of([c])))
    return tuple(
        (*_positive(candidate, anchor, links, Version.INSERTED), *compared)
        for anchor in candidate.outside
        if body[anchor].predicate.name in situation.inserted
        for links in _links(catalog, candidate, situation, anchor)
    )


def told_subgoals(catalog: Catalog, situation: Situation, view: View) -> frozenset[int]:
    """The subgoals of a view's core for which a finer view stands where other ones change (`maintain/core_rows.py`).

    Condition 7: what is not known of them alone does not matter where another subgoal changes.
    """
    if not isinstance(view, GroupedView) or not situation.followed:
        return frozenset()
    roll = for_changes(catalog, situation, view)
    return frozenset() if roll is None else roll.finer.subgoals


def _dropped(catalog: Catalog, situation: Situation, view: View) -> Mapping[int, Atom]:
    """What tells the groups that lose all rows, by the subgoals whose keys they show."""
    found = catalog.view(view.name)
    return dropping(catalog, situation, found) if isinstance(found, GroupedView) else {}


def _staying(new_facts: NewFacts, dropped: Mapping[int, Atom]) -> tuple[tuple[Negation, ...], frozenset[int]]:
    """That no known subgoal drops the group, and which subgoals do where they are deleted."""
    image, body = new_facts.instance.substitution, new_facts.instance.body
    moved = {place: apply_atom(image, new_facts.view.body[place]) for place in dropped}
    known = {place: [j for j in new_facts.outside if body[j] == atom] for place, atom in moved.items()}
    stays = tuple(Negation((apply_atom(image, dropped[place]),)) for place, its in known.items() if its)
    return stays, frozenset(j for its in known.values() for j in its)


def _positions(new_facts: NewFacts, subgoals: Iterable[int]) -> Iterator[int]:
    """The places in the view's body of some subgoals of an instance, which may stand for several."""
    moved = [apply_atom(new_facts.instance.substitution, atom) for atom in new_facts.view.body]
    bodies = [new_facts.instance.body[j] for j in subgoals]
    return (place for place, atom in enumerate(moved) if atom in bodies)


def _positive(new_facts: NewFacts, anchor: int, links: Sequence[Atom], version: Version) -> tuple[Atom, ...]:
    """Condition 1: the anchor first."""
    body = new_facts.instance.body
    others = Version.KNOWN if version is Version.DELETED else Version.AFTER
    outside = (body[j].of(others) for j in new_facts.outside if j != anchor)
    return (body[anchor].of(version), *outside, *links, *new_facts.patterns)


def _links(
    catalog: Catalog, new_facts: NewFacts, situation: Situation, anchor: int | None
) -> Iterator[tuple[Atom, ...]]:
    """Condition 5: the atoms of the links, for each way of their having been there."""
    body = new_facts.instance.body
    ways: list[list[tuple[Atom, ...]]] = []
    for link in new_facts.links:
        name = link.predicate.name
        survives = (_after(link, new_facts),) if name in situation.deleted else ()
        options = [(link.of(Version.KNOWN), *survives)]
        if name in situation.inserted and not situation.effective:
            options.append((link.of(Version.INSERTED),))
        elif name in situation.inserted and name not in situation.deleted and anchor is not None:
            key = tuple(i for i, t in enumerate(link.terms) if not _is_private(t, new_facts))
            if _agrees(catalog, body[anchor], link, key):
                return
        ways.append(options)
    for combination in product(*ways):
        yield tuple(dict.fromkeys(atom for part in combination for atom in part))


def _is_private(term: Term, new_facts: NewFacts) -> bool:
    """Whether a term of a link stands outside its key."""
    return isinstance(term, Variable) and term not in new_facts.instance.occurrences


def _agrees(catalog: Catalog, atom: Atom, link: Atom, key: tuple[int, ...]) -> bool:
    """Whether an inserted row has the key of a row that is said to have been there, and stays."""
    if atom.predicate.name != link.predicate.name or not any(
        set(columns) <= set(key) for columns in catalog.relations[link.predicate.name].keys
    ):
        return False
    return all(atom.terms[i] == link.terms[i] for i in key)


def _after(link: Atom, new_facts: NewFacts) -> Atom:
    """The referenced row after the update: only its key must be the same."""
    terms = tuple(
        Variable(f"{t.name}_after") if isinstance(t, Variable) and _is_private(t, new_facts) else t
        for t in link.terms
    )
    return Atom(link.predicate.of(Version.AFTER), terms)


def _guards(catalog: Catalog, new_facts: NewFacts) -> tuple[NullTest, ...]:
    """Condition 4: what the base columns of the subgoals outside J do not promise."""
    body = new_facts.instance.body
    needed = new_facts.instance.not_null | certain_variables(
        (body[j] for j in new_facts.subgoals), catalog.relations
    )
    promised = certain_variables((body[j] for j in new_facts.outside), catalog.relations)
    return tuple(NullTest(v) for v in new_facts.bound if v in needed - promised)


def _negative(catalog: Catalog, new_facts: NewFacts, situation: Situation) -> Iterator[Literal]:
    yield from newness(catalog, new_facts, situation)
    yield from new_facts.contradictions
    for taken in new_facts.excluded:
        yield Negation(taken)


def compact_program(support: Support, rules: Sequence[DependsRules]) -> Program:
    """TEST as one program: what is printed, and what runs."""
    made: list[Rule] = []
    for rule in rules:
        check()
        negations = support.prepared(rule.negative, frozenset(rule.new_facts.bound))
        for positive in rule.positive if negations is not None else ():
            anchored = support.rule(rule.head, positive, ())
            if anchored is not None and negations is not None:
                terms = zip(rule.new_facts.bound, anchored.head.terms, strict=True)
                image = {v: t for v, t in terms if v != t}
                moved = tuple(apply_literal(image, literal) for literal in negations) if image else negations
                whole = support.with_negations(anchored, moved)
                made += [] if whole is None else [whole]
    return support.program(made, [rule.goal for rule in rules])
