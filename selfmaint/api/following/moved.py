"""Views whose definitions say something else now than when their contents were computed: they read the date or time.

Conditions of soundness:

1. The contents are rows of the old definitions, and nothing else is concluded from them.
2. What the new definitions give is computed from their sources, or from other views' new rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from datalog.copies import replace
from selfmaint.api.following.over_views import of_views_below
from selfmaint.decide.verdict import SelfMaintainable, Undecided, Verdict
from selfmaint.engine.protocol import D
from selfmaint.errors import Code, input_error
from selfmaint.warehouse import clock
from selfmaint.warehouse.catalog import Catalog, View
from selfmaint.warehouse.reads import reads

if TYPE_CHECKING:
    from selfmaint.api.stores.store import OpenStore
    from selfmaint.api.warehouse import Warehouse


class Moved(Struct, frozen=True):
    """What the definitions say now.

    Attributes:
        computed: the same views as they are computed: from helpers, where there are some.
        names: the views of which they say something else than before, and those that read these.
        why: why nothing is concluded from the rows of such a view.
        then: what is to be known of its new rows.
    """

    catalog: Catalog
    computed: Catalog
    names: frozenset[str]
    why: str
    then: str

    def views(self) -> list[View]:
        """These views, as they are computed now."""
        return [view for view in self.computed.views if view.name in self.names]

    def verdicts(self, found: Mapping[str, Verdict]) -> dict[str, Verdict]:
        """Verdicts, where for these views nothing is concluded but from what they are computed from."""
        left = {n: Undecided(n, (self.why,)) if n in self.names else one for n, one in found.items()}
        told = of_views_below(self.computed, left, self.names)
        return {
            name: replace(one, remarks=(*one.remarks, self.then))
            if isinstance(one := told[name], SelfMaintainable) and name in self.names
            else one
            for name in found
        }


def moved(warehouse: Warehouse[D]) -> Moved | None:
    """What the definitions say now, if that is something else than at the moment that the contents are of.

    Raises:
        InputError: SM404 contents that would have to be kept in another form: see `require_one_form`.
    """
    its = warehouse.catalog.clock
    if its is None or its.says_the_same(moment := its.current()):
        return None
    catalog = its.at(moment)
    require_one_form(warehouse.catalog, catalog)
    what = "time" if its.reads_time else "date"
    why = (
        f"it reads the current {what}, and its rows are those of {its.shown(its.moment)}: "
        f"{its.shown(moment)} may have others"
    )
    then = f"it reads the current {what}: its rows will be those of {its.shown(moment)}"
    computed = replace(catalog.over_rows or catalog, loose=warehouse.catalog.loose)
    return Moved(catalog, computed, differing(warehouse.catalog, catalog), why, then)


def differing(one: Catalog, other: Catalog) -> frozenset[str]:
    """The views that two catalogs define differently, and those that read such."""
    there = {view.name: view for view in other.views}
    own = {view.name for view in one.views if view != there.get(view.name)}
    own |= {name for name, parts in one.unions.items() if parts != other.unions.get(name)}
    below = reads(other)
    return frozenset(view.name for view in one.views if own & {view.name, *below[view.name]})


def require_one_form(before: Catalog, now: Catalog) -> None:
    """Refuses definitions of which the one counts equal rows and the other does not: contents are kept in one form.

    Raises:
        InputError: SM404.
    """
    was, its = ({view.name: view.is_counted for view in one.views} for one in (before, now))
    computed = {view.name for view in (now.over_rows or now).views if view.grouping is not None}
    wrong = next((n for n in was if was[n] != its.get(n) or (was[n] and n not in computed)), None)
    if wrong is not None or was.keys() != its.keys():
        message = (
            f"{'a view' if wrong is None else f'`{wrong}`'} is of another kind now than when it was computed"
        )
        raise input_error(Code.NOT_MAINTAINED, message, "make the store anew: `selfmaint init`")


def of_contents(catalog: Catalog, store: OpenStore | None) -> Catalog:
    """The definitions at the moment that a store's contents are of.

    Raises:
        InputError: SM103 nobody knows of which moment they are.
    """
    its = catalog.clock
    if its is None:
        return catalog
    if store is None:
        message = "a view reads the current date or time, and nothing says of which its stored rows are"
        raise input_error(Code.MISSING_CONTENTS, message, 'a store does: `[store]` with `kind = "lake"`')
    moment = store.moment()
    if moment is None:
        names = ", ".join(f"`{name}`" for name in dated(catalog))
        message = f"the store has no rows of {names} yet, or does not say of which date and time they are"
        views = " ".join(f"--view {name}" for name in dated(catalog))
        raise input_error(Code.MISSING_CONTENTS, message, f"`selfmaint import WAREHOUSE.toml {views}`")
    # Another day's definitions are made only where they say something else.
    return (
        replace(catalog, clock=replace(its, moment=moment)) if its.says_the_same(moment) else its.at(moment)
    )


def dated(catalog: Catalog) -> Sequence[str]:
    """The views whose definitions change as time goes on."""
    its = catalog.clock
    if its is None:
        return ()
    later = its.at(its.moment + clock.LATER)
    found = differing(catalog, later)
    return [view.name for view in catalog.views if view.name in found]
