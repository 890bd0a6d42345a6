"""Views as queries over other stored views: as they are written, or over copies of tables that have no key.

    stg: SELECT id, upper(kind) AS kind, area FROM site           a site changes its area: `stg` tells which
    v:   SELECT kind, COUNT(DISTINCT area) FROM stg GROUP BY kind     decided over `site`; over `stg` it is computed

Conditions of soundness:

1. The stored rows of each view are what its query gives, so both say the same of the view.
2. It is left as it is where its rows are stored in another form than its query gives them, as rows with their counts.
3. A view of all columns of a table, of one with no condition and that keeps duplicates, has its rows, as often as they
   stand: a query over a table that has no key is the same query over that view. (Tables with a key are told otherwise.)
4. Such a view, or one that shows a key, has all that a text uses of a table if it shows the columns that the text may
   name: others make no difference to it. It is read so where all tables that the text reads are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import is_

from datalog.copies import replace
from datalog.model import (
    ANY,
    NUMBER,
    ColumnType,
    OpaqueView,
    Semantics,
    TextQuery,
    TextRead,
    Variable,
    ViewDefinition,
)
from selfmaint.warehouse.base_relations import BaseRelation
from selfmaint.warehouse.catalog import Catalog
from selfmaint.warehouse.definitions import limited_view
from selfmaint.warehouse.views import Limitation, Outside, View


def over_stored(catalog: Catalog, view: View) -> View | None:
    """A view as its query over stored views; None if it is not written so and reads no copy, or is that already."""
    return catalog.once("over stored views", view, lambda: _over_stored(catalog, view))


def _over_stored(catalog: Catalog, view: View) -> View | None:
    if catalog.queries is None or view.is_counted or catalog.parts(view) != (view,):
        return None
    copied = copies_without_keys(catalog)
    text = view.definition if isinstance(view.definition, OpaqueView) else None
    written = text.query if text else catalog.queries(view.name, copied)
    if not isinstance(written, TextQuery):
        return None
    query = _over_copies(catalog, written, in_part=text is not None)
    if not catalog.relations.keys().isdisjoint(query.relations):  # tables are read by keys, if any are
        query = _over_copies(catalog, written, in_part=False)
    if query is written and not _is_other(catalog, view, written):
        return None
    definition = OpaqueView(view.name, query.text, (), view.stored_columns, view.rule.span, query)
    return limited_view(definition, view.stored_columns, Limitation(Outside.OPAQUE, "it is not decided so"))


def _is_other(catalog: Catalog, view: View, query: TextQuery) -> bool:
    """Whether a view is written over stored views, and is decided over something else."""
    if isinstance(view.definition, OpaqueView) or catalog.relations.keys() >= {*query.relations}:
        return False
    read = view.definition.reads if isinstance(view.definition, ViewDefinition) else ()
    return {one.name for one in read} != {*query.relations}


def _over_copies(catalog: Catalog, query: TextQuery, *, in_part: bool) -> TextQuery:
    """A query that reads stored views in place of tables; the same object if there are none.

    These are copies of tables without a key, and with `in_part` what shows all that the query uses of a table.
    """
    reads = tuple(_over_copy(catalog, read, query.named, in_part=in_part) for read in query.reads)
    return query if all(map(is_, reads, query.reads)) else replace(query, reads=reads)


def _over_copy(catalog: Catalog, read: TextRead, named: frozenset[str] | None, *, in_part: bool) -> TextRead:
    if isinstance(read.of, TextQuery):
        below = _over_copies(catalog, read.of, in_part=in_part)
        return read if below is read.of else replace(read, of=below)
    copy = copies_without_keys(catalog).get(read.of)
    if copy is None and in_part and named is not None and read.of in catalog.relations:
        copy = _in_part(catalog, catalog.relations[read.of], named)
    return read if copy is None else replace(read, of=copy)


def _in_part(catalog: Catalog, relation: BaseRelation, named: frozenset[str]) -> TextQuery | None:
    """The query that gives what a text may use of a table from a stored view (condition 4)."""
    own = range(relation.given)
    used = [i for i in own if relation.columns[i].casefold() in named]
    listing = catalog.once(f"listed {relation.name}", None, lambda: [*_listing(catalog, relation)])
    for name, is_bag, shown in listing:
        has_key = is_bag or any(shown.keys() >= {*key} for key in relation.keys)
        columns = used or list(shown)[:1]
        if has_key and columns and shown.keys() >= {*columns}:
            kinds = [relation.types[i] for i in columns]  # a view may show them as wider ones
            return _selecting(
                name, [shown[i] for i in columns], [relation.columns[i] for i in columns], kinds
            )
    return None


def _listing(catalog: Catalog, relation: BaseRelation) -> Iterator[tuple[str, bool, Mapping[int, str]]]:
    """The stored views with a row for each row of a table: whether each once, and the columns that they show."""
    for view in catalog.views:
        match view.definition:
            case ViewDefinition(semantics=semantics, blocks=(block,)) if not view.is_counted:
                pass
            case _:
                continue
        (atom,) = block.core.atoms if len(block.core.atoms) == 1 else (None,)
        if atom is None or atom.predicate.name != relation.name:
            continue
        tests = len(block.core.body) > 1 or block.filters or block.having or block.groups is not None
        is_stored_so = len(block.outputs) == len(view.stored_columns)
        if (
            is_stored_so
            and not tests
            and {*map(type, atom.terms)} == {Variable}
            and len({*atom.terms}) == atom.arity
        ):
            shown = dict(zip(block.outputs, view.stored_columns, strict=True))
            columns = {i: shown[term] for i, term in enumerate(atom.terms[: relation.given]) if term in shown}
            yield view.name, semantics is Semantics.BAG, columns


def copies_without_keys(catalog: Catalog) -> Mapping[str, TextQuery]:
    """For each table without a key that a stored view copies the query that gives its rows from there."""
    return catalog.once("copies without keys", None, lambda: _copies_without_keys(catalog))


def _copies_without_keys(catalog: Catalog) -> dict[str, TextQuery]:
    found = dict[str, TextQuery]()
    for view in catalog.views:
        match view.definition:
            case ViewDefinition(semantics=Semantics.BAG, blocks=(block,)) if view.is_counted:
                pass
            case _:
                continue
        (atom,) = block.core.atoms if len(block.core.atoms) == 1 else (None,)
        relation = None if atom is None else catalog.relations.get(atom.predicate.name)
        if atom is None or relation is None or not relation.is_numbered or relation.name in found:
            continue
        tests = len(block.core.body) > 1 or block.filters or block.having or block.groups is not None
        if tests or catalog.parts(view) != (view,):
            continue
        shown = dict(zip(block.outputs, view.stored_columns, strict=True))
        row = [term for term, name in zip(atom.terms, relation.columns, strict=True) if name != NUMBER]
        if {*map(type, row)} == {Variable} and len({*row}) == len(row) and shown.keys() >= {*row}:
            found[relation.name] = _selecting(view.name, [shown[term] for term in row], relation.columns[:-1])
    return found


def _selecting(
    view: str, columns: Sequence[str], names: Sequence[str], kinds: Sequence[ColumnType] = ()
) -> TextQuery:
    typed = zip(columns, kinds or [ANY] * len(columns), strict=True)
    items = (_quoted(name) if kind == ANY else f"cast({_quoted(name)} as {kind})" for name, kind in typed)
    shown, place = ", ".join(items), _quoted(view)
    start = f"select {shown} from "  # noqa: S608 - names of the warehouse's own
    return TextQuery(start + place, (TextRead(len(start), len(start) + len(place), view),), tuple(names))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def with_views(catalog: Catalog, others: Iterable[View]) -> Catalog:
    """The catalog with such views in place of those of their names."""
    found = {view.name: view for view in others}
    if not found:
        return catalog
    views = tuple(found.get(view.name, view) for view in catalog.views)
    rules = tuple(rule for rule in catalog.program.rules if rule.head.predicate.name not in found)
    summands, grouped = (
        {name: its for name, its in every.items() if name not in found}
        for every in (catalog.summands, catalog.grouped_summands)
    )
    program = replace(catalog.program, rules=rules)
    return replace(catalog, views=views, program=program, summands=summands, grouped_summands=grouped)
