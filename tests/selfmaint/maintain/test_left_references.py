"""Updates that leave rows in a group whose references are deleted are refused, and no others.

Oracle: `tests/oracle/aggregates.py`: whether some database over small domains explains the views and the update.
"""

from __future__ import annotations

from random import Random

import pytest

from datalog.model import Row
from datalog.syntax import parse_program
from selfmaint import Update
from selfmaint.api.warehouse import Warehouse, build
from selfmaint.engine.memory import MemoryEngine
from selfmaint.errors import Code, InputError
from selfmaint.warehouse.catalog import catalog
from tests.effort import effort
from tests.oracle.aggregates import Aggregate, Relation, Schema, View
from tests.selfmaint.decide.test_group_decision import stored

SALE = Relation("sale", (("s1", "s2", "s3"), ("k1", "k2"), (1, 2)), 0, ((1, "cust"),))
CUST = Relation("cust", (("k1", "k2"), ("eu", "us")))
BODY = (("sale", ("I", "C", "A")),)
COUNT, SUM = Aggregate("count", "*"), Aggregate("sum", "A")
VIEWS = {
    "counted": View("v", ("C",), (COUNT, SUM), BODY),
    "a sum that is left": View("v", ("C",), (SUM,), BODY),
    "a bag": View("v", ("C",), (), BODY, semantics="bag"),
    "joined": View("v", ("C", "R"), (COUNT,), (*BODY, ("cust", ("C", "R")))),
    "not shown": View("v", ("R",), (COUNT,), (*BODY, ("cust", ("C", "R")))),
    "of all": View("v", (), (COUNT,), BODY),
}


def refusal(warehouse: Warehouse[frozenset[Row]], update: Update[frozenset[Row]]) -> frozenset[Code]:
    """With which codes an update is refused; none if it is not."""
    try:
        warehouse.check(update, budget_s=0.2)
    except InputError as error:
        return frozenset(d.code for d in error.diagnostics if isinstance(d.code, Code))
    return frozenset()


@pytest.mark.parametrize("name", VIEWS)
def test_what_is_refused_has_no_database(name: str) -> None:
    schema = Schema((SALE, CUST), (3, 2), (VIEWS[name],))
    view, every, random = VIEWS[name], schema.databases(), Random(name)
    (found,) = catalog(parse_program(schema.text)).views
    names, refused = [r.name for r in schema.relations], 0
    for _ in range(effort(20, 400)):
        rows = view.rows(random.choice(every))
        other = random.choice(every)
        deleted = {n: frozenset(random.sample(sorted(other[n]), min(len(other[n]), 1))) for n in names}
        kept = deleted["cust"] if random.random() < 0.2 else frozenset()
        inserted = {"cust": frozenset((k, "us" if r == "eu" else "eu") for k, r in kept)}
        explained = any(
            view.rows(before) == rows
            and all(deleted[n] <= before[n] for n in names)
            and schema.is_sound({n: before[n] - deleted[n] | inserted.get(n, frozenset()) for n in names})
            for before in every
        )
        contents = {"v": stored(rows, is_counted=found.is_counted)}
        update = Update(inserted, deleted, effective=True)
        codes = refusal(build(schema.text, contents, MemoryEngine()), update)
        assert not (explained and codes), f"{rows}\n{update}"
        refused += Code.BREAKS_CONSTRAINT in codes
    assert (refused > 0) == (name not in ("not shown", "of all"))
