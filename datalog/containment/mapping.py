"""Containment mappings: homomorphisms from the literals of one body into those of another.

A mapping sends each variable to a term and each constant to itself such that every literal of the source
becomes a literal of the target. Comparisons, null tests and negations are matched as written (after the
mapping): that is sound, and complete for bodies of atoms alone (Chandra and Merlin 1977).

Condition of soundness for a negation: a variable that it alone binds keeps its name, so it must be bound in the
target by nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from datalog.budget import check
from datalog.model import (
    Atom,
    Comparison,
    Constant,
    Literal,
    Negation,
    NullTest,
    Predicate,
    Rule,
    Substitution,
    Term,
    Variable,
    apply_literal,
    variables_of,
)


def mappings(
    source: Sequence[Literal], target: Sequence[Literal], fixed: Substitution | None = None
) -> Iterator[Mapping[Variable, Term]]:
    """Every containment mapping from `source` to `target` that extends `fixed`.

    The variables of `target` stand for themselves.

    Complexity: exponential in the number of source atoms at worst; most constrained atom first.
    """
    index: dict[Predicate, list[Atom]] = {}
    for literal in target:
        if isinstance(literal, Atom):
            index.setdefault(literal.predicate, []).append(literal)
    atoms = [literal for literal in source if isinstance(literal, Atom)]
    if any(atom.predicate not in index for atom in atoms):
        return
    start = _forced(atoms, index, fixed or {})
    if start is None:
        return
    atoms = [atom for atom in atoms if len(index[atom.predicate]) > 1]
    filters = [literal for literal in source if not isinstance(literal, Atom)]
    if not filters:
        yield from _extend(atoms, index, start)
        return
    others = [literal for literal in target if not isinstance(literal, Atom)]
    negations = [literal for literal in filters if isinstance(literal, Negation)]
    for found in _extend(atoms, index, start):
        if not all(_holds(apply_literal(found, literal), others) for literal in filters):
            continue
        own = frozenset(variables_of(literal for literal in source if not isinstance(literal, Negation)))
        bound = frozenset(variables_of(literal for literal in target if not isinstance(literal, Negation)))
        bound |= {term for term in (fixed or {}).values() if isinstance(term, Variable)}
        if not any(_captured(literal, own.union(found), bound) for literal in negations):
            yield found


def _forced(
    atoms: Sequence[Atom], index: Mapping[Predicate, list[Atom]], fixed: Substitution
) -> dict[Variable, Term] | None:
    """What the atoms that have one image only must be mapped by; None if they cannot."""
    found = dict(fixed)
    for atom in atoms:
        images = index[atom.predicate]
        if len(images) > 1:
            continue
        if len(atom.terms) != len(images[0].terms):
            return None
        for term, goal in zip(atom.terms, images[0].terms, strict=True):
            if (found.setdefault(term, goal) if isinstance(term, Variable) else term) != goal:
                return None
    return found


def containment_mapping(
    source: Sequence[Literal], target: Sequence[Literal], fixed: Substitution | None = None
) -> Mapping[Variable, Term] | None:
    """One containment mapping, or None.

    >>> from datalog.model import Atom, Predicate, Variable
    >>> x, y = Variable("X"), Variable("Y")
    >>> edge = Predicate("e")
    >>> containment_mapping([Atom(edge, (x, y))], [Atom(edge, (y, y))]) == {x: y, y: y}
    True
    """
    return next(mappings(source, target, fixed), None)


def _extend(
    atoms: list[Atom], index: Mapping[Predicate, list[Atom]], found: dict[Variable, Term]
) -> Iterator[dict[Variable, Term]]:
    check()
    if not atoms:
        yield found
        return
    best, choices = None, None
    for atom in atoms:
        options = [
            m for image in index.get(atom.predicate, ()) if (m := match_atom(atom, image, found)) is not None
        ]
        if choices is None or len(options) < len(choices):
            best, choices = atom, options
        if len(options) <= 1:
            break
    if not choices:
        return
    rest = [atom for atom in atoms if atom is not best]
    for choice in choices:
        yield from _extend(rest, index, choice)


def match_atom(atom: Atom, image: Atom, found: Substitution) -> dict[Variable, Term] | None:
    """`found` extended so that `atom` becomes `image`, or None if it cannot."""
    if len(atom.terms) != len(image.terms):
        return None
    extended = dict(found)
    for term, goal in zip(atom.terms, image.terms, strict=True):
        if isinstance(term, Constant):
            if term != goal:
                return None
        elif extended.setdefault(term, goal) != goal:
            return None
    return extended


def carries_over(negation: Negation, found: Mapping[Variable, Term], source: Rule, target: Rule) -> bool:
    """Whether a negation of one rule, mapped, is one of the other rule, with its own variables not captured."""
    own = frozenset(variables_of(literal for literal in source.body if not isinstance(literal, Negation)))
    bound = frozenset(
        variables_of([target.head, *(li for li in target.body if not isinstance(li, Negation))])
    )
    mapped = apply_literal(found, negation)
    return mapped in target.body and not _captured(negation, own.union(found), bound)


def _captured(literal: Literal, outer: frozenset[Variable], bound: frozenset[Variable]) -> bool:
    """Whether a variable that a negation alone binds is bound in the target outside of it."""
    return isinstance(literal, Negation) and any(
        v in bound and v not in outer for v in variables_of([literal])
    )


def _holds(literal: Literal, others: Sequence[Literal]) -> bool:
    """Whether a mapped filter is among the target's filters, or is true of constants as it stands."""
    match literal:
        case NullTest(term=Constant(value=value)):
            return (value is None) != literal.negated
        case Comparison(operator="=", left=left, right=right) if left == right and isinstance(left, Constant):
            return left.value is not None
        case Comparison() | NullTest() | Negation() | Atom():
            return literal in others
