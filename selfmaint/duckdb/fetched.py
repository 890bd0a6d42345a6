"""What was read of large relations by keys, kept: the rows of one key are read once, whoever asks for them.

    sales@demanded(K, P) :- sales@demand(K), sales(K, L, P).        read before: keys 1 and 2
    read now: only keys of the demand that are neither 1 nor 2

A relation's rows are kept by the columns of the key that they were first asked for by. Who asks by these and further
columns is answered from them as well. What is read under a promise that a column is never null does not have the rows
that break it: who is not given the promise reads again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from datalog.model import Atom, Negation, NullTest, Predicate, Rule, Variable, Version
from datalog.sql.duckdb import SqlType
from selfmaint.duckdb.extensions import Extension

Compute: TypeAlias = Callable[[Sequence[Rule], Mapping[Predicate, Extension]], Extension]
"""The rows of rules over tables."""

KEYS, STORED = Predicate("keys", Version.STEP), Predicate("stored", Version.STEP)
"""What a rule that reads a relation by keys calls the two."""

_ASKED, _ROWS, _FOUND = (Predicate(name, Version.STEP) for name in ("asked", "rows", "found"))


@dataclass(frozen=True)
class Lookup:
    """A predicate of demanded rows of a relation that is given.

    Attributes:
        keys: the predicate of the demand.
        stored: the relation.
        width: how many columns it has.
        by: its columns that the demand holds the values of, in order.
        wanted: its columns that are asked for, in order.
    """

    keys: Predicate
    stored: Predicate
    width: int
    by: tuple[int, ...]
    wanted: tuple[int, ...]


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


@dataclass
class _Part:
    """Rows of one relation, cut to some columns, and the keys whose rows these are."""

    by: tuple[int, ...]
    types: tuple[SqlType, ...]
    columns: tuple[int, ...]
    asked: Extension
    rows: Extension

    def serves(self, asked: Lookup, types: Mapping[int, SqlType]) -> bool:
        """Whether an answer can be found among such rows."""
        return all(types.get(c) == kind for c, kind in zip(self.by, self.types, strict=True)) and set(
            self.columns
        ) >= {*asked.by, *asked.wanted}


class Fetched:
    """The rows of large relations that are here."""

    def __init__(self, compute: Compute) -> None:
        self._compute = compute
        self._parts: dict[Hashable, list[_Part]] = {}

    def release(self) -> None:
        """Lets go of them."""
        self._parts.clear()

    def rows(
        self,
        asked: Lookup,
        keys: Extension,
        name: Hashable,
        read: Callable[[Rule, Extension], Extension | None],
    ) -> Extension | None:
        """The demanded rows.

        Args:
            asked: what is asked for.
            keys: the demand.
            name: what tells the relation and which of its columns are promised never to be null.
            read: reads the relation by a rule over `KEYS` and `STORED`; None if there are too many rows.
        """
        types = dict(zip(asked.by, keys.stored.types, strict=True))
        parts = self._parts.setdefault(name, [])
        part = next((one for one in parts if one.serves(asked, types)), None)
        by = asked.by if part is None else part.by
        columns = tuple(sorted({*asked.by, *asked.wanted})) if part is None else part.columns
        terms = tuple(Variable(f"X{i}") for i in range(asked.width))
        demanded = Atom(KEYS, tuple(terms[c] for c in asked.by))
        key = tuple(terms[c] for c in by)
        if part is None:
            missing = keys
        else:
            new = Rule(Atom(_FOUND, key), (demanded, Negation((Atom(_ASKED, key),))))
            missing = self._compute([new], {KEYS: keys, _ASKED: part.asked})
        kept = tuple(terms[c] for c in columns)
        if part is None or missing.stored.rows:
            rule = Rule(Atom(_FOUND, kept), (Atom(KEYS, key), Atom(STORED, terms)))
            found = read(rule, missing)
            if found is None:
                return None
            if part is None:
                part = _Part(by, tuple(types[c] for c in by), columns, missing, found)
                parts.append(part)
            else:
                part.asked = self._both(key, part.asked, missing)
                part.rows = self._both(kept, part.rows, found)
        answer = Rule(Atom(_FOUND, tuple(terms[c] for c in asked.wanted)), (demanded, Atom(_ROWS, kept)))
        return self._compute([answer], {KEYS: keys, _ROWS: part.rows})

    def _both(self, terms: tuple[Variable, ...], one: Extension, other: Extension) -> Extension:
        """All rows of two extensions but for those that break the promise of theirs: they were not looked for."""
        given = {_ASKED: one, KEYS: other}
        rules = [
            Rule(Atom(_FOUND, terms), (Atom(p, terms), *(NullTest(terms[i]) for i in sorted(side.not_null))))
            for p, side in given.items()
        ]
        return self._compute(rules, {p: Extension(side.stored) for p, side in given.items()})
