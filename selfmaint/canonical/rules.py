"""The rules of the canonical database (Huyn 1997, Definition 3.1) and of its after-image.

Conditions of soundness:

1. Every body variable of a view is in its head, so a view row grounds every subgoal; of a view outside the
   exact class only the subgoals without a projected variable contribute.
2. A contribution may be dropped when it is contained, as a query over the base relations, in another one:
   the views are what their rules say, so the containment holds for their contents too.
3. A partial copy's `present` rows and, for an effective update, the `deleted` rows were in the database.
4. A readable relation's before-image is the whole relation: nothing else can add to it.
5. A view that groups proves the subgoals all of whose variables are group columns: a stored group has a row.
6. A row of which a view shows a key, and that the update deletes, is the row of that match: what it has in columns
   that the view hides binds the other subgoals. A deleted line tells its part, and `sold` shows the line's brand.
7. A foreign key proves rows of the relation that it references (`references.py`).
8. A view that joins a relation to others only by foreign keys that are never null, and tests nothing, has a row for
   each of its rows: where it shows all of its columns, the relation is wholly known, and none of its rows is new.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from datalog.containment import contained_in, containment_mapping
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
    variables_of,
)
from datalog.rewrite import guarded_variables
from selfmaint.canonical.references import proved
from selfmaint.warehouse.base_relations import certain_variables, row_atom
from selfmaint.warehouse.catalog import BaseRelation, Catalog, GroupedView, View
from selfmaint.warehouse.grouped import Grouped
from selfmaint.warehouse.promised import promised
from selfmaint.warehouse.situation import Situation
from selfmaint.warehouse.views import Outside


@dataclass(frozen=True, slots=True)
class Contribution:
    """One subgoal of one view: what the view's rows tell about the subgoal's relation.

    Attributes:
        subgoal: index into the view's body.
        rule: `relation@known(...) :- view(...).`
        is_exact: whether the view has a row for each match of its body, as one with filters has not.
        is_copy: whether it is the whole relation (condition 8).
    """

    view: View
    subgoal: int
    rule: Rule
    is_exact: bool = True
    is_copy: bool = False

    @property
    def stored(self) -> Predicate:
        """The view whose rows tell it."""
        (atom, *_) = self.rule.atoms
        return atom.predicate

    @property
    def meaning(self) -> Rule:
        """The contribution as a query over the base relations: the view unfolded."""
        return Rule(self.rule.head, (*self.view.body, *self.view.filters))


def contributions(catalog: Catalog) -> tuple[Contribution, ...]:
    """What each view tells about the base relations, without what another contribution tells anyway."""
    kept: list[Contribution] = []
    for new in all_contributions(catalog):
        rivals = [c for c in kept if c.rule.head.predicate == new.rule.head.predicate]
        if any(rival.is_exact and contained_in(new.meaning, rival.meaning) for rival in rivals):
            continue
        if new.is_exact:
            kept = [c for c in kept if c not in rivals or not contained_in(c.meaning, new.meaning)]
        kept.append(new)
    return tuple(kept)


def all_contributions(catalog: Catalog) -> Iterator[Contribution]:
    """What each view tells about the base relations, even what another one tells by condition 2."""
    for view in catalog.views:
        yield from catalog.once("what it tells", view, partial(_told, catalog, view))


def copied(catalog: Catalog) -> Mapping[str, Contribution]:
    """The relations that views copy (condition 8), and what tells them."""
    return {c.rule.head.predicate.name: c for c in all_contributions(catalog) if c.is_copy}


def _told(catalog: Catalog, view: View) -> tuple[Contribution, ...]:
    found = list[Contribution]()
    if isinstance(view, GroupedView) and not view.grouped.is_hidden:
        found.extend(_of_groups(catalog, view.core, view.grouped))
    if view.limitation is None:
        for index, atom in enumerate(view.body):
            variables = {t for t in atom.terms if isinstance(t, Variable)}
            if variables <= set(view.head.terms):
                head = atom.of(Version.KNOWN)
                guards = tuple(NullTest(v) for v in guarded_variables([atom]))
                is_copy = _is_copy(catalog, view, atom)
                found.append(Contribution(view, index, Rule(head, (view.head, *guards)), is_copy=is_copy))
    return tuple(found)


def _of_groups(catalog: Catalog, core: View, grouped: Grouped) -> Iterator[Contribution]:
    """Condition 5: what the groups tell; nothing of a view that has a row even over none."""
    stored = grouped.stored(core.rule.head.predicate.of(Version.STORED), "Q")
    for index, atom in enumerate(core.body):
        if not grouped.is_total and set(atom.terms) <= {*grouped.group_terms.values(), *_constants(atom)}:
            head = atom.of(Version.KNOWN)
            guards = tuple(NullTest(v) for v in guarded_variables([atom]))
            is_exact = grouped.tells_absence
            is_copy = is_exact and _is_copy(catalog, core, atom)
            yield Contribution(core, index, Rule(head, (stored, *guards)), is_exact, is_copy)


def _constants(atom: Atom) -> Iterator[Term]:
    return (t for t in atom.terms if isinstance(t, Constant))


def _is_copy(catalog: Catalog, view: View, atom: Atom) -> bool:
    """Condition 8: what foreign keys promise beside any row matches the view, which tests nothing."""
    own = variables_of([atom])
    if len(own) < atom.arity or view.comparisons:
        return False
    rows = promised(catalog, atom)
    found = containment_mapping(view.body, rows, {v: v for v in own})
    certain = certain_variables(rows, catalog.relations)
    return found is not None and all(found[v] in certain for v in view.not_null if v in found)


def known_rules(
    catalog: Catalog, situation: Situation, kept: tuple[Contribution, ...], *, redundant: bool = False
) -> tuple[Rule, ...]:
    """The rules that define `relation@known`, the canonical database.

    `kept` are the views' contributions. `redundant`: also what a copy or a readable relation tells anyway if nothing
    contradicts it, for asking whether something does.
    """
    revealed = tuple(_revealed(catalog, situation))
    evident: dict[str, tuple[Rule, ...]] = {
        name: _evident(relation, situation, kept, revealed, redundant=redundant)
        for name, relation in catalog.relations.items()
    }
    whole: frozenset[str] = frozenset() if redundant else wholly_known(catalog, situation, kept)
    return proved(catalog, situation, evident, whole)


def _revealed(catalog: Catalog, situation: Situation) -> Iterator[Rule]:
    """Condition 6: what views tell of subgoals beside one whose row the update deletes."""
    for view in catalog.views:
        if isinstance(view, GroupedView) and (view.grouped.is_total or view.grouped.is_hidden):
            continue
        if isinstance(view, GroupedView):
            name = view.core.rule.head.predicate.of(Version.STORED)
            yield from _beside(catalog, situation, view.core, view.grouped.stored(name, "Q"))
        elif view.limitation is not None and view.limitation.kind is Outside.PROJECTION:
            yield from _beside(catalog, situation, view, view.head)


def _beside(catalog: Catalog, situation: Situation, view: View, stored: Atom) -> Iterator[Rule]:
    """The same of a view of which the stored rows are known to stand for matches."""
    shown = {*stored.terms, *(term for atom in view.body for term in _constants(atom))}
    hidden = [atom for atom in view.body if not shown.issuperset(atom.terms)]
    for atom in view.body if situation.effective else ():
        relation = catalog.relations[atom.predicate.name]
        if relation.name in situation.deleted and any(
            all(atom.terms[i] in shown for i in key) for key in relation.keys
        ):
            for other in hidden:
                if other != atom and shown.union(atom.terms).issuperset(other.terms):
                    guards = (NullTest(v) for v in guarded_variables([other]))
                    yield Rule(other.of(Version.KNOWN), (atom.of(Version.DELETED), stored, *guards))


def _evident(
    relation: BaseRelation,
    situation: Situation,
    kept: tuple[Contribution, ...],
    revealed: Collection[Rule],
    *,
    redundant: bool,
) -> tuple[Rule, ...]:
    """What views and partial copies tell of one relation."""
    known = row_atom(relation, Version.KNOWN)
    rules: list[Rule] = []
    if relation.name in situation.readable:
        rules.append(Rule(known, (row_atom(relation, Version.BEFORE),)))
        if not redundant:
            return tuple(rules)
    mine = [c for c in kept if c.rule.head.predicate == known.predicate]
    rules.extend(c.rule for c in mine)
    if redundant or not any(c.is_copy for c in mine):
        rules.extend(rule for rule in revealed if rule.head.predicate == known.predicate)
        rules.extend(given_rules(relation, situation, Version.KNOWN))
    return tuple(rules)


def wholly_known(catalog: Catalog, situation: Situation, kept: tuple[Contribution, ...]) -> frozenset[str]:
    """The relations all of whose rows are in the canonical database: readable, or copied by a view."""
    copies = {c.rule.head.predicate.name for c in kept if c.is_copy}
    return frozenset(n for n in catalog.relations if n in copies | situation.readable)


def given_rules(relation: BaseRelation, situation: Situation, version: Version) -> tuple[Rule, ...]:
    """The rules of the rows of one relation that are known apart from the views (condition 3)."""
    name, head = relation.name, row_atom(relation, version)
    rules: list[Rule] = []
    if name in situation.present:
        rules.append(Rule(head, (row_atom(relation, Version.PRESENT),)))
    if situation.effective and name in situation.deleted:
        rules.append(Rule(head, (row_atom(relation, Version.DELETED),)))
    return tuple(rules)


def after_rules(catalog: Catalog, situation: Situation) -> tuple[Rule, ...]:
    """The rules that define `relation@after`: the canonical database with the update applied."""
    rules: list[Rule] = []
    for name, relation in catalog.relations.items():
        after = row_atom(relation, Version.AFTER)
        body: tuple[Literal, ...] = (row_atom(relation, Version.KNOWN),)
        if name in situation.deleted:
            body = (*body, Negation((row_atom(relation, Version.DELETED),)))
        rules.append(Rule(after, body))
        if name in situation.inserted:
            rules.append(Rule(after, (row_atom(relation, Version.INSERTED),)))
    return tuple(rules)
