"""The theory of order comparisons against enumeration of values.

Oracle: all assignments of values from small sets that are large enough (`orders`), compared one by one.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from datalog.model import ColumnType, Comparison, TypeName, Value, Variable
from datalog.order import assign, closure, implies, normalise, satisfiable
from tests.datalog.order.orders import NAMES, Tick, compares, comparisons, pool, problems, solutions

often = settings(max_examples=4 * settings().max_examples)


def pools_of(
    types: Mapping[Variable, ColumnType],
    constants: Sequence[Value],
    null: bool = False,
    said: Sequence[Comparison] | None = None,
) -> dict[Variable, list[Any]]:
    """Values of each variable, or of each that is mentioned."""
    more = [None] if null else []
    mentioned = [t for c in said or () for t in (c.left, c.right)]
    names = [name for name in NAMES if said is None or name in mentioned]
    return {name: [*more, *pool(types[name], len(names), constants)] for name in names}


@often
@given(problems(null=True))
def test_satisfiable_is_what_enumeration_finds(problem: Any) -> None:
    found, types, constants = problem
    expected = next(solutions(found, pools_of(types, constants)), None) is not None
    assert satisfiable(found, types) == expected


@often
@given(problems(most=3), st.data())
def test_implied_is_what_holds_in_all_solutions(problem: Any, data: st.DataObject) -> None:
    premises, types, constants = problem
    conclusion = data.draw(comparisons(constants))
    pools = pools_of(types, constants, True, [*premises, conclusion])
    every = all(compares(conclusion, s) for s in solutions(premises, pools))
    assert implies(premises, conclusion, types) == every


@often
@given(problems(most=2), st.tuples(*[st.sampled_from(NAMES)] * 2))
def test_families_can_be_told_apart(problem: Any, pair: Any) -> None:
    found, types, constants = problem
    different = (
        s
        for s in solutions(found, pools_of(types, constants))
        if type(s[pair[0]]) is not type(s[pair[1]])
        and not all(isinstance(s[v], int | Fraction | Decimal) and not isinstance(s[v], bool) for v in pair)
    )
    assert satisfiable(found, types, [pair]) == (next(different, None) is not None)


@given(problems(most=3))
def test_the_closure_holds_and_says_all(problem: Any) -> None:
    premises, types, constants = problem
    if not satisfiable(premises, types):
        return
    closed = closure(premises, types)
    found = list(solutions(premises, pools_of(types, constants)))
    assert all(compares(c, s) for s in found for c in closed)
    again = list(solutions(closed, pools_of(types, constants)))
    if closed or not premises:
        mentioned = {t for c in closed for t in (c.left, c.right) if isinstance(t, Variable)}
        own = [c for c in premises if {c.left, c.right} & mentioned]
        assert all(compares(c, s) for s in again for c in own if c.left != c.right)


@often
@given(problems(most=4))
def test_the_normal_form_says_the_same_without_redundancy(problem: Any) -> None:
    found, types, constants = problem
    form = normalise(found, types)
    pools = pools_of(types, constants, True, found)
    expected = list(solutions(found, pools))
    if form is None:
        assert not expected
        return
    assert expected
    mentioned = {t for c in found for t in (c.left, c.right) if isinstance(t, Variable)}
    restated = [*form.comparisons, *(Comparison("=", v, v) for v in form.not_null)]
    restated += [Comparison("=", v, t) for v, t in form.equal.items()]
    assert {t for c in restated for t in (c.left, c.right) if isinstance(t, Variable)} == mentioned
    assert list(solutions(restated, pools)) == expected
    for dropped in form.comparisons:
        rest = [c for c in restated if c is not dropped]
        rest += [Comparison("=", t, t) for t in (dropped.left, dropped.right) if isinstance(t, Variable)]
        assert any(not compares(dropped, s) for s in solutions(rest, pools))


# ------------------------------------------------------------------------------------------------ projection


# ---------------------------------------------------------------------------------------- values and regions


def is_writable(tick: Tick) -> bool:
    """Whether Python has such a date or time."""
    day = dt.date.max.toordinal()
    if tick.family == "date":
        return 1 <= tick.at <= day
    return 0 <= tick.at < day * 86_400_000_000


@often
@given(problems(most=5), st.data())
def test_assigned_values_satisfy_and_are_found_iff_there_are_some(problem: Any, data: st.DataObject) -> None:
    found, types, constants = problem
    free = NAMES[: data.draw(st.integers(1, 3))]
    known = {
        name: data.draw(st.sampled_from([None, *(c for c in constants if types[name].accepts(c))]))
        for name in NAMES
        if name not in free
    }
    values = assign(free, found, known, types)
    pools: dict[Variable, Any] = pools_of(types, constants) | {n: [v] for n, v in known.items()}
    pools = {
        name: [v for v in pool if not isinstance(v, Tick) or is_writable(v)] for name, pool in pools.items()
    }
    expected = next(solutions(found, pools), None)
    if values is None:
        assert expected is None
        return
    assert set(values) == set(free)
    assert all(compares(c, {**values, **known}) for c in found)
    for name, value in values.items():
        assert types[name].accepts(value)
        match types[name].name:
            case TypeName.INT:
                assert type(value) is int
                assert -(2**31) <= value < 2**31
            case TypeName.DOUBLE:
                assert type(value) is float
            case TypeName.DECIMAL:
                assert type(value) is Decimal
                assert value.as_tuple().exponent == -(types[name].scale or 0)
                assert len(value.as_tuple().digits) == 1
