"""Values joined with columns of other types, which may not hold them: no database has such a row."""

from __future__ import annotations

from decimal import Decimal

import pytest

from datalog.model import Predicate, Value, Version
from selfmaint.api.file.programs import catalog_of
from selfmaint.decide.decision import Decision
from selfmaint.decide.procedure import check
from selfmaint.decide.verdict import VerdictKind
from selfmaint.engine.memory import MemoryEngine
from selfmaint.engine.protocol import Facts
from selfmaint.warehouse.situation import Situation
from tests.large_engine import LargeEngine

YES, NO, UNDECIDED = VerdictKind.YES, VerdictKind.NO, VerdictKind.UNDECIDED
VALUES = [
    ("decimal(6, 2)", "int", Decimal("-3.25"), False),
    ("decimal(6, 2)", "int", Decimal("-3.00"), True),
    ("decimal(9, 3)", "decimal(6, 2)", Decimal("0.125"), False),
    ("decimal(9, 3)", "decimal(6, 2)", Decimal(123456), False),
    ("decimal(9, 3)", "decimal(6, 2)", Decimal("1234.500"), True),
    ("bigint", "int", 10**12, False),
    ("bigint", "int", 2**31, False),
    ("bigint", "int", -(2**31), True),
    ("int", "tinyint", 1000, False),
    ("int", "bigint", 1000, True),
]
"""Types of the two columns, a value of the first, and whether the second holds it."""


@pytest.mark.parametrize(("one", "other", "value", "is_held"), VALUES)
@pytest.mark.parametrize("engine", [MemoryEngine, LargeEngine])
def test_what_a_column_cannot_hold_is_in_no_database(
    engine: type[MemoryEngine], one: str, other: str, value: Value, is_held: bool
) -> None:
    """Where data are too large to search through all databases, nothing is claimed."""
    catalog = catalog_of(
        f"""create table a (id int primary key, d {one} not null);
        create table b (id int primary key, k {other} not null);
        create view v as select a.id as i, a.d, b.id as j, b.k from a join b on a.d = b.k;"""
    )
    facts = {Predicate("v"): frozenset(), Predicate("a", Version.INSERTED): frozenset({(9, value)})}
    known = Decision(catalog).knowledge(engine(), Facts(facts), Situation.of(facts, effective=True))
    for sample in (0, 20):
        found = check(known, catalog.views, sample)["v"].kind
        assert found in ((NO,) if is_held else (YES, UNDECIDED)), sample
        assert found is not UNDECIDED or engine is LargeEngine


def test_a_counterexample_holds_only_what_its_columns_do() -> None:
    """The other fact that a test finds is a proof: `cust(Id, 9)` may be there, `cust(-3.25, D)` may not."""
    catalog = catalog_of(
        """create table cust (id int primary key, d decimal(6, 2) not null);
        create view v as select p.id as i, p.d, q.id as j, q.d as e from cust p join cust q on p.d = q.id;"""
    )
    row = frozenset({(9, Decimal("-3.25"))})
    facts = {Predicate("v"): frozenset(), Predicate("cust", Version.INSERTED): row}
    known = Decision(catalog).knowledge(MemoryEngine(), Facts(facts), Situation.of(facts, effective=True))
    assert check(known, catalog.views)["v"].kind is NO
