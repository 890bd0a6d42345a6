"""Conjunctive conditions as literals: equalities of columns become shared variables, tests become literals.

Two columns become one variable only where their types are the same and equal values look the same: not for
doubles (0.0 and -0.0), nor for decimals of different scale. Otherwise the equality stays a comparison.
"""

from __future__ import annotations

from collections.abc import Iterable

from datalog.model import (
    Compared,
    Comparison,
    Condition,
    Constant,
    IsNull,
    Literal,
    NullTest,
    TypeName,
    Variable,
)
from datalog.sql.views.conditions import conjuncts
from datalog.sql.views.pieces import Draft
from datalog.sql.views.scope import Variables

_LOOK_ALIKE = (TypeName.FLOAT, TypeName.DOUBLE)


def with_conditions(draft: Draft, given: Iterable[Condition], variables: Variables) -> Draft:
    """The draft with further conditions, all of which must hold; they are over the draft's variables."""
    waiting = list(conjuncts(given))
    while waiting:
        one = waiting.pop(0)
        match one:
            case Compared("=", Variable() as left, Variable() as right) if left == right:
                draft = _with_literal(draft, NullTest(left, span=one.span))
            case Compared("=", Variable() as left, Variable() as right) if _same(left, right, variables):
                # The plainer name stays.
                plainer = left in variables.numbered and right not in variables.numbered
                change = {left: right} if plainer else {right: left}
                draft = draft.substituted(change)
                rest = Draft(filters=tuple(waiting)).substituted(change)
                waiting = list(rest.filters)
            case Compared(operator, (Variable() | Constant()) as left, (Variable() | Constant()) as right):
                draft = _with_literal(draft, Comparison(operator, left, right, one.span))
            case IsNull(Variable() as term, negated):
                draft = _with_literal(draft, NullTest(term, negated, one.span))
            case _:
                draft = Draft(draft.body, draft.outputs, (*draft.filters, one), draft.groups, draft.having)
    return draft


def _with_literal(draft: Draft, literal: Literal) -> Draft:
    body = draft.body if literal in draft.body else (*draft.body, literal)
    return Draft(body, draft.outputs, draft.filters, draft.groups, draft.having)


def _same(left: Variable, right: Variable, variables: Variables) -> bool:
    one, other = variables.types.get(left), variables.types.get(right)
    return one == other and (one is None or one.name not in _LOOK_ALIKE)
