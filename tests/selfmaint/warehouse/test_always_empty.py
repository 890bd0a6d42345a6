"""Views that can have no rows: decided, maintained and explained, and of no influence on the others."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from datalog.model import Row
from selfmaint.api.check import check
from selfmaint.api.explain import explain
from selfmaint.api.maintain import maintain
from selfmaint.api.printing.statements import statements, tables_of
from selfmaint.api.update import Update
from selfmaint.api.warehouse import build
from selfmaint.conformance.cases import case_of
from selfmaint.conformance.run import run_case
from selfmaint.decide.decision import Decision
from selfmaint.decide.verdict import NotSelfMaintainable, SelfMaintainable
from selfmaint.engine.memory import MemoryEngine
from selfmaint.errors import InputError
from selfmaint.fallback.settle import Readable
from selfmaint.sources.memory import RowsSource
from selfmaint.warehouse.catalog import catalog
from selfmaint.warehouse.situation import Situation
from tests.large_engine import LargeEngine
from tests.oracle.bruteforce import Case
from tests.oracle.strategies import Limits, cases

PROGRAM = """
    never(X, Y) :- r(X), s(Y), X = 3, X = 4.
    above(X) :- never(X, Y), s(X).
    v(X, Y) :- r(X), s(Y).
"""
NOTHING: frozenset[Row] = frozenset()
STORED = {"never": NOTHING, "above": NOTHING, "v": frozenset({(1, 2)})}
INSERTED: Update[frozenset[Row]] = Update({"r": frozenset({(3,), (4,)})}, {"s": frozenset({(3,)})})


@pytest.mark.parametrize("engine", [MemoryEngine, LargeEngine])
def test_it_is_self_maintainable_and_does_not_change(engine: type[MemoryEngine]) -> None:
    after = {"r": (("a",), frozenset({(1,), (3,), (4,)})), "s": (("b",), frozenset({(2,)}))}
    readable = Readable(RowsSource("here", after))
    warehouse = build(PROGRAM, STORED, engine(), readable={"r": readable, "s": readable})
    verdicts = check(warehouse, INSERTED, full=True)
    assert verdicts["never"] == SelfMaintainable("never", exact=True)
    assert verdicts["above"] == SelfMaintainable("above", exact=True)
    found = maintain(warehouse, INSERTED, verify=True)
    assert [found.deltas[name].gained for name in ("never", "above")] == [NOTHING, NOTHING]
    assert [found.deltas[name].lost for name in ("never", "above")] == [NOTHING, NOTHING]
    assert found.differences == ()


def test_its_explanation_and_its_statements_are_empty() -> None:
    warehouse = build(PROGRAM, STORED, MemoryEngine())
    found = explain(warehouse, INSERTED, "never")
    assert (found.ruled_out, found.tested, found.counterexample, dict(found.supplies)) == ((), (), None, {})
    schema = catalog(warehouse.catalog.program)
    situation = Situation.any_update(schema.relations)
    assert statements(Decision(schema), schema.view("never"), situation, tables_of(schema, {})) == ()


@pytest.mark.parametrize("full", [False, True])
def test_rows_stored_for_it_are_bad_input(full: bool) -> None:
    warehouse = build(PROGRAM, {**STORED, "never": frozenset({(3, 2)})}, MemoryEngine())
    with pytest.raises(InputError, match=r"SM201.*`never` can have no rows: `3 = 4`.*\(x=3, y=2\)"):
        check(warehouse, INSERTED, full=full)


def test_another_view_stays_exactly_decided() -> None:
    """An undecided view would make a "no" of the others doubtful; this one does not."""
    program = "never(X) :- r(X), null is not null. v(X, Y) :- r(X), s(Y)."
    warehouse = build(program, {"never": NOTHING, "v": NOTHING}, MemoryEngine())
    update: Update[frozenset[Row]] = Update({"r": frozenset({(1,)})})
    assert isinstance(check(warehouse, update)["v"], NotSelfMaintainable)


@given(cases(Limits(odd_heads=True)), st.data())
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_the_other_views_are_decided_as_without_it(case: Case, data: st.DataObject) -> None:
    """Law: a view that is empty on every database says nothing of any."""
    name = data.draw(st.sampled_from(sorted(case["relations"])))
    variables = ", ".join(f"X{i}" for i in range(case["relations"][name]))
    tests = data.draw(st.sampled_from(["null is not null", "X0 = 1, X0 = 2", "X0 < X0"]))
    if not variables:
        tests = "1 = 2"
    heads = [variables, "'all'", *(["X0", "X0, count(*)"] if variables else [])]
    rule = f"zero({data.draw(st.sampled_from(heads))}) :- {name}({variables}), {tests}."
    more = {**case, "program": f"{case['program']}\n{rule}", "views": {**case["views"], "zero": []}}

    def outcomes(record: dict[str, object]) -> list[tuple[str, str, object]]:
        found = run_case(case_of({"id": "random", "expected": _views(case), **record}), MemoryEngine())
        return [(o.view, o.verdict, o.state) for o in found]

    assert outcomes(more) == outcomes(dict(case))


def _views(case: Case) -> dict[str, dict[str, bool]]:
    return {name: {"self_maintainable": True} for name in case["views"]}
