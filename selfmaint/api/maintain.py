"""`maintain`: every view's delta, with base rows read only where the verdict needs them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from selfmaint.api.check import decided
from selfmaint.api.following.either_state import require_one_state
from selfmaint.api.following.moved import Moved, moved
from selfmaint.api.following.opened import Opened, but, wholes
from selfmaint.api.following.others import Others
from selfmaint.api.following.over_views import of_views_below
from selfmaint.api.following.recompute import not_followed, require_not_strict
from selfmaint.api.garbage import seldom_collected
from selfmaint.api.maintained import Maintained, of_sources
from selfmaint.api.update import Update
from selfmaint.api.validate import require_alike, require_possible_update
from selfmaint.api.verify import Verified, require_sources, verified
from selfmaint.api.warehouse import Warehouse
from selfmaint.decide.evaluation import foresee
from selfmaint.decide.knowledge import Knowledge
from selfmaint.decide.procedure import with_enough
from selfmaint.decide.searched import determined_delta
from selfmaint.decide.unions import deltas_of_unions, of_unions
from selfmaint.decide.verdict import SelfMaintainable, Verdict, Verdicts
from selfmaint.engine.protocol import D
from selfmaint.fallback.keyed_rows import MOST_KEYS
from selfmaint.fallback.recompute import reads
from selfmaint.fallback.settle import Reader
from selfmaint.fallback.told import NAME as TOLD
from selfmaint.fallback.told import told_sources
from selfmaint.maintain import Delta, applied, as_stored, delta
from selfmaint.warehouse.catalog import Catalog, GroupedView, View

if TYPE_CHECKING:
    from selfmaint.cross_examine.examine import CrossExamination

SHOWN_WITNESSES = 3
"""How many witnesses of each failing J come with the verdicts."""


def _shown(catalog: Catalog, verdicts: Verdicts) -> Verdicts:
    """The verdicts but those on hidden views."""
    return Verdicts({n: v for n, v in verdicts.items() if n not in catalog.helpers}, verdicts.examined)


@seldom_collected()
def maintain(  # noqa: PLR0913 - each is a choice of its own
    warehouse: Warehouse[D],
    update: Update[D],
    *,
    strict: bool = False,
    verify: bool = False,
    full: bool = False,
    recompute: bool = False,
    most_keys: int = MOST_KEYS,
    budget_s: float | None = None,
    cross_examine: bool | CrossExamination = False,
    progress: Callable[[str], None] = lambda _message: None,
) -> Maintained[D]:
    """The deltas of all views; see `Warehouse.maintain`."""
    warehouse.decision_within(budget_s)
    require_not_strict(recompute=recompute, strict=strict)
    if verify:
        require_sources(warehouse.catalog, warehouse.readable)
    follow = partial(
        _maintained, update=update, strict=strict, full=full, recompute=recompute, most_keys=most_keys
    )
    found = follow(warehouse, verify=verify, cross_examine=cross_examine, progress=progress)

    def with_other_sources(other: Warehouse[D]) -> Mapping[str, Delta[D]]:
        progress("following the update as if it were not in the sources yet")
        return follow(other).every

    require_one_state(warehouse, update, found.reads, found.every, with_other_sources)
    return found


def _maintained(  # noqa: PLR0913 - see `maintain`
    warehouse: Warehouse[D],
    update: Update[D],
    *,
    strict: bool,
    full: bool,
    recompute: bool,
    most_keys: int,
    verify: bool = False,
    cross_examine: bool | CrossExamination = False,
    progress: Callable[[str], None] = lambda _message: None,
) -> Maintained[D]:
    """The same, of sources in the state that they seem to be in."""
    engine, catalog = warehouse.engine, warehouse.catalog
    turned = moved(warehouse)
    known, found = _decided(warehouse, update, progress, full=full)
    found, verdicts, examined = _examined(warehouse, update, known, found, cross_examine, progress)
    copies = told_sources(known)
    mine, warehouse = warehouse, copy.copy(warehouse)  # what is read from stored views is so in one run alone
    warehouse.readable = {**({} if strict else mine.readable), **copies}
    most_keys = 0 if strict and not copies else most_keys
    others = Others(warehouse, known.situation, most_keys, recompute=recompute, told=frozenset(copies))
    if turned is not None:
        verdicts = Verdicts(turned.verdicts(verdicts), verdicts.examined)
        others.add_moved(turned, verdicts)
    views = but(catalog, catalog.apart.views, others.views)
    open_views = [view for view in views if not isinstance(found[view.name], SelfMaintainable)]
    left = not_followed(catalog, open_views, known.situation, found, verdicts)
    others.add(wholes(catalog, left), verdicts)
    open_views = but(catalog, open_views, others.views)
    reader = Reader(known, warehouse.readable, progress, partial(require_alike, warehouse))
    opened = Opened(reader, others, found, verdicts, strict)
    opened.require_class(open_views)
    open_views = opened.settled(open_views)
    by_keys = others.followed(update, opened.verdicts, progress)
    changes = _changes(known, reader, but(catalog, views, others.views), found, open_views, examined)
    keyed = {name: one.delta for name, one in by_keys.followed.items()}
    deltas = {**deltas_of_unions(catalog, engine, known.facts, changes), **keyed}
    above, anew = others.computed(
        update, deltas, opened.verdicts, lambda view, change: new_contents(warehouse, view, change), progress
    )
    deltas.update((name, one.delta) for name, one in above.followed.items())
    deltas = {view.name: deltas.get(view.name) or anew.deltas[view.name] for view in catalog.views}
    followed = {**by_keys.followed, **above.followed}
    by = others.warehouse.catalog
    verified = _verified(mine, update, deltas, of_sources(anew.contents, by), turned) if verify else None
    reads = tuple(
        one for one in (*reader.reads, *by_keys.reads, *above.reads, *anew.reads) if one.source != TOLD
    )
    told = _shown(catalog, opened.verdicts)
    kept = {name: deltas.pop(name) for name in catalog.helpers}
    return Maintained(
        told, reads, deltas, verified, update, anew.contents, warehouse.contents, followed, turned, kept, by
    )


def _changes(
    known: Knowledge[D],
    reader: Reader[D],
    views: Sequence[View],
    found: Mapping[str, Verdict],
    settled: Sequence[View],
    examined: Mapping[str, Delta[D]],
) -> dict[str, Delta[D]]:
    """The deltas of views that are decided by what is known, or were settled by reads, with what these told.

    Those that were examined are what becomes of the views: others may be found another way.
    """
    reader.progress("computing the deltas")
    whole = {view.name for view in settled if isinstance(view, GroupedView)}
    engine, stored = known.engine, known.facts.relations
    return {
        view.name: examined.get(view.name) or determined_delta(known, verdict)
        if isinstance(verdict := found[view.name], SelfMaintainable)
        else as_stored(engine, stored[view.predicate], delta(reader.known, view, whole=view.name in whole))
        for view in views
    }


def _verified(
    warehouse: Warehouse[D],
    update: Update[D],
    deltas: Mapping[str, Delta[D]],
    recomputed: Collection[str],
    turned: Moved | None,
) -> Verified:
    """What recomputing shows, of all views but those that were recomputed from their sources."""

    def contents(view: View) -> D:
        return new_contents(warehouse, view, deltas[view.name])

    again = {*recomputed, *(turned.names if turned else ())}
    mine = {name: change for name, change in deltas.items() if name not in again}
    found = verified(warehouse, update, mine, contents)
    if turned is None:
        return found
    bases = set(warehouse.catalog.relations)
    moved_ = {v.name: deltas[v.name] for v in turned.views() if not bases & set(reads(turned.computed, v))}
    more = verified(warehouse, update, moved_, contents, turned.catalog)
    return found.and_(more)


def _decided(
    warehouse: Warehouse[D], update: Update[D], progress: Callable[[str], None], *, full: bool
) -> tuple[Knowledge[D], Verdicts]:
    """What is known, and the verdicts from that alone, on the branches of unions where they are told apart."""
    facts, situation = warehouse.given(update)
    progress("checking the update against what is known")
    known = warehouse.decision.knowledge(warehouse.engine, facts, situation)
    foresee(known, known.catalog.views, maintained=True)
    require_possible_update(warehouse, facts, situation, update, full=full)
    progress("deciding")
    known = with_enough(known, known.catalog.views)
    found = decided(warehouse, update, known, known.catalog.views, sample=SHOWN_WITNESSES)
    return known, Verdicts(found)


def _examined(
    warehouse: Warehouse[D],
    update: Update[D],
    known: Knowledge[D],
    found: Verdicts,
    budget: bool | CrossExamination,
    progress: Callable[[str], None],
) -> tuple[Verdicts, Verdicts, Mapping[str, Delta[D]]]:
    """The verdicts on branches and views that a cross-examination, if asked for, leaves, and the changes examined."""
    verdicts = of_views_below(warehouse.catalog, of_unions(warehouse.catalog, found))
    if not budget:
        return found, verdicts, {}
    from selfmaint.api.cross_examine import cross_examined  # noqa: PLC0415 - only where it is asked for

    catalog = warehouse.catalog
    progress("cross-examining the verdicts")
    result = cross_examined(warehouse, update, known, found, verdicts, budget)
    parts = Verdicts(result.less(found, {name: catalog.whole(name) for name in found}))
    return parts, Verdicts(result.less(verdicts, {}), result.views), result.deltas


def new_contents(warehouse: Warehouse[D], view: View, delta: Delta[D]) -> D:
    """The view's rows after the update; counted rows of a view that keeps duplicates, as its contents are."""
    return applied(warehouse.engine, view, warehouse.contents[view.name], delta)
