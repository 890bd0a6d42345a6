"""`selfmaint explain`: what a diagnostic's code means, or why a view is or is not self-maintainable."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from selfmaint.api.explain import Explanation
from selfmaint.api.explain import explain as explained
from selfmaint.api.update import Update
from selfmaint.api.warehouse import Warehouse
from selfmaint.cli.inputs import FeedArguments, UpdateArguments, using
from selfmaint.cli.options import (
    After,
    Budget,
    Deletes,
    Effective,
    EngineOption,
    FeedFormatName,
    Feeds,
    FormatOption,
    InitialLoad,
    Inserts,
    UpdateFolder,
    Upto,
)
from selfmaint.cli.output import Format, print_json, print_text, progressing, reporting
from selfmaint.report.codes import code_page
from selfmaint.report.explanation import explanation_json, explanation_sql, render
from selfmaint.report.values import cell

_CODE = re.compile(r"[A-Za-z]{2}[0-9]{3}")


def explain(
    subject: Annotated[
        str,
        typer.Argument(metavar="CODE | WAREHOUSE.toml", help="A diagnostic's code, or the warehouse file."),
    ],
    view: Annotated[
        str | None, typer.Argument(metavar="VIEW", help="The view, after a warehouse file.")
    ] = None,
    update: UpdateFolder = None,
    insert: Inserts = None,
    delete: Deletes = None,
    effective: Effective = None,
    feed: Feeds = None,
    feed_format: FeedFormatName = None,
    after: After = None,
    upto: Upto = None,
    initial_load: InitialLoad = False,
    budget: Budget = None,
    engine: EngineOption = None,
    sql: Annotated[
        bool, typer.Option("--sql", help='Print only the two databases of a "no", as SQL that runs anywhere.')
    ] = False,
    format_: FormatOption = Format.TABLE,
) -> None:
    """Explains a diagnostic's code, or the verdict on a view.

    `selfmaint explain SM102` prints the code's page. `selfmaint explain WAREHOUSE.toml VIEW --update DIR`
    shows for a "no" two databases that agree with all that is known and differ after the update; for a "yes"
    what rules out each unknown, and where each gained row's facts come from.
    """
    if view is None and _CODE.fullmatch(subject):
        _explain_code(subject.upper(), format_)
        return
    if view is None:
        raise typer.BadParameter(
            f"{subject!r} is no code; to explain a verdict, give WAREHOUSE.toml and VIEW"
        )
    feeds = FeedArguments(tuple(feed or ()), feed_format, tuple(after or ()), tuple(upto or ()), initial_load)
    arguments = UpdateArguments(update, tuple(insert or ()), tuple(delete or ()), effective, feeds, engine)
    _explain_view(Path(subject), view, arguments, format_, sql=sql, budget_s=budget)


def _explain_code(code: str, format_: Format) -> None:
    with reporting(format_):
        page = code_page(code)
    if format_ is Format.JSON:
        print_json({"code": code, "page": page})
    else:
        print_text(page)


def _explain_view(
    path: Path,
    view: str,
    arguments: UpdateArguments,
    format_: Format,
    *,
    sql: bool,
    budget_s: float | None,
) -> None:
    """The certificate of one view's verdict."""

    def found(warehouse: Warehouse[Any], update: Update[Any]) -> None:
        progress("deciding")
        _print_explanation(explained(warehouse, update, view, budget_s=budget_s), format_, sql=sql)

    with reporting(format_), progressing() as progress:
        using(path, arguments, format_, progress, found)


def _print_explanation(explanation: Explanation, format_: Format, *, sql: bool) -> None:
    if format_ is Format.JSON:
        print_json(explanation_json(explanation))
    elif sql:
        print_text(cell(explanation_sql(explanation)))
    else:
        print_text(render(explanation))
