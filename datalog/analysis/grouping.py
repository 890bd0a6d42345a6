"""Rules that group: whether each column has one value in a group, and aggregates stand where they are computed."""

from __future__ import annotations

from collections.abc import Iterator

from datalog.diagnostics import Code, Diagnostic
from datalog.model import Block, Program, Span, aggregates_of, has_one_value


def check_grouping(program: Program) -> list[Diagnostic]:
    """DL405 for columns that are neither grouped nor aggregated, and for aggregates in conditions on single rows."""
    return [
        found for view in program.views for one in view.blocks for found in _check(view.name, one, view.span)
    ]


def _check(name: str, one: Block, span: Span | None) -> Iterator[Diagnostic]:
    groups = one.groups
    if groups is not None and not all(has_one_value(output, groups) for output in one.outputs):
        hint = "add it to `group (...)`, or aggregate it"
        yield _wrong(f"a column of `{name}` is neither grouped nor aggregated", span, hint)
    if groups is not None and not all(has_one_value(condition, groups) for condition in one.having):
        hint = "put conditions on single rows behind `where`"
        yield _wrong(f"`{name}` has a condition on groups that is on single rows", span, hint)
    inner = (a.operand for a in one.aggregates if a.operand is not None)
    for aggregate in aggregates_of((*one.filters, *(groups or ()), *inner)):
        hint = "put the condition behind `having`, or aggregate once only"
        yield _wrong(f"`{aggregate.function.value}` cannot stand here", aggregate.span or span, hint)
    if groups is None and one.having:
        hint = "put them behind `where`"
        yield _wrong(f"`{name}` has conditions on groups, and no groups", span, hint)


def _wrong(message: str, span: Span | None, hint: str) -> Diagnostic:
    return Diagnostic(Code.SQL_GROUPING, message, span, hint=hint)
