"""Anonymous variables: which name each `_` gets, and which variables may be shown as `_`.

Each `_` of a rule is a variable of its own. In the order of the text they are called `_1`, `_2`, ...; names
that the rule spells out are passed over. Showing a rule turns a variable back into `_` only where reading
it would give the same name again, so that reading what was shown is the identity.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator
from itertools import count

from datalog.model.terms import Term, Variable


def fresh_names(spelled_out: Container[str]) -> Iterator[str]:
    """`_1`, `_2`, ... without the names that a rule spells out.

    >>> names = fresh_names({"_2"})
    >>> next(names), next(names)
    ('_1', '_3')
    """
    return (name for name in (f"_{number}" for number in count(1)) if name not in spelled_out)


def shown_as_anonymous(terms: Iterable[Term]) -> frozenset[str]:
    """The names of the variables that may be shown as `_`.

    >>> terms = [Variable("_3"), Variable("_1"), Variable("X"), Variable("_2"), Variable("_2")]
    >>> sorted(shown_as_anonymous(terms))
    ['_1']
    """
    names = [term.name for term in terms if isinstance(term, Variable) and term.name.startswith("_")]
    occurrences = Counter(names)
    spelled_out = {name for name, number in occurrences.items() if number > 1}
    shown: set[str] = set()
    fresh = fresh_names(spelled_out)
    expected = next(fresh)
    for name in names:
        if name in spelled_out:
            continue
        if name == expected:
            shown.add(name)
            expected = next(fresh)
        else:
            # Spelling it out cannot change an earlier name: those are taken by their own variables.
            spelled_out.add(name)
    return frozenset(shown)
