"""What came of a cross-examination, and a file that says all of it: to be read, sent, and run again.

The file is text in the language of rules: the program, and the facts in sections. Nothing else is needed to see what is
wrong; it holds rows of the views and of the update.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum, unique
from pathlib import Path

from datalog.model import Atom, Constant, Predicate, Program, Row, Rule, Version, ViewDefinition
from datalog.syntax import show
from selfmaint.cross_examine.question import Question, Rows

_GIVEN = (Version.INSERTED, Version.DELETED, Version.PRESENT, Version.ABSENT, Version.BEFORE)


@unique
class Outcome(StrEnum):
    """What a cross-examination says of a verdict."""

    AGREES = "agrees"
    """Nothing that contradicts the verdict was found; of a "no", two databases were."""
    CONTRADICTS = "contradicts"
    """A defect: a database that explains what is known contradicts the verdict."""
    NOT_EXAMINED = "not examined"
    """Nothing is said."""


@dataclass(frozen=True)
class Examined:
    """What a cross-examination says of the verdict on one view.

    Attributes:
        file: where all of it is written, of a defect.
    """

    view: str
    outcome: Outcome
    because: str
    file: Path | None = None

    def __str__(self) -> str:
        if self.outcome is Outcome.NOT_EXAMINED:
            return f"not cross-examined: {self.because}"
        where = "" if self.file is None else f"; `{self.file}` has all of it"
        return f"cross-examined: {self.because}{where}"


def document(
    question: Question, view: str, verdict: str, states: Mapping[str, Iterable[Row]], rows: Mapping[str, Rows]
) -> str:
    """The file about one view."""
    catalog = question.catalog
    definitions = tuple(v.definition for v in catalog.views if isinstance(v.definition, ViewDefinition))
    defined = {one.name for one in definitions}
    rules = tuple(rule for rule in catalog.program.rules if rule.head.predicate.name not in defined)
    program: Program = replace(catalog.program, rules=rules, views=definitions)
    effective = "effective" if question.situation.effective else "not known to be effective"
    lines = [
        f"% A verdict on the view {_one_line(view)} that something contradicts: {verdict}",
        f"% The update is {effective}. All rows are of the moment before it, but where it is said.",
        "",
        show(program),
        "",
        "% the views' rows; of a view that keeps duplicates the number of copies last",
    ]
    for name in (v.name for v in catalog.views):
        lines += _facts(Predicate(name), question.of(name, Version.STORED))
    lines += ["", "% the update, and partial copies"]
    for version in _GIVEN:
        for name in catalog.relations:
            lines += _facts(Predicate(name, version), question.of(name, version))
    for heading, database in rows.items():
        lines += ["", f"% {heading}"]
        for name, its in database.items():
            lines += _facts(Predicate(name), its)
    for heading, state in states.items():
        lines += ["", f"% {heading}", *_facts(Predicate(view), state)]
    return "\n".join(lines) + "\n"


def written(folder: Path, view: str, text: str) -> Path | None:
    """The file, under a name that is not taken; None if it cannot be written."""
    plain = re.sub(r"\W+", "-", view)[:60]
    for number in range(1, 1000):
        path = folder / f"cross-examined-{plain}{'' if number == 1 else f'-{number}'}.txt"
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            continue
        except OSError:
            return None
        return path
    return None


def _facts(predicate: Predicate, rows: Iterable[Row]) -> Iterator[str]:
    for row in sorted(rows, key=repr):
        yield show(Rule(Atom(predicate, tuple(map(Constant, row)))))


def _one_line(text: str) -> str:
    return " ".join(f"`{text}`".split())
