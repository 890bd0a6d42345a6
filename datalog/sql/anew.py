"""A stored table whose rows are computed anew from others, in one statement.

INSERT OVERWRITE TABLE v (region, n) WITH sale AS (...) SELECT region, n FROM (the query as it is written) AS made
"""

# ruff: noqa: S608 - names are quoted
from __future__ import annotations

from collections.abc import Mapping, Sequence

from datalog.sql.tables import Query, Table
from datalog.sql.text import quoted, text


def overwrite(table: Table, columns: Sequence[str], query: str) -> str:
    """The statement that replaces a table's rows by those of a query; without columns, by all of its, in order.

    >>> print(overwrite(Table(("db", "v"), ("a", "b")), ["a", "b"], "SELECT 1, 2"))
    INSERT OVERWRITE TABLE `db`.`v` (`a`, `b`)
    SELECT 1, 2
    """
    names = ".".join(map(quoted, table.name))
    listed = f" ({', '.join(map(quoted, columns))})" if columns else ""
    return f"INSERT OVERWRITE TABLE {names}{listed}\n{query}"


def over_steps(
    query: str, columns: Sequence[str], steps: Mapping[str, Query], names: Sequence[str] = ()
) -> str:
    """The query for some columns of the rows of one that is written, by name.

    Args:
        query: the text.
        columns: the names of the columns wanted; none where they are not known: all of them.
        steps: queries of which the text may read the rows, by name.
        names: what all columns of the text are called, if it does not say so itself.

    >>> print(over_steps("select a from v", ["a"], {}))
    SELECT `a` FROM (
    select a from v
    ) AS `made`
    """
    given = f" ({', '.join(map(quoted, names))})" if names else ""
    made = ",\n".join(f"{quoted(name)} AS (\n{text(step)}\n)" for name, step in steps.items())
    before = f"WITH {made}\n" if made else ""
    wanted = ", ".join(map(quoted, columns)) or "*"
    # The text may end in a comment: its line ends before the parenthesis.
    return f"{before}SELECT {wanted} FROM (\n{query}\n) AS {quoted('made')}{given}"
