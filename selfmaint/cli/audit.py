"""`selfmaint audit`: what holds for every update, from definitions alone."""

from __future__ import annotations

import json
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from enum import StrEnum
from pathlib import Path

from datalog.copies import replace
from selfmaint.api.audit import AuditOptions, AuditReport, audit_catalog
from selfmaint.api.file.warehouse_file import WarehouseFile, possible_helpers, read_warehouse_file
from selfmaint.audit.example import word
from selfmaint.audit.matrix import Worse, baseline_text, read_baseline, worse
from selfmaint.cli.app import UsageError
from selfmaint.cli.options import (
    BUDGET,
    EFFECTIVE,
    WAREHOUSE,
    at_least_one,
    choice,
    option,
    repeatable,
    switch,
    yes_or_no,
)
from selfmaint.cli.output import (
    Format,
    print_json,
    print_note,
    print_text,
    print_warnings,
    progressing,
    reporting,
)
from selfmaint.errors import Code, InputError, input_error
from selfmaint.report.audit.table import audit_parts, summary
from selfmaint.report.errors import diagnostics_text, errors_json
from selfmaint.warehouse.helper_costs import Helper, helpers


class AuditFormat(StrEnum):
    """How an audit is printed."""

    TABLE = "table"
    JSON = "json"
    SARIF = "sarif"
    HTML = "html"


class FailOn(StrEnum):
    """The least verdict that fails."""

    DEPENDS = "depends"
    NEVER = "never"


OPTIONS = (
    WAREHOUSE,
    repeatable("--view", metavar="V", help="Only this view; repeatable."),
    repeatable("--without", metavar="R[,S]", help="What breaks if these relations cannot be read."),
    repeatable("--update-of", metavar="R=C[,D]", help="The columns that updates of a relation change."),
    repeatable("--rows", metavar="R=N", help="The size of a relation, for estimates; repeatable."),
    *yes_or_no("--advice", "--no-advice", default=True, help="Say what to add; that is the default."),
    switch("--contents", help="Instead say whether any database explains all stored views."),
    *EFFECTIVE,
    BUDGET,
    option(
        "--processes",
        metavar="N",
        type=at_least_one,
        help="How many look for verdicts side by side; by default one for each dozen views.",
    ),
    choice("--fail-on", FailOn, help="Exit status 1 if a verdict is so bad, or worse."),
    option("--baseline", metavar="FILE", type=Path, help="Only what is worse than in this file fails."),
    switch("--write-baseline", help="Write the verdicts to the baseline's file."),
    choice("--format", AuditFormat, default=AuditFormat.TABLE, help="How to print the result."),
    option("-o", "--output", metavar="FILE", type=Path, help="Print to a file."),
)


__all__ = ["OPTIONS", "audit"]

EACH = 12
"""So many views one process looks at before there is another."""

FAILED, UNDECIDED = 1, 3
"""Exit statuses: something is as bad as `--fail-on` says, or breaks; nothing is, but something is undecided."""


def audit(given: Namespace) -> int:
    """Says for each view and kind of change whether it can always follow without a base relation, whatever the data.

    Needs neither data nor an engine, except with --contents. Exit status: 0 nothing to report; 1 with --fail-on or
    --baseline: some verdict is that bad (and worse than the baseline's); with --without: something breaks; with
    --contents: the views contradict each other; 2 bad usage or input; 3 with --fail-on depends: nothing
    fails, but something is undecided.
    """
    errors = Format.TABLE if given.format in (AuditFormat.TABLE, AuditFormat.HTML) else Format.JSON
    if given.write_baseline and given.baseline is None:
        raise UsageError("--write-baseline needs --baseline FILE")
    with reporting(errors), progressing() as progress:
        file = read_warehouse_file(given.warehouse)
        warnings = file.catalog.warnings_of(given.view) if given.view else file.catalog.warnings
        print_warnings(warnings, errors)
        if file.catalog.clock is not None:
            print_note(errors, file.catalog.clock.note)
        if given.contents:
            progress("opening the views")
            return _contents(file, errors, progress)
        compares = given.baseline is not None and not given.write_baseline
        before = read_baseline(given.baseline) if compares else None
        report = audit_catalog(file.catalog, file.known(given.effective), _options(given, file, progress))
        report = replace(report, helpers=_helpers(given, file, report))
        least = FailOn.DEPENDS if given.fail_on is None else given.fail_on
        found = worse(report.audit.words(), before or {}, least.value)
        shown = None if before is None else found
        _print(report, shown, given.format, given.output, str(given.warehouse))
        if given.write_baseline:
            _write(given.baseline, baseline_text(report.audit.words()))
    if report.loss is not None:
        return FAILED if report.loss.broken else 0
    return 0 if given.write_baseline or (given.fail_on is None and before is None) else _status(found)


def _options(given: Namespace, file: WarehouseFile, progress: Callable[[str], None]) -> AuditOptions:
    return AuditOptions(
        views=tuple(given.view) or None,
        without=tuple(name for part in given.without for name in _names(part, file)),
        updates={name: tuple(text.split(",")) for name, text in _pairs(given.update_of, "--update-of")},
        costs={n: entry.cost for n, entry in file.relations.items() if entry.cost is not None},
        sizes={name: _number(text) for name, text in _pairs(given.rows, "--rows")},
        advise=given.advice and not given.without,
        progress=progress,
        budget_s=file.budget_s if given.budget is None else given.budget,
        processes=_processes(len(file.catalog.views)) if given.processes is None else given.processes,
    )


def _helpers(given: Namespace, file: WarehouseFile, report: AuditReport) -> tuple[Helper, ...]:
    """The helpers of the views; where a store keeps none, those that views which do not always follow would have."""
    if not given.advice:
        return ()
    if file.catalog.helpers:
        return helpers(file.catalog)
    left = {its.view.name for its in report.audit.views if word(its.anything.any) != "always"}
    return tuple(one for one in possible_helpers(given.warehouse) if one.of in left) if left else ()


def _processes(views: int) -> int:
    """As many as there are processors, where there are views for them: starting one takes as long as some views."""
    return min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1, views // EACH + 1)


def _status(found: Sequence[Worse]) -> int:
    if all(one.now == "undecided" for one in found):
        return UNDECIDED if found else 0
    return FAILED


def _names(part: str, file: WarehouseFile) -> list[str]:
    """The relations of `R,S`; a known name may hold a comma."""
    return [part] if part in file.catalog.relations else part.split(",")


def _pairs(given: Iterable[str], option: str) -> list[tuple[str, str]]:
    found = []
    for text in given:
        name, equals, value = text.rpartition("=")
        if not name or not equals or not value:
            raise UsageError(f"{option} takes R=..., not {text!r}")
        found.append((name, value))
    return found


def _number(text: str) -> int:
    if not text.replace("_", "").isdecimal():
        raise UsageError(f"--rows takes R=N with a number of rows, not {text!r}")
    return int(text)


def _print(
    report: AuditReport, found: Sequence[Worse] | None, format_: AuditFormat, output: Path | None, title: str
) -> None:
    if format_ is AuditFormat.TABLE:
        if output is not None:
            raise UsageError("-o needs --format json, sarif or html")
        print_text(*audit_parts(report))
        if found is not None:
            print_text(*([_worse_line(one) for one in found] or ["no verdict is worse than the baseline's"]))
        return
    text = _text(report, found, format_, title)
    if output is None:
        sys.stdout.write(text)
    else:
        _write(output, text)
        print_text(f"written: {output} ({summary(report)})")


def _text(report: AuditReport, found: Sequence[Worse] | None, format_: AuditFormat, title: str) -> str:
    """The report in a format, each of which loads what it needs."""
    match format_:
        case AuditFormat.HTML:
            from selfmaint.report.audit.page import audit_page  # noqa: PLC0415

            return audit_page(report, title)
        case AuditFormat.SARIF:
            from selfmaint.report.audit.objects import audit_sarif  # noqa: PLC0415

            return json.dumps(audit_sarif(report, found), ensure_ascii=False, indent=2) + "\n"
        case _:
            from selfmaint.report.audit.objects import audit_json  # noqa: PLC0415

            return json.dumps(audit_json(report, found), ensure_ascii=False) + "\n"


def _worse_line(one: Worse) -> str:
    before = one.before or "not there"
    where = "all relations" if one.relation == "*" else one.relation
    return f"worse: {one.view}, {one.kind} on {where}: {before} -> {one.now}"


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise input_error(
            Code.WAREHOUSE_FILE, f"`{path}` cannot be written: {error.strerror}", "name a file that can be"
        ) from error


def _contents(file: WarehouseFile, format_: Format, progress: Callable[[str], None]) -> int:
    """Whether any database explains what the views hold now; what contradicts is printed."""
    from selfmaint.api.load import open_warehouse  # noqa: PLC0415 - engines only where data is asked for
    from selfmaint.api.validate import require_explained  # noqa: PLC0415

    with closing(open_warehouse(file)) as warehouse:
        progress("comparing the views' contents")
        try:
            partly = require_explained(warehouse)
        except InputError as error:
            if format_ is Format.JSON:
                print_json({"consistent": False, **errors_json(error)})  # type: ignore[dict-item]
            else:
                print_text(diagnostics_text(error.diagnostics))
            return FAILED
    if format_ is Format.JSON:
        print_json({"consistent": True, "partly": list(partly)})
    elif partly:
        names = ", ".join(f"`{name}`" for name in partly)
        print_text(f"no view contradicts another; of what these hold only a part can be compared: {names}")
    else:
        print_text("the views are consistent: there is a database that explains all of them")
    return 0
