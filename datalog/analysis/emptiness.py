"""Rules that never have a row, whatever is stored: their comparisons contradict each other."""

from __future__ import annotations

from collections.abc import Mapping

from datalog.analysis.types import column_types, variable_types
from datalog.diagnostics import Code, ContextSpan, Diagnostic, Severity
from datalog.model import ColumnType, Comparison, Constant, Program, Rule, Variable
from datalog.order import family_of, satisfiable


def check_emptiness(program: Program) -> list[Diagnostic]:
    """DL115 as a warning for each rule whose comparisons contradict each other.

    What is reported by itself is left out: comparisons with null (DL114) and between families (DL112).
    """
    types = column_types(program)
    found = []
    for rule in program.rules:
        variables = variable_types(rule.body, types)
        compared = [c for c in rule.body if isinstance(c, Comparison) and _can_hold(c, variables)]
        core = _contradiction(compared, variables)
        if core:
            found.append(_diagnostic(rule, core, variables))
    return found


def _can_hold(comparison: Comparison, types: Mapping[Variable, ColumnType]) -> bool:
    sides = (comparison.left, comparison.right)
    if any(isinstance(side, Constant) and side.value is None for side in sides):
        return False
    left, right = (family_of(side, types) for side in sides)
    return left is None or right is None or left == right


def _contradiction(
    comparisons: list[Comparison], types: Mapping[Variable, ColumnType]
) -> tuple[Comparison, ...]:
    """Comparisons that cannot hold together while any fewer of them can; none if all can."""
    if not comparisons or satisfiable(comparisons, types):
        return ()
    core = list(comparisons)
    for comparison in comparisons:
        rest = [other for other in core if other is not comparison]
        if not satisfiable(rest, types):
            core = rest
    return tuple(core)


def _diagnostic(rule: Rule, core: tuple[Comparison, ...], types: Mapping[Variable, ColumnType]) -> Diagnostic:
    *others, last = core
    return Diagnostic(
        Code.EMPTY_RULE,
        f"rule for `{rule.head.predicate}` never has a row",
        last.span or rule.span,
        "contradicts the others" if len(others) > 1 else "contradicts the other" if others else "never true",
        tuple(
            ContextSpan(c.span, "one of the others" if len(others) > 1 else "the other")
            for c in others
            if c.span
        ),
        note=_note(core, types),
        hint="drop the rule, or one of the comparisons",
        severity=Severity.WARNING,
    )


def _note(core: tuple[Comparison, ...], types: Mapping[Variable, ColumnType]) -> str:
    """Whether it takes the columns' types for the contradiction."""
    if not satisfiable(core, {}):
        return "no values satisfy them together"
    used = dict.fromkeys(
        f"`{t}` is of type `{types[t]}`"
        for c in core
        for t in (c.left, c.right)
        if isinstance(t, Variable) and t in types
    )
    return f"no values of the columns' types satisfy them together: {', '.join(used)}"
