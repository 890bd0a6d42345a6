"""Literals: what a rule's body is made of.

Semantics, everywhere in this package (evaluation, containment, SQL):

- a variable that stands in several atoms binds to one stored value, and null is a stored value like any
  other (`IS NOT DISTINCT FROM`);
- a `Comparison` is false when a side is null, as in SQL;
- the rules that a *user* writes have SQL's join semantics: a variable that occurs twice never matches null.
  `datalog.rewrite.guard_joins` makes that explicit with `is not null` guards.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal as OneOf
from typing import TypeAlias

from datalog.model.predicates import Predicate, Version
from datalog.model.spans import Placed, Span
from datalog.model.terms import Term

Operator: TypeAlias = OneOf["=", "!=", "<", "<=", ">", ">="]

OPPOSITE: Mapping[Operator, Operator] = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
"""What holds instead, of two values of one family that are not null."""

MIRRORED: Mapping[Operator, Operator] = {"=": "=", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}
"""The same with the sides exchanged."""


class Atom(Placed, frozen=True, cache_hash=True):
    """A predicate applied to terms, by position."""

    predicate: Predicate
    terms: tuple[Term, ...]
    span: Span | None = None

    @property
    def arity(self) -> int:
        """The number of terms."""
        return len(self.terms)

    def of(self, version: Version, columns: tuple[int, ...] = ()) -> Atom:
        """The same terms in another version of the relation."""
        return Atom(self.predicate.of(version, columns), self.terms)


class Comparison(Placed, frozen=True, cache_hash=True):
    """`left operator right`; false when a side is null."""

    operator: Operator
    left: Term
    right: Term
    span: Span | None = None


class NullTest(Placed, frozen=True, cache_hash=True):
    """`term is null`, or with `negated` `term is not null`."""

    term: Term
    negated: bool = True
    span: Span | None = None


class Negation(Placed, frozen=True, cache_hash=True):
    """`not (body)`: no way to satisfy the body.

    Variables of `body` that occur in no positive literal outside it are existential inside it.
    A single negated atom is a `Negation` of a one-literal body.
    """

    body: tuple[Literal, ...]
    span: Span | None = None


Literal: TypeAlias = Atom | Comparison | NullTest | Negation
