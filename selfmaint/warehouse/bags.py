"""Views that keep duplicates or compute columns, as views that group by their columns.

    SELECT a, b FROM r                 keeps duplicates
    SELECT a, b, count(*) FROM r GROUP BY a, b           the same rows, each once with its number of copies

So the stored rows of a bag *are* the groups with their counts: wherever rows of such a view are read they are *counted
rows*, each distinct row once, with its number of copies, at least 1, as a last column. A view whose rows stand once
groups likewise, without the count.

Conditions of soundness:

1. The number of copies of a row is the number of core rows that it comes from: the core is a set, since relations are.
2. Of a view that removes duplicates, or whose columns determine their core row by keys, each group is one row.
"""

from __future__ import annotations

from dataclasses import replace

from datalog.model import (
    Aggregate,
    AggregateFunction,
    Semantics,
    ViewDefinition,
    implied_groups,
)
from selfmaint.warehouse.grouped import SOME_ROWS


def grouping(definition: ViewDefinition, *, counted: bool) -> ViewDefinition | None:
    """The definition of a view's distinct rows as groups of core rows; None if it has several blocks, or groups.

    Args:
        definition: a view.
        counted: whether the number of copies of each row is to be the last column.

    Example:
        >>> from datalog.model import Atom, Predicate, Variable, block
        >>> from datalog.syntax import show
        >>> x, y = Variable("X"), Variable("Y")
        >>> bag = ViewDefinition("v", ("x",), (block("v", 0, [Atom(Predicate("r"), (x, y))], [x]),))
        >>> print(show(grouping(bag, counted=True)))
        .view v(x, copies) bag.
        v(X, count(*)) :- r(X, Y).
    """
    if len(definition.blocks) != 1 or definition.is_grouped:
        return None
    (block,) = definition.blocks
    groups = implied_groups(block.outputs)
    more = (Aggregate(AggregateFunction.COUNT),) if counted else ()
    made = replace(
        block, outputs=(*block.outputs, *more), groups=groups, having=() if groups else (SOME_ROWS,)
    )
    columns = (*definition.columns, *([copies_column(definition)] if counted else []))
    return replace(definition, columns=columns, blocks=(made,), semantics=Semantics.BAG)


def copies_column(definition: ViewDefinition) -> str:
    """The name of the column of counted rows that holds the number of copies: `copies`, or longer if it is taken."""
    taken = {column.casefold() for column in definition.columns}
    name = "copies"
    while name in taken:
        name += "_"
    return name
