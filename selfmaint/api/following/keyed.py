"""Keyed reads, within `maintain`: which views are followed by keys, why others are not, and their changes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from types import MappingProxyType

from msgspec import Struct

from datalog.analysis.expression_types import expression_type
from datalog.copies import replace
from datalog.model import (
    ANY,
    ColumnType,
    NotToRun,
    OpaqueView,
    Semantics,
    TextQuery,
    TypeName,
    ViewDefinition,
    block,
)
from datalog.sql.affected import (
    VALUE,
    Additive,
    Keyed,
    NotKeyed,
    Query,
    Table,
    UnknownShapeError,
    additive,
    differing,
    keyed_by_periods,
    keys_of_changes,
    plan_of_definition,
    plan_of_text,
)
from selfmaint.api.following.how_followed import tables_of
from selfmaint.api.following.over_views import gives_one_result
from selfmaint.api.following.recompute import recomputing_of
from selfmaint.api.platforms.platform import platform_of
from selfmaint.api.update import Update
from selfmaint.api.warehouse import Warehouse
from selfmaint.engine.protocol import D
from selfmaint.errors import Code, InputError
from selfmaint.fallback.added_up import add_up
from selfmaint.fallback.fewest_rows import fewest_rows
from selfmaint.fallback.keyed import differ, follow
from selfmaint.fallback.keyed_rows import (
    MOST_KEYS,
    ByKeys,
    KeyedDelta,
    KeyedRows,
    NotKnownError,
    TooManyKeysError,
)
from selfmaint.fallback.recompute import Recomputing, reads
from selfmaint.warehouse.catalog import BaseRelation, Catalog, View
from selfmaint.warehouse.definitions import unfolded_rules
from selfmaint.warehouse.situation import Situation

NO_RELATIONS: Mapping[str, BaseRelation] = MappingProxyType({})


class Plan(Struct, frozen=True):
    """How a view is followed.

    Attributes:
        added: by the rows that its groups gain and lose, which is tried first.
        keyed: by computing its rows with affected keys anew.
        others: by other keys, which may lead to fewer rows; the last of all ways, if none is `keyed`.
        differing: by what its rows with a key that it does not show were and are.
    """

    added: Additive | None
    keyed: Keyed | None
    differing: Keyed | None = None
    others: tuple[Keyed, ...] = ()


def plans_by_keys(
    warehouse: Warehouse[D], views: Sequence[View], situation: Situation, sets: Collection[str] = ()
) -> tuple[dict[str, Plan], dict[str, str]]:
    """The views that can be followed by keys with how that is done, and why the others cannot; nothing is read.

    Of the relations `sets` no two rows are equal, whatever is declared, and what is said to change of them does.
    """
    found: dict[str, Plan] = {}
    reasons: dict[str, str] = {}
    for view in views:
        try:
            how: Plan | NotKeyed = _plan(warehouse, view, situation, sets)
        except UnknownShapeError as unknown:
            how = NotKeyed(str(unknown))
        if isinstance(how, NotKeyed):
            reasons[view.name] = how.why
        else:
            found[view.name] = how
    return found, reasons


def _plan(
    warehouse: Warehouse[D], view: View, situation: Situation, sets: Collection[str]
) -> Plan | NotKeyed:
    catalog = warehouse.catalog
    for name in reads(catalog, view):
        if name in catalog.relations and name not in warehouse.readable:
            return NotKeyed(f"`{name}` has no source")
        if name in catalog.relations and not (name in sets or catalog.relations[name].is_set):
            return NotKeyed(f"`{name}` is declared without a key: a row of it may stand twice")
    query, changed = query_of_stored(warehouse, view), situation.inserted | situation.deleted
    is_effective = situation.effective or changed.isdisjoint({*reads(catalog, view)}.difference(sets))
    how, *more = _by_keys(warehouse, view, keys_of_changes(query, changed))
    more += _by_keys(warehouse, view, keyed_by_periods(query, changed))
    others = tuple(one for one in more if isinstance(one, Keyed))
    added = None
    if is_effective and not view.is_counted and not _is_free(how):
        found = additive(query, changed)
        added = found if isinstance(found, Additive) and _are_exact(warehouse, view, found) else None
    if not isinstance(how, NotKeyed):
        return Plan(added, how, others=others)
    other = None
    if is_effective and _keeps_equal_rows(view):
        one = differing(query, changed)
        other = one if isinstance(one, Keyed) else None
    return Plan(added, None, other, others) if added or other or others else how


def _keeps_equal_rows(view: View) -> bool:
    """Whether a view's rows are stored as often as they stand."""
    return isinstance(view.definition, OpaqueView) and not view.is_decided


def _is_free(how: Keyed | NotKeyed) -> bool:
    """Whether nothing changes that a view reads, or the key finds single rows."""
    return isinstance(how, Keyed) and how.looks_up


def _by_keys(
    warehouse: Warehouse[D], view: View, ways: tuple[Keyed, ...] | NotKeyed
) -> list[Keyed | NotKeyed]:
    """The keys whose values can be compared with those of base columns; why not, if there are none."""
    if isinstance(ways, NotKeyed):
        return [ways]
    found = [_by_key(warehouse, view, how) for how in ways]
    return [how for how in found if isinstance(how, Keyed)] or found[:1]


def _by_key(warehouse: Warehouse[D], view: View, how: Keyed) -> Keyed | NotKeyed:
    """A key, if the view's values can be compared with those of base columns."""
    stored, kinds = stored_types(warehouse, view), _types(warehouse, how)
    if stored is None or kinds is None:
        return how
    for position, kind in zip(how.key, kinds, strict=True):
        if not _same(stored[position], kind):
            column = warehouse.engine.columns(warehouse.contents[view.name])[position]
            return NotKeyed(f"its column `{column}` is stored as {stored[position]} and not as {kind}")
    return how


def _are_exact(warehouse: Warehouse[D], view: View, how: Additive) -> bool:
    """Whether counts and sums are stored as exact numbers, and groups as values of which equal ones look the same."""
    types = stored_types(warehouse, view)
    if types is None:
        return True
    numbers = all(
        types[i].name.is_integer or types[i].name is TypeName.DECIMAL for i in (*how.counts, *how.sums)
    )
    return numbers and not any(types[i].name.has_signed_zeros for i in how.groups)


def tables_and_views(catalog: Catalog, more: Mapping[str, BaseRelation]) -> dict[str, Table]:
    """The base relations, and views as tables: null is a value in the keys of these."""
    views = {name: replace(table, keys=more[name].unique) for name, table in tables_of(more).items()}
    return {**tables_of(catalog.relations), **views}


def query_of_stored(
    warehouse: Warehouse[D], view: View, more: Mapping[str, BaseRelation] = NO_RELATIONS
) -> Query:
    """A view's query, its outputs in the order of the stored columns; `more` are views as tables, null a value in keys.

    Raises:
        UnknownShapeError: it has a part that is not known, or reads something else.
    """
    tables = tables_and_views(warehouse.catalog, more)
    definition = view.grouping if view.is_counted else view.definition
    match definition:
        case OpaqueView(query=TextQuery() as text):
            found = plan_of_text(text, tables)
            numbers = dict(found.outputs)
            stored = warehouse.engine.columns(warehouse.contents[view.name])
            names = [name.casefold() for name in stored]
            if sorted(names) != sorted(numbers):
                raise UnknownShapeError("its query has other columns than are stored")
            return Query(found.plan, tuple((name, numbers[name]) for name in names))
        case OpaqueView(query=NotToRun() as refused):
            raise UnknownShapeError(refused.why)
        case ViewDefinition() as one:
            return plan_of_definition(one, tables)
        case _:
            return plan_of_definition(_of_rules(warehouse, view), tables)


def _of_rules(warehouse: Warehouse[D], view: View) -> ViewDefinition:
    """The definition of a view that rules alone define."""
    rules = [plain for _, plain in unfolded_rules(warehouse.catalog.program).get(view.name, ())]
    if not rules:
        raise UnknownShapeError("it has no rules of its own")
    blocks = [block(view.name, i, rule.body, rule.head.terms) for i, rule in enumerate(rules)]
    return ViewDefinition(view.name, view.columns, tuple(blocks), Semantics.SET)


def _types(warehouse: Warehouse[D], how: Keyed) -> tuple[ColumnType, ...] | None:
    """The types of the base columns that the key's values are of; None if no key is looked for."""
    root = next((step for step in how.steps if step.sources[0][0] is None), None)
    if root is None:  # nothing that the view reads changes
        return None
    types = warehouse.catalog.relations[root.relation].types
    if root.period is not None:
        of = {VALUE: types[root.columns[0]]}
        return tuple(expression_type(one, of) or ANY for one in root.period.expressions)
    return tuple(types[column] for column in root.columns)


def _same(one: ColumnType, other: ColumnType) -> bool:
    return one in (other, ANY) or (one.name.is_integer and other.name.is_integer)


def followed_by_keys(
    warehouse: Warehouse[D],
    update: Update[D],
    plans: Mapping[str, Plan],
    progress: Callable[[str], None],
    most_keys: int = MOST_KEYS,
) -> ByKeys[D]:
    """The changes of views that are followed by keys.

    Raises:
        InputError: SM502 the engine does not compute what another one does.
        SourceError: a source that does not answer, or is neither right before nor right after the update (SM402).
    """
    catalog = warehouse.catalog
    recomputing = recomputing_of(warehouse, update, lambda view: warehouse.contents[view.name])
    reader = KeyedRows(recomputing.known, warehouse.readable, most_keys, progress)
    followed: dict[str, KeyedDelta[D]] = {}
    failed: dict[str, str] = {}
    for name, how in plans.items():
        view = catalog.view(name)
        ways: list[Callable[[], KeyedDelta[D]]] = []
        if how.added is not None:
            types = stored_types(warehouse, view) or (ANY,) * len(view.columns)
            ways.append(partial(add_up, reader, recomputing, view, how.added, types))
        if how.keyed is not None:
            its = (how.keyed, *how.others)
            ways.append(partial(_follow, reader, recomputing, view, its, partial(_gives_one, catalog, view)))
        if how.differing is not None:
            ways.append(partial(differ, reader, recomputing, view, how.differing))
        if how.keyed is None and how.others:
            ways.append(
                partial(_follow, reader, recomputing, view, how.others, partial(_gives_one, catalog, view))
            )
        found = _first(ways)
        if isinstance(found, str):
            failed[name] = found
        else:
            followed[name] = found
            progress(f"followed {name} by {found.keys} keys")
    return ByKeys(followed, failed, tuple(reader.reads))


def _follow(
    reader: KeyedRows[D],
    recomputing: Recomputing[D],
    view: View,
    ways: Sequence[Keyed],
    gives_one: Callable[[], bool],
) -> KeyedDelta[D]:
    return follow(reader, recomputing, view, fewest_rows(reader, view, ways), gives_one)


def _gives_one(catalog: Catalog, view: View) -> bool:
    return not isinstance(view.definition, OpaqueView) or gives_one_result(catalog, view.definition.query)


def _first(ways: Sequence[Callable[[], KeyedDelta[D]]]) -> KeyedDelta[D] | str:
    """What the first of some ways gives that leads somewhere; else why the last one does not.

    Raises:
        InputError: SM502 the last one is a matter of the engine.
    """
    why, refused = "", None
    for way in ways:
        try:
            return way()
        except (TooManyKeysError, NotKnownError) as error:
            why, refused = str(error), None
        except InputError as error:
            code = error.diagnostics[0].code
            if code not in (Code.NOT_MAINTAINED, Code.ENGINE_DIFFERS):
                raise
            why, refused = error.diagnostics[0].message, error if code is Code.ENGINE_DIFFERS else None
    if refused is not None:
        raise refused
    return why


def stored_types(warehouse: Warehouse[D], view: View) -> tuple[ColumnType, ...] | None:
    """The types of a view's stored columns; None where its values alone tell them, as of rows at hand."""
    if warehouse.engine.name not in ("duckdb", "spark"):
        return None
    return platform_of(warehouse.engine).types(warehouse.contents[view.name])
