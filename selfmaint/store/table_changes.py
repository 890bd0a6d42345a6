"""What becomes of a view that is a table of a catalog, whatever the table's format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic

from datalog.sql import Table
from selfmaint.engine.protocol import D


@dataclass(frozen=True, eq=False)
class TableChange(Generic[D]):
    """What a table gains and loses.

    Attributes:
        view: the view.
        table: the table, columns in the view's order.
        gained: the rows that it gains; None if none.
        lost: the rows that it loses; None if none.
        counted: where rows may stand several times, the table's counted rows; `gained` and `lost` are counted, too.
    """

    view: str
    table: Table
    gained: D | None
    lost: D | None
    counted: D | None = None
