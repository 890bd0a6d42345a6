"""The verdicts on views, found by several processes side by side: those on one view do not wait for another's.

Each process has a search of its own, and keeps for the next view what it found out for one. What it finds is handed
back, so that the search here goes on as if it had found it.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context

from datalog.budget import limit
from selfmaint.audit.changes import Change
from selfmaint.audit.matrix import SHARE, TOTAL, Audit, ViewAudit, verdicts
from selfmaint.audit.outcome import Outcome
from selfmaint.audit.search import Search
from selfmaint.warehouse.catalog import View


@dataclass(frozen=True)
class _Work:
    """What every process is given.

    Attributes:
        search: the warehouse's.
        costs, columns: as `audited` takes them.
    """

    search: Search
    costs: Mapping[str, float]
    columns: Mapping[str, frozenset[int]]


_Found = Mapping[tuple[str, Change], Outcome]

_work: list[_Work] = []
"""In a process of its own: what it was given."""


def audited_side_by_side(
    search: Search,
    views: Sequence[View],
    processes: int,
    *,
    costs: Mapping[str, float] | None = None,
    columns: Mapping[str, frozenset[int]] | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Audit:
    """What `matrix.audited` gives, from several processes; each may take as long as all of it may in one.

    Args:
        search: finds the verdicts; afterwards it has found these.
        views: the views to audit.
        processes: how many. They import the program's main module: a script guards what it runs by `__name__`.
        costs: of looking up one key of a relation.
        columns: for some relations the columns that updates change; all but the key's if not given.
        progress: told how far it is.
    """
    given = Search(search.catalog, search.known, search.quick, budget_s=search.budget_s)
    work = _Work(given, costs or {}, columns or {})
    together = sorted(
        views, key=lambda view: sorted(search.of(view).catalog.relations)
    )  # parts share nothing
    names = [view.name for view in together]
    rounds = [-(-(len(names) - i) // processes) for i in range(len(names))]
    audits: dict[str, ViewAudit] = {}
    with ProcessPoolExecutor(processes, get_context("spawn"), _begin, (work,)) as pool:
        for view, (audit, found) in zip(together, pool.map(_verdicts, names, rounds), strict=True):
            audits[view.name] = replace(audit, view=view)
            search.of(view).learn(found)
            progress(f"audited {len(audits)} of {len(views)} views")
    return Audit(search.catalog, search.known, tuple(audits[view.name] for view in views))


def _begin(work: _Work) -> None:
    signal.signal(
        signal.SIGINT, signal.SIG_DFL
    )  # an interrupted command has one thing to say, not one a process
    _work.append(work)


def _verdicts(name: str, rounds: int) -> tuple[ViewAudit, _Found]:
    """The verdicts on a view, and all that was found of it.

    Args:
        name: the view's.
        rounds: about so many views this process still looks at, with this one.
    """
    (work,) = _work
    view = work.search.catalog.view(name)
    its = work.search.of(view)
    left = max(TOTAL * its.budget_s - time.thread_time(), 0)
    with limit(min(its.budget_s, left * min(SHARE / rounds, 1)), f"the audit of `{name}`"):
        audit = verdicts(its, view, work.costs, work.columns)
    return audit, its.found(view)
