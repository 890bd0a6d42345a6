"""What is known of stored rows without computing them, and which columns find few of them."""

from __future__ import annotations

from collections.abc import Sequence

from selfmaint.engine.protocol import Layout

FEW_ROWS = 50
"""A column by whose values at most so many rows are found, on the average, is as good as any others."""


def finding(layout: Layout, columns: Sequence[int]) -> int | None:
    """The one of some columns that finds few rows for a value, if that is known of any."""
    best = max((c for c in columns if c in layout.spreads), key=lambda c: layout.spreads[c], default=None)
    rows = layout.at_most
    if best is None or rows is None or rows > FEW_ROWS * layout.spreads[best]:
        return None
    return best


def taken(layout: Layout, places: Sequence[int]) -> Layout:
    """What is known of some columns of a relation."""
    spreads = {i: layout.spreads[place] for i, place in enumerate(places) if place in layout.spreads}
    never_null = frozenset(i for i, place in enumerate(places) if place in layout.never_null)
    return Layout(layout.rows, spreads, never_null, layout.most)
