"""Demanded rows that several programs use, as relations of their own that are computed once.

Before: `p(X) :- new(X, Y), r@demanded(Y, Z).`, `q(X) :- new(X, Y), not r@demanded(Y, X).`, each with the rules
        `r@demanded(Y, Z) :- r@demand(Y), r(Y, Z).  r@demand(Y) :- new(X, Y).`
After:  these rules once, of rows that are held, and `p` and `q` over them.

The programs come from a demand transformation, each with demands of its own. Rows of other values are apart: held
together they would be more than either asks for. So are rows with other columns, unless one has those of the other.
Looked-up rows that a negation reads are held for one program, too: Spark would compare all rows of the relation.

Conditions of soundness:

1. Predicates of one name and version with equal rules over equal predicates have equal rows, and are one.
2. A demand that has the values of another one, and no others, is that one.
3. Sets do not show how often a row is derived: rows with more columns are as good where a body does not read them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, count

from msgspec import Struct, field

from datalog.analysis.dependency import evaluation_order
from datalog.copies import replace
from datalog.model import (
    Atom,
    Literal,
    Negation,
    Predicate,
    Program,
    Rule,
    Variable,
    Version,
    apply_rule,
    variables_of,
)
from datalog.rewrite.reachable import drop_unreachable, predicates_of
from datalog.rewrite.unused_columns import Columns, drop_unused_columns, used_columns


class Held(Struct, frozen=True):
    """Rows that are computed once.

    Attributes:
        rows: what programs call them.
        by: the columns that they are looked up by, if they are rows of a relation without rules.
        program: their rules, over relations without rules, and over other such rows before them.
        whole: the same, over relations without rules alone.
    """

    rows: Predicate
    by: Columns
    program: Program
    whole: Program


def held_apart(asked: Sequence[tuple[Program, Predicate]]) -> tuple[tuple[Held, ...], tuple[Program, ...]]:
    """The demanded rows that several of some programs use, each behind those that it needs; the programs over them.

    Args:
        asked: programs as `demand` makes them, each with its goal, which no other one has.
    """
    every, goals_as_rows = _together(asked)
    order = [p for p in evaluation_order(every) if p.version is Version.DEMANDED]
    goals = [_User(every, goal, None, frozenset(order)) for _, goal in asked]
    users, held, taken = list(goals), list[tuple[Predicate, _User]](), set(every.heads)
    for predicate in reversed(order):
        for user in goals:
            if goals_as_rows.get(user.goal) == predicate and any(
                predicate in other.columns for other in users
            ):
                user.read(predicate)
        wanted = {n: its for n, user in enumerate(users) if (its := user.columns.get(predicate)) is not None}
        parts = dict[Columns, Predicate]()
        made = _User(every, predicate, None, frozenset(order))
        is_denied = bool(made.by) and any(predicate in users[n].denied for n in wanted)
        for columns in _parts(wanted.values()) or (wanted.values() if is_denied else ()):
            parts[columns] = _unused(predicate, taken)
            taken.add(parts[columns])
            made = _User(every, predicate, columns, frozenset(order))
            held.append((parts[columns], made))
            users.append(made)
        for n, columns in wanted.items():
            fitting = min((part for part in parts if set(columns) <= set(part)), key=len, default=None)
            if fitting is None:
                users[n].compute(predicate)
            else:
                users[n].parts[predicate] = parts[fitting], fitting
    found = tuple(Held(rows, user.by, user.program(rows), user.whole(rows)) for rows, user in reversed(held))
    return found, tuple(user.program(user.goal) for user in goals)


class _User(Struct, dict=True):
    """A goal, or some columns of rows that are held, and the held rows that its rules read.

    Attributes:
        apart: the predicates whose rules it leaves out.
        parts: what it reads of those: as what predicate, with which of the columns.
    """

    every: Program
    goal: Predicate
    kept: Columns | None
    apart: frozenset[Predicate]
    parts: dict[Predicate, tuple[Predicate, Columns]] = field(default_factory=dict)

    def compute(self, predicate: Predicate) -> None:
        """Computes some rows by itself."""
        self.apart -= {predicate}
        self._forget()

    def _forget(self) -> None:
        for found in ("needed", "columns", "denied"):
            self.__dict__.pop(found, None)

    def read(self, rows: Predicate) -> None:
        """Reads rows that have the same rules as the goal."""
        (head, *_) = (r.head for r in self.every.rules if r.head.predicate == self.goal)
        terms = tuple(Variable(f"X{i}") for i in range(head.arity))
        rule = Rule(replace(head, terms=terms), (Atom(rows, terms),))
        self._forget()
        self.__dict__["needed"] = replace(self.every, rules=(rule,))

    @cached_property
    def needed(self) -> Program:
        """The rules, with the columns that are used, and with all of rows that are held."""
        others = self.apart - {self.goal}
        rules = (self._cut(r) for r in self.every.rules if r.head.predicate not in others)
        return drop_unused_columns(replace(self.every, rules=tuple(rules)), [self.goal])

    @cached_property
    def columns(self) -> dict[Predicate, Columns]:
        """The columns that are used of rows that are held."""
        found: dict[Predicate, set[int]] = {}
        for atom, columns in used_columns(self.needed):
            if atom.predicate in self.apart:
                found.setdefault(atom.predicate, set()).update(columns)
        return {p: tuple(sorted(columns)) for p, columns in found.items()}

    @cached_property
    def denied(self) -> set[Predicate]:
        """The predicates that are read in negations."""
        every = (literal for rule in self.needed.rules for literal in rule.body)
        return set(predicates_of(literal for literal in every if isinstance(literal, Negation)))

    @property
    def by(self) -> Columns:
        """See `Held`."""
        match self.needed.rules_for(self.goal):
            case (Rule(head, (Atom(Predicate(version=Version.DEMAND), keys), Atom())),):
                return tuple(head.terms.index(term) for term in keys if term in head.terms)
        return ()

    def program(self, name: Predicate) -> Program:
        """The rules over held rows; those of the goal as another predicate's."""
        rules = (replace(r, body=tuple(_called(r.body, self.parts))) for r in self.needed.rules)
        return replace(self.every, rules=tuple(self._named(r, name) for r in rules))

    def whole(self, name: Predicate) -> Program:
        """The rules over no held rows."""
        needed = drop_unreachable(self.every, [self.goal])
        return replace(needed, rules=tuple(self._named(self._cut(r), name) for r in needed.rules))

    def _named(self, rule: Rule, name: Predicate) -> Rule:
        is_goal = rule.head.predicate == self.goal
        return replace(rule, head=replace(rule.head, predicate=name)) if is_goal else rule

    def _cut(self, rule: Rule) -> Rule:
        if self.kept is None or rule.head.predicate != self.goal:
            return rule
        return replace(rule, head=replace(rule.head, terms=tuple(rule.head.terms[c] for c in self.kept)))


def _parts(wanted: Collection[Columns]) -> list[Columns]:
    """Which columns of some rows are held, of those that users want: what several want, or one that has all."""
    several = [columns for columns, number in Counter(wanted).items() if number > 1]
    if not several and len(wanted) > 1:
        several = [columns for columns in wanted if all(set(its) <= set(columns) for its in wanted)]
    return [one for one in several if not any(set(one) < set(other) for other in several)]


# ------------------------------------------------------------------------------------------ equal predicates


def _together(asked: Iterable[tuple[Program, Predicate]]) -> tuple[Program, dict[Predicate, Predicate]]:
    """The rules of all programs, in which predicates are one where their rules are equal: conditions 1 and 2.

    And of goals that others read the rows that they read, if these have the same rules.
    """
    goals: dict[Predicate, Hashable] = {}
    known: dict[Hashable, Predicate] = {}
    taken: set[Predicate] = set()
    made: dict[Rule, None] = {}
    merged = Program()
    for program, goal in asked:
        merged = program
        by_head, names = program.by_head(), dict[Predicate, tuple[Predicate, None]]()
        for predicate in evaluation_order(drop_unreachable(program, [goal])):
            called = (replace(rule, body=tuple(_called(rule.body, names))) for rule in by_head[predicate])
            rules = tuple(dict.fromkeys(map(_renamed, called)))
            source = _handed_down(rules)
            if source is not None:
                names[predicate] = source, None
                continue
            name = predicate
            same = frozenset((rule.head.terms, rule.body) for rule in rules)
            if predicate == goal:
                goals[goal] = str(goal), Version.DEMANDED, same
            else:
                key = predicate.name, predicate.version, same
                if key not in known:
                    known[key] = _unused(predicate, taken)
                    taken.add(known[key])
                name = known[key]
                names[predicate] = name, None
            made |= dict.fromkeys(replace(rule, head=replace(rule.head, predicate=name)) for rule in rules)
    read = {goal: known[key] for goal, key in goals.items() if key in known}
    return replace(merged, rules=tuple(made)), read


def _unused(predicate: Predicate, taken: Collection[Predicate]) -> Predicate:
    """The predicate, with a number if it is taken."""
    numbered = (predicate.of(predicate.version, (*predicate.columns, n)) for n in count())
    return next(p for p in chain((predicate,), numbered) if p not in taken)


def _handed_down(rules: Sequence[Rule]) -> Predicate | None:
    """The demand that a demand is: condition 2."""
    match rules:
        case (Rule(Atom(Predicate(version=Version.DEMAND), terms), (Atom(source, its),)),):
            return source if source.version is Version.DEMAND and terms == its else None
    return None


def _renamed(rule: Rule) -> Rule:
    """A rule whose variables are named by where they stand: equal for rules that differ in names."""
    names = variables_of([rule.head, *rule.body])
    return apply_rule({v: Variable(f"X{i}") for i, v in enumerate(names)}, rule)


def _called(
    body: Iterable[Literal], names: Mapping[Predicate, tuple[Predicate, Columns | None]]
) -> Iterator[Literal]:
    """A body with other names of predicates, of which only some columns are left."""
    for literal in body:
        match literal:
            case Atom(predicate, terms) if predicate in names:
                name, columns = names[predicate]
                yield Atom(name, terms if columns is None else tuple(terms[c] for c in columns))
            case Negation(inner):
                yield replace(literal, body=tuple(_called(inner, names)))
            case _:
                yield literal
