"""Verdicts: a table for people, objects for JSON, and the command line's exit status."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import assert_never

from rich.table import Table

from datalog.model import Atom
from datalog.syntax import show
from selfmaint.decide.verdict import NotSelfMaintainable, SelfMaintainable, Undecided, Verdict, Witness
from selfmaint.report.values import Json, cell

SHOWN_WITNESSES = 3
"""How many witnesses of a "no" a table shows."""

ALL_YES, SOME_NO, SOME_UNDECIDED = 0, 1, 3
"""Exit statuses: every view is self-maintainable; some view is not; none is not, but some are undecided."""

_STYLES = {"yes": "green", "no": "red", "undecided": "yellow"}


def word(verdict: Verdict) -> str:
    """`yes`, `no` or `undecided`."""
    match verdict:
        case SelfMaintainable():
            return "yes"
        case NotSelfMaintainable():
            return "no"
        case Undecided():
            return "undecided"
        case _:
            assert_never(verdict)


def status(verdicts: Iterable[Verdict]) -> int:
    """The exit status that some verdicts make."""
    words = {word(verdict) for verdict in verdicts}
    return SOME_NO if "no" in words else SOME_UNDECIDED if "undecided" in words else ALL_YES


def verdicts_json(verdicts: Mapping[str, Verdict]) -> Json:
    """A list of `{view, verdict, semantics, reasons, unknown, remarks}`.

    `semantics` is `set` or `bag`, where these differ. `unknown` lists, for some witnesses, the facts that may or may
    not exist; a variable stands for any value that nothing known tells.
    """
    return [_json(name, verdict) for name, verdict in verdicts.items()]


def _json(name: str, verdict: Verdict) -> Json:
    found: dict[str, Json] = {"view": name, "verdict": word(verdict)}
    if verdict.semantics is not None:
        found["semantics"] = verdict.semantics.value
    if isinstance(verdict, Undecided):
        found["reasons"] = list(verdict.reasons)
    if isinstance(verdict, SelfMaintainable):
        if verdict.remarks:
            found["remarks"] = list(verdict.remarks)
    else:
        found["unknown"] = [[show(fact) for fact in unknown] for unknown in _unknown(verdict.witnesses)]
    return found


def verdicts_table(verdicts: Mapping[str, Verdict]) -> Table:
    """One line for each view: its name, the verdict, and what it hangs on."""
    table = Table(title="self-maintainable?", title_justify="left")
    table.add_column("view", overflow="fold")
    table.add_column("verdict")
    table.add_column("because", overflow="fold")
    for name, verdict in verdicts.items():
        table.add_row(cell(name), cell(word(verdict), _STYLES[word(verdict)]), cell(reason(verdict)))
    return table


def reason(verdict: Verdict) -> str:
    """What a verdict hangs on, in a line or a few."""
    match verdict:
        case SelfMaintainable():
            state = "" if verdict.semantics is None else f", as a {verdict.semantics.value}"
            found = f"every database that explains what is known gives one new state{state}"
            return "\n".join([found, *verdict.remarks])
        case NotSelfMaintainable():
            return _shown(verdict.witnesses)
        case Undecided():
            return "\n".join(verdict.reasons)
        case _:
            assert_never(verdict)


def _shown(witnesses: tuple[Witness, ...]) -> str:
    unknown = _unknown(witnesses)
    lines = [f"{' and '.join(show(fact) for fact in facts)} may or may not exist" for facts in unknown]
    more = len(lines) - SHOWN_WITNESSES
    return "\n".join([*lines[:SHOWN_WITNESSES], *([f"and {more} or more others"] if more > 0 else [])])


def _unknown(witnesses: tuple[Witness, ...]) -> list[tuple[Atom, ...]]:
    """The distinct sets of unknown facts, fewest facts first."""
    found = dict.fromkeys(witness.unknown for witness in witnesses)
    return sorted(found, key=lambda facts: (len(facts), [show(fact) for fact in facts]))
