"""An audit as objects for JSON; and in SARIF 2.1.0, the format in which code hosts show findings beside the code."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from datalog.model import Row
from datalog.syntax import show
from selfmaint.api.audit import AuditReport
from selfmaint.api.printing.confirming import proposal_sql
from selfmaint.audit.advice import Advice
from selfmaint.audit.changes import Kind
from selfmaint.audit.example import Depends, Example, Outcome, word
from selfmaint.audit.matrix import Line, ViewAudit, Worse
from selfmaint.audit.needs import Loss
from selfmaint.report.audit.words import change_text, needs_text, proposal_text, reason
from selfmaint.report.values import Json, json_rows
from selfmaint.warehouse.catalog import Catalog
from selfmaint.warehouse.helper_costs import Helper


def audit_json(report: AuditReport, worse: Sequence[Worse] | None = None) -> Json:
    """`{audit, advice, cut, helpers, without, worse}`.

    `audit` lists `{view, changes, verdicts, readable}`, `changes` being the relation that changes, null for all;
    `verdicts` maps kinds of change to `{verdict, reason, example}`; `readable` lists sets of relations that, if they
    can be read, make "always" of it, cheapest first. `cut` lists the views for which the budget was spent
    before all advice was tried, `helpers` lists `{name, view, columns, groups, reads, kept}` of the helpers that the
    lake keeps or could keep; one has a row for each combination of values of `groups`, or the rows of a join if that
    is null. `worse` is null without a baseline.
    """
    return {
        "audit": [
            {"view": its.view.name, **_line(line)} for its in report.audit.views for line in its.every_line
        ],
        "advice": [advice_json(report.audit.catalog, one) for one in report.advice],
        "cut": list(report.cut),
        "helpers": [_helper(report.audit.catalog, one) for one in report.helpers],
        "without": None if report.loss is None else _loss(report.loss),
        "worse": None if worse is None else worse_json(worse),
    }


def _helper(catalog: Catalog, one: Helper) -> dict[str, Json]:
    return {
        "name": one.name,
        "view": one.of,
        "columns": list(one.columns),
        "groups": None if one.groups is None else list(one.groups),
        "reads": list(one.reads),
        "kept": one.name in catalog.helpers,
    }


def worse_json(worse: Iterable[Worse]) -> Json:
    """A list of `{view, changes, kind, before, now}`."""
    return [
        {"view": w.view, "changes": w.relation, "kind": w.kind, "before": w.before, "now": w.now}
        for w in worse
    ]


def _line(line: Line) -> dict[str, Json]:
    return {
        "changes": line.relation,
        "verdicts": {kind.value: _outcome(outcome) for kind, outcome in line.outcomes.items()},
        "updated_columns": list(line.updated),
        "always_for_updates_of": list(line.quiet),
        "readable": [{"relations": list(need.relations), "cost": need.cost} for need in line.needs],
    }


def _outcome(outcome: Outcome) -> Json:
    found: dict[str, Json] = {"verdict": word(outcome), "reason": reason(outcome)}
    if isinstance(outcome, Depends):
        found["unknown"] = [show(fact) for fact in outcome.unknown]
        found["example"] = example_json(outcome.example)
    return found


def example_json(example: Example) -> Json:
    """`{views, present, inserted, deleted, first, second, first_after, second_after}`: rows by relation or view."""
    return {
        "views": _rows({name: list(rows.elements()) for name, rows in example.contents.items()}),
        "present": _rows(example.present),
        "inserted": _rows(example.inserted),
        "deleted": _rows(example.deleted),
        "first": _rows(example.first),
        "second": _rows(example.second),
        "first_after": json_rows(example.after_first.elements()),
        "second_after": json_rows(example.after_second.elements()),
    }


def _rows(relations: Mapping[str, Collection[Row]]) -> Json:
    return {name: json_rows(rows) for name, rows in relations.items()}


def advice_json(catalog: Catalog, advice: Advice) -> Json:
    """`{view, add, settles, flips, stored_rows}`; `add` lists `{proposal, sql}`."""
    return {
        "view": advice.view,
        "add": [
            {"proposal": proposal_text(one), "sql": proposal_sql(catalog, one)} for one in advice.proposals
        ],
        "settles": advice.settles,
        "flips": [{"view": f.view, "changes": f.relation, "kind": f.kind.value} for f in advice.flips],
        "stored_rows": advice.stored_rows,
    }


def _loss(loss: Loss) -> Json:
    return {
        "relations": list(loss.lost),
        "breaks": [
            {"view": b.view, "changes": b.changed, "verdict": word(b.outcome), "reason": reason(b.outcome)}
            for b in loss.broken
        ],
        "breaks_if_it_no_longer_changes": [{"view": b.view, "changes": b.changed} for b in loss.by_others],
    }


SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"

_LEVELS = {"depends": "warning", "undecided": "note", "never": "error"}
_RULES = {
    "depends": "whether the view can follow depends on the data",
    "undecided": "it is not known whether the view can always follow",
    "never": "the view can follow no inserted row without reading base relations",
}


def audit_sarif(report: AuditReport, worse: Sequence[Worse] | None = None) -> Json:
    """One result for each verdict that is not "always"; with a baseline each says whether it is new."""
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "selfmaint",
                        "rules": [
                            {"id": f"selfmaint/{name}", "shortDescription": {"text": text}}
                            for name, text in _RULES.items()
                        ],
                    }
                },
                "results": list(_results(report, worse)),
            }
        ],
    }


def _results(report: AuditReport, worse: Sequence[Worse] | None) -> Iterator[Json]:
    new = {(w.view, w.relation, w.kind) for w in worse or ()}
    for its in report.audit.views:
        for line, kind, outcome in its.cells():
            if word(outcome) in _LEVELS:
                result = _result(its, line, kind, outcome)
                if worse is not None:
                    key = (its.view.name, line.relation or "*", kind.value)
                    result["baselineState"] = "new" if key in new else "unchanged"
                yield result


def _result(its: ViewAudit, line: Line, kind: Kind, outcome: Outcome) -> dict[str, Json]:
    found = word(outcome)
    message = f"`{its.view.name}`, {change_text(line, kind)}: {found}: {reason(outcome)}"
    if line.needs:
        message += f"; always, if {needs_text(line.needs)} can be read"
    result: dict[str, Json] = {
        "ruleId": f"selfmaint/{found}",
        "level": _LEVELS[found],
        "message": {"text": message},
        "partialFingerprints": {"cell/v1": f"{its.view.name}|{line.relation or '*'}|{kind.value}"},
    }
    span = its.view.rule.span
    if span is not None:
        place: dict[str, Json] = {
            "artifactLocation": {"uri": Path(span.source).as_posix()},
            "region": {"startLine": span.line, "startColumn": span.column},
        }
        result["locations"] = [{"physicalLocation": place}]
    return result
