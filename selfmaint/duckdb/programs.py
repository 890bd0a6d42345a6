"""Whole programs, bottom up: one relation a predicate, so that sizes are known and nothing is computed twice."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from weakref import WeakKeyDictionary

from datalog.analysis.dependency import evaluation_order
from datalog.copies import replace
from datalog.model import Atom, Constant, NullTest, Predicate, Program, Rule, Variable, Version
from datalog.rewrite.demand import cuttable_steps
from datalog.rewrite.independent import independent_parts, linked_parts
from datalog.rewrite.reachable import drop_unreachable, predicates_of
from datalog.rewrite.unfold import is_unfoldable, unfold
from datalog.sql.duckdb import relations as sql
from selfmaint.duckdb.database import Database
from selfmaint.duckdb.extensions import Extension, read_by, written
from selfmaint.duckdb.factors import (
    Factored,
    TooManyJoinedError,
    is_bare,
    most_rows,
    over_parts,
    over_sifted,
    require_few,
    require_few_joined,
    require_not_multiplied,
)
from selfmaint.duckdb.fetched import KEYS, STORED, Fetched, Large, Lookup, lookup_of
from selfmaint.duckdb.few_rows import all_few, computed_here, may_derive
from selfmaint.duckdb.keys_apart import APART, by_parts
from selfmaint.duckdb.layouts import finding
from selfmaint.duckdb.matches import Matches
from selfmaint.duckdb.relation import Relation, Stored
from selfmaint.duckdb.representatives import Reading, Representatives
from selfmaint.engine.plans import over_tables, prepared, without_columns
from selfmaint.engine.protocol import NOTHING_PROMISED, Asked, Facts, Layout

MOST_HELD = 5_000
"""Of so many predicates the rows are kept for the next program that has the same rules over the same tables."""

MOST_ROWS_HELD = 1_000_000
"""Of the rows that are held so many are in this process; DuckDB can put those that it holds on the disk."""

MOST_MULTIPLIED = 100_000
"""So many rows of independent parts are put together at once."""

MOST_PLANS = 16
"""So many programs as they are evaluated are kept: what was found out is asked for again to be told."""

_MOST_WAYS = 8
"""Products that are unions are read as they are where what they are of could stand in their place in more ways."""


class Programs:
    """Evaluates programs in one database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.most_multiplied = MOST_MULTIPLIED
        self._most_joined: int | None = None
        self._is_bounded = False
        self._counted: dict[str, int] = {}
        self._may_be_cut = frozenset[Predicate]()
        self.cut = 0
        """How many steps were cut to their first bindings."""
        self._held: OrderedDict[object, Extension] = OrderedDict()
        self._rows_held = 0
        self.matches = Matches(database, self.table)
        self._products = WeakKeyDictionary[Stored, tuple[Factored, ...]]()
        self._plans: OrderedDict[object, Program] = OrderedDict()
        self.fetched, self._reading = Fetched(self.made), Reading(database, self.made)

    def release(self) -> None:
        """Lets go of the rows of all predicates."""
        self._held.clear()
        self._rows_held = 0
        self.matches.release()
        self._counted.clear()
        self._plans.clear()
        self.fetched.release()

    def extensions(
        self, program: Program, goals: Sequence[Predicate], facts: Facts[Relation], most: int | None = None
    ) -> dict[Predicate, Stored]:
        """The rows of some predicates with rules, each once; of those alone that take no join of more than `most` rows.

        Raises:
            ReadRefusedError: SM403 a rule reads a predicate that has neither rules nor facts.
            InputError: SM502 DuckDB compares otherwise than Spark; SM104 a value that does not fit its type.
        """
        self._most_joined = most
        try:
            known = self._derived(self._prepared(program, goals, facts), facts, ())
        finally:
            self._most_joined = None
        return {goal: known[goal].stored for goal in goals if goal in known}

    def nonempty(
        self, program: Program, goals: Sequence[Predicate], facts: Facts[Relation], *, bounded: bool = False
    ) -> frozenset[Predicate]:
        """Which predicates have a row: those that they use are evaluated whole, they themselves to a first row.

        What their own columns hold is not asked, so that nothing is read for it. Where a step has too many bindings,
        some of them are followed before all are: most goals have a row for one of the first. `bounded`: goals that take
        joins of far more rows than are joined count as having one.
        """
        distinct = list(dict.fromkeys(goals))
        needed = self._prepared(without_columns(program, distinct), distinct, facts)
        cut_before = self.cut
        self._may_be_cut, self._is_bounded = cuttable_steps(needed), bounded
        try:
            found = self._with_rows(needed, distinct, facts)
            self._may_be_cut = frozenset()
            waiting = [goal for goal in distinct if goal not in found]
            if self.cut > cut_before and waiting:
                found |= self._with_rows(drop_unreachable(needed, waiting), waiting, facts)
        finally:
            self._may_be_cut, self._is_bounded = frozenset(), False
        return found

    def _with_rows(
        self, needed: Program, goals: Sequence[Predicate], facts: Facts[Relation]
    ) -> frozenset[Predicate]:
        rules = needed.by_head()
        used = {p for rule in needed.rules for p in predicates_of(rule.body)}
        known = self._derived(needed, facts, [goal for goal in goals if goal not in used])
        made = frozenset(goal for goal in goals if goal in known)
        found = (goal for goal in made if self.matches.has_rows(known[goal]))
        return frozenset(
            (*found, *(g for g in goals if g not in made and self._holds(rules.get(g, ()), known)))
        )

    def _holds(self, rules: Sequence[Rule], known: Mapping[Predicate, Extension]) -> bool:
        """Whether some rule has a row, or takes too many joins to know."""
        if not all(p in known for rule in rules for p in predicates_of(rule.body)):
            return True
        try:
            return self.matches.hold(rules, known)
        except TooManyJoinedError:
            return True

    def foresee(self, asked: Iterable[Asked], facts: Facts[Relation]) -> None:
        """See `Engine`: finds out what will be looked up by keys that follow from small relations alone."""
        self.fetched.forget()
        for one in asked:
            program = one.program if one.whole else without_columns(one.program, one.goals)
            needed = self._prepared(program, one.goals, facts)
            rules, given = needed.by_head(), _given(facts)
            known = {p: its for p, its in given.items() if p in facts.small and p not in rules}
            for predicate in evaluation_order(needed):
                lookup = lookup_of(rules[predicate])
                if lookup is not None and lookup.keys in known:
                    self.fetched.foresee(lookup, known[lookup.keys], given[lookup.stored].named)
                elif all(p in known for rule in rules[predicate] for p in predicates_of(rule.body)):
                    known[predicate] = self.table(rules[predicate], known)

    def _prepared(self, program: Program, goals: Sequence[Predicate], facts: Facts[Relation]) -> Program:
        def found_by(predicate: Predicate, columns: tuple[int, ...]) -> tuple[int, ...]:
            best = finding(facts.relations[predicate].stored.layout, columns)
            return () if best is None else (best,)

        tables = frozenset((p, relation.stored.number) for p, relation in facts.relations.items())
        key = (program, tuple(goals), facts.small, tables)
        if key not in self._plans:
            types = {p: relation.types for p, relation in facts.relations.items()}
            few = all_few(facts, self._database.most_few)
            self._plans[key] = prepared(program, goals, types, facts.small, found_by, all_few=few)
            if len(self._plans) > MOST_PLANS:
                self._plans.popitem(last=False)
        return self._plans[key]

    def _derived(
        self, program: Program, facts: Facts[Relation], without: Sequence[Predicate]
    ) -> dict[Predicate, Extension]:
        """The rows of everything that a program reads or defines, but for some that nothing else uses.

        And but for what takes joins of too many rows, if any are too many.
        """
        known = _given(facts)
        rules = program.by_head()
        self.fetched.expect(rules.values())
        for predicate in rules:
            known.pop(predicate, None)
        left_out = set(without)
        for predicate in evaluation_order(program):
            used = (p for rule in rules[predicate] for p in predicates_of(rule.body)) if left_out else ()
            if predicate in left_out or not left_out.isdisjoint(used):
                left_out.add(predicate)
                continue
            try:
                known[predicate] = self.table(rules[predicate], known)
            except TooManyJoinedError:
                left_out.add(predicate)
        return known

    def table(self, rules: Sequence[Rule], known: Mapping[Predicate, Extension]) -> Extension:
        """The rows of one predicate: those kept, if its rules have been evaluated over the same tables."""
        read, asked = read_by(rules, known), lookup_of(rules)
        named = {p: one.named for p, one in read.items()}
        promised = None if asked is None else read[asked.stored].dependencies
        key = *(over_tables(rule, named) for rule in rules), promised
        if key not in self._held:
            cut_before = self.cut
            if asked is None or (its := read[asked.stored].stored).rows is not None or its.few is not None:
                made = self.made(rules, read)
            else:
                made = self._looked_up(asked, read)
            if self.cut > cut_before:
                return made  # not all of its rows
            self._held[key] = made
            self._rows_held += _rows_here(self._held[key])
            while len(self._held) > MOST_HELD or self._rows_held > MOST_ROWS_HELD:
                self._rows_held -= _rows_here(self._held.popitem(last=False)[1])
        self._held.move_to_end(key)
        return self._held[key]

    def _looked_up(self, asked: Lookup, read: Mapping[Predicate, Extension]) -> Extension:
        relation = read[asked.stored]

        def by_keys(rule: Rule, keys: Extension, few: Representatives | None) -> Extension:
            if few is not None and (keys.stored.rows or 0) > APART:
                return self._reading.rows(rule, keys, relation, few, lambda some: by_keys(rule, some, None))
            return self.made(by_parts(rule, keys, relation), {KEYS: keys, STORED: relation})

        found = self.fetched.rows(asked, read[asked.keys], Large(relation.named, by_keys, relation))
        assert found is not None
        return found

    def made(self, rules: Sequence[Rule], known: Mapping[Predicate, Extension]) -> Extension:
        """The rows of one predicate, computed now."""
        rules, known = self._over_factors(rules, known)
        found = self._made_here(rules, known)
        if found is not None:
            return found
        factored = [self._factored(rule, known) for rule in rules]
        if any(factored):
            if sum(one.rows or 0 for one in factored if one) > self.most_multiplied:
                return self._product(rules, factored, known)
            rules = [one.rule if one else rule for rule, one in zip(rules, factored, strict=True)]
            known = {**known, **{p: its for one in factored if one for p, its in one.given.items()}}
            rules, known = self._over_factors(rules, known)
            found = self._made_here(rules, known)
            if found is not None:
                return found
        rules, read = over_sifted(rules, read_by(rules, known), self.matches.many, self.table)
        if rules[0].head.predicate in self._may_be_cut:
            some = self.matches.some(rules, read)
            if some is not None:
                self.cut += 1
                return some
        made = written(rules, read)
        if not any(may_derive(rule, read) for rule in rules):
            made = replace(made, queries=())
        names = [extension.stored.name for extension in read.values()]
        if self._is_bounded:
            many = list(map(most_rows, read.values()))
            require_not_multiplied(self._database, made.queries, names, many, self._counted)
        if self._most_joined is not None and math.prod(map(most_rows, read.values())) > self._most_joined:
            require_few_joined(self._database, made.queries, names, self._most_joined, self._counted)
        with self._database.tuning.as_written():
            stored = self._database.table(made.query(), made.types, names if made.queries else ())
        return Extension(stored, made.not_null)

    def _made_here(self, rules: Sequence[Rule], known: Mapping[Predicate, Extension]) -> Extension | None:
        """The same in this process, if there are few rows."""
        here = computed_here(rules, read_by(rules, known)) if self._database.most_few else None
        if here is None:
            return None
        few = self._database.computed(*here)
        return Extension(few, frozenset(range(len(few.types))) - few.with_null)

    def _over_factors(
        self, rules: Sequence[Rule], known: Mapping[Predicate, Extension]
    ) -> tuple[Sequence[Rule], Mapping[Predicate, Extension]]:
        """The rules without products: over what these are of, and without what only has to have a row."""
        found, given, is_same = list[Rule](), dict(known), True
        for rule in rules:
            named, ways = self._products_of(rule, known)
            if not ways:
                found.append(rule)
                continue
            is_same = False
            for way in product(*ways.values()):
                given |= {p: its for one in way for p, its in one.given.items()}
                heads = {
                    p: replace(one.rule, head=replace(one.rule.head, predicate=p))
                    for p, one in zip(ways, way, strict=True)
                }
                found += self._without_mere_rows(unfold(Program((named,)), heads).rules, given)
        if is_same:
            return rules, known
        return found or [replace(rules[0], body=(*rules[0].body, NullTest(Constant(None))))], given

    def _products_of(
        self, rule: Rule, known: Mapping[Predicate, Extension]
    ) -> tuple[Rule, dict[Predicate, Sequence[Factored]]]:
        """The products that a rule joins, if what they are of can stand in their place; and the rule.

        A product of several rules has a name for each subgoal there, for each is joined with the rows of all of them.
        """
        body, found = list(rule.body), dict[Predicate, Sequence[Factored]]()
        for number, atom in enumerate(rule.body):
            if isinstance(atom, Atom):
                ways, name = self._products.get(known[atom.predicate].stored, ()), atom.predicate
                if ways and all(is_unfoldable(one.rule) for one in ways):
                    if len(ways) > 1:
                        name = Predicate("way", Version.STEP, (number,))
                        body[number] = replace(atom, predicate=name)
                    found[name] = ways
        is_few = math.prod(map(len, found.values())) <= _MOST_WAYS
        return (replace(rule, body=tuple(body)), found) if is_few else (rule, {})

    def _without_mere_rows(
        self, rules: Iterable[Rule], known: Mapping[Predicate, Extension]
    ) -> Iterator[Rule]:
        """The rules without the parts that only have to have a row; without those of which one has none."""
        for rule in rules:
            parts, links = independent_parts(rule)
            needed = [part for part in parts if links or part.head.terms]
            if all(self.matches.has_match(part, known) for part in parts if part not in needed):
                body = tuple(literal for part in needed for literal in part.body)
                yield replace(rule, body=(*body, *links))

    def _factored(self, rule: Rule, known: Mapping[Predicate, Extension]) -> Factored | None:
        """A rule over the rows of its independent parts, if it has several."""
        parts, links = independent_parts(rule)
        together = linked_parts(rule, parts, links)
        if len(parts) == 1:
            return None
        if len(together) == 1 and all(map(is_bare, parts)):
            require_few(rule, (known[atom.predicate] for atom in rule.atoms), self._most_joined)
            return None
        if len(together) > 1:
            parts, links = together, ()
        found = [self.table([part], known) for part in parts]
        whole, given = over_parts(rule, parts, links, found, known if links else {})
        if links:
            require_few(rule, found, self._most_joined)
        rows = math.prod(map(most_rows, found))
        return Factored(whole, read_by([whole], given), None if links else rows)

    def _product(
        self,
        rules: Sequence[Rule],
        factored: Sequence[Factored | None],
        known: Mapping[Predicate, Extension],
    ) -> Extension:
        """The rows of some rules of independent parts, which are many: put together when they are used."""
        ways = [
            one if one and one.rows is not None else self._as_one_part(rule, known)
            for rule, one in zip(rules, factored, strict=True)
        ]
        given = {p: its for one in ways for p, its in one.given.items()}
        made = written([one.rule for one in ways], given)
        most = sum(one.rows or 0 for one in ways)
        is_exact = len(ways) == 1 and all(its.stored.known_rows is not None for its in given.values())
        layout = Layout(most) if is_exact else Layout(most=most)
        stored = self._database.view(made.query(), made.types, [one.stored for one in given.values()], layout)
        self._products[stored] = tuple(ways)
        return Extension(stored, made.not_null)

    def _as_one_part(self, rule: Rule, known: Mapping[Predicate, Extension]) -> Factored:
        found = self.table([rule], known)
        terms = tuple(Variable(f"X{i}") for i in range(rule.head.arity))
        part = replace(rule, head=replace(rule.head, terms=terms))
        return Factored(*over_parts(part, [part], (), [found], {}), most_rows(found))

    def first_rows(self, stored: Stored, limit: int) -> Stored:
        """What has the same first rows: of a product, the product of the first rows of its parts."""
        if stored not in self._products:
            return stored
        ways, first = self._products[stored], dict[Predicate, Extension]()
        for predicate, one in ((p, its) for way in ways for p, its in way.given.items()):
            query = sql.rows(one.stored.name, len(one.stored.types), limit=limit, ordered=True)
            table = self._database.table(query, one.stored.types, [one.stored.name])
            first[predicate] = Extension(table, one.not_null)
        made = written([one.rule for one in ways], first)
        return self._database.view(made.query(), made.types, [one.stored for one in first.values()])


def _given(facts: Facts[Relation]) -> dict[Predicate, Extension]:
    return {
        predicate: Extension(
            relation.stored,
            facts.not_null.get(predicate, frozenset()) | relation.stored.layout.never_null,
            facts.dependencies.get(predicate, NOTHING_PROMISED),
        )
        for predicate, relation in facts.relations.items()
    }


def _rows_here(extension: Extension) -> int:
    return len(extension.stored.here or ())
