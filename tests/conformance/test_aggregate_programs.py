"""The recorded programs with aggregate heads are read as view definitions, and shown so that they read back."""

from __future__ import annotations

import json
from pathlib import Path

from datalog.model import AggregateFunction, ViewDefinition
from datalog.syntax import parse_program, show

CASES = Path(__file__).parent / "data" / "aggregates.jsonl"


def test_every_program_is_read() -> None:
    functions: set[AggregateFunction] = set()
    for line in CASES.read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        program = parse_program(case["program"])
        assert parse_program(show(program)) == program
        defined: dict[str, int] = {rule.head.predicate.name: rule.head.arity for rule in program.rules}
        for view in program.views:
            assert isinstance(view, ViewDefinition)
            (block,) = view.blocks
            functions.update(one.function for one in block.aggregates)
            # A stored row: group columns, then aggregates in the order of the head.
            assert block.outputs == (*(block.groups or ()), *block.aggregates)
            defined[view.name] = len(view.columns)
        assert set(defined) == set(case["views"])
        for name, rows in case["views"].items():
            assert all(len(row) == defined[name] for row in rows)
    kinds = AggregateFunction
    assert functions == {kinds.COUNT, kinds.SUM, kinds.MIN, kinds.MAX}
