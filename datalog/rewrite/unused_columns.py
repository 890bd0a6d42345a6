"""Drop the columns of rule-defined predicates that nobody uses, so that fewer different rows are left.

Before: `p(X) :- q(X, Y).   q(X, Y) :- r(X, Y, Z).`   (goal `p`)
After:  `p(X) :- q(X).      q(X) :- r(X, Y, Z).`

A predicate keeps the columns that some use of it has. Where other uses of demanded rows have fewer, these read a
projection, made once for all that have the same columns. Sound under set semantics: which rows of the used columns
there are stays the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from datalog.analysis import evaluation_order
from datalog.analysis.dependency import atoms_of
from datalog.model import Atom, Literal, Negation, Predicate, Program, Rule, Term, Variable, Version, terms_of
from datalog.rewrite.reachable import drop_unreachable

Columns = tuple[int, ...]


def drop_unused_columns(program: Program, goals: Iterable[Predicate]) -> Program:
    """An equivalent program for the goals, whose other predicates have only columns that are used.

    Args:
        program: safe, non-recursive rules.
        goals: the predicates that keep all their columns.
    """
    wanted = tuple(dict.fromkeys(goals))
    needed = drop_unreachable(program, wanted)
    by_head: dict[Predicate, list[Rule]] = {}
    for rule in needed.rules:
        by_head.setdefault(rule.head.predicate, []).append(rule)
    uses = _Uses({p: {} for p in by_head if p not in wanted})
    rules: list[Rule] = []
    for predicate in reversed(evaluation_order(needed)):  # users first
        for rule in by_head[predicate]:
            cut = replace(rule, head=_cut(rule.head, uses.kept(rule.head)))
            uses.note(cut)
            rules.append(cut)
    made = tuple(replace(rule, body=tuple(uses.applied(rule))) for rule in rules)
    return replace(needed, rules=(*made, *uses.projections.values()))


@dataclass
class _Uses:
    """The columns that the uses of each predicate have, apart, and the projections for uses with fewer than all."""

    columns: Mapping[Predicate, dict[Columns, None]]
    projections: dict[tuple[Predicate, Columns], Rule] = field(default_factory=dict)

    def kept(self, atom: Atom) -> Columns:
        """The columns of an atom's predicate that stay."""
        if atom.predicate not in self.columns:
            return tuple(range(atom.arity))
        return tuple(sorted({c for columns in self.columns[atom.predicate] for c in columns}))

    def note(self, rule: Rule) -> None:
        """Notes what a rule uses of the predicates in its body."""
        occurrences = _occurrences(rule)
        for atom in (atom for literal in rule.body for atom in atoms_of(literal)):
            if atom.predicate in self.columns:
                self.columns[atom.predicate][_used(atom, occurrences)] = None

    def applied(self, rule: Rule) -> Iterable[Literal]:
        """The body of a rule over what its predicates have become."""
        occurrences = _occurrences(rule)
        return (self._literal(literal, occurrences) for literal in rule.body)

    def _literal(self, literal: Literal, occurrences: Counter[Term]) -> Literal:
        match literal:
            case Negation(body):
                return replace(literal, body=tuple(self._literal(inner, occurrences) for inner in body))
            case Atom(predicate) if predicate in self.columns:
                kept, used = self.kept(literal), _used(literal, occurrences)
                if used != kept and predicate.version is Version.DEMANDED:
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


def _occurrences(rule: Rule) -> Counter[Term]:
    return Counter([*rule.head.terms, *(term for literal in rule.body for term in terms_of(literal))])


def _used(atom: Atom, occurrences: Counter[Term]) -> Columns:
    """The columns of an atom that say anything: a constant, or a variable that stands elsewhere too."""
    return tuple(i for i, t in enumerate(atom.terms) if not isinstance(t, Variable) or occurrences[t] > 1)


def _cut(atom: Atom, columns: Columns) -> Atom:
    return atom if len(columns) == atom.arity else Atom(atom.predicate, tuple(atom.terms[c] for c in columns))
