"""An audit as one self-contained page: no network, readable on paper, in the dark, and with the keyboard alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from importlib.resources import files

from selfmaint.api.audit import AuditReport
from selfmaint.audit.changes import Kind
from selfmaint.audit.matrix import Line, ViewAudit
from selfmaint.audit.outcome import word
from selfmaint.decide.procedure import Decision
from selfmaint.report.audit.details import advice_card, verdict_details, view_sql
from selfmaint.report.audit.drawing import drawing
from selfmaint.report.audit.markup import Markup, joined, tag
from selfmaint.report.audit.words import CUT, MARKS, loss_lines, needs_text

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
_KINDS = {Kind.INSERT: "insert", Kind.DELETE: "delete", Kind.UPDATE: "update", Kind.ANY: "any change"}


def audit_page(report: AuditReport, title: str) -> str:
    """The page.

    Args:
        report: the audit.
        title: what the warehouse is called.
    """
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
            tag("div", *(advice_card(report.audit.catalog, one) for one in mine), class_="cards"),
        )
        for its in report.audit.views
        if (mine := [one for one in report.advice if one.view == its.view.name])
    ]
    if cards or report.cut:
        lead = "Each was checked: these are the verdicts of the audit with it. The first is the cheapest."
        cut = [tag("p", f"{name}: {CUT}") for name in report.cut]
        yield tag("section", tag("h2", "What to add"), tag("p", lead), *cards, *cut, id="advice")
    decision = Decision(report.audit.catalog)
    statements = (view_sql(decision, its, report.audit.known) for its in report.audit.views)
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
                tag("td", verdict_details(report.audit.catalog, its, line, kind, outcome), colspan=7),
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
