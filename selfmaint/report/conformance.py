"""Recorded cases: disagreements and summaries as lines for people and objects for JSON."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from selfmaint.conformance.run import Outcome, Summary
from selfmaint.report.values import Json, json_rows, table

_COUNTS = ("cases", "views", "yes", "no", "undecided", "unsound", "incomplete", "wrong_state")


def outcome_json(outcome: Outcome) -> Json:
    """`{case, view, verdict, state, milliseconds}`; `state` is null unless the verdict is yes."""
    return {
        "case": outcome.case,
        "view": outcome.view,
        "verdict": outcome.verdict,
        "state": None if outcome.state is None else json_rows(outcome.state),
        "milliseconds": round(outcome.milliseconds, 3),
    }


def disagreement_line(file: str, outcome: Outcome) -> str:
    """What contradicts the record, on one line."""
    expected = "another state" if outcome.wrong_state else f"{outcome.expected} is recorded"
    return f"{outcome.disagreement}: {file} {outcome.case} {outcome.view}: {outcome.verdict}, {expected}"


def summaries_json(found: Sequence[Summary]) -> list[Json]:
    """A list of `{file, cases, views, yes, no, undecided, unsound, incomplete, wrong_state}`."""
    return [{"file": s.file, **{name: getattr(s, name) for name in _COUNTS}} for s in found]


def summaries_table(found: Sequence[Summary]) -> Table:
    """One line for each file."""
    rows = ((s.file, *(str(getattr(s, name)) for name in _COUNTS)) for s in found)
    return table("conformance", ["file"], [name.replace("_", " ") for name in _COUNTS], rows)
