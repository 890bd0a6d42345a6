"""The recorded cases with a truth value more in each keyed relation, at which no view looks: the same answers."""

from __future__ import annotations

from collections import Counter
from itertools import count
from pathlib import Path

from datalog.copies import replace
from datalog.model import (
    Atom,
    Column,
    ColumnType,
    Declaration,
    Predicate,
    Row,
    Rule,
    TypeName,
    Variable,
    Version,
)
from selfmaint.conformance.cases import Case, read_cases
from selfmaint.conformance.run import run_case
from selfmaint.engine.memory import MemoryEngine
from tests.effort import effort

DATA = Path(__file__).parent / "data"


def with_idle_values(case: Case) -> Case | None:
    """The case with such a column, of a value that the key tells; None where rows are said to be absent.

    A row that is absent with one truth value may be there with the other.
    """
    keyed = {one.name: one for one in case.program.declarations if one.key is not None}
    if not keyed or any(p.version is Version.ABSENT for p in case.contents):
        return None
    numbers = count()

    def declared(one: Declaration) -> Declaration:
        more = Column("idle", ColumnType(TypeName.BOOLEAN), not_null=True)
        return replace(one, columns=(*one.columns, more)) if one.name in keyed else one

    def read(atom: Atom) -> Atom:
        if atom.predicate.name not in keyed:
            return atom
        return replace(atom, terms=(*atom.terms, Variable(f"Idle{next(numbers)}")))

    def given(predicate: Predicate, row: Row) -> Row:
        its = keyed.get(predicate.name)
        if its is None or its.key is None:
            return row
        key = tuple(row[its.column_names.index(name)] for name in its.key)
        return (*row, sum(map(len, map(repr, key))) + sum(map(ord, repr(key))) % 2 == 0)

    rules = tuple(
        Rule(rule.head, tuple(read(li) if isinstance(li, Atom) else li for li in rule.body))
        for rule in case.program.rules
    )
    return replace(
        case,
        program=replace(
            case.program, rules=rules, declarations=tuple(map(declared, case.program.declarations))
        ),
        contents={p: frozenset(given(p, row) for row in rows) for p, rows in case.contents.items()},
    )


def test_a_column_that_no_view_looks_at_changes_no_answer() -> None:
    cases = [*filter(None, map(with_idle_values, read_cases(DATA / "constraints.jsonl")))]
    engine, found = MemoryEngine(), Counter[str]()
    for case in cases[: effort(100, 10_000)]:
        for outcome in run_case(case, engine):
            found[outcome.verdict] += 1
            assert outcome.disagreement is None, outcome
    assert found["undecided"] == 0
    assert found["yes"] > 50 < found["no"]
