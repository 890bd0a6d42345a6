"""`--verify`: recompute every view from its sources after the update, and compare both ways."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from datalog.model import (
    ANY,
    Atom,
    Constant,
    OpaqueView,
    Predicate,
    Program,
    Row,
    Rule,
    Version,
    ViewDefinition,
)
from selfmaint.api.tolerance import beyond_tolerance, near_columns
from selfmaint.api.warehouse import Warehouse
from selfmaint.engine.protocol import D, Engine, Facts
from selfmaint.errors import Code, input_error
from selfmaint.fallback.source_rows import rows_of
from selfmaint.maintain import Delta, applied
from selfmaint.warehouse.catalog import Catalog, GroupedView, Outside, View, reads
from selfmaint.warehouse.definitions import unfolded_rules

SHOWN_ROWS = 5
"""How many differing rows are fetched."""


@dataclass(frozen=True)
class Difference:
    """A view whose maintained contents differ from the recomputed ones.

    Attributes:
        view: the view.
        missing: some rows that recomputing gives and maintenance does not; counted rows of a view that keeps
            duplicates.
        extra: some rows that maintenance gives and recomputing does not.
    """

    view: str
    missing: tuple[Row, ...]
    extra: tuple[Row, ...]


def differences(
    warehouse: Warehouse[D], deltas: Mapping[str, Delta[D]], recomputed: Collection[str] = ()
) -> tuple[Difference, ...]:
    """The views whose new contents are not what their sources give. Reads every base relation whole.

    Sums of doubles are compared with a tolerance (`tolerance.py`), everything else exactly.

    Args:
        warehouse: the warehouse.
        deltas: each view's change.
        recomputed: views whose new contents were recomputed, and need no comparison.

    Raises:
        InputError: SM103 a base relation without a source.
        SourceError: a source that does not answer.
    """
    engine = warehouse.engine
    base = _base_facts(warehouse)
    found = list[Difference]()
    for view in _after_what_they_read(warehouse.catalog):
        new = engine.keep(applied(engine, view, warehouse.contents[view.name], deltas[view.name]))
        if view.name not in recomputed:
            truth = engine.keep(_recomputed(warehouse, base, view))
            found += _difference(engine, view, near_columns(warehouse.catalog, view), new, truth)
        # What reads this view as it is stored is computed from these rows.
        base = base.extended({view.predicate: new}, small=False)
    return tuple(found)


def _difference(
    engine: Engine[D], view: View, near: frozenset[int], new: D, truth: D
) -> Iterator[Difference]:
    """How a view's new contents differ from the truth, if they do."""
    less, more = beyond_tolerance(engine, near, engine.minus(truth, new), engine.minus(new, truth))
    missing, extra = (engine.sample(rows, SHOWN_ROWS) for rows in (less, more))
    if missing or extra:
        yield Difference(view.name, tuple(missing), tuple(extra))


def _after_what_they_read(catalog: Catalog) -> list[View]:
    """The views, each behind those that it reads."""
    below = reads(catalog)
    return sorted(catalog.views, key=lambda view: len(below[view.name] - catalog.relations.keys()))


def require_sources(catalog: Catalog, given: Iterable[str]) -> None:
    """Refuses to verify unless every base relation that a view reads has a source; nothing is read for that.

    Args:
        catalog: the warehouse's schema.
        given: the base relations that have a source.

    Raises:
        InputError: SM103 with all that have none.
    """
    missing = sorted(_used(catalog) - set(given))
    if missing:
        have = "has" if len(missing) == 1 else "have"
        raise input_error(
            Code.MISSING_CONTENTS,
            f"cannot verify: {', '.join(f'`{name}`' for name in missing)} {have} no source",
            hint="give every base relation a source in the warehouse file",
        )


def _used(catalog: Catalog) -> set[str]:
    return set[str]().union(*reads(catalog).values()) & catalog.relations.keys()


def _base_facts(warehouse: Warehouse[D]) -> Facts[D]:
    require_sources(warehouse.catalog, warehouse.readable)
    used = _used(warehouse.catalog)
    relations = {}
    not_null = {}
    for name in sorted(used):
        relation = warehouse.catalog.relations[name]
        rows, _ = rows_of(warehouse.engine, relation, warehouse.readable[name].source, [], None)
        relations[Predicate(name)] = rows
        not_null[Predicate(name)] = frozenset(range(relation.arity)) - relation.nullable
    return Facts(relations, not_null)


def _recomputed(warehouse: Warehouse[D], base: Facts[D], view: View) -> D:
    if view.always_empty:
        return warehouse.engine.empty(warehouse.contents[view.name])
    if view.always_one:
        row = tuple(term.value for term in view.head.terms if isinstance(term, Constant))
        one = warehouse.engine.load([row], view.columns, [ANY] * len(row))
        return warehouse.engine.like(one, warehouse.contents[view.name])
    types = {Predicate(r.name): r.types for r in warehouse.catalog.relations.values()}
    if isinstance(view.definition, OpaqueView):  # it was found to read nothing that changes
        return warehouse.engine.recompute(view.definition, base, types, warehouse.contents[view.name])
    definition = view.grouping if isinstance(view, GroupedView) else view.definition
    if isinstance(definition, ViewDefinition) and view.is_more_than_rules:
        found = warehouse.engine.evaluate_view(definition, base, types)
        return warehouse.engine.like(found, warehouse.contents[view.name])
    goal = view.predicate.of(Version.RECOMPUTED)
    if view.limitation is not None and view.limitation.kind is Outside.UNION:
        unfolded = unfolded_rules(warehouse.catalog.program)
        below = [plain for rules in unfolded.values() for _, plain in rules]
        mine = [Rule(Atom(goal, plain.head.terms), plain.body) for _, plain in unfolded[view.name]]
        return warehouse.engine.evaluate(Program((*mine, *below)), goal, base, view.columns)
    rule = Rule(Atom(goal, view.head.terms), (*view.body, *view.filters))
    return warehouse.engine.evaluate(Program((rule,)), goal, base, view.columns)
