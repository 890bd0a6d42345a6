"""The options of `selfmaint audit`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeAlias

import typer


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


Views: TypeAlias = Annotated[
    list[str] | None, typer.Option("--view", metavar="V", help="Only this view; repeatable.")
]
Without: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--without", metavar="R[,S]", help="What breaks if these relations cannot be read."),
]
UpdateOf: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--update-of", metavar="R=C[,D]", help="The columns that updates of a relation change."),
]
Sizes: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--rows", metavar="R=N", help="The size of a relation, for estimates; repeatable."),
]
Advise: TypeAlias = Annotated[bool, typer.Option("--advice/--no-advice", help="Whether to say what to add.")]
Contents: TypeAlias = Annotated[
    bool,
    typer.Option("--contents", help="Instead ask Spark whether any database explains all stored views."),
]
FailOnOption: TypeAlias = Annotated[
    FailOn | None, typer.Option("--fail-on", help="Exit status 1 if a verdict is so bad, or worse.")
]
Baseline: TypeAlias = Annotated[
    Path | None,
    typer.Option("--baseline", metavar="FILE", help="Only what is worse than in this file fails."),
]
WriteBaseline: TypeAlias = Annotated[
    bool, typer.Option("--write-baseline", help="Write the verdicts to the baseline's file.")
]
AuditFormatOption: TypeAlias = Annotated[
    AuditFormat, typer.Option("--format", help="How to print the result.")
]
Output: TypeAlias = Annotated[
    Path | None, typer.Option("-o", "--output", metavar="FILE", help="Print to a file.")
]
