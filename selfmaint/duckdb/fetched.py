"""What was read of large relations by keys, kept: the rows of one key are read once, whoever asks for them.

    sales@demanded(K, P) :- sales@demand(K), sales(K, L, P).        read before: keys 1 and 2
    read now: only keys of the demand that are neither 1 nor 2

A relation's rows are kept by the columns of the key that they were first asked for by. Who asks by these and further
columns is answered from them as well, and of the keys that are new only the columns that are asked for are read: a
program's look-ups by one demand are read together. What later programs will look up by the same columns is read with
the first of them, as far as its keys follow from the update alone: a column that is searched for some keys is searched
for others, too. What is read under a promise that a column is never null does not
have the rows that break it: who is not given the promise reads again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from datalog.model import (
    Atom,
    Negation,
    NullTest,
    Predicate,
    Rule,
    Variable,
    Version,
)
from datalog.sql.duckdb import SqlType
from selfmaint.duckdb.extensions import Extension
from selfmaint.duckdb.representatives import Representatives, representatives
from selfmaint.engine.protocol import NOTHING_PROMISED

Compute: TypeAlias = Callable[[Sequence[Rule], Mapping[Predicate, Extension]], Extension]
"""The rows of rules over tables."""

KEYS, STORED = Predicate("keys", Version.STEP), Predicate("stored", Version.STEP)
"""What a rule that reads a relation by keys calls the two."""

_ASKED, _FOUND = (Predicate(name, Version.STEP) for name in ("asked", "found"))


class Lookup(Struct, frozen=True):
    """A predicate of demanded rows of a relation that is given.

    Attributes:
        keys: the predicate of the demand.
        width: how many columns it has.
        by: its columns that the demand holds the values of, in order.
        wanted: its columns that are asked for, in order.
    """

    keys: Predicate
    stored: Predicate
    width: int
    by: tuple[int, ...]
    wanted: tuple[int, ...]

    @property
    def demand(self) -> tuple[object, ...]:
        """What look-ups have in common whose columns are read together."""
        return self.stored, self.by


def lookup_of(rules: Sequence[Rule]) -> Lookup | None:
    """What the rules of a predicate look up, if they do nothing else."""
    if len(rules) != 1 or rules[0].head.predicate.version is not Version.DEMANDED:
        return None
    match rules[0].body:
        case (Atom(predicate=Predicate(version=Version.DEMAND)) as keys, Atom() as stored):
            places = {term: i for i, term in enumerate(stored.terms) if isinstance(term, Variable)}
            every = (*keys.terms, *rules[0].head.terms)
            if len(places) < stored.arity or any(term not in places for term in every):
                return None
            by, wanted = ([places[t] for t in atom.terms] for atom in (keys, rules[0].head))  # type: ignore[index]
            return Lookup(keys.predicate, stored.predicate, stored.arity, tuple(by), tuple(wanted))
    return None


class _Part(Struct):
    """Rows of one relation, cut to some columns, and the keys whose rows these are.

    They are `told` where few rows told them, as is promised of the relation's (`representatives.py`).
    """

    by: tuple[int, ...]
    types: tuple[SqlType, ...]
    columns: tuple[int, ...]
    asked: Extension
    rows: Extension
    told: bool

    def serves(self, asked: Lookup, types: Mapping[int, SqlType], relation: Large) -> bool:
        """Whether an answer can be found among such rows."""
        if self.told and not relation.is_promised:
            return False
        return all(types.get(c) == kind for c, kind in zip(self.by, self.types, strict=True)) and set(
            self.columns
        ) >= {*asked.by, *asked.wanted}


class Large(Struct, frozen=True):
    """A relation that is read by keys.

    Attributes:
        name: what tells the relation and which of its columns are promised never to be null.
        read: reads it by a rule over `KEYS` and `STORED`, by few of its rows if these tell all; None if the rows are
            too many.
        here: it, if DuckDB reads it.
    """

    name: Hashable
    read: Callable[[Rule, Extension, Representatives | None], Extension | None]
    here: Extension | None = None

    @property
    def is_promised(self) -> bool:
        """Whether anything is promised of its rows."""
        return self.here is not None and self.here.dependencies != NOTHING_PROMISED

    def few(self, by: Sequence[int], wanted: Iterable[int]) -> Representatives | None:
        """How some columns are found by others among few rows, if they can be."""
        return None if self.here is None else representatives(by, wanted, self.here)


class Fetched:
    """The rows of large relations that are here."""

    def __init__(self, compute: Compute) -> None:
        self._compute = compute
        self._parts: dict[Hashable, list[_Part]] = {}
        self._together: dict[tuple[object, ...], set[int]] = {}
        self._foreseen: dict[Hashable, list[tuple[Lookup, Extension]]] = {}

    def release(self) -> None:
        """Lets go of them."""
        self._parts.clear()
        self.forget()

    def forget(self) -> None:
        """Nothing is foreseen."""
        self._foreseen.clear()

    def foresee(self, asked: Lookup, keys: Extension, name: Hashable) -> None:
        """Says what will be asked for; see `Large`. It is read when rows of that relation are, by these columns."""
        if keys.stored.rows:
            self._foreseen.setdefault((name, asked.by, keys.stored.types), []).append((asked, keys))

    def expect(self, program: Iterable[Sequence[Rule]]) -> None:
        """Says what will be looked up: the rules of each predicate of a program."""
        self._together.clear()
        for rules in program:
            asked = lookup_of(rules)
            if asked is not None:
                self._together.setdefault(asked.demand, set()).update(asked.wanted)

    def rows(self, asked: Lookup, keys: Extension, relation: Large) -> Extension | None:
        """The demanded rows; None if they are too many.

        Args:
            asked: what is asked for.
            keys: the demand.
            relation: what is read.
        """
        types = dict(zip(asked.by, keys.stored.types, strict=True))
        terms = tuple(Variable(f"X{i}") for i in range(asked.width))
        demanded = Atom(KEYS, tuple(terms[c] for c in asked.by))
        parts = self._parts.setdefault(relation.name, [])
        used, missing = list[_Part](), keys
        for part in parts:
            if (missing.stored.rows != 0 or not used) and part.serves(asked, types, relation):
                key = tuple(terms[c] for c in part.by)
                new = Rule(Atom(_FOUND, demanded.terms), (demanded, Negation((Atom(_ASKED, key),))))
                left = self._compute([new], {KEYS: missing, _ASKED: part.asked})
                used += [part] if not left.stored.rows or left.stored.rows != missing.stored.rows else []
                missing = left
        if missing.stored.rows != 0 or not used:
            more = self._read(asked, missing, relation, parts)
            if more is None:
                return None
            used.append(more)
        given, rules = {KEYS: keys}, []
        for number, part in enumerate(used):
            its = Predicate("rows", Version.STEP, (number,))
            given[its] = part.rows
            body = (demanded, Atom(its, tuple(terms[c] for c in part.columns)))
            rules.append(Rule(Atom(_FOUND, tuple(terms[c] for c in asked.wanted)), body))
        return self._compute(rules, given)

    def _along(
        self, asked: Lookup, wanted: set[int], keys: Extension, relation: Large
    ) -> list[tuple[Lookup, Extension]]:
        """What is foreseen and read along with some keys: that lies among them, else more would be searched.

        Where few rows tell what is wanted of these keys, what these rows do not tell waits.
        """
        waiting = self._foreseen.get((relation.name, asked.by, keys.stored.types), [])
        if not waiting or not keys.stored.rows:
            return []
        first, last = keys.stored.span
        found = [one for one in waiting if one[1].stored.span[0] <= last and first <= one[1].stored.span[1]]
        few = relation.few(asked.by, wanted)
        if few is not None:
            found = [one for one in found if relation.few(asked.by, wanted.union(one[0].wanted)) == few]
        waiting[:] = [one for one in waiting if one not in found]
        return found

    def _read(self, asked: Lookup, keys: Extension, relation: Large, parts: list[_Part]) -> _Part | None:
        """A part with the rows of some keys, and of those foreseen, read now."""
        wanted = {*asked.by, *asked.wanted, *self._together.get(asked.demand, ())}
        foreseen = self._along(asked, wanted, keys, relation)
        columns = tuple(sorted(wanted.union(*(later.wanted for later, _ in foreseen))))
        terms = tuple(Variable(f"X{i}") for i in range(asked.width))
        key, kept = (tuple(terms[c] for c in some) for some in (asked.by, columns))
        for _, others in foreseen:
            keys = self._both(key, keys, others)
        few = relation.few(asked.by, columns)
        found = relation.read(Rule(Atom(_FOUND, kept), (Atom(KEYS, key), Atom(STORED, terms))), keys, few)
        if found is None:
            return None
        kinds, told = keys.stored.types, few is not None and not set(columns).issubset(asked.by)
        like = asked.by, kinds, columns, told
        part = next((one for one in parts if (one.by, one.types, one.columns, one.told) == like), None)
        if part is None:
            part = _Part(asked.by, kinds, columns, keys, found, told)
            parts.append(part)
        else:
            # Both, or none: a statement may be stopped.
            part.asked, part.rows = self._both(key, part.asked, keys), self._both(kept, part.rows, found)
        return part

    def _both(self, terms: tuple[Variable, ...], one: Extension, other: Extension) -> Extension:
        """All rows of two extensions but for those that break the promise of theirs: they were not looked for."""
        given = {_ASKED: one, KEYS: other}
        rules = [
            Rule(Atom(_FOUND, terms), (Atom(p, terms), *(NullTest(terms[i]) for i in sorted(side.not_null))))
            for p, side in given.items()
        ]
        return self._compute(rules, {p: Extension(side.stored) for p, side in given.items()})
