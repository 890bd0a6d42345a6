"""What is mutated: the repository's own examples, goldens, pages, and the programs in its tests."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.fuzz.stored import csv_texts, json_texts

ROOT = Path(__file__).resolve().parents[2]
_MOST_CHARACTERS = 6000
"""Longer texts (a recorded case, the TPC-H program) take the time of many small ones."""
_RULE = re.compile(r":-|\.decl\b|\.view\b")
_SQL = re.compile(r"\bselect\b", re.IGNORECASE)


@dataclass(frozen=True)
class Original:
    """A text to mutate, and the folder whose other files it speaks of."""

    text: str
    folder: Path | None = None


@cache
def originals(kind: str) -> tuple[Original, ...]:
    """The texts of a kind, each once, in an order that does not depend on the machine."""
    found = {
        "rules": lambda: [*_files("*.dl"), *_fenced("datalog"), *_constants(_is_rules), *_recorded()],
        "sql": lambda: [*_files("*.sql"), *_fenced("sql"), *_constants(_is_sql)],
        "warehouse": lambda: [one for one in _files("*.toml") if "catalog" not in one.text],
        "manifest": lambda: _files("manifest*.json", 40_000),
        "feed": lambda: [*_files("*feed*.jsonl"), *_feeds()],
        "cases": lambda: [Original(line) for line in _case_lines()],
        "baseline": lambda: [Original(_BASELINE)],
        "csv": lambda: [Original(text) for text in csv_texts()],
        "jsonl": lambda: [Original(text) for text in json_texts()],
        "parquet": lambda: [Original("a recipe")],
    }[kind]()
    plain = [one for one in dict.fromkeys(found) if kind == "manifest" or len(one.text) <= _MOST_CHARACTERS]
    assert plain, kind
    return tuple(sorted(plain, key=lambda one: (one.text, str(one.folder))))


def _files(pattern: str, most: int = _MOST_CHARACTERS) -> list[Original]:
    paths = [p for top in ("examples", "tests/golden") for p in (ROOT / top).rglob(pattern)]
    texts = [(path.read_text(encoding="utf-8"), path.parent) for path in sorted(paths)]
    return [Original(text, folder) for text, folder in texts if len(text) <= most]


def _fenced(language: str) -> Iterator[Original]:
    for path in sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]):
        text = path.read_text(encoding="utf-8")
        for found in re.finditer(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
            yield Original(found[1])


def _constants(is_wanted: object) -> Iterator[Original]:
    """The strings in the tests' own code that are programs."""
    assert callable(is_wanted)
    for path in sorted((ROOT / "tests").rglob("*.py")):
        if path.parent == Path(__file__).parent:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and is_wanted(node.value):
                yield Original(node.value)


def _is_rules(text: str) -> bool:
    return _RULE.search(text) is not None and text.rstrip().endswith(".")


def _is_sql(text: str) -> bool:
    return _SQL.search(text) is not None and "\n::" not in text


def _case_lines() -> Iterator[str]:
    for path in sorted((ROOT / "tests" / "conformance" / "data").glob("*.jsonl")):
        lines = path.read_text(encoding="utf-8").splitlines()
        yield from lines[:: max(1, len(lines) // 40)]


def _recorded() -> Iterator[Original]:
    for line in _case_lines():
        yield Original(json.loads(line)["program"])


def _feeds() -> Iterator[Original]:
    """A few lines of each format."""
    row, new = (
        {"id": 1, "name": "a", "day": 3, "price": "1.50", "at": 1700000000000000},
        {"id": 1, "name": "b"},
    )
    full = {**row, **new}
    source = {"table": "r", "schema": "public", "db": "d", "lsn": 7, "ts_ms": 5, "connector": "postgresql"}
    fields = [
        {"field": "id", "type": "int64", "optional": False},
        {"field": "name", "type": "string", "optional": True},
        {"field": "day", "type": "int32", "name": "io.debezium.time.Date", "optional": True},
        {"field": "price", "type": "bytes", "name": "org.apache.kafka.connect.data.Decimal",
         "parameters": {"scale": "2"}},
        {"field": "at", "type": "string", "name": "io.debezium.time.ZonedTimestamp"},
    ]  # fmt: skip
    schema = {
        "type": "struct",
        "fields": [{"field": part, "type": "struct", "fields": fields} for part in ("before", "after")],
    }
    packed = {**row, "price": "AJY=", "at": "2026-01-31T12:00:00Z"}
    changes: list[list[object]] = [
        [
            {"op": "c", "before": None, "after": row, "source": source},
            {"op": "u", "before": row, "after": full, "source": {**source, "lsn": 8}},
            {"op": "d", "before": full, "after": None, "source": {**source, "lsn": 9}},
            None,
        ],
        [{"schema": schema, "payload": {"op": "c", "before": None, "after": packed, "source": source}}],
        [{"op": "r", "before": None, "after": row, "source": {**source, "snapshot": "true"}},
         {"op": "t", "source": source}, {"op": "m", "message": {}}],
        [{**row, "_change_type": kind, "_commit_version": n, "_commit_timestamp": "2026-01-31T12:00:00.000Z"}
         for n, kind in enumerate(("insert", "update_preimage", "delete"))]
        + [{**full, "_change_type": "update_postimage", "_commit_version": 1, "_commit_timestamp": 5}],
        [{**row, "_change_type": kind, "_change_ordinal": n, "_commit_snapshot_id": 77 + n}
         for n, kind in enumerate(("INSERT", "UPDATE_BEFORE", "UPDATE_AFTER", "DELETE"))],
        [{**row, "op": op, "pos": n} for n, op in enumerate(("insert", "delete", "+I", "-U", "+U", "I"))],
    ]  # fmt: skip
    for lines in changes:
        yield Original("".join(json.dumps(line) + "\n" for line in lines))


_BASELINE = json.dumps(
    {
        "selfmaint_audit_baseline": 1,
        "verdicts": [["v", "r", "insert", "always"], ["v", "*", "any", "depends"]],
    }
)
