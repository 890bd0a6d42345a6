"""Drafts of blocks, named, and the types of columns that several share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from datalog.analysis import common_type
from datalog.model import (
    ANY,
    Block,
    ColumnType,
    TypeName,
    Variable,
    block,
    expression_variables,
    terms_of,
    variables_of,
)
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


def united_type(kinds: Sequence[ColumnType]) -> ColumnType:
    """The type of a column of a union, as Spark widens numbers; of other types that of the first query.

    >>> str(united_type([ColumnType(TypeName.DECIMAL, 10, 0), ColumnType(TypeName.DECIMAL, 9, 2)]))
    'decimal(12,2)'
    >>> str(united_type([ColumnType(TypeName.BIGINT), ColumnType(TypeName.FLOAT)]))
    'float'
    """
    if {kind.name for kind in kinds if not kind.name.is_integer} == {TypeName.FLOAT}:
        return ColumnType(TypeName.FLOAT)
    found = kinds[0] if kinds else ANY
    for kind in kinds[1:]:
        found = common_type(found, kind) or found
    return found
