"""Simplified comparisons mean the same on stored values of the declared types.

Oracle: the meaning of the program as it was, by definition (`sql_programs.meaning`).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from datalog.copies import replace
from datalog.evaluate import evaluate
from datalog.model import (
    Atom,
    Column,
    ColumnType,
    Comparison,
    Constant,
    Declaration,
    Literal,
    Negation,
    NullTest,
    Predicate,
    Program,
    Row,
    Rule,
    TypeName,
    Value,
    Variable,
)
from datalog.rewrite import simplify, simplify_comparisons
from datalog.syntax import show
from tests.datalog.order.orders import NAMES, comparisons, kind, pool, problems
from tests.datalog.sql.sql_programs import meaning

R, S, V, W = (Predicate(name) for name in "rsvw")
X, Y, Z = NAMES


def stored(column_type: ColumnType, constants: Sequence[Value], random: Random) -> Value:
    """A value that a column can hold, near the constants."""
    if random.random() < 0.2:
        return None
    fitting = [c for c in constants if column_type.accepts(c) and column_type.name is TypeName.ANY]
    values = [*pool(column_type, 1, constants), *fitting * 10]
    value = random.choice(values)
    return float(value) if isinstance(value, Fraction) else value


def rows(types: Sequence[ColumnType], constants: Sequence[Value], random: Random) -> frozenset[Row]:
    found = {
        tuple((kind(v), v) for v in row): row
        for row in (tuple(stored(t, constants, random) for t in types) for _ in range(random.randint(0, 12)))
    }
    return frozenset(found.values())


@settings(max_examples=8 * settings().max_examples)
@given(problems(most=4, null=True), st.data(), st.randoms(use_true_random=False), st.booleans())
def test_meaning_is_preserved(problem: Any, data: st.DataObject, random: Random, declared: bool) -> None:
    compared, types, constants = problem
    columns = tuple(Column(f"c{n}", types[name]) for n, name in enumerate(NAMES))
    declarations = (Declaration("r", columns), Declaration("s", columns[:1])) if declared else ()
    body: list[Literal] = [Atom(R, (X, Y, Z)), *compared]
    if data.draw(st.booleans()):
        inner = [replace(c, left=Variable("U")) if c.left == X else c for c in compared[:2]]
        more = data.draw(st.lists(comparisons(constants), max_size=1))
        body.append(Negation((Atom(S, (Variable("U"),)), *inner, *more)))
    if data.draw(st.booleans()):
        body.append(NullTest(data.draw(st.sampled_from(NAMES)), data.draw(st.booleans())))
    body = data.draw(st.permutations(body))
    first = Rule(Atom(V, NAMES), tuple(body))
    second = Rule(Atom(W, (X,)), (Atom(V, (X, Y, Z)), Comparison("!=", X, Constant(constants[0]))))
    program = Program((first, second), declarations)
    for _ in range(3):
        facts = {
            R: rows([types[name] for name in NAMES], constants, random),
            S: rows([types[X]], constants, random),
        }
        for goal in (V, W):
            expected = meaning(program, goal, facts)
            assert evaluate(simplify_comparisons(program, [goal]), goal, facts) == expected, show(program)
            assert evaluate(simplify(program, [goal]), goal, facts) == expected, show(program)
