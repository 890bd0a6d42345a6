"""`--verify`: recompute every view from its sources after the update, and compare both ways.

Maintained sums of doubles have to equal recomputed ones but for the last digits. Two values are near if they differ by
at most `TOLERANCE` of the larger one, or of 1. Everything else of a row must be equal.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from datalog.model import (
    ANY,
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
    Variable,
    Version,
    ViewDefinition,
    block,
)
from selfmaint.api.warehouse import Warehouse
from selfmaint.engine.protocol import D, Engine, Facts
from selfmaint.errors import Code, input_error
from selfmaint.fallback.states import rows_of
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

    Sums of doubles are compared with a tolerance, everything else exactly.

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
            found += unlike(
                engine, warehouse.catalog, view, engine.minus(truth, new), engine.minus(new, truth)
            )
        # What reads this view as it is stored is computed from these rows.
        base = base.extended({view.predicate: new}, small=False)
    return tuple(found)


def unlike(engine: Engine[D], catalog: Catalog, view: View, missing: D, extra: D) -> Iterator[Difference]:
    """How a view's new contents differ from recomputed ones, by the rows that only one of them has, if they do."""
    beyond = beyond_tolerance(engine, near_columns(catalog, view), missing, extra)
    less, more = (tuple(engine.sample(rows, SHOWN_ROWS)) for rows in beyond)
    if less or more:
        yield Difference(view.name, less, more)


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
    """The rows that recomputing gives and maintenance does not, and the other way round, without near ones.

    Args:
        engine: holds the rows.
        near: the columns of which near values are equal.
        missing: rows that only recomputing gives.
        extra: rows that only maintenance gives.
    """
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
    distance = Call("abs", (Arithmetic("-", left, right),))
    size = Call("greatest", (Call("abs", (left,)), Call("abs", (right,)), Constant(1.0)))
    close = Compared("<=", distance, Arithmetic("*", Constant(TOLERANCE), size))
    return AnyOf((AllOf((IsNull(left), IsNull(right))), close))
