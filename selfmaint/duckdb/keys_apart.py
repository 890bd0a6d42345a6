"""Keys that lie far from one another, looked for in parts: DuckDB decodes all rows that lie between the keys it joins.

    keys 1, 2, .., 1500, 2_000_017, 5_900_001        where 1 <= K <= 1500; where K < 1; where K > 1500

A relation's files are mostly in the order of its keys, and an update is of new rows, which lie together, and of a few
old ones. Up to `LISTED` keys DuckDB looks for one by one itself: of these it decodes the pages that have them.

The parts of the keys are disjoint and together all of them: null is no key here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from datalog.copies import replace
from datalog.model import Comparison, Constant, Rule
from selfmaint.duckdb.extensions import Extension
from selfmaint.engine.column_types import is_integer

APART = 3
"""For so many keys, whole numbers, each is looked for by itself in a relation of `MANY_ROWS`."""

MANY_ROWS = 1_000_000

LISTED = 50
"""So many values of a joined column DuckDB compares with what files say of their parts."""

NARROW = 4
"""Keys lie together that span a smaller part of what all of them span."""


def by_parts(rule: Rule, keys: Extension, stored: Extension) -> list[Rule]:
    """A rule over keys and a relation, in this order, for each part of the keys; as it is if they are in none."""
    number, rows = keys.stored.rows or 0, stored.stored.known_rows or 0
    is_apart = number > 1 and rows >= MANY_ROWS and all(map(is_integer, keys.stored.types))
    few = keys.stored.few if is_apart else None
    if few is None or keys.stored.with_null:
        return [rule]
    terms = rule.atoms[0].terms
    if number <= APART:
        tests = [[Comparison("=", t, Constant(v)) for t, v in zip(terms, r, strict=True)] for r in few.rows]
    else:
        near = _near(sorted({row[0] for row in few.rows}))
        if near is None:
            return [rule]
        first, last = map(Constant, near)
        tests = [
            [Comparison(">=", terms[0], first), Comparison("<=", terms[0], last)],
            [Comparison("<", terms[0], first)],
            [Comparison(">", terms[0], last)],
        ]
    return [replace(rule, body=(*rule.body, *its)) for its in tests]


def _near(values: Sequence[Any]) -> tuple[Any, Any] | None:
    """Between which values all lie but for those that are looked for one by one; None if they do not lie together."""
    number = len(values) - LISTED
    if number < 1:
        return None
    windows = ((values[i + number - 1] - values[i], i) for i in range(LISTED + 1))
    span, at = min(windows)
    # As much wider as it may be: what lies near them is not looked for elsewhere.
    first, last = at, at + number - 1
    while first and values[at] - values[first - 1] <= span:
        first -= 1
    while last + 1 < len(values) and values[last + 1] - values[at + number - 1] <= span:
        last += 1
    is_narrow = (values[last] - values[first]) * NARROW < values[-1] - values[0]
    return (values[first], values[last]) if is_narrow else None
