"""An audit as tables for a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from selfmaint.api.audit import AuditReport
from selfmaint.audit.changes import Kind
from selfmaint.audit.example import Depends, word
from selfmaint.audit.matrix import Line
from selfmaint.report.audit.words import (
    CUT,
    HELPED,
    HELPERS,
    MARKS,
    advice_lines,
    example_lines,
    loss_lines,
    needs_text,
    reason,
)
from selfmaint.report.values import cell

_STYLES = {"always": "green", "depends": "yellow", "never": "red", "undecided": "magenta"}
_COLUMNS = {
    Kind.INSERT: "after insert",
    Kind.DELETE: "after delete",
    Kind.UPDATE: "after update",
    Kind.ANY: "after any",
}


def audit_parts(report: AuditReport) -> Iterator[RenderableType]:
    """The table of verdicts, then what there is to say of those that are not "always"."""
    if report.loss is not None:
        yield from (cell(line) for line in loss_lines(report.loss))
        return
    yield _matrix(report)
    for its in report.audit.views:
        for line in its.lines:
            if line.quiet:
                yield cell(
                    f"{its.view.name} always follows updates of {line.relation} "
                    f"that change no other columns than {', '.join(line.quiet)}"
                )
    for its in report.audit.views:
        outcome = its.anything.any
        if word(outcome) != "always":
            yield cell(f"\n{its.view.name}: {word(outcome)}", "bold")
            yield cell(f"  {reason(outcome)}")
            if isinstance(outcome, Depends):
                yield from (cell(f"  {line}") for line in example_lines(outcome.example))
            for number, advice in enumerate((a for a in report.advice if a.view == its.view.name), 1):
                yield cell(f"  to add, {number}:", "bold")
                yield from (cell(f"    {line}") for line in advice_lines(report.audit.catalog, advice))
            mine = [one for one in report.helpers if one.of == its.view.name]
            if mine:
                yield cell(f"  {HELPERS if mine[0].name in report.audit.catalog.helpers else HELPED}")
                yield from (cell(f"    {one}") for one in mine)
            if its.view.name in report.cut:
                yield cell(f"  {CUT}")


def summary(report: AuditReport) -> str:
    """The verdicts after any change, counted: `8 views after any change: 5 always, 3 depends`."""
    if report.loss is not None:
        broken = sorted({one.view for one in report.loss.broken})
        return f"views that break: {', '.join(broken)}" if broken else "nothing breaks"
    found = Counter(word(its.anything.any) for its in report.audit.views)
    counts = ", ".join(f"{found[one]} {one}" for one in MARKS if found[one])
    views = "1 view" if len(report.audit.views) == 1 else f"{len(report.audit.views)} views"
    return f"{views} after any change: {counts}"


def _matrix(report: AuditReport) -> Table:
    table = Table(title="self-maintainable, whatever the data?", title_justify="left")
    table.add_column("view", overflow="fold")
    table.add_column("changes of", overflow="fold")
    for title in _COLUMNS.values():
        table.add_column(title)
    table.add_column("always, if readable", overflow="fold")
    for its in report.audit.views:
        for number, line in enumerate(its.every_line):
            last = line.relation is None
            table.add_row(
                cell(its.view.name if number == 0 else ""),
                cell(line.relation or "all at once"),
                *(_word(line, kind) for kind in _COLUMNS),
                cell(needs_text(line.needs)),
                end_section=last,
            )
    return table


def _word(line: Line, kind: Kind) -> Text:
    if kind not in line.outcomes:
        return cell("")
    found = word(line.outcomes[kind])
    return cell(f"{MARKS[found]} {found}", _STYLES[found])
