"""Whether a database with some facts more explains what is known, and gives a view a row more: for data of any size.

The definition as rules, which the engine evaluates where the data is. The first database is the canonical one, D^, the
second has new facts besides. Of all that the definition says only what new facts can change is asked:

1. D^ explains what is known if any database does: it is a part of each. So views, which are monotone, give no row more
   on it, and every stored row has its facts there. Whether any does is asked on its own (`canonical.consistency`).
2. Rows that foreign keys ask for, and of which nothing but the key is known, are left out of both databases.
3. A row more of a view on the second database is derived with a new fact.
4. A key is broken there by a new fact and another row. A foreign key holds of a known row as it did, and of a new fact
   by a row that is there, or that a known row asks for as well (2). So it is after the update.
5. What is said of single rows (not null, absent, read, inserted) is said of new facts.
6. No view is of a limited class: beside one D^ may explain nothing, and what such a view shows is not asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Generic, TypeAlias

from msgspec import Struct

from datalog.model import (
    ANY,
    Atom,
    Comparison,
    Literal,
    Negation,
    NullTest,
    Predicate,
    Program,
    Row,
    Rule,
    Term,
    Variable,
    Version,
)
from datalog.rewrite import drop_empty
from selfmaint.countermodel.databases import ill_formed
from selfmaint.engine.protocol import D, Engine, Facts
from selfmaint.warehouse.base_relations import BaseRelation, row_atom
from selfmaint.warehouse.catalog import Catalog, View
from selfmaint.warehouse.situation import Situation

_ON_FIRST = Predicate("row on the first database", Version.PROBLEM)
_ON_SECOND = Predicate("row on the second database", Version.PROBLEM)

_Objection: TypeAlias = tuple[Atom, tuple[Literal, ...], str]
"""What to show, a conjunction that must not hold, and what is wrong if it does."""


class Extension(Struct, Generic[D], frozen=True):
    """A canonical database that facts are added to.

    Attributes:
        engine: holds what is known, and evaluates.
        situation: the kinds of facts known.
        first: rules for `relation@known` and `relation@after`.
    """

    engine: Engine[D]
    catalog: Catalog
    situation: Situation
    facts: Facts[D]
    first: Sequence[Rule]

    def why_not(self, added: Mapping[str, frozenset[Row]], derivation: Sequence[Atom | Comparison]) -> str:
        """What is wrong with the second database, or nothing.

        By the facts of `derivation` it, and not the first one, gives a row after the update.
        """
        catalog = self.catalog
        for view in catalog.limited_views:
            return f"{view.shown} may hide what D^ lacks"  # condition 6
        for problem in (p for name, rows in added.items() for p in ill_formed(catalog.relations[name], rows)):
            return problem
        objections = {
            row.predicate.of(Version.PROBLEM, (number,)): (
                Rule(row.of(Version.PROBLEM, (number,)), body),
                why,
            )
            for number, (row, body, why) in enumerate(self._objections(frozenset(added)))
        }
        rules = [rule for rule, _ in objections.values()]
        for goal, version in ((_ON_SECOND, Version.POSSIBLE_AFTER), (_ON_FIRST, Version.AFTER)):
            body = tuple(li.of(version) if isinstance(li, Atom) else li for li in derivation)
            rules.append(Rule(Atom(goal, ()), body))
        program = Program((*rules, *self.first, *self._second(frozenset(added))))
        defined = {rule.head.predicate for rule in program.rules}
        missing = (Predicate(n, v) for n in catalog.relations for v in (Version.KNOWN, Version.AFTER))
        program = drop_empty(program, [p for p in missing if p not in defined])
        asked = [goal for goal in (*objections, _ON_FIRST, _ON_SECOND) if program.rules_for(goal)]
        found = self.engine.nonempty(program, asked, self.facts.extended(self._loaded(added)))
        for goal, (_, why) in objections.items():
            if goal in found:
                return why
        if _ON_SECOND not in found:
            return "the row is not derived on the second database"
        return "the row is derived on the first database too" if _ON_FIRST in found else ""

    def _loaded(self, added: Mapping[str, frozenset[Row]]) -> dict[Predicate, D]:
        relations = ((self.catalog.relations[name], rows) for name, rows in added.items())
        return {
            Predicate(r.name, Version.NEW): self.engine.load(rows, r.columns, r.types or [ANY])
            for r, rows in relations
        }

    def _second(self, added: frozenset[str]) -> Iterator[Rule]:
        """The second database and its after-image, written out from the definition."""
        for name, relation in self.catalog.relations.items():
            possible, after = (row_atom(relation, v) for v in (Version.POSSIBLE, Version.POSSIBLE_AFTER))
            yield Rule(possible, (row_atom(relation, Version.KNOWN),))
            if name in added:
                yield Rule(possible, (row_atom(relation, Version.NEW),))
            is_deleted = name in self.situation.deleted
            gone = (Negation((row_atom(relation, Version.DELETED),)),) if is_deleted else ()
            yield Rule(after, (possible, *gone))
            if name in self.situation.inserted:
                yield Rule(after, (row_atom(relation, Version.INSERTED),))

    def _objections(self, added: frozenset[str]) -> Iterator[_Objection]:
        for view in self.catalog.views:
            for index, atom in enumerate(view.body):
                if atom.predicate.name in added:
                    yield view.head, _using(view, index), f"{view.shown} would have more rows"
        for name in sorted(added):
            relation = self.catalog.relations[name]
            yield from self._of_single_rows(relation)
            yield from self._of_keys(relation)
            yield from self._of_references(relation)

    def _of_single_rows(self, relation: BaseRelation) -> Iterator[_Objection]:
        """Condition 5, but for nulls."""
        situation, name, new = self.situation, relation.name, row_atom(relation, Version.NEW)
        if name in situation.absent:
            yield new, (new, new.of(Version.ABSENT)), "a fact known to be absent"
        if situation.effective and name in situation.inserted:
            yield new, (new, new.of(Version.INSERTED)), "an inserted fact that was there before"
        if name in situation.readable:
            outside = Negation((new.of(Version.BEFORE),))
            yield new, (new, outside), "a readable relation does not have it"
        for region in sorted((r for r in situation.regions if r.name == name), key=lambda r: r.columns):
            key = Atom(region, tuple(new.terms[i] for i in region.columns))
            unknown = Negation((new.of(Version.KNOWN),))
            body: tuple[Literal, ...] = (new, key, unknown) if region.columns else (new, unknown)
            yield new, body, "the relation was read for its key"

    def _of_keys(self, relation: BaseRelation) -> Iterator[_Objection]:
        """Condition 4 for keys: those of new facts among themselves are looked at where these are at hand."""
        new, problem = row_atom(relation, Version.NEW), f"a key of `{relation.name}` would be there twice"
        for key in relation.unique:
            given = {i: new.terms[i] for i in key}
            for version in (Version.POSSIBLE, Version.POSSIBLE_AFTER):
                other = _having(relation, version, given)
                yield new, (new, *_told(given), other, Negation((other.of(Version.NEW),))), problem

    def _of_references(self, relation: BaseRelation) -> Iterator[_Objection]:
        """Condition 4 for foreign keys."""
        new, situation = row_atom(relation, Version.NEW), self.situation
        sides = (
            (Version.POSSIBLE, (Version.KNOWN, Version.AFTER), Version.INSERTED, situation.inserted),
            (Version.POSSIBLE_AFTER, (Version.AFTER, Version.KNOWN), Version.DELETED, situation.deleted),
        )
        for reference in relation.references:
            target = self.catalog.relations[reference.target]
            key = dict(zip(reference.target_columns, reference.key_of(new), strict=True))
            problem = f"a row of `{relation.name}` would reference none of `{target.name}`"
            for there, (now, at_the_other_time), moved, names in sides:
                absent = Negation((_having(target, there, key),))
                body = (new, *_told(key), absent, *self._unasked(target, key, now))
                yield new, (*body, *self._unasked(target, key, at_the_other_time)), problem
                if target.name in names:  # what is asked for at the other time is there at that time alone
                    yield new, (*body, _having(target, moved, key, "M")), problem

    def _unasked(self, target: BaseRelation, key: Mapping[int, Term], version: Version) -> Iterator[Literal]:
        """That no known row asks for the row with a key."""
        for relation in self.catalog.relations.values():
            for one in relation.references:
                if one.target == target.name and set(one.target_columns) == set(key):
                    given = {i: key[t] for i, t in zip(one.columns, one.target_columns, strict=True)}
                    yield Negation((_having(relation, version, given),))


def _having(relation: BaseRelation, version: Version, given: Mapping[int, Term], mark: str = "Y") -> Atom:
    """A version of a relation with some terms, and variables of its own."""
    terms = tuple(given.get(i, Variable(f"{mark}{i}")) for i in range(relation.arity))
    return Atom(Predicate(relation.name, version), terms)


def _told(key: Mapping[int, Term]) -> Sequence[Literal]:
    """That no value of a key is null."""
    return tuple(NullTest(term) for term in key.values())


def _using(view: View, index: int) -> tuple[Literal, ...]:
    """The view's body with one subgoal a new fact, for a row that is not stored."""
    others = (a.of(Version.POSSIBLE) for i, a in enumerate(view.body) if i != index)
    return (view.body[index].of(Version.NEW), *others, *view.filters, Negation((view.head,)))
