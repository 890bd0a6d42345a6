"""`--verify`: recompute every view from its sources after the update, and compare both ways.

Maintained sums of doubles have to equal recomputed ones but for the last digits. Two values are near if they differ by
at most `TOLERANCE` of the larger one, or of 1. Everything else of a row must be equal.
"""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from msgspec import Struct

from datalog.model import (
    AllOf,
    AnyOf,
    Arithmetic,
    Atom,
    Call,
    Compared,
    Condition,
    Constant,
    IsNull,
    OpaqueView,
    Predicate,
    Program,
    Row,
    Rule,
    Semantics,
    Variable,
    Version,
    ViewDefinition,
    block,
)
from selfmaint.api.following.over_views import gives_one_result, has_sums, told_by_others, what_is_below
from selfmaint.api.following.recompute import recomputing_of
from selfmaint.api.platforms.platform import platform_of
from selfmaint.api.update import Update
from selfmaint.api.warehouse import Warehouse
from selfmaint.engine.protocol import D, Engine, Facts
from selfmaint.errors import Code, InputError, input_error
from selfmaint.fallback.recompute import reads as direct
from selfmaint.fallback.told import told_sources
from selfmaint.maintain import Delta, applied
from selfmaint.sources.protocol import Read
from selfmaint.warehouse.catalog import Catalog, GroupedView, View
from selfmaint.warehouse.reads import reads

SHOWN_ROWS = 5
"""How many differing rows are fetched."""


@dataclass(frozen=True)
class Difference:
    """A view whose maintained contents differ from the recomputed ones.

    Attributes:
        missing: some rows that recomputing gives and maintenance does not; counted rows of a view that keeps
            duplicates.
        extra: some rows that maintenance gives and recomputing does not.
    """

    view: str
    missing: tuple[Row, ...]
    extra: tuple[Row, ...]


class Verified(Struct, frozen=True):
    """What recomputing views shows.

    Attributes:
        differences: the views whose new contents are not what their sources give.
        reads: what was read of base relations for that.
        several: the views that may have several results, as by ties of an order, of which recomputing gave another one;
            and those over such.
    """

    differences: tuple[Difference, ...]
    reads: tuple[Read, ...]
    several: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether no view differs."""
        return not self.differences

    def and_(self, more: Verified) -> Verified:
        """With what recomputing other views shows."""
        return Verified(
            (*self.differences, *more.differences), (*self.reads, *more.reads), (*self.several, *more.several)
        )


def verified(
    warehouse: Warehouse[D],
    update: Update[D],
    deltas: Mapping[str, Delta[D]],
    contents: Callable[[View], D],
    now: Catalog | None = None,
) -> Verified:
    """Recomputes some views from their sources, read whole, and compares both ways.

    Sums of doubles are compared with a tolerance, everything else exactly.

    `now` has the definitions where these are others than those that the contents are of.

    Raises:
        SourceError: a source that does not answer, or has a part of the update (SM402).
        InputError: SM404 a query that cannot be run.
    """
    engine, catalog = warehouse.engine, warehouse.catalog
    views = {name: (now or catalog).view(name) for name in deltas}
    loose = [name for name, view in views.items() if _may_have_several(now or catalog, view)]
    # Views over those that have several results are held against the results that these have.
    recomputing = recomputing_of(warehouse, update, contents, now=now, is_doubted=True)
    truth = recomputing.recomputed([view for name, view in views.items() if name not in loose])
    other = recomputing_of(warehouse, update, contents, now=now, is_doubted=True).with_(recomputing.bases)
    more = other.recomputed([views[name] for name in loose])
    found, several = list[Difference](), list[str]()
    for name, right in {**truth.contents, **more.contents}.items():
        view = catalog.view(name)
        new = engine.keep(applied(engine, view, warehouse.contents[name], deltas[name]))
        its = _difference(warehouse, view, right, new)
        if its is not None and name in loose and _may_be_other_result(warehouse, view, right, new):
            several.append(name)
        elif its is not None:
            found.append(its)
    return Verified(tuple(found), (*truth.reads, *more.reads), _with_above(now or catalog, views, several))


def _may_be_other_result(warehouse: Warehouse[D], view: View, right: D, rows: D) -> bool:
    """Whether rows differ in nothing but what ties of an order decide, as far as the view's query tells."""
    from datalog.sql.affected import UnknownShapeError, columns_by_order  # noqa: PLC0415 - where there are texts
    from selfmaint.api.following.keyed import query_of_stored  # noqa: PLC0415 - see above

    engine = warehouse.engine
    try:
        by_order = columns_by_order(query_of_stored(warehouse, view))
    except UnknownShapeError:
        by_order = None
    if by_order is None:  # other rows may come
        return True
    given, names = Predicate(view.name), engine.columns(rows)
    row = tuple(Variable(f"X{i}") for i in range(len(names)))
    kept = [i for i in range(len(names)) if i not in by_order]
    made = block("firm", 0, [Atom(given, row)], [Constant(0), *(row[i] for i in kept)])
    columns = ("one", *(names[i] for i in kept))
    firm = ViewDefinition("firm", columns, (made,), Semantics.BAG)
    sides = [engine.keep(engine.selected(firm, one)) for one in (right, rows)]
    near = frozenset(kept.index(i) + 1 for i in _doubles(warehouse, view) if i in kept)
    return not any(map(engine.count, beyond_tolerance(engine, near, *engine.beyond(sides[0], sides[1]))))


def _with_above(catalog: Catalog, views: Mapping[str, View], names: Sequence[str]) -> tuple[str, ...]:
    """Some views with those that read them."""
    found = list(names)
    while more := [
        n for n, v in views.items() if n not in found and not {*direct(catalog, v)}.isdisjoint(found)
    ]:
        found += more
    return tuple(found)


def _may_have_several(catalog: Catalog, view: View) -> bool:
    """Whether a view's query may have several results."""
    if not isinstance(view.definition, OpaqueView) or catalog.program.rules_for(view.predicate):
        return False
    return not gives_one_result(catalog, view.definition.query)


def has_difference(warehouse: Warehouse[D], name: str, one: D, other: D) -> bool:
    """Whether some rows of a view are others than some, beyond what sums of doubles may differ by."""
    return any(map(warehouse.engine.count, _beyond(warehouse, warehouse.catalog.view(name), one, other)))


def _beyond(warehouse: Warehouse[D], view: View, right: D, rows: D) -> tuple[D, D]:
    engine = warehouse.engine
    near = near_columns(warehouse.catalog, view) | _doubles(warehouse, view)
    return beyond_tolerance(engine, near, *engine.beyond(right, rows))


def _difference(warehouse: Warehouse[D], view: View, right: D, rows: D) -> Difference | None:
    engine = warehouse.engine
    missing, extra = _beyond(warehouse, view, right, rows)
    less, more = (tuple(engine.sample(rows, SHOWN_ROWS)) for rows in (missing, extra))
    return Difference(view.name, less, more) if less or more else None


def contradictions(warehouse: Warehouse[D]) -> tuple[list[Difference], frozenset[str]]:
    """The views whose rows are not what other stored views tell; and the views all of whose rows these tell.

    Raises:
        InputError: SM103 or SM104, stored contents that turn out to be unreadable.
    """
    now, names = told_by_others(warehouse.catalog)
    nothing: Update[D] = Update()
    known = warehouse.decision.knowledge(warehouse.engine, *warehouse.given(nothing))
    here = copy.copy(warehouse)
    here.readable = told_sources(known)
    recomputing = recomputing_of(here, nothing, lambda view: warehouse.contents[view.name], now=now)
    found, compared = list[Difference](), set[str]()
    for name in names:
        try:
            right = recomputing.recomputed([now.view(name)]).contents[name]
        except InputError as error:
            if {one.code for one in error.diagnostics} <= {Code.NOT_MAINTAINED, Code.ENGINE_DIFFERS}:
                continue  # a query that this engine does not run
            raise
        compared.add(name)
        its = _difference(warehouse, warehouse.catalog.view(name), right, warehouse.contents[name])
        found += [] if its is None else [its]
    return found, frozenset(compared)


def _doubles(warehouse: Warehouse[D], view: View) -> frozenset[int]:
    """Columns that may hold sums of doubles, of a view over views, or one that is not decided and adds up."""
    if view.is_decided or not (has_sums(view) or what_is_below(warehouse.catalog, view)):
        return frozenset()
    if warehouse.engine.name not in ("duckdb", "spark"):  # of rows at hand their values alone tell
        return frozenset()
    types = platform_of(warehouse.engine).types(warehouse.contents[view.name])
    return frozenset(i for i, kind in enumerate(types) if kind.name.is_floating)


def require_sources(catalog: Catalog, given: Iterable[str]) -> None:
    """Refuses to verify unless every base relation that a view reads has a source; nothing is read for that.

    Raises:
        InputError: SM103 with all that have none.
    """
    used = set[str]().union(*reads(catalog).values()) & catalog.relations.keys()
    missing = sorted(used - set(given))
    if missing:
        have = "has" if len(missing) == 1 else "have"
        raise input_error(
            Code.MISSING_CONTENTS,
            f"cannot verify: {', '.join(f'`{name}`' for name in missing)} {have} no source",
            hint="give every base relation a source in the warehouse file",
        )


TOLERANCE = 1e-9
"""Of the larger value, or of 1."""
_MOMENT = re.compile(r"\b(std|stddev|stddev_samp|stddev_pop|variance|var_samp|var_pop)\s*\(", re.IGNORECASE)

_MISSING, _EXTRA, _PAIRS = (Predicate(name, Version.STEP) for name in ("missing", "extra", "pairs"))


def near_columns(catalog: Catalog, view: View) -> frozenset[int]:
    """The columns of a view whose last digits are not to be compared: sums of doubles, variances and their roots."""
    inexact = view.grouped.inexact if isinstance(view, GroupedView) else frozenset[int]()
    if view.name in catalog.near:
        return inexact | catalog.near[view.name]
    text = view.definition.text if view.definition is not None else None
    if not text or not _MOMENT.search(text):
        return inexact
    from datalog.sql.views.moments import columns_of_moments  # noqa: PLC0415 - where there are some

    return inexact | columns_of_moments(text)


def beyond_tolerance(engine: Engine[D], near: frozenset[int], missing: D, extra: D) -> tuple[D, D]:
    """The rows that recomputing gives and maintenance does not, and the other way round, without near ones."""
    if not near:
        return missing, extra
    arity = len(engine.columns(missing))
    left = tuple(Variable(f"A{i}") for i in range(arity))
    right = tuple(Variable(f"B{i}") if i in near else v for i, v in enumerate(left))
    both = tuple(dict.fromkeys((*left, *right)))
    rule = Rule(Atom(_PAIRS, both), (Atom(_MISSING, left), Atom(_EXTRA, right)))
    given = Facts({_MISSING: missing, _EXTRA: extra}, {}, frozenset({_MISSING, _EXTRA}))
    names = [f"c{i}" for i in range(len(both))]
    pairs = engine.keep(engine.evaluate(Program((rule,)), _PAIRS, given, names))
    facts = Facts({_PAIRS: pairs}, {}, frozenset({_PAIRS}))
    tests = [_near(left[c], right[c]) for c in sorted(near)]
    columns = tuple(f"c{i}" for i in range(arity))
    close = [
        engine.evaluate_view(
            ViewDefinition("near", columns, (block("near", 0, [Atom(_PAIRS, both)], row, filters=tests),)),
            facts,
            {},
        )
        for row in (left, right)
    ]
    return engine.keep(engine.minus(missing, close[0])), engine.keep(engine.minus(extra, close[1]))


def _near(left: Variable, right: Variable) -> Condition:
    """Whether two values are equal, or finite ones that hardly differ: nothing is near an infinity, or NaN."""
    distance = Call("abs", (Arithmetic("-", left, right),))
    size = Call("greatest", (Call("abs", (left,)), Call("abs", (right,)), Constant(1.0)))
    close = Compared("<=", distance, Arithmetic("*", Constant(TOLERANCE), size))
    is_finite = Compared("<", size, Constant(math.inf))
    both_null = AllOf((IsNull(left), IsNull(right)))
    return AnyOf((both_null, Compared("=", left, right), AllOf((is_finite, close))))
