"""The recorded cases in large warehouses: beside each case's rows thousands of others, which share no value with it.

A recorded "no" stays one there: its two databases and the others. A recorded "yes" may become a "no", where a
hidden value may now be one of the others; if it stays a "yes", the new state is the recorded one and the others' rows.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from datalog.model import Rule, Term, Variable
from selfmaint.conformance.cases import read_cases
from selfmaint.conformance.run import run_case
from selfmaint.engine.memory import MemoryEngine
from selfmaint.warehouse.catalog import catalog
from tests.embedded import embedded, rows_beside

DATA = Path(__file__).parent / "data"
COPIES = 1500
CASES = 40


def _parts(rule: Rule) -> list[set[Term]]:
    """The variables of the parts of a body that share none: rows of the others would join those of the case."""
    parts: list[set[Term]] = []
    for atom in rule.atoms:
        mine = {t for t in atom.terms if isinstance(t, Variable)}
        near = [part for part in parts if part & mine]
        parts = [*(part for part in parts if not part & mine), mine.union(*near)]
    return parts


DECIDED = {"projection": (15, 18, 37), "union": (23, 27, 50)}
"""For each file: recorded "no"s that are a "no", recorded "yes"s that are a "yes", and all views."""


@pytest.mark.parametrize("file", DECIDED)
def test_recorded_cases_beside_thousands_of_rows(file: str) -> None:
    every = list(read_cases(DATA / f"{file}.jsonl"))
    found: Counter[tuple[str, str]] = Counter()
    for case in every[:: len(every) // CASES][:CASES]:
        schema = catalog(case.program)
        if any(len(_parts(rule)) > 1 for rule in case.program.rules):
            continue
        made = embedded(case, schema, COPIES, 0, Random(0))
        assert made is not None
        large, _ = made
        for outcome in run_case(large, MemoryEngine()):
            found[outcome.expected, outcome.verdict] += 1
            assert outcome.disagreement != "unsound", (case.name, outcome.view)
            if outcome.expected == "yes" and outcome.verdict == "yes":
                recorded = case.expected[outcome.view].state
                assert recorded is not None
                assert outcome.state == recorded | rows_beside(case, large, outcome.view), case.name
    assert (found["no", "no"], found["yes", "yes"], found.total()) == DECIDED[file]
