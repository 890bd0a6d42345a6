"""Rows of a large relation looked up by one column, where few rows tell what all rows of a key would.

    sales(Part, Supplier, Name, Order)    the join of lines(Part, Supplier, Order) and suppliers(Supplier, Name)

Asked are the names of some suppliers, each of which has many sales. A first slice of the relation has a sale of nearly
all of them: its order stands for the supplier, and names are read from the sales of that supplier in that order alone.

Conditions of soundness:

1. Whether a key has a row is told by any of its rows, and so is what the key determines; what the slice lacks is looked
   for in all rows.
2. The relation is the natural join of its projections on some sets of columns (a join dependency: see `Facts`). Put
   apart the sets that wanted columns lead to, by shared columns other than the key: the others share nothing but the
   key with these. So each combination of the others' columns that has the key stands beside all rows of the wanted
   ones that have it; and those beside one value of any of the others' columns, the representative, are all there are.

Source: Fagin, Multivalued Dependencies and a New Normal Form for Relational Databases (1977).
"""

from __future__ import annotations

import math
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
"""Only a smaller part of the relation is worth a look of its own, or a larger one where any row of a key will do."""

SURE = 4
"""In rows that hold `log(n) + SURE` of each key on the average, all of `n` keys are, mostly."""

ANYWHERE = 4
"""Keys of which a first small slice has a smaller part may stand together elsewhere."""

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
    if some > number:
        return None
    more = frozenset(wanted) - {key}
    if more <= relation.dependencies.told_by(key):
        return Representatives(key, some, None)
    if some * SHARE > number:
        return None
    apart = [
        c for c in _apart(key, more, relation.dependencies.joined) if c in layout.spreads and c in never_null
    ]
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
        if few.column is None:
            return self._by_any(rule, keys, relation, few, read)
        demanded, stored = rule.atoms
        standing = self._standing(keys, self._slice(relation, few.rows), few)
        spread = relation.stored.layout.spreads[few.column]
        least, most = standing.stored.span
        if (most - least) * NARROW > spread:
            return read(keys)  # the rows of a representative do not lie together
        its = Atom(_STANDING, (stored.terms[few.column], stored.terms[few.key]))
        by_both = replace(rule, body=(its, stored))
        found = self.compute([by_both], {_STANDING: standing, stored.predicate: relation})
        left = self._left(demanded, keys, Atom(_STANDING, (Variable("Any"), *demanded.terms)), standing)
        return self._together(rule, [found, read(left)] if left.stored.rows else [found])

    def _by_any(
        self,
        rule: Rule,
        keys: Extension,
        relation: Extension,
        few: Representatives,
        read: Callable[[Extension], Extension],
    ) -> Extension:
        """The same where any row of a key will do.

        A large slice is taken once a small one has shown that keys lie anywhere: where they stand together, as in rows
        in their order, DuckDB finds them by what files tell of their parts.
        """
        demanded, stored = rule.atoms
        slices = [few.rows]
        if few.rows * SHARE > (relation.stored.known_rows or 0):
            each = math.log(keys.stored.rows or 1) + SURE
            slices = [few.rows // SHARE, min(few.rows, round(each / ROWS_FOR_A_KEY * few.rows))]
        found, left = list[Extension](), keys
        for rows in slices:
            asked = left.stored.rows or 0
            part = self._slice(relation, rows)
            found.append(self.compute([rule], {demanded.predicate: left, stored.predicate: part}))
            left = self._left(demanded, left, Atom(_TOLD, rule.head.terms), found[-1])
            missing = left.stored.rows or 0
            if not missing:
                return self._together(rule, found)
            if (asked - missing) * ANYWHERE < asked:
                break
        return self._together(rule, [*found, read(left)])

    def _slice(self, relation: Extension, rows: int) -> Extension:
        """The first rows of a relation, whichever these are."""
        stored = relation.stored
        query = sql.rows(stored.name, len(stored.types), limit=rows)
        return Extension(self.database.view(query, stored.types, [stored]), relation.not_null)

    def _left(self, demanded: Atom, keys: Extension, known: Atom, told: Extension) -> Extension:
        """The keys that were not found."""
        missing = Rule(Atom(_LEFT, demanded.terms), (demanded, Negation((known,))))
        return self.compute([missing], {demanded.predicate: keys, known.predicate: told})

    def _together(self, rule: Rule, found: Sequence[Extension]) -> Extension:
        """What a rule gives, found in parts."""
        if len(found) == 1:
            return found[0]
        sides = {Predicate("side", Version.STEP, (i,)): its for i, its in enumerate(found)}
        return self.compute([Rule(rule.head, (Atom(p, rule.head.terms),)) for p in sides], sides)

    def _standing(self, keys: Extension, part: Extension, few: Representatives) -> Extension:
        """The representatives, each before its key."""
        assert few.column is not None
        query = sql.least(keys.stored.name, part.stored.name, few.key, few.column)
        types = part.stored.types[few.column], keys.stored.types[0]
        table = self.database.table(query, types, [keys.stored.name, part.stored.name])
        return Extension(table, frozenset({0, 1}))
