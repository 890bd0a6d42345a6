"""`selfmaint conformance`: decides recorded cases and compares with their answers."""

from __future__ import annotations

import contextlib
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from selfmaint.cli.options import FORMAT, at_least_one, choice, option
from selfmaint.cli.output import Format, print_json, print_text, reporting
from selfmaint.conformance.cases import read_cases
from selfmaint.conformance.run import Outcome, Summary, run_case
from selfmaint.engine.memory import MemoryEngine
from selfmaint.engine.protocol import Engine
from selfmaint.report.values import Json, cell, json_rows, table

_DISAGREES = 1


class EngineName(StrEnum):
    """Which engine decides."""

    MEMORY = "memory"
    SPARK = "spark"
    DUCKDB = "duckdb"


OPTIONS = (
    option("files", metavar="FILE...", nargs="+", type=Path, help="Cases as JSON lines."),
    choice("--engine", EngineName, default=EngineName.MEMORY, help="Which engine decides."),
    option("--limit", metavar="N", type=at_least_one, help="At most so many cases of each file."),
    FORMAT,
)


def conformance(given: Namespace) -> int:
    """Decides recorded cases: one line for each disagreement with the record, and a summary for each file.

    With --format json: one object for each view, then one for each file. Exit status: 0 no disagreement, 1
    some, 2 a file cannot be read.
    """
    summaries = []
    with reporting(given.format):
        chosen = _engine(given.engine)
        for file in given.files:
            with _counting(file, given.limit) as advance:
                summaries.append(_run(file, chosen, given.limit, given.format, advance))
    if given.format is Format.JSON:
        for line in summaries_json(summaries):
            print_json(line)
    else:
        print_text(summaries_table(summaries))
    return _DISAGREES if any(summary.disagreements for summary in summaries) else 0


def _run(
    file: Path, engine: Engine[Any], limit: int | None, format_: Format, advance: Callable[[], None]
) -> Summary:
    summary = Summary(str(file))
    for case in read_cases(file, limit):
        for outcome in run_case(case, engine):
            summary.add(outcome)
            _print_outcome(file, outcome, format_)
        advance()
    return summary


def _print_outcome(file: Path, outcome: Outcome, format_: Format) -> None:
    if format_ is Format.JSON:
        print_json(outcome_json(outcome))
    elif outcome.disagreement is not None:
        print_text(cell(disagreement_line(str(file), outcome)))


def _engine(name: EngineName) -> Engine[Any]:
    if name is EngineName.MEMORY:
        return MemoryEngine()
    if name is EngineName.DUCKDB:
        from selfmaint.duckdb import DuckEngine  # noqa: PLC0415 - DuckDB only when it is asked for

        return DuckEngine()
    from selfmaint.spark import SparkEngine, session  # noqa: PLC0415 - Spark only when it is asked for

    return SparkEngine(session())


@contextlib.contextmanager
def _counting(file: Path, limit: int | None) -> Iterator[Callable[[], None]]:
    """A progress bar on a terminal; nothing elsewhere."""
    console = Console(stderr=True)
    if not console.is_terminal or not file.is_file():
        yield lambda: None
        return
    with file.open("rb") as lines:
        total = sum(1 for _ in lines)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(file.name, total=min(total, limit or total))
        yield lambda: progress.advance(task)


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
