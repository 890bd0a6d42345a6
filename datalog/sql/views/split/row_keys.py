"""What tells the rows of joined tables apart, as their keys say."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from datalog.analysis import determined
from datalog.model import Atom, Declaration, Expression, Literal, Term, Variable, variables_of


class RowKeys(Struct, frozen=True):
    """Tables that are joined, each of which has a key."""

    atoms: tuple[Atom, ...]
    declared: Callable[[str], Declaration | None]

    @classmethod
    def of(cls, body: Iterable[Literal], declared: Callable[[str], Declaration | None]) -> RowKeys | None:
        """The keys of the atoms of a body; None if one has none."""
        found = cls(tuple(literal for literal in body if isinstance(literal, Atom)), declared)
        return found if all(found._keys(atom) for atom in found.atoms) else None

    def determined(self, values: Iterable[Expression]) -> set[Term]:
        """The terms that have one value where some values are fixed."""
        return determined([one for one in values if isinstance(one, Variable)], self.atoms, self._keys)

    def missing(self, values: Iterable[Expression]) -> tuple[Variable, ...]:
        """A key of a table of which several rows may have the same values; none if there is no such table."""
        known = self.determined(values)
        left = (atom for atom in self.atoms if not known.issuperset(atom.terms))
        keys = ([atom.terms[i] for i in self._keys(atom)[0]] for atom in left)
        return next((tuple(term for term in key if isinstance(term, Variable)) for key in keys), ())

    def fewest(self, values: Sequence[Expression]) -> tuple[int, ...]:
        """Which of some values tell rows apart, with none that the others determine; all if they do not."""
        places = [i for i, one in enumerate(values) if isinstance(one, Variable)]
        every = set(variables_of(self.atoms))
        if not self.determined([values[i] for i in places]) >= every:
            return tuple(range(len(values)))
        for i in reversed(places):
            others = [j for j in places if j != i]
            if self.determined([values[j] for j in others]) >= every:
                places = others
        return tuple(places)

    def _keys(self, atom: Atom) -> tuple[tuple[int, ...], ...]:
        """The keys that are never null, as positions: of others any number of rows may have null."""
        table = self.declared(atom.predicate.name)
        if table is None:
            return ()
        places = {
            key: tuple(table.column_names.index(name) for name in key)
            for key in (table.key, *table.unique)
            if key
        }
        return tuple(
            its for key, its in places.items() if key == table.key or all(table.is_not_null(i) for i in its)
        )
