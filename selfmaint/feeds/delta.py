"""Delta's change data feed: `_change_type`, `_commit_version` and `_commit_timestamp` beside the table's columns.

An update is a pair of rows, before (`update_preimage`) and after (`update_postimage`). Rows of one commit have no
order among them: what goes comes before what comes. Source: the Delta Lake documentation, "Change data feed".
"""

from __future__ import annotations

from selfmaint.feeds.column_feed import ColumnFormat
from selfmaint.feeds.positions import Scale

DELTA = ColumnFormat(
    name="a Delta change data feed",
    removed=frozenset({"delete", "update_preimage"}),
    added=frozenset({"insert", "update_postimage"}),
    order="_commit_version",
    scale=Scale.VERSION,
    others=frozenset({"_commit_timestamp"}),
)
