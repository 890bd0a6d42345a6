"""What is known in a recorded case, as the search takes it."""

from __future__ import annotations

from selfmaint.conformance.cases import Case
from selfmaint.conformance.run import case_facts
from selfmaint.countermodel.model_check import Given
from selfmaint.decide.decision import Decision
from selfmaint.decide.searched import at_hand
from selfmaint.engine.memory import MemoryEngine
from selfmaint.warehouse.catalog import Catalog
from selfmaint.warehouse.situation import Situation


def given_of(record: Case, schema: Catalog) -> Given:
    """Everything that a case says."""
    engine = MemoryEngine()
    base = (p for p in record.contents if p.name in schema.relations)
    situation = Situation.of(base, effective=record.effective)
    known = at_hand(Decision(schema).knowledge(engine, case_facts(record, schema, engine), situation))
    assert known is not None
    return known
