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
from datalog.model import ANY, NUMBER, Atom, ColumnType, Predicate, Program, Rule, Variable, Version
from selfmaint.api.following.keyed import Plan, followed_by_keys, plans_by_keys
from selfmaint.api.following.not_maintained import NotMaintainedError
from selfmaint.api.verify import has_difference
from selfmaint.engine.protocol import D, Facts
from selfmaint.errors import Code, InputError, SourceError
from selfmaint.fallback.recompute import reads
from selfmaint.fallback.settle import Readable
from selfmaint.maintain import Delta
from selfmaint.sources.brought_on import BroughtOnSource
from selfmaint.sources.protocol import Read

if TYPE_CHECKING:
    from selfmaint.api.update import Update
    from selfmaint.api.warehouse import Warehouse

_GIVEN, _ASKED = Predicate("given", Version.STEP), Predicate("asked", Version.STEP)
_MOST = 3
"""Of more tables than these it is not tried in which state each is: the update is refused."""
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
    untold = _untold(warehouse, update, made)
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
        except (NotMaintainedError, InputError):  # such as a value that cannot be computed in that state
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


def _untold(warehouse: Warehouse[D], update: Update[D], made: Sequence[Read]) -> tuple[str, ...]:
    """The tables without a key that were read of which each deleted row is there, or an equal one."""
    known = {name for name, one in warehouse.readable.items() if one.is_after}
    known |= {one.relation for one in made if one.has_twins is False}
    relations = warehouse.catalog.relations
    names = sorted({one.relation for one in made if relations[one.relation].is_numbered} - known)
    seen = {one.relation for one in made if one.has_twins}
    return tuple(
        name for name in names if name in update.deleted and _has_all(warehouse, update, name, name in seen)
    )


def _has_all(warehouse: Warehouse[D], update: Update[D], name: str, seen: bool) -> bool:
    """Whether a source has all deleted rows, as far as columns tell whose values are looked up; `seen`: some it has."""
    engine, relation = warehouse.engine, warehouse.catalog.relations[name]
    if not update.effective or not engine.count(update.deleted[name]):
        return seen
    places = [i for i, kind in enumerate(relation.types) if relation.columns[i] != NUMBER and _is_exact(kind)]
    if not places:
        return seen
    row = tuple(Variable(f"X{i}") for i in range(relation.arity - 1))
    keys = Atom(_ASKED, tuple(row[i] for i in places))
    given = Facts({_GIVEN: update.deleted[name]}, {}, frozenset({_GIVEN}))
    columns = [relation.columns[i] for i in places]
    asked = engine.keep(engine.evaluate(Program((Rule(keys, (Atom(_GIVEN, row),)),)), _ASKED, given, columns))
    try:
        _source_before(warehouse, update, name).read(name, columns, asked)
    except SourceError as error:
        if error.diagnostics[0].code is not Code.SOURCE_MOVED:
            raise
        return False
    return True


def _is_exact(kind: ColumnType) -> bool:
    return kind != ANY and not kind.name.has_signed_zeros


def _sets(names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    for size in range(1, len(names) + 1):
        yield from combinations(names, size)


def _before(warehouse: Warehouse[D], update: Update[D], names: Sequence[str]) -> Warehouse[D]:
    """The warehouse where some sources are right before the update, which is brought into what they give."""
    other = copy.copy(warehouse)
    assumed = {}
    for name in names:
        cost = warehouse.readable[name].cost
        assumed[name] = Readable(_source_before(warehouse, update, name), cost, is_after=True)
    other.readable = {**warehouse.readable, **assumed}
    return other


def _source_before(warehouse: Warehouse[D], update: Update[D], name: str) -> BroughtOnSource[D]:
    inserted, deleted = update.inserted.get(name), update.deleted.get(name)
    source = warehouse.readable[name].source
    return BroughtOnSource(source, warehouse.engine, inserted, deleted, effective=update.effective)


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
