"""Views of rows that have no match, decided by what the update brings and takes.

They are read by `datalog.sql.views.nested.anti_joins`.

    unpaid(o, c) :- orders(o, c), not payment(_, o).     payment references orders

Conditions of soundness:

1. The update is effective. A row of the view comes from one row of the kept relation, which the view shows a key of.
2. A row of the view had no match: it leaves if its row goes, or if a match comes; else it stays.
3. That there was no match for some values is known where a row of the view has them, or where they are a key that no
   row of the kept relation had, and whatever matches references it. That there was one is known where a matching row
   goes, or where a row of the kept relation goes, not in the view.
4. A match that was there still is if none with the values goes; none is left if one goes, and the values are a key of
   the other relation. Else nobody knows.
5. A match that goes may give the view a row, of which nothing is known: none where a match with its values comes, or
   where the values are the key of a row of the kept relation that goes.
6. A match that a stored row of another view shows with its key is there, and stays if no deleted row has that key: a
   view of one row even over none, or of some groups, does not count.
7. A view that counts all rows of the other relation by the values compared, and nothing else, tells how many matches
   there were: of a group that is not stored none; and as many less as go are left.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Generic

from msgspec import Struct

from datalog.copies import replace
from datalog.model import (
    Aggregate,
    AggregateFunction,
    AntiJoin,
    Atom,
    Comparison,
    Constant,
    Negation,
    NullTest,
    OpaqueView,
    Predicate,
    Program,
    Rule,
    Semantics,
    Term,
    Variable,
    Version,
    ViewDefinition,
    block,
    variables_of,
)
from datalog.rewrite import drop_empty
from datalog.rewrite.reachable import predicates_of
from selfmaint.decide.knowledge import Knowledge
from selfmaint.engine.protocol import D, Facts
from selfmaint.maintain import Delta
from selfmaint.warehouse.catalog import Catalog, GroupedView, View

_ARRIVED, _GONE, _NEW, _LAST, _KEYS, _TAKEN, _REST, _NONE, _ONE, _ABSENT, _PRESENT, GAINED, LOST, OPEN = (
    Predicate(name, Version.STEP)
    for name in (
        *("arrived", "gone", "new", "last", "keys", "taken", "rest"),
        *("none", "one", "absent", "present", "gained", "lost", "open"),
    )
)

"""What is told: the rows gained; those lost, but for rows gained; and the values for which it is not known."""

_FEWER, _LESS = Predicate("fewer", Version.STEP), Variable("Less")
"""How many matches with some values go."""

UNMATCHED = "nobody knows whether a row that comes has a match, or whether a match that goes was a row's last"
"""Why such a view is not decided."""


def anti_join_of(view: View) -> AntiJoin | None:
    """What a view is made of, if it is one of rows that have no match."""
    return view.definition.anti if isinstance(view.definition, OpaqueView) else None


class UnmatchedRows(Struct, frozen=True, dict=True):
    """What tells the change of a view of rows that have no match, over the view's rows and the update's."""

    catalog: Catalog
    view: View
    anti: AntiJoin

    def given(self, changed: Collection[Predicate]) -> dict[Predicate, tuple[Predicate, ViewDefinition]]:
        """The rows that the update brings and takes, the keys of those it takes, and the values that it bars or not.

        Each with what it is made of: one of the relations that are `changed`, and a definition over that.
        """
        kept, barred = self.anti.kept, self.anti.barred
        wanted = {
            _ARRIVED: (kept, Version.INSERTED),
            _GONE: (kept, Version.DELETED),
            _KEYS: (self._keys_of(kept, [i for _, i in self.anti.key]), Version.DELETED),
            _NEW: (barred, Version.INSERTED),
            _LAST: (barred, Version.DELETED),
        }
        if self._other_key:
            wanted[_TAKEN] = self._keys_of(barred, self._other_key), Version.DELETED
        if self._counts:
            wanted[_FEWER] = self._counted, Version.DELETED
        found = {}
        for goal, (definition, version) in wanted.items():
            (relation,) = definition.reads
            if relation.of(version) in changed:
                found[goal] = relation.of(version), _over(definition, version)
        return found

    def _keys_of(self, definition: ViewDefinition, key: Sequence[int]) -> ViewDefinition:
        """The keys of all rows of a definition's relation, whatever it asks of them."""
        (relation,) = definition.reads
        every = tuple(Variable(f"X{i}") for i in range(self.catalog.relations[relation.name].arity))
        shown = [every[i] for i in key]
        made = block(self.view.name, 0, [Atom(relation, every)], shown)
        return ViewDefinition(self.view.name, tuple(f"k{i}" for i in range(len(shown))), (made,))

    @cached_property
    def _other_key(self) -> tuple[int, ...]:
        """A key of the other relation, as positions; none if it has none."""
        (relation,) = self.anti.barred.reads
        return next(iter(self.catalog.relations[relation.name].keys), ())

    @cached_property
    def _matches(self) -> tuple[tuple[Atom, tuple[Term, ...], tuple[Term, ...]], ...]:
        """Rows of other views that show a match, with the values compared and its key: condition 6."""
        (relation,) = self.anti.barred.reads
        found = []
        for view in self.catalog.views if self._places else ():
            if isinstance(view, GroupedView) and (view.grouped.is_total or view.grouped.is_hidden):
                continue
            row = view.head
            if isinstance(view, GroupedView):
                row = view.grouped.stored(view.predicate, _apart(variables_of(view.decided.body)))
            atoms = view.decided.body if view.is_decided and view.unchanging is None else ()
            for atom in (its for its in atoms if its.predicate == relation):
                at, key = (tuple(atom.terms[i] for i in its) for its in (self._places, self._other_key))
                if all(isinstance(term, Constant) or term in row.terms for term in (*at, *key)):
                    found.append((row, at, key))
        return tuple(found)

    @cached_property
    def _places(self) -> tuple[int, ...]:
        """The columns of the other relation that are compared; none if not all of its rows count."""
        (one,) = self.anti.barred.blocks
        (barred,) = one.core.atoms
        own = [*one.core.atoms, *(NullTest(what) for what in one.outputs if isinstance(what, Variable))]
        tested = any(literal not in own for literal in one.core.body)
        is_plain = len({*barred.terms}) == barred.arity and all(isinstance(t, Variable) for t in barred.terms)
        if one.filters or tested or not is_plain or not self._other_key:
            return ()
        return tuple(barred.terms.index(what) for what in one.outputs if isinstance(what, Variable))

    @cached_property
    def _counted(self) -> ViewDefinition:
        """How many rows of the other relation there are with which values."""
        barred = self.anti.barred
        (one,) = barred.blocks
        outputs = [*one.outputs, Aggregate(AggregateFunction.COUNT)]
        made = block(self.view.name, 0, one.core.body, outputs, groups=one.outputs)
        return replace(barred, columns=(*barred.columns, "number"), blocks=(made,), semantics=Semantics.BAG)

    @cached_property
    def _counts(self) -> tuple[tuple[Atom, tuple[Term, ...], Term], ...]:
        """Rows of other views that count all matches, with the values compared and their number: condition 7."""
        found = []
        for view in self.catalog.views if self._places else ():
            if not isinstance(view, GroupedView) or not view.grouped.tells_absence or view.is_counted:
                continue
            grouped, core = view.grouped, view.core
            number = grouped.count_column
            if number is None or len(core.body) != 1 or view.unchanging is not None:
                continue
            (atom,) = core.body
            if atom.predicate != self.anti.barred.reads[0]:
                continue
            values = tuple(atom.terms[i] for i in self._places)
            if any(test not in [NullTest(value) for value in values] for test in core.filters):
                continue
            is_all = len({*atom.terms}) == atom.arity
            by = [grouped.group_terms.get(i) for i in grouped.columns]
            if is_all and {*by} == {*values} and all(isinstance(term, Variable) for term in atom.terms):
                row = grouped.stored(view.predicate, _apart(variables_of(core.body)))
                found.append((row, values, row.terms[number]))
        return tuple(found)

    def program(self, given: Collection[Predicate]) -> Program:
        """The rules of `GAINED`, `LOST` and `OPEN`, over what is given."""
        rules = tuple(self._rules())
        known = {rule.head.predicate for rule in rules} | {*given} | {self.view.predicate}
        known |= {row.predicate for row, _, _ in (*self._matches, *self._counts)}
        read = {predicate for rule in rules for predicate in predicates_of(rule.body)}
        return drop_empty(Program(rules), read - known)

    def _rules(self) -> Iterator[Rule]:
        row, others = ([Variable(f"{c}{i}") for i in range(len(self.view.columns))] for c in "CD")
        at = tuple(row[i] for i in self.anti.join)
        arrived, gone = (Atom(predicate, tuple(row)) for predicate in (_ARRIVED, _GONE))
        new, last, rest, none, one, absent, present, open_ = (
            Atom(p, at) for p in (_NEW, _LAST, _REST, _NONE, _ONE, _ABSENT, _PRESENT, OPEN)
        )
        keys = Atom(_KEYS, tuple(row[i] for i, _ in self.anti.key))

        def stored(shared: Collection[int]) -> Atom:
            """A row of the view with some columns of this one."""
            terms = (row[i] if i in shared else others[i] for i in range(len(row)))
            return Atom(self.view.predicate, tuple(terms))

        met = tuple(NullTest(term) for term in at)
        # condition 2
        yield Rule(Atom(LOST, tuple(row)), (stored(range(len(row))), keys))
        yield Rule(Atom(LOST, tuple(row)), (stored(range(len(row))), new))
        # condition 3
        yield Rule(none, (arrived, *met, stored(self.anti.join)))
        if self.anti.by_key and self.anti.references:
            yield Rule(none, (arrived, *met, Negation((keys,))))
        yield Rule(one, (last,))
        yield Rule(one, (gone, *met, Negation((stored([i for i, _ in self.anti.key]),))))
        # condition 4
        yield Rule(absent, (none, Negation((new,))))
        if self.anti.once:
            yield Rule(absent, (last, Negation((new,))))
        yield Rule(present, (new,))
        yield Rule(present, (one, Negation((last,))))
        for i in self.anti.join:
            yield Rule(Atom(GAINED, tuple(row)), (arrived, NullTest(row[i], negated=False)))
        yield Rule(Atom(GAINED, tuple(row)), (arrived, absent))
        yield Rule(open_, (arrived, *met, Negation((absent,)), Negation((present,))))
        # condition 6
        for shown, values, key in self._matches:
            came = _asked(self.anti.join, values, row, _apart(variables_of([shown])))
            for one_of in (Atom(_LAST, values), came):
                yield Rule(Atom(_REST, values), (one_of, shown, Negation((Atom(_TAKEN, key),))))
        # condition 7
        for shown, values, number in self._counts:
            came = _asked(self.anti.join, values, row, _apart(variables_of([shown])))
            last_of, fewer = Atom(_LAST, values), Atom(_FEWER, (*values, _LESS))
            for one_of in (last_of, came):
                yield Rule(Atom(_REST, values), (one_of, shown, fewer, Comparison(">", number, _LESS)))
            yield Rule(Atom(_REST, values), (came, shown, Negation((last_of,))))
            new_one = Negation((Atom(_NEW, values),))
            all_gone = Comparison("<=", number, _LESS)
            yield Rule(Atom(_ABSENT, values), (came, shown, fewer, all_gone, new_one))
            yield Rule(
                Atom(_ABSENT, values), (came, *(NullTest(v) for v in values), Negation((shown,)), new_one)
            )
        yield Rule(present, (rest,))
        # condition 5
        others_known = [Negation((keys,))] if self.anti.by_key else []
        yield Rule(open_, (last, Negation((new,)), Negation((rest,)), *others_known))


class Unmatched(Struct, Generic[D], frozen=True, dict=True):
    """A view of rows that have no match, and everything known.

    Raises, where it is asked:
        InputError: SM502, SM104 a value that the engine does not compute.
    """

    known: Knowledge[D]
    view: View
    anti: AntiJoin

    def is_open(self) -> bool:
        """Whether the new rows are not determined by conditions 2 to 5."""
        may_be = OPEN in self._program.heads
        return may_be and bool(self.known.engine.nonempty(self._program, (OPEN,), self._facts))

    def delta(self) -> Delta[D]:
        """The change, held by the engine."""
        engine, stored = self.known.engine, self.known.facts.relations[self.view.predicate]
        goals = dict.fromkeys((GAINED, LOST), self.view.columns)
        heads = self._program.heads
        rows = engine.evaluate_all(self._program, {g: c for g, c in goals.items() if g in heads}, self._facts)
        gained, lost = (
            engine.keep(engine.like(rows[goal], stored)) if goal in rows else engine.empty(stored)
            for goal in goals
        )
        return Delta(engine.keep(engine.minus(gained, lost)), engine.keep(engine.minus(lost, gained)))

    @cached_property
    def _rows(self) -> UnmatchedRows:
        return UnmatchedRows(self.known.catalog, self.view, self.anti)

    @cached_property
    def _given(self) -> dict[Predicate, D]:
        facts, engine, relations = self.known.facts, self.known.engine, self.known.catalog.relations
        found = {}
        for goal, (changed, definition) in self._rows.given(facts.relations.keys()).items():
            kinds = {changed: relations[changed.name].types}
            found[goal] = engine.keep(engine.evaluate_view(definition, facts, kinds))
        return found

    @cached_property
    def _facts(self) -> Facts[D]:
        return self.known.facts.extended(self._given)

    @cached_property
    def _program(self) -> Program:
        return self._rows.program(self._given)


def _asked(join: Sequence[int], values: Sequence[Term], row: Sequence[Term], names: str) -> Atom:
    """A row that comes with some values, other variables elsewhere."""
    given = dict(zip(join, values, strict=True))
    return Atom(_ARRIVED, tuple(given.get(i, Variable(f"{names}{i}")) for i in range(len(row))))


def _apart(taken: Iterable[Variable]) -> str:
    """What no name of some variables begins with."""
    names, prefix = [variable.name for variable in taken], "Any"
    while any(name.startswith(prefix) for name in names):
        prefix += "_"
    return prefix


def _over(definition: ViewDefinition, version: Version) -> ViewDefinition:
    """A definition over what an update brings, or takes."""
    (one,) = definition.blocks
    body = tuple(li.of(version) if isinstance(li, Atom) else li for li in one.core.body)
    return replace(definition, blocks=(replace(one, core=replace(one.core, body=body)),))
