"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from selfmaint.api.engine_settings import EngineKind
from selfmaint.cli.output import Format

WarehousePath: TypeAlias = Annotated[
    Path, typer.Argument(metavar="WAREHOUSE.toml", help="The warehouse file.", show_default=False)
]
UpdateFolder: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--update",
        metavar="DIR",
        help="The update: files RELATION.insert.SUFFIX and RELATION.delete.SUFFIX, parquet, csv or jsonl.",
    ),
]
Inserts: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--insert", metavar="REL=PATH", help="Rows inserted into a base relation; may be repeated."),
]
Deletes: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--delete", metavar="REL=PATH", help="Rows deleted from a base relation; may be repeated."),
]
Feeds: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--feed",
        metavar="[REL=]PATH",
        help="A change feed (Debezium, Delta, Iceberg, insert and delete files); may be repeated.",
    ),
]
FeedFormatName: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--feed-format", metavar="NAME", help="debezium, delta, iceberg or plain; else told from the columns."
    ),
]
After: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--after",
        metavar="[REL=]POSITION",
        help="Leave out the feed up to here: the last batch's end; may be repeated, for the feeds of relations.",
    ),
]
Upto: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--upto", metavar="[REL=]POSITION", help="Leave out the feed behind this position; may be repeated."
    ),
]
InitialLoad: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--initial-load", help="The relations were empty before: snapshot reads of the feed are insertions."
    ),
]
Effective: TypeAlias = Annotated[
    bool | None,
    typer.Option(
        "--effective/--not-effective",
        help="Inserted rows were absent before, deleted ones present; by default as the warehouse file says.",
        show_default=False,
    ),
]
Full: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--full", help="Also check that the views explain each other: as costly as recomputing them."
    ),
]
Budget: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--budget",
        metavar="SECONDS",
        min=0.001,
        help="How long a search may take for one view; then it is undecided. By default as the warehouse file says.",
        show_default=False,
    ),
]
EngineOption: TypeAlias = Annotated[
    EngineKind | None,
    typer.Option(
        "--engine",
        help="Which engine computes; by default the one that the warehouse file names, else DuckDB where it can.",
        show_default=False,
    ),
]
FormatOption: TypeAlias = Annotated[Format, typer.Option("--format", help="How to print the result.")]
