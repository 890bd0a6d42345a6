"""Grouped queries joined with other tables: the grouping moves above the join.

    SELECT c.id, c.name, h.n FROM c JOIN (SELECT o.c, count(*) AS n FROM o GROUP BY o.c) h ON h.c = c.id
    SELECT c.id, c.name, count(*) AS n FROM c JOIN o ON o.c = c.id GROUP BY c.id, c.name

Conditions of soundness:

1. One source groups, by something: without GROUP BY there is a row of no rows.
2. The rows of the other tables are told apart by what is grouped by: by their keys, or what determines these through
   keys. So a group above the join is a row of the others with a group below it, and has that group's rows once.
3. A condition without aggregates is the same for all rows of a group: it goes to the rows, the others to the groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from datalog.copies import replace
from datalog.model import (
    Aggregate,
    Condition,
    Constant,
    Declaration,
    Expression,
    Variable,
    aggregates_of,
    expression_variables,
    map_condition,
    map_expression,
)
from datalog.sql.views.scope import Draft, Variables
from datalog.sql.views.select import with_conditions
from datalog.sql.views.split.row_keys import RowKeys


def grouped_above(
    draft: Draft, outputs: Sequence[Expression], tests: Iterable[Condition], variables: Variables
) -> Draft:
    """A join of a grouped query with other tables as one that groups them all; `with_keys` is to follow."""
    tests = list(tests)
    having = (*draft.having, *(one for one in tests if aggregates_of([one])))
    groups = dict.fromkeys(draft.groups or ())
    groups |= dict.fromkeys(o for o in outputs if not aggregates_of([o]) and expression_variables([o]))
    groups |= dict.fromkeys(_outside_aggregates([o for o in outputs if aggregates_of([o])], having))
    made = replace(draft, outputs=tuple(outputs), groups=tuple(groups), having=having)
    return with_conditions(made, [one for one in tests if not aggregates_of([one])], variables)


def _outside_aggregates(outputs: Iterable[Expression], having: Iterable[Condition]) -> tuple[Variable, ...]:
    """The variables whose values a group has one of."""

    def change(part: Expression) -> Expression | None:
        return Constant(None) if isinstance(part, Aggregate) else None

    return expression_variables(
        [*(map_expression(change, one) for one in outputs), *(map_condition(change, one) for one in having)]
    )


def with_keys(
    draft: Draft, beside: Iterable[int], declared: Callable[[str], Declaration | None]
) -> Draft | None:
    """The draft grouped by keys of the other tables, too, where what it groups by does not determine them.

    It is not grouped by what is not used and these determine. `beside` are the places of the other tables' atoms in
    the body. None if one has no key.
    """
    groups = dict.fromkeys(draft.groups or ())
    keys = RowKeys.of((draft.body[place] for place in beside), declared)
    if keys is None:
        return None
    while more := keys.missing(groups):
        groups |= dict.fromkeys(more)
    used = {*_outside_aggregates(draft.outputs, draft.having)}
    for one in [one for one in groups if isinstance(one, Variable) and one not in used]:
        others = dict.fromkeys(other for other in groups if other != one)
        if one in keys.determined(others):
            groups = others
    return replace(draft, groups=tuple(groups))
