"""Which values a labelled null may have to take, so that no others are looked at.

Take a database that the search is for, made of facts with labelled nulls, and give a value of its own to each null
whose value nothing here asks for. The result maps back to the database, constants to themselves. So it has no view row
that the database has not, and satisfies all that is asked if what follows is kept:

1. *Shown*: a null in a column that a view shows keeps a value that a stored row has there; of the rows, those that
   agree with what the fact tells of the other columns shown.
2. *Given rows*: a null keeps what makes its fact a row of the update, of a readable relation, or of one that was read
   for some keys; and what makes it reference a readable relation's row.
3. *Keys*: two facts that agree on a key are one; so a null takes another one's value, or a constant, where another
   fact of its relation has that in the same column and may have the same key. Only such nulls need be equal.
4. Null stays null, a constant that rules compare with stays, and another value stays in its region
   (`value_classes.py`). Nulls of columns of few values, and of classes whose values are compared with each other, even
   by `!=`, take any value: there one of its own is no more general than another one.

Foreign keys ask for nothing: each fact brings a row of its own to reference (`labelled_nulls.py`).

In the solver's program values are numbers, with one naming of those that are no constants. A place in a region of a
class belongs to one null. Which of some equal nulls gives its place to the others would be a choice without meaning: it
is the first of them. So a null takes a place of its own, or one of a null before it which has it itself. Where places
are shared any null may take any.
"""

from __future__ import annotations

import operator as operators
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import combinations

from msgspec import Struct, field

from datalog.budget import check
from datalog.model import MIRRORED, Atom, Comparison, Constant, Variable, Version
from selfmaint.possible.labelled_nulls import Fact, Instance, LabelledNull, Part, TooManyFactsError
from selfmaint.possible.narrowing import Narrowing, RowsByValues, narrowed
from selfmaint.possible.queries import Queries, Query
from selfmaint.possible.value_classes import NULL

MOST_PAIRS = 2_000_000
"""So many pairs of facts of one relation are compared for a column of their keys."""


class Candidates:
    """For each labelled null the constants and the nulls before it whose values it may take.

    Nulls that a key may make one form a group, with all its constants for each member.
    """

    def __init__(self, instance: Instance, queries: Queries, narrowing: Narrowing) -> None:
        self._narrowing = narrowing
        self._known = instance.known
        self._rows = RowsByValues()
        self._groups: dict[LabelledNull, LabelledNull] = {}
        self._constants: dict[LabelledNull, set[Constant]] = {}
        self._nulls = instance.nulls
        facts = list(dict.fromkeys(instance.facts))
        loose = [fact for fact in (*facts, *instance.asked) if any(map(_is_loose, fact.parts))]
        for fact in loose:
            check()
            self._add_shown(fact, queries)
            self._add_given(fact)
        while self._merge_by_keys(facts):
            pass
        self._members: dict[LabelledNull, list[LabelledNull]] = {}
        for null in self._groups:
            self._members.setdefault(self._group(null), []).append(null)

    def constants(self, null: LabelledNull) -> Iterator[int]:
        """The numbers of the constants that a null may be, by its types, and by what asks for it."""
        if not _is_loose(null):
            for constant in null.value_class.constants:
                if self._admits(null, constant):
                    yield null.value_class.constants[constant]
            return
        for constant in sorted(self._wanted(null), key=repr):
            if self._admits(null, constant):
                yield null.value_class.constants[constant]

    def before(self, null: LabelledNull) -> list[LabelledNull]:
        """The nulls before one whose own values it may take."""
        if not _is_loose(null):
            return [n for n in self._nulls if n.number < null.number and n.value_class is null.value_class]
        if null not in self._groups:
            return []
        return [n for n in self._members[self._group(null)] if n.number < null.number]

    # ------------------------------------------------------------------------------------------------ 1 and 2

    def _add_shown(self, fact: Fact, queries: Queries) -> None:
        for view, rules in queries.items():
            for query in rules:
                for atom in query.body:
                    if atom.predicate.name == fact.relation:
                        self._add_shown_by(fact, query, atom, view)

    def _add_shown_by(self, fact: Fact, query: Query, atom: Atom, view: str) -> None:
        """What stored rows of a view show of a fact as one of its subgoals."""
        found: dict[Variable, list[Part]] = {}
        for term, part in zip(atom.terms, fact.parts, strict=True):
            if isinstance(term, Variable):
                found.setdefault(term, []).append(part)
            elif self._narrowing.told(part) not in (None, term):
                return
        shown = [(i, found[t]) for i, t in enumerate(query.head) if isinstance(t, Variable) and t in found]
        nulls = [(i, n) for i, parts in shown for n in parts if isinstance(n, LabelledNull)]
        if not nulls:
            return
        told = {i: value for i, parts in shown for p in parts if (value := self._narrowing.told(p))}
        stored = self._known.of(view, Version.STORED)
        for row in self._rows.matching((view, Version.STORED), stored, told):
            for i, null in nulls:
                self._take(null, Constant(row[i]))

    def _add_given(self, fact: Fact) -> None:
        known, name = self._known, fact.relation
        told = {i: value for i, p in enumerate(fact.parts) if (value := self._narrowing.told(p))}
        given = [(v, known.of(name, v)) for v in (Version.INSERTED, Version.DELETED)]
        if name in known.situation.readable:
            given.append((Version.BEFORE, known.of(name, Version.BEFORE)))
        if any(region.name == name for region in known.situation.regions):
            given.append((Version.KNOWN, known.known[name]))
        for version, rows in given:
            for row in self._rows.matching((name, version), rows, told):
                for null, its in zip(fact.parts, row, strict=True):
                    self._take(null, Constant(its))
        for reference in known.catalog.relations[name].references:
            target = reference.target
            if target not in known.situation.readable:
                continue
            parts = [fact.parts[i] for i in reference.columns]
            pairs = list(zip(reference.target_columns, parts, strict=True))
            asked = {i: value for i, p in pairs if (value := self._narrowing.told(p))}
            rows = known.of(target, Version.BEFORE)
            for row in self._rows.matching((target, Version.BEFORE), rows, asked):
                for i, null in pairs:
                    self._take(null, Constant(row[i]))

    def _take(self, part: Part, value: Constant) -> bool:
        """A null may be a constant; whether that is new."""
        if not isinstance(part, LabelledNull) or not _is_loose(part) or value.value is None:
            return False
        wanted = self._constants.setdefault(self._group(part), set())
        if value in wanted:
            return False
        wanted.add(value)
        return True

    # ------------------------------------------------------------------------------------------------------ 3

    def _merge_by_keys(self, facts: Iterable[Fact]) -> bool:
        """One round of making facts with one key one; whether something came of it."""
        changed = False
        by_relation: dict[str, list[Fact]] = {}
        for fact in facts:
            by_relation.setdefault(fact.relation, []).append(fact)
        for name, its in by_relation.items():
            for key in self._known.catalog.relations[name].unique:
                for one, other in self._pairs(its, key):
                    check()
                    if not all(self._may_agree(one.parts[i], other.parts[i]) for i in key):
                        continue
                    for i in range(len(one.parts)):
                        if i not in key and self._equate(one.parts[i], other.parts[i]):
                            changed = True
        return changed

    def _pairs(self, facts: Sequence[Fact], key: Sequence[int]) -> Iterator[tuple[Fact, Fact]]:
        """The pairs of facts that may agree on a key, perhaps more: those with a mark in common in its every column."""
        found: set[tuple[int, int]] | None = None
        for column in key:
            marked: dict[object, list[int]] = {}
            anything: list[int] = []
            for number, fact in enumerate(facts):
                marks = self._marks(fact.parts[column])
                if marks is None:
                    anything.append(number)
                for mark in marks or ():
                    marked.setdefault(mark, []).append(number)
            if len(anything) * len(facts) + sum(len(its) ** 2 for its in marked.values()) > MOST_PAIRS:
                continue  # too many for this column to tell
            pairs = {pair for its in marked.values() for pair in combinations(its, 2)}
            pairs.update((min(i, j), max(i, j)) for i in anything for j in range(len(facts)) if i != j)
            found = pairs if found is None else found & pairs
        if found is None:
            raise TooManyFactsError
        yield from ((facts[i], facts[j]) for i, j in sorted(found))

    def _marks(self, part: Part) -> Collection[object] | None:
        """What a value may be, or is equal to; None if that may be anything."""
        if isinstance(part, Constant):
            return () if part.value is None else (part,)
        if part in self._narrowing.left:
            return self._narrowing.left[part]
        if not _is_loose(part):
            return None
        return {self._group(part), *self._wanted(part)}

    def _may_agree(self, one: Part, other: Part) -> bool:
        """Whether two values may be the same, as far as it is known by now; null agrees with nothing."""
        if one == other:
            return not (isinstance(one, Constant) and one.value is None)
        if isinstance(one, Constant):
            one, other = other, one
        if isinstance(one, Constant):
            return False
        if isinstance(other, Constant) and not self._admits(one, other):
            return False
        if not _is_loose(one):
            return True
        mine = self._wanted(one)
        if isinstance(other, Constant):
            return other in mine
        if not _is_loose(other):
            return self._may_agree(other, one)
        if self._group(one) is self._group(other):
            return True
        both = mine & self._wanted(other)
        return any(self._admits(one, c) and self._admits(other, c) for c in both)

    def _equate(self, one: Part, other: Part) -> bool:
        """Two values may have to be the same; whether that is new."""
        if isinstance(one, Constant):
            return self._take(other, one)
        if isinstance(other, Constant):
            return self._take(one, other)
        if not (_is_loose(one) and _is_loose(other)):
            return False
        first, second = self._group(one), self._group(other)
        for each in (one, other):
            self._groups.setdefault(each, each)
        if first is second:
            return False
        self._groups[second] = first
        self._groups.setdefault(first, first)
        self._constants.setdefault(first, set()).update(self._constants.pop(second, set()))
        return True

    def _wanted(self, null: LabelledNull) -> AbstractSet[Constant]:
        return self._constants.get(self._group(null), set()) | null.value_class.landmarks

    def _admits(self, null: LabelledNull, value: Constant) -> bool:
        return null.admits(value) and self._narrowing.admits(null, value)

    def _group(self, null: LabelledNull) -> LabelledNull:
        path = []
        while (parent := self._groups.get(null, null)) is not null:
            path.append(null)
            null = parent
        for one in path:
            self._groups[one] = null
        return null


def _is_loose(part: Part) -> bool:
    """Whether a value is a labelled null for which one of its own is as general as any."""
    return isinstance(part, LabelledNull) and part.may_be_fresh and not part.value_class.is_related


_OPERATORS = {
    "=": operators.eq,
    "!=": operators.ne,
    "<": operators.lt,
    "<=": operators.le,
    ">": operators.gt,
    ">=": operators.ge,
}


class NullValues(Struct):
    """The values of labelled nulls, by number.

    Attributes:
        numbers: what each may have.
        borrowed: a null, the place of another one that it may take, and that other.
        shared: nulls whose places others may take.
    """

    numbers: dict[LabelledNull, list[int]] = field(default_factory=dict)
    borrowed: list[tuple[LabelledNull, int, LabelledNull]] = field(default_factory=list)
    shared: set[LabelledNull] = field(default_factory=set)


def values_of_nulls(instance: Instance, queries: Queries) -> NullValues:
    """What the labelled nulls of an instance, whose constants have numbers, may be."""
    narrowing = narrowed(instance, queries)
    candidates = Candidates(instance, queries, narrowing)
    tests = _tests(instance)
    found = NullValues()
    places: dict[LabelledNull, list[int]] = {}
    used: Counter[int] = Counter()
    for null in instance.nulls:
        its_class = null.value_class
        numbers = [NULL] if null.nullable and narrowing.admits(null, Constant(None)) else []
        numbers += candidates.constants(null)
        is_told = null in narrowing.left
        if null.may_be_fresh and its_class.is_shared and not is_told:
            numbers += sorted(its_class.places)
        elif null.may_be_fresh and not is_told:
            at = used[its_class.number]
            used[its_class.number] += 1
            places[null] = [region[at] for region in its_class.regions]
            for other in candidates.before(null):
                for number in places.get(other, ()):
                    numbers.append(number)
                    found.borrowed.append((null, number, other))
                    found.shared.add(other)
            numbers += places[null]
        found.numbers[null] = [n for n in numbers if all(_holds(n, *test) for test in tests[null])]
    return found


def _tests(instance: Instance) -> defaultdict[LabelledNull, list[tuple[str, int]]]:
    """What labelled nulls are compared with in the matches that they are of."""
    found: defaultdict[LabelledNull, list[tuple[str, int]]] = defaultdict(list)
    for test in instance.tests:
        for one in (f for f in test.query.filters if isinstance(f, Comparison)):
            ends = (one.left, one.operator, one.right), (one.right, MIRRORED[one.operator], one.left)
            for term, operator, other in ends:
                null = test.binding[term] if isinstance(term, Variable) else term
                told = test.binding[other] if isinstance(other, Variable) else other
                if isinstance(null, LabelledNull) and isinstance(told, Constant) and told.value is not None:
                    found[null].append((operator, null.value_class.constants[told]))
    return found


def _holds(number: int, operator: str, other: int) -> bool:
    """Whether a comparison of two values of a class holds; numbers follow their order where there is one."""
    return number != NULL and _OPERATORS[operator](number, other)
