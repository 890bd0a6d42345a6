"""The audit of a warehouse: for each view, each base relation that it reads, and each kind of change, a verdict.

A baseline is the verdicts of an earlier audit, so that only what got worse counts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from msgspec import Struct

from datalog.budget import left, limit
from datalog.copies import replace
from selfmaint.audit.changes import ANYTHING, Change, Kind, changes_of, relations_of, updatable
from selfmaint.audit.example import Always, Outcome, Unclear, word
from selfmaint.audit.needs import Need, needs
from selfmaint.audit.search import Search
from selfmaint.errors import Code, input_error
from selfmaint.warehouse.catalog import Catalog, View
from selfmaint.warehouse.reads import is_unknown, reads
from selfmaint.warehouse.situation import Situation

TOTAL = 5
"""How many times the budget of one view the verdicts on all of them may take."""

ADVICE = 0.5
"""The same for the advice on all of them."""

SHARE = 3
"""So many times its equal share of what is left of that one view may take: what others do not need."""


class Line(Struct, frozen=True):
    """One view under changes of one base relation, or of all.

    Attributes:
        relation: the relation that changes; None for a mix on all.
        outcomes: the verdict for each kind of change: any mix alone where all relations change.
        needs: the smallest sets of relations that, if readable, make "always" of any mix; empty if none is needed or
            none was looked for.
        quiet: columns such that updates of no others are always followed, where updates of any are not.
        updated: the columns that `outcomes[Kind.UPDATE]` is about.
    """

    relation: str | None
    outcomes: Mapping[Kind, Outcome]
    needs: tuple[Need, ...] = ()
    quiet: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()

    @property
    def any(self) -> Outcome:
        """The verdict for any mix."""
        return self.outcomes[Kind.ANY]


@dataclass(frozen=True)
class ViewAudit:
    """The verdicts on one view.

    Attributes:
        lines: one for each base relation that it reads.
        anything: the line of a mix on all relations.
    """

    view: View
    lines: tuple[Line, ...]
    anything: Line

    @property
    def every_line(self) -> tuple[Line, ...]:
        """The lines, that of all relations last."""
        return (*self.lines, self.anything)

    def cells(self) -> Iterator[tuple[Line, Kind, Outcome]]:
        """Every verdict on the view."""
        for line in self.every_line:
            for kind, outcome in line.outcomes.items():
                yield line, kind, outcome


@dataclass(frozen=True)
class Audit:
    """What is known of a warehouse at definition time.

    Attributes:
        catalog: the views and base relations.
        known: what is known besides the views.
        views: the verdicts on each view.
    """

    catalog: Catalog
    known: Situation
    views: tuple[ViewAudit, ...]

    def words(self) -> dict[tuple[str, str, str], str]:
        """Each verdict in a word, by view, changing relation (`*` for all) and kind of change."""
        return {
            (audit.view.name, line.relation or "*", kind.value): word(outcome)
            for audit in self.views
            for line, kind, outcome in audit.cells()
        }


def audited(
    search: Search,
    *,
    costs: Mapping[str, float] | None = None,
    columns: Mapping[str, frozenset[int]] | None = None,
    views: Iterable[View] | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Audit:
    """The audit of a warehouse.

    `columns` are those that updates change; all but the key's if not given.
    """
    chosen = tuple(search.catalog.views if views is None else views)
    found = []
    with limit(TOTAL * search.budget_s, "the audit"):
        for number, view in enumerate(chosen, 1):
            progress(f"auditing {view.name} ({number} of {len(chosen)})")
            share = left() * min(SHARE / (len(chosen) - number + 1), 1)
            with limit(min(search.budget_s, share), f"the audit of {view.shown}"):
                found.append(verdicts(search.of(view), view, costs or {}, columns or {}))
    return Audit(search.catalog, search.known, tuple(found))


def verdicts(
    search: Search, view: View, costs: Mapping[str, float], columns: Mapping[str, frozenset[int]]
) -> ViewAudit:
    """The verdicts on one view, the widest kind of change first: much follows from it."""
    if not is_unknown(view) and reads(search.catalog)[view.name].isdisjoint(search.catalog.relations):
        return ViewAudit(view, (), Line(None, {Kind.ANY: Always()}))
    _ = search.outcome(view, ANYTHING)
    lines = [_line(search, view, relation, columns) for relation in relations_of(search.catalog, view)]
    outcome = search.widened(view, ANYTHING, (line.any for line in lines))
    lines = [
        replace(line, needs=_needs(search, view, Change(Kind.ANY, line.relation), line.any, costs))
        for line in lines
    ]
    anything = Line(None, {Kind.ANY: outcome}, _needs(search, view, ANYTHING, outcome, costs))
    return ViewAudit(view, tuple(lines), anything)


def _line(search: Search, view: View, relation: str, columns: Mapping[str, frozenset[int]]) -> Line:
    catalog = search.catalog
    chosen = columns.get(relation, updatable(catalog, relation))
    changes = [
        Change(change.kind, relation, chosen) if change.kind is Kind.UPDATE else change
        for change in changes_of(catalog, relation)
    ]
    _ = search.outcome(view, changes[-1])
    outcomes = {change.kind: search.outcome(view, change) for change in changes}
    outcomes[Kind.ANY] = search.widened(view, changes[-1], tuple(outcomes.values()))
    names = catalog.relations[relation].columns
    quiet = frozenset[int]()
    if not isinstance(outcomes[Kind.UPDATE], Always) and len(chosen) > 1:
        quiet = _quiet(search, view, relation, chosen)
    return Line(
        relation,
        outcomes,
        quiet=tuple(names[i] for i in sorted(quiet)),
        updated=tuple(names[i] for i in sorted(chosen)),
    )


def _quiet(search: Search, view: View, relation: str, columns: frozenset[int]) -> frozenset[int]:
    """Columns such that updates of no others are always followed: as many as are found by adding one to another.

    Those that nothing joins or tests come first, and together: mostly they are quiet. Where updates of all are
    undecided only those are that the view does not read.
    """
    if isinstance(search.outcome(view, Change(Kind.UPDATE, relation, columns)), Unclear):
        return frozenset(
            i for i in columns if search.leaves_unread(view, Change(Kind.UPDATE, relation, frozenset({i})))
        )

    def is_quiet(some: frozenset[int]) -> bool:
        return isinstance(search.hasty.outcome(view, Change(Kind.UPDATE, relation, some)), Always)

    idle = frozenset(i for i in columns if not search.choices.matters(relation, i))
    found = idle if idle and is_quiet(idle) else frozenset()
    for i in sorted(columns - found):
        if is_quiet(found | {i}):
            found |= {i}
    return found


def _needs(
    search: Search, view: View, change: Change, outcome: Outcome, costs: Mapping[str, float]
) -> tuple[Need, ...]:
    if isinstance(outcome, Always) or not view.is_decided:
        return ()
    return needs(search, view, change, costs)


VERSION = 1
"""Of the format. A file of another version is refused: its words may mean something else."""

RANKS = {"always": 0, "depends": 1, "undecided": 1, "never": 2}
"""How bad a verdict is. An undecided one counts as one that depends on the data."""

Key = tuple[str, str, str]
"""A view, the relation that changes (`*` for all), and the kind of change."""


class Worse(Struct, frozen=True):
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
