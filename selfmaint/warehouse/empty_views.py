"""Warnings about views that can never have a row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from datalog.diagnostics import Code as DatalogCode
from datalog.diagnostics import ContextSpan, Diagnostic, Severity
from datalog.model import Comparison, Program
from datalog.syntax import show
from selfmaint.errors import Code
from selfmaint.warehouse.views import View


def with_empty_views(
    warnings: Sequence[Diagnostic], program: Program, views: Iterable[View]
) -> Iterator[Diagnostic]:
    """Warnings about a program, and SM106 for each view that is always empty: one warning for one mistake.

    Args:
        warnings: those about the rules. DL115 about a rule of such a view is made part of the view's.
        program: the rules.
        views: the views that the rules define.
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
    places = {rule.span for rule in rules}
    places |= {c.span for rule in rules for c in rule.body if isinstance(c, Comparison)}
    return [one for one in warnings if one.span is not None and one.span in places]


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
