"""A set J of subgoals whose facts could be new, with all that its facts bring along.

A witness against view k has known facts for the subgoals outside J and *new* facts for those of J. Besides the
facts of J themselves there are the companions and links that satisfy their foreign keys, and positions of the
variables that are compared. What may contradict the new facts is computed from all of these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property

from msgspec import Struct

from datalog.model import (
    Atom,
    Comparison,
    Constant,
    Literal,
    Negation,
    NullTest,
    Term,
    Variable,
    apply_atom,
    apply_comparison,
    apply_literal,
    variables_of,
)
from selfmaint.decide.inconsistency import Contradiction
from selfmaint.decide.instances import Instance, places
from selfmaint.decide.positions import Above, At, Position, resolved, substitution
from selfmaint.warehouse.catalog import View


class NewFacts(Struct, frozen=True, dict=True):
    """One surviving J of one instance, with the companions and links that satisfy its foreign keys.

    Attributes:
        instance: the body and its contradictions.
        facts: J and the companions, as a bit mask over the instance's atoms.
        links: rows that J's foreign keys reference: the relation and its terms, of which those outside the key
            occur nowhere else.
        conditions: equalities and null tests over the bound variables.
        positions: where free variables lie that are compared (`arrangements.py`).
        patterns: atoms over known facts that bind the landmarks of positions, and over views that group: the
            groups that the new facts are in (`group_evidence.py`).
        excluded: conjunctions over known facts that are taken not to hold.
        number: its number among the view's surviving sets; part of the predicate `view@depends_number`.
        is_cut: whether a constraint was not followed to its end, so that these facts may be impossible.
        is_approximate: whether there may be no value where a position says.
        dodges: whether what other views compare is taken not to hold.
    """

    instance: Instance
    facts: int
    links: tuple[Atom, ...] = ()
    conditions: tuple[Literal, ...] = ()
    positions: tuple[tuple[Variable, Position], ...] = ()
    patterns: tuple[Atom, ...] = ()
    excluded: tuple[tuple[Literal, ...], ...] = ()
    number: int = 0
    is_cut: bool = False
    is_approximate: bool = False
    dodges: bool = False

    @property
    def view(self) -> View:
        """View k."""
        return self.instance.view

    @cached_property
    def subgoals(self) -> tuple[int, ...]:
        """The indices in J."""
        return tuple(j for j in range(len(self.instance.body)) if self.facts >> j & 1)

    @cached_property
    def outside(self) -> tuple[int, ...]:
        """The indices of the subgoals whose facts are known."""
        return tuple(j for j in range(len(self.instance.body)) if not self.facts >> j & 1)

    @cached_property
    def atoms(self) -> tuple[Atom, ...]:
        """The new facts: those of J, then the companions."""
        chosen = substitution(dict(self.positions))
        return tuple(
            apply_atom(chosen, atom) for j, atom in enumerate(self.instance.atoms) if self.facts >> j & 1
        )

    @property
    def is_vague(self) -> bool:
        """Whether nothing is concluded from a companion: then the test's rows prove nothing."""
        return self.is_cut or bool(self.facts & self.instance.chased.opaque)

    @cached_property
    def free_links(self) -> tuple[Atom, ...]:
        """The links that alone bind a variable of their key."""
        outside = {v for j in self.outside for v in self.instance.body[j].terms}
        wanted = frozenset(variables_of(self.atoms))
        return tuple(
            link
            for link in self.links
            if any(
                v in wanted and v not in outside and not any(v in o.terms for o in self.links if o != link)
                for v in variables_of([link])
            )
        )

    @cached_property
    def may_be_forced(self) -> bool:
        """Whether a link chooses a value of a new fact: if the fact must exist, this may be its only choice."""
        chosen = {v for link in self.free_links for v in link.terms}
        return any(not chosen.isdisjoint(atom.terms) for atom in self.atoms)

    @property
    def is_doubtful(self) -> bool:
        """Whether its witnesses may have no counterexample."""
        return self.is_vague or self.is_approximate or self.may_be_forced

    @cached_property
    def fresh(self) -> frozenset[Variable]:
        """The variables that only new facts bind."""
        own = self.instance.variables
        outside = frozenset[Variable]().union(*(own[j] for j in self.outside))
        if self.positions:
            new = frozenset(variables_of(self.atoms))
        else:
            new = frozenset[Variable]().union(*(its for j, its in enumerate(own) if self.facts >> j & 1))
        return new - outside.union(variables_of([*self.links, *self.patterns]))

    @cached_property
    def bound(self) -> tuple[Variable, ...]:
        """The variables that the subgoals outside J bind, in order, then those that a link or pattern binds for J."""
        outside = variables_of([self.instance.body[j] for j in self.outside])
        landmarks = {p.landmark for _, p in self.positions if isinstance(p, (At, Above))}
        wanted = landmarks.union(variables_of(self.atoms))
        more = variables_of([*self.links, *self.patterns])
        return (*outside, *(v for v in more if v in wanted and v not in outside))

    @property
    def is_impossible(self) -> bool:
        """Whether something contradicts these new facts whatever the data."""
        if self.positions:
            return Negation(()) in self.contradictions
        applicable = self.instance.applicable(self.facts, self.fresh)
        bare = (self.instance.contradictions[at] for at in places(applicable & self.instance.bare))
        return any(contradiction.not_null <= self.fresh for contradiction in bare)

    @cached_property
    def contradictions(self) -> tuple[Negation, ...]:
        """What can contradict these new facts, to be tested on data: none of it may hold."""
        key = (self.facts, self.fresh, self.positions, self.dodges)
        demanded = self.instance.demanded
        if key not in demanded:
            demanded[key] = tuple(dict.fromkeys(self._contradictions()))
        return demanded[key]

    def _contradictions(self) -> Iterator[Negation]:
        instance, fresh, positions = self.instance, self.fresh, dict(self.positions)
        chosen, special = substitution(positions), fresh.union(positions)
        for place in places(instance.applicable(self.facts, () if positions else fresh)):
            contradiction = instance.contradictions[place]
            if contradiction.comparisons and self.dodges:
                continue
            if not positions:
                yield contradiction.denied(contradiction.not_null - fresh)
            elif special.isdisjoint(contradiction.variables):
                yield Negation(contradiction.plainly)
            else:
                body = self._placed(contradiction, positions, chosen)
                if body is not None:
                    yield Negation(body)

    def _placed(
        self,
        contradiction: Contradiction,
        positions: Mapping[Variable, Position],
        chosen: Mapping[Variable, Term],
    ) -> tuple[Literal, ...] | None:
        """What a contradiction demands of the bound variables and known facts; None if it is impossible."""
        body: list[Literal] = [apply_literal(chosen, literal) for literal in contradiction.residue]
        if not self.fresh.isdisjoint(variables_of(body)):
            return None
        for condition in contradiction.conditions:
            demanded = self._of_condition(condition, positions, chosen)
            if demanded is None:
                return None
            body.extend(demanded)
        for variable in sorted(contradiction.not_null, key=str):
            term = chosen.get(variable, variable)
            if isinstance(term, Variable) and term not in self.fresh:
                body.append(NullTest(term))
        for comparison in contradiction.comparisons:
            demanded = resolved(comparison, positions, chosen)
            # A variable that nothing compared before another one was given a value is free to dodge.
            if demanded is None or not self.fresh.isdisjoint(variables_of(demanded)):
                return None
            body.extend(demanded)
        return tuple(dict.fromkeys(li for li in body if not _never_null(li)))

    def _of_condition(
        self, condition: Literal, positions: Mapping[Variable, Position], chosen: Mapping[Variable, Term]
    ) -> tuple[Literal, ...] | None:
        """What a condition of a contradiction demands of the bound variables; None if it is false."""
        if isinstance(condition, Comparison):
            moved = apply_comparison(chosen, condition)
            if moved.left != moved.right and not self.fresh.isdisjoint((moved.left, moved.right)):
                return None
            return resolved(condition, positions, chosen)
        test = apply_literal(chosen, condition)
        if self.fresh.isdisjoint(variables_of([test])):
            return (test,)
        return () if isinstance(test, NullTest) and test.negated else None  # a fresh value is not null


def _never_null(literal: Literal) -> bool:
    return isinstance(literal, NullTest) and literal.negated and isinstance(literal.term, Constant)


def image(candidate: NewFacts, binding: Mapping[Variable, Term]) -> tuple[Atom, ...]:
    """The new facts under a binding of the bound (and perhaps the fresh) variables."""
    return tuple(apply_atom(binding, atom) for atom in candidate.atoms)
