"""Views over views, as the audit of what they read says: a view is always determined where all of that is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from selfmaint.audit.matrix import Audit, Line, ViewAudit
from selfmaint.audit.outcome import Always, Outcome, Unclear


def of_views_below(audit: Audit, below: Mapping[str, Sequence[str]]) -> Audit:
    """The verdicts, where views over views have those that what they read gives them.

    Args:
        audit: the verdicts on each view alone.
        below: for each view that is computed from other views alone, these.
    """
    found = {one.view.name: one for one in audit.views}
    waiting = [name for name in below if name in found]
    while waiting:
        ready = [name for name in waiting if not {*below[name]} & {*waiting}]
        if not ready:  # views that read each other
            break
        for name in ready:
            if found.keys() >= set(below[name]):
                found[name] = _over(found[name], [found[one] for one in below[name]])
        waiting = [name for name in waiting if name not in ready]
    return replace(audit, views=tuple(found[one.view.name] for one in audit.views))


def _over(one: ViewAudit, read: Sequence[ViewAudit]) -> ViewAudit:
    def line(own: Line, its: Sequence[Line | None]) -> Line:
        names = [part.view.name for part in read]
        outcomes = {
            kind: outcome
            if not isinstance(outcome, Unclear)
            else _outcome(
                names, [Always() if each is None else each.outcomes.get(kind, each.any) for each in its]
            )
            for kind, outcome in own.outcomes.items()
        }
        return replace(own, outcomes=outcomes)

    lines = (line(own, [_line(part, own.relation) for part in read]) for own in one.lines)
    return replace(one, lines=tuple(lines), anything=line(one.anything, [part.anything for part in read]))


def _line(one: ViewAudit, relation: str | None) -> Line | None:
    """What is said of changes of a relation; None if the view does not read it."""
    return next((line for line in one.lines if line.relation == relation), None)


def _outcome(names: Sequence[str], outcomes: Sequence[Outcome]) -> Outcome:
    if all(isinstance(outcome, Always) for outcome in outcomes):
        return Always(sum(outcome.tested for outcome in outcomes if isinstance(outcome, Always)))
    return Unclear(tuple(_reasons(names, outcomes)))


def _reasons(names: Sequence[str], outcomes: Sequence[Outcome]) -> Iterator[str]:
    for name, outcome in zip(names, outcomes, strict=True):
        if not isinstance(outcome, Always):
            yield f"it is computed from `{name}`, and determined where that is"
