"""Saturation: what is known, with what stored groups tell about the facts that failing tests assume.

Repeated until nothing more is learnt: the new rows of finer views (`following`), witnesses that no group has room for
(`room.py`), and facts that are certain since one of a few must be there (`_certain_facts`).

Condition of soundness: knowing less only leaves more databases. So what a spent budget leaves out makes no "yes"; and
where views group, a "no" has two databases to show for it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress

from msgspec import Struct

from datalog.budget import BudgetSpentError, limit
from datalog.copies import replace
from datalog.model import (
    ANY,
    Atom,
    ColumnType,
    Predicate,
    Row,
    Term,
    Value,
    Variable,
    Version,
    apply_atom,
    ground,
    variables_of,
)
from selfmaint.decide.evaluation import TOGETHER, failing_first, failing_views, more_known, sampled_rules
from selfmaint.decide.knowledge import Knowledge
from selfmaint.decide.room import Room, World, expanded
from selfmaint.decide.selftest import DependsRules, told_subgoals
from selfmaint.decide.unmet_rows import with_unmet
from selfmaint.decide.verdict import Witness
from selfmaint.engine.protocol import D
from selfmaint.maintain import applied, delta, group_change, keep_changes, new_rows
from selfmaint.possible.value_classes import fits
from selfmaint.warehouse.base_relations import variable_types
from selfmaint.warehouse.catalog import Catalog, GroupedView, View

_WITNESSES = 200
"""A test with more witnesses is not looked into."""

_ROUNDS = 4
"""How often what was learnt is used to learn more."""

_WHAT = "finding what stored groups tell"
_CHANGED_ROWS = 20_000
"""Where the update has more rows of a relation, nothing is concluded."""


def saturated(known: Knowledge[D], but: Collection[str] = ()) -> Knowledge[D]:
    """What is known, with what the stored groups tell where tests fail, but for those of some views; found once."""
    if saturated not in known.kept:
        more = known.kept[saturated] = _saturated(followed(known), but)
        more.kept[saturated] = more.kept[followed] = more
    found: Knowledge[D] = known.kept[saturated]
    return found


def followed(known: Knowledge[D]) -> Knowledge[D]:
    """What is known, with the new rows of finer views that are determined as it is; found once."""
    if followed not in known.kept:
        more = known.kept[followed] = _followed(with_unmet(known))
        more.kept[followed] = more
    found: Knowledge[D] = known.kept[followed]
    return found


def decided_with(known: Knowledge[D]) -> Knowledge[D]:
    """What views were decided with; if none were, all that can be learnt."""
    found: Knowledge[D] | None = known.kept.get(decided_with)
    return saturated(known) if found is None else found


def decide_with(known: Knowledge[D], used: Knowledge[D]) -> None:
    """Says what views are decided with; never less than before: a change that is told by more is not told by less."""
    before = known.kept.get(decided_with)
    if before is None or before is followed(known):
        known.kept[decided_with] = used.kept[decided_with] = used


def learns(known: Knowledge[D]) -> bool:
    """Whether stored groups may tell more."""
    return bool(known.catalog.grouped_views) and known.situation.effective


def _followed(known: Knowledge[D]) -> Knowledge[D]:
    decision = known.decision
    if not learns(known):
        return known
    touched = _touched(known)
    first = failing_first(known, touched)
    for view in (view for view in touched if view.name not in first):
        decision.has_rules(view, known.situation)  # finding them has a budget of its own, for each view
    with suppress(BudgetSpentError), limit(decision.budget_s, _WHAT):
        return following(known)
    return known


def _saturated(known: Knowledge[D], but: Collection[str]) -> Knowledge[D]:
    if not learns(known):
        return known
    with suppress(BudgetSpentError), limit(known.decision.budget_s, _WHAT):
        for _ in range(_ROUNDS):
            before, known = known, _learnt(known, but)
            if known is before:
                break
            known = following(known)
    return known


def _learnt(known: Knowledge[D], but: Collection[str]) -> Knowledge[D]:
    """What is known with what failing tests tell; itself if that is no more."""
    decision, situation = known.decision, known.situation
    views = [view for view in known.catalog.views if view.name not in but]
    if decision.has_more_tests(views, situation, TOGETHER):
        return known
    views = [view for view in views if decision.has_rules(view, situation)]
    fetched = [
        (rules, None if rows is None else known.engine.fetch(rows, _WITNESSES))
        for rules, rows in sampled_rules(known, views)
    ]
    if not any(rows for _, rows in fetched):
        return known
    room = Room(known)
    assumed = [a for rules, rows in fetched if rows for a in _assumptions(room, rules, rows)]
    impossible = room.impossible(world for a in assumed for world in a.worlds)
    left = [replace(a, worlds=a.worlds - impossible) for a in assumed]
    more = dict(_ruled_out(known, [a for a in left if not a.worlds]))
    complete = {v.name for v in views} - {r.new_facts.view.name for r, rows in fetched if rows is None}
    found = [f for name in sorted(complete) for f in _certain_facts(known, name, left)]
    present = dict(_present(known, found))
    if not more and not present:
        return known
    ruled_out = situation.ruled_out.union(more)
    there = situation.present.union(p.name for p in present)
    facts = known.facts.extended({**more, **present})
    learnt = known.learning(facts, replace(situation, ruled_out=ruled_out, present=there))
    more_known(known, learnt)
    return learnt


def _assumptions(room: Room[D], rules: DependsRules, rows: Iterable[Row]) -> Iterator[Assumption]:
    for row in rows:
        witness = Witness(rules.new_facts, dict(zip(rules.new_facts.bound, row, strict=True)))
        facts = witness.unknown[: len(rules.new_facts.subgoals)]  # of companions little is known
        yield Assumption(rules, row, expanded(room, facts))


def _ruled_out(known: Knowledge[D], assumed: Iterable[Assumption]) -> Iterator[tuple[Predicate, D]]:
    """The witnesses that are impossible, by test, with those that were so before."""
    engine, by_rules = known.engine, dict[Predicate, list[Assumption]]()
    for one in assumed:
        by_rules.setdefault(one.rules.goal, []).append(one)
    for goal, found in by_rules.items():
        predicate = goal.of(Version.IMPOSSIBLE, goal.columns)
        new_facts = found[0].rules.new_facts
        atoms = [*new_facts.instance.atoms, *new_facts.links, *new_facts.patterns]
        types = variable_types(atoms, known.catalog.relations)
        names = [f"x{i}" for i in range(len(new_facts.bound))]
        columns = zip(new_facts.bound, zip(*(a.row for a in found), strict=True), strict=True)
        kinds = [_one_type(types.get(v, ANY), values) for v, values in columns]
        rows = engine.load([a.row for a in found], names, kinds)
        old = known.facts.relations.get(predicate)
        yield predicate, engine.keep(rows if old is None else engine.union([old, rows]))


def _one_type(kind: ColumnType, values: Iterable[Value]) -> ColumnType:
    """A type of a column that some values are joined with, if it holds them all."""
    return kind if all(v is None or fits(v, kind) for v in values) else ANY


def _present(known: Knowledge[D], found: Iterable[tuple[str, Row]]) -> Iterator[tuple[Predicate, D]]:
    """Certain facts as rows of partial copies, with those known before."""
    engine, by_name = known.engine, dict[str, list[Row]]()
    for name, row in dict.fromkeys(found):
        by_name.setdefault(name, []).append(row)
    for name, rows in by_name.items():
        relation = known.catalog.relations[name]
        predicate = Predicate(name, Version.PRESENT)
        data = engine.load(rows, relation.columns, relation.types)
        old = [known.facts.relations[predicate]] if name in known.situation.present else []
        yield predicate, engine.keep(engine.union([*old, data]))


def following(known: Knowledge[D]) -> Knowledge[D]:
    """What is known, with the new rows of the finer views that a coarser view needs.

    Conditions of soundness:

    1. A view's new rows are determined if its test has no row and none of its groups stays open; they are the old ones
       with its delta.
    2. What is determined stays so when more is known.
    """
    views, finer = known.catalog.views, known.decision.finer
    coarse = _touched(known)
    while coarse:
        followed = known.situation.followed
        determined = _determined(known, coarse)
        coarse = [view for view in coarse if view.name not in determined]
        names = {name for view in coarse for name in finer[view.name]} - followed
        asked = [view for view in views if view.name in names and view not in coarse]
        determined |= _determined(known, asked)
        found = [view for view in views if view.name in names & determined]
        if not found:
            break
        facts = known.facts.extended(dict(_new_rows(known, found)), small=False)
        followed = followed.union(v.name for v in found)
        before, known = known, known.learning(facts, replace(known.situation, followed=followed))
        stays(before, known, determined)
    return known


def stays(before: Knowledge[D], known: Knowledge[D], determined: Collection[str]) -> None:
    """Says which tests passed, and keeps how some views change, that are determined by less (condition 2)."""
    used: Knowledge[D] = before.kept.get(decided_with, before)
    more_known(used, known)
    keep_changes(used, known, determined)


def _touched(known: Knowledge[D]) -> list[View]:
    """The views that change and have finer ones, but for those that no finer one is needed for."""
    changed, finer = known.situation.inserted | known.situation.deleted, known.decision.finer
    return [
        view
        for view in known.catalog.views
        if isinstance(view, GroupedView)
        and finer[view.name]
        and view.name not in known.situation.unmet
        and not known.decision.is_over_whole(view, known.situation)
        and changed.intersection(a.predicate.name for a in view.core.body)
    ]


def _determined(known: Knowledge[D], views: Sequence[View]) -> frozenset[str]:
    """The names of those of some views for which condition 1 of `following` holds."""
    failing = failing_views(known, views)

    def leaves_none_open(view: View) -> bool:
        if not isinstance(view, GroupedView):
            return view.limitation is None
        change = group_change(known, view)
        return change is None or change.open is None

    return frozenset(view.name for view in views if view.name not in failing and leaves_none_open(view))


def _new_rows(known: Knowledge[D], views: Iterable[View]) -> Iterator[tuple[Predicate, D]]:
    for view in views:
        if isinstance(view, GroupedView):
            stored = known.facts.relations[view.predicate]
            is_same = view.name in known.situation.unmet
            new = stored if is_same else applied(known.engine, view, stored, delta(known, view))
            yield new_rows(view), new


class Assumption(Struct, frozen=True):
    """A witness of a failing test, and the sets of facts one of which it assumes."""

    rules: DependsRules
    row: Row
    worlds: frozenset[World]

    @property
    def version(self) -> Version:
        """Whether it starts at inserted rows or at deleted ones."""
        anchor = self.rules.positive[0][0]
        assert isinstance(anchor, Atom)
        return Version.DELETED if anchor.predicate.version is Version.DELETED else Version.INSERTED

    def fact(self, atom: Atom) -> Row | None:
        """The row that one of the view's subgoals has in it; None if that is one of the facts assumed."""
        new_facts = self.rules.new_facts
        image = apply_atom(new_facts.instance.substitution, atom)
        outside = [new_facts.instance.body[j] for j in new_facts.outside]
        if image not in outside:
            return None
        values = dict(zip(new_facts.bound, self.row, strict=True))
        return ground(image.terms, values)


def _certain_facts(
    known: Knowledge[D], name: str, assumed: Sequence[Assumption]
) -> Iterator[tuple[str, Row]]:
    """The facts that the witnesses of one view's failing tests make certain.

    A row of a relation whose foreign keys reach all other subgoals of a core is part of exactly one core row. If the
    update inserts or deletes it and that core row is not known, then one of the witnesses of the failing test is
    true, and what all of them assume is a fact.

        sale(s8, k2, 8) inserted, sale references cust; the witnesses assume { cust(k2, eu) } and nothing else

    Conditions of soundness:

    1. Every other subgoal has a key that is referenced by a foreign key of a subgoal reached before; its other terms
       are variables that nothing before it has.
    2. What the core tests besides is told by the row itself, and columns that reference are not null in it.
    3. All witnesses are at hand: those that no longer count are impossible, and none was left out for a finer view.
    """
    stored = known.catalog.view(name)
    view = stored if not isinstance(stored, GroupedView) else stored.core
    mine = [a for a in assumed if a.rules.new_facts.view.name == name]
    told = told_subgoals(known.catalog, known.situation, stored)
    for index, atom in enumerate(view.body if mine else ()):
        if (told and index not in told) or not _reaches_all(known.catalog, view, index):
            continue
        for version in (Version.INSERTED, Version.DELETED):
            changed = known.facts.relations.get(Predicate(atom.predicate.name, version))
            rows = None if changed is None else known.engine.fetch(changed, _CHANGED_ROWS)
            by_row: dict[Row, list[frozenset[World]]] = {}
            for one in mine:
                row = one.fact(atom) if one.version is version else None
                if row is not None and rows is not None and row in rows and _is_whole(view, atom, row):
                    by_row.setdefault(row, []).append(one.worlds)
            for found in by_row.values():
                worlds = [world for each in found for world in each]
                if worlds:
                    yield from frozenset.intersection(*worlds)


def _reaches_all(catalog: Catalog, view: View, start: int) -> bool:
    """Conditions 1 and 2 of `_certain_facts`, but for nulls."""
    row = view.body[start]
    if not set(variables_of(view.filters)) <= set(row.terms):
        return False
    reached: list[Atom] = [row]
    waiting = [a for i, a in enumerate(view.body) if i != start]
    while waiting:
        known: set[Term] = set(variables_of(reached))
        found = next((a for a in waiting if _is_referenced(catalog, a, reached, row, known)), None)
        if found is None:
            return False
        waiting.remove(found)
        reached.append(found)
    return True


def _is_referenced(
    catalog: Catalog, atom: Atom, reached: Sequence[Atom], row: Atom, known: set[Term]
) -> bool:
    target = catalog.relations[atom.predicate.name]
    for other in reached:
        relation = catalog.relations[other.predicate.name]
        for reference in relation.references:
            key = reference.key_of(other)
            others = [t for i, t in enumerate(atom.terms) if i not in reference.target_columns]
            never_null = other is row or relation.nullable.isdisjoint(reference.columns)
            if (
                reference.target == target.name
                and reference.target_columns in target.keys
                and key == reference.key_in(atom)
                and never_null
                and all(isinstance(t, Variable) and t not in known for t in others)
                and len(set(others)) == len(others)
            ):
                return True
    return False


def _is_whole(view: View, atom: Atom, row: Row) -> bool:
    """Condition 2 of `_certain_facts` for nulls: no variable that must not be null is null in the row."""
    return all(value is not None or t not in view.not_null for t, value in zip(atom.terms, row, strict=True))
