"""The order in which a body's literals are met: filters as soon as they are bound, products last.

Before: `a(Y, Z), new(X, Y), not b(Z), X > 3`   (`new` is small)
After:  `new(X, Y), X > 3, a(Y, Z), not b(Z)`

Where no relation has many rows, a negation of one row is met as soon as it can be, and what binds its variables first:
where a view rules new facts out, such a row mostly does, and nothing more is joined with them. Where one has, fewer
keys are looked up in it for what the other subgoals leave.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from datalog.model import Atom, Comparison, Literal, Negation, Predicate, Variable, variables_of
from datalog.rewrite.reachable import predicates_of


class JoinOrder:
    """The literals of one body, one after the other; negations that read large relations several at once.

    Attributes:
        waiting: the literals that have not been given yet.
    """

    def __init__(
        self,
        body: Sequence[Literal],
        bound: Iterable[Variable],
        is_small: Callable[[Predicate], bool],
        *,
        all_few: bool,
    ) -> None:
        """Starts the order; `all_few` says that no relation has many rows."""
        self.waiting = list(body)
        self._variables = {id(literal): frozenset(variables_of([literal])) for literal in self.waiting}
        self._large = {
            id(literal): sum(not is_small(predicate) for predicate in predicates_of([literal]))
            for literal in self.waiting
        }
        self._bound = set(bound)
        self._all_few = all_few
        positive = [literal for literal in body if isinstance(literal, Atom | Comparison)]
        self._bindable = self._bound | {*variables_of(positive)}
        self._uses = Counter(v for its in self._variables.values() for v in its)

    def __iter__(self) -> Iterator[tuple[Literal, ...]]:
        """The next literals, until none is left; one that can never be met comes last."""
        while self.waiting:
            chosen = self._next()
            taken = {id(literal) for literal in chosen}
            self.waiting = [literal for literal in self.waiting if id(literal) not in taken]
            for literal in chosen:
                if not isinstance(literal, Negation):
                    self._bound |= self._variables[id(literal)]
            yield chosen

    def _next(self) -> tuple[Literal, ...]:
        filters = [li for li in self.waiting if not isinstance(li, Atom) and self._is_ready(li)]
        cheap = [li for li in filters if not self._large[id(li)]]
        if cheap:
            return (cheap[0],)
        decisive = [li for li in filters if self._large[id(li)] == 1]
        met = tuple(li for li in decisive if not self._bound.isdisjoint(self._variables[id(li)]))
        if met and self._all_few:
            return met
        atoms = [li for li in self.waiting if isinstance(li, Atom)]
        joined = [atom for atom in atoms if self._places(atom)]
        if joined or (not filters and atoms) or (atoms and not self._bound):
            sought = self._sought()
            return (min(joined or atoms, key=lambda atom: self._cost(atom, sought)),)
        return tuple(decisive or filters or self.waiting[:1])

    def _sought(self) -> frozenset[Variable]:
        """What is not bound yet of the negation of one row that waits for the fewest variables, if few rows are met."""
        if not self._all_few:
            return frozenset()
        waiting = (li for li in self.waiting if isinstance(li, Negation) and self._large[id(li)] == 1)
        open_ = ((self._variables[id(li)] & self._bindable) - self._bound for li in waiting)
        return min(open_, key=len, default=frozenset())

    def _is_ready(self, literal: Literal) -> bool:
        open_ = self._variables[id(literal)] - self._bound
        if isinstance(literal, Negation):
            return self._bindable.isdisjoint(open_)
        if isinstance(literal, Comparison) and literal.operator == "=":
            return len(open_) <= (literal.left != literal.right)  # `X = X` binds nothing
        return not open_

    def _places(self, atom: Atom) -> int:
        """How many terms are bound variables."""
        return sum(term in self._bound for term in atom.terms)

    def _cost(self, atom: Atom, sought: frozenset[Variable]) -> tuple[bool, int, bool, int, int]:
        """Small relations first, then what is bound most, what brings a variable sought, and the fewest new variables.

        Those that other literals use count before all: rows that differ in others alone are met together.
        """
        free = self._variables[id(atom)] - self._bound
        used = sum(self._uses[variable] > 1 for variable in free)
        return (
            bool(self._large[id(atom)]),
            -self._places(atom),
            free.isdisjoint(sought),
            used,
            len(free),
        )
