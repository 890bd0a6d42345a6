"""`selfmaint explain`: what a diagnostic's code means, or why a view is or is not self-maintainable."""

from __future__ import annotations

import re
from argparse import Namespace
from pathlib import Path
from typing import Any

from selfmaint.api.explain import explain as explained
from selfmaint.api.explanation import Explanation
from selfmaint.api.update import Update
from selfmaint.api.validate import require_new
from selfmaint.api.warehouse import Warehouse
from selfmaint.cli.app import UsageError
from selfmaint.cli.inputs import using
from selfmaint.cli.options import AS_OF, BUDGET, FORMAT, SEARCH, UPDATE, VERBOSE, option, switch
from selfmaint.cli.output import Format, print_json, print_text, progressing, reporting
from selfmaint.report.errors import code_page
from selfmaint.report.explanation import explanation_json, explanation_sql, render

_CODE = re.compile(r"[A-Za-z]{2}[0-9]{3}")


OPTIONS = (
    option("subject", metavar="CODE | WAREHOUSE.toml", help="A diagnostic's code, or the warehouse file."),
    option("view", metavar="VIEW", nargs="?", help="The view, after a warehouse file."),
    *UPDATE,
    BUDGET,
    *SEARCH,
    AS_OF,
    VERBOSE,
    switch("--sql", help='Print only the two databases of a "no", as Spark SQL that needs no table.'),
    FORMAT,
)


def explain(given: Namespace) -> int:
    """Explains a diagnostic's code, or the verdict on a view.

    `selfmaint explain SM102` prints the code's page. `selfmaint explain WAREHOUSE.toml VIEW --update DIR`
    shows for a "no" two databases that agree with all that is known and differ after the update; for a "yes"
    what rules out each unknown, and where each gained row's facts come from.
    """
    if given.view is None and _CODE.fullmatch(given.subject):
        _explain_code(given.subject.upper(), given.format)
    elif given.view is None:
        raise UsageError(f"{given.subject!r} is no code; to explain a verdict, give WAREHOUSE.toml and VIEW")
    else:
        _explain_view(given)
    return 0


def _explain_code(code: str, format_: Format) -> None:
    with reporting(format_):
        page = code_page(code)
    if format_ is Format.JSON:
        print_json({"code": code, "page": page})
    else:
        print_text(page)


def _explain_view(given: Namespace) -> None:
    """The certificate of one view's verdict."""

    def found(warehouse: Warehouse[Any], update: Update[Any]) -> None:
        require_new(warehouse, update)
        progress("deciding")
        explanation = explained(warehouse, update, given.view, budget_s=given.budget)
        _print_explanation(explanation, given.format, sql=given.sql, verbose=given.verbose)

    with reporting(given.format), progressing() as progress:
        using(Path(given.subject), given, progress, found)


def _print_explanation(explanation: Explanation, format_: Format, *, sql: bool, verbose: bool) -> None:
    if format_ is Format.JSON:
        print_json(explanation_json(explanation))
    elif sql:
        print_text(explanation_sql(explanation))
    else:
        print_text(render(explanation, verbose=verbose))
