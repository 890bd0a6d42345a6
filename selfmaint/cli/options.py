"""Arguments and options: what they are made of, and those that several commands share."""

from __future__ import annotations

import math
import re
from argparse import Action, ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct

from selfmaint.api.file.file_settings import EngineKind
from selfmaint.cli.output import Format

LEAST_S = 0.001
_MOST_DIGITS = 9

ChosenT = TypeVar("ChosenT", bound=StrEnum)


class Option(Struct, frozen=True):
    """An argument or option of a command, as `ArgumentParser.add_argument` takes it."""

    flags: tuple[str, ...]
    settings: dict[str, Any]


def option(*flags: str, **settings: Any) -> Option:
    """An argument, or an option with a value."""
    return Option(flags, settings)


def repeatable(*flags: str, metavar: str, help: str) -> Option:  # noqa: A002 - as `argparse` has it
    """An option that may be given several times: a list, by default empty."""
    return option(*flags, action="append", default=[], metavar=metavar, help=help)


class _Once(Action):
    """Stores a value, and refuses another one: `argparse` would drop the first."""

    def __call__(
        self, parser: ArgumentParser, namespace: Namespace, values: Any, option_string: str | None = None
    ) -> None:
        if getattr(namespace, self.dest) is not None:
            parser.error(f"argument {option_string}: given twice; run the command for each, in their order")
        setattr(namespace, self.dest, values)


def switch(*flags: str, help: str) -> Option:  # noqa: A002 - as `argparse` has it
    """An option without a value: whether it is given."""
    return option(*flags, action="store_true", help=help)


def yes_or_no(yes: str, no: str, *, default: bool | None, help: str) -> tuple[Option, Option]:  # noqa: A002
    """Two options of which the last one that is given holds."""
    name = yes.removeprefix("--").replace("-", "_")
    return (
        option(yes, dest=name, action="store_const", const=True, default=default, help=help),
        option(no, dest=name, action="store_const", const=False, help=f"The opposite of {yes}."),
    )


def choice(flag: str, kind: type[ChosenT], *, help: str, default: ChosenT | None = None) -> Option:  # noqa: A002
    """An option with one of some words."""
    words = "|".join(kind)
    name = flag.removeprefix("--").replace("-", "_")
    return option(flag, dest=name, type=_one_of(kind), default=default, metavar=words, help=help)


def _one_of(kind: type[ChosenT]) -> Callable[[str], ChosenT]:
    def read(text: str) -> ChosenT:
        try:
            return kind(text)
        except ValueError:
            raise ArgumentTypeError(f"{text!r} is not one of {', '.join(kind)}") from None

    return read


def number(what: str, least: float, most: float = math.inf) -> Callable[[str], float]:
    """A number within bounds, as an option's type; `what` it is, is said where it is none."""

    def read(text: str) -> float:
        try:
            found = float(text)
        except ValueError:
            found = math.nan
        if not least <= found <= most:  # neither is NaN
            raise ArgumentTypeError(f"{text!r} is not {what}")
        return found

    return read


_seconds = number(f"a number of seconds of at least {LEAST_S}", LEAST_S)


def at_least_one(text: str) -> int:
    """A whole number, as an option's type."""
    found = int(text) if text.isdecimal() and len(text) <= _MOST_DIGITS else 0
    if found < 1:
        raise ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return found


def state(text: str) -> int | str:
    """A state of a store, as an option's type: its snapshot, else the id of the update that made it."""
    return int(text) if re.fullmatch("-?[0-9]+", text) else text


AS_OF = option(
    "--as-of",
    metavar="SNAPSHOT",
    type=state,
    help="The state of the store to look at, or the update that made it, as `history` shows it; by default the newest.",
)
WAREHOUSE = option("warehouse", metavar="WAREHOUSE.toml", type=Path, help="The warehouse file.")
EFFECTIVE = yes_or_no(
    "--effective",
    "--not-effective",
    default=None,
    help="Inserted rows were absent before, deleted ones present; by default as the warehouse file says.",
)
UPDATE = (
    option(
        "--update",
        action=_Once,
        metavar="DIR",
        type=Path,
        help="The update: files RELATION.insert.SUFFIX and RELATION.delete.SUFFIX, parquet, csv or jsonl.",
    ),
    repeatable("--insert", metavar="REL=PATH", help="Rows inserted into a base relation; may be repeated."),
    repeatable("--delete", metavar="REL=PATH", help="Rows deleted from a base relation; may be repeated."),
    *EFFECTIVE,
    repeatable(
        "--feed",
        metavar="[REL=]PATH",
        help="A change feed (Debezium, Delta, Iceberg, insert and delete files); may be repeated.",
    ),
    option(
        "--feed-format", metavar="NAME", help="debezium, delta, iceberg or plain; else told from the columns."
    ),
    repeatable(
        "--after",
        metavar="[REL=]POSITION",
        help="Leave out the feed up to here: the last batch's end; may be repeated, for the feeds of relations.",
    ),
    repeatable(
        "--upto", metavar="[REL=]POSITION", help="Leave out the feed behind this position; may be repeated."
    ),
    switch(
        "--initial-load", help="The relations were empty before: snapshot reads of the feed are insertions."
    ),
    choice(
        "--engine",
        EngineKind,
        help="Which engine computes; by default the one that the warehouse file names, else DuckDB where it can.",
    ),
)
"""How an update is given, and what computes with it; `inputs.using` reads them."""

ENGINE = choice("--engine", EngineKind, help="Which engine computes; by default as for an update.")
FULL = switch("--full", help="Also check that the views explain each other: as costly as recomputing them.")
VERBOSE = switch("--verbose", help="Name every reason, of those that lie in other views not only the first.")
BUDGET = option(
    "--budget",
    metavar="SECONDS",
    type=_seconds,
    help="How long a search may take for one view; then it is undecided. By default as the warehouse file says.",
)
SEARCH = (
    option(
        "--search-seconds",
        metavar="SECONDS",
        type=_seconds,
        help="How long rows near the update are searched for what the tests leave undecided; 1 by default.",
    ),
    option(
        "--search-rows",
        metavar="N",
        type=at_least_one,
        help="How many rows near the update are; 200 by default.",
    ),
)
"""How much a search near the update may take; `inputs.using` reads them."""
CROSS_EXAMINE = (
    switch(
        "--cross-examine",
        help="Have a solver that shares no code with the decision look for databases that contradict the verdicts.",
    ),
    option("--cross-examine-budget", metavar="SECONDS", type=_seconds, help="The same, for at most so long."),
)
"""How a cross-examination is asked for; `inputs.cross_examination` reads them."""
FORMAT = choice("--format", Format, default=Format.TABLE, help="How to print the result.")
