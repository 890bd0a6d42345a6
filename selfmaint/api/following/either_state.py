"""Tables without a key of which a deletion is not to be seen: their sources are right after the update, or before it.

    source:  log  (1, x)  (1, z)        update: (1, z) deleted        view: SELECT room, max(tag) FROM log GROUP BY room

Either (1, z) stood twice, and its twin stays; or the source has not got the update yet. Views are followed both ways.

Condition of soundness: each set of such tables is taken to be before the update, the others after it. One that
contradicts what is stored, or what is read, is not the state of the sources; of the others each gives all views the
same change, or the update is refused.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from datalog.diagnostics import Diagnostic
from selfmaint.api.following.keyed import Plan, followed_by_keys, plans_by_keys
from selfmaint.api.following.not_maintained import NotMaintainedError
from selfmaint.api.verify import has_difference
from selfmaint.engine.protocol import D
from selfmaint.errors import Code, SourceError
from selfmaint.fallback.recompute import reads
from selfmaint.fallback.settle import Readable
from selfmaint.maintain import Delta
from selfmaint.sources.brought_on import BroughtOnSource
from selfmaint.sources.protocol import Read

if TYPE_CHECKING:
    from selfmaint.api.update import Update
    from selfmaint.api.warehouse import Warehouse

_MOST = 3
"""Of more tables than these not all sets are tried."""
_OTHER_STATE = frozenset({Code.SOURCE_MOVED, Code.BREAKS_CONSTRAINT})
"""What tells that sources are not in the state that they are taken to be in."""


def require_one_state(
    warehouse: Warehouse[D],
    update: Update[D],
    made: Sequence[Read],
    changes: Mapping[str, Delta[D]],
    follow: Callable[[Warehouse[D]], Mapping[str, Delta[D]]],
) -> None:
    """Refuses changes of views that are others if the sources are right before the update, where nothing tells.

    Args:
        warehouse: the views before the update.
        update: what changes.
        made: what was read for the changes.
        changes: those of the views, where each source is right after the update.
        follow: gives the changes with other sources.

    Raises:
        SourceError: SM402.
    """
    untold = _untold(warehouse, made)
    if len(untold) > _MOST:
        raise _not_told(untold, ())
    for names in _sets(untold):
        before = _before(warehouse, update, names)
        try:
            others = follow(before)
        except SourceError as error:
            if error.diagnostics[0].code not in _OTHER_STATE:
                raise
            continue
        except NotMaintainedError:
            raise _not_told(names, ()) from None
        views = [
            name
            for name, one in changes.items()
            if has_difference(warehouse, name, one.gained, others[name].gained)
            or has_difference(warehouse, name, one.lost, others[name].lost)
        ]
        if views and not _contradicts_decided(before, update, names):
            raise _not_told(names, views)


def _contradicts_decided(before: Warehouse[D], update: Update[D], names: Sequence[str]) -> bool:
    """Whether stored rows of a view that needs no base rows are others than sources in that state would give."""
    catalog, situation = before.catalog, before.given(update)[1]
    views = [view for view in catalog.views if not {*reads(catalog, view)}.isdisjoint(names)]
    plans, _ = plans_by_keys(before, views, situation)
    keyed = {name: Plan(None, one.keyed, None, one.others) for name, one in plans.items() if one.keyed}
    try:
        followed_by_keys(before, update, keyed, lambda _message: None)
    except SourceError as error:
        if error.diagnostics[0].code not in _OTHER_STATE:
            raise
        return True
    return False


def _untold(warehouse: Warehouse[D], made: Sequence[Read]) -> tuple[str, ...]:
    """The tables of which each deleted row that was asked for has an equal one."""
    known = {name for name, one in warehouse.readable.items() if one.is_after}
    told = known | {one.relation for one in made if one.has_twins is False}
    return tuple(sorted({one.relation for one in made if one.has_twins} - told))


def _sets(names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    for size in range(1, len(names) + 1):
        yield from combinations(names, size)


def _before(warehouse: Warehouse[D], update: Update[D], names: Sequence[str]) -> Warehouse[D]:
    """The warehouse where some sources are right before the update, which is brought into what they give."""
    other = copy.copy(warehouse)
    assumed = {}
    for name in names:
        inserted, deleted = update.inserted.get(name), update.deleted.get(name)
        source = BroughtOnSource(warehouse.readable[name].source, warehouse.engine, inserted, deleted)
        assumed[name] = Readable(source, warehouse.readable[name].cost, is_after=True, is_assumed=True)
    other.readable = {**warehouse.readable, **assumed}
    return other


def _not_told(names: Sequence[str], views: Sequence[str]) -> SourceError:
    named = ", ".join(f"`{name}`" for name in names)
    differing = f" ({', '.join(f'`{view}`' for view in views)})" if views else ""
    message = (
        f"it is not to be told whether the source of {named} is right after the update: "
        "each row that it deletes is there, or an equal one"
    )
    note = f"without a key it may be right before the update as well, and views would change otherwise{differing}"
    hint = (
        "read it right after the update; if it is sure to be, say `after_update = true` in its section of the "
        "warehouse file, or declare a key"
    )
    return SourceError([Diagnostic(code=Code.SOURCE_MOVED, message=message, note=note, hint=hint)])
