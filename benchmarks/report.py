"""Tables of the measurements: as text, and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Record = dict[str, Any]
Table = tuple[str, list[str], list[list[str]]]
"""Title, column names, rows."""


def tables(results: Record) -> list[Table]:
    """Every table for which there are records."""
    refresh, lake = results.get("refresh", []), results.get("lake", [])
    found = [
        _generation(results.get("generation", [])),
        _audit(results.get("audit", [])),
        _recompute([r for r in (*refresh, *lake) if r["what"] == "recompute"]),
        _refresh(refresh),
        _reads([r for r in refresh if r["what"] == "refresh"]),
        _lake(lake),
    ]
    return [table for table in found if table[2]]


def _generation(records: Sequence[Record]) -> Table:
    rows = []
    for r in records:
        size = [r["shape"], f"{r['views']} x {r['subgoals']}", str(r["copies"])]
        if "sets" not in r:
            rows.append([*size, "", "", "", "", "", f"> {r['too_slow_s']}"])
            continue
        numbers = [f"{r['sets']:.0f}", f"{r['rules_s']:.3f}", f"{r['any_rules']:.0f}", f"{r['any_s']:.3f}"]
        rows.append([*size, *numbers, f"{r['one_s']:.3f}", f"{r['total_s']:.3f}"])
    names = [
        "shape",
        "views x subgoals",
        "copies",
        "sets J",
        "rules s",
        "programs' rules",
        "any update s",
        "one s",
        "all s",
    ]
    return "Generation, from the rules alone", names, rows


def _audit(records: Sequence[Record]) -> Table:
    verdicts = ("always", "depends", "never", "undecided")
    rows = [
        [r["warehouse"], f"{r['audit_s']:.1f}", *(str(r.get(word, 0)) for word in verdicts)] for r in records
    ]
    return ("Audit, without advice", ["warehouse", "processor s", *verdicts], rows)


def _recompute(records: Sequence[Record]) -> Table:
    rows = [
        [
            f"{r['scale']:g}",
            r["engine"],
            f"{r['rows']:,}",
            f"{r['bytes'] / 2**20:.0f}",
            f"{r['s']:.2f}",
            f"{r['cpu_s']:.2f}",
        ]
        for r in records
    ]
    return "Recomputing all views", ["scale", "engine", "rows", "MB", "s", "CPU s"], rows


def _refresh(records: Sequence[Record]) -> Table:
    whole = {(r["scale"], r["engine"]): r for r in records if r["what"] == "recompute"}
    rows = []
    for r in records:
        if r["what"] == "refresh":
            base, spark = whole[r["scale"], r["engine"]], whole[r["scale"], "spark"]
            rows.append(
                [
                    *(f"{r['scale']:g}", r["update"], f"{r['update_rows']:,}", r["engine"]),
                    *(", ".join(r["no"]) or "-", f"{r['delta_rows']:,}"),
                    *(f"{r['check_s']:.2f}", f"{r['check_cpu_s']:.2f}", f"{r['check_s'] / base['s']:.2f}"),
                    *(f"{r['maintain_s']:.2f}", f"{r['maintain_cpu_s']:.2f}"),
                    *(f"{r['maintain_s'] / base['s']:.2f}", f"{r['maintain_s'] / spark['s']:.2f}"),
                    f"{r['peak_mb']:,}",
                ]
            )
    names = ["scale", "update", "rows", "engine", "no", "delta rows", "check s", "CPU s", "of recomputing"]
    names += ["maintain s", "CPU s", "of recomputing", "of Spark's", "peak MB"]
    return "Following an update (maintain: with its check, deltas written)", names, rows


def _reads(records: Sequence[Record]) -> Table:
    rows = [
        [
            f"{r['scale']:g}",
            r["update"],
            "; ".join(
                f"{x['relation']} by {', '.join(x['by']) or 'nothing'}: {x['keys']:,}" for x in r["reads"]
            )
            or "-",
            f"{r['rows_read']:,}",
            f"{r['bytes_read']:,}",
            f"{sum(r['rows_touched'].values()):,}",
            "; ".join(f"{name} {count:,}" for name, count in r["rows_touched"].items()),
        ]
        for r in records
        if "rows_touched" in r
    ]
    names = ["scale", "update", "keys asked", "rows read", "bytes", "a delta join's rows", "by relation"]
    return "Base rows read", names, rows


def _lake(records: Sequence[Record]) -> Table:
    whole = {(r["scale"], r["engine"]): r for r in records if r["what"] == "recompute"}
    rows = []
    for r in records:
        if r["what"] == "lake":
            duckdb, spark = (whole[r["scale"], engine] for engine in ("duckdb", "spark"))
            check, maintain = ([r[f"{name}_s"], r[f"{name}_cpu_s"]] for name in ("check", "maintain"))
            ratios = (check[0] / duckdb["s"], check[1] / duckdb["cpu_s"], maintain[0] / duckdb["s"])
            ratios += (maintain[1] / duckdb["cpu_s"], maintain[0] / spark["s"], 1 - r["dry_s"] / maintain[0])
            rows.append(
                [
                    *(f"{r['scale']:g}", r["update"], *(f"{value:.2f}" for value in (*check, *maintain))),
                    *(f"{ratio:.2f}" for ratio in ratios),
                    f"{r['bytes_written'] / 1000:,.0f}",
                ]
            )
    names = ["scale", "update", "check s", "CPU s", "maintain s", "CPU s", "check of DuckDB's", "of its CPU"]
    names += ["maintain of DuckDB's", "of its CPU", "of Spark's", "of it the commit", "kB written"]
    return "To the durable commit of a lake, as commands, against recomputing", names, rows


def as_text(table: Table) -> str:
    """A table for a terminal."""
    title, names, rows = table
    widths = [max(len(cell) for cell in column) for column in zip(names, *rows, strict=True)]
    lines = [_padded(names, widths), _padded(["-" * width for width in widths], widths)]
    return "\n".join(["", title, "", *lines, *(_padded(row, widths) for row in rows)])


def _padded(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(
        cell.rjust(width) if _is_number(cell) else cell.ljust(width)
        for cell, width in zip(cells, widths, strict=True)
    ).rstrip()


def _is_number(cell: str) -> bool:
    return cell.replace(",", "").replace(".", "").isdigit()


def as_markdown(results: Record) -> str:
    """The whole report, for `docs/benchmarks.md`."""
    machine = results["machine"]
    parts = [
        "# Benchmarks",
        "",
        "Written by `benchmarks/run.py --markdown`; do not edit.",
        "",
        ", ".join(f"{key} {value}" for key, value in machine.items()) + ".",
    ]
    for title, names, rows in tables(results):
        parts += ["", f"## {title}", "", _row(names), _row(["---"] * len(names)), *map(_row, rows)]
    return "\n".join(parts) + "\n"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
