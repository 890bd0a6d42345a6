"""What kinds of knowledge and change there are, without their rows: what a test is generated for."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from msgspec import Struct

from datalog.copies import replace
from datalog.model import Predicate, Version


class Situation(Struct, frozen=True):
    """Which relations change, and what is known besides the views.

    Attributes:
        inserted: relations into which rows are inserted.
        deleted: relations from which rows are deleted.
        present: relations with a partial copy of rows known to be in them before the update.
        absent: relations with rows known not to be in them before the update.
        readable: relations whose whole before-image is at hand.
        regions: keys on which a relation is fully known, as `REGION` predicates.
        effective: inserted rows were absent before, deleted rows were present.
        followed: views whose rows after the update are determined: of those that group, they are at hand as
            `view@after`.
        ruled_out: tests some of whose witnesses stored aggregates rule out, as `IMPOSSIBLE` predicates.
        unmet: views that read no row of the update.
    """

    inserted: frozenset[str] = frozenset()
    deleted: frozenset[str] = frozenset()
    present: frozenset[str] = frozenset()
    absent: frozenset[str] = frozenset()
    readable: frozenset[str] = frozenset()
    regions: frozenset[Predicate] = frozenset()
    effective: bool = False
    followed: frozenset[str] = frozenset()
    ruled_out: frozenset[Predicate] = frozenset()
    unmet: frozenset[str] = frozenset()

    def of_relations(self, relations: Collection[str]) -> Situation:
        """What of it is about some relations."""
        return replace(
            self,
            inserted=self.inserted.intersection(relations),
            deleted=self.deleted.intersection(relations),
            present=self.present.intersection(relations),
            absent=self.absent.intersection(relations),
            readable=self.readable.intersection(relations),
            regions=frozenset(region for region in self.regions if region.name in relations),
        )

    @property
    def wholly_known(self) -> frozenset[str]:
        """Relations with a region that is everything."""
        return frozenset(p.name for p in self.regions if not p.columns)

    @classmethod
    def any_update(cls, relations: Iterable[str], *, effective: bool = False) -> Situation:
        """Any mix of insertions and deletions on some relations, with nothing known but the views."""
        names = frozenset(relations)
        return cls(inserted=names, deleted=names, effective=effective)

    @classmethod
    def of(cls, predicates: Iterable[Predicate], *, effective: bool = False) -> Situation:
        """The situation in which some predicates have rows."""
        given = list(predicates)

        def names(version: Version) -> frozenset[str]:
            return frozenset(p.name for p in given if p.version is version)

        return cls(
            inserted=names(Version.INSERTED),
            deleted=names(Version.DELETED),
            present=names(Version.PRESENT),
            absent=names(Version.ABSENT),
            readable=names(Version.BEFORE),
            regions=frozenset(p for p in given if p.version is Version.REGION),
            effective=effective,
        )
