"""Baselines: the verdicts of an earlier audit, so that only what got worse counts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from selfmaint.errors import Code, input_error

VERSION = 1
"""Of the format. A file of another version is refused: its words may mean something else."""

RANKS = {"always": 0, "depends": 1, "undecided": 1, "never": 2}
"""How bad a verdict is. An undecided one counts as one that depends on the data."""

Key = tuple[str, str, str]
"""A view, the relation that changes (`*` for all), and the kind of change."""


@dataclass(frozen=True, slots=True)
class Worse:
    """A verdict that is worse than in the baseline, or that the baseline does not have.

    Attributes:
        relation: the relation that changes, `*` for all.
        kind: the kind of change.
        before: the baseline's word; None if it has none.
    """

    view: str
    relation: str
    kind: str
    before: str | None
    now: str


def worse(words: Mapping[Key, str], before: Mapping[Key, str], least: str) -> tuple[Worse, ...]:
    """What reaches a rank and is worse than before.

    `before` is empty where there is no baseline; `least` is `depends` or `never`.
    """
    return tuple(
        Worse(*key, before.get(key), word)
        for key, word in words.items()
        if RANKS[word] >= RANKS[least] and RANKS[word] > RANKS.get(before.get(key, "always"), 0)
    )


def baseline_text(words: Mapping[Key, str]) -> str:
    """The baseline of some verdicts, one a line, sorted: made for looking at its changes in version control."""
    lines = [json.dumps([*key, word], ensure_ascii=False) for key, word in sorted(words.items())]
    body = ",\n    ".join(lines)
    return f'{{\n  "selfmaint_audit_baseline": {VERSION},\n  "verdicts": [\n    {body}\n  ]\n}}\n'


def read_baseline(path: Path) -> dict[Key, str]:
    """The verdicts of a baseline.

    Raises:
        InputError: SM103 no such file; SM701 a file that is no baseline, or of another version.
    """
    if not path.is_file():
        hint = "write one with `--write-baseline`"
        raise input_error(Code.MISSING_CONTENTS, f"there is no baseline `{path}`", hint)
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        version = found["selfmaint_audit_baseline"]
        entries = found["verdicts"] if version == VERSION else []
        verdicts = {(str(v), str(r), str(k)): str(word) for v, r, k, word in entries}
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise input_error(
            Code.BASELINE, f"`{path}` is no baseline of an audit", "write it anew with `--write-baseline`"
        ) from error
    if version != VERSION or any(word not in RANKS for word in verdicts.values()):
        raise input_error(
            Code.BASELINE,
            f"the baseline `{path}` is of version {version!r}; this one reads version {VERSION}",
            "audit once without it, look at the verdicts, and write it anew with `--write-baseline`",
        )
    return verdicts
