"""A query that reads the current date or time as two: a helper with rows of every date, and the query over these.

    SELECT id, price * 2 AS twice FROM sale WHERE day > DATE /* current_date */ '2026-11-24' AND price > 5

    SELECT id AS value_1, price AS value_2, day AS value_3 FROM sale WHERE price > 5
    SELECT value_1 AS id, value_2 * 2 AS twice FROM helper WHERE value_3 > DATE /* current_date */ '2026-11-24'

So on another day the query is computed from what is stored. The date stands for a value that all rows have, as one
from a query of its own would: see `outer_rows`.
"""

from __future__ import annotations

from datalog.sql.views.current_time import written_moments
from datalog.sql.views.outer_rows import Columns, split_outer
from datalog.sql.views.written_parts import Split

_CLOCK = "current_moment"
_DATE, _TIME = (f"SELECT {one} FROM {_CLOCK}" for one in ("this_date", "this_time"))  # noqa: S608


def split_dated(text: str, columns: Columns) -> Split | None:
    """A query as a helper that reads no date, and the query over it; None where it reads none, or is no such query."""
    found = written_moments(text)
    if not found or _CLOCK in text:
        return None
    literals = {its: text[start:end] for start, end, its in found}
    for start, end, is_date in reversed(found):
        text = f"{text[:start]}({_DATE if is_date else _TIME}){text[end:]}"
    made = split_outer(text, {_CLOCK: (_DATE, _TIME)}, columns)
    if made is None or _CLOCK in made.helper:
        return None
    above, behind = made.above, made.behind
    for is_date, literal in literals.items():
        query = f"({_DATE if is_date else _TIME})"
        above, behind = above.replace(query, literal), behind.replace(query, literal)
    return Split(made.helper, above, behind)
