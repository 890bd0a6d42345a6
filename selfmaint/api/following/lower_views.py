"""Views over views that cannot be analysed, and of which the change is known: over tables that change so, or stay.

    days:  SELECT explode(sequence(DATE '2026-01-01', DATE '2026-12-31')) AS day
    daily: SELECT d.day, COUNT(o.id) AS n FROM days d LEFT JOIN orders o ON o.placed = d.day GROUP BY d.day

`days` cannot be analysed, and so `daily` cannot; over a table `days`, of which all rows are stored, it is a view like
others.

Conditions of soundness:

1. Such a view has one result, and reads no relation that changes: its rows are after the update what they were before.
   Or its change is determined, whatever the database, and the update effective: then that is the table's change.
2. They are stored with the types that its query gives, each once.
3. A key, or that there is no null, is told by its query or seen in all of its rows, before the update and after it:
   these are the table's, whatever the database.
4. The contents of each view are kept in the same form, whether it is over a view or a table.

Views that read no relation at all, such as VALUES, count as well: over their rules others would be unions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Generic

from msgspec import Struct

from datalog.copies import replace
from datalog.diagnostics import ProgramError
from datalog.model import (
    ANY,
    Atom,
    Column,
    Declaration,
    NullTest,
    OpaqueView,
    Predicate,
    Program,
    Row,
    Rule,
    TextQuery,
    Variable,
    Version,
)
from selfmaint.api.file.programs import catalog_of_sql
from selfmaint.api.following.over_views import gives_one_result, tables_known
from selfmaint.api.following.views_as_tables import with_changes_of_views
from selfmaint.api.platforms.platform import platform_of
from selfmaint.decide.knowledge import Knowledge
from selfmaint.decide.procedure import check, with_enough
from selfmaint.decide.searched import determined_delta
from selfmaint.decide.unions import deltas_of_unions, of_unions
from selfmaint.decide.verdict import SelfMaintainable, Undecided, Verdict
from selfmaint.engine.protocol import D, Engine, Facts
from selfmaint.errors import InputError
from selfmaint.maintain import Delta, applied
from selfmaint.warehouse.catalog import Catalog, View
from selfmaint.warehouse.reads import reads

if TYPE_CHECKING:
    from datalog.sql.affected import Table
    from selfmaint.api.update import Update
    from selfmaint.api.warehouse import Warehouse

MOST_ROWS = 20_000
"""Of a view with more rows keys of several columns are not looked for."""

MOST_COUNTED = 2_000_000
"""Of a view with more rows no keys are looked for but those that its query tells."""

MOST_COLUMNS = 2
"""Keys of more columns are not looked for, but that of all."""

_COPY = "__stored"
_GIVEN, _FOUND = Predicate("given", Version.STEP), Predicate("found", Version.STEP)


def with_lower_views(
    warehouse: Warehouse[D], update: Update[D], known: Knowledge[D], verdicts: Mapping[str, Verdict]
) -> dict[str, Verdict]:
    """The verdicts, where views over such views have those that they have over tables."""
    found, catalog = dict(verdicts), warehouse.catalog
    readers = [v for v in catalog.views if isinstance(found.get(v.name), Undecided) and _is_alone(catalog, v)]
    states = _states(warehouse, known, found, readers)
    tables = {one.name: one for its in states if (one := _declared(warehouse, its)) is not None}
    other = _over(warehouse, [*tables.values()]) if tables else None
    if other is None:
        return found
    below = reads(other.catalog)
    wanted = {
        v.name: other.catalog.parts(other.catalog.view(v.name)) for v in readers if v.name not in tables
    }
    wanted = {
        name: parts
        for name, parts in wanted.items()
        if not below[name].isdisjoint(tables) and all(part.is_decided for part in parts)
    }
    every = [part for parts in wanted.values() for part in parts]
    if not every:
        return found
    changes = {
        its.view.name: its.change for its in states if its.view.name in tables and its.change is not None
    }
    facts, situation = other.given(with_changes_of_views(update, changes))
    there = with_enough(other.decision.knowledge(other.engine, facts, situation), every)
    alone = check(there, every)
    for name, verdict in of_unions(other.catalog, alone).items():
        names, left = sorted(below[name] & tables.keys()), found[name]
        if isinstance(verdict, SelfMaintainable):
            told = {part.name: alone[part.name] for part in wanted[name]}
            remarks = [
                f"`{one}` {'changes as is known' if one in changes else 'stays as it is'}" for one in names
            ]
            change = partial(_change, other.catalog, there, name, told)
            semantics = catalog.view(name).semantics
            found[name] = SelfMaintainable(name, (*verdict.remarks, *remarks), semantics, delta=change)
        elif isinstance(left, Undecided):
            as_tables = ", ".join(f"`{one}`" for one in names)
            found[name] = left.because_of(f"over {as_tables} as given: {verdict.because.splitlines()[0]}")
    return found


class _State(Struct, Generic[D], frozen=True):
    """A view that counts as a table, and its change; None if the update leaves it as it is."""

    view: View
    change: Delta[D] | None = None


def _change(catalog: Catalog, known: Knowledge[D], name: str, told: Mapping[str, Verdict]) -> Delta[D]:
    """The change of a view from those of its parts, in the schema in which these are decided."""
    deltas = {
        part: determined_delta(known, its) for part, its in told.items() if isinstance(its, SelfMaintainable)
    }
    return deltas_of_unions(catalog, known.engine, known.facts, deltas)[name]


def _is_alone(catalog: Catalog, view: View) -> bool:
    """Whether a view is not decided, nor in parts."""
    return not view.is_decided and not view.is_counted and catalog.parts(view) == (view,)


def _states(
    warehouse: Warehouse[D], known: Knowledge[D], verdicts: Mapping[str, Verdict], readers: Sequence[View]
) -> list[_State[D]]:
    """Condition 1: of the views that some are written over those that cannot be analysed, if their change is known."""
    catalog, situation = warehouse.catalog, known.situation
    if catalog.queries is None or catalog.clock is not None:
        return []
    asked = frozenset[str]().union(*(_written_over(catalog, view) for view in readers))
    below, changed = reads(catalog), situation.inserted | situation.deleted
    found: list[_State[D]] = []
    for view in catalog.views:
        is_fixed = not below[view.name] and not view.is_counted
        if view.name not in asked or not (is_fixed or _is_alone(catalog, view)):
            continue
        if not _has_one_result(catalog, view):
            continue
        verdict = verdicts.get(view.name)
        if below[view.name].isdisjoint(changed):
            found.append(_State(view))
        elif situation.effective and isinstance(verdict, SelfMaintainable) and not verdict.is_computed:
            found.append(_State(view, determined_delta(known, verdict)))
    return found


def _has_one_result(catalog: Catalog, view: View) -> bool:
    if not isinstance(view.definition, OpaqueView):
        return view.definition is not None
    query = view.definition.query
    return isinstance(query, TextQuery) and gives_one_result(catalog, query)


def _written_over(catalog: Catalog, view: View) -> frozenset[str]:
    """The relations and views that a view's text names, and those that these name."""
    found, waiting = set[str](), [view.name]
    while waiting:
        query = catalog.queries(waiting.pop(), ()) if catalog.queries is not None else None
        more = set(query.relations) - found if query is not None else set[str]()
        found |= more
        waiting += more
    return frozenset(found)


def _declared(warehouse: Warehouse[D], its: _State[D]) -> Declaration | None:
    """Conditions 2 and 3: a view as a table."""
    catalog, engine, view = warehouse.catalog, warehouse.engine, its.view
    contents = warehouse.contents[view.name]
    table = tables_known(catalog).get(view.name)
    if table is None or (catalog.loose is not None and catalog.loose(view.name) is not None):
        return None
    names = view.stored_columns
    if [name.casefold() for name in names] != [name.casefold() for name in table.columns]:
        return None
    states = [contents, *([] if its.change is None else [applied(engine, view, contents, its.change)])]
    fetched = [engine.fetch(state, MOST_ROWS) for state in states]
    if any(rows is not None and len(rows) < engine.count(s) for rows, s in zip(fetched, states, strict=True)):
        return None  # a row stands twice
    every = None if any(rows is None for rows in fetched) else [rows for rows in fetched if rows is not None]
    full = {
        i for i in range(len(names)) if i not in table.nullable or (every is not None and _is_full(every, i))
    }
    keys = _keys(table, full, every) or _counted_key(engine, states, table)
    if not keys:
        return None
    types = table.types
    if ANY in types and engine.name in ("duckdb", "spark"):
        stored = platform_of(engine).types(contents)
        types = tuple(its if one == ANY else one for one, its in zip(types, stored, strict=True))
    columns = tuple(
        Column(name, kind, i in full) for i, (name, kind) in enumerate(zip(names, types, strict=True))
    )
    first, *more = [tuple(names[i] for i in key) for key in keys]
    return Declaration(view.name, columns, first, tuple(more))


def _keys(
    table: Table, full: AbstractSet[int], states: Sequence[Collection[Row]] | None
) -> list[tuple[int, ...]]:
    """The keys that a view's query tells, and those that all of its rows have; none with a column that may be null."""
    found = [key for key in table.keys if full >= {*key}]
    if states is None:
        return found
    for columns in _candidates(sorted(full)):
        is_new = not any({*key} <= {*columns} for key in found)
        if is_new and all(len({tuple(row[i] for i in columns) for row in s}) == len(s) for s in states):
            found.append(columns)
    return found


def _counted_key(engine: Engine[D], states: Sequence[D], table: Table) -> list[tuple[int, ...]]:
    """The first column that has another value in each row, and no null, as a key: of many rows, or beside doubles."""
    numbers = [engine.count(state) for state in states]
    if max(numbers) > MOST_COUNTED:
        return []
    terms = tuple(Variable(f"X{i}") for i in range(len(table.columns)))
    for i, its in enumerate(table.types):
        if its.name.has_signed_zeros:
            continue
        program = Program((Rule(Atom(_FOUND, (terms[i],)), (Atom(_GIVEN, terms), NullTest(terms[i]))),))
        values = (engine.evaluate(program, _FOUND, Facts({_GIVEN: state}), ["value"]) for state in states)
        if all(engine.count(one) == number for one, number in zip(values, numbers, strict=True)):
            return [(i,)]
    return []


def _candidates(columns: Sequence[int]) -> Iterator[tuple[int, ...]]:
    for size in range(1, MOST_COLUMNS + 1):
        yield from combinations(columns, size)
    yield tuple(columns)


def _is_full(states: Sequence[Collection[Row]], column: int) -> bool:
    return all(row[column] is not None for rows in states for row in rows)


def _over(warehouse: Warehouse[D], tables: Sequence[Declaration]) -> Warehouse[D] | None:
    """Condition 4: the warehouse where some views are tables, each with a view of its rows."""
    from datalog.sql.views.kept.reread import with_tables  # noqa: PLC0415 - where there are texts
    from datalog.sql.views.kept.text_reads import Queries  # noqa: PLC0415 - see above

    before = warehouse.catalog
    taken = {name.casefold() for name in (*before.relations, *(view.name for view in before.views))}
    queries = before.queries
    if not isinstance(queries, Queries) or queries.catalogue is None:
        return None
    if any(f"{one.name}{_COPY}".casefold() in taken for one in tables):
        return None
    try:
        read = with_tables(queries.catalogue, tables, _COPY)
        catalog = None if read is None else catalog_of_sql(read)
    except (ProgramError, InputError):  # a name that means another thing there
        catalog = None
    if catalog is None:
        return None
    contents = {f"{one.name}{_COPY}": warehouse.contents[one.name] for one in tables}
    contents |= {view.name: warehouse.contents[view.name] for view in before.views}
    names = {view.name for view in catalog.views}
    if names - contents.keys() or any(
        view.name in warehouse.contents and view.is_counted != before.view(view.name).is_counted
        for view in catalog.views
    ):
        return None
    return replace(
        warehouse, catalog=catalog, contents={name: rows for name, rows in contents.items() if name in names}
    )
