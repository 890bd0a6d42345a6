"""Verdicts: a table for people, objects for JSON, and the command line's exit status."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from rich.table import Table

from datalog.syntax import show
from selfmaint.decide.verdict import (
    SelfMaintainable,
    Undecided,
    Verdict,
    VerdictKind,
    Verdicts,
    Way,
    copies_of,
    unknown_facts,
)
from selfmaint.report.values import Json, cell

if TYPE_CHECKING:
    from selfmaint.cross_examine.examine import Examined

ALL_YES, SOME_NO, SOME_UNDECIDED = 0, 1, 3
"""Exit statuses: every view is self-maintainable; some view is not; none is not, but some are undecided."""

_SEVERAL = 2
"""What would decide on fewer views is said with each."""

_STYLES = {"yes": "green", "no": "red", "undecided": "yellow"}


def status(verdicts: Iterable[Verdict]) -> int:
    """The exit status that some verdicts make."""
    kinds = {verdict.kind for verdict in verdicts}
    if VerdictKind.NO in kinds:
        return SOME_NO
    return SOME_UNDECIDED if VerdictKind.UNDECIDED in kinds else ALL_YES


def verdicts_json(verdicts: Mapping[str, Verdict]) -> Json:
    """A list of `{view, verdict, semantics, reasons, unknown, remarks, over, exact, near}`.

    `exact` of a "yes" says whether the view is of a class of which each "no" is proved, too.
    `near` is there where rows near the update were searched: `{rows, closed}`, how many, and whether others meet none.
    `semantics` is `set` or `bag`, where these differ. `unknown` lists, for some witnesses, the facts that may or may
    not exist; a variable stands for any value that nothing known tells. One that is no "yes" has `way`: `{by, reads,
    whole}`, how `maintain` goes on with it, and `untold`: relations that would do for it if all their rows were stored.
    Where a cross-examination was asked for, each has `cross_examined`: `{outcome, because, file}`.
    """
    examined = verdicts.examined if isinstance(verdicts, Verdicts) else {}
    ways, untold = (verdicts.ways, verdicts.untold) if isinstance(verdicts, Verdicts) else ({}, {})
    return [
        {
            **_json(name, verdict),
            **_way(ways.get(name)),
            **_untold(untold.get(name, ())),
            **examined_json(examined.get(name)),
        }
        for name, verdict in verdicts.items()
    ]


def _untold(names: Iterable[str]) -> dict[str, Json]:
    return {"untold": [*sorted(names)]} if names else {}


def _way(way: Way | None) -> dict[str, Json]:
    return {} if way is None else {"way": {"by": way.by, "reads": list(way.reads), "whole": list(way.whole)}}


def examined_json(one: Examined | None) -> dict[str, Json]:
    """What a cross-examination found: `cross_examined`; nothing where none was asked for."""
    if one is None:
        return {}
    file = None if one.file is None else str(one.file)
    return {"cross_examined": {"outcome": one.outcome.value, "because": one.because, "file": file}}


def _json(name: str, verdict: Verdict) -> dict[str, Json]:
    found: dict[str, Json] = {"view": name, "verdict": verdict.kind.value}
    if verdict.semantics is not None:
        found["semantics"] = verdict.semantics.value
    if isinstance(verdict, Undecided):
        found["reasons"] = list(verdict.reasons)
    if isinstance(verdict, SelfMaintainable):
        if verdict.remarks:
            found["remarks"] = list(verdict.remarks)
        found["exact"] = verdict.exact
        if verdict.over:
            found["over"] = list(verdict.over)
        if verdict.told:
            found["told"] = list(verdict.told)
    else:
        found["unknown"] = [[show(fact) for fact in unknown] for unknown in unknown_facts(verdict.witnesses)]
    if verdict.near is not None:
        found["near"] = {"rows": verdict.near.rows, "closed": verdict.near.is_closed}
    return found


def because(verdict: Verdict, *, verbose: bool) -> str:
    """What a verdict hangs on, with every reason if `verbose`."""
    return "\n".join(verdict.reasons) if verbose and isinstance(verdict, Undecided) else verdict.because


def verdicts_table(verdicts: Mapping[str, Verdict], *, verbose: bool = False) -> Table:
    """One line for each view: its name, the verdict, and what it hangs on; with every reason if `verbose`."""
    table = Table(title="self-maintainable?", title_justify="left")
    table.add_column("view", overflow="fold")
    table.add_column("verdict")
    table.add_column("because", overflow="fold")
    examined = verdicts.examined if isinstance(verdicts, Verdicts) else {}
    ways = verdicts.ways if isinstance(verdicts, Verdicts) else {}
    for name, verdict in verdicts.items():
        lines = [because(verdict, verbose=verbose), *([str(examined[name])] if name in examined else [])]
        lines += [f"maintain: {ways[name]}"] if name in ways else []
        table.add_row(cell(name), cell(verdict.word, _STYLES[verdict.kind.value]), cell("\n".join(lines)))
    return table


def would_tell(verdicts: Verdicts) -> str | None:
    """What, were it stored, would do for several views that are no "yes"; None if there is no such thing."""
    if len(verdicts.untold) < _SEVERAL:
        return None
    names = sorted(frozenset[str]().union(*verdicts.untold.values()))
    views = ", ".join(f"`{name}`" for name in verdicts.untold)
    return f"with {copies_of(names)} stored, {len(verdicts.untold)} of these views would need no base rows: {views}"
