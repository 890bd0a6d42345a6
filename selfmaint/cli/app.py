"""The commands: each is imported when it is run, so that none waits for what the others need."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

COMMANDS = {
    "check": "Says for each view whether its new state is determined without reading a base relation.",
    "maintain": "Brings all views up to date, or none.",
    "explain": "Explains a diagnostic's code, or the verdict on a view.",
    "sql": "Prints a view's test, probe and maintenance statements as Spark SQL.",
    "audit": "Says for each view and kind of change whether it can always follow without a base relation, "
    "whatever the data.",
    "conformance": "Decides recorded cases: one line for each disagreement with the record, and a summary for each "
    "file.",
    "demo": "Runs the example on TPC-H data, in a checkout. Arguments go to `examples/tpch/demo.py`.",
}
"""Each command `NAME` is the function of that name in `selfmaint.cli.NAME`, with the first line of what it says."""

_SETTINGS: dict[str, dict[Any, Any]] = {"demo": {"allow_extra_args": True, "ignore_unknown_options": True}}


class _Commands(TyperGroup):
    """Lists what stands in for the commands, and runs the commands."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is named by the first argument, imported."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command if name is None else command_of(name), rest


def command_of(name: str) -> Any:
    """A command, imported."""
    alone = typer.Typer(add_completion=False, context_settings={"help_option_names": ["-h", "--help"]})
    function = getattr(import_module(f"selfmaint.cli.{name}"), name)
    alone.command(name, context_settings=_SETTINGS.get(name))(function)
    return get_command(alone)


def _stands_in() -> None:
    """For the list of commands."""


app = typer.Typer(
    name="selfmaint",
    help="Keeps a warehouse's views up to date without asking the base tables, and says when that works.",
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _name, _summary in COMMANDS.items():
    app.command(_name, help=_summary)(_stands_in)


def main() -> None:
    """The console script."""
    app()
