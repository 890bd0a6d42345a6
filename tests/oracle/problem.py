"""A case and its answer: the format, and the definition of consistency."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypedDict

from .column_types import KINDS, check_types, fits
from .constraints import Constraints, ForeignKey
from .program import parse_program
from .rules import Constant, Row, Rule, Value, Variable, contents, ordered

Rows = Sequence[Sequence[Value]]
Fact = tuple[str, Row]
Facts = frozenset[Fact]
Database = dict[str, list[list[Value]]]


class _Situation(TypedDict):
    """What every case says."""

    relations: Mapping[str, int]
    program: str
    views: Mapping[str, Rows]


class Case(_Situation, total=False):
    """A situation: what is known, and the update."""

    id: str
    insert: Mapping[str, Rows]
    delete: Mapping[str, Rows]
    effective: bool
    access: Mapping[str, Rows]
    present: Mapping[str, Rows]
    absent: Mapping[str, Rows]
    nullable: Mapping[str, Sequence[int]]
    """The columns that may hold NULL; but a key's never do, nor those of ``not_null``."""
    not_null: Mapping[str, Sequence[int]]
    keys: Mapping[str, Sequence[int]]
    unique: Mapping[str, Sequence[Sequence[int]]]
    foreign_keys: Sequence[tuple[str, Sequence[int], str, Sequence[int]]]
    """Each: child, its columns, parent, the columns referred to."""
    types: Mapping[str, Sequence[str]]
    """A type of `column_types.KINDS` per column; "any" if not given."""
    domains: Mapping[str, Sequence[Sequence[Constant]]]
    """All constants that each column may hold before the update."""


class _Decision(TypedDict):
    """What every answer says."""

    self_maintainable: bool


class Answer(_Decision, total=False):
    """The answer for one view: its new state, or two databases that disagree on it."""

    state: list[list[Value]]
    witness: tuple[Database, Database]


Answers = dict[str, Answer]


@dataclass(frozen=True)
class Problem:
    """A case, checked, with rules parsed and rows as facts."""

    arities: Mapping[str, int]
    rules: Mapping[str, tuple[Rule, ...]]
    """Those of each view."""
    views: Mapping[str, frozenset[Row]]
    inserted: Facts
    deleted: Facts
    readable: Mapping[str, frozenset[Row]]
    """The contents before the update of the relations that may be read."""
    present: Facts
    """Rows of readable relations, and deleted rows if effective, included."""
    absent: Facts
    """Inserted rows included if effective."""
    nullable: Mapping[str, frozenset[int]]
    constraints: Constraints
    types: Mapping[str, Sequence[str]]
    domains: Mapping[str, Sequence[Sequence[Constant]]]

    @classmethod
    def of(cls, case: Case) -> Problem:
        """Read a case; raise ValueError if it is malformed."""
        inserted = facts_of(case.get("insert", {}))
        deleted = facts_of(case.get("delete", {}))
        present = facts_of(case.get("present", {})) | facts_of(case.get("access", {}))
        absent = facts_of(case.get("absent", {}))
        if case.get("effective", False):
            present, absent = present | deleted, absent | inserted
        rules = parse_program(case["program"])
        heads = dict.fromkeys(rule.head.name for rule in rules)
        problem = cls(
            arities=case["relations"],
            rules={name: tuple(r for r in rules if r.head.name == name) for name in heads},
            views=_contents(case["views"]),
            inserted=inserted,
            deleted=deleted,
            readable=_contents(case.get("access", {})),
            present=present,
            absent=absent,
            nullable=_nullable(case),
            constraints=_constraints(case),
            types=case.get("types", {}),
            domains=case.get("domains", {}),
        )
        problem.check()
        return problem

    def check(self) -> None:
        """Refuse what has no meaning here."""
        if self.rules.keys() != self.views.keys():
            raise ValueError("expected rules and contents for every view")
        check_types(self.types, self.arities)
        given = self.inserted | self.deleted | self.present | self.absent
        atoms = [(a.name, len(a.terms)) for rules in self.rules.values() for r in rules for a in r.body]
        for name, arity in [*((name, len(row)) for name, row in given), *atoms]:
            if self.arities.get(name) != arity:
                raise ValueError(f"there is no relation {name} with {arity} columns")
        for name, rows in self.views.items():
            widths = {len(rule.head.terms) for rule in self.rules[name]}
            if len(widths) != 1 or any(len(row) not in widths for row in rows):
                raise ValueError(f"a row, or a rule, of view {name} has the wrong length")
        if self.inserted & self.deleted:
            raise ValueError("a row is both inserted and deleted")
        if not all(map(self.storable, self.inserted)):
            raise ValueError("an inserted row has what its columns cannot hold")

    def storable(self, fact: Fact) -> bool:
        """Whether the fact has what its columns can hold, as to NULL and types."""
        name, row = fact
        nulls = {column for column, value in enumerate(row) if value is None}
        types = self.types.get(name, ("any",) * len(row))
        typed = all(value is None or fits(value, its) for value, its in zip(row, types, strict=True))
        return typed and nulls <= self.nullable.get(name, frozenset())

    def columns(self) -> Iterator[tuple[str, int]]:
        """All columns of the relations: name and position."""
        yield from ((name, i) for name, arity in self.arities.items() for i in range(arity))

    def kind(self, name: str, position: int) -> str:
        """The declared kind of a relation's column: a value of `column_types.KINDS`."""
        return KINDS[self.types[name][position]] if name in self.types else "any"

    def inside(self, fact: Fact) -> bool:
        """Whether the fact keeps to the domains of its columns."""
        name, row = fact
        domains = self.domains.get(name)
        return domains is None or all(v is None or v in its for v, its in zip(row, domains, strict=True))

    def excluded(self, fact: Fact) -> bool:
        """Whether it is known, without the views, that no database has the fact."""
        name, row = fact
        unread = row not in self.readable.get(name, (row,))
        return fact in self.absent or unread or not (self.storable(fact) and self.inside(fact))

    @cached_property
    def constants(self) -> frozenset[Value]:
        """All constants that the case or its rules mention; not NULL."""
        rows = [row for rows in self.views.values() for row in rows]
        given = self.inserted | self.deleted | self.present | self.absent
        rows += [row for _, row in given]
        rules = [rule for rules in self.rules.values() for rule in rules]
        terms = [t for rule in rules for a in (rule.head, *rule.body) for t in a.terms]
        terms += [t for rule in rules for c in rule.comparisons for t in (c.left, c.right)]
        known = [term for term in terms if not isinstance(term, Variable)]
        return frozenset(value for row in [*rows, known] for value in row) - {None}

    def fresh_constants(self, count: int | None) -> list[Value]:
        """So many constants that the case does not mention; by default, enough."""
        if count is None:
            rules = [rule for rules in self.rules.values() for rule in rules]
            count = max((len(rule.variables) for rule in rules), default=0)
        names = (f"fresh{number}" for number in itertools.count(1))
        unused = (name for name in names if name not in self.constants)
        return list(itertools.islice(unused, count))

    def values(self, pool: Collection[Value]) -> list[Value]:
        """The mentioned constants, in a fixed order, then those of the pool."""
        return [row[0] for row in ordered([(c,) for c in self.constants])] + list(pool)

    def facts_over(self, pool: Collection[Value]) -> Iterator[Fact]:
        """All facts that can be stored, over the mentioned constants and the pool."""
        values = self.values(pool)
        for name, arity in self.arities.items():
            nullable = self.nullable.get(name, frozenset())
            columns = ([*values, None] if i in nullable else values for i in range(arity))
            yield from ((name, row) for row in itertools.product(*columns))

    @cached_property
    def forced(self) -> Facts | None:
        """Facts that every consistent database has; None if a view row has no reason.

        A row that only one rule can give has that rule's subgoals, as far as the head grounds them.
        """
        facts = set(self.present)
        for name, rows in self.views.items():
            for row in rows:
                found = [(rule, rule.match(rule.head, row, {})) for rule in self.rules[name]]
                reasons = [(rule, binding) for rule, binding in found if binding is not None]
                if not reasons:
                    return None
                rule, binding = reasons[0]
                ground = [a for a in rule.body if binding.keys() >= {*a.variables}]
                facts |= {(a.name, a.ground(binding)) for a in ground if len(reasons) == 1}
        return frozenset(facts)

    def explained_by(self, facts: Facts) -> bool:
        """Whether a database is consistent with all that is known."""
        if not self.present <= facts or any(map(self.excluded, facts)):
            return False
        before, after = grouped(facts), grouped(self.updated(facts))
        return (
            self.constraints.hold(before)
            and self.constraints.hold(after)
            and all(contents(rules, before) == self.views[name] for name, rules in self.rules.items())
        )

    def updated(self, facts: Facts) -> Facts:
        """The database after the update."""
        return (facts - self.deleted) | self.inserted


def _nullable(case: Case) -> dict[str, frozenset[int]]:
    never = (case.get("keys", {}), case.get("not_null", {}))
    return {
        name: frozenset(positions).difference(*(given.get(name, ()) for given in never))
        for name, positions in case.get("nullable", {}).items()
    }


def _constraints(case: Case) -> Constraints:
    """Read the constraints; raise ValueError if one is about columns that are not there."""
    uniques = {name: [tuple(key)] for name, key in case.get("keys", {}).items()}
    for name, several in case.get("unique", {}).items():
        uniques.setdefault(name, []).extend(map(tuple, several))
    foreign_keys = tuple(map(_foreign_key, case.get("foreign_keys", ())))
    used = [(name, positions) for name, several in uniques.items() for positions in several]
    used += [side for k in foreign_keys for side in ((k.child, k.columns), (k.parent, k.targets))]
    for name, positions in used:
        if not all(0 <= position < case["relations"].get(name, 0) for position in positions):
            raise ValueError(f"a constraint is about columns {positions} of {name}")
    return Constraints({name: tuple(several) for name, several in uniques.items()}, foreign_keys)


def _foreign_key(written: tuple[str, Sequence[int], str, Sequence[int]]) -> ForeignKey:
    child, columns, parent, targets = written
    if len(columns) != len(targets):
        raise ValueError(f"{written!r} is no foreign key")
    return ForeignKey(child, tuple(columns), parent, tuple(targets))


def _contents(relations: Mapping[str, Rows]) -> dict[str, frozenset[Row]]:
    return {name: frozenset(map(tuple, rows)) for name, rows in relations.items()}


def facts_of(relations: Mapping[str, Rows]) -> Facts:
    """Pair each row with its relation's name."""
    return frozenset((name, tuple(row)) for name, rows in relations.items() for row in rows)


def grouped(facts: Collection[Fact]) -> dict[str, set[Row]]:
    """Gather the rows of each relation."""
    relations: dict[str, set[Row]] = {}
    for name, row in facts:
        relations.setdefault(name, set()).add(row)
    return relations


def database_of(problem: Problem, facts: Facts) -> Database:
    """Write a database with all relations, rows sorted."""
    relations = grouped(facts)
    return {name: ordered(relations.get(name, ())) for name in problem.arities}


def verdict(problem: Problem, states: Mapping[frozenset[Row], Facts]) -> Answer:
    """The answer, given the new states that there are and a database for each."""
    if len(states) == 1:
        (state,) = states
        return {"self_maintainable": True, "state": ordered(state)}
    first, second = list(states.values())[:2]
    witness = database_of(problem, first), database_of(problem, second)
    return {"self_maintainable": False, "witness": witness}
