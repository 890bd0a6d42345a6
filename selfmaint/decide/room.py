"""Whether groups have room for facts that may exist: stored aggregates against all that is known of a group.

A *world* is a few facts that one witness of a failing test assumes. With the known facts they make core rows of a view
that groups, or join with a finer view's rows; no group may then hold more than its stored row says.

    by_region(R, count(*), sum(A)) :- sale(I, C, A), cust(C, R).        eu: 2 rows, 4 in all
    known sales of `k2`: 3 and 5                                        the world { cust(k2, eu) } is impossible

Conditions of soundness:

1. More facts make more core rows, so those of the known facts and a world's are among the group's.
2. A group has at least as many rows, and operands that are not null, as are known; its extrema reach as far.
3. Where as many are known as there are, the aggregates are over these; of sums only exact ones are compared.
4. A group with a core row is stored.
5. Where a finer view's row joins with a world's fact, the coarser view's group is stored: a value that is not told
   is then one of the groups' (`expanded`).
6. A fact has values that its columns' types have: a join may ask an `int` for a `bigint`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, Generic

from msgspec import Struct

from datalog.analysis.expression_types import expression_type
from datalog.evaluate import evaluate_view
from datalog.evaluate.order import COMPARISONS
from datalog.model import (
    ANY,
    AggregateFunction,
    Atom,
    ColumnType,
    Constant,
    Operator,
    Predicate,
    Row,
    Term,
    TypeName,
    Value,
    Variable,
    Version,
    ViewDefinition,
    variables_of,
)
from selfmaint.canonical.support import Bindings, CanonicalDatabase
from selfmaint.engine.protocol import D
from selfmaint.maintain import RollUp, roll_ups
from selfmaint.maintain.core_rows import Asked
from selfmaint.maintain.group_plan import ROWS, GroupPlan
from selfmaint.possible.value_classes import fits
from selfmaint.warehouse.base_relations import variable_types
from selfmaint.warehouse.catalog import Catalog, GroupedView

World = frozenset[tuple[str, Row]]
"""Facts: relations and rows."""

KNOWN_ROWS = 20_000
"""Where more rows of some groups are known, nothing is concluded."""

NEW_SUBGOALS = 4
"""At most so many subgoals of one core may meet a world's facts."""

_ASKED = Predicate("asked", Version.STEP)
_WORLD = Variable("World")


@dataclass(frozen=True)
class Source:
    """Where the rows of a view's groups come from: core rows, or a finer view's rows with the other subgoals.

    Attributes:
        roll: how it is rolled up; None for core rows.
    """

    plan: GroupPlan
    roll: RollUp | None

    @property
    def atoms(self) -> tuple[Atom, ...]:
        """The subgoals whose facts may be a world's."""
        body = self.plan.core.body
        return body if self.roll is None else tuple(body[i] for i in self.roll.others)

    @property
    def stored(self) -> tuple[Atom, ...]:
        """The finer view's row."""
        return () if self.roll is None else (self.roll.row,)

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """The variables that a row binds."""
        return variables_of([*self.atoms, *self.stored])

    @property
    def _terms(self) -> tuple[Term, ...]:
        return self.plan.core.head.terms if self.roll is None else self.roll.columns

    def part(self, rows: Iterable[Row]) -> list[Row]:
        """Groups, each with its number of rows, and a value and a count for each measure."""
        place = {v: i for i, v in enumerate(self.variables)}
        made = [
            tuple(t.value if isinstance(t, Constant) else row[place[t]] for t in self._terms) for row in rows
        ]
        definition: ViewDefinition | None
        types: Sequence[ColumnType]
        if self.roll is None:
            definition, types = self.plan.part(), self.plan.column_types
        else:
            definition, types = self.roll.part, self.roll.column_types
        assert definition is not None
        return list(evaluate_view(definition, {ROWS: Counter(made)}, {ROWS: types}))


def sources(catalog: Catalog, view: GroupedView) -> Iterator[Source]:
    """Where the rows of a view's groups come from."""
    yield Source(GroupPlan(view, catalog.relations), None)
    yield from (Source(roll.plan, roll) for roll in roll_ups(catalog, view) if roll.part is not None)


class Room(Struct, Generic[D]):
    """Asks the stored groups of a warehouse about worlds."""

    known: CanonicalDatabase[D]

    def impossible(self, worlds: Iterable[World]) -> frozenset[World]:
        """The worlds for which some group has no room."""
        every = dict.fromkeys(worlds)
        waiting = [world for world in every if all(self._can_be(*fact) for fact in world)]
        refuted = every.keys() - waiting
        loaded = self._loaded(waiting)
        for view in self.known.catalog.grouped_views:
            for source in sources(self.known.catalog, view) if waiting else ():
                new = self._new_rows(source, waiting, loaded)
                found = frozenset(self._impossible(source, new)) if new else ()
                if found:
                    refuted.update(found)
                    waiting = [world for world in waiting if world not in refuted]
                    loaded = self._loaded(waiting)
        return frozenset(refuted)

    def _can_be(self, name: str, row: Row) -> bool:
        """Condition 6."""
        types = self.known.catalog.relations[name].types
        return all(v is None or fits(v, kind) for v, kind in zip(row, types, strict=True))

    def _impossible(self, source: Source, new: Mapping[World, set[Row]]) -> Iterator[World]:
        groups = {w: {row[: len(source.plan.keys)] for row in source.part(rows)} for w, rows in new.items()}
        keys = frozenset().union(*groups.values())
        known, stored = self._known(source, keys), self._stored(source.plan, keys)
        if known is None or stored is None:
            return
        for world, rows in new.items():
            for part in source.part({*rows, *known}):
                key = part[: len(source.plan.keys)]
                if key in groups[world] and not _has_room(source.plan, part, stored.get(key)):
                    yield world
                    break

    def _loaded(self, worlds: Sequence[World]) -> dict[Predicate, D]:
        """The facts of some worlds, with the number of the world."""
        given: dict[str, list[Row]] = defaultdict(list)
        for at, world in enumerate(worlds):
            for name, row in world:
                given[name].append((at, *row))
        return {
            Predicate(name, Version.NEW): self.known.engine.load(rows, *self._columns(name))
            for name, rows in given.items()
        }

    def _new_rows(
        self, source: Source, worlds: Sequence[World], loaded: Mapping[Predicate, D]
    ) -> dict[World, set[Row]]:
        """The rows of each world that use one of its facts."""
        places = [i for i, atom in enumerate(source.atoms) if atom.predicate.of(Version.NEW) in loaded]
        found: dict[World, set[Row]] = defaultdict(set)
        for size in range(1, len(places) + 1 if len(places) <= NEW_SUBGOALS else 0):
            for chosen in combinations(places, size):
                fresh = [
                    Atom(a.predicate.of(Version.NEW), (_WORLD, *a.terms))
                    for a in (source.atoms[i] for i in chosen)
                ]
                others = [a for i, a in enumerate(source.atoms) if i not in chosen]
                for row in self._joined(source, fresh, others, (_WORLD, *source.variables), loaded) or ():
                    number, rest = row[0], row[1:]
                    assert isinstance(number, int)
                    found[worlds[number]].add(rest)
        return found

    def _columns(self, name: str) -> tuple[tuple[str, ...], tuple[ColumnType, ...]]:
        relation = self.known.catalog.relations[name]
        return ("world", *relation.columns), (ColumnType(TypeName.INT), *relation.types)

    def _joined(
        self,
        source: Source,
        start: Sequence[Atom],
        others: Sequence[Atom],
        wanted: Sequence[Variable],
        given: Mapping[Predicate, D],
    ) -> Iterable[Row] | None:
        """Bindings over the start, known facts and stored rows; None if there are too many."""
        known = [a.of(Version.KNOWN) for a in others]
        atoms = [*start, *known, *source.stored]
        bound = set(variables_of(atoms))
        tests = [f for f in source.plan.core.filters if set(variables_of([f])) <= bound]
        return self.fetched(self.known.bindings([(*atoms, *tests)], wanted, given))

    def fetched(self, found: Bindings[D] | None) -> Iterable[Row] | None:
        """Bindings at hand; None if there are too many."""
        return () if found is None else self.known.engine.fetch(found.rows, KNOWN_ROWS)

    def _known(self, source: Source, keys: Iterable[Row]) -> set[Row] | None:
        """The rows of some groups that are known; none of groups told by expressions (condition 1)."""
        terms = [source.plan.grouped.group_terms.get(c) for c in source.plan.grouped.columns]
        if None in terms:
            return set()
        key = self._asked(source.plan, keys, [t for t in terms if t is not None])
        rows = self._joined(source, [key.atom], source.atoms, source.variables, key.given)
        return None if rows is None else set(rows)

    def _asked(self, plan: GroupPlan, keys: Iterable[Row], terms: Sequence[Term]) -> Asked[D]:
        """Some groups, with a 1 behind them."""
        types = [expression_type(group, plan.types) or ANY for group in plan.grouped.groups]
        return self.asked(terms, keys, types)

    def asked(self, terms: Sequence[Term], rows: Iterable[Row], types: Sequence[ColumnType]) -> Asked[D]:
        """Rows at hand over some terms, with a 1 behind them."""
        names = [f"x{i}" for i in range(len(types) + 1)]
        given = [(*row, 1) for row in rows]
        data = self.known.engine.load(given, names, [*types, ColumnType(TypeName.INT)])
        return Asked(Atom(_ASKED, (*terms, Constant(1))), {_ASKED: data})

    def _stored(self, plan: GroupPlan, keys: Iterable[Row]) -> dict[Row, Row] | None:
        """The stored rows of some groups."""
        columns = tuple(Variable(f"O{i}") for i in range(plan.view.head.arity))
        key = self._asked(plan, keys, [columns[c] for c in plan.grouped.columns])
        body = (key.atom, Atom(plan.view.predicate, columns))
        rows = self.fetched(self.known.bindings([body], columns, key.given))
        if rows is None:
            return None
        return {tuple(row[c] for c in plan.grouped.columns): row for row in rows}


def _has_room(plan: GroupPlan, part: Row, stored: Row | None) -> bool:
    """Conditions 2 to 4."""
    if stored is None:
        return False
    rest: tuple[Any, ...] = part[len(plan.keys) :]
    rows, values, counts = rest[0], rest[1::2], rest[2::2]
    column = plan.grouped.count_column
    total: Any = None if column is None else stored[column]
    if total is not None and rows > total:
        return False
    numbers: dict[str, Any] = {
        repr(m.aggregate.operand): stored[m.column]
        for m in plan.grouped.measures
        if m.aggregate.function is AggregateFunction.COUNT
    }
    for measure, value, count in zip(plan.grouped.measures, values, counts, strict=True):
        whole = rows == total or count == numbers.get(repr(measure.aggregate.operand))
        if not _agrees(measure.aggregate.function, value, count, stored[measure.column], whole=whole):
            return False
    return True


def _agrees(function: AggregateFunction, value: Any, count: Any, stored: Any, *, whole: bool) -> bool:
    """Whether a stored aggregate can be over what is known and perhaps more; over nothing more if `whole`."""
    match function:
        case AggregateFunction.COUNT:
            return bool(count == stored if whole else count <= stored)
        case AggregateFunction.AVG:
            return True
        case AggregateFunction.SUM:
            return not whole or isinstance(value, float) or isinstance(stored, float) or value == stored
        case _ if value is None:
            return not whole or stored is None
        case _ if stored is None:
            return False
        case _:
            reaches: Operator = ">=" if function is AggregateFunction.MIN else "<="
            return COMPARISONS["=" if whole else reaches](value, stored)


def expanded(room: Room[D], facts: Iterable[Atom]) -> frozenset[World]:
    """The worlds that some facts stand for, without facts of which a value may be any (condition 5).

    The facts are subgoals over constants, and variables for values that nothing known tells.
    """
    worlds: frozenset[World] = frozenset({frozenset()})
    for fact in dict.fromkeys(facts):
        rows = _rows(room, fact)
        if rows is None:
            continue
        worlds = frozenset(w | {(fact.predicate.name, row)} for w in worlds for row in rows)
    return worlds


def _rows(room: Room[D], fact: Atom) -> frozenset[Row] | None:
    if not variables_of([fact]):
        return frozenset({tuple(t.value for t in fact.terms if isinstance(t, Constant))})
    for view in room.known.catalog.grouped_views:
        for roll in roll_ups(room.known.catalog, view):
            if len(roll.others) == 1 and view.grouped.tells_absence:
                found = _of_groups(room, Source(roll.plan, roll), fact)
                if found is not None:
                    return found
    return None


def _of_groups(room: Room[D], source: Source, fact: Atom) -> frozenset[Row] | None:
    """The rows that a fact may be, if a finer row joins with it; a value that is not told is a group's."""
    (atom,) = source.atoms
    if atom.predicate != fact.predicate:
        return None
    given: dict[Variable, Constant] = {}
    free: dict[Variable, Term] = {}
    grouped = source.plan.grouped
    for term, value in zip(atom.terms, fact.terms, strict=True):
        if isinstance(term, Constant) or term in given or term in free:
            return None
        if isinstance(value, Constant):
            given[term] = value
        elif term in grouped.group_terms.values() and term not in variables_of(source.stored):
            free[term] = value
        else:
            return None
    # A filter on what no column shows is one of the finer view's own.
    told = {*given, *free, *variables_of(source.stored)}
    tests = [f for f in source.plan.core.filters if told.issuperset(variables_of([f]))]
    if len(set(free.values())) < len(free) or any(v in free for v in variables_of(tests)):
        return None
    types = variable_types([atom], room.known.catalog.relations)
    row = tuple(c.value for c in given.values())
    start = room.asked(tuple(given), [row], [types.get(v, ANY) for v in given])
    finer = (start.atom, *source.stored, *tests)
    if not room.fetched(room.known.bindings([finer], tuple(given), start.given)):
        return None
    group = grouped.stored(source.plan.view.predicate, "Stored")
    found = room.fetched(room.known.bindings([(*finer, group)], tuple(free), start.given))
    if found is None:
        return None
    at: list[Mapping[Variable, Value]] = [dict(zip(free, values, strict=True)) for values in found]
    return frozenset(
        tuple(given[t].value if t in given else values[t] for t in atom.terms if isinstance(t, Variable))
        for values in at
    )
