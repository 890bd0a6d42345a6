"""The benchmarks: prints tables, and writes JSON.

    python benchmarks/run.py [--quick] [--only generation audit refresh lake] [--scale 0.1 1] [--updates NAME ...]
                             [--json FILE] [--markdown FILE]

- `generation`: how long it takes to generate tests and queries, by the number of subgoals and of views;
- `audit`: how long the verdicts at definition time take, of warehouses of many views, or large ones;
- `refresh`: `check` and `maintain` against recomputing the same views, by DuckDB and by Spark, and the base rows read
  against those that a delta join would touch; one process for each scale factor;
- `lake`: the same as whole commands, from an update's files to the durable commit of a lake.

Times are medians. TPC-H data and views are made once, in the work directory, and used again.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(ROOT), str(HERE)]

from report import as_markdown, as_text, tables  # noqa: E402 - found beside this file

PARTS = ("generation", "audit", "refresh", "lake")
Record = dict[str, Any]


def main(argv: list[str] | None = None) -> int:
    """Runs the benchmarks that are asked for."""
    arguments = _parser().parse_args(argv)
    results: Record = {"machine": machine()}
    if "generation" in arguments.only:
        results["generation"] = _generation(quick=arguments.quick)
    if "audit" in arguments.only:
        results["audit"] = _audit(quick=arguments.quick)
    scales = arguments.scale or ([0.01] if arguments.quick else [0.1, 1.0])
    for part in ("refresh", "lake"):
        if part in arguments.only:
            results[part] = [r for scale in scales for r in _following(f"{part}.py", arguments, scale)]
    for table in tables(results):
        print(as_text(table))
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    print(f"\nwritten: {arguments.json}")
    if arguments.markdown:
        arguments.markdown.write_text(as_markdown(results), encoding="utf-8")
        print(f"written: {arguments.markdown}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="benchmarks", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few and small measurements, each once")
    parser.add_argument(
        "--only", nargs="+", choices=PARTS, default=PARTS, help="the parts to run (default: all)"
    )
    parser.add_argument("--scale", nargs="+", type=float, help="TPC-H scale factors (default: 0.1 1)")
    parser.add_argument("--updates", nargs="+", help="the updates to follow, by name (default: all)")
    parser.add_argument("--repetitions", type=int, help="runs of each measurement (default: 3)")
    parser.add_argument(
        "--work", type=Path, default=ROOT / "build" / "bench", help="where data and views are made"
    )
    parser.add_argument(
        "--json", type=Path, default=ROOT / "build" / "bench" / "results.json", help="the results"
    )
    parser.add_argument("--markdown", type=Path, help="also as Markdown, such as docs/benchmarks.md")
    return parser


def _generation(*, quick: bool) -> list[Record]:
    import generation  # noqa: PLC0415 - only where it is asked for

    found: list[Record] = generation.run(quick=quick, show=_progress)
    return found


def _audit(*, quick: bool) -> list[Record]:
    import audits  # noqa: PLC0415 - only where it is asked for

    found: list[Record] = audits.run(quick=quick, show=_progress)
    return found


def _following(script: str, arguments: argparse.Namespace, scale: float) -> list[Record]:
    """One scale factor, in processes of its own: what makes the data does not count for memory."""
    work = ["--work", str(arguments.work), "--scale", str(scale)]
    out = arguments.work / f"{Path(script).stem}-sf{scale:g}.json"
    repetitions = arguments.repetitions or (1 if arguments.quick else 3)
    _python("tpch.py", *work)
    options = ["--json", str(out), "--repetitions", str(repetitions)]
    updates = arguments.updates or (["10 orders"] if arguments.quick else [])
    _python(script, *work, *options, *(["--updates", *updates] if updates else []))
    found: list[Record] = json.loads(out.read_text(encoding="utf-8"))
    return found


def _python(script: str, *arguments: str) -> None:
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    command = [sys.executable, str(HERE / script), *arguments]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": path})


def _progress(record: Record) -> None:
    print(json.dumps(record), file=sys.stderr, flush=True)


def machine() -> Record:
    """What was measured on, and with."""
    from importlib.metadata import version  # noqa: PLC0415

    return {
        "date": datetime.now(UTC).date().isoformat(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "python": platform.python_version(),
        "duckdb": version("duckdb"),
        "pyspark": version("pyspark"),
        "load_before": round(os.getloadavg()[0], 1),
    }


if __name__ == "__main__":
    sys.exit(main())
