"""The chase: an instance made to satisfy the declared constraints before and after its update.

Conditions of exactness. Whatever warehouse an unfolded body has a row in, one of the instances that are made here
maps into it, row by row; so what contradicts the instance contradicts the warehouse:

1. Rows that agree on a key are one row.
2. An inserted row with the key of a row before the update is either that row, which an effective update rules out,
   or that row is deleted.
3. A row that a foreign key references is there; its other columns are null where they may be (a null meets
   nothing), else new values.
4. After the update a referenced row may have stayed or may be inserted too; a row whose reference is lost is
   deleted. Each way is an instance.
5. An update of columns deletes a row for each inserted one and inserts one for each deleted one.
6. Nothing is deleted without need: it would be known to have been there, and prove no row after the update.
7. Null has no key and references nothing: constraints are applied to values that are not null, or not yet, until
   that is chosen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from datalog.copies import replace
from datalog.model import Atom, Constant, Predicate, Term, Variable
from selfmaint.audit.changes import Change, Kind
from selfmaint.audit.instance import Instance, not_null_here
from selfmaint.warehouse.catalog import Catalog, Reference, certain_variables
from selfmaint.warehouse.constraints import unifier
from selfmaint.warehouse.situation import Situation

_ROWS = Predicate("rows")

LEVELS = 8
"""So far references are followed in one step: those that lead in a circle have no end."""

MOST_ROWS = 500
"""An instance of more rows is followed no further: circles of several references double it again and again."""


class Chase(Struct, frozen=True):
    """The chase for one kind of change.

    Attributes:
        situation: which relations gain and lose rows.
        change: the kind of change.
    """

    catalog: Catalog
    situation: Situation
    change: Change

    def step(self, instance: Instance) -> tuple[Instance, ...] | None:
        """The instances that one step makes of one: none if it cannot be; None if there is none, or only `ways`.

        One that grows too large is marked as crowded, and then left out.

        Rows that may be one, in an update that is not effective, are told apart here: before values are.
        """
        if not self._is_possible(instance):
            return ()
        if len(instance.before) > MOST_ROWS:
            return () if instance.is_crowded else (replace(instance, is_crowded=True),)
        certain = not_null_here(self.catalog, instance)
        for step in (
            self._there,
            self._same_key,
            self._replaced,
            self._pairs,
            self._references_before,
            self._references_after,
        ):
            found = step(instance, certain)
            if found is not None:
                return tuple(one for one in found if one is not None)
        return None

    def ways(self, instance: Instance) -> tuple[Instance, ...] | None:
        """The instances for a foreign key that can be satisfied in several ways (condition 4); None if none is."""
        for atom, reference, key in _with_atoms(self, instance.after, not_null_here(self.catalog, instance)):
            return tuple(self._referring(instance, atom, reference, key))
        return None

    def _is_possible(self, instance: Instance) -> bool:
        relations = self.catalog.relations
        for atom in instance.atoms:
            nulls = [
                i for i, term in enumerate(atom.terms) if isinstance(term, Constant) and term.value is None
            ]
            if not relations[atom.predicate.name].nullable.issuperset(nulls):
                return False
        gains, loses = self.situation.inserted, self.situation.deleted
        if any(atom.predicate.name not in gains for atom in instance.inserted):
            return False
        if any(atom.predicate.name not in loses for atom in instance.deleted):
            return False
        if not {*instance.inserted, *instance.kept}.isdisjoint(instance.deleted):
            return False
        return not (self.situation.effective and not set(instance.inserted).isdisjoint(instance.before))

    def _there(self, instance: Instance, certain: frozenset[Variable]) -> Sequence[Instance | None] | None:
        """What an effective update deletes was there; so was what is kept, unless it is inserted."""
        if self.situation.effective:
            missing = [atom for atom in instance.deleted if atom not in instance.before]
            if missing:
                return [instance.added(before=missing)]
        return None

    def _same_key(self, instance: Instance, certain: frozenset[Variable]) -> Sequence[Instance | None] | None:
        """Condition 1, for all rows at once."""
        pairs: list[tuple[Atom, Atom]] = []
        for atoms in (instance.before, instance.inserted):
            found: dict[object, Atom] = {}
            for atom in atoms:
                for key in self._keys(atom, certain):
                    other = found.setdefault(key, atom)
                    if other is not atom and other != atom:
                        pairs.append((other, atom))
        return [_unified(instance, pairs)] if pairs else None

    def _replaced(self, instance: Instance, certain: frozenset[Variable]) -> Sequence[Instance | None] | None:
        """Condition 2."""
        there: dict[object, list[Atom]] = {}
        for old in instance.before if instance.inserted else ():
            for key in self._keys(old, certain):
                there.setdefault(key, []).append(old)
        for new in instance.inserted:
            for old in (old for key in self._keys(new, certain) for old in there.get(key, ())):
                if new != old and old not in instance.deleted:
                    ways: list[Instance | None] = []
                    if old not in instance.kept and old.predicate.name in self.situation.deleted:
                        ways.append(instance.added(deleted=[old]))
                    if not self.situation.effective:
                        ways.append(_unified(instance, [(new, old)]))
                    return ways
        return None

    def _keys(self, atom: Atom, certain: frozenset[Variable]) -> Iterator[object]:
        """What identifies a row: the values of each key, none of which is null."""
        name = atom.predicate.name
        for key in self.catalog.relations[name].unique:
            terms = tuple(atom.terms[i] for i in key)
            if all(_is_value(term, certain) for term in terms):
                yield name, key, terms

    def _pairs(self, instance: Instance, certain: frozenset[Variable]) -> Sequence[Instance | None] | None:
        """Condition 5."""
        if self.change.kind is not Kind.UPDATE:
            return None
        fixed = [
            i
            for i in range(self.catalog.relations[str(self.change.relation)].arity)
            if i not in self.change.columns
        ]
        for atoms, others in ((instance.inserted, instance.deleted), (instance.deleted, instance.inserted)):
            for atom in atoms:
                if not any(all(atom.terms[i] == other.terms[i] for i in fixed) for other in others):
                    terms = {i: atom.terms[i] for i in fixed}
                    other, made = self._row(atom.predicate, terms, instance, null=False)
                    if atoms is instance.inserted:
                        return [made.added(deleted=[other])]
                    return [made.added(inserted=[other])]
        return None

    def _references_before(
        self, instance: Instance, certain: frozenset[Variable]
    ) -> Sequence[Instance | None] | None:
        """Condition 3, for all rows at once, and for those that come of it: there is one way."""
        made = instance
        for _ in range(LEVELS):
            missing = {
                (reference.target, reference.target_columns, key): reference
                for _, reference, key in _with_atoms(self, made.before, certain)
            }
            if not missing or len(made.before) > MOST_ROWS:
                break
            targets: list[Atom] = []
            for (_, _, key), reference in missing.items():
                target, made = self._target(reference, key, made)
                targets.append(target)
            made = made.added(before=targets)
            certain |= certain_variables(targets, self.catalog.relations)
        return None if made is instance else [made]

    def _references_after(
        self, instance: Instance, certain: frozenset[Variable]
    ) -> Sequence[Instance | None] | None:
        """Condition 4, for all rows at once for which there is one way."""
        made = instance
        followed = set[object]()
        for atom, reference, key in _with_atoms(self, instance.after, certain):
            if (target := (reference.target, reference.target_columns, key)) not in followed:
                ways = list(self._referring(made, atom, reference, key))
                if not ways:
                    return []
                if len(ways) == 1:
                    made = ways[0]
                    followed.add(target)
        return None if made is instance else [made]

    def _referring(
        self, instance: Instance, atom: Atom, reference: Reference, key: tuple[Term, ...]
    ) -> Iterator[Instance]:
        """The ways of satisfying the foreign key of one row after the update."""
        gone = [a for a in instance.deleted if a.predicate.name == reference.target]
        target, made = self._target(reference, key, instance)
        if not any(reference.key_in(a) == key for a in gone):
            yield made.added(before=[target], kept=[target])
        if reference.target in self.situation.inserted:
            yield made.added(inserted=[target])
        if (
            atom not in instance.kept
            and atom not in instance.inserted
            and atom.predicate.name in self.situation.deleted
        ):
            yield instance.added(deleted=[atom])

    def _target(
        self, reference: Reference, key: tuple[Term, ...], instance: Instance
    ) -> tuple[Atom, Instance]:
        terms = dict(zip(reference.target_columns, key, strict=True))
        return self._row(Predicate(reference.target), terms, instance)

    def _row(
        self, predicate: Predicate, terms: dict[int, Term], instance: Instance, *, null: bool = True
    ) -> tuple[Atom, Instance]:
        """A row of which only some columns are known; the others are null, if wanted, where they may be."""
        relation = self.catalog.relations[predicate.name]
        number = instance.number
        for i in range(relation.arity):
            if i not in terms:
                number += 1
                is_null = null and i in relation.nullable
                terms[i] = Constant(None) if is_null else Variable(f"_c{number}")
        row = Atom(predicate, tuple(terms[i] for i in range(relation.arity)))
        return row, replace(instance, number=number)


def _unified(instance: Instance, pairs: Sequence[tuple[Atom, Atom]]) -> Instance | None:
    left, right = (tuple(t for pair in pairs for t in pair[i].terms) for i in (0, 1))
    meets = unifier(Atom(_ROWS, left), Atom(_ROWS, right))
    return None if meets is None else instance.under(meets)


def _is_value(term: Term, certain: frozenset[Variable]) -> bool:
    """Condition 7."""
    return term in certain if isinstance(term, Variable) else term.value is not None


def _with_atoms(
    chase: Chase, atoms: Sequence[Atom], certain: frozenset[Variable]
) -> Iterator[tuple[Atom, Reference, tuple[Term, ...]]]:
    """The foreign keys that reference nothing."""
    rows: dict[str, list[Atom]] = {}
    for atom in atoms:
        rows.setdefault(atom.predicate.name, []).append(atom)
    for name, its in rows.items():
        for reference in chase.catalog.relations[name].references:
            there = {reference.key_in(other) for other in rows.get(reference.target, ())}
            for atom in its:
                key = reference.key_of(atom)
                if key not in there and all(_is_value(term, certain) for term in key):
                    yield atom, reference, key
