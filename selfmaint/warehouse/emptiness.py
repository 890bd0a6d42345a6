"""Rules that can never have a row, whatever the database holds.

Sound, not complete: what is found is a contradiction between the rule's own tests, or with what its columns can hold.
A rule for which nothing is found may still have no rows (`X < 3, X > 4`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from datalog.diagnostics import Code as DatalogCode
from datalog.diagnostics import ContextSpan, Diagnostic, Severity
from datalog.model import (
    Atom,
    Comparison,
    Constant,
    Literal,
    NullTest,
    Program,
    Rule,
    Value,
    Variable,
    value_kind,
)
from datalog.order import satisfiable
from datalog.syntax import show
from selfmaint.errors import Code
from selfmaint.warehouse.base_relations import BaseRelation, certain_variables
from selfmaint.warehouse.views import View

_EVERYWHERE_FALSE = frozenset({"<", ">", "!="})
"""Operators that hold for no value and itself."""


def impossible(rule: Rule) -> str | None:
    """Why no database gives the rule a row; None if that is not evident.

    Args:
        rule: a rule with its joins guarded (`guard_joins`), views in it unfolded, and its equalities propagated.

    Returns:
        The reason in words, without the rule's name.

    >>> from datalog.rewrite import guard_joins, propagate_equalities
    >>> from datalog.syntax import parse_program
    >>> rule = parse_program("v(X) :- r(X), X = 3, X = 4.").rules[0]
    >>> impossible(propagate_equalities(guard_joins(rule)))
    '`3 = 4` is never true'
    """
    for literal in rule.body:
        reason = _never(literal, rule.body)
        if reason is not None:
            return reason
    return None


def unfitting(rule: Rule, relations: Mapping[str, BaseRelation]) -> str | None:
    """Which test of a rule no value of its columns passes; None if none is found.

    >>> from datalog.model import ColumnType, TypeName
    >>> from datalog.syntax import parse_rule
    >>> r = BaseRelation("r", ("a",), (ColumnType(TypeName.TINYINT),), frozenset())
    >>> unfitting(parse_rule("v() :- r(200)."), {"r": r}), unfitting(parse_rule("v() :- r(X)."), {"r": r})
    ('no `tinyint` is `200`', None)
    """
    certain = certain_variables(rule.atoms, relations)
    for literal in rule.body:
        if isinstance(literal, NullTest) and not literal.negated and literal.term in certain:
            return f"`{show(literal.term)}` is null, and stands in a column that never is"
        if isinstance(literal, Atom) and literal.predicate.name in relations:
            reason = _unfitting(literal, relations[literal.predicate.name])
            if reason is not None:
                return reason
    return None


def _unfitting(atom: Atom, relation: BaseRelation) -> str | None:
    """Which constant of an atom its column cannot hold. A double may be equal to a decimal that differs from it."""
    column = Variable("Column")
    for i, (term, its) in enumerate(zip(atom.terms, relation.types, strict=True)):
        if not isinstance(term, Constant):
            continue
        if term.value is None:
            if i not in relation.nullable:
                return f"`{relation.columns[i]}` of `{relation.name}` is never null"
        elif (
            value_kind(term.value) == its.family
            and not isinstance(term.value, float)
            and not satisfiable([Comparison("=", column, term)], {column: its})
        ):
            return f"no `{its}` is `{show(term)}`"
    return None


def _never(literal: Literal, body: Sequence[Literal]) -> str | None:
    """Why a literal of a body never holds, perhaps because of the others."""
    match literal:
        case NullTest(term=Constant(value=None), negated=True):
            return "it joins or tests a null constant"
        case NullTest(term=Constant(value=value), negated=False) if value is not None:
            return f"it tests whether `{show(literal.term)}` is null"
        case NullTest(negated=False) if any(_demands_a_value(other, literal) for other in body):
            return f"`{show(literal.term)}` is null and joined, compared or tested not to be"
        case Comparison() if _is_false(literal):
            return f"`{show(literal.left)} {literal.operator} {show(literal.right)}` is never true"
        case _:
            return None


def _demands_a_value(other: Literal, null: NullTest) -> bool:
    """Whether a literal is false where the tested term is null, as every comparison is."""
    if isinstance(other, NullTest):
        return other.negated and other.term == null.term
    return isinstance(other, Comparison) and null.term in (other.left, other.right)


def _is_false(comparison: Comparison) -> bool:
    left, right, operator = comparison.left, comparison.right, comparison.operator
    if Constant(None) in (left, right):
        return True
    if left == right:
        return operator in _EVERYWHERE_FALSE
    if not isinstance(left, Constant) or not isinstance(right, Constant):
        return False
    order = _order(left.value, right.value)
    return order is not None and order not in _HOLDS_FOR[operator]


_HOLDS_FOR = {"=": (), "!=": (-1, 1), "<": (-1,), "<=": (-1,), ">": (1,), ">=": (1,)}
"""For which order of two different values an operator holds."""


def _order(left: Value, right: Value) -> int | None:
    """-1 or 1 as one value is evidently below or above the other; else None.

    Numbers must differ as doubles too: an engine may compare them as such.
    """
    kind = value_kind(left)
    if kind != value_kind(right):
        return None
    if kind == "number":
        try:
            left, right = float(left), float(right)  # type: ignore[arg-type] # both are numbers
        except OverflowError:
            return None
    if left < right:  # type: ignore[operator] # both are of one kind, which has an order
        return -1
    return 1 if left > right else None  # type: ignore[operator]


def with_empty_views(
    warnings: Sequence[Diagnostic], program: Program, views: Iterable[View]
) -> Iterator[Diagnostic]:
    """Warnings about a program, and SM106 for each view that is always empty: one warning for one mistake.

    A warning DL115 about a rule of such a view is made part of the view's.
    """
    about_rules = [one for one in warnings if one.code is DatalogCode.EMPTY_RULE]
    said: list[Diagnostic] = []
    for view in views:
        if view.unchanging:
            mine = _within(view, program, about_rules)
            said += mine
            yield _warning(view, mine)
    yield from (one for one in warnings if one not in said)


def _within(view: View, program: Program, warnings: Iterable[Diagnostic]) -> list[Diagnostic]:
    """The warnings about the rules of a view."""
    rules = [rule for rule in program.rules if rule.head.predicate == view.predicate]
    comparisons = (c for rule in rules for c in rule.body if isinstance(c, Comparison))
    spans = (rule.span for rule in rules), (c.span for c in comparisons)
    places = {span.place for span in chain(*spans) if span is not None}
    return [one for one in warnings if one.span is not None and one.span.place in places]


def _warning(view: View, about_rules: Sequence[Diagnostic]) -> Diagnostic:
    places = (
        place
        for one in about_rules
        if one.span is not None
        for place in (ContextSpan(one.span, one.label), *one.context)
    )
    return Diagnostic(
        code=Code.ALWAYS_EMPTY,
        message=f"the view {view.unchanging}",
        span=view.rule.span,
        label="never has a row" if view.always_empty else "aggregates no row, ever",
        context=tuple(places),
        note="; ".join(dict.fromkeys(one.note for one in about_rules if one.note)) or None,
        hint="correct the rule; as it is, the view needs no maintenance and must be stored "
        + ("without rows" if view.always_empty else f"as {show(view.head)}"),
        severity=Severity.WARNING,
    )
