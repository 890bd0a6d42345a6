"""All checks of a program at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from datalog.analysis.dependency import check_recursion
from datalog.analysis.relations import check_declarations, check_relations
from datalog.analysis.safety import check_safety
from datalog.analysis.type_checks import check_types
from datalog.analysis.types import column_types, variable_types
from datalog.copies import replace
from datalog.diagnostics import Code, ContextSpan, Diagnostic, ProgramError, Severity, in_text_order
from datalog.model import (
    Block,
    ColumnType,
    Comparison,
    Constant,
    Program,
    Rule,
    Span,
    Variable,
    aggregates_of,
    has_one_value,
)
from datalog.order import family_of, satisfiable


def _check_grouping(program: Program) -> list[Diagnostic]:
    """DL405 for columns that are neither grouped nor aggregated, and for aggregates in conditions on single rows."""
    return [
        found
        for view in program.views
        for one in view.blocks
        for found in _check_block(view.name, one, view.span)
    ]


def _check_block(name: str, one: Block, span: Span | None) -> Iterator[Diagnostic]:
    groups = one.groups
    if groups is not None and not all(has_one_value(output, groups) for output in one.outputs):
        hint = "add it to `group (...)`, or aggregate it"
        yield _wrongly_grouped(f"a column of `{name}` is neither grouped nor aggregated", span, hint)
    if groups is not None and not all(has_one_value(condition, groups) for condition in one.having):
        hint = "put conditions on single rows behind `where`"
        yield _wrongly_grouped(f"`{name}` has a condition on groups that is on single rows", span, hint)
    inner = (a.operand for a in one.aggregates if a.operand is not None)
    for aggregate in aggregates_of((*one.filters, *(groups or ()), *inner)):
        hint = "put the condition behind `having`, or aggregate once only"
        yield _wrongly_grouped(
            f"`{aggregate.function.value}` cannot stand here", aggregate.span or span, hint
        )
    if groups is None and one.having:
        hint = "put them behind `where`"
        yield _wrongly_grouped(f"`{name}` has conditions on groups, and no groups", span, hint)


def _wrongly_grouped(message: str, span: Span | None, hint: str) -> Diagnostic:
    return Diagnostic(Code.SQL_GROUPING, message, span, hint=hint)


def _check_emptiness(program: Program) -> list[Diagnostic]:
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
            found.append(_empty_rule(rule, core, variables))
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


def _empty_rule(rule: Rule, core: tuple[Comparison, ...], types: Mapping[Variable, ColumnType]) -> Diagnostic:
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


_CHECKS = (
    check_declarations,
    check_relations,
    check_types,
    _check_emptiness,
    check_safety,
    _check_grouping,
    check_recursion,
)


def diagnose(program: Program) -> tuple[Diagnostic, ...]:
    """Everything that the checks find in a program, errors and warnings, in the order of the text.

    >>> from datalog.syntax import parse_program
    >>> [str(d) for d in diagnose(parse_program("v(X) :- r(X), X = null."))]
    ['<program>:1:15: warning[DL114]: comparison with null is never true']
    """
    cores = tuple(block.core for view in program.views for block in view.blocks)
    everything = replace(program, rules=(*program.rules, *cores))
    return in_text_order(diagnostic for check in _CHECKS for diagnostic in check(everything))


def validate(program: Program) -> None:
    """Refuse a program that is not safe, not recursion-free, or not well typed.

    Raises:
        ProgramError: with everything that was found (DL101 to DL301), if an error is among it.

    Semantics:
        A program that passes has one meaning on every database, and can be evaluated in `evaluation_order`.

    >>> from datalog.syntax import parse_program
    >>> validate(parse_program("v(X) :- r(X, Y), Y < 3."))
    """
    found = diagnose(program)
    if any(diagnostic.severity is Severity.ERROR for diagnostic in found):
        raise ProgramError(found)
