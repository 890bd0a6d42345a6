"""What the audit lets stored groups say: that there is a row for each group, and nothing of their aggregates.

The audit looks at the least warehouses in which a rule of the test has a row. They stand for all others because no fact
is certain there that is not certain in those. Stored aggregates are not like that: a group of one row that is known has
no other, and a larger warehouse's group has. So they are left out; with less known, "always" still is.
"""

from __future__ import annotations

from dataclasses import replace

from selfmaint.warehouse.catalog import Catalog, View


def without_aggregates(catalog: Catalog) -> Catalog:
    """The warehouse as the audit's tests see it. Views have the same names and columns."""
    return replace(catalog, views=tuple(_without_aggregates(view) for view in catalog.views))


def _without_aggregates(view: View) -> View:
    if view.grouped is None:
        return view
    block, columns, is_total = view.grouped.block, view.grouped.columns, view.grouped.is_total
    if block.filters:  # a stored group has a row that passes them, which a least warehouse need not have
        block, columns, is_total = replace(block, groups=None), (), True
    silent = replace(view.grouped, block=block, columns=columns, measures=(), is_total=is_total)
    return replace(view, grouped=silent)
