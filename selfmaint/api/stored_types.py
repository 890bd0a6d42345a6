"""Whether views that are known by their text are stored with the types that their queries give.

Files of texts have no types, and others may have any: numbers as texts, decimals as doubles. Such rows are put back as
they are where the view is computed anew, and tell nothing of other views. Exact numbers of another width are read by
other views as of the type that the query gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic

from datalog.model import ANY, ColumnType, OpaqueView, TextQuery, ViewDefinition
from selfmaint.api.columns import is_stored_as
from selfmaint.api.following.over_views import tables_known
from selfmaint.api.platforms.platform import Platform
from selfmaint.engine.protocol import D
from selfmaint.errors import Code, input_error
from selfmaint.fallback.recompute import reads
from selfmaint.warehouse.catalog import Catalog, View
from selfmaint.warehouse.over_stored import over_stored

if TYPE_CHECKING:  # views in rules need no SQL
    from datalog.sql.affected import Table


@dataclass(eq=False)
class StoredTypes(Generic[D]):
    """Says why a view's rows may be stored as other values than its query gives.

    Attributes:
        platform: what holds the contents.
        catalog: the views.
        contents: their rows.
        in_text: the views that are stored in files without types.
    """

    platform: Platform[D]
    catalog: Catalog
    contents: Mapping[str, D]
    in_text: frozenset[str]
    _found: dict[str, str | None] = field(default_factory=dict)

    def __call__(self, name: str) -> str | None:
        """Why they may; None where they are not. Found once for a view."""
        if name not in self._found:
            self._found[name] = self._why(name)
        return self._found[name]

    def __reduce__(self) -> tuple[Callable[[], Callable[[str], str | None]], tuple[()]]:
        """Another process, which gets a copy of the catalog, has none of the contents."""
        return _of_copies, ()

    def _why(self, name: str) -> str | None:
        rows = self.contents.get(name)
        if rows is None or not isinstance(self.catalog.view(name).definition, OpaqueView):
            return None
        known = tables_known(self.catalog).get(name)
        if known is None:
            return "the types of its columns are not known" if name in self.in_text else None
        stored = dict(zip(self.platform.engine.columns(rows), self.platform.types(rows), strict=True))
        return unlike(known, stored, all_known=name in self.in_text)


def unlike(known: Table, stored: Mapping[str, ColumnType], *, all_known: bool) -> str | None:
    """Why the stored columns of a view may have other values than its query gives.

    Args:
        known: what its query gives.
        stored: types by name.
        all_known: whether it matters that the type of a column is not known.
    """
    types = {name.casefold(): kind for name, kind in stored.items()}
    for column, kind in zip(known.columns, known.types, strict=True):
        its = types.get(column.casefold())
        if its is None:
            return f"no column `{column}` is stored"
        if kind == ANY and all_known:
            return f"the type of its column `{column}` is not known"
        if kind != ANY and not is_stored_as(its, kind):
            return f"its column `{column}` is stored as {its} and not as {kind}"
    return None


def as_queried(platform: Platform[D], catalog: Catalog, contents: Mapping[str, D]) -> dict[str, D]:
    """The rows of views, exact numbers that other views read as of the types that the views' queries give.

    As of a wider type they have the same values, and what is computed from them has not: a quotient of decimals has
    digits by their types. A value that does not fit is an error where it is read.
    """
    found = dict(contents)
    read = _read_by_views(catalog) & found.keys()
    tables = tables_known(catalog) if read else {}
    for name in read & tables.keys():
        names, stored = platform.engine.columns(found[name]), platform.types(found[name])
        known = dict(zip(map(str.casefold, tables[name].columns), tables[name].types, strict=True))
        wanted = [
            its if (its := known.get(column.casefold(), ANY)) != ANY and is_stored_as(kind, its) else kind
            for column, kind in zip(names, stored, strict=True)
        ]
        if wanted != [*stored] and ANY not in wanted:
            found[name] = platform.retyped(found[name], wanted)
    return found


def _read_by_views(catalog: Catalog) -> set[str]:
    """The stored views that others read."""
    found: set[str] = set()
    for view in catalog.views:
        for one in (view, over_stored(catalog, view)):
            match None if one is None else one.definition:
                case OpaqueView(query=TextQuery() as query):
                    found.update(query.relations)
                case ViewDefinition() as definition:
                    found.update(predicate.name for predicate in definition.reads)
    return found - catalog.relations.keys()


def require_stored_as_queried(catalog: Catalog, views: Iterable[View]) -> None:
    """Refuses views that read others whose values would be taken for other ones.

    Raises:
        InputError: SM104.
    """
    for view in views:
        for name in reads(catalog, view) if catalog.loose is not None else ():
            why = None if name in catalog.relations or catalog.loose is None else catalog.loose(name)
            if why is not None:
                message = f"`{view.name}` reads `{name}`, which is not stored as its query gives it: {why}"
                where = f"in a store by `selfmaint import --view {name}`"
                hint = f"store `{name}` as Parquet, with the types of its query; {where}"
                raise input_error(Code.COLUMNS_DIFFER, message, hint)


def _of_copies() -> Callable[[str], str | None]:
    return _is_not_asked


def _is_not_asked(_name: str) -> str | None:
    return None
