"""Rows that follow from a key that a view does not show.

    SELECT id, amount - lag(amount) OVER (PARTITION BY customer ORDER BY day, id) AS more FROM sale

The query is run over the base rows of the customers that change, as they were and as they are, and what differs is what
the view loses and gains. The key is a column of an operator of which each row makes rows of the view by itself.

    SELECT s.id, c.name FROM sale s FULL JOIN customer c ON s.customer = c.id      the key is the first known of the two

Conditions of soundness are those 1 and 4 of `additive.py`: a row with a key that no change leads to comes out the same
both times, and nothing depends on the order of rows. Rows are counted: nothing above the key's operator makes several
rows one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import count

from sqlglot import exp

from datalog.sql.affected.choice import Keyed, NotKeyed, keyed
from datalog.sql.affected.determined import is_determined
from datalog.sql.affected.plan import Filter, Join, Plan, Project, Query, column, equalities, every


def differing(query: Query, changed: Collection[str]) -> Keyed | NotKeyed:
    """The best key, shown or not, of rows that the view's rows are made of one by one.

    Returns:
        How these rows are followed, its key being positions among theirs; or why they are not.
    """
    why = NotKeyed("its rows are made of several")
    above: list[Plan] = []
    plan = query.plan
    while True:
        found = keyed(_shown(plan), changed)
        if isinstance(found, Keyed):
            if is_determined(plan, above):
                return found
            return NotKeyed("its rows may depend on the order in which others come")
        why = found
        if not isinstance(plan, Filter | Project) or plan.inner:
            return why
        above.append(plan)
        plan = plan.input


def _shown(plan: Plan) -> Query:
    """A plan with all its columns as outputs, and of a FULL JOIN the first known of each two that are joined."""
    numbers = count(1 + max((n for one in every(plan) for n in one.columns), default=0))
    merged = tuple(
        (next(numbers), exp.Coalesce(this=column(a), expressions=[column(b)])) for a, b in _full(plan)
    )
    shown = Project(plan, merged, extends=True) if merged else plan
    return Query(shown, tuple((f"c{number}", number) for number in shown.columns))


def _full(plan: Plan) -> Iterator[tuple[int, int]]:
    """The pairs of columns by which a FULL JOIN, under filters, joins."""
    while isinstance(plan, Filter):
        plan = plan.input
    if isinstance(plan, Join) and plan.kind == "full":
        yield from (pair for pair in equalities(plan.tests) if set(pair) <= set(plan.columns))
