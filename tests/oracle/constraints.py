"""Keys, unique constraints and foreign keys, by their definitions.

SQL's rules for NULL: rows that have NULL in a column of a unique constraint are never
twins; a row with NULL in a column of a foreign key refers to nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from .rules import Relations, Row

Positions = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """The child's columns, unless NULL, are the target columns of a row of the parent."""

    child: str
    columns: Positions
    parent: str
    targets: Positions

    def reference(self, row: Row) -> Row | None:
        """What a row of the child refers to: the values of the target columns, in their order."""
        values = tuple(row[column] for column in self.columns)
        return None if None in values else values

    def met(self, reference: Row, parents: Collection[Row]) -> bool:
        """Whether a row of the parent is what is referred to."""
        return any(tuple(row[target] for target in self.targets) == reference for row in parents)


@dataclass(frozen=True, slots=True)
class Constraints:
    """What holds before and after the update."""

    uniques: Mapping[str, tuple[Positions, ...]]
    """The keys among them."""
    foreign_keys: tuple[ForeignKey, ...]

    def twins(self, name: str, row: Row, rows: Collection[Row]) -> bool:
        """Whether another of the rows agrees with the row where it must not."""
        return any(
            row != other and all(row[i] == other[i] and row[i] is not None for i in positions)
            for positions in self.uniques.get(name, ())
            for other in rows
        )

    def references(self, name: str, row: Row) -> Iterator[tuple[ForeignKey, Row]]:
        """All that a row refers to."""
        for foreign_key in self.foreign_keys:
            reference = foreign_key.reference(row) if foreign_key.child == name else None
            if reference is not None:
                yield foreign_key, reference

    def hold(self, relations: Relations) -> bool:
        """Whether a database satisfies them all."""
        return not any(
            self.twins(name, row, rows)
            or any(not k.met(v, relations.get(k.parent, ())) for k, v in self.references(name, row))
            for name, rows in relations.items()
            for row in rows
        )

    @property
    def cyclic(self) -> bool:
        """Whether a relation refers to itself, be it through others."""
        edges = {(k.child, k.parent) for k in self.foreign_keys}
        while True:
            longer = {(a, d) for a, b in edges for c, d in edges if b == c} - edges
            if not longer:
                return any(a == b for a, b in edges)
            edges |= longer
