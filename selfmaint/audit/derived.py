"""Verdicts that follow from others: on unions from their branches, on views over views from what these read.

A union is always self-maintainable if every branch is: see `datalog.rewrite.branches`. A view that is computed from
other views alone is always determined where all of these are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from datalog.copies import replace
from datalog.evaluate import evaluate, evaluate_view
from datalog.model import Predicate, Row, Version
from selfmaint.audit.advice import Advice, Flip
from selfmaint.audit.changes import Kind
from selfmaint.audit.example import Always, Depends, Example, Outcome, Unclear
from selfmaint.audit.matrix import Audit, Line, ViewAudit
from selfmaint.audit.needs import Loss
from selfmaint.warehouse.catalog import Catalog
from selfmaint.warehouse.computed_columns import completed
from selfmaint.warehouse.outer_joins import recombined
from selfmaint.warehouse.situation import Situation


def of_unions(catalog: Catalog, audit: Audit) -> Audit:
    """The verdicts on views, from those on the branches of unions and on the other views.

    A union is always self-maintainable if every branch is, and never if some branch never is.
    """
    found: dict[str, list[ViewAudit]] = {}
    for one in audit.views:
        found.setdefault(catalog.whole(one.view.name), []).append(one)
    if not catalog.unions:
        return audit
    return Audit(catalog, audit.known, tuple(_joined(catalog, name, its) for name, its in found.items()))


def of_shown_rows(audit: Audit, shown: Mapping[str, str | None]) -> Audit:
    """The verdicts, where some views' own rows tell their new ones after inserts; why not after others, if not so."""
    return replace(
        audit,
        views=tuple(
            replace(
                one,
                lines=tuple(_told(audit.known, line, shown[one.view.name]) for line in one.lines),
                anything=_told(audit.known, one.anything, shown[one.view.name]),
            )
            if one.view.name in shown
            else one
            for one in audit.views
        ),
    )


def of_gone_rows(audit: Audit, shown: Mapping[str, Collection[str]]) -> Audit:
    """The verdicts, where some views show a key of relations: after deletes they lose the rows of what goes."""

    def told(line: Line, relations: Collection[str]) -> Line:
        found = line.outcomes.get(Kind.DELETE)
        if line.relation not in relations or not isinstance(found, Unclear):
            return line
        return replace(line, outcomes={**line.outcomes, Kind.DELETE: Always()})

    if not audit.known.effective:
        return audit
    views = (
        replace(one, lines=tuple(told(line, shown.get(one.view.name, ())) for line in one.lines))
        for one in audit.views
    )
    return replace(audit, views=tuple(views))


def _told(known: Situation, line: Line, why: str | None) -> Line:
    def outcome(kind: Kind, found: Outcome) -> Outcome:
        if not isinstance(found, Unclear):
            return found
        if kind is Kind.INSERT or (why is None and known.effective):
            return Always()
        return found if why is None else Unclear((why,))

    return replace(line, outcomes={kind: outcome(kind, one) for kind, one in line.outcomes.items()})


def _joined(catalog: Catalog, name: str, parts: Sequence[ViewAudit]) -> ViewAudit:
    lines: dict[str | None, list[Line]] = {}
    for part in parts:
        for line in part.lines:
            lines.setdefault(line.relation, []).append(line)
    anything = _line(catalog, [part.anything for part in parts])
    return ViewAudit(catalog.view(name), tuple(_line(catalog, its) for its in lines.values()), anything)


def _line(catalog: Catalog, parts: Sequence[Line]) -> Line:
    kinds = dict.fromkeys(kind for part in parts for kind in part.outcomes)
    outcomes = {kind: _outcome(catalog, [part.outcomes[kind] for part in parts]) for kind in kinds}
    open_parts = [part for part in parts if not isinstance(part.any, Always)]
    needs = {part.needs for part in open_parts}
    restless = [
        set(part.quiet) for part in parts if not isinstance(part.outcomes.get(Kind.UPDATE, Always()), Always)
    ]
    quiet = set.intersection(*restless) if restless else set()
    return replace(
        parts[0],
        outcomes=outcomes,
        needs=needs.pop() if len(needs) == 1 else (),
        quiet=tuple(column for column in parts[0].updated if column in quiet),
    )


def _outcome(catalog: Catalog, parts: Iterable[Outcome]) -> Outcome:
    parts = list(parts)
    shown = [part for part in parts if isinstance(part, Depends)]
    if shown:
        first = min(shown, key=lambda part: not part.is_never)
        return replace(first, example=_example(catalog, first.example))
    reasons = dict.fromkeys(r for part in parts if isinstance(part, Unclear) for r in part.reasons)
    if reasons:
        return Unclear(tuple(reasons))
    return Always(sum(part.tested for part in parts if isinstance(part, Always)))


def _example(catalog: Catalog, example: Example) -> Example:
    """The example with the rows of branches as those of their unions."""
    contents = dict(example.contents)
    for name, parts in catalog.unions.items():
        given = {part.name: contents.pop(part.name) for part in parts.values() if part.name in contents}
        its = list(given.values())
        if its and name in catalog.outer:
            contents[name] = _put_together(catalog, name, given)
        elif its:
            contents[name] = its[0]
            for more in its[1:]:
                contents[name] = contents[name] | more
    return replace(example, view=catalog.whole(example.view), contents=contents)


def _put_together(catalog: Catalog, name: str, given: Mapping[str, Counter[Row]]) -> Counter[Row]:
    """The rows of a view with LEFT JOINs, from those of what it is made of."""
    outer = catalog.outer[name]
    program, _, after = recombined(name, outer)
    none: frozenset[Row] = frozenset()
    facts = {Predicate(name): none}
    for part in catalog.unions[name].values():
        facts[Predicate(part.name, Version.GAINED)] = frozenset(given.get(part.name, none))
        facts[Predicate(part.name, Version.LOST)] = none
    rows = Counter(evaluate(program, after, facts))
    if not outer.computed:
        return rows
    every, types = completed(name, outer, after, catalog.relations)
    return evaluate_view(every, {after: rows}, types)


def advice_of_unions(
    catalog: Catalog, advice: Iterable[Advice], words: Mapping[tuple[str, str, str], str]
) -> tuple[Advice, ...]:
    """The advice on views, from that on branches of unions: a union's flips if those of its open branches do."""
    found = []
    for one in advice:
        flips = dict.fromkeys(
            replace(flip, view=catalog.whole(flip.view))
            for flip in one.flips
            if _flips_whole(catalog, flip, one.flips, words)
        )
        if flips:
            found.append(replace(one, view=catalog.whole(one.view), flips=tuple(flips)))
    return tuple(dict.fromkeys(found))


def _flips_whole(
    catalog: Catalog, flip: Flip, flips: Sequence[Flip], words: Mapping[tuple[str, str, str], str]
) -> bool:
    parts = catalog.parts(catalog.view(catalog.whole(flip.view)))
    return all(
        replace(flip, view=part.name) in flips
        or words.get((part.name, flip.relation or "*", flip.kind.value), "always") == "always"
        for part in parts
    )


def loss_of_unions(catalog: Catalog, loss: Loss) -> Loss:
    """What breaks, with unions in place of their branches."""
    found = {(catalog.whole(one.view), one.changed): one for one in reversed(loss.broken)}
    broken = (
        replace(one, view=name, outcome=_outcome(catalog, [one.outcome]))
        for (name, _), one in reversed(found.items())
    )
    return replace(loss, broken=tuple(broken))


def of_views_below(audit: Audit, below: Mapping[str, Sequence[str]]) -> Audit:
    """The verdicts, where views over views have those that what they read gives them."""
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
            else _outcome_over(
                names, [Always() if each is None else each.outcomes.get(kind, each.any) for each in its]
            )
            for kind, outcome in own.outcomes.items()
        }
        return replace(own, outcomes=outcomes)

    lines = (line(own, [_line_of(part, own.relation) for part in read]) for own in one.lines)
    return replace(one, lines=tuple(lines), anything=line(one.anything, [part.anything for part in read]))


def _line_of(one: ViewAudit, relation: str | None) -> Line | None:
    """What is said of changes of a relation; None if the view does not read it."""
    return next((line for line in one.lines if line.relation == relation), None)


def _outcome_over(names: Sequence[str], outcomes: Sequence[Outcome]) -> Outcome:
    if all(isinstance(outcome, Always) for outcome in outcomes):
        return Always(sum(outcome.tested for outcome in outcomes if isinstance(outcome, Always)))
    return Unclear(tuple(_reasons(names, outcomes)))


def _reasons(names: Sequence[str], outcomes: Sequence[Outcome]) -> Iterator[str]:
    for name, outcome in zip(names, outcomes, strict=True):
        if not isinstance(outcome, Always):
            yield f"it is computed from `{name}`, and determined where that is"
