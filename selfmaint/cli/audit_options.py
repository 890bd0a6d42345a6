"""The options of `selfmaint audit`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

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
