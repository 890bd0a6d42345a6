"""The rules of the canonical database (Huyn 1997, Definition 3.1) and of its after-image.

Conditions of soundness:

1. What the views' rows tell of base relations is so (`contributions.py`).
2. A partial copy's `present` rows and, for an effective update, the `deleted` rows were in the database.
3. A readable relation's before-image is the whole relation: nothing else can add to it.
4. A row of which a view shows a key, and that the update deletes, is the row of that match: what it has in columns
   that the view hides binds the other subgoals. A deleted line tells its part, and `sold` shows the line's brand.
5. A foreign key proves rows of the relation that it references (`references.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from datalog.model import (
    Atom,
    Constant,
    Literal,
    Negation,
    NullTest,
    Rule,
    Version,
)
from datalog.rewrite import guarded_variables
from selfmaint.canonical.contributions import Contribution
from selfmaint.canonical.references import proved
from selfmaint.warehouse.base_relations import row_atom
from selfmaint.warehouse.catalog import BaseRelation, Catalog, GroupedView, View
from selfmaint.warehouse.situation import Situation
from selfmaint.warehouse.views import Outside


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
    """Condition 4: what views tell of subgoals beside one whose row the update deletes."""
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
    shown = {
        *stored.terms,
        *(term for atom in view.body for term in atom.terms if isinstance(term, Constant)),
    }
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
    """The relations all of whose rows are in the canonical database: readable, or copied by views."""
    copies = {c.rule.head.predicate.name for c in kept if c.is_copy}
    return frozenset(n for n in catalog.relations if n in copies | situation.readable)


def given_rules(relation: BaseRelation, situation: Situation, version: Version) -> tuple[Rule, ...]:
    """The rules of the rows of one relation that are known apart from the views (condition 2)."""
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
