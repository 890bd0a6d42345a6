"""Reach everything from small relations: the demand transformation (magic sets), without recursion.

Before: `p(X) :- new(X, Y), not (a(Y, Z), b(Z, X)).`   (`a`, `b` are large, `new` is small)
After:  `a@demand(Y) :- new(X, Y).                     a@demanded(Y, Z) :- a@demand(Y), a(Y, Z).
         step_1(X, Y, Z) :- new(X, Y), a@demanded(Y, Z).
         b@demand(Z, X) :- step_1(X, Y, Z).            b@demanded(Z, X) :- b@demand(Z, X), b(Z, X).
         step_2(X, Y) :- step_1(X, Y, Z), b@demanded(Z, X).
         p(X) :- new(X, Y), not step_2(X, Y).`

A body is gone through in join order. What it has bound so far is a step; the values that a large relation is to be
met with are demanded, and its demanded rows take the relation's place. A negated body starts from the values that the
body around it binds.

Demands of one round for one relation, by the same columns, are one demand, whoever has them, unless they are asked for
apart: the relation is read once for them. The round of a demand is one more than that of whatever its values come from;
so no demand depends on rows that are read for it, and the program stays free of recursion.

Conditions of soundness:

1. A demand holds the values of every binding for which rows are asked, or more; asking for more rows of a relation
   than are met changes nothing, as the rows are met by all shared variables again.
2. Values are compared as atoms compare them, null equal to null. Values of different kinds are demanded apart: no value
   is changed by standing in one column with others.
3. A negation is put behind all literals that bind its variables; those that only it has are its own.

Source: Bancilhon, Maier, Sagiv and Ullman, Magic Sets and Other Strange Ways to Implement Logic Programs (1986);
Beeri and Ramakrishnan, On the Power of Magic (1991), for supplementary predicates.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from functools import cached_property

from msgspec import Struct, field

from datalog.copies import replace
from datalog.model import (
    Atom,
    Comparison,
    Constant,
    Literal,
    Negation,
    Predicate,
    Program,
    Rule,
    Term,
    Variable,
    Version,
    apply_rule,
    value_kind,
    variables_of,
)
from datalog.rewrite.join_order import JoinOrder
from datalog.rewrite.reachable import drop_unreachable, predicates_of

Kinds = Mapping[Predicate, Sequence[Hashable]]
"""For the predicates without rules, the kind of each column's values; what is not given is of one kind."""

Choice = Callable[[Predicate, tuple[int, ...]], tuple[int, ...]]
"""Of the columns of a large relation that are bound, those to demand rows by: at least one."""


def all_columns(_predicate: Predicate, columns: tuple[int, ...]) -> tuple[int, ...]:
    """The choice that asks for no row too many."""
    return columns


def demand(
    program: Program,
    goals: Iterable[Predicate],
    small: Collection[Predicate],
    kinds: Kinds | None = None,
    choose: Choice = all_columns,
    *,
    together: bool = True,
    all_few: bool = False,
) -> Program:
    """An equivalent program for the goals that reads of each large relation only rows with demanded values.

    Args:
        program: safe, non-recursive rules.
        goals: the predicates asked for.
        small: predicates without rules whose rows are few; the others are large.
        kinds: the kinds of the large and the small relations' columns.
        choose: which of several bound columns to demand a relation's rows by. Fewer columns are cheaper to look rows up
            by, and shared by more demands, but may bring rows that are not met.
        together: whether demands on a relation are one, so that it is read once by who holds the rows; else each has
            rows of its own, and a query that needs the few rows of one does not compute those of all.
        all_few: no relation has many rows, so that look-ups cost less than joining what they would rule out.

    Returns:
        Rules for the goals, and for the demands, demanded rows and steps that they use. A large relation that nothing
        bound restricts is read whole; what a body joins with it after that is not demanded, but joined as it stands.
    """
    wanted = tuple(dict.fromkeys(goals))
    needed = drop_unreachable(program, wanted)
    work = _Transformation(needed, frozenset(small), dict(kinds or {}), choose, together, all_few)
    for rule in needed.rules:
        if rule.head.predicate in wanted:
            found = work.solved(rule.body, _Bindings((), 0), variables_of([rule.head]))
            work.add(rule.head, found.body)
        elif work.is_small(rule.head.predicate):
            work.add(rule.head, rule.body)
    return drop_unreachable(replace(needed, rules=tuple(work.rules)), wanted)


_STEP = Predicate("step", Version.STEP)


def cuttable_steps(program: Program) -> frozenset[Predicate]:
    """Of the steps that `demand` made, those of which some rows lead to some of the goals' rows, and to no others.

    A step's rows are bindings that are followed; what is demanded is demanded for those that there are. Not so where a
    step tells of what is negated that it has no match.
    """
    rules = program.by_head()
    negated = (li for rule in program.rules for li in rule.body if isinstance(li, Negation))
    waiting = list(predicates_of(negated))
    exact = set[Predicate]()
    while waiting:
        predicate = waiting.pop()
        if predicate in exact or predicate.version is Version.DEMAND:
            continue
        exact.add(predicate)
        waiting += (p for rule in rules.get(predicate, ()) for p in predicates_of(rule.body))
    steps = (p for p in rules if p.version is Version.STEP and p.name == _STEP.name)
    return frozenset(steps) - exact


class _Bindings(Struct, frozen=True, dict=True):
    """A body gone through so far: literals to read its bindings from, and the round that these come from."""

    body: tuple[Literal, ...]
    round: int

    @cached_property
    def bound(self) -> frozenset[Variable]:
        return frozenset(variables_of(li for li in self.body if not isinstance(li, Negation)))

    def joined(self, literals: Sequence[Literal]) -> _Bindings:
        """These with more literals, in the same round."""
        made = _Bindings((*self.body, *literals), self.round)
        more = variables_of(li for li in literals if not isinstance(li, Negation))
        made.__dict__["bound"] = self.bound.union(more)  # long bodies are not gone through again
        return made


class _Demanded(Struct, frozen=True):
    """The demanded rows of a predicate, by some columns, in one round.

    Attributes:
        keys: the predicate of the demand.
        rows: the predicate of the rows.
        round: the round that the rows come from.
    """

    keys: Predicate
    rows: Predicate
    round: int


class _Transformation(Struct, dict=True):
    """The rules made so far; equal steps and demands are made once."""

    program: Program
    small: frozenset[Predicate]
    kinds: dict[Predicate, Sequence[Hashable]]
    choose: Choice
    together: bool
    all_few: bool
    rules: dict[Rule, None] = field(default_factory=dict)
    _is_small: dict[Predicate, bool] = field(default_factory=dict)
    _steps: dict[Rule, Predicate] = field(default_factory=dict)
    _demanded: dict[tuple[object, ...], _Demanded] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._by_head = self.program.by_head()

    def add(self, head: Atom, body: Iterable[Literal]) -> None:
        """One more rule; an equal one is there once."""
        self.rules[Rule(head, tuple(body))] = None

    def is_small(self, predicate: Predicate) -> bool:
        """Whether a predicate reads small relations only."""
        if predicate not in self._is_small:
            rules = self._by_head.get(predicate)
            self._is_small[predicate] = (
                predicate in self.small
                if rules is None
                else all(map(self.is_small, predicates_of(li for rule in rules for li in rule.body)))
            )
        return self._is_small[predicate]

    def solved(self, body: Sequence[Literal], start: _Bindings, wanted: Collection[Variable]) -> _Bindings:
        """A body with demanded rows in place of large relations, in join order.

        `start` binds some of its variables before; those `wanted` are kept.
        """
        current = start
        order = JoinOrder(body, start.bound, self.is_small, all_few=self.all_few)
        for literals in order:
            if all(map(self.is_small, predicates_of(literals))):
                current = current.joined(literals)
                continue
            later = frozenset({*wanted, *variables_of(order.waiting)})
            if not current.bound.intersection(variables_of(literals)):
                return self._whole(current, [*literals, *order.waiting])
            if isinstance(literals[0], Atom):
                current = self._met(current, literals[0], later)
            else:
                current = self._without(current, literals, later)
        return current

    def _whole(self, current: _Bindings, waiting: Iterable[Literal]) -> _Bindings:
        """The bindings joined with some literals as they stand; what rules define is computed whole."""
        made = current.round
        literals: list[Literal] = []
        for literal in waiting:
            match literal:
                case Atom(predicate) if predicate in self._by_head and not self.is_small(predicate):
                    entry = self._entry(literal, (), (), 0)
                    literals.append(Atom(entry.rows, literal.terms))
                    made = max(made, entry.round)
                case Negation(body):
                    inner = self._whole(_Bindings((), 0), body)
                    literals.append(replace(literal, body=inner.body))
                    made = max(made, inner.round)
                case _:
                    literals.append(literal)
        return _Bindings((*current.body, *literals), made)

    def _met(self, current: _Bindings, atom: Atom, later: frozenset[Variable]) -> _Bindings:
        """The bindings joined with an atom's demanded rows."""
        step = self._step(current, later | {*variables_of([atom])})
        rows, made = self._asked(step, atom)
        return _Bindings((*step.body, rows), max(step.round, made))

    def _without(
        self, current: _Bindings, negations: Sequence[Literal], later: frozenset[Variable]
    ) -> _Bindings:
        """The bindings for which some negations hold; all are asked for the same bindings."""
        step = self._step(current, later | {*variables_of(negations)})
        literals, made = list(step.body), step.round
        for negation in negations:
            assert isinstance(negation, Negation)
            held, its = self._held(step, negation)
            literals.append(Negation((held,)))
            made = max(made, its)
        return _Bindings(tuple(literals), made)

    def _held(self, step: _Bindings, negation: Negation) -> tuple[Atom, int]:
        """What holds of the bindings for which a negated body has a match."""
        shared = frozenset(variables_of([negation])) & step.bound
        match negation.body:
            case (Atom() as atom,) if shared:
                return self._asked(step, atom)
        start = self._step(step, shared) if shared else _Bindings((), step.round)
        found = self._step(self.solved(negation.body, start, shared), shared, always=True)
        held = found.body[0]
        assert isinstance(held, Atom)
        return held, found.round

    def _asked(self, step: _Bindings, atom: Atom) -> tuple[Atom, int]:
        """An atom's demanded rows; adds the bindings' values to the demand."""
        columns = tuple(i for i, t in enumerate(atom.terms) if t in step.bound and atom.terms.index(t) == i)
        if atom.predicate not in self._by_head:
            columns = self.choose(atom.predicate, columns)
        kinds = tuple(self._kind(atom.terms[c], step.body) for c in columns)
        values = tuple(atom.terms[c] for c in columns)
        source = None if self.together else _renamed(Rule(Atom(_STEP, values), step.body))
        entry = self._entry(atom, columns, kinds, step.round + 1, source)
        self.add(Atom(entry.keys, values), step.body)
        return Atom(entry.rows, atom.terms), entry.round

    def _entry(
        self,
        atom: Atom,
        columns: tuple[int, ...],
        kinds: tuple[Hashable, ...],
        at: int,
        source: Rule | None = None,
    ) -> _Demanded:
        """The demanded rows of an atom's predicate by some columns, in a round; for one source of values alone."""
        predicate = atom.predicate
        key = (predicate, columns, kinds, at, source)
        if key in self._demanded:
            return self._demanded[key]
        number = (len(self._demanded),)
        keys = Predicate(str(predicate), Version.DEMAND, number)
        rows = Predicate(str(predicate), Version.DEMANDED, number)
        self.kinds[keys] = kinds
        every = Atom(predicate, tuple(Variable(f"X{i}") for i in range(atom.arity)))
        rules = self._by_head.get(predicate)
        self._demanded[key] = _Demanded(keys, rows, at)  # it counts as made while its rules are
        made = at
        for rule in [Rule(every, (every,))] if rules is None else rules:
            demanded = (Atom(keys, tuple(rule.head.terms[c] for c in columns)),) if columns else ()
            found = _Bindings((*demanded, *rule.body), at)
            if rules is not None:
                found = self.solved(rule.body, _Bindings(demanded, at), variables_of([rule.head]))
            self.add(Atom(rows, rule.head.terms), found.body)
            made = max(made, found.round)
        self.kinds[rows] = self._kinds_of(predicate, atom.arity)
        self._demanded[key] = _Demanded(keys, rows, made)
        return self._demanded[key]

    def _step(self, current: _Bindings, keep: frozenset[Variable], *, always: bool = False) -> _Bindings:
        """The bindings of some variables as one atom.

        Where they are at hand in one atom, that may have more; `always` makes a step even so.
        """
        wanted = keep & current.bound
        kept = tuple(v for v in variables_of(current.body) if v in wanted)
        if not always and len(current.body) == 1 and isinstance(only := current.body[0], Atom):
            different = {t for t in only.terms if isinstance(t, Variable)}
            if len(different) == only.arity:
                return current
        made = _renamed(Rule(Atom(_STEP, kept), current.body))
        if made not in self._steps:
            predicate = self._steps[made] = _STEP.of(Version.STEP, (len(self._steps),))
            self.add(Atom(predicate, made.head.terms), made.body)
            self.kinds[predicate] = tuple(self._kind(v, current.body) for v in kept)
        return _Bindings((Atom(self._steps[made], kept),), current.round)

    def _kind(self, term: Term, body: Sequence[Literal]) -> Hashable:
        """The kind of a term's values in a body."""
        if isinstance(term, Constant):
            return value_kind(term.value)
        for atom in (li for li in body if isinstance(li, Atom) and term in li.terms):
            return self._kinds_of(atom.predicate, atom.arity)[atom.terms.index(term)]
        same = (li for li in body if isinstance(li, Comparison) and term in (li.left, li.right))
        others = (li.right if li.left == term else li.left for li in same)
        return next((value_kind(other.value) for other in others if isinstance(other, Constant)), None)

    def _kinds_of(self, predicate: Predicate, arity: int) -> Sequence[Hashable]:
        """The kinds of a predicate's columns; of one with rules what they give."""
        if predicate not in self.kinds:
            heads = [[self._kind(t, r.body) for t in r.head.terms] for r in self._by_head.get(predicate, ())]
            self.kinds[predicate] = [frozenset(c) for c in zip(*heads, strict=True)] or [None] * arity
        return self.kinds[predicate]


def _renamed(rule: Rule) -> Rule:
    """A rule whose variables are named by where they stand: equal for rules that differ in names."""
    return apply_rule({v: Variable(f"X{i}") for i, v in enumerate(variables_of(rule.body))}, rule)
