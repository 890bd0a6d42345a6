"""Python code in processes of its own that are forked from one where the package is loaded.

For tests that end such a process somewhere: how it starts is not what they look at, and takes longer than what they do.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from multiprocessing.context import ForkServerContext
from pathlib import Path

LOADED = (
    *(f"selfmaint.cli.{name}" for name in ("app", "follow", "maintain", "output", "store")),
    *(f"selfmaint.api.{name}" for name in ("check", "duck_platform", "follower", "load", "update_rows")),
    *(f"selfmaint.duckdb.{name}" for name in ("files", "lake", "writing")),
    *(
        "selfmaint.report",
        "sqlglot.dialects.duckdb",
        "sqlglot.dialects.spark",
        "pyarrow.dataset",
        "rich.table",
    ),
)
"""With all that these import."""
SECONDS = 300


@dataclass(frozen=True)
class Ended:
    """How a process ended.

    Attributes:
        status: its exit status; of one that was ended by a signal, less than zero by its number.
        said: what it wrote, to standard output and to standard error.
    """

    status: int
    said: str


@cache
def _context() -> ForkServerContext:
    """One server for this process: it is started with the first process, and ends with this one."""
    made = multiprocessing.get_context("forkserver")
    made.set_forkserver_preload(list(LOADED))
    return made


def forked(code: str, *arguments: object, environment: Mapping[str, str] | None = None) -> Ended:
    """Runs `python -c CODE ARGUMENTS`, and waits for its end."""
    with tempfile.TemporaryDirectory() as folder:
        said = Path(folder) / "said"
        given = (code, [str(one) for one in arguments], dict(environment or os.environ), Path.cwd(), said)
        process = _context().Process(target=_run, args=given)
        process.start()
        process.join(SECONDS)
        if process.exitcode is None:
            process.kill()
            process.join()
        status = process.exitcode
        assert status is not None
        process.close()
        return Ended(status, said.read_text(encoding="utf-8", errors="replace"))


def _run(code: str, arguments: list[str], environment: dict[str, str], folder: Path, said: Path) -> None:
    with said.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv = ["-c", *arguments]
    exec(compile(code, "<code>", "exec"), {"__name__": "__main__"})  # noqa: S102 - of the tests
