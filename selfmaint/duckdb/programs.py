"""Whole programs, bottom up: one relation a predicate, so that sizes are known and nothing is computed twice."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from weakref import WeakKeyDictionary

from datalog.analysis.dependency import evaluation_order
from datalog.model import Atom, Constant, Negation, NullTest, Predicate, Program, Row, Rule, Version
from datalog.rewrite.independent import independent_parts, linked_parts
from datalog.rewrite.reachable import predicates_of
from datalog.rewrite.unfold import is_unfoldable, unfold
from datalog.sql import duckdb as sql
from datalog.sql.duckdb import SqlType
from selfmaint.duckdb.database import Database, Relation, Stored, writing_sql
from selfmaint.duckdb.extensions import Extension
from selfmaint.duckdb.fetched import KEYS, STORED, Fetched, Lookup, lookup_of, one_by_one
from selfmaint.duckdb.few_rows import computed_here, may_derive
from selfmaint.duckdb.layouts import finding
from selfmaint.engine.plans import over_tables, prepared, without_columns
from selfmaint.engine.protocol import Asked, Facts, Layout

MOST_HELD = 5_000
"""Of so many predicates the rows are kept for the next program that has the same rules over the same tables."""

MOST_ROWS_HELD = 1_000_000
"""Of the rows that are held so many are in this process; DuckDB can put those that it holds on the disk."""

MOST_MULTIPLIED = 100_000
"""So many rows of independent parts are put together at once."""

MOST_PLANS = 16
"""So many programs as they are evaluated are kept: what was found out is asked for again to be told."""


class Programs:
    """Evaluates programs in one database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.most_multiplied = MOST_MULTIPLIED
        self._held: OrderedDict[object, Extension] = OrderedDict()
        self._rows_held = 0
        self._matches: dict[object, bool] = {}
        self._products: WeakKeyDictionary[Stored, tuple[Rule, Mapping[Predicate, Extension]]] = (
            WeakKeyDictionary()
        )
        self._plans: OrderedDict[object, Program] = OrderedDict()
        self.fetched = Fetched(self.made)

    def release(self) -> None:
        """Lets go of the rows of all predicates."""
        self._held.clear()
        self._rows_held = 0
        self._matches.clear()
        self._plans.clear()
        self.fetched.release()

    def extensions(
        self, program: Program, goals: Sequence[Predicate], facts: Facts[Relation]
    ) -> dict[Predicate, Stored]:
        """The rows of some predicates with rules, each once.

        Raises:
            ReadRefusedError: SM403 a rule reads a predicate that has neither rules nor facts.
            InputError: SM502 DuckDB compares otherwise than Spark; SM104 a value that does not fit its type.
        """
        known = self._derived(self._prepared(program, goals, facts), facts, ())
        return {goal: known[goal].stored for goal in goals}

    def nonempty(
        self, program: Program, goals: Sequence[Predicate], facts: Facts[Relation]
    ) -> frozenset[Predicate]:
        """Which predicates have a row: those that they use are evaluated whole, they themselves to a first row.

        What their own columns hold is not asked, so that nothing is read for it.
        """
        distinct = list(dict.fromkeys(goals))
        needed = self._prepared(without_columns(program, distinct), distinct, facts)
        rules = needed.by_head()
        used = {p for rule in needed.rules for p in predicates_of(rule.body)}
        known = self._derived(needed, facts, [goal for goal in distinct if goal not in used])
        found = set()
        for goal in distinct:
            if goal in known:
                has_row = self._has_row(known[goal].stored)
            else:
                has_row = goal in rules and self._holds(rules[goal], known)
            if has_row:
                found.add(goal)
        return frozenset(found)

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
                    stored = given[lookup.stored]
                    name = stored.stored.number, stored.not_null
                    self.fetched.foresee(lookup, known[lookup.keys], name)
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
            self._plans[key] = prepared(program, goals, types, facts.small, found_by)
            if len(self._plans) > MOST_PLANS:
                self._plans.popitem(last=False)
        return self._plans[key]

    def _has_row(self, stored: Stored) -> bool:
        if stored.rows is not None:
            return stored.rows > 0
        query = sql.rows(stored.name, len(stored.types), limit=1)
        return bool(self._database.plain_rows(query, [stored.name]))

    def _holds(self, rules: Sequence[Rule], known: Mapping[Predicate, Extension]) -> bool:
        """Whether some rule has a row."""
        marks = (replace(rule, head=Atom(rule.head.predicate, ())) for rule in rules)
        return any(self._falls_together(mark, known) for mark in marks)

    def _falls_together(self, mark: Rule, known: Mapping[Predicate, Extension]) -> bool:
        """Whether each independent part of a rule without columns has a row, and the links let some through."""
        parts, links = independent_parts(mark)
        if not links:
            return all(self._has_match(part, known) for part in parts)
        together = linked_parts(mark, parts, links)
        if len(together) > 1:
            return all(self._falls_together(part, known) for part in together)
        if all(map(_is_bare, parts)):
            return self._has_match(mark, known)
        found = [self.table([part], known) for part in parts]
        return all(map(self._has_rows, found)) and self._has_match(
            *_over_parts(mark, parts, links, found, known)
        )

    def _has_rows(self, extension: Extension) -> bool:
        return self._has_row(extension.stored)

    def _has_match(self, mark: Rule, known: Mapping[Predicate, Extension]) -> bool:
        """Whether a rule without columns has a row; found once over the same tables."""
        read = self._read([mark], known)
        key = over_tables(mark, {p: (one.stored.number, one.not_null) for p, one in read.items()})
        if key not in self._matches:
            here = self._computed_here([mark], read)
            if here is not None:
                self._matches[key] = bool(here[0])
            elif not may_derive(mark, read):
                self._matches[key] = False
            else:
                made = self._written([mark], read)
                names = [extension.stored.name for extension in read.values()]
                with self._database.join_order.as_written():
                    rows = (self._database.plain_rows(sql.first(query), names) for query in made.queries)
                    self._matches[key] = any(rows)
        return self._matches[key]

    def _derived(
        self, program: Program, facts: Facts[Relation], without: Sequence[Predicate]
    ) -> dict[Predicate, Extension]:
        """The rows of everything that a program reads or defines, but for some that nothing else uses."""
        known = _given(facts)
        rules = program.by_head()
        self.fetched.expect(rules.values())
        for predicate in rules:
            known.pop(predicate, None)
        for predicate in evaluation_order(program):
            if predicate not in without:
                known[predicate] = self.table(rules[predicate], known)
        return known

    def table(self, rules: Sequence[Rule], known: Mapping[Predicate, Extension]) -> Extension:
        """The rows of one predicate: those kept, if its rules have been evaluated over the same tables."""
        read = self._read(rules, known)
        named = {p: (one.stored.number, one.not_null) for p, one in read.items()}
        key = tuple(over_tables(rule, named) for rule in rules)
        if key not in self._held:
            asked = lookup_of(rules)
            if asked is None or read[asked.stored].stored.rows is not None:
                self._held[key] = self.made(rules, read)
            else:
                self._held[key] = self._looked_up(asked, read)
            self._rows_held += _rows_here(self._held[key])
            while len(self._held) > MOST_HELD or self._rows_held > MOST_ROWS_HELD:
                self._rows_held -= _rows_here(self._held.popitem(last=False)[1])
        self._held.move_to_end(key)
        return self._held[key]

    def _looked_up(self, asked: Lookup, read: Mapping[Predicate, Extension]) -> Extension:
        stored = read[asked.stored]
        found = self.fetched.rows(
            asked,
            read[asked.keys],
            (stored.stored.number, stored.not_null),
            lambda rule, keys: self.made(one_by_one(rule, keys, stored), {KEYS: keys, STORED: stored}),
        )
        assert found is not None
        return found

    def made(self, rules: Sequence[Rule], known: Mapping[Predicate, Extension]) -> Extension:
        """The rows of one predicate, computed now."""
        rules, known = self._over_factors(rules, known)
        read = self._read(rules, known)
        here = self._computed_here(rules, read)
        if here is not None:
            few = self._database.computed(*here)
            return Extension(few, frozenset(range(len(few.types))) - few.with_null)
        product = self._product(rules, known) if len(rules) == 1 else None
        if product is not None:
            return product
        made = self._written(rules, read)
        if not any(may_derive(rule, read) for rule in rules):
            made = replace(made, queries=())
        names = [extension.stored.name for extension in read.values()]
        with self._database.join_order.as_written():
            stored = self._database.table(made.query(), made.types, names if made.queries else ())
        return Extension(stored, made.not_null)

    def _over_factors(
        self, rules: Sequence[Rule], known: Mapping[Predicate, Extension]
    ) -> tuple[Sequence[Rule], Mapping[Predicate, Extension]]:
        """The rules without products: over what these are of, and without what only has to have a row."""
        read = self._read(rules, known)
        joined = {atom.predicate for rule in rules for atom in rule.atoms}
        products = {p: self._products[read[p].stored] for p in joined if read[p].stored in self._products}
        products = {p: (whole, given) for p, (whole, given) in products.items() if is_unfoldable(whole)}
        if not products:
            return rules, known
        known = {**known, **{p: one for _, given in products.values() for p, one in given.items()}}
        heads = {
            p: replace(whole, head=replace(whole.head, predicate=p)) for p, (whole, _) in products.items()
        }
        found = []
        for rule in unfold(Program(tuple(rules)), heads).rules:
            parts, links = independent_parts(rule)
            needed = [part for part in parts if links or part.head.terms]
            if all(self._has_match(part, known) for part in parts if part not in needed):
                body = tuple(literal for part in needed for literal in part.body)
                found.append(replace(rule, body=(*body, *links)))
        return found or [replace(rules[0], body=(*rules[0].body, NullTest(Constant(None))))], known

    def _product(self, rules: Sequence[Rule], known: Mapping[Predicate, Extension]) -> Extension | None:
        """The rows of a rule of independent parts, if those are many: put together when they are used."""
        (rule,) = rules
        parts, links = independent_parts(rule)
        together = linked_parts(rule, parts, links)
        if len(parts) == 1 or (len(together) == 1 and all(map(_is_bare, parts))):
            return None
        if len(together) > 1:
            parts, links = together, ()
        found = [self.table([part], known) for part in parts]
        rows = math.prod(1 if one.stored.rows is None else one.stored.rows for one in found)
        if links:
            whole, given = _over_parts(rule, parts, links, found, known)
            return self.made([whole], given)
        if rows <= self.most_multiplied:
            return None
        whole, given = _over_parts(rule, parts, (), found, {})
        made = self._written([whole], given)
        its = [one.stored for one in found]
        stored = self._database.view(made.query(), made.types, its, Layout(rows))
        self._products[stored] = whole, given
        return Extension(stored, made.not_null)

    def first_rows(self, stored: Stored, limit: int) -> Stored:
        """What has the same first rows: of a product, the product of the first rows of its parts."""
        if stored not in self._products:
            return stored
        rule, given = self._products[stored]
        first = {}
        for predicate, one in given.items():
            query = sql.rows(one.stored.name, len(one.stored.types), limit=limit, ordered=True)
            table = self._database.table(query, one.stored.types, [one.stored.name])
            first[predicate] = Extension(table, one.not_null)
        made = self._written([rule], first)
        return self._database.view(made.query(), made.types, [one.stored for one in first.values()])

    def _computed_here(
        self, rules: Sequence[Rule], read: Mapping[Predicate, Extension]
    ) -> tuple[frozenset[Row], tuple[SqlType, ...]] | None:
        return computed_here(rules, read) if self._database.most_few else None

    def _read(
        self, rules: Sequence[Rule], known: Mapping[Predicate, Extension]
    ) -> dict[Predicate, Extension]:
        return {p: known[p] for rule in rules for p in predicates_of(rule.body)}

    def _written(self, rules: Sequence[Rule], read: Mapping[Predicate, Extension]) -> sql.Derived:
        tables = {p: extension.table() for p, extension in read.items()}
        with writing_sql():
            return sql.derived(rules, tables, {p: one.stored.types for p, one in read.items()})


def _given(facts: Facts[Relation]) -> dict[Predicate, Extension]:
    return {
        predicate: Extension(
            relation.stored,
            facts.not_null.get(predicate, frozenset()) | relation.stored.layout.never_null,
        )
        for predicate, relation in facts.relations.items()
    }


def _is_bare(part: Rule) -> bool:
    """Whether a part is the rows of one predicate, as they are."""
    return len(part.body) == 1 and isinstance(part.body[0], Atom) and part.body[0].terms == part.head.terms


def _over_parts(
    rule: Rule,
    parts: Sequence[Rule],
    links: Sequence[Negation],
    found: Sequence[Extension],
    known: Mapping[Predicate, Extension],
) -> tuple[Rule, dict[Predicate, Extension]]:
    """A rule over the rows of its independent parts, and what it reads."""
    names = [Predicate("part", Version.STEP, (one.stored.number,)) for one in found]
    atoms = (Atom(name, part.head.terms) for name, part in zip(names, parts, strict=True))
    return replace(rule, body=(*atoms, *links)), {**known, **dict(zip(names, found, strict=True))}


def _rows_here(extension: Extension) -> int:
    return len(extension.stored.here or ())
