"""What is known with an update, and `check`: whether each view's new state is determined by that alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from datalog.model import NUMBER, Predicate, Program, Version
from selfmaint.api.file.file_settings import EngineKind
from selfmaint.api.following.moved import moved
from selfmaint.api.following.over_views import of_views_below, with_views_below, with_what_is_not_run
from selfmaint.api.garbage import seldom_collected
from selfmaint.api.update import Update, require_update
from selfmaint.api.validate import require_possible_update
from selfmaint.api.warehouse import Warehouse
from selfmaint.decide.evaluation import foresee
from selfmaint.decide.knowledge import Knowledge
from selfmaint.decide.procedure import check as decide
from selfmaint.decide.unions import of_unions
from selfmaint.decide.verdict import NotSelfMaintainable, Undecided, Verdict, Verdicts, Way
from selfmaint.engine.protocol import D, Facts
from selfmaint.errors import Code, input_error
from selfmaint.warehouse.base_relations import BaseRelation
from selfmaint.warehouse.catalog import View
from selfmaint.warehouse.near import require_known
from selfmaint.warehouse.over_stored import copies_without_keys
from selfmaint.warehouse.reads import reads
from selfmaint.warehouse.situation import Situation

if TYPE_CHECKING:
    from selfmaint.cross_examine.examine import CrossExamination


def given(warehouse: Warehouse[D], update: Update[D]) -> tuple[Facts[D], Situation]:
    """See `Warehouse.given`."""
    require_update(update)
    engine, catalog = warehouse.engine, warehouse.catalog
    for its in (update.inserted, update.deleted):
        require_known(its, catalog.relations, "base relation")
    changes = {predicate: _changed(warehouse, predicate, rows) for predicate, rows in update.sides.items()}
    filled = engine.nonempty(Program(), tuple(changes), Facts(changes)) if changes else frozenset()
    small = {p: rows for p, rows in changes.items() if p in filled}
    for name in (*warehouse.present, *warehouse.absent):
        _require_key(catalog.relations[name])
    copies = {Predicate(n, Version.PRESENT): rows for n, rows in warehouse.present.items()}
    copies |= {Predicate(n, Version.ABSENT): rows for n, rows in warehouse.absent.items()}
    stored = {catalog.view(name).predicate: rows for name, rows in warehouse.contents.items()}
    stored |= {p: engine.selected(s, stored[union]) for p, union, s in catalog.selections}
    not_null = _not_null(warehouse, [*copies, *small])
    plain = [view for view in catalog.views if view.name not in catalog.unions]
    dependencies = {view.predicate: view.dependencies(catalog.relations) for view in plain}
    facts = Facts({**stored, **copies}, not_null, dependencies=dependencies).extended(small)
    return facts, Situation.of([*copies, *small], effective=update.effective)


def _require_key(relation: BaseRelation) -> None:
    if relation.is_numbered:
        message = (
            f"there is a partial copy of `{relation.name}`, which has no key: a row of it may stand twice"
        )
        raise input_error(Code.WAREHOUSE_FILE, message, "declare a key, or store a view of all its rows")


def _changed(warehouse: Warehouse[D], side: Predicate, rows: D) -> D:
    """The rows that a relation gains or loses; of a table without a key they are numbered."""
    engine = warehouse.engine
    if warehouse.catalog.relations[side.name].is_numbered:
        return engine.bags.numbered(rows, 1 if side.version is Version.INSERTED else -1, NUMBER)
    return engine.keep(rows)


def _not_null(warehouse: Warehouse[D], predicates: Iterable[Predicate]) -> dict[Predicate, frozenset[int]]:
    catalog = warehouse.catalog
    columns = {view.predicate: catalog.not_null(view) for view in catalog.apart.views}
    for predicate in predicates:
        relation = catalog.relations[predicate.name]
        columns[predicate] = frozenset(range(relation.arity)) - relation.nullable
    return columns


def decided(
    warehouse: Warehouse[D], update: Update[D], known: Knowledge[D], parts: Sequence[View], **sample: int
) -> dict[str, Verdict]:
    """The verdicts on some views and branches of unions, also on those of which only the text is known."""
    found = _with_doubts(known, decide(known, parts, **sample))
    if all(found[part.name] or part.is_decided for part in parts):
        return found
    from selfmaint.api.following.gone_rows import with_gone_rows  # noqa: PLC0415 - see above
    from selfmaint.api.following.lower_views import with_lower_views  # noqa: PLC0415 - see above
    from selfmaint.api.following.shown_rows import with_shown_rows  # noqa: PLC0415 - only where there are such texts

    found = with_gone_rows(known, with_shown_rows(known, found))
    return with_lower_views(warehouse, update, known, found)


def _with_doubts(known: Knowledge[D], found: dict[str, Verdict]) -> dict[str, Verdict]:
    """The verdicts, without a "no" by databases that may differ in nothing but the numbers of equal rows.

    An update that may not be effective says of such a row neither that it was there nor which of those it is.
    """
    catalog, situation = known.catalog, known.situation
    numbered = {
        name for name in situation.inserted | situation.deleted if catalog.relations[name].is_numbered
    }
    if situation.effective or not numbered:
        return found
    below = reads(catalog)
    names = ", ".join(f"`{name}`" for name in sorted(numbered))
    why = f"{names} has no key, and the update is not said to be effective"
    return {
        name: Undecided(name, (why,), semantics=its.semantics)
        if isinstance(its, NotSelfMaintainable) and not numbered.isdisjoint(below.get(name, numbered))
        else its
        for name, its in found.items()
    }


def _untold(known: Knowledge[D], parts: Iterable[View], way: Way | None) -> frozenset[str]:
    """The relations whose rows, were all stored, would do for a view; none if more would have to be known.

    Of tables without a key copies are not read by keys, and not followed where the update may not be effective.
    """
    found = [known.decision.untold(part, known.situation) for part in parts]
    by_keys = None in found
    names = frozenset(way.reads if way and way.by in ("keyed reads", "helpers") else ())
    if not by_keys:
        names = frozenset[str]().union(*filter(None, found))
    if not names.isdisjoint(copies_without_keys(known.catalog)):  # it would be told by these already
        return frozenset()
    keyless = any(known.catalog.relations[name].is_numbered for name in names)
    return frozenset() if keyless and (by_keys or not known.situation.effective) else names


@seldom_collected()
def check(
    warehouse: Warehouse[D],
    update: Update[D],
    views: Sequence[str] | None = None,
    *,
    full: bool = False,
    budget_s: float | None = None,
    cross_examine: bool | CrossExamination = False,
) -> Verdicts:
    """The verdict on each view; see `Warehouse.check`."""
    decision, turned = warehouse.decision_within(budget_s), moved(warehouse)
    facts, situation = warehouse.given(update)
    catalog = warehouse.catalog
    chosen = catalog.views if views is None else [warehouse.view(name) for name in views]
    parts = [part for view in with_views_below(catalog, chosen) for part in catalog.parts(view)]
    known = decision.knowledge(warehouse.engine, facts, situation)
    foresee(known, parts, maintained=False)
    require_possible_update(warehouse, facts, situation, update, full=full)
    found = decided(warehouse, update, known, parts)
    verdicts = of_views_below(catalog, of_unions(catalog, found))
    if warehouse.engine.name == EngineKind.DUCKDB:
        verdicts = with_what_is_not_run(catalog, verdicts)
    ways = dict[str, Way]()
    if turned is not None:
        verdicts = Verdicts(turned.verdicts(verdicts))
    elif not all(verdicts.values()):
        from selfmaint.api.following.ways import ways as ways_of  # noqa: PLC0415 - only where it is asked for

        ways = ways_of(warehouse, known, found, verdicts)
    hidden = catalog.helpers if views is None else ()
    wanted = {v.name: verdicts[v.name] for v in chosen if v.name not in hidden}
    ways = {name: way for name, way in ways.items() if name in wanted}
    left = [v for v in chosen if turned is None and v.name in wanted and not wanted[v.name]]
    untold = {v.name: its for v in left if (its := _untold(known, catalog.parts(v), ways.get(v.name)))}
    if not cross_examine:
        return Verdicts(wanted, None, ways, untold)
    from selfmaint.api.cross_examine import cross_examined  # noqa: PLC0415 - only where it is asked for

    result = cross_examined(warehouse, update, known, found, wanted, cross_examine)
    return Verdicts(result.less(wanted, {}), result.views, ways, untold)
