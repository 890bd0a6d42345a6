"""Huyn's own DIFF and INCON (1997, Table 1): the specification that TEST refines.

A view is self-maintainable iff DIFF is contained in INCON for the given views and update, whatever the base
relations; the base relations themselves are the only unknown predicates. Printed for reading, and evaluated in
tests over small databases.
"""

from __future__ import annotations

from datalog.model import Atom, Literal, Negation, Predicate, Program, Rule, Version
from selfmaint.canonical import Contribution, after_rules, known_rules, row_atom
from selfmaint.warehouse.catalog import Catalog, View
from selfmaint.warehouse.situation import Situation

PANIC = Predicate("panic")
"""The query predicate of both programs."""


def _in_version(atoms: tuple[Atom, ...], version: Version) -> tuple[Literal, ...]:
    return tuple(atom.of(version) for atom in atoms)


def _superset_rules(catalog: Catalog) -> list[Rule]:
    """(K): an arbitrary superset of the canonical database, `relation@possible`."""
    rules = []
    for relation in catalog.relations.values():
        possible = row_atom(relation, Version.POSSIBLE)
        rules.append(Rule(possible, (row_atom(relation, Version.STORED),)))
        rules.append(Rule(possible, (row_atom(relation, Version.KNOWN),)))
    return rules


def diff_program(
    catalog: Catalog, situation: Situation, kept: tuple[Contribution, ...], view: View
) -> Program:
    """DIFF: the database and the canonical database give the view different states after the update.

    No rules for a view whose rows are always the same.
    """
    if view.unchanging:
        return Program()
    rules = [*known_rules(catalog, situation, kept), *_superset_rules(catalog)]
    for name, relation in catalog.relations.items():
        changed = row_atom(relation, Version.POSSIBLE_AFTER)
        body: tuple[Literal, ...] = (row_atom(relation, Version.POSSIBLE),)
        if name in situation.deleted:
            body = (*body, Negation((row_atom(relation, Version.DELETED),)))
        rules.append(Rule(changed, body))
        if name in situation.inserted:
            rules.append(Rule(changed, (row_atom(relation, Version.INSERTED),)))
    rules.extend(after_rules(catalog, situation))
    new_state = Atom(view.predicate.of(Version.AFTER), view.head.terms)
    rules.append(Rule(new_state, (*_in_version(view.body, Version.AFTER), *view.filters)))
    other = (*_in_version(view.body, Version.POSSIBLE_AFTER), *view.filters, Negation((new_state,)))
    rules.append(Rule(Atom(PANIC, ()), other))
    return Program(tuple(rules))


def incon_program(catalog: Catalog, situation: Situation, kept: tuple[Contribution, ...]) -> Program:
    """INCON: the database contradicts a view (or a partial copy, section 5.2) before the update."""
    rules = [*known_rules(catalog, situation, kept), *_superset_rules(catalog)]
    for view in catalog.views:
        if view.limitation is None and not view.unchanging:
            body = (*_in_version(view.body, Version.POSSIBLE), *view.filters, Negation((view.head,)))
            rules.append(Rule(Atom(PANIC, ()), body))
    for name, relation in catalog.relations.items():
        possible = row_atom(relation, Version.POSSIBLE)
        if name in situation.absent:
            rules.append(Rule(Atom(PANIC, ()), (possible, row_atom(relation, Version.ABSENT))))
        if name in situation.inserted and situation.effective:
            rules.append(Rule(Atom(PANIC, ()), (possible, row_atom(relation, Version.INSERTED))))
        if name in situation.readable:
            rules.append(Rule(Atom(PANIC, ()), (possible, Negation((row_atom(relation, Version.BEFORE),)))))
    return Program(tuple(rules))
