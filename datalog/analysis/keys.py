"""What the keys of relations determine."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from datalog.model import Atom, Constant, Term


def determined(
    given: Iterable[Term], body: Iterable[Atom], keys: Callable[[Atom], Iterable[tuple[int, ...]]]
) -> set[Term]:
    """The terms of a body that have one value each where some have: the closure of these under the keys.

    Two matches that agree on a key of an atom agree on its row. A row all of whose terms are among them is determined,
    too, if it stands once.

    Args:
        given: the terms that have one value.
        body: the subgoals that a match maps.
        keys: the keys of an atom's relation, as positions of columns that are never null; none of what is no relation.

    >>> from datalog.model import Predicate, Variable
    >>> a, b, c = map(Variable, "ABC")
    >>> body = [Atom(Predicate("r"), (a, b)), Atom(Predicate("s"), (b, c))]
    >>> determined([a], body, lambda _: [(0,)]) == {a, b, c}, determined([b], body, lambda _: [(0,)]) == {b, c}
    (True, True)
    """
    waiting = list(body)
    found = {*given, *(term for atom in waiting for term in atom.terms if isinstance(term, Constant))}
    while True:
        left = [atom for atom in waiting if not any(_known(atom, key, found) for key in keys(atom))]
        if len(left) == len(waiting):
            return found
        found.update(term for atom in waiting if atom not in left for term in atom.terms)
        waiting = left


def _known(atom: Atom, key: Iterable[int], terms: set[Term]) -> bool:
    return all(atom.terms[position] in terms for position in key)
