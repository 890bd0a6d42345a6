"""An audit in SARIF 2.1.0, the format in which code hosts show findings beside the code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from selfmaint.api.audit import AuditReport
from selfmaint.audit.baseline import Worse
from selfmaint.audit.changes import Kind
from selfmaint.audit.matrix import Line, ViewAudit
from selfmaint.audit.outcome import Outcome, word
from selfmaint.report.audit.words import change_text, needs_text, reason
from selfmaint.report.values import Json

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
