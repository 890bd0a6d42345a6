"""Everything known when views are decided: one value for each question, which all that is asked of it is kept with."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from datalog.copies import replace
from selfmaint.canonical.support import CanonicalDatabase, Support
from selfmaint.engine.protocol import D, Facts
from selfmaint.warehouse.catalog import Catalog
from selfmaint.warehouse.situation import Situation

if TYPE_CHECKING:
    from selfmaint.decide.decision import Decision


@dataclass(frozen=True, eq=False)
class Knowledge(CanonicalDatabase[D]):
    """The views' contents, the update and what else is known, with what follows from the rules alone."""

    decision: Decision

    @property
    def catalog(self) -> Catalog:
        """The warehouse's schema."""
        return self.decision.catalog

    @cached_property
    def support(self) -> Support:
        """The canonical database's rules, prepared for use in others."""
        return self.decision.support(self.situation)

    @cached_property
    def over_summands(self) -> Knowledge[D]:
        """The same over the summands of unions; what follows, and what is ruled out, is of other views and tests."""
        apart = replace(self.situation, followed=frozenset(), ruled_out=frozenset())
        return self.decision.over_summands.knowledge(self.engine, self.facts, apart)

    def learning(self, facts: Facts[D], situation: Situation | None = None) -> Knowledge[D]:
        """The same with other facts, in the same situation if there is no other one."""
        return self.decision.knowledge(self.engine, facts, situation or self.situation)
