"""Containment of conjunctive queries and of unions of them, and the smallest equivalent query (the core).

Sound always; complete for bodies of atoms (Chandra and Merlin 1977; Sagiv and Yannakakis 1980), and with
comparisons and null tests too (`datalog.containment.orders`), within that test's budget.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from datalog.containment.mapping import containment_mapping, match_atom
from datalog.containment.orders import contained_in_union
from datalog.copies import replace
from datalog.model import (
    Atom,
    ColumnType,
    Comparison,
    NullTest,
    Predicate,
    Rule,
    Term,
    Variable,
    apply_literal,
    variables_of,
)


def contained_in(
    query: Rule, other: Rule, types: Mapping[Predicate, tuple[ColumnType, ...]] | None = None
) -> bool:
    """Whether every answer of `query` is one of `other`, on every database.

    The head predicates' names do not matter; their arities must agree.

    The types of columns matter to comparisons only; those that are not given are `any`.

    >>> from datalog.model import Predicate, Variable
    >>> x, y = Variable("X"), Variable("Y")
    >>> loop = Rule(Atom(Predicate("q"), (x,)), (Atom(Predicate("e"), (x, x)),))
    >>> edge = Rule(Atom(Predicate("p"), (x,)), (Atom(Predicate("e"), (x, y)),))
    >>> contained_in(loop, edge), contained_in(edge, loop)
    (True, False)
    """
    return union_contained_in([query], [other], types)


def union_contained_in(
    queries: Sequence[Rule],
    others: Sequence[Rule],
    types: Mapping[Predicate, tuple[ColumnType, ...]] | None = None,
) -> bool:
    """Whether the union of `queries` is contained in the union of `others`."""
    return all(
        any(_is_mapped(query, other) for other in others)
        or (_needs_cases(query, others) and contained_in_union(query, others, types))
        for query in queries
    )


def _is_mapped(query: Rule, other: Rule) -> bool:
    """Whether one mapping sends every literal of `other` to one of `query` as written."""
    start = match_atom(Atom(query.head.predicate, other.head.terms), query.head, {})
    return start is not None and containment_mapping(other.body, query.body, start) is not None


def _needs_cases(query: Rule, others: Sequence[Rule]) -> bool:
    """Whether a mapping as written may be missing although the query is contained."""
    filters = [li for rule in (query, *others) for li in rule.body if isinstance(li, Comparison | NullTest)]
    return bool(filters)


def minimise(rule: Rule) -> Rule:
    """The rule without redundant atoms.

    Before: `q(X) :- e(X, Y), e(X, Z).`  After: `q(X) :- e(X, Z).`

    >>> from datalog.model import Predicate
    >>> x, y, z = Variable("X"), Variable("Y"), Variable("Z")
    >>> e = Predicate("e")
    >>> len(minimise(Rule(Atom(Predicate("q"), (x,)), (Atom(e, (x, y)), Atom(e, (x, z))))).body)
    1
    """
    fixed: dict[Variable, Term] = {v: v for v in variables_of([rule.head])}
    body = list(dict.fromkeys(rule.body))
    for literal in tuple(body):
        if not isinstance(literal, Atom):
            continue
        rest = [other for other in body if other is not literal]
        found = containment_mapping(body, rest, fixed)
        if found is not None:
            images = {apply_literal(found, other) for other in body}
            body = [other for other in rest if other in images]  # filters that nothing binds any more go too
    return replace(rule, body=tuple(body))
