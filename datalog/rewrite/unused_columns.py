"""Drop the columns of rule-defined predicates that nobody uses, so that fewer different rows are left.

Before: `p(X) :- q(X, Y).   q(X, Y) :- r(X, Y, Z).`   (goal `p`)
After:  `p(X) :- q(X).      q(X) :- r(X, Y, Z).`

A predicate keeps the columns that some use of it has. Where other uses of demanded rows have fewer, these read a
projection, made once for all that have the same columns. Sound under set semantics: which rows of the used columns
there are stays the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field

from datalog.analysis import evaluation_order
from datalog.copies import replace
from datalog.model import (
    Atom,
    Literal,
    Negation,
    Predicate,
    Program,
    Rule,
    Term,
    Variable,
    Version,
    terms_of,
    variables_of,
)
from datalog.rewrite.reachable import drop_unreachable

Columns = tuple[int, ...]


def drop_unused_columns(program: Program, goals: Iterable[Predicate]) -> Program:
    """An equivalent program for the goals, whose other predicates have only columns that are used."""
    wanted = tuple(dict.fromkeys(goals))
    needed = drop_unreachable(program, wanted)
    by_head = needed.by_head()
    uses = _Uses({p: {} for p in by_head if p not in wanted})
    rules: list[tuple[Rule, list[tuple[Atom, Columns]]]] = []
    for predicate in reversed(evaluation_order(needed)):  # users first
        for rule in by_head[predicate]:
            head = _cut(rule.head, uses.kept(rule.head))
            used = list(_atoms(rule.body, Counter(head.terms)))
            uses.note(used)
            rules.append((replace(rule, head=head), used))
    made = tuple(replace(rule, body=tuple(uses.applied(rule, iter(used)))) for rule, used in rules)
    return replace(needed, rules=(*made, *uses.projections.values()))


def used_columns(program: Program) -> Iterator[tuple[Atom, Columns]]:
    """The atoms of all bodies, inside negations too, each with the columns that say anything."""
    for rule in program.rules:
        yield from _atoms(rule.body, Counter(rule.head.terms))


class _Uses(Struct):
    """The columns that the uses of each predicate have, apart, and the projections for uses with fewer than all."""

    columns: Mapping[Predicate, dict[Columns, None]]
    projections: dict[tuple[Predicate, Columns], Rule] = field(default_factory=dict)

    def kept(self, atom: Atom) -> Columns:
        """The columns of an atom's predicate that stay."""
        if atom.predicate not in self.columns:
            return tuple(range(atom.arity))
        return tuple(sorted({c for columns in self.columns[atom.predicate] for c in columns}))

    def note(self, atoms: Iterable[tuple[Atom, Columns]]) -> None:
        """Notes what a rule uses of the predicates in its body."""
        for atom, used in atoms:
            if atom.predicate in self.columns:
                self.columns[atom.predicate][used] = None

    def applied(self, rule: Rule, used: Iterator[tuple[Atom, Columns]]) -> Iterator[Literal]:
        """The body of a rule over what its predicates have become."""
        return (self._literal(literal, used) for literal in rule.body)

    def _literal(self, literal: Literal, atoms: Iterator[tuple[Atom, Columns]]) -> Literal:
        match literal:
            case Negation(body):
                return replace(literal, body=tuple(self._literal(inner, atoms) for inner in body))
            case Atom(predicate):
                _, used = next(atoms)
                kept = self.kept(literal)
                if predicate in self.columns and used != kept and predicate.version is Version.DEMANDED:
                    return self._projected(literal, kept, used)
                return _cut(literal, kept)
            case _:
                return literal

    def _projected(self, atom: Atom, kept: Columns, used: Columns) -> Atom:
        key = (atom.predicate, used)
        if key not in self.projections:
            number = (*atom.predicate.columns, len(self.projections))
            head = Predicate(atom.predicate.name, Version.PROJECTED, number)
            columns = [Variable(f"X{c}") for c in range(atom.arity)]
            every = Atom(atom.predicate, tuple(columns[c] for c in kept))
            self.projections[key] = Rule(Atom(head, tuple(columns[c] for c in used)), (every,))
        return Atom(self.projections[key].head.predicate, tuple(atom.terms[c] for c in used))


def _atoms(body: Sequence[Literal], around: Counter[Term]) -> Iterator[tuple[Atom, Columns]]:
    """The atoms of a body in order, with the columns that say anything: constants, variables that stand elsewhere."""
    occurs = around.copy()
    for literal in body:
        occurs.update(literal.terms if isinstance(literal, Atom) else terms_of(literal))
    negates = any(isinstance(literal, Negation) for literal in body)
    bound = {*around, *variables_of(li for li in body if not isinstance(li, Negation))} if negates else set()
    for literal in body:
        match literal:
            case Atom(terms=terms):
                said = (not isinstance(t, Variable) or occurs[t] > 1 for t in terms)
                yield literal, tuple(i for i, is_used in enumerate(said) if is_used)
            case Negation(inner):
                mine = Counter(terms_of(literal))  # a variable that only it has is its own
                yield from _atoms(inner, Counter({t: occurs[t] - n for t, n in mine.items() if t in bound}))
            case _:
                pass


def _cut(atom: Atom, columns: Columns) -> Atom:
    return atom if len(columns) == atom.arity else Atom(atom.predicate, tuple(atom.terms[c] for c in columns))
