"""Comparing maintained sums of doubles with recomputed ones: equal but for the last digits.

Two values are near if they differ by at most `TOLERANCE` of the larger one, or of 1. Everything else of a row must be
equal.
"""

from __future__ import annotations

import re

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
from selfmaint.warehouse.catalog import Catalog, GroupedView, View

TOLERANCE = 1e-9
"""Of the larger value, or of 1."""
_MOMENT = re.compile(r"\b(std|stddev|stddev_samp|stddev_pop|variance|var_samp|var_pop)\s*\(", re.IGNORECASE)

_MISSING, _EXTRA, _PAIRS = (Predicate(name, Version.STEP) for name in ("missing", "extra", "pairs"))


def near_columns(catalog: Catalog, view: View) -> frozenset[int]:
    """The columns of a view whose last digits are not to be compared: sums of doubles, variances and their roots."""
    inexact = view.grouped.inexact if isinstance(view, GroupedView) else frozenset[int]()
    if view.name in catalog.near:
        return inexact | catalog.near[view.name]
    text = view.definition.text if view.definition is not None else None
    if not text or not _MOMENT.search(text):
        return inexact
    from datalog.sql.views.moments import columns_of_moments  # noqa: PLC0415 - where there are some

    return inexact | columns_of_moments(text)


def beyond_tolerance(engine: Engine[D], near: frozenset[int], missing: D, extra: D) -> tuple[D, D]:
    """The rows that recomputing gives and maintenance does not, and the other way round, without near ones.

    Args:
        engine: holds the rows.
        near: the columns of which near values are equal.
        missing: rows that only recomputing gives.
        extra: rows that only maintenance gives.
    """
    if not near:
        return missing, extra
    arity = len(engine.columns(missing))
    left = tuple(Variable(f"A{i}") for i in range(arity))
    right = tuple(Variable(f"B{i}") if i in near else v for i, v in enumerate(left))
    both = tuple(dict.fromkeys((*left, *right)))
    rule = Rule(Atom(_PAIRS, both), (Atom(_MISSING, left), Atom(_EXTRA, right)))
    given = Facts({_MISSING: missing, _EXTRA: extra}, {}, frozenset({_MISSING, _EXTRA}))
    names = [f"c{i}" for i in range(len(both))]
    pairs = engine.keep(engine.evaluate(Program((rule,)), _PAIRS, given, names))
    facts = Facts({_PAIRS: pairs}, {}, frozenset({_PAIRS}))
    tests = [_near(left[c], right[c]) for c in sorted(near)]
    columns = tuple(f"c{i}" for i in range(arity))
    close = [
        engine.evaluate_view(
            ViewDefinition("near", columns, (block("near", 0, [Atom(_PAIRS, both)], row, filters=tests),)),
            facts,
            {},
        )
        for row in (left, right)
    ]
    return engine.keep(engine.minus(missing, close[0])), engine.keep(engine.minus(extra, close[1]))


def _near(left: Variable, right: Variable) -> Condition:
    distance = Call("abs", (Arithmetic("-", left, right),))
    size = Call("greatest", (Call("abs", (left,)), Call("abs", (right,)), Constant(1.0)))
    close = Compared("<=", distance, Arithmetic("*", Constant(TOLERANCE), size))
    return AnyOf((AllOf((IsNull(left), IsNull(right))), close))
