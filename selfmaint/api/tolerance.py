"""Comparing maintained sums of doubles with recomputed ones: equal but for the last digits.

Two values are near if they differ by at most `TOLERANCE` of the larger one, or of 1. Everything else of a row must be
equal.
"""

from __future__ import annotations

from datalog.model import (
    AllOf,
    AnyOf,
    Arithmetic,
    Atom,
    Call,
    Compared,
    Condition,
    Constant,
    IsNull,
    Predicate,
    Program,
    Rule,
    Variable,
    Version,
    ViewDefinition,
    block,
)
from selfmaint.engine.protocol import D, Engine, Facts
from selfmaint.warehouse.catalog import GroupedView, View

TOLERANCE = 1e-9
"""Of the larger value, or of 1."""

_MISSING, _EXTRA, _PAIRS = (Predicate(name, Version.STEP) for name in ("missing", "extra", "pairs"))


def beyond_tolerance(engine: Engine[D], view: View, missing: D, extra: D) -> tuple[D, D]:
    """The rows that recomputing gives and maintenance does not, and the other way round, without near ones.

    Args:
        engine: holds the rows.
        view: what they are rows of.
        missing: rows that only recomputing gives.
        extra: rows that only maintenance gives.
    """
    inexact = frozenset[int]() if not isinstance(view, GroupedView) else view.grouped.inexact
    if not inexact:
        return missing, extra
    arity = view.head.arity
    left = tuple(Variable(f"A{i}") for i in range(arity))
    right = tuple(Variable(f"B{i}") if i in inexact else v for i, v in enumerate(left))
    both = tuple(dict.fromkeys((*left, *right)))
    rule = Rule(Atom(_PAIRS, both), (Atom(_MISSING, left), Atom(_EXTRA, right)))
    given = Facts({_MISSING: missing, _EXTRA: extra}, {}, frozenset({_MISSING, _EXTRA}))
    names = [f"c{i}" for i in range(len(both))]
    pairs = engine.keep(engine.evaluate(Program((rule,)), _PAIRS, given, names))
    facts = Facts({_PAIRS: pairs}, {}, frozenset({_PAIRS}))
    tests = [_near(left[c], right[c]) for c in sorted(inexact)]
    columns = tuple(f"c{i}" for i in range(arity))
    near = [
        engine.evaluate_view(
            ViewDefinition("near", columns, (block("near", 0, [Atom(_PAIRS, both)], row, filters=tests),)),
            facts,
            {},
        )
        for row in (left, right)
    ]
    return engine.keep(engine.minus(missing, near[0])), engine.keep(engine.minus(extra, near[1]))


def _near(left: Variable, right: Variable) -> Condition:
    distance = Call("abs", (Arithmetic("-", left, right),))
    size = Call("greatest", (Call("abs", (left,)), Call("abs", (right,)), Constant(1.0)))
    close = Compared("<=", distance, Arithmetic("*", Constant(TOLERANCE), size))
    return AnyOf((AllOf((IsNull(left), IsNull(right))), close))
