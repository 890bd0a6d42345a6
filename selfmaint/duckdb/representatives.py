"""Rows of a large relation looked up by one column, where few rows tell what all rows of a key would.

    sales(Part, Supplier, Name, Order)    the join of lines(Part, Supplier, Order) and suppliers(Supplier, Name)

Asked are the names of some suppliers, each of which has many sales. A first slice of the relation has a sale of nearly
all of them: its order stands for the supplier, and names are read from the sales of that supplier in that order alone.

Conditions of soundness:

1. Whether a key has a row is told by any of its rows; what the slice lacks is looked for in all rows.
2. The relation is the natural join of its projections on some sets of columns (a join dependency: see `Facts`). Put
   apart the sets that wanted columns lead to, by shared columns other than the key: the others share nothing but the
   key with these. So each combination of the others' columns that has the key stands beside all rows of the wanted
   ones that have it; and those beside one value of any of the others' columns, the representative, are all there are.

Source: Fagin, Multivalued Dependencies and a New Normal Form for Relational Databases (1977).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from msgspec import Struct

from datalog.copies import replace
from datalog.model import Atom, Negation, Predicate, Rule, Variable, Version
from datalog.sql.duckdb import relations as sql
from selfmaint.duckdb.database import Database
from selfmaint.duckdb.extensions import Extension
from selfmaint.engine.column_types import is_integer

ROWS_FOR_A_KEY = 16
"""So many rows for each value of the key make a slice, on the average: without some key it is once in millions."""

SHARE = 20
"""Only a smaller part of the relation is worth a look of its own."""

NARROW = 4
"""Representatives whose values lie in a smaller part of all are near one another in the files, as far as these are
stored in the order of them."""

_TOLD, _LEFT, _STANDING = (Predicate(name, Version.STEP) for name in ("told", "left", "standing"))


class Representatives(Struct, frozen=True):
    """How rows are looked up by few of them.

    Attributes:
        key: the column that they are looked up by.
        rows: how many make a slice.
        column: the column whose value stands for a key's rows; None where any row does.
    """

    key: int
    rows: int
    column: int | None


def representatives(by: Sequence[int], wanted: Iterable[int], relation: Extension) -> Representatives | None:
    """How some columns of a relation that is computed when it is used are found by others, if few rows tell them."""
    stored, layout = relation.stored, relation.stored.layout
    number = stored.known_rows
    if stored.rows is not None or number is None or len(by) != 1:
        return None
    (key,) = by
    never_null = relation.not_null | layout.never_null
    if key not in layout.spreads or key not in never_null or not is_integer(stored.types[key]):
        return None
    some = ROWS_FOR_A_KEY * layout.spreads[key]
    if some * SHARE > number:
        return None
    more = frozenset(wanted) - {key}
    if not more:
        return Representatives(key, some, None)
    apart = [c for c in _apart(key, more, relation.joined) if c in layout.spreads and c in never_null]
    if not apart:
        return None
    return Representatives(key, some, max(apart, key=lambda c: layout.spreads[c]))


def _apart(key: int, wanted: frozenset[int], joined: Collection[frozenset[int]]) -> frozenset[int]:
    """The columns that share nothing but the key with the wanted ones; none, if a wanted one is in no set."""
    waiting = [columns - {key} for columns in joined]
    if not wanted <= frozenset().union(*waiting):
        return frozenset()
    reached = wanted
    while touching := [columns for columns in waiting if columns & reached]:
        waiting = [columns for columns in waiting if not columns & reached]
        reached = reached.union(*touching)
    return frozenset().union(*waiting)


class Reading(Struct, frozen=True):
    """Reads a relation by few of its rows.

    Attributes:
        database: where it is.
        compute: the rows of rules over tables.
    """

    database: Database
    compute: Callable[[Sequence[Rule], Mapping[Predicate, Extension]], Extension]

    def rows(
        self,
        rule: Rule,
        keys: Extension,
        relation: Extension,
        few: Representatives,
        read: Callable[[Extension], Extension],
    ) -> Extension:
        """What a rule over keys and a relation gives; `read` does that from all rows, for some keys."""
        demanded, stored = rule.atoms
        number = len(relation.stored.types)
        query = sql.rows(relation.stored.name, number, limit=few.rows)
        first = self.database.view(query, relation.stored.types, [relation.stored])
        part = Extension(first, relation.not_null)
        if few.column is None:
            found = self.compute([rule], {demanded.predicate: keys, stored.predicate: part})
            known = Negation((Atom(_TOLD, rule.head.terms),))
            told = {_TOLD: found}
        else:
            standing = self._standing(keys, part, few)
            spread = relation.stored.layout.spreads[few.column]
            least, most = standing.stored.span
            if (most - least) * NARROW > spread:
                return read(keys)  # the rows of a representative do not lie together
            its = Atom(_STANDING, (stored.terms[few.column], stored.terms[few.key]))
            by_both = replace(rule, body=(its, stored))
            found = self.compute([by_both], {_STANDING: standing, stored.predicate: relation})
            known = Negation((Atom(_STANDING, (Variable("Any"), *demanded.terms)),))
            told = {_STANDING: standing}
        missing = Rule(Atom(_LEFT, demanded.terms), (demanded, known))
        left = self.compute([missing], {demanded.predicate: keys, **told})
        if not left.stored.rows:
            return found
        sides = {_TOLD: found, _LEFT: read(left)}
        return self.compute([Rule(rule.head, (Atom(p, rule.head.terms),)) for p in sides], sides)

    def _standing(self, keys: Extension, part: Extension, few: Representatives) -> Extension:
        """The representatives, each before its key."""
        assert few.column is not None
        query = sql.least(keys.stored.name, part.stored.name, few.key, few.column)
        types = part.stored.types[few.column], keys.stored.types[0]
        table = self.database.table(query, types, [keys.stored.name, part.stored.name])
        return Extension(table, frozenset({0, 1}))
