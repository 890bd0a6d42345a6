"""`selfmaint conformance`: decides recorded cases and compares with their answers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from selfmaint.cli.options import FormatOption
from selfmaint.cli.output import Format, print_json, print_text, reporting
from selfmaint.conformance.cases import read_cases
from selfmaint.conformance.run import Outcome, Summary, run_case
from selfmaint.engine.memory import MemoryEngine
from selfmaint.engine.protocol import Engine
from selfmaint.report.conformance import disagreement_line, outcome_json, summaries_json, summaries_table
from selfmaint.report.values import cell

_DISAGREES = 1


class EngineName(StrEnum):
    """Which engine decides."""

    MEMORY = "memory"
    SPARK = "spark"
    DUCKDB = "duckdb"


def conformance(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Cases as JSON lines.", show_default=False)
    ],
    engine: Annotated[EngineName, typer.Option("--engine", help="Which engine decides.")] = EngineName.MEMORY,
    limit: Annotated[
        int | None,
        typer.Option("--limit", min=1, help="At most so many cases of each file.", show_default=False),
    ] = None,
    format_: FormatOption = Format.TABLE,
) -> None:
    """Decides recorded cases: one line for each disagreement with the record, and a summary for each file.

    With --format json: one object for each view, then one for each file. Exit status: 0 no disagreement, 1
    some, 2 a file cannot be read.
    """
    summaries = []
    with reporting(format_):
        chosen = _engine(engine)
        for file in files:
            with _counting(file, limit) as advance:
                summaries.append(_run(file, chosen, limit, format_, advance))
    if format_ is Format.JSON:
        for line in summaries_json(summaries):
            print_json(line)
    else:
        print_text(summaries_table(summaries))
    raise typer.Exit(_DISAGREES if any(summary.disagreements for summary in summaries) else 0)


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
