"""Where the rows of a predicate are."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from datalog.sql.errors import EmissionError

_PARTS = ("this", "db", "catalog")
"""The parts of a table's name, the last one first."""


@dataclass(frozen=True, slots=True)
class Table:
    """A stored table, a temporary view or a common table expression.

    Rows may repeat: a predicate's extension is the set of them.

    Attributes:
        name: the parts of its identifier, such as `('spark_catalog', 'db', 'v1')` or `('v1',)`, unquoted.
        columns: names of its columns, in the order of the predicate's terms.
        not_null: 0-based positions that never hold null.
        broadcast: whether it is so small that a join should broadcast it (with `hints=True`).
    """

    name: tuple[str, ...]
    columns: tuple[str, ...]
    not_null: frozenset[int] = frozenset()
    broadcast: bool = False

    def __post_init__(self) -> None:
        if not 1 <= len(self.name) <= len(_PARTS):
            raise EmissionError(f"a table's name has one to three parts, not {len(self.name)}")

    def tree(self, alias: str) -> exp.Table:
        """The table in a FROM clause; the alias is left out where it is the table's own name."""
        parts = [exp.to_identifier(part, quoted=True) for part in reversed(self.name)]
        table = exp.Table(**dict(zip(_PARTS, parts, strict=False)))
        if alias != self.name[-1]:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))
        return table
