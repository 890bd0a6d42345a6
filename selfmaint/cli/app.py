"""The commands, put together."""

from __future__ import annotations

import typer

from selfmaint.cli.audit import audit
from selfmaint.cli.check import check
from selfmaint.cli.conformance import conformance
from selfmaint.cli.demo import demo
from selfmaint.cli.explain import explain
from selfmaint.cli.maintain import maintain
from selfmaint.cli.sql import sql

app = typer.Typer(
    name="selfmaint",
    help="Keeps a warehouse's views up to date without asking the base tables, and says when that works.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(check)
app.command()(maintain)
app.command()(explain)
app.command()(sql)
app.command()(audit)
app.command()(conformance)
app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(demo)


def main() -> None:
    """The console script."""
    app()
