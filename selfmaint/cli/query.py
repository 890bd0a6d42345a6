"""`selfmaint query`: a SELECT over the views."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from selfmaint.api.file.file_settings import EngineKind
from selfmaint.api.file.warehouse_file import read_warehouse_file
from selfmaint.api.load import open_warehouse
from selfmaint.api.platforms.platform import engines_for, first_that_can
from selfmaint.api.query import answered, sizes
from selfmaint.api.warehouse import Warehouse
from selfmaint.cli.app import UsageError
from selfmaint.cli.inputs import without_pandas
from selfmaint.cli.options import AS_OF, ENGINE, WAREHOUSE, choice, option
from selfmaint.cli.output import Format, print_briefly, print_note, print_text, progressing, reporting
from selfmaint.errors import Code, first_line, input_error
from selfmaint.report.answers import AnswerFormat, write_csv, write_json, write_parquet, written_table

if TYPE_CHECKING:
    import pyarrow as pa

OPTIONS = (
    WAREHOUSE,
    option("sql", metavar="[SQL]", nargs="?", help="The SELECT, or a view's name for its rows."),
    option(
        "--file", metavar="FILE", help="Where the SELECT is, in place of SQL; `-` for the standard input."
    ),
    AS_OF,
    ENGINE,
    choice("--format", AnswerFormat, default=AnswerFormat.TABLE, help="How to print the rows."),
    option(
        "--output", "-o", metavar="FILE", type=Path, help="Write them to a file instead of printing them."
    ),
)


def query(given: Namespace) -> int:
    """Answers a SELECT over the views, all of them in one state, the newest or an earlier one.

    Without SQL the views are listed with their numbers of rows. Nothing but a SELECT is run, in the SQL of DuckDB (on
    Spark's engine, Spark), and it reads nothing but the views. Exit status: 0; 2 bad usage or input.
    """
    if given.format is AnswerFormat.PARQUET and given.output is None:
        raise UsageError("--format parquet is written to a file: give --output FILE")
    if given.format is AnswerFormat.TABLE and given.output is not None:
        raise UsageError("a table is for people to see: --output FILE is for --format csv, json or parquet")
    errors = Format.JSON if given.format is AnswerFormat.JSON else Format.TABLE
    with reporting(errors), progressing() as progress:
        sql = _text(given)
        file = read_warehouse_file(given.warehouse)
        print_briefly(file.catalog.warnings, errors, kept_too=False)

        def run(kind: EngineKind) -> None:
            progress("opening the views")
            alone = without_pandas() if kind is EngineKind.DUCKDB else nullcontext()
            with alone, open_warehouse(file, engine=kind) as warehouse:
                _answer(warehouse, sql, given, progress)

        first_that_can(engines_for(file, given.engine), run, partial(print_note, errors))
    return 0


def _text(given: Namespace) -> str | None:
    """The SELECT that is given; None if none is."""
    if given.file is None:
        text: str | None = given.sql
        return text
    if given.sql is not None:
        raise UsageError("a query is given as SQL or by --file, not by both")
    try:
        return sys.stdin.read() if given.file == "-" else Path(given.file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as failure:
        message = f"the query in `{given.file}` cannot be read: {first_line(failure)}"
        raise input_error(Code.MISSING_CONTENTS, message) from failure


def _answer(
    warehouse: Warehouse[Any], sql: str | None, given: Namespace, progress: Callable[[str], None]
) -> None:
    """Prints the rows, or writes them."""
    progress("reading")
    if sql is None:
        import pyarrow as pa  # noqa: PLC0415 - see `without_pandas`

        found = sizes(warehouse, given.as_of)
        listed = {"view": pa.array(found, pa.string()), "rows": pa.array(found.values(), pa.int64())}
        _put(pa.table(listed).to_reader(), given)
        return
    with answered(warehouse, sql, given.as_of) as reader:
        _put(reader, given)


def _put(reader: pa.RecordBatchReader, given: Namespace) -> None:
    if given.format is AnswerFormat.TABLE:
        print_text(*written_table(reader))
        return
    if given.output is None:
        _write(reader, given.format, sys.stdout)
        return
    # Beside its place until all rows are there: a file that is half an answer would not be told from one.
    part = given.output.with_name(f".{given.output.name}.part")
    try:
        if given.format is AnswerFormat.PARQUET:
            write_parquet(reader, part)
        else:
            with part.open("w", encoding="utf-8", newline="") as out:
                _write(reader, given.format, out)
        part.replace(given.output)
    except OSError as failure:
        if failure.errno is None:  # of the reader
            raise
        message = f"`{given.output}` cannot be written: {first_line(failure)}"
        raise input_error(Code.WRITE_FAILED, message) from failure
    finally:
        part.unlink(missing_ok=True)


def _write(reader: pa.RecordBatchReader, format_: AnswerFormat, out: IO[str]) -> None:
    if format_ is AnswerFormat.JSON:
        write_json(reader, out)
    else:
        write_csv(reader, out)
