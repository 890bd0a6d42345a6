"""Rows of base relations read by keys, in the state after the update, whether a source is right before or after it.

Conditions of soundness:

1. Deleted and inserted rows are disjoint, and no row stands twice. So without the deleted rows and with the inserted
   ones that have a key, the rows of that key are those after the update, in whichever of the two states they were read.
2. A source of which some rows are in one state and some in the other is refused, also from one read to the next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Generic

from msgspec import Struct, field

from datalog.copies import replace
from datalog.model import Atom, NullTest, Predicate, Program, Rule, Variable, Version
from selfmaint.canonical import row_atom
from selfmaint.decide.knowledge import Knowledge
from selfmaint.engine.protocol import D, Facts
from selfmaint.fallback.probes import Probe
from selfmaint.fallback.recompute import read_after
from selfmaint.fallback.settle import Progress, Readable, require_keys_not_moved
from selfmaint.fallback.states import (
    found_after,
    is_before,
    rows_between,
    rows_of,
    twins_of_deleted,
)
from selfmaint.maintain import Delta
from selfmaint.sources.between import Between
from selfmaint.sources.protocol import Read
from selfmaint.warehouse.base_relations import BaseRelation

if TYPE_CHECKING:
    from datalog.sql.affected import Period

MOST_KEYS = 1_000_000
"""How many keys of base rows are asked for in all, at most: beyond that recomputing is cheaper."""
MANY_KEYS = 10_000
SHARE = 4
"""A relation with fewer rows than `SHARE` for each of `MANY_KEYS` or more is read whole: that takes less."""


class TooManyKeysError(Exception):
    """More keys would have to be read than are allowed."""


class NotKnownError(Exception):
    """Stored values and changed rows do not tell a group's new values."""


class KeyedDelta(Struct, Generic[D], frozen=True):
    """A view's change as keyed reads give it.

    Attributes:
        key: the names of its columns that are the key.
        keys: how many values of the key were affected.
        relations: the base relations, and stored views, that were read by keys for it.
        whole: those that were read whole, because no key leads to their rows.
        of: the base relation whose columns the key names, where groups follow from the rows that they gain and lose,
            or rows from a key that the view does not show; or the stored view each of whose rows makes rows of this
            one; None where the key is of the view's columns.
    """

    view: str
    key: tuple[str, ...]
    keys: int
    relations: tuple[str, ...]
    whole: tuple[str, ...]
    delta: Delta[D]
    of: str | None = None


class ByKeys(Struct, Generic[D], frozen=True):
    """Views that were followed by keys, and others that could have been and were not.

    Attributes:
        failed: by view, why not, in words.
        reads: every read of a base relation.
    """

    followed: Mapping[str, KeyedDelta[D]] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)
    reads: tuple[Read, ...] = ()


class KeyedRows(Struct, Generic[D], dict=True):
    """Reads rows by keys; those of one key of the same columns once.

    Attributes:
        known: the views' old contents, the update and what else is known.
        readable: the base relations that have a source.
        most_keys: how many keys may be asked for in all.
        progress: told of every read.
        reads: every read so far, in order.
        asked: how many keys were asked for.
    """

    known: Knowledge[D]
    readable: Mapping[str, Readable[D]]
    most_keys: int
    progress: Progress = lambda _message: None
    reads: list[Read] = field(default_factory=list)
    asked: int = 0

    def __post_init__(self) -> None:
        self._here: dict[tuple[str, tuple[int, ...]], tuple[D, D]] = {}
        self._whole: dict[str, D] = {}
        self._within: dict[tuple[str, Between], D] = {}
        self._signs: dict[str, frozenset[str]] = {}

    @property
    def untold(self) -> frozenset[str]:
        """The relations that change and were read whose rows alone do not tell a source in another state: no key."""
        situation, relations = self.known.situation, self.known.catalog.relations
        changed = situation.inserted | situation.deleted if situation.effective else frozenset[str]()
        return frozenset(name for name in self._signs if name in changed and relations[name].is_numbered)

    def whole(self, name: str) -> D:
        """All rows of a relation after the update.

        Raises:
            SourceError: the source's own; SM402 a source in another state.
        """
        if name not in self._whole:
            relation, source = self.known.catalog.relations[name], self.readable[name].source
            rows, read = read_after(self.known, relation, source)
            self.reads.append(read)
            self.progress(f"read all {read.rows_read} rows of {name}")
            self._whole[name] = self.known.engine.keep(rows)
        return self._whole[name]

    def rows(self, name: str, columns: tuple[int, ...], keys: D) -> D:
        """The rows after the update that have one of some keys in some columns; null is a value.

        Raises:
            TooManyKeysError: that would be more keys than are allowed.
            SourceError: the source's own; SM402 a source in another state.
        """
        engine = self.known.engine
        known = self._here.get((name, columns))
        if known is None or known[0] is not keys:
            new = keys if known is None else engine.keep(engine.minus(keys, known[0]))
            number = engine.count(new)
            if number and self._is_read_whole(name, number):
                return engine.bags.matching(self.whole(name), columns, keys)
            if number:
                self._ask(number)
                found = self._read(name, columns, new)
                asked = new if known is None else engine.keep(engine.union([known[0], new]))
                held = found if known is None else engine.keep(engine.union([known[1], found]))
                known = self._here[name, columns] = asked, held
        if known is None:
            return engine.empty(self.changed_like(name))
        return known[1] if known[0] is keys else engine.bags.matching(known[1], columns, keys)

    def _is_read_whole(self, name: str, number: int) -> bool:
        """Whether all rows of a relation are read, or were, instead of those of so many keys.

        Never of a table without a key: what was read of it by keys is held against what is stored.
        """
        if self.known.catalog.relations[name].is_numbered:
            return False
        is_most = MANY_KEYS <= number <= self.most_keys
        source = self.readable[name].source
        return name in self._whole or (is_most and number * SHARE > source.row_count(name))

    def _ask(self, number: int) -> None:
        self.asked += number
        if self.asked > self.most_keys:
            why = (
                f"it takes more than {self.most_keys} keys of base rows for all views together (`most_keys`)"
            )
            raise TooManyKeysError(why)

    def within(self, name: str, column: int, period: Period, shown: D) -> D:
        """The values of a column, before the update or after it, of which a period shows some values.

        All rows with these are known from then on.

        Raises:
            TooManyKeysError: that would be more spans, or values shown, than are allowed.
            SourceError: the source's own; SM402 a source in another state.
        """
        from selfmaint.fallback.spans import MOST_PERIODS, spans_of  # noqa: PLC0415 - SQL only where spans are read

        engine, relation = self.known.engine, self.known.catalog.relations[name]
        values = engine.sample(shown, MOST_PERIODS + 1)
        if len(values) > MOST_PERIODS:
            raise TooManyKeysError(f"it takes more than {MOST_PERIODS} spans of base rows")
        on_utc = engine.name != "spark"
        asked = spans_of(relation, column, period, values, on_utc=on_utc)
        if (name, asked) not in self._within:
            self._within[name, asked] = self._read_between(relation, column, asked)
        return self._within[name, asked]

    def _read_between(self, relation: BaseRelation, column: int, asked: Between) -> D:
        from selfmaint.fallback.spans import rows_within  # noqa: PLC0415 - SQL only where spans are read

        engine, name, columns = self.known.engine, relation.name, (column,)
        self._ask(asked.number)
        rows, read = rows_between(engine, relation, self.readable[name].source, asked)
        self.progress(f"read {read.rows_read} rows of {name} in {read.keys_asked} spans")
        if not read.is_of_spans:
            rows = rows_within(engine, relation, column, asked, rows)
        parts = [rows]
        if name in self.known.situation.inserted | self.known.situation.deleted:
            parts.append(rows_within(engine, relation, column, asked, self.changed(name)))
        keys = self.values(name, parts, columns, (relation.columns[column],), known=False)
        found = self._after(relation, columns, keys, rows, read)
        if (known := self._here.get((name, columns))) is not None:
            self._here[name, columns] = (
                engine.keep(engine.union([known[0], keys])),
                engine.keep(engine.union([known[1], found])),
            )
        else:
            self._here[name, columns] = keys, found
        return keys

    def rows_before(self, name: str, columns: tuple[int, ...], keys: D) -> D:
        """The same rows as they were before the update, which has to be effective."""
        after = self.rows(name, columns, keys)
        if name in self.known.situation.inserted:
            after = self.known.engine.minus(
                after, self.known.facts.relations[Predicate(name, Version.INSERTED)]
            )
        return self.known.engine.keep(self._with_deleted(after, name, columns, keys))

    def rows_of_either_state(self, name: str, columns: tuple[int, ...], keys: D) -> D:
        """The same with the deleted rows that have such a key."""
        return self._with_deleted(self.rows(name, columns, keys), name, columns, keys)

    def _with_deleted(self, rows: D, name: str, columns: tuple[int, ...], keys: D) -> D:
        if name not in self.known.situation.deleted:
            return rows
        deleted = self.known.facts.relations[Predicate(name, Version.DELETED)]
        gone = self.known.engine.bags.matching(deleted, columns, keys)
        return self.known.engine.keep(self.known.engine.union([rows, gone]))

    def changed_like(self, name: str) -> D:
        """A relation with the columns of a base relation."""
        relation = self.known.catalog.relations[name]
        return self.known.engine.load((), relation.columns, relation.types)

    def changed(self, name: str) -> D:
        """The rows of a relation that the update deletes or inserts."""
        sides = (
            (Version.DELETED, self.known.situation.deleted),
            (Version.INSERTED, self.known.situation.inserted),
        )
        parts = [
            self.known.facts.relations[Predicate(name, version)] for version, names in sides if name in names
        ]
        return self.known.engine.union(parts)

    def values(
        self, name: str, parts: Sequence[D], columns: Sequence[int], to: Sequence[str], *, known: bool
    ) -> D:
        """The values that rows of a relation have in some columns; without null where they have to be `known`."""
        row = row_atom(self.known.catalog.relations[name], Version.FOUND)
        goal = Atom(Predicate(name, Version.STEP), tuple(row.terms[i] for i in columns))
        tests = tuple(NullTest(term) for term in dict.fromkeys(goal.terms)) if known else ()
        given = {Predicate(name, Version.FOUND, (i,)): rows for i, rows in enumerate(parts)}
        rules = [Rule(goal, (Atom(its, row.terms), *tests)) for its in given]
        return self._projected(rules, given, to)

    def shown(self, name: str, rows: D, column: int, period: Period, to: Sequence[str]) -> D:
        """What a period shows of some rows of a relation."""
        from selfmaint.fallback.spans import shown_of  # noqa: PLC0415 - SQL only where spans are read

        relation = self.known.catalog.relations[name]
        return shown_of(self.known.engine, relation, column, period, rows, to)

    def renamed(self, keys: D, order: Sequence[int], to: Sequence[str]) -> D:
        """Keys with their columns in another order and under other names."""
        terms = tuple(Variable(f"K{i}") for i in range(len(order)))
        given, goal = Predicate("keys", Version.STEP), Predicate("asked", Version.STEP)
        rule = Rule(Atom(goal, tuple(terms[i] for i in order)), (Atom(given, terms),))
        return self._projected([rule], {given: keys}, to)

    def _projected(self, rules: Sequence[Rule], given: Mapping[Predicate, D], names: Sequence[str]) -> D:
        engine, goal = self.known.engine, rules[0].head.predicate
        facts = Facts(given, {}, frozenset(given))
        return engine.keep(engine.evaluate(Program(tuple(rules)), goal, facts, list(names)))

    def _read(self, name: str, columns: tuple[int, ...], keys: D) -> D:
        relation, engine = self.known.catalog.relations[name], self.known.engine
        names = [relation.columns[i] for i in columns]
        rows, read = rows_of(engine, relation, self.readable[name].source, names, keys)
        self.progress(f"read {read.rows_read} rows of {name} for {read.keys_asked} keys")
        return self._after(relation, columns, keys, rows, read)

    def _after(self, relation: BaseRelation, columns: tuple[int, ...], keys: D, rows: D, read: Read) -> D:
        """All rows that a source has of some keys, as they are after the update."""
        engine, name = self.known.engine, relation.name
        found = Predicate(name, Version.FOUND)
        probe = Probe(name, columns, Program(), ())
        held = self.known.learning(self.known.facts.extended({found: engine.keep(rows), probe.keys: keys}))
        earlier = self._signs.get(name, frozenset())
        after, self._signs[name] = found_after(held, relation, columns, probe.keys, earlier)
        signs = self._signs[name]
        self.reads.append(
            replace(read, is_before=is_before(signs), has_twins=twins_of_deleted(signs, held.situation))
        )
        require_keys_not_moved(held.learning(held.facts.extended({found: after})), probe)
        return after
