"""An audit as one self-contained page: no network, readable on paper, in the dark, and with the keyboard alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from importlib.resources import files

from datalog.model import Constant, Row, Value
from datalog.sql import EmissionError
from datalog.syntax import show
from selfmaint.api.audit import AuditReport
from selfmaint.api.printing.confirming import proposal_sql
from selfmaint.api.printing.statements import printed
from selfmaint.audit.advice import Advice
from selfmaint.audit.changes import ANYTHING, Kind
from selfmaint.audit.example import Depends, Example, Outcome, word
from selfmaint.audit.matrix import Line, ViewAudit
from selfmaint.audit.proposals import NewView, Proposal
from selfmaint.decide.decision import Decision
from selfmaint.report.audit.drawing import drawing
from selfmaint.report.audit.markup import Markup, joined, tag
from selfmaint.report.audit.words import (
    CUT,
    MARKS,
    change_text,
    effect_text,
    flip_text,
    loss_lines,
    needs_text,
    proposal_lines,
    reason,
)
from selfmaint.warehouse.catalog import Catalog
from selfmaint.warehouse.situation import Situation

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
_KINDS = {Kind.INSERT: "insert", Kind.DELETE: "delete", Kind.UPDATE: "update", Kind.ANY: "any change"}
_Rows = Mapping[str, Collection[Row]]


def audit_page(report: AuditReport, title: str) -> str:
    """The page."""
    style, script = (_asset(name) for name in ("page.css", "page.js"))
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", f"{title}: audit"),
        Markup(f"<style>{style}</style>"),
    )
    body = tag(
        "body", _header(report, title), tag("main", *_sections(report)), Markup(f"<script>{script}</script>")
    )
    return f'<!doctype html>\n<html lang="en">{head}{body}</html>\n'


def _asset(name: str) -> str:
    return files("selfmaint.report.audit").joinpath(name).read_text(encoding="utf-8")


def _header(report: AuditReport, title: str) -> Markup:
    counts = Counter(word(its.anything.any) for its in report.audit.views)
    chips = [
        tag("span", f"{MARKS[name]} {counts[name]} {name}", class_=f"chip {name}")
        for name in MARKS
        if counts[name]
    ]
    return tag(
        "header",
        tag("p", "selfmaint audit", class_="kicker"),
        tag("h1", title),
        tag(
            "p",
            "Which views can always follow the base relations without reading them, whatever the data? "
            "From the definitions and constraints alone.",
            class_="lead",
        ),
        tag("p", *(joined(chip, " ") for chip in chips)),
    )


def _sections(report: AuditReport) -> Iterator[Markup]:
    if report.loss is not None:
        lines = [tag("p", line) for line in loss_lines(report.loss)]
        yield tag("section", tag("h2", "Without them"), *lines, id="without")
    yield tag(
        "section", tag("h2", "The warehouse"), tag("figure", drawing(report), _legend()), id="warehouse"
    )
    yield tag("section", tag("h2", "Verdicts"), _filters(), _matrix(report), id="verdicts")
    cards = [
        joined(
            tag("h3", its.view.name),
            tag("div", *(_advice_card(report.audit.catalog, one) for one in mine), class_="cards"),
        )
        for its in report.audit.views
        if (mine := [one for one in report.advice if one.view == its.view.name])
    ]
    if cards or report.cut:
        lead = "Each was checked: these are the verdicts of the audit with it. The first is the cheapest."
        cut = [tag("p", f"{name}: {CUT}") for name in report.cut]
        yield tag("section", tag("h2", "What to add"), tag("p", lead), *cards, *cut, id="advice")
    decision = Decision(report.audit.catalog)
    statements = (_view_sql(decision, its, report.audit.known) for its in report.audit.views)
    about = "The test, and the rows gained and lost, for any update; over the views and REL_inserted, REL_deleted."
    yield tag("section", tag("h2", "Generated SQL"), tag("p", about), *statements, id="sql")


def _legend() -> Markup:
    items = [
        ("read", "the view reads it"),
        ("needed", "must be readable for the view to follow always"),
        ("reference", "foreign key"),
    ]
    parts = [
        tag(
            "span",
            tag(
                "svg",
                tag("line", x1=0, y1=6, x2=34, y2=6, class_=name),
                viewBox="0 0 34 12",
                aria_hidden="true",
            ),
            f" {about}",
        )
        for name, about in items
    ]
    return tag("figcaption", *parts, class_="legend")


def _filters() -> Markup:
    options = [("all", "all"), *((name, f"{mark} {name}") for name, mark in MARKS.items())]
    buttons = [
        tag(
            "button",
            shown,
            type="button",
            data_filter=name,
            aria_pressed="true" if name == "all" else "false",
            class_=f"chip {name}",
        )
        for name, shown in options
    ]
    box = tag(
        "input",
        type="search",
        id="find",
        placeholder="view or relation",
        aria_label="Show rows of a view or relation",
    )
    count = tag("output", "", id="shown")
    return tag("div", *buttons, box, count, class_="filters", role="group", aria_label="Filter the verdicts")


def _matrix(report: AuditReport) -> Markup:
    heads = ("view", "changes of", *_KINDS.values(), "always, if readable")
    head = tag("tr", *(tag("th", name, scope="col") for name in heads))
    bodies = [_view_rows(report, its, number) for number, its in enumerate(report.audit.views)]
    return tag("div", tag("table", tag("thead", head), *bodies, class_="matrix"), class_="scroll")


def _view_rows(report: AuditReport, its: ViewAudit, number: int) -> Markup:
    rows = []
    for at, line in enumerate(its.every_line):
        name = f"c{number}-{at}"
        words = " ".join(dict.fromkeys(word(outcome) for outcome in line.outcomes.values()))
        cells = [_cell(line, kind, f"{name}-{kind.value}") for kind in _KINDS]
        needed = tag("td", needs_text(line.needs), class_="needs")
        view = tag("th", its.view.name, scope="row", class_="viewname" if at == 0 else "viewname again")
        where = tag("td", line.relation or "all at once", class_="where")
        found = f"{its.view.name} {line.relation or ''}".lower()
        rows.append(tag("tr", view, where, *cells, needed, class_="line", data_words=words, data_text=found))
        rows.extend(
            tag(
                "tr",
                tag("td", _verdict_details(report.audit.catalog, its, line, kind, outcome), colspan=7),
                class_="more paper" if kind is Kind.ANY and word(outcome) != "always" else "more",
                id=f"{name}-{kind.value}",
                hidden=True,
            )
            for kind, outcome in line.outcomes.items()
        )
    return tag("tbody", *rows)


def _cell(line: Line, kind: Kind, target: str) -> Markup:
    if kind not in line.outcomes:
        return tag("td", "")
    found = word(line.outcomes[kind])
    return tag(
        "td",
        tag(
            "button",
            tag("span", MARKS[found], aria_hidden="true"),
            f" {found}",
            type="button",
            class_=f"verdict {found}",
            aria_expanded="false",
            aria_controls=target,
        ),
    )


def _verdict_details(catalog: Catalog, its: ViewAudit, line: Line, kind: Kind, outcome: Outcome) -> Markup:
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
    rows: _Rows,
    others: _Rows,
    columns: Mapping[str, Sequence[str]],
    after: _Rows,
    after_others: _Rows,
    views: Mapping[str, Sequence[str]],
) -> Markup:
    tables = list(_tables(rows, columns, "", others)) or [tag("p", "no rows", class_="empty")]
    state = list(_tables(after, views, "", after_others))
    return tag("div", _step(title, tables), _step("The view after the update", state), class_="case")


def _tables(
    relations: _Rows, columns: Mapping[str, Sequence[str]], prefix: str = "", others: _Rows | None = None
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


def _advice_card(catalog: Catalog, advice: Advice) -> Markup:
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
        tag("pre", tag("code", "\n".join(proposal_lines(catalog, proposal)))),
        tag("details", tag("summary", about), tag("pre", tag("code", _sql(catalog, proposal)))),
    )


def _sql(catalog: Catalog, proposal: Proposal) -> str:
    try:
        return proposal_sql(catalog, proposal)
    except EmissionError as error:
        return f"-- no SQL: {error}"


def _view_sql(decision: Decision, its: ViewAudit, known: Situation) -> Markup:
    """The view's test and maintenance statements, folded away."""
    situation = ANYTHING.situation(decision.catalog, known)
    try:
        shown = str(printed(decision, its.view.name, situation, {})) or "-- none"
    except EmissionError as error:
        shown = f"-- no SQL: {error}"
    return tag("details", tag("summary", its.view.name), tag("pre", tag("code", shown)))
