"""Drafts of blocks, named."""

from __future__ import annotations

from collections import Counter

from datalog.model import Block, Variable, block, expression_variables, terms_of, variables_of
from datalog.sql.views.scope import Draft


def named_block(name: str, number: int, draft: Draft) -> Block:
    """A draft as the block of that number of a view."""
    made = _with_anonymous(draft)
    return block(
        name,
        number,
        made.body,
        made.outputs,
        filters=made.filters,
        groups=made.groups,
        having=made.having,
    )


def _with_anonymous(draft: Draft) -> Draft:
    """The draft with every variable that occurs only once, in an atom, called `_1`, `_2`, ... in order.

    Before: `r(Id, Name), s(Id, Price)` with the output `Name`
    After:  `r(Id, Name), s(Id, _1)`
    """
    above = expression_variables((*draft.outputs, *draft.filters, *(draft.groups or ()), *draft.having))
    places = Counter(term for literal in draft.body for term in terms_of(literal))
    unused = [v for v in variables_of(draft.body) if places[v] == 1 and v not in above]
    return draft.substituted({v: Variable(f"_{number}") for number, v in enumerate(unused, 1)})
