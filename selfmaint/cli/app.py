"""The commands: each is imported when it is run, so that none waits for what the others need."""

from __future__ import annotations

import atexit
import contextlib
import inspect
import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn, TypeAlias

if TYPE_CHECKING:
    from selfmaint.cli.options import Option

COMMANDS = {
    "check": "Says for each view whether its new state is determined without reading a base relation.",
    "maintain": "Brings all views up to date, or none.",
    "follow": "Keeps the views up to date with the log of their source.",
    "explain": "Explains a diagnostic's code, or the verdict on a view.",
    "query": "Answers a SELECT over the views, all of them in one state, the newest or an earlier one.",
    "sql": "Prints a view's test, probe and maintenance statements as Spark SQL.",
    "audit": "Says for each view and kind of change whether it can always follow without a base relation, "
    "whatever the data.",
    "init": "Makes the store of a warehouse, with the contents of all views.",
    "import": "Brings views into the store anew.",
    "history": "Lists the states of the store: which update made each, and what changed.",
    "undo": "Puts the contents of all views back to what they were before the last update.",
    "compact": "Writes the store's files anew where that saves reading, and lets go of old states.",
    "conformance": "Decides recorded cases: one line for each disagreement with the record, and a summary for each "
    "file.",
    "demo": "Runs the example on TPC-H data, in a checkout. Arguments go to `examples/tpch/demo.py`.",
}
"""Each command `NAME` is the function of that name in `selfmaint.cli.NAME`, with the first line of what it says.

It takes what was read of the module's `OPTIONS`, and gives its exit status. Those of the store are in one module.
"""

_OF_STORE = ("init", "import", "history", "undo", "compact")

BAD_USAGE = 2
"""The exit status of bad usage and bad input."""

_INTERRUPTED, _NO_READER = 130, 1

_PASSES_ON = {"demo"}
"""Which commands take what they do not know, as `rest`."""

Command: TypeAlias = Callable[[Namespace], int]


class EndedError(Exception):
    """A command ends here, with an exit status; all is said."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class UsageError(Exception):
    """Arguments that make no sense together; the text says why."""


def imported(name: str) -> tuple[Command, Sequence[Option]]:
    """A command, and what it takes."""
    module = import_module(f"selfmaint.cli.{'store' if name in _OF_STORE else name}")
    function: Command = getattr(module, "import_" if name == "import" else name)
    return function, module.OPTIONS[name] if name in _OF_STORE else module.OPTIONS


def command(name: str) -> tuple[Command, ArgumentParser]:
    """A command, imported, and what reads its arguments."""
    function, options = imported(name)
    summary, _, more = (inspect.getdoc(function) or "").partition("\n\n")
    takes = [option for option in options if not option.flags[0].startswith("-")]
    parser = _parser(f"selfmaint {name}", [option.settings["metavar"] for option in takes], summary, more)
    for option in options:
        parser.add_argument(*option.flags, **option.settings)
    return function, parser


def app(arguments: Sequence[str]) -> int:
    """Runs a command line, and gives its exit status.

    Raises:
        SystemExit: bad usage, or only help was asked for; it is printed.
    """
    if not arguments or arguments[0] not in COMMANDS:
        _no_command(arguments)
    name = arguments[0]
    function, parser = command(name)
    given, rest = parser.parse_known_intermixed_args(list(arguments[1:]))
    if rest and name not in _PASSES_ON:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    given.rest = rest
    try:
        return function(given)
    except UsageError as error:
        parser.error(str(error))
    except EndedError as ended:
        return ended.status


def _no_command(arguments: Sequence[str]) -> NoReturn:
    """Prints the list of commands, or that there is no such one."""
    summary = "Keeps a warehouse's views up to date without asking the base tables, and says when that works."
    parser = _parser("selfmaint", ["COMMAND", "..."], summary)
    listed = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name, says in COMMANDS.items():
        listed.add_parser(name, help=says)
    if not arguments:
        parser.print_help(sys.stderr)
        parser.exit(BAD_USAGE)
    if arguments[0].startswith("-"):
        from importlib.metadata import version  # noqa: PLC0415 - of no other use, and slow to import

        parser.add_argument("--version", action="version", version=f"selfmaint {version('selfmaint')}")
        parser.parse_args(arguments[:1])
    close = get_close_matches(arguments[0], COMMANDS, n=1)
    parser.error(f"No such command {arguments[0]!r}." + (f" Did you mean {close[0]!r}?" if close else ""))


def _parser(name: str, takes: Iterable[str], summary: str, more: str = "") -> ArgumentParser:
    """What reads arguments, without any yet but `--help`; a percent sign would begin a place of `argparse`'s."""
    usage = " ".join([name, "[OPTIONS]", *takes])
    return ArgumentParser(
        name, usage, summary.replace("%", "%%"), more.replace("%", "%%"), allow_abbrev=False
    )


def main() -> None:
    """The console script."""
    from selfmaint.api.garbage import seldom_collected  # noqa: PLC0415 - so that a list of commands needs nothing

    try:
        with seldom_collected():
            status = app(sys.argv[1:])
        sys.stdout.flush()
    except KeyboardInterrupt:
        status = _interrupted()
    except BrokenPipeError:  # who reads the output is gone; nothing is flushed to nobody at the end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = _NO_READER
    except Exception as failure:
        if not _is_of_an_interrupt(failure):
            raise
        status = _interrupted()
    _end(status)


def _interrupted() -> int:
    sys.stderr.write("interrupted: nothing is half done, and the command may be run again\n")
    return _INTERRUPTED


def _is_of_an_interrupt(failure: BaseException | None) -> bool:
    """Whether an error is what others made of an interrupt: DuckDB in the middle of a statement, an import."""
    while failure is not None and not isinstance(failure, KeyboardInterrupt):
        failure = failure.__cause__ or failure.__context__
    return failure is not None


def _end(status: int) -> NoReturn:
    """Ends the process once what was registered for it has run: taking apart all that was loaded would take longer."""
    atexit._run_exitfuncs()
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
