"""Views over texts that an update leaves as they are: the rows of such a text are a table that does not change.

    days:  SELECT explode(sequence(DATE '2026-01-01', DATE '2026-12-31')) AS day
    daily: SELECT d.day, COUNT(o.id) AS n FROM days d LEFT JOIN orders o ON o.placed = d.day GROUP BY d.day

`days` cannot be analysed, and so `daily` cannot; over a table `days`, of which all rows are stored, it is a view like
others.

Conditions of soundness:

1. The text reads no relation that changes, and has one result: its rows are after the update what they were before.
2. They are stored with the types that its query gives, each once.
3. A key, or that there is no null, is told by its query or seen in all of its rows: these are the table's, whatever the
   database.
4. The contents of each view are kept in the same form, whether the text is a table or not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING

from datalog.model import ANY, Column, Declaration, OpaqueView, Row, TextQuery
from selfmaint.api.over_views import gives_one_result, tables_known
from selfmaint.api.platform import platform_of
from selfmaint.api.programs import catalog_of_sql
from selfmaint.decide.procedure import check, with_enough
from selfmaint.decide.searched import determined_delta
from selfmaint.decide.unions import deltas_of_unions, of_unions
from selfmaint.decide.verdict import SelfMaintainable, Undecided, Verdict
from selfmaint.engine.protocol import D
from selfmaint.maintain import Delta
from selfmaint.warehouse.catalog import Catalog, View
from selfmaint.warehouse.reads import reads
from selfmaint.warehouse.situation import Situation

if TYPE_CHECKING:
    from datalog.sql.affected import Table
    from selfmaint.api.update import Update
    from selfmaint.api.warehouse import Warehouse

MOST_ROWS = 20_000
"""Of a text with more rows no keys are looked for but those that its query tells."""

MOST_COLUMNS = 2
"""Keys of more columns are not looked for, but that of all."""

_COPY = "__stored"


def with_static_texts(
    warehouse: Warehouse[D], update: Update[D], situation: Situation, verdicts: Mapping[str, Verdict]
) -> dict[str, Verdict]:
    """The verdicts, where views over texts that stay as they are have those that they have over tables."""
    found = dict(verdicts)
    catalog = warehouse.catalog
    open_ = [view for view in catalog.views if _may_gain(catalog, view, found.get(view.name))]
    static = _static(catalog, situation, open_)
    tables = [one for name in static if (one := _declared(warehouse, catalog.view(name))) is not None]
    other = _over(warehouse, tables) if tables else None
    if other is None:
        return found
    wanted = [
        v.name
        for v in open_
        if v.name in {o.name for o in other.catalog.views if _is_decided(other.catalog, o)}
    ]
    parts = [part for name in wanted for part in other.catalog.parts(other.catalog.view(name))]
    if not parts:
        return found
    facts, its = other.given(update)
    known = with_enough(other.decision.knowledge(other.engine, facts, its), parts)
    alone = check(known, parts)
    for name, verdict in of_unions(other.catalog, alone).items():
        if isinstance(verdict, SelfMaintainable):
            names = [part.name for part in other.catalog.parts(other.catalog.view(name))]

            def delta(name: str = name, names: Sequence[str] = names) -> Delta[D]:
                deltas = {part: determined_delta(known, alone[part]) for part in names}  # type: ignore[arg-type]
                return deltas_of_unions(other.catalog, other.engine, known.facts, deltas)[name]

            below = ", ".join(f"`{one.name}`" for one in tables if one.name in reads(other.catalog)[name])
            remark = f"{below} stays as it is"
            found[name] = SelfMaintainable(
                name, (*verdict.remarks, remark), catalog.view(name).semantics, delta=delta, exact=False
            )
    return found


def _may_gain(catalog: Catalog, view: View, verdict: Verdict | None) -> bool:
    """Whether it is a text that is not decided."""
    return (
        isinstance(verdict, Undecided)
        and isinstance(view.definition, OpaqueView)
        and catalog.parts(view) == (view,)
    )


def _is_decided(catalog: Catalog, view: View) -> bool:
    return all(part.is_decided for part in catalog.parts(view))


def _static(catalog: Catalog, situation: Situation, readers: Sequence[View]) -> list[str]:
    """Condition 1: the texts that some views are written over, and that no change reaches."""
    if catalog.queries is None or catalog.clock is not None:
        return []
    asked = {name for view in readers for name in _written_over(catalog, view)}
    below, changed = reads(catalog), situation.inserted | situation.deleted
    texts = {view.name: view for view in catalog.views if isinstance(view.definition, OpaqueView)}
    return [
        name
        for name, view in texts.items()
        if name in asked
        and below[name].isdisjoint(changed)
        and not view.is_counted
        and catalog.parts(view) == (view,)
        and isinstance(view.definition, OpaqueView)
        and isinstance(view.definition.query, TextQuery)
        and gives_one_result(catalog, view.definition.query)
    ]


def _written_over(catalog: Catalog, view: View) -> frozenset[str]:
    """The relations and views that a view's text names, and those that these name."""
    found, waiting = set[str](), [view.name]
    while waiting:
        query = catalog.queries(waiting.pop(), ()) if catalog.queries is not None else None
        more = set(query.relations) - found if query is not None else set[str]()
        found |= more
        waiting += more
    return frozenset(found)


def _declared(warehouse: Warehouse[D], view: View) -> Declaration | None:
    """Conditions 2 and 3: a text as a table."""
    catalog, engine = warehouse.catalog, warehouse.engine
    contents = warehouse.contents[view.name]
    table = tables_known(catalog).get(view.name)
    if table is None or (catalog.loose is not None and catalog.loose(view.name) is not None):
        return None
    names = view.stored_columns
    if [name.casefold() for name in names] != [name.casefold() for name in table.columns]:
        return None
    rows = engine.fetch(contents, MOST_ROWS)
    if rows is not None and len(rows) < engine.count(contents):
        return None  # a row stands twice
    keys = _keys(table, rows)
    if not keys:
        return None
    types = table.types
    if ANY in types and engine.name in ("duckdb", "spark"):
        stored = platform_of(engine).types(contents)
        types = tuple(its if one == ANY else one for one, its in zip(types, stored, strict=True))
    full = {
        i for i in range(len(names)) if i not in table.nullable or (rows is not None and _is_full(rows, i))
    }
    columns = tuple(
        Column(name, its, i in full) for i, (name, its) in enumerate(zip(names, types, strict=True))
    )
    first, *more = [tuple(names[i] for i in key) for key in keys]
    return Declaration(view.name, columns, first, tuple(more))


def _keys(table: Table, rows: Collection[Row] | None) -> list[tuple[int, ...]]:
    """The keys that a text's query tells, and those that all of its rows have; at least that of all columns."""
    found = [*table.keys]
    if rows is None:
        return found
    full = [i for i in range(len(table.columns)) if _is_full(rows, i)]
    for columns in _candidates(full):
        is_new = not any({*key} <= {*columns} for key in found)
        if is_new and len({tuple(row[i] for i in columns) for row in rows}) == len(rows):
            found.append(columns)
    return found


def _candidates(columns: Sequence[int]) -> Iterator[tuple[int, ...]]:
    for size in range(1, MOST_COLUMNS + 1):
        yield from combinations(columns, size)
    yield tuple(columns)


def _is_full(rows: Collection[Row], column: int) -> bool:
    return all(row[column] is not None for row in rows)


def _over(warehouse: Warehouse[D], tables: Sequence[Declaration]) -> Warehouse[D] | None:
    """Condition 4: the warehouse where some texts are tables, each with a view of its rows."""
    from datalog.sql.views.reread import with_tables  # noqa: PLC0415 - where there are texts
    from datalog.sql.views.text_reads import Queries  # noqa: PLC0415 - see above

    before = warehouse.catalog
    taken = {name.casefold() for name in (*before.relations, *(view.name for view in before.views))}
    queries = before.queries
    if not isinstance(queries, Queries) or queries.catalogue is None:
        return None
    if any(f"{one.name}{_COPY}".casefold() in taken for one in tables):
        return None
    read = with_tables(queries.catalogue, tables, _COPY)
    if read is None:
        return None
    catalog = catalog_of_sql(read)
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
