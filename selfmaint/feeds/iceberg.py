"""Iceberg's changelog view: `_change_type`, `_change_ordinal` and `_commit_snapshot_id` beside the table's columns.

Copy-on-write gives a DELETE and an INSERT for each row that a rewritten file carries over; the net effect has none
of them. Source: the Iceberg documentation, Spark procedure `create_changelog_view`.
"""

from __future__ import annotations

from selfmaint.feeds.column_feed import ColumnFormat
from selfmaint.feeds.positions import Scale

ICEBERG = ColumnFormat(
    name="an Iceberg changelog",
    removed=frozenset({"DELETE", "UPDATE_BEFORE"}),
    added=frozenset({"INSERT", "UPDATE_AFTER"}),
    order="_change_ordinal",
    scale=Scale.ORDINAL,
    others=frozenset({"_commit_snapshot_id"}),
)
