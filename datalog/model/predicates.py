"""Predicates: a relation's name and which version of that relation is meant."""

from __future__ import annotations

from enum import Enum, unique

from msgspec import Struct


@unique
class Version(Enum):
    """Which version of a relation a predicate stands for.

    `STORED` is the relation as the rules of a user mean it. The others are written `name@version`.
    """

    __hash__ = (
        object.__hash__
    )  # members are equal if they are the same: no need to hash their names in Python

    STORED = "stored"
    INSERTED = "inserted"
    """Rows that the update adds."""
    DELETED = "deleted"
    """Rows that the update removes."""
    PRESENT = "present"
    """Partial copy: rows known to be in the relation before the update."""
    ABSENT = "absent"
    """Partial copy: rows known not to be in the relation before the update."""
    BEFORE = "before"
    """The before-image of a relation that may be read."""
    REGION = "region"
    """Keys for which the relation is fully known; the predicate's `columns` say which columns are the key."""
    PROBE = "probe"
    """Keys to look up in a base relation; `columns` say which columns they are."""
    FOUND = "found"
    """Rows of a base relation that a probe found, in the state after the update."""
    NEW = "new"
    """Facts that a counterexample assumes."""
    PROBLEM = "problem"
    """Rows that contradict something known."""
    RECOMPUTED = "recomputed"
    """A view computed from its base relations after the update."""
    KNOWN = "known"
    """The canonical database."""
    EXISTS = "exists"
    """Values of some columns (`columns` says which) for which the relation certainly has a row."""
    AFTER = "after"
    """The canonical database with the update applied."""
    POSSIBLE = "possible"
    """An arbitrary superset of the canonical database (Huyn, Table 1: r'')."""
    POSSIBLE_AFTER = "possible_after"
    """That superset with the update applied (Huyn, Table 1: r')."""
    GAINED = "gained"
    """Rows that a view gains."""
    LOST = "lost"
    """Rows that a view loses."""
    DEPENDS = "depends"
    """Witnesses of a failing self-maintainability test."""
    IMPOSSIBLE = "impossible"
    """Witnesses that stored aggregates rule out; `columns` as of `DEPENDS`."""
    ARRIVED = "arrived"
    """Inserted rows that are not in the canonical database."""
    CORE = "core"
    """The conjunctive part of a view's block; `columns` has the block's number."""
    BAG = "bag"
    """The rows of a view that keeps duplicates, as often as they stand; `STORED` are its counted rows."""
    STEP = "step"
    """Intermediate bindings."""
    DEMAND = "demand"
    """Values of some columns for which rows are wanted."""
    DEMANDED = "demanded"
    """The rows with these values."""
    PROJECTED = "projected"
    """Some columns of demanded rows."""


class Predicate(Struct, frozen=True, cache_hash=True):
    """A predicate symbol.

    Attributes:
        name: the relation's name, any text (a hostile name is just data).
        version: which version of that relation.
        columns: for `REGION`, the 0-based positions of the key; else for telling numbered variants apart.
    """

    name: str
    version: Version = Version.STORED
    columns: tuple[int, ...] = ()

    def __str__(self) -> str:
        if self.version is Version.STORED:
            return self.name
        suffix = "".join(f"_{c}" for c in self.columns)
        return f"{self.name}@{self.version.value}{suffix}"

    def of(self, version: Version, columns: tuple[int, ...] = ()) -> Predicate:
        """The same relation in another version."""
        return Predicate(self.name, version, columns)
