"""Columns that a block does not use, as anonymous variables."""

from __future__ import annotations

from collections import Counter

from datalog.model import Variable, expression_variables, terms_of, variables_of
from datalog.sql.views.pieces import Draft


def with_anonymous(draft: Draft) -> Draft:
    """The draft with every variable that occurs only once, in an atom, called `_1`, `_2`, ... in order.

    Before: `r(Id, Name), s(Id, Price)` with the output `Name`
    After:  `r(Id, Name), s(Id, _1)`
    """
    above = expression_variables((*draft.outputs, *draft.filters, *(draft.groups or ()), *draft.having))
    places = Counter(term for literal in draft.body for term in terms_of(literal))
    unused = [v for v in variables_of(draft.body) if places[v] == 1 and v not in above]
    return draft.substituted({v: Variable(f"_{number}") for number, v in enumerate(unused, 1)})
