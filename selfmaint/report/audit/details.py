"""The parts of the page that are about one verdict or one piece of advice: reasons, examples as tables, SQL."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from datalog.model import Constant, Row, Value
from datalog.sql import EmissionError
from datalog.syntax import show
from selfmaint.api.confirming import proposal_sql
from selfmaint.api.printed import printed
from selfmaint.audit.advice import Advice
from selfmaint.audit.changes import ANYTHING, Kind
from selfmaint.audit.example import Example
from selfmaint.audit.matrix import Line, ViewAudit
from selfmaint.audit.outcome import Depends, Outcome, word
from selfmaint.audit.proposals import NewView, Proposal
from selfmaint.decide.procedure import Decision
from selfmaint.report.audit.markup import Markup, joined, tag
from selfmaint.report.audit.words import (
    MARKS,
    change_text,
    effect_text,
    flip_text,
    needs_text,
    proposal_text,
    reason,
)
from selfmaint.warehouse.catalog import Catalog
from selfmaint.warehouse.situation import Situation

Rows = Mapping[str, Collection[Row]]


def verdict_details(catalog: Catalog, its: ViewAudit, line: Line, kind: Kind, outcome: Outcome) -> Markup:
    """Why a verdict is what it is."""
    found = word(outcome)
    title = f"{its.view.name}, {change_text(line, kind)}: {found}"
    parts = [
        tag("h4", tag("span", MARKS[found], class_=f"mark {found}"), " ", title),
        tag("p", reason(outcome)),
    ]
    if kind is Kind.UPDATE and line.quiet:
        parts.append(
            tag("p", f"Updates of these columns alone are always followed: {', '.join(line.quiet)}.")
        )
    if line.needs and found != "always":
        parts.append(tag("p", "Always, if these can be read: ", tag("strong", needs_text(line.needs)), "."))
    if isinstance(outcome, Depends):
        parts.append(_example(catalog, outcome.example))
    return tag("div", *parts, class_="detail")


def _example(catalog: Catalog, example: Example) -> Markup:
    contents = {name: list(rows.elements()) for name, rows in example.contents.items() if rows}
    views = {view.name: view.stored_columns for view in catalog.views}
    bases = {r.name: r.columns for r in catalog.relations.values()}
    update = [
        *_tables(example.inserted, bases, "inserted into "),
        *_tables(example.deleted, bases, "deleted from "),
    ]
    after = [{example.view: list(state.elements())} for state in (example.after_first, example.after_second)]
    return tag(
        "div",
        tag("h5", "The smallest example found"),
        _step(
            "What every view holds", list(_tables(contents, views)) or [tag("p", "nothing", class_="empty")]
        ),
        *([_step("Known to be there", _tables(example.present, bases))] if example.present else []),
        _step("The update", update),
        tag(
            "div",
            _case("One database", example.first, example.second, bases, after[0], after[1], views),
            _case(
                "Another, which no view tells from it",
                example.second,
                example.first,
                bases,
                after[1],
                after[0],
                views,
            ),
            class_="pair",
        ),
        class_="example",
    )


def _step(title: str, parts: Iterable[Markup]) -> Markup:
    return tag("div", tag("h6", title), tag("div", *parts, class_="tables"), class_="step")


def _case(
    title: str,
    rows: Rows,
    others: Rows,
    columns: Mapping[str, Sequence[str]],
    after: Rows,
    after_others: Rows,
    views: Mapping[str, Sequence[str]],
) -> Markup:
    tables = list(_tables(rows, columns, "", others)) or [tag("p", "no rows", class_="empty")]
    state = list(_tables(after, views, "", after_others))
    return tag("div", _step(title, tables), _step("The view after the update", state), class_="case")


def _tables(
    relations: Rows, columns: Mapping[str, Sequence[str]], prefix: str = "", others: Rows | None = None
) -> Iterator[Markup]:
    """A small table for each relation; rows that the other database does not have are marked."""
    for name, rows in relations.items():
        head = tag("tr", *(tag("th", column, scope="col") for column in columns[name]))
        body = []
        for row in sorted(rows, key=repr):
            is_new = others is not None and row not in others.get(name, frozenset())
            cells = [tag("td", _value(value)) for value in row]
            body.append(tag("tr", *cells, class_="only" if is_new else None))
        if not body:
            body = [tag("tr", tag("td", "no rows", colspan=max(len(columns[name]), 1)), class_="none")]
        caption = tag("caption", f"{prefix}{name}")
        yield tag("table", caption, tag("thead", head), tag("tbody", *body), class_="rows")


def _value(value: Value) -> str:
    return value if isinstance(value, str) else show(Constant(value))


def advice_card(catalog: Catalog, advice: Advice) -> Markup:
    """What to add, what it does to the verdicts, and the queries for it."""
    items = [_proposal(catalog, proposal) for proposal in advice.proposals]
    chips = [
        tag("span", f"{MARKS['always']} {flip_text(flip)}", class_="chip always") for flip in advice.flips
    ]
    effect = tag("details", tag("summary", f"{len(chips)} verdicts become always"), tag("p", *_spaced(chips)))
    kind = "settles" if advice.settles else "helps"
    return tag("article", *items, tag("p", effect_text(advice)), effect, class_=f"advice {kind}")


def _spaced(parts: Iterable[Markup]) -> Iterator[Markup]:
    for part in parts:
        yield joined(part, " ")


def _proposal(catalog: Catalog, proposal: Proposal) -> Markup:
    about = (
        "The query that fills it" if isinstance(proposal, NewView) else "The query that confirms it: no rows"
    )
    return tag(
        "div",
        tag("pre", tag("code", proposal_text(proposal))),
        tag("details", tag("summary", about), tag("pre", tag("code", _sql(catalog, proposal)))),
    )


def _sql(catalog: Catalog, proposal: Proposal) -> str:
    try:
        return proposal_sql(catalog, proposal)
    except EmissionError as error:
        return f"-- no SQL: {error}"


def view_sql(decision: Decision, its: ViewAudit, known: Situation) -> Markup:
    """The view's test and maintenance statements, folded away."""
    situation = ANYTHING.situation(decision.catalog, known)
    try:
        shown = str(printed(decision, its.view.name, situation, {})) or "-- none"
    except EmissionError as error:
        shown = f"-- no SQL: {error}"
    return tag("details", tag("summary", its.view.name), tag("pre", tag("code", shown)))
