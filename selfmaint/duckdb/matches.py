"""Whether rules have a row: asked of as little as tells."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from datalog.copies import replace
from datalog.model import Atom, Negation, Predicate, Rule, Version, variables_of
from datalog.rewrite.independent import independent_parts, linked_parts
from datalog.rewrite.reachable import predicates_of
from datalog.sql.duckdb import relations as sql
from selfmaint.duckdb.database import Database
from selfmaint.duckdb.extensions import Extension, Extensions, read_by, written
from selfmaint.duckdb.factors import is_bare, most_rows, over_parts
from selfmaint.duckdb.few_rows import computed_here, may_derive
from selfmaint.engine.plans import over_tables

MANY, FIRST = 1_000_000, 10_000
"""Where more combinations of rows might match, the first matches are looked at before the others."""


class Matches:
    """Asks one database, in which `table` gives the rows of a predicate; the same question once."""

    def __init__(self, database: Database, table: Callable[[Sequence[Rule], Extensions], Extension]) -> None:
        self._database, self._table = database, table
        self.many, self.first = MANY, FIRST
        self._found: dict[object, bool] = {}

    def release(self) -> None:
        """Forgets what was found."""
        self._found.clear()

    def hold(self, rules: Sequence[Rule], known: Extensions) -> bool:
        """Whether some rule has a row."""
        marks = (replace(rule, head=Atom(rule.head.predicate, ())) for rule in rules)
        return any(self._falls_together(mark, known) for mark in marks)

    def has_rows(self, extension: Extension) -> bool:
        """Whether a predicate has a row."""
        stored = extension.stored
        if stored.rows is not None:
            return stored.rows > 0
        query = sql.rows(stored.name, len(stored.types), limit=1)
        return bool(self._database.plain_rows(query, [stored.name]))

    def has_match(self, mark: Rule, known: Extensions, *, early: bool = True) -> bool:
        """Whether a rule without columns has a row; found once over the same tables."""
        read = read_by([mark], known)
        key = over_tables(mark, {p: one.named for p, one in read.items()})
        if key not in self._found:
            here = computed_here([mark], read) if self._database.most_few else None
            if here is not None:
                self._found[key] = bool(here[0])
            else:
                self._found[key] = may_derive(mark, read) and (
                    (early and self._has_early_match(mark, read)) or self._has_any_match(mark, read)
                )
        return self._found[key]

    def some(self, rules: Sequence[Rule], read: Mapping[Predicate, Extension]) -> Extension | None:
        """Rows that some rules have for the first matches of their atoms; None where all matches are not too many."""
        found = list[Rule]()
        given = dict(read)
        for number, rule in enumerate(rules):
            first = None
            if math.prod(most_rows(read[atom.predicate]) for atom in rule.atoms) > self.many:
                first = self._first_of(rule, read, number, least=self.many)
            if first is None:
                found.append(rule)
            else:
                rest, table = first
                given |= table
                found.append(rest)
        if len(given) == len(read):
            return None
        its = read_by(found, given)
        made = written(found, its)
        names = [extension.stored.name for extension in its.values()]
        return Extension(self._database.table(made.query(), made.types, names), made.not_null)

    def _first_of(
        self, rule: Rule, read: Mapping[Predicate, Extension], number: int = 0, *, least: int = 0
    ) -> tuple[Rule, dict[Predicate, Extension]] | None:
        """A rule over the first matches of its atoms, and these; None if there are not more than `least`."""
        first, rest = _first_and_rest(rule, number)
        its = read_by([first], read)
        made = written([first], its)
        if len(made.queries) != 1:
            return None
        names = [extension.stored.name for extension in its.values()]
        if least:
            counting = sql.joined_rows(made.queries[0], least + 1, negating=True)
            ((matches,),) = self._database.plain_rows(counting, names)
            if matches <= least:
                return None
        table = self._database.table(made.queries[0].limit(self.first, copy=False), made.types, names)
        return rest, {first.head.predicate: Extension(table, made.not_null)}

    def _falls_together(self, mark: Rule, known: Extensions) -> bool:
        """Whether each independent part of a rule without columns has a row, and the links let some through."""
        parts, links = independent_parts(mark)
        if not links:
            return all(self.has_match(part, known) for part in parts)
        together = linked_parts(mark, parts, links)
        if len(together) > 1:
            return all(self._falls_together(part, known) for part in together)
        if all(map(is_bare, parts)):
            return self.has_match(mark, known)
        found = [self._table([part], known) for part in parts]
        return all(map(self.has_rows, found)) and self.has_match(
            *over_parts(mark, parts, links, found, known)
        )

    def _has_early_match(self, mark: Rule, read: Mapping[Predicate, Extension]) -> bool:
        """Whether one of the first matches of the atoms passes what is negated: most questions end so.

        An engine compares all matches with what is negated before it gives the first that passes.
        """
        most = math.prod(most_rows(read[atom.predicate]) for atom in mark.atoms)
        if most <= self.many or not _first_and_rest(mark)[0].head.terms:
            return False
        first = self._first_of(mark, read)
        return first is not None and self.has_match(first[0], {**read, **first[1]}, early=False)

    def _has_any_match(self, mark: Rule, read: Mapping[Predicate, Extension]) -> bool:
        made = written([mark], read)
        names = [extension.stored.name for extension in read.values()]
        with self._database.tuning.as_written():
            rows = (self._database.plain_rows(query.limit(1, copy=False), names) for query in made.queries)
            return any(rows)


def _first_and_rest(rule: Rule, number: int = 0) -> tuple[Rule, Rule]:
    """A rule in two: its matches but for what is negated, and which of them that lets through.

    The matches have the variables that the head and what is negated share with the atoms.
    """
    negated = [li for li in rule.body if isinstance(li, Negation) and next(predicates_of([li]), None)]
    others = tuple(literal for literal in rule.body if literal not in negated)
    inside = {*variables_of([rule.head, *negated])}
    step = Atom(
        Predicate("first", Version.STEP, (number,)), tuple(v for v in variables_of(others) if v in inside)
    )
    return Rule(step, others), replace(rule, body=(step, *negated))
