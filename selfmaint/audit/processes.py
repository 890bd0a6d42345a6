"""The verdicts on views, and advice, found by several processes side by side: one view does not wait for another.

Each process has a search of its own, and keeps for the next view what it found out for one. The verdicts are handed
back, so that the search here goes on as if it had found them.
"""

from __future__ import annotations

import gc
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import cached_property
from multiprocessing import get_context
from typing import TypeVar

from msgspec import Struct, field

from datalog.budget import limit
from datalog.copies import replace
from selfmaint.audit.advice import Advice, Adviser
from selfmaint.audit.changes import ANYTHING, Change
from selfmaint.audit.example import Always, Outcome
from selfmaint.audit.matrix import ADVICE, SHARE, TOTAL, Audit, ViewAudit, verdicts
from selfmaint.audit.search import Search
from selfmaint.warehouse.catalog import Catalog, View
from selfmaint.warehouse.situation import Situation

T = TypeVar("T")

_Found = Mapping[tuple[str, Change], Outcome]


class Work(Struct, frozen=True, dict=True):
    """What every process is given.

    Attributes:
        known: what is known besides the views.
        budget_s: how long the search for one view may take, in seconds.
        costs: of looking up one key of a relation.
        columns: for some relations the columns that updates change; all but the key's if not given.
        sizes: rows of base relations, where known.
        found: verdicts that were found already, for each view.
    """

    catalog: Catalog
    known: Situation
    budget_s: float
    costs: Mapping[str, float] = field(default_factory=dict)
    columns: Mapping[str, frozenset[int]] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    found: Mapping[str, _Found] = field(default_factory=dict)

    @cached_property
    def search(self) -> Search:
        """A process's own search."""
        search = Search(self.catalog, self.known, budget_s=self.budget_s)
        for name, found in self.found.items():
            search.of(self.catalog.view(name)).learn(found)
        return search

    @cached_property
    def adviser(self) -> Adviser:
        """Who advises in a process."""
        return Adviser(self.search, self.sizes)

    def share(self, times: float, rounds: int) -> float:
        """How many seconds a process may take for a view, of about so many that share so many times the budget."""
        left = max(times * self.budget_s - time.thread_time(), 0)
        return left * min(SHARE / rounds, 1)


_work: list[Work] = []
"""What this process was given to do."""


def audited_side_by_side(
    search: Search,
    views: Sequence[View],
    work: Work,
    processes: int,
    progress: Callable[[str], None] = lambda _: None,
) -> Audit:
    """What `matrix.audited` gives, from several processes; each may take as long as one alone may for all.

    They import the program's main module: a script guards what it runs by `__name__`.
    """
    audits: dict[str, ViewAudit] = {}
    for view, (audit, found) in _side_by_side(_verdicts, search, views, work, processes):
        audits[view.name] = replace(audit, view=view)
        search.of(view).learn(found)
        progress(f"audited {len(audits)} of {len(views)} views")
    return Audit(search.catalog, search.known, tuple(audits[view.name] for view in views))


def advised_side_by_side(
    search: Search,
    views: Sequence[View],
    work: Work,
    processes: int,
    progress: Callable[[str], None] = lambda _: None,
    cut: Callable[[str], None] = lambda _: None,
) -> tuple[Advice, ...]:
    """What `advice.advised` gives, likewise."""
    open_ = [view for view in views if not isinstance(search.outcome(view, ANYTHING), Always)]
    known = {view.name: search.of(view).found(view) for view in search.catalog.views}
    advice: dict[str, list[Advice]] = {}
    for view, (found, is_cut) in _side_by_side(_advice, search, open_, replace(work, found=known), processes):
        advice[view.name] = found
        progress(f"advised on {len(advice)} of {len(open_)} views")
        if is_cut:
            cut(view.name)
    return tuple(one for view in open_ for one in advice[view.name])


def _side_by_side(
    job: Callable[[str, int], T], search: Search, views: Sequence[View], work: Work, processes: int
) -> Iterator[tuple[View, T]]:
    """What a job gives for each view, those of one part of the warehouse one after another, large ones first.

    If a process dies, for want of memory say, the rest is done here.
    """
    waiting = sorted(
        views, key=lambda view: (sorted(search.of(view).catalog.relations), -len(view.decided.body))
    )
    names = [view.name for view in waiting]
    rounds = [-(-(len(names) - i) // processes) for i in range(len(names))]
    begin, given = _begin_elsewhere, (work, *gc.get_threshold())
    with (
        suppress(BrokenProcessPool),
        ProcessPoolExecutor(processes, get_context("spawn"), begin, given) as pool,
    ):
        for found in pool.map(job, names, rounds):
            yield waiting.pop(0), found
    _begin(work)
    while waiting:
        found = job(waiting[0].name, len(waiting))
        yield waiting.pop(0), found


def _begin(work: Work) -> None:
    _work[:] = [work]


def _begin_elsewhere(work: Work, *between_collections: int) -> None:
    """Before a process's first job. An interrupted command has one thing to say, not one for each process."""
    gc.set_threshold(*between_collections)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    _begin(work)


def _verdicts(name: str, rounds: int) -> tuple[ViewAudit, _Found]:
    """The verdicts on a view, and all that was found of it."""
    (work,) = _work
    view = work.catalog.view(name)
    its = work.search.of(view)
    with limit(min(its.budget_s, work.share(TOTAL, rounds)), f"the audit of {view.shown}"):
        audit = verdicts(its, view, work.costs, work.columns)
    return audit, its.found(view)


def _advice(name: str, rounds: int) -> tuple[list[Advice], bool]:
    (work,) = _work
    return work.adviser.advice(work.catalog.view(name), work.share(ADVICE, rounds))
